//! Elapsed time and CPU time of this process, for each timed stretch and as a curve over the whole run.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
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

/// CPU use of a contender in one or several timed stretches.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) name: Arc<str>,
    /// Start of the first stretch, in seconds since the start of the run.
    pub(crate) at: f64,
    /// Timed seconds.
    pub(crate) seconds: f64,
    /// CPU time divided by timed seconds: 1 is one CPU fully used.
    pub(crate) processors: f64,
}

/// Samples of CPU use during the timed stretches of a run.
#[derive(Clone)]
pub(crate) struct Curve(Rc<RefCell<State>>);

struct State {
    begun: Instant,
    samples: Vec<Sample>,
    /// A sample of fewer seconds is extended by the next stretch of its contender.
    shortest: f64,
}

/// Maximum number of samples. Beyond this number, samples are merged, because a plot cannot show so many.
const MAX_SAMPLES: usize = 2000;

/// What one timed stretch took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    pub(crate) elapsed: Duration,
    /// CPU time of the process.
    pub(crate) cpu: Duration,
}

impl Curve {
    /// Starts a run.
    pub(crate) fn start() -> Curve {
        // The clocks do not resolve less than this.
        let state = State { begun: Instant::now(), samples: Vec::new(), shortest: 0.002 };
        Curve(Rc::new(RefCell::new(state)))
    }

    /// Times a stretch of this contender, and adds its CPU use to the samples.
    pub(crate) fn timed<T>(&self, name: &Arc<str>, stretch: impl FnOnce() -> T) -> (T, Spent) {
        let before = process_time();
        let start = Instant::now();
        let returned = stretch();
        let elapsed = start.elapsed();
        let cpu = process_time().saturating_sub(before);
        let mut state = self.0.borrow_mut();
        let seconds = elapsed.as_secs_f64();
        let processors = cpu.as_secs_f64() / seconds.max(1e-9);
        let at = (start - state.begun).as_secs_f64();
        state.add(Sample { name: Arc::clone(name), at, seconds, processors });
        (returned, Spent { elapsed, cpu })
    }

    /// Ends the run and returns all samples.
    pub(crate) fn finish(&self) -> Vec<Sample> {
        std::mem::take(&mut self.0.borrow_mut().samples)
    }
}

impl State {
    fn add(&mut self, sample: Sample) {
        match self.samples.iter_mut().rfind(|last| last.name == sample.name) {
            Some(last) if last.seconds < self.shortest => {
                let used = last.processors * last.seconds + sample.processors * sample.seconds;
                last.seconds += sample.seconds;
                last.processors = used / last.seconds.max(1e-9);
            }
            _ => self.samples.push(sample),
        }
        if self.samples.len() > MAX_SAMPLES {
            self.shortest *= 2.0;
            std::mem::take(&mut self.samples).into_iter().for_each(|sample| self.add(sample));
        }
    }
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
        let curve = Curve::start();
        let (busy, idle): (Arc<str>, Arc<str>) = ("busy".into(), "idle".into());
        let work = || {
            let before = process_time();
            while process_time() - before < Duration::from_millis(50) {
                std::hint::black_box(0);
            }
        };
        work();
        let (_, spent) = curve.timed(&busy, work);
        assert!(spent.cpu >= Duration::from_millis(50));
        let (slept, spent) = curve.timed(&idle, || {
            std::thread::sleep(Duration::from_millis(20));
            7
        });
        assert!(slept == 7 && spent.elapsed >= Duration::from_millis(20));
        let samples = curve.finish();
        assert_eq!(samples.iter().map(|sample| &*sample.name).collect::<Vec<_>>(), ["busy", "idle"]);
        assert!(samples[0].processors > 0.0 && samples[0].at > 0.0 && samples[0].at < samples[1].at);
        assert!(curve.finish().is_empty());
    }

    #[test]
    fn short_samples_are_merged() {
        let mut state = State { begun: Instant::now(), samples: Vec::new(), shortest: 1.0 };
        let sample =
            |name: &str, seconds, processors| Sample { name: name.into(), at: 0.0, seconds, processors };
        for (name, seconds, processors) in
            [("a", 0.25, 2.0), ("b", 1.0, 0.0), ("a", 0.75, 1.0), ("a", 4.0, 0.5)]
        {
            state.add(sample(name, seconds, processors));
        }
        assert_eq!(state.samples, [sample("a", 1.0, 1.25), sample("b", 1.0, 0.0), sample("a", 4.0, 0.5)]);
        for _ in 0..3 * MAX_SAMPLES {
            state.add(sample("a", 1.0, 1.0));
        }
        assert!(state.samples.len() <= MAX_SAMPLES && state.shortest > 1.0);
        let whole: f64 = state.samples.iter().map(|sample| sample.seconds).sum();
        assert!((whole - (6.0 + 3.0 * MAX_SAMPLES as f64)).abs() < 1e-6);
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
