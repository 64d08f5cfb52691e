//! Encodes instructions as words of 64 bits, and decodes them (Broadcom's guide, figures 4 to 7). In memory, a word is
//! little-endian.

use super::{
    AddOp, Alu, Branch, BranchCondition, Condition, Destination, ImmediateKind, Instruction, LoadImmediate,
    MulOp, Mux, Semaphore, Signal,
};

/// The reason why a word is not an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeError {
    /// The field whose value has no meaning, with its name in Broadcom's guide.
    pub field: &'static str,
    /// The value of the field.
    pub value: u8,
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no instruction has the value {} in the field {}", self.value, self.field)
    }
}

impl std::error::Error for DecodeError {}

/// The values of the signal field that mark constants and branches.
const LOAD_IMMEDIATE: u8 = 14;
const BRANCH: u8 = 15;

/// A field: its lowest bit and its number of bits.
#[derive(Clone, Copy)]
struct Field(u32, u32);

const SIGNAL: Field = Field(60, 4);
const UNPACK: Field = Field(57, 3);
const PM: Field = Field(56, 1);
const PACK: Field = Field(52, 4);
const ADD_CONDITION: Field = Field(49, 3);
const MUL_CONDITION: Field = Field(46, 3);
const SET_FLAGS: Field = Field(45, 1);
const WRITE_SWAP: Field = Field(44, 1);
const WRITE_ADD: Field = Field(38, 6);
const WRITE_MUL: Field = Field(32, 6);
const MUL_OP: Field = Field(29, 3);
const ADD_OP: Field = Field(24, 5);
const READ_A: Field = Field(18, 6);
const READ_B: Field = Field(12, 6);
const INPUTS: [Field; 4] = [Field(9, 3), Field(6, 3), Field(3, 3), Field(0, 3)];
const IMMEDIATE: Field = Field(0, 32);
const BRANCH_CONDITION: Field = Field(52, 4);
const BRANCH_RELATIVE: Field = Field(51, 1);
const BRANCH_BY_REGISTER: Field = Field(50, 1);
const BRANCH_REGISTER: Field = Field(45, 5);
const SEMAPHORE: Field = Field(0, 4);
const SEMAPHORE_DECREMENT: Field = Field(4, 1);

impl Field {
    fn of(self, word: u64) -> u8 {
        (word >> self.0 & ((1 << self.1) - 1)) as u8
    }

    fn is_set(self, word: u64) -> bool {
        self.of(word) != 0
    }

    fn put(self, value: u8) -> u64 {
        debug_assert!(u32::from(value) < 1 << self.1, "{value} does not fit into {} bits", self.1);
        u64::from(value) << self.0
    }

    /// Decodes this field of `word` with `of_code`. `field` is its name for the error.
    fn meaning<T>(
        self,
        word: u64,
        field: &'static str,
        of_code: impl Fn(u8) -> Option<T>,
    ) -> Result<T, DecodeError> {
        let value = self.of(word);
        of_code(value).ok_or(DecodeError { field, value })
    }
}

impl Destination {
    fn encode(&self) -> u64 {
        PACK.put(self.pack)
            | PM.put(self.pm.into())
            | ADD_CONDITION.put(self.add_condition.code())
            | MUL_CONDITION.put(self.mul_condition.code())
            | SET_FLAGS.put(self.sets_flags.into())
            | WRITE_SWAP.put(self.is_swapped.into())
            | WRITE_ADD.put(self.add)
            | WRITE_MUL.put(self.mul)
    }

    fn decode(word: u64) -> Result<Destination, DecodeError> {
        Ok(Destination {
            pack: PACK.of(word),
            pm: PM.is_set(word),
            add_condition: ADD_CONDITION.meaning(word, "cond_add", Condition::of_code)?,
            mul_condition: MUL_CONDITION.meaning(word, "cond_mul", Condition::of_code)?,
            sets_flags: SET_FLAGS.is_set(word),
            is_swapped: WRITE_SWAP.is_set(word),
            add: WRITE_ADD.of(word),
            mul: WRITE_MUL.of(word),
        })
    }
}

impl ImmediateKind {
    /// The value of the field UNPACK.
    const fn code(self) -> u8 {
        match self {
            ImmediateKind::Word => 0,
            ImmediateKind::PairsSigned => 1,
            ImmediateKind::PairsUnsigned => 3,
        }
    }
}

/// The value of the field UNPACK in the instruction of a semaphore.
const OF_SEMAPHORE: u8 = 4;

