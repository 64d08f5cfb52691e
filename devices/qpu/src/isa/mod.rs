//! The instruction set of a QPU: instructions, their encoding as 64-bit words, and their text.
//!
//! A QPU executes each instruction for 16 elements. An instruction has two operations, one for each of the two ALUs (called add
//! and mul). Their inputs come from six accumulators, and from one register of file A and one register of file B.

mod code;
mod ops;
pub mod registers;
mod show;

pub use code::DecodeError;
pub use ops::{AddOp, BranchCondition, Condition, MulOp, Mux, Signal};
pub use show::disassemble;

/// The number of elements of a register.
pub const ELEMENTS: usize = 16;

/// Number of bytes of an instruction in memory.
pub const INSTRUCTION_BYTES: u32 = 8;

/// An instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// An operation of each ALU, and a signal.
    Alu(Alu),
    /// Writes a constant to registers.
    LoadImmediate(LoadImmediate),
    /// Increments or decrements a semaphore.
    Semaphore(Semaphore),
    /// A branch. The three instructions after the branch are executed before its target.
    Branch(Branch),
}

/// The destinations of the results of an instruction other than a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Destination {
    /// The mode in which a result is packed, from 0 (none) to 15. If `pm` is false, results that are written to file A are
    /// packed. Otherwise the results of the mul ALU are packed.
    pub pack: u8,
    /// The field PM: selects the registers to which `pack` and [`Alu::unpack`] apply.
    pub pm: bool,
    /// The elements for which the result of the add ALU is written.
    pub add_condition: Condition,
    /// The elements for which the result of the mul ALU is written.
    pub mul_condition: Condition,
    /// True if the flags are set from the result of the add ALU, or of the mul ALU if the add ALU has no operation.
    pub sets_flags: bool,
    /// False if the add ALU writes to file A and the mul ALU to file B. True if the add ALU writes to file B and the mul ALU to
    /// file A.
    pub is_swapped: bool,
    /// The register that the add ALU writes, from 0 to 63: see [`registers`].
    pub add: u8,
    /// The register that the mul ALU writes, from 0 to 63.
    pub mul: u8,
}

impl Destination {
    /// The destinations of an instruction that writes nothing.
    pub const NONE: Destination = Destination {
        pack: 0,
        pm: false,
        add_condition: Condition::Never,
        mul_condition: Condition::Never,
        sets_flags: false,
        is_swapped: false,
        add: registers::NOP,
        mul: registers::NOP,
    };
}

/// An instruction with an operation of each ALU, and a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Alu {
    /// The signal, which is an additional effect of the instruction.
    pub signal: Signal,
    /// The mode in which an input is unpacked, from 0 (none) to 7. The input is the register of file A, or r4 if
    /// [`Destination::pm`] is true.
    pub unpack: u8,
    /// The destinations of the results.
    pub to: Destination,
    /// The operation of the mul ALU.
    pub mul: MulOp,
    /// The operation of the add ALU.
    pub add: AddOp,
    /// The register of file A that is read, from 0 to 63: see [`registers`].
    pub read_a: u8,
    /// The register of file B that is read, from 0 to 63. With [`Signal::SmallImmediate`], this is the code of a [small
    /// immediate](SmallImmediate) instead.
    pub read_b: u8,
    /// The inputs of the add ALU.
    pub add_inputs: [Mux; 2],
    /// The inputs of the mul ALU.
    pub mul_inputs: [Mux; 2],
}

impl Alu {
    /// An instruction without operations and signals.
    pub const NOP: Alu = Alu {
        signal: Signal::None,
        unpack: 0,
        to: Destination::NONE,
        mul: MulOp::Nop,
        add: AddOp::Nop,
        read_a: registers::NOP,
        read_b: registers::NOP,
        add_inputs: [Mux::R0; 2],
        mul_inputs: [Mux::R0; 2],
    };

    /// Returns the small immediate that replaces the read of file B, if there is one.
    pub const fn small_immediate(&self) -> Option<SmallImmediate> {
        match self.signal {
            Signal::SmallImmediate => Some(SmallImmediate::of_code(self.read_b)),
            _ => None,
        }
    }

    /// True if the instruction reads the mutex, which locks it.
    pub const fn reads_mutex(&self) -> bool {
        self.read_a == registers::MUTEX
            || !matches!(self.signal, Signal::SmallImmediate) && self.read_b == registers::MUTEX
    }

