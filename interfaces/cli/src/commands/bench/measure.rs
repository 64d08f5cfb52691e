//! Rounds in which every contender runs once, in turn.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::instruments::{Joules, Meter, Samples, Spent, timed};
use super::workload::{Run, random};
use crate::error::{Result, check_stopped, failed};

/// Number and length of the rounds, and the instruments.
pub(super) struct Setting<'s> {
    /// Rounds that are counted, after one round of warm-up.
    pub(super) rounds: usize,
    /// Time of each contender in each round.
    pub(super) time: Duration,
    pub(super) samples: &'s Samples,
    pub(super) meter: &'s Meter,
}

/// An implementation that is measured, and another one that verifies its results.
pub(super) struct Contender {
    /// The name in tables.
    pub(super) name: Arc<str>,
    pub(super) run: Run,
    pub(super) verifier: Run,
    /// Seconds of setup before the first call. The choice of a kernel includes its self-test.
    pub(super) setup_seconds: f64,
}

/// The median of the rounds, the slowest and the fastest round, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

/// The results of a contender.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) name: Arc<str>,
    /// Throughput.
    pub(super) rate: Rate,
    /// Seconds of CPU time per byte; `None` for other programs.
    pub(super) cpu: Option<f64>,
    /// Joules per byte, of all processor packages and of all GPUs.
    pub(super) joules: Joules,
    /// Seconds of the first call, with self-tests, compilation and allocation. No other figure includes this time.
    pub(super) first: Option<f64>,
}

impl Measured {
    pub(super) fn json(&self) -> Value {
        let mut json = self.rate.json();
        let per_gb = |value: Option<f64>| json!(value.map(|value| value * 1e9));
        json["cpu_seconds_per_gb"] = per_gb(self.cpu);
        json["joules_per_gb"] = per_gb(self.joules.cpu);
        json["gpu_joules_per_gb"] = per_gb(self.joules.gpu);
        json["first_call_seconds"] = json!(self.first);
        json
    }
}

impl Rate {
    /// Computes the statistics of the rates of the rounds. There must be at least one rate.
    ///
    /// The crate criterion does not export its statistics, so they are computed here.
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

/// Sums over the timed stretches of a contender.
struct Totals {
    rates: Vec<f64>,
    bytes: f64,
    spent: Spent,
}

impl Totals {
    const NOTHING: Totals = Totals { rates: Vec::new(), bytes: 0.0, spent: Spent::NOTHING };

    fn add(&mut self, bytes: f64, spent: Spent) {
        self.rates.push(bytes / spent.elapsed.as_secs_f64());
        self.bytes += bytes;
        self.spent.add(spent);
    }

    /// Joules per byte. RAPL counters are updated every millisecond and NVML counters every 100 ms, so the energy of
    /// less than a second is not reported.
    fn joules(&self) -> Joules {
        let is_long = self.spent.elapsed >= Duration::from_secs(1);
        if is_long { self.spent.joules.per_byte(self.bytes) } else { Joules::default() }
    }
}

/// The rounds of every measurement: calls `turn` with each round and each index below `contenders`. Round 0 is the warm-up,
/// whose results must not be counted. The contender that runs first changes from round to round.
pub(super) fn in_turn(
    rounds: usize,
    contenders: usize,
    mut turn: impl FnMut(usize, usize) -> Result<()>,
) -> Result<()> {
    for round in 0..=rounds {
        for number in 0..contenders {
            check_stopped()?;
            turn(round, (number + round) % contenders)?;
        }
    }
    Ok(())
}

/// Measures all contenders on calls of `bytes` bytes. After the first call and after each timed stretch, the verifier
/// of the contender makes the same calls on the same data, and both outputs are compared. `after` is called at the end of each
/// round with its number; round 0 is the warm-up.
pub(super) fn rounds(
    setting: &Setting<'_>,
    contenders: &mut [Contender],
    bytes: usize,
    mut after: impl FnMut(usize) -> Result<()>,
) -> Result<Vec<Measured>> {
    let mut buffers = Buffers::new(bytes);
    let mut firsts = Vec::new();
    for contender in &mut *contenders {
        check_stopped()?;
        let first = buffers.checked(contender, |data, contender, call| {
            let start = Instant::now();
            let digest = (contender.run)(data, call)?;
            Ok((1, digest, contender.setup_seconds + start.elapsed().as_secs_f64()))
        })?;
        firsts.push(first);
    }
    let mut totals: Vec<Totals> = contenders.iter().map(|_| Totals::NOTHING).collect();
    let (mut ended, count) = (0, contenders.len());
    in_turn(setting.rounds, count, |round, index| {
        let contender = &mut contenders[index];
        let (calls, spent) = buffers.checked(contender, |data, contender, call| {
            let (calls, digest, spent) = stretch(setting, contender, data, call)?;
            Ok((calls, digest, (calls, spent)))
        })?;
        if round > 0 {
            totals[index].add(calls as f64 * bytes as f64, spent);
        }
        ended += 1;
        if ended % count == 0 { after(round) } else { Ok(()) }
    })?;
    let measured = contenders.iter().zip(totals).zip(firsts).map(|((contender, totals), first)| Measured {
        name: Arc::clone(&contender.name),
        cpu: Some(totals.spent.cpu.as_secs_f64() / totals.bytes),
        joules: totals.joules(),
        rate: Rate::of(totals.rates),
        first: Some(first),
    });
    Ok(measured.collect())
}

/// The data of the calls, a copy for the verifier, and the number of the next call.
pub(super) struct Buffers {
    data: Vec<u8>,
    check: Vec<u8>,
    call: u64,
}

impl Buffers {
    /// Random data for calls of this number of bytes.
    pub(super) fn new(bytes: usize) -> Buffers {
        Buffers { data: random(bytes), check: vec![0; bytes], call: 0 }
    }

