//! Elapsed time and CPU time of this process, for each timed stretch and as a curve over the whole run.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process so far: user and system time of all threads.
pub(super) fn process_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.clamp(0, 999_999_999) as u32)
}

/// CPU time of the child processes that have ended and were waited for. The resolution is one clock tick, usually 10
/// ms. `None` without `/proc`.
pub(super) fn children_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in parentheses. The name may contain any character, so the fields are
    // counted from the last parenthesis.
    let mut fields = text.rsplit_once(") ")?.1.split(' ').skip(13);
    let ticks = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// What timed stretches took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Spent {
    pub(super) elapsed: Duration,
    /// CPU time of the process.
    pub(super) cpu: Duration,
}

impl Spent {
    pub(super) fn add(&mut self, more: Spent) {
        self.elapsed += more.elapsed;
        self.cpu += more.cpu;
    }

    /// CPU time divided by elapsed time: 1 is one CPU fully used.
    fn processors(self) -> f64 {
        self.cpu.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// Times a stretch.
pub(super) fn timed<T>(stretch: impl FnOnce() -> T) -> (T, Spent) {
    let before = process_time();
    let start = Instant::now();
    let returned = stretch();
    let elapsed = start.elapsed();
    (returned, Spent { elapsed, cpu: process_time().saturating_sub(before) })
}

/// The timed stretches of a run, each with the name of its contender.
#[derive(Default)]
pub(super) struct Samples(RefCell<Vec<(Arc<str>, Spent)>>);

/// CPU use of one contender over its timed seconds.
pub(super) struct CpuCurve {
    pub(super) name: Arc<str>,
    /// Total timed seconds of the contender.
    pub(super) seconds: f64,
    /// Points of the curve: the percentage of the timed seconds, and the number of CPUs in use at that point.
    pub(super) points: Vec<(f64, f64)>,
}

impl Samples {
    pub(super) fn add(&self, name: &Arc<str>, spent: Spent) {
        self.0.borrow_mut().push((Arc::clone(name), spent));
    }

    /// One curve for each contender. The timed seconds are divided into `parts` equal parts, and each point is the average
    /// over one part.
    pub(super) fn curves(&self, parts: u32) -> Vec<CpuCurve> {
        let samples = self.0.borrow();
        let mut whole: Vec<(&Arc<str>, Duration)> = Vec::new();
        for (name, Spent { elapsed, .. }) in &*samples {
            match whole.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += *elapsed,
                None => whole.push((name, *elapsed)),
            }
        }
        let curve = |(name, whole): (&Arc<str>, Duration)| {
            let (mut points, mut begun, mut part) = (Vec::new(), Duration::ZERO, Spent::default());
            for (_, spent) in samples.iter().filter(|(known, _)| known == name) {
                part.add(*spent);
                if part.elapsed >= whole / parts {
                    let middle = (begun + part.elapsed / 2).as_secs_f64() / whole.as_secs_f64().max(1e-9);
                    points.push((middle * 100.0, part.processors()));
                    begun += part.elapsed;
                    part = Spent::default();
                }
            }
            CpuCurve { name: Arc::clone(name), seconds: whole.as_secs_f64(), points }
        };
        whole.into_iter().map(curve).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_timed() {
        let (_, spent) = timed(|| {
            let before = process_time();
            while process_time() - before < Duration::from_millis(50) {
                std::hint::black_box(0);
            }
        });
        assert!(spent.cpu >= Duration::from_millis(50));
        let (slept, spent) = timed(|| {
            std::thread::sleep(Duration::from_millis(20));
            7
        });
        assert!(slept == 7 && spent.elapsed >= Duration::from_millis(20));
    }

    #[test]
    fn samples_are_averaged_over_their_time() {
        let samples = Samples::default();
        for (name, seconds, cpu) in [("a", 1, 2), ("b", 1, 0), ("a", 3, 3), ("a", 4, 2)] {
            let spent = Spent { elapsed: Duration::from_secs(seconds), cpu: Duration::from_secs(cpu) };
            samples.add(&name.into(), spent);
        }
        let curves = samples.curves(2);
        assert_eq!((&*curves[0].name, curves[0].seconds), ("a", 8.0));
        assert_eq!(curves[0].points, [(25.0, 1.25), (75.0, 0.5)]);
        assert_eq!((&*curves[1].name, &curves[1].points[..]), ("b", &[(50.0, 0.0)][..]));
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
