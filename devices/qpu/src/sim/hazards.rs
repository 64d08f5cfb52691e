//! Rules for sequences of instructions. The result of a sequence that breaks a rule is undefined, and the simulator reports a
//! fault. The rules are from Broadcom's guide, section 3 "Instruction restrictions", as Mesa's validator for the same hardware
//! quotes it, and from vc4asm's addendum.

use std::fmt;

use crate::isa::{Alu, Condition, Destination, Instruction, Mux, Signal, SmallImmediate, registers};

/// A rule that an instruction breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hazard {
    /// The instruction reads a general register that the previous instruction writes.
    ReadAfterWrite {
        /// True for a register of file B, false for file A.
        is_b: bool,
        /// The number of the register.
        register: u8,
    },
    /// The instruction rotates a value, and the previous instruction writes this value or the distance of the rotation in r5.
    RotationAfterWrite {
        /// The number of the accumulator.
        accumulator: u8,
    },
    /// The instruction reads or writes r4 less than three instructions after a special function.
    R4AfterSpecialFunction,
    /// The instruction uses two kinds of peripherals. The kinds are: texture units, tile buffer, special functions, mutex,
    /// semaphores, VPM.
    TwoPeripherals,
    /// The instruction writes to a texture unit or to the VPM under a condition. The hardware writes all elements nevertheless.
    ConditionalRequest,
    /// Both ALUs write to the same register.
    TwoWrites {
        /// The address of the register.
        address: u8,
    },
    /// The instruction reads a uniform less than three instructions after a write to the address of the uniforms.
    UniformAfterAddress,
    /// The instruction reads the VPM less than four instructions after the setup of the read.
    VpmReadAfterSetup,
    /// The instruction is a branch less than three instructions after another branch.
    BranchAfterBranch,
    /// The instruction writes to a texture unit less than four instructions after a write to `tmurs`.
    RequestAfterNoswap,
    /// The instruction writes to a register file and ends the program.
    EndWrites,
    /// The instruction is one of the last three of the program, and reads uniforms, varyings or the VPM, or uses register 14 of
    /// a file.
    AccessAtEnd,
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hazard::ReadAfterWrite { is_b, register } => {
                let file = if *is_b { 'b' } else { 'a' };
                write!(f, "it reads r{file}{register}, which the instruction before it writes")
            }
            Hazard::RotationAfterWrite { accumulator } => {
                write!(f, "it rotates by or from r{accumulator}, which the instruction before it writes")
            }
            Hazard::R4AfterSpecialFunction => {
                f.write_str("it uses r4 less than three instructions after a special function")
            }
            Hazard::TwoPeripherals => f.write_str("it uses two peripherals"),
            Hazard::ConditionalRequest => {
                f.write_str("it writes to a texture unit or the VPM under a condition, which has no effect on requests")
            }
            Hazard::TwoWrites { address } => write!(f, "both operations write to register {address}"),
            Hazard::UniformAfterAddress => {
                f.write_str("it reads a uniform less than three instructions after a write to their address")
            }
            Hazard::VpmReadAfterSetup => {
                f.write_str("it reads the VPM less than four instructions after the setup of the read")
            }
            Hazard::BranchAfterBranch => f.write_str("it is a branch less than three instructions after another"),
            Hazard::RequestAfterNoswap => {
                f.write_str("it writes to a texture unit less than four instructions after a write to tmurs")
            }
            Hazard::EndWrites => f.write_str("it ends the program and writes to a register file"),
            Hazard::AccessAtEnd => f.write_str(
                "it is one of the last three instructions, and uses uniforms, varyings, the VPM or register 14",
            ),
        }
    }
}

/// A register that an instruction writes. It belongs to file B if `is_b` is true, and to file A otherwise.
#[derive(Clone, Copy)]
struct Write {
    is_b: bool,
    address: u8,
    condition: Condition,
}

fn writes(instruction: &Instruction) -> impl Iterator<Item = Write> {
    let of = |to: &Destination| {
        let add = Write { is_b: to.is_swapped, address: to.add, condition: to.add_condition };
        let mul = Write { is_b: !to.is_swapped, address: to.mul, condition: to.mul_condition };
        [add, mul]
    };
    let both = match instruction {
        Instruction::Alu(alu) => of(&alu.to),
        Instruction::LoadImmediate(load) => of(&load.to),
        Instruction::Semaphore(semaphore) => of(&semaphore.to),
        Instruction::Branch(branch) => {
            let link = |is_b, address| Write { is_b, address, condition: Condition::Always };
            [link(branch.is_swapped, branch.link_add), link(!branch.is_swapped, branch.link_mul)]
        }
    };
    both.into_iter().filter(|write| write.address != registers::NOP && write.condition != Condition::Never)
}

