//! User programs: assembled, listed, run.

use lockstep_qpu::asm::{self, assemble};
use lockstep_qpu::isa::{BranchCondition, INSTRUCTION_BYTES, Instruction, Signal};
use lockstep_qpu::sim::{Counters, Event, Fault, Hazards, Machine, Program, Run};

use super::Error;
use super::window::{Recorded, Window};

/// Bytes of the memory of a program, which are zero. The uniforms of each QPU start at address 0.
pub const MEMORY_BYTES: usize = 1 << 20;

/// Instructions that are executed after a branch, and after the signal that ends a program.
const AFTER_BRANCH: u32 = 3;
const AFTER_END: u32 = 2;

/// Assembles a program and returns a listing: addresses, words and instructions.
///
/// # Errors
/// [`Error::Program`] with file and line: of a mistake, or of an instruction whose result is undefined.
pub fn listing(file: &str, source: &str) -> Result<String, Error> {
    let program = checked(file, source)?;
    Ok(lockstep_qpu::isa::disassemble(&program.words()))
}

/// Assembles a program and runs it, for at most `budget` clocks. Returns the first instructions, and totals.
///
/// # Errors
/// Those of [`listing`], and [`Error::Fault`] for a fault outside of the instructions.
///
/// # Panics
/// If there are more QPUs than the chip has.
pub fn run(file: &str, source: &str, qpus: u8, shown: usize, budget: u64) -> Result<String, Error> {
    let assembled = checked(file, source)?;
    let program = Program::new(&assembled.instructions);
    let keep: fn(&Event) -> bool = |_| true;
    let mut recorded = Recorded::new(keep, shown);
    let mut memory = vec![0; MEMORY_BYTES];
    let mut machine = Machine::new(&program, &vec![0; qpus.into()]);
    let run = machine.run_observed(&mut memory, budget, &mut recorded);
    let run = run.map_err(|fault| at_line(file, &assembled, fault))?;
    let title = format!("{file}: {} instructions in {} clocks", run.instructions, run.clocks);
    let window = Window::of_program(title, assembled.instructions, recorded, qpus);
    Ok(format!("{window}\n{}", totals(&run)))
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

/// A message that quotes the source, whose names may have any length and any characters.
fn printable(message: &str) -> String {
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
    let program = assemble(source).map_err(|mistake| error(mistake.line, printable(&mistake.message)))?;
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
fn totals(run: &Run) -> String {
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
        ("instruction lines that were not", instruction_misses),
        ("uniforms in the uniforms cache", uniform_hits),
        ("uniforms that were not", uniform_misses),
        ("quads of requests to texture units", texture_quads),
        ("lines that were not in the cache of a texture unit", texture_misses),
        ("lines in the cache of level 2", l2_hits),
        ("lines that were not", l2_misses),
        ("DMA loads", dma_loads),
        ("DMA stores", dma_stores),
    ];
    let shown = all.into_iter().filter(|(_, count)| *count > 0);
    shown.map(|(name, count)| format!("{count:>12}  {name}\n")).collect()
}
