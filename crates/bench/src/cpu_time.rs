//! CPU time of this process: of each stretch that is measured, and as a curve over a run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process so far, of all threads, in the program and in the system for it.
pub(crate) fn of_process() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.clamp(0, 999_999_999) as u32)
}

/// CPU time of the children that have ended and were waited for; in steps of the system's clock, a hundredth of a second.
/// Nothing where the system does not tell.
pub(crate) fn of_children() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in brackets, which may hold anything.
    let mut fields = text.rsplit_once(") ")?.1.split(' ').skip(13);
    let ticks = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// A stretch of time, who was at work in it, and how many processors were.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) who: Arc<str>,
    /// Seconds since the beginning of the run, at the beginning of the stretch.
    pub(crate) at: f64,
    /// Its length.
    pub(crate) seconds: f64,
    /// CPU time divided by time: 1 is one processor all the time.
    pub(crate) processors: f64,
}

/// Samples of CPU use while something is measured, taken by a thread of its own.
#[derive(Clone)]
pub(crate) struct Curve(Arc<Mutex<State>>);

struct State {
    begun: Instant,
    /// Who is at work, and since when with how much CPU time.
    now: Option<(Arc<str>, Instant, Duration)>,
    samples: Vec<Sample>,
    /// Samples are at least this far from each other.
    interval: Duration,
    ended: bool,
}

/// More samples than can be told apart in a picture are joined.
const MOST_SAMPLES: usize = 2000;

impl Curve {
    /// Starts a thread that samples twenty times a second, or as often as stretches of this length need.
    pub(crate) fn start(stretch: Duration) -> Curve {
        let interval = (stretch / 3).clamp(Duration::from_millis(5), Duration::from_millis(50));
        let state = State { begun: Instant::now(), now: None, samples: Vec::new(), interval, ended: false };
        let curve = Curve(Arc::new(Mutex::new(state)));
        let watched = curve.clone();
        // Without the thread there is still a sample at the end of each stretch.
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

    /// From here on this one is at work.
    pub(crate) fn begin(&self, who: &Arc<str>) {
        let mut state = self.state();
        state.now = Some((Arc::clone(who), Instant::now(), of_process()));
    }

    /// From here on nobody is.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.sample();
        state.now = None;
    }

    /// All samples, and the end of the sampling.
    pub(crate) fn finish(&self) -> Vec<Sample> {
        let mut state = self.state();
        state.ended = true;
        std::mem::take(&mut state.samples)
    }
}

impl State {
    fn sample(&mut self) {
        let Some((who, since, used)) = &self.now else { return };
        let (now, cpu) = (Instant::now(), of_process());
        let elapsed = now - *since;
        // What is shorter than the clocks are good for says nothing.
        if elapsed < self.interval / 3 {
            return;
        }
        let at = (*since - self.begun).as_secs_f64();
        let processors = cpu.saturating_sub(*used).as_secs_f64() / elapsed.as_secs_f64();
        let who = Arc::clone(who);
        let seconds = elapsed.as_secs_f64();
        self.samples.push(Sample { who: Arc::clone(&who), at, seconds, processors });
        self.now = Some((who, now, cpu));
        if self.samples.len() > MOST_SAMPLES {
            // Half as many, each over two, and from now on half as often.
            let all = std::mem::take(&mut self.samples);
            self.samples = joined(all);
            self.interval *= 2;
        }
    }
}

/// Each sample with the next one of the same, as one.
fn joined(samples: Vec<Sample>) -> Vec<Sample> {
    let mut joined: Vec<Sample> = Vec::new();
    let mut open: Vec<(Arc<str>, usize)> = Vec::new();
    for sample in samples {
        match open.iter().position(|(who, _)| *who == sample.who) {
            Some(place) => {
                let first = &mut joined[open.swap_remove(place).1];
                let seconds = first.seconds + sample.seconds;
                first.processors =
                    (first.processors * first.seconds + sample.processors * sample.seconds) / seconds;
                first.seconds = seconds;
            }
            None => {
                open.push((Arc::clone(&sample.who), joined.len()));
                joined.push(sample);
            }
        }
    }
    joined
}

/// A line for each of those who were at work.
pub(crate) struct WorkCurve {
    pub(crate) who: Arc<str>,
    /// How long it worked.
    pub(crate) seconds: f64,
    /// How much of its work was done, in hundredths, and processors then.
    pub(crate) points: Vec<(f64, f64)>,
}

/// The lines, each point an average over one of so many parts.
pub(crate) fn curves(samples: &[Sample], parts: usize) -> Vec<WorkCurve> {
    let mut whole: Vec<(Arc<str>, f64)> = Vec::new();
    for sample in samples {
        match whole.iter_mut().find(|(who, _)| *who == sample.who) {
            Some((_, seconds)) => *seconds += sample.seconds,
            None => whole.push((Arc::clone(&sample.who), sample.seconds)),
        }
    }
    let curve = |(who, whole): (Arc<str>, f64)| {
        let (mut points, mut begun, mut spent, mut used) = (Vec::new(), 0.0, 0.0, 0.0);
        for sample in samples.iter().filter(|sample| sample.who == who) {
            spent += sample.seconds;
            used += sample.seconds * sample.processors;
            if spent >= whole / parts as f64 {
                points.push(((begun + spent / 2.0) / whole * 100.0, used / spent));
                begun += spent;
                (spent, used) = (0.0, 0.0);
            }
        }
        WorkCurve { who, seconds: whole, points }
    };
    whole.into_iter().map(curve).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_told_from_rest() {
        let curve = Curve::start(Duration::from_millis(60));
        let (busy, idle): (Arc<str>, Arc<str>) = ("busy".into(), "idle".into());
        let before = of_process();
        curve.begin(&busy);
        while of_process() - before < Duration::from_millis(200) {
            std::hint::black_box(0);
        }
        curve.end();
        curve.begin(&idle);
        std::thread::sleep(Duration::from_millis(100));
        curve.end();
        let samples = curve.finish();
        let of = |who: &str| samples.iter().filter(move |sample| &*sample.who == who).collect::<Vec<_>>();
        assert!(!of("busy").is_empty() && !of("idle").is_empty());
        // Other tests of this process may be at work meanwhile, so nothing is said of idleness.
        assert!(of("busy").iter().any(|sample| sample.processors > 0.0), "{samples:?}");
        assert!(samples.windows(2).all(|pair| pair[0].at < pair[1].at));
    }

    #[test]
    fn samples_are_averaged_over_their_time() {
        let sample =
            |who: &str, seconds, processors| Sample { who: who.into(), at: 0.0, seconds, processors };
        let samples =
            [sample("a", 1.0, 2.0), sample("b", 1.0, 0.0), sample("a", 3.0, 1.0), sample("a", 4.0, 0.5)];
        let curves = curves(&samples, 2);
        assert_eq!((&*curves[0].who, curves[0].seconds), ("a", 8.0));
        assert_eq!(curves[0].points, [(25.0, 1.25), (75.0, 0.5)]);
        let joined = joined(samples.to_vec());
        assert_eq!(joined, [sample("a", 4.0, 1.25), sample("b", 1.0, 0.0), sample("a", 4.0, 0.5)]);
    }

    #[test]
    fn children_are_counted() {
        if !std::path::Path::new("/proc/self/stat").exists() {
            assert_eq!(of_children(), None);
            return;
        }
        let before = of_children().unwrap();
        // At least a few hundredths of a second of work.
        let count = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", count]).status().unwrap().success());
        assert!(of_children().unwrap() > before);
    }
}
