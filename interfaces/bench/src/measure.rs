//! Rounds in which every contender runs once, in turn.

use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cpu_time::{Curve, Spent};
use super::energy::{Joules, Meter};
use super::workload::{Run, random};
use crate::error::{Result, failed};
use crate::host::Host;

/// Number and length of the rounds, and the instruments that are read.
pub(crate) struct Setting {
    /// Rounds that are counted, after one round of warm-up.
    pub(crate) rounds: usize,
    /// Time of each contender in each round.
    pub(crate) time: Duration,
    /// A contender that needs longer than this for a call is not measured with larger calls.
    pub(crate) max_call_time: Duration,
    pub(crate) curve: Curve,
    pub(crate) meter: Option<Meter>,
    pub(crate) host: Rc<dyn Host>,
}

/// An implementation that is measured, and another one that verifies its results.
pub(crate) struct Contender {
    /// The name in tables.
    pub(crate) name: Arc<str>,
    pub(crate) run: Run,
    pub(crate) verifier: Run,
    /// Seconds of setup before the first call. The choice of a kernel includes its self-test.
    pub(crate) setup_seconds: f64,
}

/// The median of the rounds, the slowest and the fastest round, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// The results of a contender.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) name: Arc<str>,
    /// Throughput.
    pub(crate) rate: Rate,
    /// Seconds of CPU time per byte; `None` for other programs.
    pub(crate) cpu: Option<f64>,
    /// Joules per byte, of all processor packages and of all GPUs.
    pub(crate) joules: Joules,
    /// Seconds of the first call, with self-tests, compilation and allocation. No other figure includes this time.
    pub(crate) first: Option<f64>,
}

impl Measured {
    pub(crate) fn json(&self) -> Value {
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
    pub(crate) fn of(mut rates: Vec<f64>) -> Rate {
        rates.sort_by(f64::total_cmp);
        let middle = rates.len() / 2;
        let median =
            if rates.len() % 2 == 1 { rates[middle] } else { (rates[middle - 1] + rates[middle]) / 2.0 };
        Rate { median, least: rates[0], most: rates[rates.len() - 1] }
    }

    pub(crate) fn json(&self) -> Value {
        json!({"median": self.median, "min": self.least, "max": self.most})
    }
}

/// Sums over the timed stretches of a contender.
struct Totals {
    rates: Vec<f64>,
    bytes: f64,
    spent: Spent,
    joules: Joules,
}

impl Totals {
    const NOTHING: Totals = Totals {
        rates: Vec::new(),
        bytes: 0.0,
        spent: Spent { elapsed: Duration::ZERO, cpu: Duration::ZERO },
        joules: Joules::ZERO,
    };

    fn add(&mut self, bytes: f64, stretch: &Stretch) {
        self.rates.push(bytes / stretch.spent.elapsed.as_secs_f64());
        self.bytes += bytes;
        self.spent.elapsed += stretch.spent.elapsed;
        self.spent.cpu += stretch.spent.cpu;
        self.joules = self.joules.plus(stretch.joules);
    }

