//! Rounds in which every contender runs once, in turn.

use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cpu_time::{self, Curve};
use super::energy::{Joules, Meter};
use super::work::{Run, random};
use crate::error::{Result, failed};
use crate::host::Host;

/// How long and how often it is measured, and what is noted on the way.
pub(crate) struct Setting {
    /// Rounds that count, after one of warm-up.
    pub(crate) rounds: usize,
    /// For each contender in each round.
    pub(crate) time: Duration,
    /// Who takes longer than this for one call is not asked for larger ones.
    pub(crate) patience: Duration,
    pub(crate) curve: Curve,
    pub(crate) meter: Option<Meter>,
    pub(crate) host: Rc<dyn Host>,
}

/// Someone who does the work, and someone else who does it again to verify it.
pub(crate) struct Contender {
    /// Who, for tables.
    pub(crate) name: Arc<str>,
    pub(crate) run: Run,
    pub(crate) judge: Run,
    /// Seconds that were spent before the first call: choosing a kernel has it tested.
    pub(crate) prepared: f64,
}

/// The median of the rounds, and the spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// What a contender reached.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) name: Arc<str>,
    /// In bytes per second.
    pub(crate) rate: Rate,
    /// Seconds of CPU time for a byte; nothing for programs that are not children of ours to the end.
    pub(crate) cpu: Option<f64>,
    /// Joules for a byte, of all processor packages and of all GPUs, where they tell.
    pub(crate) joules: Joules,
    /// Seconds of the first call: self-tests, compilation, memory. It counts for nothing else.
    pub(crate) first: Option<f64>,
}

impl Measured {
    pub(crate) fn json(&self) -> Value {
        let Rate { median, least, most } = self.rate;
        json!({
            "median": median, "min": least, "max": most,
            "cpu_seconds_per_gb": self.cpu.map(|cpu| cpu * 1e9),
            "joules_per_gb": self.joules.cpu.map(|joules| joules * 1e9),
            "gpu_joules_per_gb": self.joules.gpu.map(|joules| joules * 1e9),
            "first_call_seconds": self.first,
        })
    }
}

impl Rate {
    /// Of some rounds, at least one.
    pub(crate) fn of(mut rates: Vec<f64>) -> Rate {
        rates.sort_by(f64::total_cmp);
        let middle = rates.len() / 2;
        let median =
            if rates.len() % 2 == 1 { rates[middle] } else { (rates[middle - 1] + rates[middle]) / 2.0 };
        Rate { median, least: rates[0], most: rates[rates.len() - 1] }
    }
}

/// What the stretches of a contender took so far.
struct Taken {
    rates: Vec<f64>,
    bytes: f64,
    seconds: f64,
    cpu: Duration,
    joules: Joules,
}

impl Taken {
    const NOTHING: Taken =
        Taken { rates: Vec::new(), bytes: 0.0, seconds: 0.0, cpu: Duration::ZERO, joules: Joules::ZERO };

    /// Counters move in steps of milliseconds, NVML's of a tenth of a second: over less than a second they tell nothing.
    fn joules(&self) -> Joules {
        if self.seconds < 1.0 { Joules::default() } else { self.joules.over(self.bytes) }
    }
}

/// An error if there is too little memory for the buffers of calls of this number of bytes.
pub(crate) fn check_memory(host: &dyn Host, bytes: usize) -> Result<()> {
    host.check_memory(
        3 * bytes as u64,
        "to measure calls of this size; --size and --messages give smaller ones",
    )
}

/// Runs all of them on calls of so many bytes. What a contender makes is compared with what its judge makes of the same
/// data by the same calls: after the first call and after each stretch that is timed.
pub(crate) fn rounds(setting: &Setting, contenders: &mut [Contender], bytes: usize) -> Result<Vec<Measured>> {
    rounds_with(setting, contenders, bytes, |_| Ok(()))
}

/// The same, with something that belongs to each round after it; round 0 warms up.
pub(crate) fn rounds_with(
    setting: &Setting,
    contenders: &mut [Contender],
    bytes: usize,
    mut after: impl FnMut(usize) -> Result<()>,
) -> Result<Vec<Measured>> {
    check_memory(&*setting.host, bytes)?;
    let mut data = random(bytes);
    let mut check = vec![0; bytes];
    let mut call = 0;
    let mut firsts = Vec::new();
    for contender in &mut *contenders {
        setting.host.check_stopped()?;
        renew(&mut data, &mut check);
        let start = Instant::now();
        let digest = (contender.run)(&mut data, call)?;
        firsts.push(contender.prepared + start.elapsed().as_secs_f64());
        verify(setting, contender, (call, 1), digest, &data, &mut check)?;
        call += 1;
    }
    let mut taken: Vec<Taken> = contenders.iter().map(|_| Taken::NOTHING).collect();
    for round in 0..=setting.rounds {
        for turn in 0..contenders.len() {
            setting.host.check_stopped()?;
            // Each round begins with another one.
            let index = (turn + round) % contenders.len();
            let contender = &mut contenders[index];
            renew(&mut data, &mut check);
            let stretch = stretch(setting, contender, &mut data, call)?;
            verify(setting, contender, (call, stretch.calls), stretch.digest, &data, &mut check)?;
            call += stretch.calls;
            // The first round warms up caches and clocks.
            if round > 0 {
                let bytes = stretch.calls as f64 * bytes as f64;
                let taken = &mut taken[index];
                taken.rates.push(bytes / stretch.seconds);
                taken.bytes += bytes;
                taken.cpu += stretch.cpu;
                taken.seconds += stretch.seconds;
                taken.joules = taken.joules.and(stretch.joules);
            }
        }
        after(round)?;
    }
    let measured = contenders.iter().zip(taken).zip(firsts).map(|((contender, taken), first)| Measured {
        name: Arc::clone(&contender.name),
        cpu: Some(taken.cpu.as_secs_f64() / taken.bytes),
        joules: taken.joules(),
        rate: Rate::of(taken.rates),
        first: Some(first),
    });
    Ok(measured.collect())
}

