//! Sequences of instructions with undefined results, which the simulator refuses (the guide, section 3 "Instruction
//! restrictions", as Mesa's validator for the same hardware quotes it; and the addendum).

use std::fmt;

use crate::isa::{Alu, Condition, Destination, Instruction, Mux, Signal, SmallImmediate, registers};

/// A rule that an instruction breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hazard {
    /// It reads a general register that the instruction before it writes.
    ReadAfterWrite {
        /// True for file B.
        is_b: bool,
        /// The number of the register.
        register: u8,
    },
    /// It rotates an accumulator that the instruction before it writes, or by r5 after such a write.
    RotationAfterWrite {
        /// The number of the accumulator.
        accumulator: u8,
    },
    /// It reads or writes r4 less than three instructions after a special function.
    R4AfterSpecialFunction,
    /// It uses two of: texture units, tile buffer, special functions, mutex, semaphores, VPM.
    TwoPeripherals,
    /// It writes to a texture unit or to the VPM only for some elements, which has the effect of a write for all.
    ConditionalRequest,
    /// Both ALUs write to the same register.
    TwoWrites {
        /// Its address.
        address: u8,
    },
    /// It reads a uniform less than three instructions after a write to the address of the uniforms.
    UniformAfterAddress,
    /// It reads the VPM less than four instructions after the setup of the read.
    VpmReadAfterSetup,
    /// It is a branch less than three instructions after another.
    BranchAfterBranch,
    /// It writes to a texture unit less than four instructions after a write to `tmurs`.
    RequestAfterNoswap,
    /// It writes to a register file and ends the program.
    EndWrites,
    /// It is one of the last three instructions, and reads uniforms, varyings or the VPM, or uses register 14 of a file.
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

/// The number of instructions since an event; `NEVER` if there was none recently.
type Age = u8;
const NEVER: Age = u8::MAX;

/// The instructions that have been executed, as far as the rules depend on them.
#[derive(Debug, Clone)]
pub struct Hazards {
    /// The general registers of both files that the last instruction wrote, one bit for each.
    written: [u32; 2],
    /// The accumulators r0 to r3, and r5, that it wrote.
    accumulators: u8,
    special_function: Age,
    uniforms_address: Age,
    vpm_read_setup: Age,
    branch: Age,
    noswap: Age,
    /// The number of instructions since the signal that ends the program.
    end: Age,
}

impl Default for Hazards {
    fn default() -> Hazards {
        Hazards::new()
    }
}

/// A register that an instruction writes: of file B if `is_b`, and of file A otherwise.
#[derive(Clone, Copy)]
struct Write {
    is_b: bool,
    address: u8,
    condition: Condition,
}

/// The writes of an instruction.
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
        // The registers of the word are read, whether an operation uses them or not.
        Instruction::Alu(alu) => [Some(alu.read_a), alu.small_immediate().is_none().then_some(alu.read_b)],
        Instruction::Branch(branch) => [branch.register, None],
        Instruction::LoadImmediate(_) | Instruction::Semaphore(_) => [None, None],
    }
}

/// The kinds of peripherals of which an instruction may use one.
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

/// True if no element has both conditions.
fn are_opposite(one: Condition, other: Condition) -> bool {
    // The codes of opposite conditions differ in the lowest bit, from 2 on.
    one.code() ^ other.code() == 1 && one.code() >= 2
}

impl Hazards {
    /// Before the first instruction of a program.
    pub fn new() -> Hazards {
        Hazards {
            written: [0; 2],
            accumulators: 0,
            special_function: NEVER,
            uniforms_address: NEVER,
            vpm_read_setup: NEVER,
            branch: NEVER,
            noswap: NEVER,
            end: NEVER,
        }
    }