    /// True if an operation other than [`AddOp::Nop`] and [`MulOp::Nop`] has the input `mux`.
    pub fn reads(&self, mux: Mux) -> bool {
        let of_add = self.add_inputs.iter().take(self.add.inputs());
        let of_mul = self.mul_inputs.iter().take(self.mul.inputs());
        of_add.chain(of_mul).any(|input| *input == mux)
    }
}

/// The meaning of the code of a small immediate (Broadcom's guide, table 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SmallImmediate {
    /// This value for all elements, as bits. The value is an integer from -16 to 15, or a float that is a power of two from
    /// 2^-8 to 2^7.
    Value(u32),
    /// The result of the mul ALU is rotated by the lower four bits of element 0 of r5. If an operation reads the immediate as
    /// an input, its value is -16.
    RotateByR5,
    /// The result of the mul ALU is rotated by this number of elements, from 1 to 15: element i moves to i + n. If an operation
    /// reads the immediate as an input, its value is n - 16 (vc4asm's addendum).
    Rotate(u8),
}

impl SmallImmediate {
    /// The meaning of a code. Only the lower six bits of the code are used.
    pub const fn of_code(code: u8) -> SmallImmediate {
        let code = (code & 63) as u32;
        match code {
            0..16 => SmallImmediate::Value(code),
            16..32 => SmallImmediate::Value(code.wrapping_sub(32)),
            // 2^0 to 2^7, then 2^-8 to 2^-1. The exponent of a float is biased by 127.
            32..40 => SmallImmediate::Value((code + 127 - 32) << 23),
            40..48 => SmallImmediate::Value((code + 127 - 48) << 23),
            48 => SmallImmediate::RotateByR5,
            _ => SmallImmediate::Rotate((code - 48) as u8),
        }
    }

    /// Returns the code in the instruction. Returns `None` if no code has this meaning.
    pub fn code(self) -> Option<u8> {
        (0..64).find(|code| SmallImmediate::of_code(*code) == self)
    }

    /// Returns the value of the immediate as an input of an operation.
    pub const fn value(self) -> u32 {
        match self {
            SmallImmediate::Value(value) => value,
            SmallImmediate::RotateByR5 => 16u32.wrapping_neg(),
            SmallImmediate::Rotate(by) => (by as u32).wrapping_sub(16),
        }
    }
}

/// The interpretation of the 32 bits of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImmediateKind {
    /// One value for all elements.
    Word,
    /// Two bits for each element, signed: bit 16 + i is the upper bit of element i, and bit i the lower one.
    PairsSigned,
    /// Two bits for each element, unsigned, at the positions of [`ImmediateKind::PairsSigned`].
    PairsUnsigned,
}

/// An instruction that writes a constant to registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LoadImmediate {
    /// The interpretation of the value.
    pub kind: ImmediateKind,
    /// The destination of the constant.
    pub to: Destination,
    /// The 32 bits of the constant, which `kind` interprets.
    pub value: u32,
}

impl LoadImmediate {
    /// Returns the value that the constant has in an element.
    pub const fn element(&self, index: usize) -> u32 {
        let upper = self.value >> (16 + index) & 1;
        let lower = self.value >> index & 1;
        match self.kind {
            ImmediateKind::Word => self.value,
            ImmediateKind::PairsUnsigned => 2 * upper + lower,
            ImmediateKind::PairsSigned => lower.wrapping_sub(2 * upper),
        }
    }
}

/// Increments a semaphore, or waits until it is not zero and decrements it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Semaphore {
    /// The registers to which the 32 bits of the immediate are written.
    pub to: Destination,
    /// The number of the semaphore, from 0 to 15.
    pub number: u8,
    /// True if the semaphore is decremented.
    pub decrements: bool,
}

/// A branch, which can depend on flags and can write its return address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Branch {
    /// The flags that elements must have for the branch to be taken.
    pub condition: BranchCondition,
    /// True if the target is relative to the address of the branch plus four instructions.
    pub is_relative: bool,
    /// The register of file A, from 0 to 31, whose element 15 is added to the target (vc4asm's addendum). `None` if no register
    /// is added.
    pub register: Option<u8>,
    /// False if the field `link_add` is a register of file A and `link_mul` a register of file B. True if `link_add` is a
    /// register of file B and `link_mul` a register of file A.
    pub is_swapped: bool,
    /// A register to which the return address is written. This is the address of the fourth instruction after the branch.
    pub link_add: u8,
    /// A second register to which the return address is written.
    pub link_mul: u8,
    /// The number of bytes that is added to the target.
    pub offset: i32,
}
