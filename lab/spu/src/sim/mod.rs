//! The simulator of the SPU: results of the instructions, and their issue cycles.
//!
//! Instructions are decoded when they are first executed. A program that overwrites its instructions stops with a
//! fault. One loop maintains both the functional state and the clock; an [`Observer`] receives each issue.

mod channel;
mod decoded;
mod dma;
mod execute;
mod trace;

use std::fmt;
use std::ops::Range;

pub use dma::{CLOCK_HZ, Chip, Transfer, clocks};
pub use trace::{Cause, Issue, Observer, Silent, Summary, Trace};

use zeroize::Zeroize;

use crate::asm::Image;
pub use crate::isa::LOCAL_STORE;
use crate::isa::{Class, Inst, Reg};
use channel::Channels;
use decoded::{Decoded, NO_REGISTER};

const ADDRESS_MASK: u32 = LOCAL_STORE as u32 - 1;

/// Parameters of the cycle model. The default values describe the SPU. Other values show how a rule affects the number
/// of cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Additional cycles of latency for a class of instructions.
    pub slower: Option<(Class, i8)>,
    /// Cycles lost by a mispredicted branch.
    pub penalty: u64,
}

impl Default for Rules {
    /// The rules of the SPU.
    fn default() -> Rules {
        Rules { slower: None, penalty: 18 }
    }
}

/// Number of cycles from a hint until its branch can issue without a stall.
const HINT_CYCLES: u64 = 15;
/// Minimum number of instructions between a hint and its branch. With fewer instructions the hint has no effect.
const HINT_DISTANCE: u64 = 8;

/// The reason why the simulator stopped without a `stop`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The address of the instruction.
    pub address: u32,
    /// The reason of the fault.
    pub kind: FaultKind,
}

/// The reasons why a program cannot continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// A word that is not an instruction.
    Unknown(u32),
    /// Execution reached an address without code.
    OutsideCode,
    /// The cycle budget is exhausted: probably an infinite loop.
    Budget(u64),
    /// A store would overwrite code.
    SelfModification {
        /// The address of the quadword that was written.
        written: u32,
    },
    /// A channel was used in a way that is not possible.
    Channel(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.address;
        match &self.kind {
            FaultKind::Unknown(word) => write!(f, "{at:#07x}: {word:#010x} is no instruction of the SPU"),
            FaultKind::OutsideCode => write!(f, "{at:#07x}: the program ran or branched outside of its code"),
            FaultKind::Budget(cycles) => {
                write!(f, "{at:#07x}: still running after {cycles} cycles: a loop without end?")
            }
            FaultKind::SelfModification { written } => {
                write!(f, "{at:#07x}: a store to {written:#07x} overwrites code")
            }
            FaultKind::Channel(what) => write!(f, "{at:#07x}: {what}"),
        }
    }
}

impl std::error::Error for Fault {}

/// The totals of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Run {
    /// Cycles from the first issue to the `stop`, inclusive.
    pub cycles: u64,
    /// Instructions, `nop` and `lnop` included.
    pub instructions: u64,
    /// The code of the `stop`.
    pub code: u32,
}

/// One SPU with its local store.
pub struct Machine {
    registers: Vec<u128>,
    memory: Vec<u8>,
    code: Range<u32>,
    /// The decoded instruction of each word.
    decoded: Vec<Decoded>,
    /// For each quadword: true if it contains instructions, or data that have been executed as instructions.
    guarded: Vec<bool>,
    channels: Channels,
    entry: u32,
    rules: Rules,
}

impl Default for Machine {
    fn default() -> Self {
        Machine::new()
    }
}

impl Machine {
    /// Creates a machine with all memory and registers zero.
    pub fn new() -> Machine {
        Machine::with_rules(Rules::default())
    }

    /// Creates a machine with other rules.
    pub fn with_rules(rules: Rules) -> Machine {
        Machine {
            registers: vec![0; 256],
            memory: vec![0; LOCAL_STORE],
            code: 0..0,
            decoded: vec![Decoded::default(); LOCAL_STORE / 4],
            guarded: vec![false; LOCAL_STORE / 16],
            channels: Channels::default(),
            entry: 0,
            rules,
        }
    }

    /// Loads a program into the local store.
    ///
    /// # Panics
    /// If the program does not fit.
    pub fn load(&mut self, image: &Image) {
        self.memory[image.origin as usize..image.end() as usize].copy_from_slice(&image.bytes);
        self.forget_code();
        self.entry = image.entry;
        self.code = image.code.clone();
        let mut from = image.code.start;
        for data in image.constants.iter().chain([&(image.code.end..image.code.end)]) {
            let words = (from / 16) as usize..data.start.min(image.code.end).div_ceil(16) as usize;
            if from < data.start {
                self.guarded[words].fill(true);
            }
            from = data.end;
        }
    }

    /// Discards the decoded instructions and the write protection of the previous program.
    fn forget_code(&mut self) {
        // Only addresses inside the code are executed, so no word outside the code was decoded.
        let old = self.code.start as usize..self.code.end as usize;
        self.decoded[old.start / 4..old.end.div_ceil(4)].fill(Decoded::default());
        self.guarded[old.start / 16..old.end.div_ceil(16)].fill(false);
        self.code = 0..0;
    }

