//! The instruction set of the SPU: instructions, encoding, pipes and latencies.
//!
//! The SPU is big-endian. A word has 32 bits, and bit 0 is the most significant. Element 0 of a register is its
//! preferred slot, which holds scalars such as addresses, conditions and counts.

mod code;
mod show;
mod table;

pub(crate) use table::with_table;

/// Bytes of the local store, the memory that instructions address.
pub const LOCAL_STORE: usize = 256 * 1024;

/// A register, `$0` to `$127`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Reg(u8);

impl Reg {
    /// The number of registers.
    pub const COUNT: usize = 128;

    /// The register with this number.
    ///
    /// # Panics
    /// If there is no such register.
    pub const fn new(number: u8) -> Reg {
        assert!(number < 128, "registers are $0 to $127");
        Reg(number)
    }

    /// The number of the register, from 0 to 127.
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// The two pipes of an SPU, each of which can issue one instruction per cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pipe {
    /// Arithmetic, logic, word shifts: pipeline 0.
    Even,
    /// Shuffles, quadword shifts, local store, branches: pipeline 1.
    Odd,
}

/// Classes of instructions, as in IBM's table of latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Simple fixed point and logic.
    Fx,
    /// Word and halfword rotates and shifts.
    Ws,
    /// Byte operations: counts, averages, differences, sums.
    Bo,
    /// Integer products, which the floating-point unit computes.
    Fi,
    /// Shuffles and quadword rotates and shifts.
    Sh,
    /// Loads from the local store.
    Ls,
    /// Stores to the local store.
    St,
    /// Reads and writes of channels.
    Ch,
    /// Branches.
    Br,
    /// Branch hints.
    Hb,
    /// No operation on the even pipe.
    Nop,
    /// No operation on the odd pipe.
    Lnop,
}

impl Class {
    /// The pipe that executes instructions of this class.
    pub const fn pipe(self) -> Pipe {
        match self {
            Class::Fx | Class::Ws | Class::Bo | Class::Fi | Class::Nop => Pipe::Even,
            Class::Sh | Class::Ls | Class::St | Class::Ch | Class::Br | Class::Hb | Class::Lnop => Pipe::Odd,
        }
    }

    /// Number of cycles from issue until the result can be used.
    pub const fn latency(self) -> u32 {
        match self {
            Class::Fx => 2,
            Class::Ws | Class::Bo | Class::Sh | Class::Br => 4,
            Class::Ls | Class::St | Class::Ch => 6,
            Class::Fi => 7,
            Class::Hb => 15,
            Class::Nop | Class::Lnop => 1,
        }
    }
}

/// The fields of a word, and the assembly syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// `rt,ra,rb,rc`
    Rrr,
    /// `rt,ra,rb`
    Rr,
    /// `rt,ra,rb`; RT is also read.
    RrInOut,
    /// `rt,ra,rb`; RT is stored.
    RrStore,
    /// `rt,ra`
    RrA,
    /// `rt,ra,count`; the count has seven bits.
    Ri7,
    /// `rt,offset(ra)`; the offset has seven bits and is in bytes.
    Ri7Offset,
    /// `rt,ra,value`; the value has ten bits and is signed.
    Ri10,
    /// `rt,ra,value`; the value is a signed or unsigned byte.
    Ri10Byte,
    /// `rt,offset(ra)`; the offset is encoded in quadwords and written in bytes.
    Ri10Quad,
    /// The store form of [`Format::Ri10Quad`].
    Ri10QuadStore,
    /// `rt,value`; the value has sixteen bits.
    Ri16,
    /// `rt,value`; RT is also read.
    Ri16InOut,
    /// `rt,address`
    Ri16Absolute,
    /// The store form of [`Format::Ri16Absolute`].
    Ri16AbsoluteStore,
    /// `rt,address`, relative to the instruction.
    Ri16Relative,
    /// The store form of [`Format::Ri16Relative`].
    Ri16RelativeStore,
    /// `rt,value`; the value has eighteen bits and is unsigned.
    Ri18,
    /// `address`
    Branch,
    /// `rt,address`; RT is tested.
    BranchIf,
    /// `ra`
    Indirect,
    /// `rt,ra`; RT is tested.
    IndirectIf,
    /// `branch,ra`
    HintIndirect,
    /// `branch,address`
    HintAbsolute,
    /// `branch,address`, relative to the instruction.
    HintRelative,
    /// `rt,channel`
    ReadChannel,
    /// `channel,rt`; RT is written to the channel.
    WriteChannel,
    /// No operands.
    Bare,
    /// A code of fourteen bits.
    StopCode,
}

