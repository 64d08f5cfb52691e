//! CPU time of this process, for each timed stretch and as a curve over the whole run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process so far: user and system time of all threads.
pub(crate) fn process_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.clamp(0, 999_999_999) as u32)
}

/// CPU time of the child processes that have ended and were waited for. The resolution is one clock tick, usually 10
/// ms. `None` without `/proc`.
pub(crate) fn children_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in parentheses. The name may contain any character, so the fields are
    // counted from the last parenthesis.
    let mut fields = text.rsplit_once(") ")?.1.split(' ').skip(13);
    let ticks = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// CPU use of a contender in an interval of time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) name: Arc<str>,
    /// Start of the interval, in seconds since the start of the run.
    pub(crate) at: f64,
    /// Length of the interval.
    pub(crate) seconds: f64,
    /// CPU time divided by elapsed time: 1 is one CPU fully used.
    pub(crate) processors: f64,
}

/// Samples of CPU use during the timed stretches. A separate thread takes them.
#[derive(Clone)]
pub(crate) struct Curve(Arc<Mutex<State>>);

struct State {
    begun: Instant,
    /// The contender that is being timed, the time of its last sample, and the CPU time of the process at that sample.
    now: Option<(Arc<str>, Instant, Duration)>,
    samples: Vec<Sample>,
    /// The minimum time between two samples.
    interval: Duration,
    ended: bool,
}

/// Maximum number of samples. Beyond this number, pairs of samples are merged, because a plot cannot show so many.
const MAX_SAMPLES: usize = 2000;

impl Curve {
    /// Starts a thread that takes three samples in each stretch of this length. The time between samples is at least 5
    /// ms and at most 50 ms.
    pub(crate) fn start(stretch: Duration) -> Curve {
        let interval = (stretch / 3).clamp(Duration::from_millis(5), Duration::from_millis(50));
        let state = State { begun: Instant::now(), now: None, samples: Vec::new(), interval, ended: false };
        let curve = Curve(Arc::new(Mutex::new(state)));
        let watched = curve.clone();
        // If the thread cannot be started, there is still a sample at the end of each stretch.
        let _ = std::thread::Builder::new().name("cpu-time".into()).spawn(move || {
            loop {
                let mut state = watched.state();
                if state.ended {
                    return;
                }
                state.sample();
                let interval = state.interval;
                drop(state);
                std::thread::sleep(interval);
            }
        });
        curve
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a stretch of this contender.
    pub(crate) fn begin(&self, name: &Arc<str>) {
        let mut state = self.state();
        state.now = Some((Arc::clone(name), Instant::now(), process_time()));
    }

    /// Ends the stretch.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.sample();
        state.now = None;
    }

    /// Ends the sampling and returns all samples.
    pub(crate) fn finish(&self) -> Vec<Sample> {
        let mut state = self.state();
        state.ended = true;
        std::mem::take(&mut state.samples)
    }
}

impl State {
    fn sample(&mut self) {
        let Some((name, since, used)) = &self.now else { return };
        let (now, cpu) = (Instant::now(), process_time());
        let elapsed = now - *since;
        // The time since the last sample is too short for the resolution of the clocks.
        if elapsed < self.interval / 3 {
            return;
        }
        let at = (*since - self.begun).as_secs_f64();
        let processors = cpu.saturating_sub(*used).as_secs_f64() / elapsed.as_secs_f64();
        let name = Arc::clone(name);
        let seconds = elapsed.as_secs_f64();
        self.samples.push(Sample { name: Arc::clone(&name), at, seconds, processors });
        self.now = Some((name, now, cpu));
        if self.samples.len() > MAX_SAMPLES {
            // Merge pairs of samples, and sample half as often from now on.
            let all = std::mem::take(&mut self.samples);
            self.samples = merged(all);
            self.interval *= 2;
        }
    }
}

