//! Makes words. An instruction consists of one or two operations whose variables have been assigned to registers.

use super::ir::{Action, Op, Read, Rotation, Special, Write};
use crate::isa::registers::{self, NOP};
use crate::isa::{
    AddOp, Alu, Condition, Destination, ImmediateKind, Instruction, LoadImmediate, MulOp, Mux, Semaphore,
    Signal, SmallImmediate,
};

/// A register of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Location {
    /// A register of file A.
    A(u8),
    /// A register of file B.
    B(u8),
    /// One of the accumulators r0 to r3.
    Accumulator(u8),
    /// r4, which contains the last result of a texture unit or of a special function.
    Received,
}

/// An input of an operation, with its register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    At(Location),
    Small(SmallImmediate),
    Read(Read),
}

/// The output of an operation, with its register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    At(Location),
    Write(Write),
    Nothing,
}

/// An operation with registers, and the ALU that executes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) op: Op,
    pub(super) inputs: [Source; 2],
    pub(super) target: Target,
    pub(super) is_mul: bool,
}

/// The files in which a register can be read, or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Files {
    A,
    B,
    Both,
}

fn read_address(read: Read) -> (Files, u8) {
    match read {
        Read::Uniform => (Files::Both, registers::UNIFORM),
        Read::Element => (Files::A, registers::ELEMENT_NUMBER),
        Read::Qpu => (Files::B, registers::QPU_NUMBER),
        Read::Vpm => (Files::Both, registers::VPM),
        Read::LoadWait => (Files::A, registers::DMA_WAIT),
        Read::StoreWait => (Files::B, registers::DMA_WAIT),
        Read::Mutex => (Files::Both, registers::MUTEX),
    }
}

fn target_address(target: Target) -> (Files, u8) {
    match target {
        Target::At(Location::A(number)) => (Files::A, number),
        Target::At(Location::B(number)) => (Files::B, number),
        Target::At(Location::Accumulator(number)) => (Files::Both, registers::R0 + number),
        Target::At(Location::Received) => unreachable!("programs do not write r4"),
        Target::Write(Write::Tmu) => (Files::Both, registers::TMU0_S),
        Target::Write(Write::Vpm) => (Files::Both, registers::VPM),
        Target::Write(Write::LoadSetup) => (Files::A, registers::VPM_SETUP),
        Target::Write(Write::StoreSetup) => (Files::B, registers::VPM_SETUP),
        Target::Write(Write::LoadAddress) => (Files::A, registers::DMA_ADDRESS),
        Target::Write(Write::StoreAddress) => (Files::B, registers::DMA_ADDRESS),
        Target::Write(Write::Interrupt) => (Files::Both, registers::HOST_INTERRUPT),
        Target::Write(Write::Mutex) => (Files::Both, registers::MUTEX),
        Target::Write(Write::Special(function)) => {
            let address = match function {
                Special::Reciprocal => registers::RECIPROCAL,
                Special::ReciprocalSquareRoot => registers::RECIPROCAL_SQUARE_ROOT,
                Special::Exponent => registers::EXPONENT,
                Special::Logarithm => registers::LOGARITHM,
            };
            (Files::Both, address)
        }
        Target::Nothing => (Files::Both, NOP),
    }
}

/// The register reads of a word under construction.
struct Ports {
    alu: Alu,
    small: Option<SmallImmediate>,
    /// The mode of unpacking of the register of file A, once it is known.
    unpack: Option<u8>,
}

impl Ports {
    fn a(&mut self, address: u8, unpack: u8) -> Option<Mux> {
        let is_free = self.alu.read_a == NOP;
        if !is_free && self.alu.read_a != address || self.unpack.is_some_and(|mode| mode != unpack) {
            return None;
        }
        (self.alu.read_a, self.alu.unpack, self.unpack) = (address, unpack, Some(unpack));
        Some(Mux::A)
    }

    fn b(&mut self, address: u8) -> Option<Mux> {
        if self.small.is_some() || self.alu.read_b != NOP && self.alu.read_b != address {
            return None;
        }
        self.alu.read_b = address;
        Some(Mux::B)
    }

    fn small(&mut self, value: SmallImmediate) -> Option<Mux> {
        if self.alu.read_b != NOP || self.small.is_some_and(|small| small != value) {
            return None;
        }
        self.small = Some(value);
        Some(Mux::B)
    }

    fn source(&mut self, source: Source, unpack: u8) -> Option<Mux> {
        match source {
            Source::At(Location::A(number)) => self.a(number, unpack),
            Source::At(Location::B(number)) => self.b(number),
            Source::At(Location::Accumulator(number)) => Mux::of_code(number),
            Source::At(Location::Received) => Some(Mux::R4),
            Source::Small(value) => self.small(value),
            Source::Read(read) => match read_address(read) {
                (Files::A, address) => self.a(address, 0),
                (Files::B, address) => self.b(address),
                // A register that two operations use is read only once.
                (Files::Both, address) if self.alu.read_b == address => self.b(address),
                (Files::Both, address) => self.a(address, 0).or_else(|| self.b(address)),
            },
        }
    }

