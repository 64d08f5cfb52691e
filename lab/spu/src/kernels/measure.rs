//! Measures kernels, in the quantities that the paper uses.

use super::{Compiled, Loop, MAX_RUN_BYTES, Refused};
use crate::schedule::Effort;
use crate::sim::{CLOCK_HZ, Machine, Observer, Rules, Summary, Trace};

/// The clock counts of a loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clocks {
    /// Clocks per block in the steady state, for 10, 12 and 14 rounds.
    pub block: [f64; 3],
    /// Clocks for one more round of a block: the slope of the clocks per block over the number of rounds.
    pub round: f64,
    /// Clocks per block for a cipher of ten rounds, minus ten times `round`: the additional cost of the last round, and
    /// all other work per block.
    pub last: f64,
}

impl Clocks {
    /// Returns the gigabits per second of one SPE of the PlayStation 3, for each key size.
    pub fn gigabits(&self) -> [f64; 3] {
        self.block.map(|clocks| 128.0 * CLOCK_HZ / 1e9 / clocks)
    }
}

/// Measures a loop as the difference between calls of two lengths. This excludes the fixed costs of a call.
///
/// # Errors
/// A message, if the loop cannot be compiled or stops with a fault.
pub fn clocks(of: Loop, effort: Effort) -> Result<Clocks, String> {
    clocks_by(of, effort, Rules::default())
}

/// Measures a loop on a machine whose rules may differ from those that the scheduler assumes.
///
/// # Errors
/// As [`clocks`].
pub fn clocks_by(of: Loop, effort: Effort, rules: Rules) -> Result<Clocks, String> {
    let mut block = [0.0; 3];
    for (clocks, rounds) in block.iter_mut().zip([10, 12, 14]) {
        let compiled = of.compiled(rounds, effort)?;
        let long = cycles(&compiled, rounds, MAX_RUN_BYTES / 16, rules).map_err(|fault| fault.to_string())?;
        let short =
            cycles(&compiled, rounds, MAX_RUN_BYTES / 32, rules).map_err(|fault| fault.to_string())?;
        *clocks = (long - short) as f64 / (MAX_RUN_BYTES / 32) as f64;
    }
    let round = (block[2] - block[0]) / 4.0;
    Ok(Clocks { block, round, last: block[0] - 10.0 * round })
}

/// Returns the cycles of a call for this number of blocks.
fn cycles(compiled: &Compiled, rounds: usize, blocks: usize, rules: Rules) -> Result<u64, Refused> {
    let keys = vec![[0; 16]; rounds + 1];
    let mut machine = Machine::with_rules(rules);
    compiled.load(&mut machine, &keys)?;
    Ok(compiled.run(&mut machine, &keys, &[0; 16], &mut vec![0; 16 * blocks])?.cycles)
}

/// Returns the totals of a call on [`MAX_RUN_BYTES`] bytes, including the stalls by cause.
///
/// # Errors
/// If the loop cannot be compiled or stops with a fault, the error is a message.
pub fn summary(of: Loop, rounds: usize) -> Result<Summary, String> {
    let mut summary = Summary::default();
    observe(of, rounds, &mut summary)?;
    Ok(summary)
}

/// Returns the trace of both pipes for these cycles of a call on [`MAX_RUN_BYTES`] bytes.
///
/// # Errors
/// If the loop cannot be compiled or stops with a fault, the error is a message.
pub fn trace(of: Loop, rounds: usize, cycles: std::ops::Range<u64>) -> Result<Trace, String> {
    let mut trace = Trace::new(cycles);
    observe(of, rounds, &mut trace)?;
    Ok(trace)
}

fn observe(of: Loop, rounds: usize, observer: &mut impl Observer) -> Result<(), String> {
    let compiled = of.compiled(rounds, Effort::Full)?;
    let keys = vec![[0; 16]; rounds + 1];
    let mut machine = Machine::new();
    compiled.load(&mut machine, &keys).map_err(|why| why.to_string())?;
    let run = compiled.run_observed(&mut machine, &keys, &[0; 16], &mut vec![0; MAX_RUN_BYTES], observer);
    run.map(drop).map_err(|fault| fault.to_string())
}