    /// Reads bytes of the local store.
    ///
    /// # Panics
    /// If the range is outside the local store.
    pub fn memory(&self, range: Range<usize>) -> &[u8] {
        &self.memory[range]
    }

    /// Mutable access to bytes of the local store from outside the SPU.
    ///
    /// # Panics
    /// If the range is outside the local store.
    pub fn memory_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        // Rewritten words are decoded again.
        let code = range.start.max(self.code.start as usize)..range.end.min(self.code.end as usize);
        if !code.is_empty() {
            self.decoded[code.start / 4..code.end.div_ceil(4)].fill(Decoded::default());
        }
        &mut self.memory[range]
    }

    /// Returns the main storage, which DMA commands access. It is empty at first.
    pub fn main(&self) -> &[u8] {
        &self.channels.main
    }

    /// Replaces the content and the size of main storage.
    pub fn set_main(&mut self, bytes: Vec<u8>) {
        self.channels.main.zeroize();
        self.channels.main = bytes;
    }

    /// Returns the values that the last run has written to the outbound mailbox.
    pub fn mailbox(&self) -> &[u32] {
        &self.channels.mailbox
    }

    /// The value of a register.
    pub fn register(&self, reg: Reg) -> u128 {
        self.registers[usize::from(reg.number())]
    }

    /// Sets a register before a run.
    pub fn set_register(&mut self, reg: Reg, value: u128) {
        self.registers[usize::from(reg.number())] = value;
    }

    /// Zeroes registers and local store, and removes the program.
    pub fn clear(&mut self) {
        self.registers.as_mut_slice().zeroize();
        self.memory.as_mut_slice().zeroize();
        self.set_main(Vec::new());
        self.channels.reset();
        self.forget_code();
    }

    /// Runs from the entry to a `stop`.
    ///
    /// # Errors
    /// [`Fault`] if the program does something that is not possible on the hardware, or exceeds the budget of cycles.
    pub fn run(&mut self, budget: u64) -> Result<Run, Fault> {
        self.run_observed(budget, &mut Silent)
    }

    /// Runs the program and passes each issue to `observer`.
    ///
    /// # Errors
    /// As [`Machine::run`].
    pub fn run_observed(&mut self, budget: u64, observer: &mut impl Observer) -> Result<Run, Fault> {
        let rules = self.rules;
        let mut clock = Clock::new(budget, rules.penalty);
        let mut pc = self.entry;
        // The loop uses local references, so that it does not access `self`.
        self.channels.reset();
        let Machine { registers, memory, code, decoded, guarded, channels, .. } = self;
        let registers: &mut [u128; 256] = registers.as_mut_slice().try_into().expect("256 registers");
        let memory: &mut [u8; LOCAL_STORE] = memory.as_mut_slice().try_into().expect("a local store");
        loop {
            let at = (pc >> 2) as usize & (LOCAL_STORE / 4 - 1);
            if !decoded[at].known {
                decoded[at] = decode(memory, code, pc, rules)?;
                guarded[at / 4] = true;
            }
            let inst = &decoded[at];
            let issued = clock.issue(inst, pc, observer)?;
            match execute::step(inst, registers, memory) {
                execute::Next::Follow => pc = pc.wrapping_add(4) & ADDRESS_MASK,
                execute::Next::Branch { taken } => {
                    let next = pc.wrapping_add(4) & ADDRESS_MASK;
                    let goes_to = taken.unwrap_or(next);
                    clock.branch(pc, goes_to, issued, observer);
                    pc = goes_to;
                }
                execute::Next::Hint { branch, target } => {
                    clock.hint = Hint { branch, target, cycle: issued, count: clock.instructions };
                    pc = pc.wrapping_add(4) & ADDRESS_MASK;
                }
                execute::Next::Store { at, value } => {
                    if guarded[(at >> 4) as usize] {
                        return Err(Fault { address: pc, kind: FaultKind::SelfModification { written: at } });
                    }
                    memory[at as usize..at as usize + 16].copy_from_slice(&value.to_be_bytes());
                    pc = pc.wrapping_add(4) & ADDRESS_MASK;
                }
                execute::Next::Read => {
                    let refused = |what| Fault { address: pc, kind: FaultKind::Channel(what) };
                    let (value, at) = channels.read(inst, issued).map_err(refused)?;
                    clock.wait(issued, at, observer);
                    clock.ready[usize::from(inst.rt)] = at + u64::from(inst.latency);
                    registers[usize::from(inst.rt)] = u128::from(value) << 96;
                    channels.complete(at, memory, |local, size| unguarded(guarded, pc, local, size))?;
                    pc = pc.wrapping_add(4) & ADDRESS_MASK;
                }
                execute::Next::Write { channel, value } => {
                    let refused = |what| Fault { address: pc, kind: FaultKind::Channel(what) };
                    let at = channels.write(channel, value, issued).map_err(refused)?;
                    clock.wait(issued, at, observer);
                    channels.complete(at, memory, |local, size| unguarded(guarded, pc, local, size))?;
                    pc = pc.wrapping_add(4) & ADDRESS_MASK;
                }
                execute::Next::Stop(code) => {
                    // The memory flow controller completes all remaining commands after the program has stopped.
                    channels.complete(u64::MAX, memory, |local, size| unguarded(guarded, pc, local, size))?;
                    return Ok(Run { cycles: issued, instructions: clock.instructions, code });
                }
            }
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.registers.as_mut_slice().zeroize();
        self.memory.as_mut_slice().zeroize();
        self.channels.main.zeroize();
        self.channels.mailbox.zeroize();
    }
}

