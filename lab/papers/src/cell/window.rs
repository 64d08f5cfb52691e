//! A window of cycles: the instructions that each pipe issues, and the causes of lost cycles.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use lockstep_core::work::Pass;
use lockstep_spu::asm::Image;
use lockstep_spu::isa::{Class, Inst, Pipe};
use lockstep_spu::kernels::{Compiled, Loop, MAX_RUN_BYTES, Named};
use lockstep_spu::schedule::Effort;
use lockstep_spu::sim::{Cause, Issue, Machine, Observer, Trace};

use super::{Error, measured};

/// The cause of a lost cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lost {
    /// An instruction waits for a result.
    Dependency,
    /// A branch waits for its hint.
    Hint,
    /// A mispredicted branch.
    Branch,
    /// An instruction waits for a channel.
    Channel,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lost::Dependency => "dependency",
            Lost::Hint => "hint",
            Lost::Branch => "branch",
            Lost::Channel => "channel",
        })
    }
}

/// A cycle, and the instructions that are issued in it.
#[derive(Debug, Clone, Copy)]
pub struct Cycle {
    /// The number of the cycle, from 1 at the start of the call.
    pub number: u64,
    /// The instructions issued on the even and on the odd pipe.
    pub pipes: [Option<Issue>; 2],
    /// The cause of the loss, if no instruction is issued.
    pub lost: Option<Lost>,
}

impl Cycle {
    /// True if two instructions other than `nop` and `lnop` are issued.
    pub fn is_dual(&self) -> bool {
        self.pipes.iter().all(|issue| issue.is_some_and(|issue| is_useful(&issue)))
    }
}

fn is_useful(issue: &Issue) -> bool {
    !matches!(issue.op.class(), Class::Nop | Class::Lnop)
}

/// Cycles of a program.
pub struct Window {
    /// The title of the window in texts and pictures.
    pub title: String,
    /// The cycles of the window, in order.
    pub cycles: Vec<Cycle>,
    image: Image,
}

/// The loop of a kernel in its steady state.
struct Steady {
    start: u64,
    turn: u64,
}

/// Length in bytes of the call in which the steady state is searched for.
const ENOUGH: usize = 128 * 16;

/// Number of cycles that are observed after a window. No stall is longer, so the cause of the last lost cycles is found.
const AFTER: u64 = 64;

impl Window {
    /// The steady state of a kernel: `cycles` cycles from the start of an iteration of its loop in the middle of a call. If
    /// `cycles` is `None`, the window is one iteration.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the kernel does not run, which is a bug.
    pub fn of_kernel(
        kernel: &Named,
        (pass, of): (Pass, Loop),
        rounds: usize,
        cycles: Option<u64>,
    ) -> Result<Window, Error> {
        let compiled = of.compiled(rounds, Effort::Full).map_err(Error::Kernel)?;
        let all = observed(&compiled, rounds, ENOUGH, 0..u64::MAX)?;
        let steady = steady(&all)
            .ok_or_else(|| Error::Kernel(format!("{}: no steady state was found", kernel.name)))?;
        let range = steady.start..steady.start + cycles.unwrap_or(steady.turn);
        // The next issue after the window determines the cause of the last lost cycles.
        let issues =
            observed(&compiled, rounds, MAX_RUN_BYTES, range.start..range.end.saturating_add(AFTER))?;
        let blocks = if of.mode.is_chain() { 1 } else { of.blocks };
        let blocks = if blocks == 1 { "a block".into() } else { format!("{blocks} blocks") };
        let title = format!(
            "{}: {}, {rounds} rounds; an iteration of the loop takes {} cycles for {blocks}",
            kernel.name,
            measured::name(pass),
            steady.turn
        );
        Ok(Window { title, cycles: by_cycle(&issues, range), image: compiled.program.image.clone() })
    }

    /// Cycles of any program.
    pub(super) fn of_program(title: String, image: &Image, trace: &Trace, range: Range<u64>) -> Window {
        Window { title, cycles: by_cycle(trace.issues(), range), image: image.clone() }
    }

    /// The number of dual-issue cycles, and the number of lost cycles by cause.
    pub fn totals(&self) -> (usize, BTreeMap<Lost, usize>) {
        let mut lost = BTreeMap::new();
        for cause in self.cycles.iter().filter_map(|cycle| cycle.lost) {
            *lost.entry(cause).or_default() += 1;
        }
        (self.cycles.iter().filter(|cycle| cycle.is_dual()).count(), lost)
    }