    /// Checks the next instruction that is executed, and remembers it.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(&mut self, instruction: &Instruction) -> Result<(), Hazard> {
        let reads = reads(instruction);
        for (is_b, read) in [false, true].into_iter().zip(reads) {
            let Some(register) = read.filter(|register| *register < registers::FILE) else { continue };
            if self.written[usize::from(is_b)] >> register & 1 == 1 {
                return Err(Hazard::ReadAfterWrite { is_b, register });
            }
        }
        if let Instruction::Alu(alu) = instruction {
            self.check_rotation(alu)?;
        }
        check_peripherals(instruction, reads)?;
        self.check_ages(instruction, reads)?;
        check_writes(instruction)?;
        self.check_end(instruction, reads)?;
        self.remember(instruction);
        Ok(())
    }

    fn check_rotation(&self, alu: &Alu) -> Result<(), Hazard> {
        let is_written = |accumulator: u8| self.accumulators >> accumulator & 1 == 1;
        let refuse = |accumulator: u8| match is_written(accumulator) {
            true => Err(Hazard::RotationAfterWrite { accumulator }),
            false => Ok(()),
        };
        match alu.small_immediate() {
            Some(SmallImmediate::RotateByR5) => refuse(Mux::R5.code())?,
            Some(SmallImmediate::Rotate(_)) => {}
            _ => return Ok(()),
        }
        let inputs = alu.mul_inputs.iter().take(alu.mul.inputs()).map(|input| input.code());
        inputs.filter(|input| *input < 4).try_for_each(refuse)
    }

    fn check_ages(&self, instruction: &Instruction, reads: [Option<u8>; 2]) -> Result<(), Hazard> {
        let reads_register = |address: u8| reads.contains(&Some(address));
        let signal = if let Instruction::Alu(alu) = instruction { alu.signal } else { Signal::None };
        let loads_r4 = peripheral_of_signal(signal).is_some();
        let starts_function =
            |write: Write| peripheral_of_write(write.address) == Some(Peripheral::SpecialFunction);
        let uses_r4 = matches!(instruction, Instruction::Alu(alu) if alu.reads(Mux::R4))
            || loads_r4
            || writes(instruction).any(starts_function);
        if uses_r4 && self.special_function < 3 {
            return Err(Hazard::R4AfterSpecialFunction);
        }
        if reads_register(registers::UNIFORM) && self.uniforms_address < 3 {
            return Err(Hazard::UniformAfterAddress);
        }
        if reads_register(registers::VPM) && self.vpm_read_setup < 4 {
            return Err(Hazard::VpmReadAfterSetup);
        }
        if matches!(instruction, Instruction::Branch(_)) && self.branch < 3 {
            return Err(Hazard::BranchAfterBranch);
        }
        let is_request = |write: Write| peripheral_of_write(write.address) == Some(Peripheral::TextureUnit);
        if self.noswap < 4 && writes(instruction).any(is_request) {
            return Err(Hazard::RequestAfterNoswap);
        }
        Ok(())
    }

    /// The signal that ends a program is followed by two more instructions. Of these three, the first writes to no file.
    fn check_end(&self, instruction: &Instruction, reads: [Option<u8>; 2]) -> Result<(), Hazard> {
        let is_end = matches!(instruction, Instruction::Alu(alu) if alu.signal == Signal::End);
        if is_end && writes(instruction).any(|write| write.address < registers::FILE) {
            return Err(Hazard::EndWrites);
        }
        const REFUSED: [u8; 4] = [14, registers::UNIFORM, registers::VARYING, registers::VPM];
        let uses_refused = reads.iter().flatten().any(|address| REFUSED.contains(address))
            || writes(instruction).any(|write| [14, registers::VPM].contains(&write.address));
        if uses_refused && (is_end || self.end < 3) {
            return Err(Hazard::AccessAtEnd);
        }
        Ok(())
    }

    fn remember(&mut self, instruction: &Instruction) {
        for age in [
            &mut self.special_function,
            &mut self.uniforms_address,
            &mut self.vpm_read_setup,
            &mut self.branch,
            &mut self.noswap,
            &mut self.end,
        ] {
            *age = age.saturating_add(1);
        }
        (self.written, self.accumulators) = ([0; 2], 0);
        for write in writes(instruction) {
            match write.address {
                register @ 0..32 => self.written[usize::from(write.is_b)] |= 1 << register,
                registers::R0..36 => self.accumulators |= 1 << (write.address - registers::R0),
                registers::R5 => self.accumulators |= 1 << Mux::R5.code(),
                registers::UNIFORMS_ADDRESS => self.uniforms_address = 1,
                registers::VPM_SETUP if !write.is_b => self.vpm_read_setup = 1,
                registers::TMU_NOSWAP => self.noswap = 1,
                address if peripheral_of_write(address) == Some(Peripheral::SpecialFunction) => {
                    self.special_function = 1
                }
                _ => {}
            }
        }
        match instruction {
            Instruction::Branch(_) => self.branch = 1,
            Instruction::Alu(alu) if alu.signal == Signal::End => self.end = 1,
            _ => {}
        }
    }
}

fn check_peripherals(instruction: &Instruction, reads: [Option<u8>; 2]) -> Result<(), Hazard> {
    let mut used = None;
    let mut refuse_second = |peripheral: Option<Peripheral>| {
        let Some(peripheral) = peripheral else { return Ok(()) };
        match used.replace(peripheral) {
            // The VPM may be read and written at once. Other peripherals are used once by an instruction.
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

/// Both ALUs may write to one register only if it is an accumulator, and no element has the conditions of both.
fn check_writes(instruction: &Instruction) -> Result<(), Hazard> {
    let mut both = writes(instruction);
    let (Some(one), Some(other)) = (both.next(), both.next()) else { return Ok(()) };
    // General registers of the two files differ.
    let is_same = one.address == other.address && one.address >= registers::FILE;
    let is_accumulator = (registers::R0..36).contains(&one.address);
    // The registers of the DMA and of the VPM have different meanings by file.
    let differ_by_file = [registers::VPM_SETUP, registers::DMA_ADDRESS].contains(&one.address);
    if is_same && !differ_by_file && !(is_accumulator && are_opposite(one.condition, other.condition)) {
        return Err(Hazard::TwoWrites { address: one.address });
    }
    Ok(())
}