    /// Joules per byte. RAPL counters are updated every millisecond and NVML counters every 100 ms, so the energy of
    /// less than a second is not reported.
    fn joules(&self) -> Joules {
        let is_long = self.spent.elapsed >= Duration::from_secs(1);
        if is_long { self.joules.per_byte(self.bytes) } else { Joules::default() }
    }
}

/// The rounds of every measurement: calls `turn` with each round and each index below `contenders`. Round 0 is the warm-up,
/// whose results must not be counted. The contender that runs first changes from round to round.
pub(crate) fn in_turn(
    setting: &Setting,
    contenders: usize,
    mut turn: impl FnMut(usize, usize) -> Result<()>,
) -> Result<()> {
    for round in 0..=setting.rounds {
        for number in 0..contenders {
            setting.host.check_stopped()?;
            turn(round, (number + round) % contenders)?;
        }
    }
    Ok(())
}

/// Checks that there is enough memory for the buffers of calls of this number of bytes.
pub(crate) fn check_memory(host: &dyn Host, bytes: usize) -> Result<()> {
    host.check_memory(
        3 * bytes as u64,
        "to measure calls of this size; --size and --messages give smaller ones",
    )
}

/// Measures all contenders on calls of `bytes` bytes. After the first call and after each timed stretch, the verifier
/// of the contender makes the same calls on the same data, and both outputs are compared. `after` is called at the end of each
/// round with its number; round 0 is the warm-up.
pub(crate) fn rounds(
    setting: &Setting,
    contenders: &mut [Contender],
    bytes: usize,
    mut after: impl FnMut(usize) -> Result<()>,
) -> Result<Vec<Measured>> {
    check_memory(&*setting.host, bytes)?;
    let mut buffers = Buffers::new(bytes);
    let mut firsts = Vec::new();
    for contender in &mut *contenders {
        setting.host.check_stopped()?;
        let first = buffers.checked(setting, contender, |data, contender, call| {
            let start = Instant::now();
            let digest = (contender.run)(data, call)?;
            Ok((1, digest, contender.setup_seconds + start.elapsed().as_secs_f64()))
        })?;
        firsts.push(first);
    }
    let mut totals: Vec<Totals> = contenders.iter().map(|_| Totals::NOTHING).collect();
    let (mut ended, count) = (0, contenders.len());
    in_turn(setting, count, |round, index| {
        let contender = &mut contenders[index];
        let stretch = buffers.checked(setting, contender, |data, contender, call| {
            let stretch = stretch(setting, contender, data, call)?;
            Ok((stretch.calls, stretch.digest, stretch))
        })?;
        if round > 0 {
            totals[index].add(stretch.calls as f64 * bytes as f64, &stretch);
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
pub(crate) struct Buffers {
    data: Vec<u8>,
    check: Vec<u8>,
    call: u64,
}

impl Buffers {
    /// Random data for calls of this number of bytes.
    pub(crate) fn new(bytes: usize) -> Buffers {
        Buffers { data: random(bytes), check: vec![0; bytes], call: 0 }
    }

    /// Changes the data, so that no contender finds the output of another one in its buffer, and runs `calls` on them. Then
    /// the verifier makes the same calls on the same data; output and digest must be equal. `calls` gets the number of its
    /// first call, and returns the number of its calls, their digest and its result.
    pub(crate) fn checked<T>(
        &mut self,
        setting: &Setting,
        contender: &mut Contender,
        calls: impl FnOnce(&mut [u8], &mut Contender, u64) -> Result<(u64, u128, T)>,
    ) -> Result<T> {
        self.data.iter_mut().for_each(|byte| *byte = !*byte);
        self.check.copy_from_slice(&self.data);
        let (count, digest, result) = calls(&mut self.data, contender, self.call)?;
        let mut expected = 0u128;
        for call in self.call..self.call + count {
            setting.host.check_stopped()?;
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

/// A number of consecutive calls.
struct Stretch {
    calls: u64,
    digest: u128,
    spent: Spent,
    joules: Joules,
}

fn stretch(setting: &Setting, contender: &mut Contender, data: &mut [u8], call: u64) -> Result<Stretch> {
    let (mut calls, mut batch, mut digest) = (0u64, 1u64, 0u128);
    let energy = setting.meter.as_ref().map(Meter::read);
    let (run, spent) = setting.curve.timed(&contender.name, || {
        let start = Instant::now();
        loop {
            for number in calls..calls + batch {
                digest = digest.rotate_left(1) ^ (contender.run)(black_box(data), call + number)?;
            }
            calls += batch;
            setting.host.check_stopped()?;
            if start.elapsed() >= setting.time {
                return Ok(());
            }
            // Read the clock about a hundred times in a stretch.
            batch = (calls / 64).max(1);
        }
    });
    let joules =
        setting.meter.as_ref().zip(energy).map_or(Joules::default(), |(meter, before)| meter.since(&before));
    run.map(|()| Stretch { calls, digest, spent, joules })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::TestHost;

    fn setting() -> Setting {
        let time = Duration::from_micros(100);
        Setting {
            rounds: 3,
            time,
            max_call_time: time,
            curve: Curve::start(),
            meter: None,
            host: Rc::new(TestHost),
        }
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
        let measured = rounds(&setting(), &mut contenders, 64, |_| Ok(())).unwrap();
        assert_eq!(measured.len(), 2);
        for one in measured {
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
            let error = rounds(&setting(), &mut [contender(Box::new(run))], 64, |_| Ok(())).unwrap_err();
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
        rounds(&setting(), &mut [contender(same()), contender(same())], 64, |_| Ok(())).unwrap();
        let idle = Box::new(|_: &mut [u8], _| Ok(0));
        let error =
            rounds(&setting(), &mut [contender(same()), contender(idle)], 64, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("different results"), "{error}");
    }

    #[test]
    fn energy_of_less_than_a_second_is_not_reported() {
        let joules = Joules { cpu: Some(6.0), gpu: None };
        let totals = |milliseconds| {
            let spent = Spent { elapsed: Duration::from_millis(milliseconds), cpu: Duration::ZERO };
            Totals { bytes: 3.0, spent, joules, ..Totals::NOTHING }
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