/// The registers of files A and B that an instruction reads.
fn reads(instruction: &Instruction) -> [Option<u8>; 2] {
    match instruction {
        // The registers that the word names are read even if no operation uses them.
        Instruction::Alu(alu) => [Some(alu.read_a), alu.small_immediate().is_none().then_some(alu.read_b)],
        Instruction::Branch(branch) => [branch.register, None],
        Instruction::LoadImmediate(_) | Instruction::Semaphore(_) => [None, None],
    }
}

/// The kinds of peripherals. An instruction may use only one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Peripheral {
    TextureUnit,
    TileBuffer,
    SpecialFunction,
    Mutex,
    Semaphore,
    Vpm,
}

fn peripheral_of_write(address: u8) -> Option<Peripheral> {
    match address {
        43..48 => Some(Peripheral::TileBuffer),
        registers::VPM | registers::VPM_SETUP | registers::DMA_ADDRESS => Some(Peripheral::Vpm),
        registers::MUTEX => Some(Peripheral::Mutex),
        registers::RECIPROCAL..=registers::LOGARITHM => Some(Peripheral::SpecialFunction),
        registers::TMU0_S..64 => Some(Peripheral::TextureUnit),
        _ => None,
    }
}

fn peripheral_of_read(address: u8) -> Option<Peripheral> {
    match address {
        registers::VPM | registers::DMA_BUSY | registers::DMA_WAIT => Some(Peripheral::Vpm),
        registers::MUTEX => Some(Peripheral::Mutex),
        _ => None,
    }
}

fn peripheral_of_signal(signal: Signal) -> Option<Peripheral> {
    match signal {
        Signal::LoadTmu0 | Signal::LoadTmu1 => Some(Peripheral::TextureUnit),
        Signal::LoadCoverage | Signal::LoadColor | Signal::LoadColorEnd | Signal::LoadAlphaMask => {
            Some(Peripheral::TileBuffer)
        }
        _ => None,
    }
}

/// True if no element can meet both conditions.
fn are_opposite(one: Condition, other: Condition) -> bool {
    // The codes of two opposite conditions are at least 2, and differ only in the lowest bit.
    one.code() ^ other.code() == 1 && one.code() >= 2
}

/// Events. For each event, there is a rule about the instructions that follow it.
#[derive(Debug, Clone, Copy)]
enum Event {
    SpecialFunction,
    UniformsAddress,
    VpmReadSetup,
    Branch,
    Noswap,
    /// The signal that ends the program.
    End,
}

impl Event {
    /// The number of instructions after the event to which the rule applies.
    const fn reach(self) -> u32 {
        match self {
            Event::VpmReadSetup | Event::Noswap => 3,
            _ => 2,
        }
    }

    /// The bit that is set if the current instruction is the event. Each event has four bits: one for the current instruction,
    /// and one for each of the three instructions before it.
    const fn now(self) -> u32 {
        1 << (4 * self as u32)
    }

    /// The bits that are set if the event is so recent that its rule still applies.
    const fn recent(self) -> u32 {
        ((1 << self.reach()) - 1) << (4 * self as u32)
    }

    const fn hazard(self) -> Hazard {
        match self {
            Event::SpecialFunction => Hazard::R4AfterSpecialFunction,
            Event::UniformsAddress => Hazard::UniformAfterAddress,
            Event::VpmReadSetup => Hazard::VpmReadAfterSetup,
            Event::Branch => Hazard::BranchAfterBranch,
            Event::Noswap => Hazard::RequestAfterNoswap,
            Event::End => Hazard::AccessAtEnd,
        }
    }

    const ALL: [Event; 6] = [
        Event::SpecialFunction,
        Event::UniformsAddress,
        Event::VpmReadSetup,
        Event::Branch,
        Event::Noswap,
        Event::End,
    ];
}

/// Shifts the bits of all events by one instruction. The bits for events that are older than three instructions are dropped.
const fn aged(events: u32) -> u32 {
    events << 1 & 0xeeee_eeee
}

/// The properties of an instruction on which the rules depend. They are computed once, when a program is loaded.
#[derive(Debug, Clone)]
pub(super) struct Properties {
    /// A rule that the instruction breaks independently of other instructions.
    broken: Option<Hazard>,
    /// The general registers of both files that the instruction reads, one bit for each.
    reads: [u32; 2],
    /// The general registers that the instruction writes.
    writes: [u32; 2],
    /// The accumulators that the instruction rotates, or that contain the distance of a rotation.
    rotates: u8,
    /// The accumulators, r0 to r3 and r5, that the instruction writes.
    accumulators: u8,
    /// The events after which the instruction breaks a rule.
    refused: u32,
    /// The events that this instruction causes.
    events: u32,
}