    /// Changes the data, so that no contender finds the output of another one in its buffer, and runs `calls` on them. Then
    /// the verifier makes the same calls on the same data; output and digest must be equal. `calls` gets the number of its
    /// first call, and returns the number of its calls, their digest and its result.
    pub(super) fn checked<T>(
        &mut self,
        contender: &mut Contender,
        calls: impl FnOnce(&mut [u8], &mut Contender, u64) -> Result<(u64, u128, T)>,
    ) -> Result<T> {
        self.data.iter_mut().for_each(|byte| *byte = !*byte);
        self.check.copy_from_slice(&self.data);
        let (count, digest, result) = calls(&mut self.data, contender, self.call)?;
        let mut expected = 0u128;
        for call in self.call..self.call + count {
            check_stopped()?;
            expected = expected.rotate_left(1) ^ (contender.verifier)(&mut self.check, call)?;
        }
        self.call += count;
        if self.data != self.check || digest != expected {
            return Err(failed(format!(
                "{} and the CPU kernel that verifies it gave different results: report this, and do not use it",
                contender.name
            )));
        }
        Ok(result)
    }
}

/// Makes calls until the time of the setting is over; returns their number, their digest and what they took.
fn stretch(
    setting: &Setting<'_>,
    contender: &mut Contender,
    data: &mut [u8],
    call: u64,
) -> Result<(u64, u128, Spent)> {
    let (mut calls, mut batch, mut digest) = (0u64, 1u64, 0u128);
    let energy = setting.meter.read();
    let (run, mut spent) = timed(|| {
        let start = Instant::now();
        loop {
            for number in calls..calls + batch {
                digest = digest.rotate_left(1) ^ (contender.run)(black_box(data), call + number)?;
            }
            calls += batch;
            check_stopped()?;
            if start.elapsed() >= setting.time {
                return Ok(());
            }
            // Read the clock about a hundred times in a stretch.
            batch = (calls / 64).max(1);
        }
    });
    spent.joules = setting.meter.since(&energy);
    setting.samples.add(&contender.name, spent);
    run.map(|()| (calls, digest, spent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(contenders: &mut [Contender]) -> Result<Vec<Measured>> {
        let meter = Meter { packages: Err("not in tests".into()), gpus: None };
        let (rounds, time) = (3, Duration::from_micros(100));
        let setting = Setting { rounds, time, samples: &Samples::default(), meter: &meter };
        super::rounds(&setting, contenders, 64, |_| Ok(()))
    }

    fn adding(what: u8) -> Run {
        Box::new(move |data, call| {
            data.iter_mut().for_each(|byte| *byte = byte.wrapping_add(what ^ call as u8));
            Ok(u128::from(call))
        })
    }

    fn contender(run: Run) -> Contender {
        Contender { name: "c".into(), run, verifier: adding(3), setup_seconds: 0.0 }
    }

    #[test]
    fn correct_contenders_are_measured() {
        let mut contenders = [contender(adding(3)), contender(adding(3))];
        let results = measured(&mut contenders).unwrap();
        assert_eq!(results.len(), 2);
        for one in results {
            let Rate { median, least, most } = one.rate;
            assert!(0.0 < least && least <= median && median <= most);
        }
    }

    /// A single call that gives wrong data or a wrong digest is detected among many correct calls.
    #[test]
    fn one_wrong_call_is_found() {
        for wrong_data in [true, false] {
            let mut right = adding(3);
            let run = move |data: &mut [u8], call| {
                let digest = right(data, call)?;
                if call != 7 {
                    return Ok(digest);
                }
                data[5] ^= u8::from(wrong_data) << 4;
                Ok(digest ^ u128::from(!wrong_data))
            };
            let error = measured(&mut [contender(Box::new(run))]).unwrap_err();
            assert!(error.to_string().contains("different results"), "{error}");
        }
    }

    /// A contender that does nothing is detected, even if all contenders give the same output and another contender ran
    /// before.
    #[test]
    fn the_output_of_another_contender_is_not_accepted() {
        let same = || -> Run {
            Box::new(|data, _| {
                data.fill(7);
                Ok(0)
            })
        };
        let contender = |run| Contender { name: "c".into(), run, verifier: same(), setup_seconds: 0.0 };
        measured(&mut [contender(same()), contender(same())]).unwrap();
        let idle = Box::new(|_: &mut [u8], _| Ok(0));
        let error = measured(&mut [contender(same()), contender(idle)]).unwrap_err();
        assert!(error.to_string().contains("different results"), "{error}");
    }

    #[test]
    fn energy_of_less_than_a_second_is_not_reported() {
        let joules = Joules { cpu: Some(6.0), gpu: None };
        let totals = |milliseconds| {
            let elapsed = Duration::from_millis(milliseconds);
            Totals { bytes: 3.0, spent: Spent { elapsed, joules, ..Spent::NOTHING }, ..Totals::NOTHING }
        };
        assert_eq!(totals(990).joules(), Joules::default());
        assert_eq!(totals(1000).joules(), Joules { cpu: Some(2.0), gpu: None });
    }

    #[test]
    fn medians() {
        assert_eq!(Rate::of(vec![3.0, 1.0, 2.0]), Rate { median: 2.0, least: 1.0, most: 3.0 });
        assert_eq!(Rate::of(vec![4.0, 1.0, 2.0, 3.0]).median, 2.5);
    }
}