/// Other data than before, with a copy for the judge: nobody finds there what somebody else has made.
pub(super) fn renew(data: &mut [u8], check: &mut [u8]) {
    data.iter_mut().for_each(|byte| *byte = !*byte);
    check.copy_from_slice(data);
}

/// Some calls in a row.
struct Stretch {
    calls: u64,
    digest: u128,
    seconds: f64,
    cpu: Duration,
    joules: Joules,
}

fn stretch(setting: &Setting, contender: &mut Contender, data: &mut [u8], call: u64) -> Result<Stretch> {
    let (mut calls, mut batch, mut digest) = (0u64, 1u64, 0u128);
    let energy = setting.meter.as_ref().map(Meter::read);
    setting.curve.begin(&contender.name);
    let cpu = cpu_time::of_process();
    let start = Instant::now();
    let elapsed = loop {
        for number in calls..calls + batch {
            digest = digest.rotate_left(1) ^ (contender.run)(black_box(data), call + number)?;
        }
        calls += batch;
        setting.host.check_stopped()?;
        let elapsed = start.elapsed();
        if elapsed >= setting.time {
            break elapsed;
        }
        // Look at the clock about a hundred times in all.
        batch = (calls / 64).max(1);
    };
    let cpu = cpu_time::of_process() - cpu;
    setting.curve.end();
    let joules =
        setting.meter.as_ref().zip(energy).map_or(Joules::default(), |(meter, before)| meter.since(&before));
    Ok(Stretch { calls, digest, seconds: elapsed.as_secs_f64(), cpu, joules })
}

/// The judge makes the same calls on the same data, and must come to the same.
pub(super) fn verify(
    setting: &Setting,
    contender: &mut Contender,
    (first, calls): (u64, u64),
    digest: u128,
    data: &[u8],
    check: &mut [u8],
) -> Result<()> {
    let mut expected = 0u128;
    for call in first..first + calls {
        setting.host.check_stopped()?;
        expected = expected.rotate_left(1) ^ (contender.judge)(check, call)?;
    }
    if data != check || digest != expected {
        return Err(failed(format!(
            "{} computed something else than the processor that verifies it: report this, and do not use it",
            contender.name
        )));
    }
    Ok(())
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
            patience: time,
            curve: Curve::start(time),
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
        Contender { name: "c".into(), run, judge: adding(3), prepared: 0.0 }
    }

    #[test]
    fn what_is_right_is_measured() {
        let mut contenders = [contender(adding(3)), contender(adding(3))];
        let measured = rounds(&setting(), &mut contenders, 64).unwrap();
        assert_eq!(measured.len(), 2);
        for one in measured {
            let Rate { median, least, most } = one.rate;
            assert!(0.0 < least && least <= median && median <= most);
        }
    }

    /// Wrong once in the middle of many calls, in data or in the digest, is found.
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
            let error = rounds(&setting(), &mut [contender(Box::new(run))], 64).unwrap_err();
            assert!(error.to_string().contains("something else"), "{error}");
        }
    }

    /// Who leaves there what somebody else has made is found, though it is what all come to.
    #[test]
    fn what_others_made_is_not_taken() {
        let same = || -> Run {
            Box::new(|data, _| {
                data.fill(7);
                Ok(0)
            })
        };
        let contender = |run| Contender { name: "c".into(), run, judge: same(), prepared: 0.0 };
        rounds(&setting(), &mut [contender(same()), contender(same())], 64).unwrap();
        let idle = Box::new(|_: &mut [u8], _| Ok(0));
        let error = rounds(&setting(), &mut [contender(same()), contender(idle)], 64).unwrap_err();
        assert!(error.to_string().contains("something else"), "{error}");
    }

    #[test]
    fn energy_of_less_than_a_second_is_not_told() {
        let joules = Joules { cpu: Some(6.0), gpu: None };
        let taken = |seconds| Taken { bytes: 3.0, seconds, joules, ..Taken::NOTHING };
        assert_eq!(taken(0.99).joules(), Joules::default());
        assert_eq!(taken(1.0).joules(), Joules { cpu: Some(2.0), gpu: None });
    }

    #[test]
    fn medians() {
        assert_eq!(Rate::of(vec![3.0, 1.0, 2.0]), Rate { median: 2.0, least: 1.0, most: 3.0 });
        assert_eq!(Rate::of(vec![4.0, 1.0, 2.0, 3.0]).median, 2.5);
    }
}