/// Checks that a transfer into the local store does not overwrite code.
fn unguarded(guarded: &[bool], pc: u32, local: u32, size: usize) -> Result<(), Fault> {
    let quadwords = local as usize / 16..(local as usize + size).div_ceil(16);
    match guarded[quadwords].contains(&true) {
        true => Err(Fault { address: pc, kind: FaultKind::SelfModification { written: local } }),
        false => Ok(()),
    }
}

fn decode(memory: &[u8; LOCAL_STORE], code: &Range<u32>, pc: u32, rules: Rules) -> Result<Decoded, Fault> {
    if !code.contains(&pc) {
        return Err(Fault { address: pc, kind: FaultKind::OutsideCode });
    }
    let at = pc as usize;
    let word = u32::from_be_bytes(memory[at..at + 4].try_into().expect("four bytes"));
    let inst = Inst::decode(word).ok_or(Fault { address: pc, kind: FaultKind::Unknown(word) })?;
    let mut decoded = Decoded::new(&inst, pc);
    if let Some((class, more)) = rules.slower
        && class == inst.op.class()
    {
        decoded.latency = decoded.latency.saturating_add_signed(more);
    }
    Ok(decoded)
}

/// The active hint, which is always the latest hint.
#[derive(Clone, Copy)]
struct Hint {
    branch: u32,
    target: u32,
    cycle: u64,
    count: u64,
}

/// The state of the issue logic.
struct Clock {
    /// For each register, the first cycle in which its value can be used.
    ready: [u64; 256],
    /// The cycle of the latest issue, or the last cycle that was lost to a branch.
    last: u64,
    /// True if the latest instruction was an even-pipe instruction in the first word of a pair. An odd-pipe instruction
    /// may then issue in the same cycle.
    open: bool,
    hint: Hint,
    instructions: u64,
    budget: u64,
    penalty: u64,
}

impl Clock {
    fn new(budget: u64, penalty: u64) -> Clock {
        let hint = Hint { branch: u32::MAX, target: 0, cycle: 0, count: 0 };
        // Cycles are counted from 1, so that the first issue is later than `last`.
        Clock { ready: [0; 256], last: 0, open: false, hint, instructions: 0, budget: budget.max(1), penalty }
    }

    /// Issues the instruction and returns the cycle.
    #[inline(always)]
    fn issue(&mut self, inst: &Decoded, pc: u32, observer: &mut impl Observer) -> Result<u64, Fault> {
        self.instructions += 1;
        let [a, b, c] = inst.sources;
        let ready =
            self.ready[usize::from(a)].max(self.ready[usize::from(b)]).max(self.ready[usize::from(c)]);
        let dual = self.open && inst.odd && ready <= self.last;
        let free = self.last + 1;
        let mut at = if dual { self.last } else { free.max(ready) };
        let mut cause = if at > free { Cause::Dependency } else { Cause::None };
        if inst.branch && pc == self.hint.branch && at < self.hint.cycle + HINT_CYCLES && self.hint_is_seen()
        {
            at = self.hint.cycle + HINT_CYCLES;
            cause = Cause::Hint;
        }
        if at > self.budget {
            return Err(Fault { address: pc, kind: FaultKind::Budget(self.budget) });
        }
        observer.issue(Issue {
            cycle: at,
            address: pc,
            op: inst.op,
            dual: dual && at == self.last,
            stall: at.saturating_sub(free),
            cause,
        });
        self.open = !inst.odd && pc & 4 == 0;
        self.last = at;
        self.ready[usize::from(inst.target)] = at + u64::from(inst.latency);
        self.ready[usize::from(NO_REGISTER)] = 0;
        Ok(at)
    }

    fn hint_is_seen(&self) -> bool {
        self.instructions - self.hint.count > HINT_DISTANCE
    }

    fn branch(&mut self, pc: u32, goes_to: u32, issued: u64, observer: &mut impl Observer) {
        let hinted = pc == self.hint.branch && self.hint_is_seen();
        let predicted = if hinted { self.hint.target } else { pc.wrapping_add(4) & ADDRESS_MASK };
        if predicted != goes_to {
            self.last = issued + self.penalty;
            observer.lost(self.penalty, Cause::Branch);
        }
    }

    /// Waits for a channel until the cycle `until`.
    fn wait(&mut self, issued: u64, until: u64, observer: &mut impl Observer) {
        if until > issued {
            self.last = until;
            self.open = false;
            observer.lost(until - issued, Cause::Channel);
        }
    }
}