/// Merges each sample with the next one of the same contender.
fn merged(samples: Vec<Sample>) -> Vec<Sample> {
    let mut merged: Vec<Sample> = Vec::new();
    let mut open: Vec<(Arc<str>, usize)> = Vec::new();
    for sample in samples {
        match open.iter().position(|(name, _)| *name == sample.name) {
            Some(place) => {
                let first = &mut merged[open.swap_remove(place).1];
                let seconds = first.seconds + sample.seconds;
                first.processors =
                    (first.processors * first.seconds + sample.processors * sample.seconds) / seconds;
                first.seconds = seconds;
            }
            None => {
                open.push((Arc::clone(&sample.name), merged.len()));
                merged.push(sample);
            }
        }
    }
    merged
}

/// CPU use of one contender over its timed seconds.
pub(crate) struct CpuCurve {
    pub(crate) name: Arc<str>,
    /// Total timed seconds of the contender.
    pub(crate) seconds: f64,
    /// Points of the curve: the percentage of the timed seconds, and the number of CPUs in use at that point.
    pub(crate) points: Vec<(f64, f64)>,
}

/// One curve for each contender. The timed seconds are divided into `parts` equal parts, and each point is the average
/// over one part.
pub(crate) fn curves(samples: &[Sample], parts: usize) -> Vec<CpuCurve> {
    let mut whole: Vec<(Arc<str>, f64)> = Vec::new();
    for sample in samples {
        match whole.iter_mut().find(|(name, _)| *name == sample.name) {
            Some((_, seconds)) => *seconds += sample.seconds,
            None => whole.push((Arc::clone(&sample.name), sample.seconds)),
        }
    }
    let curve = |(name, whole): (Arc<str>, f64)| {
        let (mut points, mut begun, mut spent, mut used) = (Vec::new(), 0.0, 0.0, 0.0);
        for sample in samples.iter().filter(|sample| sample.name == name) {
            spent += sample.seconds;
            used += sample.seconds * sample.processors;
            if spent >= whole / parts as f64 {
                points.push(((begun + spent / 2.0) / whole * 100.0, used / spent));
                begun += spent;
                (spent, used) = (0.0, 0.0);
            }
        }
        CpuCurve { name, seconds: whole, points }
    };
    whole.into_iter().map(curve).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_timed_stretches_are_sampled() {
        let curve = Curve::start(Duration::from_millis(60));
        let (busy, idle): (Arc<str>, Arc<str>) = ("busy".into(), "idle".into());
        let before = process_time();
        curve.begin(&busy);
        while process_time() - before < Duration::from_millis(200) {
            std::hint::black_box(0);
        }
        curve.end();
        curve.begin(&idle);
        std::thread::sleep(Duration::from_millis(100));
        curve.end();
        let samples = curve.finish();
        let of = |name: &str| samples.iter().filter(move |sample| &*sample.name == name).collect::<Vec<_>>();
        assert!(!of("busy").is_empty() && !of("idle").is_empty());
        // Other tests of this process may run at the same time, so CPU time may also be counted in the idle stretch.
        assert!(of("busy").iter().any(|sample| sample.processors > 0.0), "{samples:?}");
        assert!(samples.windows(2).all(|pair| pair[0].at < pair[1].at));
    }

    #[test]
    fn samples_are_averaged_over_their_time() {
        let sample =
            |name: &str, seconds, processors| Sample { name: name.into(), at: 0.0, seconds, processors };
        let samples =
            [sample("a", 1.0, 2.0), sample("b", 1.0, 0.0), sample("a", 3.0, 1.0), sample("a", 4.0, 0.5)];
        let curves = curves(&samples, 2);
        assert_eq!((&*curves[0].name, curves[0].seconds), ("a", 8.0));
        assert_eq!(curves[0].points, [(25.0, 1.25), (75.0, 0.5)]);
        let merged = merged(samples.to_vec());
        assert_eq!(merged, [sample("a", 4.0, 1.25), sample("b", 1.0, 0.0), sample("a", 4.0, 0.5)]);
    }

    #[test]
    fn children_are_counted() {
        if !std::path::Path::new("/proc/self/stat").exists() {
            assert_eq!(children_time(), None);
            return;
        }
        let before = children_time().unwrap();
        // More than one clock tick of work.
        let count = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", count]).status().unwrap().success());
        assert!(children_time().unwrap() > before);
    }
}