impl Properties {
    pub(super) fn of(instruction: &Instruction) -> Properties {
        let reads = reads(instruction);
        let general = |read: Option<u8>| {
            read.filter(|register| *register < registers::FILE).map_or(0, |register| 1 << register)
        };
        let broken = check_peripherals(instruction, reads)
            .and_then(|()| check_writes(instruction))
            .and_then(|()| check_end(instruction, reads));
        let mut properties = Properties {
            broken: broken.err(),
            reads: reads.map(general),
            writes: [0; 2],
            rotates: if let Instruction::Alu(alu) = instruction { rotated(alu) } else { 0 },
            accumulators: 0,
            refused: refused(instruction, reads),
            events: 0,
        };
        for write in writes(instruction) {
            properties.note(write);
        }
        match instruction {
            Instruction::Branch(_) => properties.events |= Event::Branch.now(),
            Instruction::Alu(alu) if alu.signal == Signal::End => properties.events |= Event::End.now(),
            _ => {}
        }
        properties
    }

    fn note(&mut self, write: Write) {
        match write.address {
            register @ 0..registers::FILE => self.writes[usize::from(write.is_b)] |= 1 << register,
            registers::R0..36 => self.accumulators |= 1 << (write.address - registers::R0),
            registers::R5 => self.accumulators |= 1 << Mux::R5.code(),
            registers::UNIFORMS_ADDRESS => self.events |= Event::UniformsAddress.now(),
            registers::VPM_SETUP if !write.is_b => self.events |= Event::VpmReadSetup.now(),
            registers::TMU_NOSWAP => self.events |= Event::Noswap.now(),
            address if peripheral_of_write(address) == Some(Peripheral::SpecialFunction) => {
                self.events |= Event::SpecialFunction.now()
            }
            _ => {}
        }
    }
}

/// Returns the accumulators on which a rotation depends, one bit for each.
fn rotated(alu: &Alu) -> u8 {
    let by = match alu.small_immediate() {
        Some(SmallImmediate::RotateByR5) => 1 << Mux::R5.code(),
        Some(SmallImmediate::Rotate(_)) => 0,
        _ => return 0,
    };
    let inputs = alu.mul_inputs.iter().take(alu.mul.inputs()).map(|input| input.code());
    inputs.filter(|input| *input < 4).fold(by, |all, input| all | 1 << input)
}

/// Returns the bits of the events after which an instruction breaks a rule.
fn refused(instruction: &Instruction, reads: [Option<u8>; 2]) -> u32 {
    let reads_register = |address: u8| reads.contains(&Some(address));
    let signal = if let Instruction::Alu(alu) = instruction { alu.signal } else { Signal::None };
    let writes_to =
        |peripheral| writes(instruction).any(|write| peripheral_of_write(write.address) == Some(peripheral));
    let uses_r4 = matches!(instruction, Instruction::Alu(alu) if alu.reads(Mux::R4))
        || peripheral_of_signal(signal).is_some()
        || writes_to(Peripheral::SpecialFunction);
    let rules = [
        (Event::SpecialFunction, uses_r4),
        (Event::UniformsAddress, reads_register(registers::UNIFORM)),
        (Event::VpmReadSetup, reads_register(registers::VPM)),
        (Event::Branch, matches!(instruction, Instruction::Branch(_))),
        (Event::Noswap, writes_to(Peripheral::TextureUnit)),
        (Event::End, uses_refused_at_end(instruction, reads)),
    ];
    rules.into_iter().filter(|(_, applies)| *applies).fold(0, |all, (event, _)| all | event.recent())
}

/// The properties of the executed instructions on which the rules for the next instruction depend.
#[derive(Debug, Clone, Default)]
pub struct Hazards {
    /// The general registers of both files that the last instruction wrote, one bit for each.
    written: [u32; 2],
    /// The accumulators, r0 to r3 and r5, that the last instruction wrote.
    accumulators: u8,
    /// The events of the last instructions.
    events: u32,
}

impl Hazards {
    /// The state before the first instruction of a program.
    pub fn new() -> Hazards {
        Hazards::default()
    }

    /// Checks the next executed instruction, and records it.
    ///
    /// # Errors
    /// The first rule that the instruction breaks.
    pub fn check(&mut self, instruction: &Instruction) -> Result<(), Hazard> {
        self.check_properties(&Properties::of(instruction))
    }

