//! The fields of an instruction whose values have names.

macro_rules! define {
    ($(#[$doc:meta])* $type:ident { $($(#[$about:meta])* $name:ident = $code:literal $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $type { $($(#[$about])* $name = $code,)* }

        impl $type {
            /// All values, in the order of their codes.
            pub const ALL: &'static [$type] = &[$($type::$name),*];

            /// The value of the field.
            pub const fn code(self) -> u8 {
                self as u8
            }

            /// The meaning of a value of the field. `None` if the value has no meaning.
            pub const fn of_code(code: u8) -> Option<$type> {
                match code {
                    $($code => Some($type::$name),)*
                    _ => None,
                }
            }

            /// The name in assembly text, as in vc4asm.
            pub const fn text(self) -> &'static str {
                match self { $($type::$name => $text),* }
            }
        }
    };
}

define! {
    /// An input of an ALU.
    Mux {
        /// Accumulator 0.
        R0 = 0 "r0",
        /// Accumulator 1.
        R1 = 1 "r1",
        /// Accumulator 2.
        R2 = 2 "r2",
        /// Accumulator 3.
        R3 = 3 "r3",
        /// Results of the texture units and of the special functions.
        R4 = 4 "r4",
        /// A value that is equal in all elements or equal in the four elements of each quad.
        R5 = 5 "r5",
        /// The register of file A that the instruction reads.
        A = 6 "a",
        /// The register of file B that the instruction reads, or its small immediate.
        B = 7 "b",
    }
}

define! {
    /// Operations of the add ALU (Broadcom's guide, table 8).
    AddOp {
        /// No operation.
        Nop = 0 "nop",
        /// Sum of floats.
        Fadd = 1 "fadd",
        /// Difference of floats.
        Fsub = 2 "fsub",
        /// Minimum of floats.
        Fmin = 3 "fmin",
        /// Maximum of floats.
        Fmax = 4 "fmax",
        /// Minimum of absolute values.
        Fminabs = 5 "fminabs",
        /// Maximum of absolute values.
        Fmaxabs = 6 "fmaxabs",
        /// Float to signed integer, towards zero.
        Ftoi = 7 "ftoi",
        /// Signed integer to float.
        Itof = 8 "itof",
        /// Sum of integers.
        Add = 12 "add",
        /// Difference of integers.
        Sub = 13 "sub",
        /// Logical shift right.
        Shr = 14 "shr",
        /// Arithmetic shift right.
        Asr = 15 "asr",
        /// Rotation right.
        Ror = 16 "ror",
        /// Shift left.
        Shl = 17 "shl",
        /// Minimum of signed integers.
        Min = 18 "min",
        /// Maximum of signed integers.
        Max = 19 "max",
        /// Bitwise and.
        And = 20 "and",
        /// Bitwise or.
        Or = 21 "or",
        /// Bitwise exclusive or.
        Xor = 22 "xor",
        /// Complement of the first input.
        Not = 23 "not",
        /// Number of leading zeros of the first input.
        Clz = 24 "clz",
        /// Sums of unsigned bytes, at most 255.
        V8adds = 30 "av8adds",
        /// Differences of unsigned bytes, at least 0.
        V8subs = 31 "av8subs",
    }
}

define! {
    /// Operations of the mul ALU (Broadcom's guide, table 9).
    MulOp {
        /// No operation.
        Nop = 0 "nop",
        /// Product of floats.
        Fmul = 1 "fmul",
        /// Product of the lower 24 bits. The result is the lower 32 bits of the product.
        Mul24 = 2 "mul24",
        /// Products of bytes as fractions: (x * y + 127) / 255.
        V8muld = 3 "v8muld",
        /// Minima of unsigned bytes.
        V8min = 4 "v8min",
        /// Maxima of unsigned bytes.
        V8max = 5 "v8max",
        /// Sums of unsigned bytes, at most 255.
        V8adds = 6 "v8adds",
        /// Differences of unsigned bytes, at least 0.
        V8subs = 7 "v8subs",
    }
}