    /// The totals as text.
    pub fn summary(&self) -> String {
        let (dual, lost) = self.totals();
        let all = self.cycles.len();
        let idle = lost.values().sum::<usize>();
        let mut text = format!("{all} cycles: {dual} with two instructions, {} with one", all - dual - idle);
        for (cause, cycles) in lost {
            text += &format!(", {cycles} lost ({cause})");
        }
        text
    }

    /// An instruction with its operands.
    fn show(&self, issue: &Issue) -> String {
        match self.image.word(issue.address).and_then(Inst::decode) {
            Some(inst) => inst.show(issue.address),
            None => issue.op.mnemonic().into(),
        }
    }
}

impl fmt::Display for Window {
    /// Writes a line for each cycle: the address and the instructions of both pipes. `=` marks dual issues, and `.` marks lost cycles.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n= two instructions   . lost cycle, with its cause\n", self.title)?;
        writeln!(f, "{:>8} {:>6}    {:<26} odd pipe", "cycle", "at", "even pipe")?;
        for cycle in &self.cycles {
            let number = cycle.number;
            if let Some(cause) = cycle.lost {
                writeln!(f, "{number:>8}        .  {cause}")?;
                continue;
            }
            let [even, odd] =
                cycle.pipes.map(|issue| issue.map(|issue| self.show(&issue)).unwrap_or_default());
            let first = cycle.pipes.iter().flatten().map(|issue| issue.address).min().unwrap_or_default();
            let mark = if cycle.is_dual() { '=' } else { ' ' };
            let line = format!("{number:>8} {first:#07x} {mark}  {even:<26} {odd}");
            writeln!(f, "{}", line.trim_end())?;
        }
        writeln!(f, "\n{}", self.summary())
    }
}

fn observed(
    compiled: &Compiled,
    rounds: usize,
    bytes: usize,
    cycles: Range<u64>,
) -> Result<Vec<Issue>, Error> {
    let keys = vec![[0; 16]; rounds + 1];
    let mut machine = Machine::new();
    compiled.load(&mut machine, &keys)?;
    let mut trace = Trace::new(cycles);
    compiled.run_observed(&mut machine, &keys, &[0; 16], &mut vec![0; bytes], &mut trace)?;
    Ok(trace.issues().to_vec())
}

/// Finds an iteration in the middle of a call. An iteration starts after the longest backward branch was taken.
fn steady(issues: &[Issue]) -> Option<Steady> {
    let mut turns: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for pair in issues.windows(2) {
        if let Some(back @ 1..) = pair[0].address.checked_sub(pair[1].address) {
            turns.entry(back).or_default().push(pair[1].cycle);
        }
    }
    let (_, starts) = turns.into_iter().rev().find(|(_, starts)| starts.len() > 2)?;
    let middle = starts.len() / 2;
    Some(Steady { start: starts[middle], turn: starts[middle] - starts[middle - 1] })
}

/// Arranges issues, which are in order, by cycle. Cycles after the last issue are omitted.
fn by_cycle(issues: &[Issue], range: Range<u64>) -> Vec<Cycle> {
    let mut cycles: Vec<Cycle> = Vec::new();
    let mut next = range.start.max(1);
    let mut before = Class::Br;
    for issue in issues {
        // The last lost cycles before an issue are the stall of the issued instruction. The previous instruction, which is a branch or an
        // access to a channel, caused the lost cycles before these.
        while next < issue.cycle.min(range.end) {
            let lost = if issue.cycle - next > issue.stall {
                if before == Class::Ch { Lost::Channel } else { Lost::Branch }
            } else if issue.cause == Cause::Hint {
                Lost::Hint
            } else {
                Lost::Dependency
            };
            cycles.push(Cycle { number: next, pipes: [None; 2], lost: Some(lost) });
            next += 1;
        }
        if issue.cycle >= range.end {
            break;
        }
        if cycles.last().is_none_or(|cycle| cycle.number != issue.cycle) {
            cycles.push(Cycle { number: issue.cycle, pipes: [None; 2], lost: None });
        }
        let cycle = cycles.last_mut().expect("one has been added");
        cycle.pipes[usize::from(issue.op.pipe() == Pipe::Odd)] = Some(*issue);
        next = issue.cycle + 1;
        before = issue.op.class();
    }
    cycles
}

/// An observer that passes each event to two others.
pub(super) struct Both<'a, A, B>(pub(super) &'a mut A, pub(super) &'a mut B);

impl<A: Observer, B: Observer> Observer for Both<'_, A, B> {
    fn issue(&mut self, issue: Issue) {
        self.0.issue(issue);
        self.1.issue(issue);
    }

    fn lost(&mut self, cycles: u64, cause: Cause) {
        self.0.lost(cycles, cause);
        self.1.lost(cycles, cause);
    }
}
