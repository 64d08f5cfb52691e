//! What a kernel takes, in the paper's terms.

use super::{Compiled, LARGEST, Loop, Refused};
use crate::schedule::Effort;
use crate::sim::{CLOCK_HZ, Machine, Observer, Rules, Summary, Trace};

/// Clocks of a loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clocks {
    /// Of a block in the steady state, for 10, 12 and 14 rounds.
    pub block: [f64; 3],
    /// Of a round of a block: the slope.
    pub round: f64,
    /// What a block takes more than ten rounds at that slope: the last round, and whatever comes once a block.
    pub last: f64,
}

impl Clocks {
    /// Gigabits per second of one SPE of the PlayStation 3, for each key size.
    pub fn gigabits(&self) -> [f64; 3] {
        self.block.map(|clocks| 128.0 * CLOCK_HZ / 1e9 / clocks)
    }
}

/// Measures a loop: the difference between two lengths, so that what happens once a call does not count.
///
/// # Errors
/// In words, if it cannot be compiled or stops.
pub fn clocks(of: Loop, effort: Effort) -> Result<Clocks, String> {
    clocks_by(of, effort, Rules::default())
}

/// The same on a machine with other rules than those that the loop was scheduled by.
///
/// # Errors
/// As [`clocks`].
pub fn clocks_by(of: Loop, effort: Effort, rules: Rules) -> Result<Clocks, String> {
    let mut block = [0.0; 3];
    for (clocks, rounds) in block.iter_mut().zip([10, 12, 14]) {
        let compiled = of.compile(rounds, effort)?;
        let long = cycles(&compiled, rounds, LARGEST / 16, rules).map_err(|fault| fault.to_string())?;
        let short = cycles(&compiled, rounds, LARGEST / 32, rules).map_err(|fault| fault.to_string())?;
        *clocks = (long - short) as f64 / (LARGEST / 32) as f64;
    }
    let round = (block[2] - block[0]) / 4.0;
    Ok(Clocks { block, round, last: block[0] - 10.0 * round })
}

/// Cycles of a call for so many blocks.
fn cycles(compiled: &Compiled, rounds: usize, blocks: usize, rules: Rules) -> Result<u64, Refused> {
    let keys = vec![[0; 16]; rounds + 1];
    let mut machine = Machine::with_rules(rules);
    compiled.load(&mut machine, &keys)?;
    Ok(compiled.run(&mut machine, &keys, &[0; 16], &mut vec![0; 16 * blocks])?.cycles)
}

/// Totals of a call with a transfer's worth of data, and its stalls by cause.
///
/// # Errors
/// In words, if it cannot be compiled or stops.
pub fn summary(of: Loop, rounds: usize) -> Result<Summary, String> {
    let mut summary = Summary::default();
    observe(of, rounds, &mut summary)?;
    Ok(summary)
}

/// Both pipes, cycle by cycle, in these cycles of such a call.
///
/// # Errors
/// In words, if it cannot be compiled or stops.
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
    let run = compiled.run_observed(&mut machine, &keys, &[0; 16], &mut vec![0; LARGEST], observer);
    run.map(drop).map_err(|fault| fault.to_string())
}