impl Instruction {
    /// Encodes the instruction as a word of 64 bits.
    ///
    /// # Panics
    /// In builds with debug assertions, if a field has a value that does not fit.
    pub fn encode(&self) -> u64 {
        match self {
            Instruction::Alu(alu) => {
                let inputs = alu.add_inputs.into_iter().chain(alu.mul_inputs).zip(INPUTS);
                alu.to.encode()
                    | SIGNAL.put(alu.signal.code())
                    | UNPACK.put(alu.unpack)
                    | MUL_OP.put(alu.mul.code())
                    | ADD_OP.put(alu.add.code())
                    | READ_A.put(alu.read_a)
                    | READ_B.put(alu.read_b)
                    | inputs.map(|(input, field)| field.put(input.code())).sum::<u64>()
            }
            Instruction::LoadImmediate(load) => {
                load.to.encode()
                    | SIGNAL.put(LOAD_IMMEDIATE)
                    | UNPACK.put(load.kind.code())
                    | u64::from(load.value)
            }
            Instruction::Semaphore(semaphore) => {
                semaphore.to.encode()
                    | SIGNAL.put(LOAD_IMMEDIATE)
                    | UNPACK.put(OF_SEMAPHORE)
                    | SEMAPHORE.put(semaphore.number)
                    | SEMAPHORE_DECREMENT.put(semaphore.decrements.into())
            }
            Instruction::Branch(branch) => {
                SIGNAL.put(BRANCH)
                    | BRANCH_CONDITION.put(branch.condition.code())
                    | BRANCH_RELATIVE.put(branch.is_relative.into())
                    | BRANCH_BY_REGISTER.put(branch.register.is_some().into())
                    | BRANCH_REGISTER.put(branch.register.unwrap_or(0))
                    | WRITE_SWAP.put(branch.is_swapped.into())
                    | WRITE_ADD.put(branch.link_add)
                    | WRITE_MUL.put(branch.link_mul)
                    | u64::from(branch.offset as u32)
            }
        }
    }

    /// Decodes a word of 64 bits.
    ///
    /// # Errors
    /// [`DecodeError`] if a field has a value without a meaning, or if bits outside the fields of the instruction are
    /// set.
    pub fn decode(word: u64) -> Result<Instruction, DecodeError> {
        let decoded = Self::decode_fields(word)?;
        // Encoding the result again detects set bits outside the fields of semaphores and branches.
        match decoded.encode() == word {
            true => Ok(decoded),
            false => Err(DecodeError { field: "reserved", value: 1 }),
        }
    }

    fn decode_fields(word: u64) -> Result<Instruction, DecodeError> {
        let immediate = (word & ((1 << IMMEDIATE.1) - 1)) as u32;
        if SIGNAL.of(word) == BRANCH {
            let condition = BRANCH_CONDITION.meaning(word, "cond_br", BranchCondition::of_code)?;
            return Ok(Instruction::Branch(Branch {
                condition,
                is_relative: BRANCH_RELATIVE.is_set(word),
                register: BRANCH_BY_REGISTER.is_set(word).then(|| BRANCH_REGISTER.of(word)),
                is_swapped: WRITE_SWAP.is_set(word),
                link_add: WRITE_ADD.of(word),
                link_mul: WRITE_MUL.of(word),
                offset: immediate as i32,
            }));
        }
        let to = Destination::decode(word)?;
        if SIGNAL.of(word) == LOAD_IMMEDIATE {
            if UNPACK.of(word) == OF_SEMAPHORE {
                let (number, decrements) = (SEMAPHORE.of(word), SEMAPHORE_DECREMENT.is_set(word));
                return Ok(Instruction::Semaphore(Semaphore { to, number, decrements }));
            }
            let kinds = [ImmediateKind::Word, ImmediateKind::PairsSigned, ImmediateKind::PairsUnsigned];
            let kind =
                UNPACK.meaning(word, "unpack", |code| kinds.into_iter().find(|kind| kind.code() == code))?;
            return Ok(Instruction::LoadImmediate(LoadImmediate { kind, to, value: immediate }));
        }
        let [add_a, add_b, mul_a, mul_b] = INPUTS.map(|field| field.meaning(word, "mux", Mux::of_code));
        Ok(Instruction::Alu(Alu {
            signal: SIGNAL.meaning(word, "sig", Signal::of_code)?,
            unpack: UNPACK.of(word),
            to,
            mul: MUL_OP.meaning(word, "op_mul", MulOp::of_code)?,
            add: ADD_OP.meaning(word, "op_add", AddOp::of_code)?,
            read_a: READ_A.of(word),
            read_b: READ_B.of(word),
            add_inputs: [add_a?, add_b?],
            mul_inputs: [mul_a?, mul_b?],
        }))
    }
}
