//! Measures the contenders in rounds. In each round, every contender runs once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockstep_bench::workload::{Run, invert, random, repeat};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::error::{Result, check_stopped, ensure};

/// Number and length of the rounds.
pub(super) struct Setting {
    /// Number of rounds whose results count. A warm-up round precedes them.
    pub(super) rounds: usize,
    /// Time of each contender in each round.
    pub(super) time: Duration,
    /// True if the time of each call is recorded, as the suite `latency` needs.
    pub(super) times_calls: bool,
}

/// An implementation that is measured, together with another implementation that verifies its results.
pub(super) struct Contender {
    /// The name in tables.
    pub(super) name: Arc<str>,
    pub(super) run: Run,
    pub(super) verifier: Run,
    /// Seconds of setup before the first call. The choice of a kernel includes its self-test.
    pub(super) setup_seconds: f64,
}

/// Statistics of the rounds: the median, the least and the greatest value. Values are bytes per second; in the
/// suite `latency`, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rate {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

/// The results of a contender.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    pub(super) name: Arc<str>,
    /// Throughput.
    pub(super) rate: Rate,
    /// Seconds of CPU time per byte; `None` for other programs.
    pub(super) cpu: Option<f64>,
    /// Seconds of the first call, with self-tests, compilation and allocation. No other figure includes this time.
    pub(super) first: Option<f64>,
    /// Seconds of each call, in ascending order, if they are recorded.
    pub(super) times: Vec<f64>,
}

impl Measured {
    pub(super) fn json(&self) -> Value {
        let mut json = self.rate.json();
        json["cpu_seconds_per_gb"] = self.cpu.map(|seconds| seconds * 1e9).into();
        json["first_call_seconds"] = json!(self.first);
        json
    }
}

impl Rate {
    /// Computes the statistics of one or more values.
    pub(super) fn of(mut rates: Vec<f64>) -> Rate {
        rates.sort_by(f64::total_cmp);
        let middle = rates.len() / 2;
        let median =
            if rates.len() % 2 == 1 { rates[middle] } else { (rates[middle - 1] + rates[middle]) / 2.0 };
        Rate { median, least: rates[0], most: rates[rates.len() - 1] }
    }

    pub(super) fn json(&self) -> Value {
        json!({"median": self.median, "min": self.least, "max": self.most})
    }
}

/// Measures all contenders on calls of `bytes` bytes. After the first call and after each timed stretch, the verifier
/// of the contender makes the same calls on the same data, and both outputs are compared. `after` is called at the end of each
/// round with its number; round 0 is the warm-up.
pub(super) fn rounds(
    setting: &Setting,
    contenders: &mut [Contender],
    bytes: usize,
    mut after: impl FnMut(usize) -> Result<()>,
) -> Result<Vec<Measured>> {
    let mut buffers = Buffers { data: random(bytes), check: vec![0; bytes], call: 0 };
    // A stretch of length 0 is one call.
    let one_call = Setting { time: Duration::ZERO, ..*setting };
    let mut all = Vec::new();
    for contender in &mut *contenders {
        check_stopped()?;
        let (spent, _) = buffers.stretch(&one_call, contender)?;
        let first = Some(contender.setup_seconds + spent.elapsed.as_secs_f64());
        let measured = Measured { name: Arc::clone(&contender.name), first, ..Measured::default() };
        all.push((measured, Vec::new(), Spent::NOTHING));
    }
    for round in 0..=setting.rounds {
        for number in 0..contenders.len() {
            check_stopped()?;
            // The contender that runs first changes from round to round.
            let index = (number + round) % contenders.len();
            let (spent, times) = buffers.stretch(setting, &mut contenders[index])?;
            if round > 0 {
                let (measured, rates, total) = &mut all[index];
                rates.push(spent.rate());
                total.add(spent);
                measured.times.extend(times);
            }
        }
        after(round)?;
    }
    let finish = |(mut measured, rates, total): (Measured, Vec<f64>, Spent)| {
        measured.times.sort_by(f64::total_cmp);
        let cpu = Some(total.cpu.as_secs_f64() / total.bytes);
        Measured { rate: Rate::of(rates), cpu, ..measured }
    };
    Ok(all.into_iter().map(finish).collect())
}

/// The time of timed stretches.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spent {
    /// Number of bytes that the calls processed.
    bytes: f64,
    elapsed: Duration,
    /// CPU time of the process.
    cpu: Duration,
}

impl Spent {
    const NOTHING: Spent = Spent { bytes: 0.0, elapsed: Duration::ZERO, cpu: Duration::ZERO };

    fn add(&mut self, more: Spent) {
        self.bytes += more.bytes;
        self.elapsed += more.elapsed;
        self.cpu += more.cpu;
    }

    /// Bytes per second.
    fn rate(self) -> f64 {
        self.bytes / self.elapsed.as_secs_f64()
    }
}

/// Runs a stretch and measures its time. The caller must set the bytes in the result.
fn timed<T>(stretch: impl FnOnce() -> T) -> (T, Spent) {
    let before = process_time();
    let start = Instant::now();
    let returned = stretch();
    let elapsed = start.elapsed();
    (returned, Spent { bytes: 0.0, elapsed, cpu: process_time().saturating_sub(before) })
}

/// CPU time of this process so far: user and system time of all threads.
fn process_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}

/// The maximum number of recorded times in a stretch. The limit bounds the memory that the times need.
const MAX_TIMES: usize = 1_000_000;

/// The data that the contender processes, a copy of the data for the verifier, and the number of the next call.
struct Buffers {
    data: Vec<u8>,
    check: Vec<u8>,
    call: u64,
}

impl Buffers {
    /// Changes the data, so that no contender finds the output of another contender in its buffer. Then the contender makes calls
    /// until the time of the setting has passed, and the verifier makes the same calls on the same data. Both must have the same
    /// output and the same digest. Returns the time of the calls and, if they are recorded, the seconds of each call.
    fn stretch(&mut self, setting: &Setting, contender: &mut Contender) -> Result<(Spent, Vec<f64>)> {
        invert(&mut self.data);
        self.check.copy_from_slice(&self.data);
        let (mut calls, mut batch, mut digest, mut times) = (0u64, 1u64, 0u128, Vec::new());
        let (run, mut spent) = timed(|| -> Result<()> {
            let start = Instant::now();
            loop {
                let begun = Instant::now();
                let first = self.call + calls;
                digest = repeat(&mut contender.run, &mut self.data, first..first + batch, digest)?;
                calls += batch;
                if setting.times_calls {
                    times.push(begun.elapsed().as_secs_f64());
                } else {
                    // The number of calls between two readings of the clock grows with the number of calls so far. A long stretch
                    // therefore reads the clock only a few hundred times, and the readings take no significant time.
                    batch = (calls / 64).max(1);
                }
                check_stopped()?;
                if start.elapsed() >= setting.time || times.len() == MAX_TIMES {
                    return Ok(());
                }
            }
        });
        spent.bytes = calls as f64 * self.data.len() as f64;
        run?;
        let mut expected = 0u128;
        for call in self.call..self.call + calls {
            check_stopped()?;
            expected = expected.rotate_left(1) ^ (contender.verifier)(&mut self.check, call)?;
        }
        self.call += calls;
        let fault =
            format_args!("{} and the CPU kernel that verifies it gave different results", contender.name);
        let is_verified = self.data == self.check && digest == expected;
        ensure(is_verified, format_args!("{fault}: report this, and do not use it"))?;
        Ok((spent, times))
    }
}

#[cfg(test)]
mod tests;
