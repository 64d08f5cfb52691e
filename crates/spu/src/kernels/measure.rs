//! Measurement of kernels, in the paper's terms.

use super::{Compiled, Loop, MAX_RUN_BYTES, Refused};
use crate::schedule::Effort;
use crate::sim::{CLOCK_HZ, Machine, Observer, Rules, Summary, Trace};

/// The clock counts of a loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clocks {
    /// Per block in the steady state, for 10, 12 and 14 rounds.
    pub block: [f64; 3],
    /// Per round of a block: the slope over the number of rounds.
    pub round: f64,
    /// Additional clocks per block beyond ten rounds at that slope: the last round, and everything else per block.
    pub last: f64,
}

impl Clocks {
    /// Gigabits per second of one SPE of the PlayStation 3, for each key size.
    pub fn gigabits(&self) -> [f64; 3] {
        self.block.map(|clocks| 128.0 * CLOCK_HZ / 1e9 / clocks)
    }
}

/// Measures a loop as the difference between two lengths, which excludes the fixed costs of a call.
///
/// # Errors
/// A message, if it cannot be compiled or stops.
pub fn clocks(of: Loop, effort: Effort) -> Result<Clocks, String> {
    clocks_by(of, effort, Rules::default())
}

/// Measures a loop on a machine with other rules than those that it was scheduled by.
///
/// # Errors
/// As [`clocks`].
pub fn clocks_by(of: Loop, effort: Effort, rules: Rules) -> Result<Clocks, String> {
    let mut block = [0.0; 3];
    for (clocks, rounds) in block.iter_mut().zip([10, 12, 14]) {
        let compiled = of.compile(rounds, effort)?;
        let long = cycles(&compiled, rounds, MAX_RUN_BYTES / 16, rules).map_err(|fault| fault.to_string())?;
        let short =
            cycles(&compiled, rounds, MAX_RUN_BYTES / 32, rules).map_err(|fault| fault.to_string())?;
        *clocks = (long - short) as f64 / (MAX_RUN_BYTES / 32) as f64;
    }
    let round = (block[2] - block[0]) / 4.0;
    Ok(Clocks { block, round, last: block[0] - 10.0 * round })
}

/// Cycles of a call for this number of blocks.
fn cycles(compiled: &Compiled, rounds: usize, blocks: usize, rules: Rules) -> Result<u64, Refused> {
    let keys = vec![[0; 16]; rounds + 1];
    let mut machine = Machine::with_rules(rules);
    compiled.load(&mut machine, &keys)?;
    Ok(compiled.run(&mut machine, &keys, &[0; 16], &mut vec![0; 16 * blocks])?.cycles)
}

/// Totals of a call with the data of one transfer, and its stalls by cause.
///
/// # Errors
/// A message, if it cannot be compiled or stops.
pub fn summary(of: Loop, rounds: usize) -> Result<Summary, String> {
    let mut summary = Summary::default();
    observe(of, rounds, &mut summary)?;
    Ok(summary)
}

/// The trace of both pipes for these cycles of such a call.
///
/// # Errors
/// A message, if it cannot be compiled or stops.
pub fn trace(of: Loop, rounds: usize, cycles: std::ops::Range<u64>) -> Result<Trace, String> {
    let mut trace = Trace::new(cycles);
    observe(of, rounds, &mut trace)?;
    Ok(trace)
}

fn observe(of: Loop, rounds: usize, observer: &mut impl Observer) -> Result<(), String> {
    let compiled = of.compile(rounds, Effort::Full)?;
    let keys = vec![[0; 16]; rounds + 1];
    let mut machine = Machine::new();
    compiled.load(&mut machine, &keys).map_err(|why| why.to_string())?;
    let run = compiled.run_observed(&mut machine, &keys, &[0; 16], &mut vec![0; MAX_RUN_BYTES], observer);
    run.map(drop).map_err(|fault| fault.to_string())
}