/// One instruction with its operands. Fields that the format lacks are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Inst {
    /// The operation, which determines the format.
    pub op: Op,
    /// The target register; for stores and conditional branches the register that is read.
    pub rt: Reg,
    /// The first source register.
    pub ra: Reg,
    /// The second source register.
    pub rb: Reg,
    /// The third source register.
    pub rc: Reg,
    /// The immediate as encoded: relative and absolute addresses in words, offsets of `lqd` in quadwords.
    pub imm: i32,
    /// For hints: number of words from the hint to the branch.
    pub to_branch: i16,
}

impl Inst {
    /// An instruction whose operands are all zero. Other instructions are built from it.
    pub const fn bare(op: Op) -> Inst {
        let zero = Reg::new(0);
        Inst { op, rt: zero, ra: zero, rb: zero, rc: zero, imm: 0, to_branch: 0 }
    }

    /// Returns the register that the instruction writes.
    pub fn target(&self) -> Option<Reg> {
        self.op.format().writes_rt().then_some(self.rt)
    }

    /// Returns the registers that the instruction reads.
    pub fn sources(&self) -> impl Iterator<Item = Reg> {
        let format = self.op.format();
        let three = format == Format::Rrr;
        [
            (format.reads_ra(), self.ra),
            (format.reads_rb(), self.rb),
            (three, self.rc),
            (format.reads_rt(), self.rt),
        ]
        .into_iter()
        .filter_map(|(reads, reg)| reads.then_some(reg))
    }
}

impl Format {
    /// True if the result is written to RT.
    pub const fn writes_rt(self) -> bool {
        use Format::*;
        matches!(
            self,
            Rrr | Rr
                | RrInOut
                | RrA
                | Ri7
                | Ri7Offset
                | Ri10
                | Ri10Byte
                | Ri10Quad
                | Ri16
                | Ri16InOut
                | Ri16Absolute
                | Ri16Relative
                | Ri18
                | ReadChannel
        )
    }

    /// True if RT is a source.
    pub const fn reads_rt(self) -> bool {
        use Format::*;
        matches!(
            self,
            RrInOut
                | RrStore
                | Ri10QuadStore
                | Ri16InOut
                | Ri16AbsoluteStore
                | Ri16RelativeStore
                | BranchIf
                | IndirectIf
                | WriteChannel
        )
    }

    /// True if RA is a source.
    pub const fn reads_ra(self) -> bool {
        use Format::*;
        matches!(
            self,
            Rrr | Rr
                | RrInOut
                | RrStore
                | RrA
                | Ri7
                | Ri7Offset
                | Ri10
                | Ri10Byte
                | Ri10Quad
                | Ri10QuadStore
                | Indirect
                | IndirectIf
                | HintIndirect
        )
    }

    /// True if RB is a source.
    pub const fn reads_rb(self) -> bool {
        matches!(self, Format::Rrr | Format::Rr | Format::RrInOut | Format::RrStore)
    }
}

macro_rules! define_ops {
    ($($name:ident $mnemonic:ident $opcode:literal $format:ident $class:ident,)*) => {
        /// The operations of the instruction set.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "named as in the manual")]
        #[repr(u8)]
        pub enum Op { $($name),* }

        impl Op {
            /// All operations, in the order of the table.
            pub const ALL: &'static [Op] = &[$(Op::$name),*];

            /// The name in assembly text.
            pub const fn mnemonic(self) -> &'static str {
                match self { $(Op::$name => stringify!($mnemonic)),* }
            }

            /// Returns the leftmost eleven bits of the word. Bits that belong to operand fields are zero.
            pub const fn opcode(self) -> u32 {
                match self { $(Op::$name => $opcode),* }
            }

            /// The format of the operands.
            pub const fn format(self) -> Format {
                match self { $(Op::$name => Format::$format),* }
            }

            /// The class, which determines the pipe and the latency.
            pub const fn class(self) -> Class {
                match self { $(Op::$name => Class::$class),* }
            }
        }
    };
}
with_table!(define_ops);

impl Op {
    /// The pipe that executes the operation.
    pub const fn pipe(self) -> Pipe {
        self.class().pipe()
    }

    /// Number of cycles from issue until the result can be used.
    pub const fn latency(self) -> u32 {
        self.class().latency()
    }

    /// True for all instructions that may change the control flow.
    pub const fn is_branch(self) -> bool {
        matches!(self.class(), Class::Br) && !matches!(self, Op::Stop | Op::Sync | Op::Dsync)
    }

    /// True for hints of branches.
    pub const fn is_hint(self) -> bool {
        matches!(self.class(), Class::Hb)
    }

    /// Returns the operation with this mnemonic.
    pub fn by_mnemonic(name: &str) -> Option<Op> {
        Op::ALL.iter().copied().find(|op| op.mnemonic() == name)
    }
}