    /// As [`Hazards::check`], for an instruction whose properties are already known.
    #[inline]
    pub(super) fn check_properties(&mut self, next: &Properties) -> Result<(), Hazard> {
        let too_early = [self.written[0] & next.reads[0], self.written[1] & next.reads[1]];
        let is_broken = too_early != [0; 2]
            || self.accumulators & next.rotates != 0
            || self.events & next.refused != 0
            || next.broken.is_some();
        if is_broken {
            return Err(self.broken_rule(next, too_early));
        }
        self.written = next.writes;
        self.accumulators = next.accumulators;
        self.events = aged(self.events) | next.events;
        Ok(())
    }

    #[cold]
    fn broken_rule(&self, next: &Properties, too_early: [u32; 2]) -> Hazard {
        for (is_b, registers) in [false, true].into_iter().zip(too_early) {
            if registers != 0 {
                return Hazard::ReadAfterWrite { is_b, register: registers.trailing_zeros() as u8 };
            }
        }
        let accumulators = self.accumulators & next.rotates;
        if accumulators != 0 {
            return Hazard::RotationAfterWrite { accumulator: accumulators.trailing_zeros() as u8 };
        }
        let is_recent = |event: &Event| self.events & next.refused & event.recent() != 0;
        let event = Event::ALL.into_iter().find(is_recent).map(Event::hazard);
        event.or(next.broken).expect("the caller has found a broken rule")
    }
}

fn check_peripherals(instruction: &Instruction, reads: [Option<u8>; 2]) -> Result<(), Hazard> {
    let mut used = None;
    let mut refuse_second = |peripheral: Option<Peripheral>| {
        let Some(peripheral) = peripheral else { return Ok(()) };
        match used.replace(peripheral) {
            // An instruction may both read and write the VPM. It may use any other peripheral only once.
            Some(Peripheral::Vpm) if peripheral == Peripheral::Vpm => Ok(()),
            Some(_) => Err(Hazard::TwoPeripherals),
            None => Ok(()),
        }
    };
    for read in reads.into_iter().flatten() {
        refuse_second(peripheral_of_read(read))?;
    }
    for write in writes(instruction) {
        refuse_second(peripheral_of_write(write.address))?;
        let is_request = matches!(write.address, registers::VPM | registers::TMU0_S..64);
        if is_request && write.condition != Condition::Always {
            return Err(Hazard::ConditionalRequest);
        }
    }
    match instruction {
        Instruction::Alu(alu) => refuse_second(peripheral_of_signal(alu.signal)),
        Instruction::Semaphore(_) => refuse_second(Some(Peripheral::Semaphore)),
        _ => Ok(()),
    }
}

/// True if the instruction reads or writes a register that must not be used in the last three instructions of a program.
fn uses_refused_at_end(instruction: &Instruction, reads: [Option<u8>; 2]) -> bool {
    const REFUSED: [u8; 4] = [14, registers::UNIFORM, registers::VARYING, registers::VPM];
    reads.iter().flatten().any(|address| REFUSED.contains(address))
        || writes(instruction).any(|write| [14, registers::VPM].contains(&write.address))
}

/// Checks the instruction with the signal that ends the program. Two more instructions follow this instruction. The instruction
/// itself must not write to a register file.
fn check_end(instruction: &Instruction, reads: [Option<u8>; 2]) -> Result<(), Hazard> {
    if !matches!(instruction, Instruction::Alu(alu) if alu.signal == Signal::End) {
        return Ok(());
    }
    if writes(instruction).any(|write| write.address < registers::FILE) {
        return Err(Hazard::EndWrites);
    }
    if uses_refused_at_end(instruction, reads) { Err(Hazard::AccessAtEnd) } else { Ok(()) }
}

/// Checks the registers that both ALUs write. They may write the same register only if it is an accumulator, and if no element
/// can meet the conditions of both ALUs.
fn check_writes(instruction: &Instruction) -> Result<(), Hazard> {
    let mut both = writes(instruction);
    let (Some(one), Some(other)) = (both.next(), both.next()) else { return Ok(()) };
    // General registers with the same address in the two files are different registers.
    let is_same = one.address == other.address && one.address >= registers::FILE;
    let is_accumulator = (registers::R0..36).contains(&one.address);
    // The registers of the DMA and of the VPM have a different meaning in each file.
    let differ_by_file = [registers::VPM_SETUP, registers::DMA_ADDRESS].contains(&one.address);
    if is_same && !differ_by_file && !(is_accumulator && are_opposite(one.condition, other.condition)) {
        return Err(Hazard::TwoWrites { address: one.address });
    }
    Ok(())
}