    /// Adds an operation to the word. `None` if it does not fit.
    fn add(&mut self, placed: &Placed) -> Option<()> {
        let op = &placed.op;
        if let Some(Rotation::Full(by) | Rotation::Quad(by)) = op.rotation {
            self.small(SmallImmediate::Rotate(by))?;
        }
        let mut inputs = [Mux::R0; 2];
        for (place, input) in placed.inputs.iter().take(op.used_inputs().len()).enumerate() {
            inputs[place] = self.source(*input, if place == 0 { op.unpack } else { 0 })?;
        }
        match (op.action, placed.is_mul) {
            (Action::Add(action), false) => (self.alu.add, self.alu.add_inputs) = (action, inputs),
            (Action::Either(action, _), false) => (self.alu.add, self.alu.add_inputs) = (action, inputs),
            (Action::Mul(action) | Action::Either(_, action), true) => {
                (self.alu.mul, self.alu.mul_inputs) = (action, inputs)
            }
            (Action::Move, false) => (self.alu.add, self.alu.add_inputs) = (AddOp::Or, [inputs[0]; 2]),
            (Action::Move, true) => (self.alu.mul, self.alu.mul_inputs) = (MulOp::V8min, [inputs[0]; 2]),
            _ => return None,
        }
        Some(())
    }
}

/// The destinations of one or two operations. `None` if they do not fit.
fn destination(add: Option<&Placed>, mul: Option<&Placed>) -> Option<Destination> {
    let mut to = Destination::NONE;
    let of_add = add.map(|placed| target_address(placed.target));
    let of_mul = mul.map(|placed| target_address(placed.target));
    to.is_swapped = match (of_add.map(|(files, _)| files), of_mul.map(|(files, _)| files)) {
        (Some(Files::A), Some(Files::A)) | (Some(Files::B), Some(Files::B)) => return None,
        (Some(Files::B), _) | (_, Some(Files::A)) => true,
        _ => false,
    };
    if let (Some(placed), Some((_, address))) = (add, of_add) {
        (to.add, to.add_condition) = (address, placed.op.condition);
        to.sets_flags = placed.op.sets_flags;
    }
    if let (Some(placed), Some((_, address))) = (mul, of_mul) {
        (to.mul, to.mul_condition) = (address, placed.op.condition);
        if placed.op.sets_flags {
            // If the add ALU has an operation, the flags are set from its result.
            add.is_none().then_some(())?;
            to.sets_flags = true;
        }
    }
    for placed in [add, mul].into_iter().flatten().filter(|placed| placed.op.pack != 0) {
        // An instruction writes only one register of file A, so only one result can be packed.
        matches!(placed.target, Target::At(Location::A(_))).then_some(())?;
        to.pack = placed.op.pack;
    }
    Some(to)
}

/// Combines an operation of the add ALU, an operation of the mul ALU and a load of a texture unit's result into one instruction.
/// Any of the three may be missing. `None` if they do not fit into a word.
pub(super) fn combined(add: Option<&Placed>, mul: Option<&Placed>, receives: bool) -> Option<Alu> {
    let mut ports = Ports { alu: Alu::NOP, small: None, unpack: None };
    for placed in [add, mul].into_iter().flatten() {
        ports.add(placed)?;
    }
    ports.alu.to = destination(add, mul)?;
    if let Some(small) = ports.small {
        ports.alu.signal = Signal::SmallImmediate;
        ports.alu.read_b = small.code().unwrap_or_default();
        return (!receives).then_some(ports.alu);
    }
    if receives {
        ports.alu.signal = Signal::LoadTmu0;
    }
    Some(ports.alu)
}

/// The instruction of an operation that needs a whole word, or that is alone in its word.
///
/// # Panics
/// If the registers of the operation do not fit into a word.
pub(super) fn alone(placed: &Placed) -> Instruction {
    let mut to = Destination::NONE;
    let (files, address) = target_address(placed.target);
    // The condition also selects the elements whose flags are set, even if nothing is written.
    (to.add, to.add_condition, to.pack) = (address, placed.op.condition, placed.op.pack);
    to.is_swapped = files == Files::B;
    to.sets_flags = placed.op.sets_flags;
    match placed.op.action {
        Action::Constant(value) => {
            Instruction::LoadImmediate(LoadImmediate { kind: ImmediateKind::Word, to, value })
        }
        Action::Semaphore { number, decrements } => {
            Instruction::Semaphore(Semaphore { to: Destination::NONE, number, decrements })
        }
        Action::Receive => {
            Instruction::Alu(combined(None, None, true).expect("an instruction without inputs"))
        }
        _ => {
            let (add, mul) = if placed.is_mul { (None, Some(placed)) } else { (Some(placed), None) };
            Instruction::Alu(combined(add, mul, false).expect("registers that one word can read"))
        }
    }
}

/// An operation that does nothing.
pub(super) const NOTHING: Instruction = Instruction::Alu(Alu::NOP);

/// The three instructions that end a program.
pub(super) const END: [Instruction; 3] =
    [Instruction::Alu(Alu { signal: Signal::End, ..Alu::NOP }), NOTHING, NOTHING];

/// True if the condition of an operation depends on flags.
pub(super) fn depends_on_flags(op: &Op) -> bool {
    !matches!(op.condition, Condition::Always | Condition::Never)
}
