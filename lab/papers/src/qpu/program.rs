//! Assembles programs of users, lists their instructions, and runs them.

use std::ops::Range;

use lockstep_qpu::asm::{self, AsmError, assemble};
use lockstep_qpu::isa::{BranchCondition, INSTRUCTION_BYTES, Instruction, Signal};
use lockstep_qpu::sim::{Counters, Event, Fault, Hazards, Machine, Program, Run};

use zeroize::{Zeroize, Zeroizing};

use super::Error;
use super::window::{Recorded, Window};
use crate::memory;
use crate::mistake::column;

/// Bytes of the memory of a program.
pub const MEMORY_BYTES: usize = 1 << 20;

/// Instructions that are executed after a branch, and after the signal that ends a program.
const AFTER_BRANCH: u32 = 3;
const AFTER_END: u32 = 2;

/// Assembles a program and returns a listing: addresses, words and instructions.
///
/// # Errors
/// [`Error::Text`] of a mistake; [`Error::Program`] of an instruction whose result is undefined.
pub fn listing(file: &str, source: &str) -> Result<String, Error> {
    let program = checked(file, source)?;
    Ok(lockstep_qpu::isa::disassemble(&program.words()))
}

/// The data that a program finds when it starts.
#[derive(Default)]
pub struct Setup {
    /// Addresses in the memory, and the bytes there. All other bytes are zero.
    pub memory: Vec<(String, Vec<u8>)>,
    /// Uniforms of one QPU, or of each QPU that has no separate uniforms. For all other QPUs, the uniforms are the words from address 0 on.
    pub uniforms: Vec<(Option<u8>, Vec<Uniform>)>,
}

/// A uniform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uniform {
    /// A word.
    Word(u32),
    /// The number of the QPU, from 0.
    Qpu,
    /// The number of QPUs of the run.
    Qpus,
}

impl Uniform {
    /// A uniform from text: a number, `qpu` or `qpus`.
    pub fn of(text: &str) -> Option<Uniform> {
        match text {
            "qpu" => Some(Uniform::Qpu),
            "qpus" => Some(Uniform::Qpus),
            // A number with a decimal point is a float.
            text if text.contains('.') => {
                text.parse::<f32>().ok().map(|value| Uniform::Word(value.to_bits()))
            }
            text => memory::word(text).map(Uniform::Word),
        }
    }
}

/// The data are wiped, because they may contain keys.
impl Drop for Setup {
    fn drop(&mut self) {
        self.memory.iter_mut().for_each(|(_, bytes)| bytes.zeroize());
    }
}

/// The result of a program that has ended.
pub struct Ran {
    /// A text with the first instructions and the totals.
    pub text: String,
    memory: Zeroizing<Vec<u8>>,
}

impl Ran {
    /// Bytes of the memory.
    ///
    /// # Errors
    /// [`Error::Setup`] if the bytes are not inside the memory.
    pub fn memory(&self, start: &str, bytes: usize) -> Result<&[u8], Error> {
        Ok(&self.memory[range(start, bytes)?])
    }
}

/// The range of `bytes` bytes that starts at the address `start`, inside the memory.
fn range(start: &str, bytes: usize) -> Result<Range<usize>, Error> {
    let unknown = || Error::Setup(format!("{start} is no address: expected a number of 32 bits"));
    let from = memory::number(start).ok_or_else(unknown)?;
    memory::range(from, start, bytes, MEMORY_BYTES, "memory").map_err(Error::Setup)
}

/// The memory at the start of a run, and the address of the first uniform of each QPU. Uniforms from `setup` are placed after the memory of
/// the program.
fn placed(setup: &Setup, qpus: u8) -> Result<(Zeroizing<Vec<u8>>, Vec<u32>), Error> {
    for (number, (qpu, _)) in setup.uniforms.iter().enumerate() {
        let shown = qpu.map_or_else(|| "all".into(), |qpu| qpu.to_string());
        if qpu.is_some_and(|qpu| qpu >= qpus) {
            return Err(Error::Setup(format!("uniforms of QPU {shown}: the run has {qpus} QPUs, from 0 on")));
        }
        if setup.uniforms[..number].iter().any(|(other, _)| other == qpu) {
            return Err(Error::Setup(format!("uniforms of {shown} are given twice: remove one list")));
        }
    }
    let of = |qpu: u8| {
        let own = setup.uniforms.iter().find(|(number, _)| *number == Some(qpu));
        own.or_else(|| setup.uniforms.iter().find(|(number, _)| number.is_none())).map(|(_, list)| list)
    };
    let words: usize = (0..qpus).filter_map(of).map(Vec::len).sum();
    let mut memory = Zeroizing::new(vec![0; MEMORY_BYTES + 4 * words]);
    for (start, bytes) in &setup.memory {
        memory[range(start, bytes.len())?].copy_from_slice(bytes);
    }
    let (mut addresses, mut next) = (Vec::new(), MEMORY_BYTES);
    for qpu in 0..qpus {
        let Some(list) = of(qpu) else {
            addresses.push(0);
            continue;
        };
        addresses.push(next as u32);
        for (place, uniform) in memory[next..].chunks_exact_mut(4).zip(list) {
            let word = match uniform {
                Uniform::Word(word) => *word,
                Uniform::Qpu => qpu.into(),
                Uniform::Qpus => qpus.into(),
            };
            place.copy_from_slice(&word.to_le_bytes());
        }
        next += 4 * list.len();
    }
    Ok((memory, addresses))
}