define! {
    /// The elements for which a result is written, selected by their flags. The flags belong to the last result that
    /// has set flags.
    Condition {
        /// The result is written for no element.
        Never = 0 ".never",
        /// The result is written for all elements.
        Always = 1 "",
        /// Elements with the flag Z: the result was zero.
        Zero = 2 ".ifz",
        /// Elements without the flag Z: the result was not zero.
        NotZero = 3 ".ifnz",
        /// Elements with the flag N: the result was negative.
        Negative = 4 ".ifn",
        /// Elements without the flag N: the result was not negative.
        NotNegative = 5 ".ifnn",
        /// Elements with the flag C, the carry.
        Carry = 6 ".ifc",
        /// Elements without the flag C, the carry.
        NoCarry = 7 ".ifcc",
    }
}

define! {
    /// The flags that elements must have for a branch to be taken.
    BranchCondition {
        /// Z is set in all elements.
        AllZero = 0 ".allz",
        /// Z is set in no element.
        AllNotZero = 1 ".allnz",
        /// Z is set in some elements.
        AnyZero = 2 ".anyz",
        /// Z is clear in some elements.
        AnyNotZero = 3 ".anynz",
        /// N is set in all elements.
        AllNegative = 4 ".alln",
        /// N is set in no element.
        AllNotNegative = 5 ".allnn",
        /// N is set in some elements.
        AnyNegative = 6 ".anyn",
        /// N is clear in some elements.
        AnyNotNegative = 7 ".anynn",
        /// C is set in all elements.
        AllCarry = 8 ".allc",
        /// C is set in no element.
        AllNoCarry = 9 ".allcc",
        /// C is set in some elements.
        AnyCarry = 10 ".anyc",
        /// C is clear in some elements.
        AnyNoCarry = 11 ".anycc",
        /// The branch is always taken.
        Always = 15 "",
    }
}

define! {
    /// An effect of an instruction in addition to its operations (Broadcom's guide, table 3). The codes 14 and 15
    /// mark constants and branches.
    Signal {
        /// Stops the program for a debugger.
        Breakpoint = 0 "bkpt",
        /// No additional effect.
        None = 1 "",
        /// Switches to the other thread.
        ThreadSwitch = 2 "thrsw",
        /// Ends the program after the next two instructions.
        End = 3 "thrend",
        /// Waits for the scoreboard.
        WaitScoreboard = 4 "sbwait",
        /// Unlocks the scoreboard.
        UnlockScoreboard = 5 "sbdone",
        /// Switches to the other thread for the last time.
        LastThreadSwitch = 6 "lthrsw",
        /// Loads coverage into r4.
        LoadCoverage = 7 "loadcv",
        /// Loads a colour into r4.
        LoadColor = 8 "loadc",
        /// Loads a colour into r4 and ends the program.
        LoadColorEnd = 9 "ldcend",
        /// Moves the next result of texture unit 0 to r4.
        LoadTmu0 = 10 "ldtmu0",
        /// Moves the next result of texture unit 1 to r4.
        LoadTmu1 = 11 "ldtmu1",
        /// Loads the mask for alpha into r4.
        LoadAlphaMask = 12 "loadam",
        /// The field of file B has a small immediate.
        SmallImmediate = 13 "",
    }
}

impl AddOp {
    /// The number of inputs that the operation reads, from 0 to 2.
    pub const fn inputs(self) -> usize {
        match self {
            AddOp::Nop => 0,
            AddOp::Ftoi | AddOp::Itof | AddOp::Not | AddOp::Clz => 1,
            _ => 2,
        }
    }
}

impl MulOp {
    /// The number of inputs that the operation reads, from 0 to 2.
    pub const fn inputs(self) -> usize {
        match self {
            MulOp::Nop => 0,
            _ => 2,
        }
    }
}
