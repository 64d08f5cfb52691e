//! Observation of a run: each issue, the use of both pipes in each cycle, and the totals.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use crate::isa::{Class, Op, Pipe};

/// The issue of an instruction.
#[derive(Debug, Clone, Copy)]
pub struct Issue {
    /// The cycle, counted from 1.
    pub cycle: u64,
    /// The address of the instruction.
    pub address: u32,
    /// The operation of the instruction.
    pub op: Op,
    /// True if the instruction is issued in the same cycle as the previous instruction.
    pub dual: bool,
    /// Number of cycles without an issue before this instruction.
    pub stall: u64,
    /// The cause of the stall.
    pub cause: Cause,
}

/// The cause of lost cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// No cycles are lost.
    None,
    /// The instruction waits for the result of an earlier instruction.
    Dependency,
    /// The branch waits for a hint that came too late.
    Hint,
    /// A branch was not predicted by a hint.
    Branch,
    /// The instruction waits for a channel, such as the channel of completed DMA commands.
    Channel,
}

/// Receives the events of a run.
pub trait Observer {
    /// Called for each issue, in the order of the cycles.
    fn issue(&mut self, issue: Issue);

    /// Called for cycles lost after a branch, or after an instruction that waits for a channel.
    fn lost(&mut self, cycles: u64, cause: Cause);
}

/// An observer that ignores all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    #[inline(always)]
    fn issue(&mut self, _: Issue) {}

    #[inline(always)]
    fn lost(&mut self, _: u64, _: Cause) {}
}

/// Totals of a run.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Number of instructions on the even and on the odd pipe, without `nop` and `lnop`.
    pub useful: [u64; 2],
    /// Number of `nop` and `lnop`.
    pub idle: u64,
    /// Number of cycles in which two useful instructions were issued.
    pub dual: u64,
    /// Number of cycles in which at least one instruction was issued.
    pub issuing: u64,
    /// Number of lost cycles, by cause.
    pub stalls: BTreeMap<&'static str, u64>,
    /// Number of instructions by class.
    pub classes: BTreeMap<String, u64>,
    last_useful: Option<u64>,
    last_cycle: u64,
}

impl Summary {
    /// The sum of the cycles in which an instruction was issued and of the lost cycles.
    pub fn cycles(&self) -> u64 {
        self.issuing + self.stalls.values().sum::<u64>()
    }

    /// Returns the fraction of the issue cycles in which two useful instructions were issued.
    pub fn dual_rate(&self) -> f64 {
        self.dual as f64 / self.issuing.max(1) as f64
    }
}

impl Observer for Summary {
    fn issue(&mut self, issue: Issue) {
        let class = issue.op.class();
        if issue.stall > 0 {
            let cause = if issue.cause == Cause::Hint { "hint" } else { "dependency" };
            *self.stalls.entry(cause).or_default() += issue.stall;
        }
        if self.last_cycle != issue.cycle {
            self.issuing += 1;
            self.last_cycle = issue.cycle;
        }
        *self.classes.entry(format!("{class:?}")).or_default() += 1;
        if matches!(class, Class::Nop | Class::Lnop) {
            self.idle += 1;
            return;
        }
        self.useful[usize::from(issue.op.pipe() == Pipe::Odd)] += 1;
        if self.last_useful == Some(issue.cycle) {
            self.dual += 1;
        }
        self.last_useful = Some(issue.cycle);
    }

    fn lost(&mut self, cycles: u64, cause: Cause) {
        let cause = if cause == Cause::Channel { "channel" } else { "branch" };
        *self.stalls.entry(cause).or_default() += cycles;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [even, odd] = self.useful;
        writeln!(f, "{} cycles, {even} even and {odd} odd instructions", self.cycles())?;
        writeln!(f, "dual issues {} ({:.1} % of issuing cycles)", self.dual, 100.0 * self.dual_rate())?;
        for (cause, cycles) in &self.stalls {
            writeln!(f, "lost to {cause}: {cycles}")?;
        }
        Ok(())
    }
}

/// The trace of both pipes for a window of cycles.
#[derive(Debug, Clone)]
pub struct Trace {
    window: Range<u64>,
    issues: Vec<Issue>,
}

impl Trace {
    /// Creates a trace that records the issues of these cycles.
    pub fn new(window: Range<u64>) -> Trace {
        Trace { window, issues: Vec::new() }
    }

    /// Returns the recorded issues, in the order of the cycles.
    pub fn issues(&self) -> &[Issue] {
        &self.issues
    }
}

impl Observer for Trace {
    fn issue(&mut self, issue: Issue) {
        if self.window.contains(&issue.cycle) {
            self.issues.push(issue);
        }
    }

    fn lost(&mut self, _: u64, _: Cause) {}
}

impl fmt::Display for Trace {
    /// Writes a line for each cycle: the address and the instructions of the even and of the odd pipe. `=` marks dual issues, and `.` marks
    /// lost cycles.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut at = 0;
        let mut expected = self.issues.first().map_or(0, |issue| issue.cycle);
        while let Some(first) = self.issues.get(at) {
            if first.cycle > expected {
                writeln!(f, "{expected:>8}  .  {} cycles lost", first.cycle - expected)?;
            }
            let second = self.issues.get(at + 1).filter(|second| second.cycle == first.cycle);
            let mut pipes = [""; 2];
            for issue in [Some(first), second].into_iter().flatten() {
                pipes[usize::from(issue.op.pipe() == Pipe::Odd)] = issue.op.mnemonic();
            }
            let useful = |name: &&&str| !matches!(**name, "" | "nop" | "lnop");
            let mark = if pipes.iter().filter(useful).count() == 2 { '=' } else { ' ' };
            writeln!(f, "{:>8} {:05x} {mark} {:<8} {:<8}", first.cycle, first.address, pipes[0], pipes[1])?;
            expected = first.cycle + 1;
            at += if second.is_some() { 2 } else { 1 };
        }
        Ok(())
    }
}