/// Assembles a program and runs it for at most `budget` clocks. The returned text shows the first `shown` instructions.
///
/// # Errors
/// The errors of [`listing`]; [`Error::Setup`]; [`Error::Fault`] for a fault at an address without an instruction.
///
/// # Panics
/// If there are more QPUs than the chip has.
pub fn run(
    file: &str,
    source: &str,
    setup: &Setup,
    qpus: u8,
    shown: usize,
    budget: u64,
) -> Result<Ran, Error> {
    let assembled = checked(file, source)?;
    let program = Program::new(&assembled.instructions);
    let keep: fn(&Event) -> bool = |_| true;
    let mut recorded = Recorded::new(keep, shown);
    let (mut memory, uniforms) = placed(setup, qpus)?;
    let mut machine = Machine::new(&program, &uniforms);
    let run = machine.run_observed(&mut memory, budget, &mut recorded);
    let run = run.map_err(|fault| at_line(file, &assembled, fault))?;
    let title = format!("{file}: {} instructions in {} clocks", run.instructions, run.clocks);
    let window = Window::of_program(title, assembled.instructions, recorded, qpus);
    Ok(Ran { text: format!("{window}\n{}", totals(&run)), memory })
}

/// The error of a fault, with the line of its instruction.
fn at_line(file: &str, program: &asm::Program, fault: Fault) -> Error {
    match program.lines.get((fault.address / INSTRUCTION_BYTES) as usize) {
        Some(line) => Error::Program { file: file.into(), line: *line, message: fault.to_string() },
        None => Error::Fault { file: file.into(), fault },
    }
}

/// Characters of a message that are printed.
const MESSAGE_CHARS: usize = 200;

/// A message for a terminal: shortened, with control characters escaped. The message may quote names of the source, which may have any
/// length and any characters.
pub(super) fn printable(message: &str) -> String {
    let escaped = |letter: char| match letter.is_control() {
        true => letter.escape_default().to_string(),
        false => letter.into(),
    };
    let text: String = message.chars().take(MESSAGE_CHARS).map(escaped).collect();
    if message.chars().nth(MESSAGE_CHARS).is_some() { text + "..." } else { text }
}

/// Assembles a program, and checks its instructions in the order of the text.
fn checked(file: &str, source: &str) -> Result<asm::Program, Error> {
    let error = |line, message| Error::Program { file: file.into(), line, message };
    let program = assemble(source).map_err(|AsmError { line, message }| {
        let column = column(source, line, &message);
        Error::Text { file: file.into(), line, column, message: printable(&message) }
    })?;
    let mut hazards = Hazards::new();
    // The number of instructions that still run before execution continues at another address or ends.
    let mut until_end: Option<u32> = None;
    for (instruction, line) in program.instructions.iter().zip(&program.lines) {
        hazards
            .check(instruction)
            .map_err(|hazard| error(*line, format!("the instruction has an undefined result: {hazard}")))?;
        until_end = match (until_end, instruction) {
            (Some(left), _) => Some(left - 1),
            (None, Instruction::Branch(branch)) if branch.condition == BranchCondition::Always => {
                Some(AFTER_BRANCH)
            }
            (None, Instruction::Alu(alu)) if alu.signal == Signal::End => Some(AFTER_END),
            (None, _) => None,
        };
        if until_end == Some(0) {
            (hazards, until_end) = (Hazards::new(), None);
        }
    }
    Ok(program)
}

/// The totals and counters of a run as text. Counters that are zero are left out.
pub(super) fn totals(run: &Run) -> String {
    let Counters {
        idle_clocks,
        instruction_clocks,
        tmu_stall_clocks,
        store_stall_clocks,
        load_stall_clocks,
        synchronization_clocks,
        instruction_hits,
        instruction_misses,
        uniform_hits,
        uniform_misses,
        texture_quads,
        texture_misses,
        l2_hits,
        l2_misses,
        dma_loads,
        dma_stores,
    } = run.counters;
    let all = [
        ("clocks until the last QPU ended", run.clocks),
        ("instructions of all QPUs", run.instructions),
        ("interrupts of the host", run.interrupts),
        ("clocks of instructions", instruction_clocks),
        ("clocks of waiting for texture units", tmu_stall_clocks),
        ("clocks of waiting for DMA loads", load_stall_clocks),
        ("clocks of waiting for DMA stores", store_stall_clocks),
        ("clocks of waiting for semaphores and the mutex", synchronization_clocks),
        ("clocks after the end, while other QPUs ran", idle_clocks),
        ("instruction lines in the instruction cache", instruction_hits),
        ("instruction lines that were not in the instruction cache", instruction_misses),
        ("uniforms in the uniforms cache", uniform_hits),
        ("uniforms that were not in the uniforms cache", uniform_misses),
        ("quads of requests to texture units", texture_quads),
        ("lines that were not in the cache of a texture unit", texture_misses),
        ("lines in the cache of level 2", l2_hits),
        ("lines that were not in the cache of level 2", l2_misses),
        ("DMA loads", dma_loads),
        ("DMA stores", dma_stores),
    ];
    let shown = all.into_iter().filter(|(_, count)| *count > 0);
    shown.map(|(name, count)| format!("{count:>12}  {name}\n")).collect()
}
