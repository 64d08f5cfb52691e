//! The instruments measure the elapsed time and the CPU time of this process for each timed stretch.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process so far: user and system time of all threads.
pub(super) fn process_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
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

/// The time of timed stretches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spent {
    /// Number of bytes that the calls processed.
    pub(super) bytes: f64,
    pub(super) elapsed: Duration,
    /// CPU time of the process.
    pub(super) cpu: Duration,
}

impl Spent {
    pub(super) const NOTHING: Spent = Spent { bytes: 0.0, elapsed: Duration::ZERO, cpu: Duration::ZERO };

    pub(super) fn add(&mut self, more: Spent) {
        self.bytes += more.bytes;
        self.elapsed += more.elapsed;
        self.cpu += more.cpu;
    }

    /// Bytes per second.
    pub(super) fn rate(self) -> f64 {
        self.bytes / self.elapsed.as_secs_f64()
    }
}

/// Runs a stretch and measures its time. The caller must set the bytes in the result.
pub(super) fn timed<T>(stretch: impl FnOnce() -> T) -> (T, Spent) {
    let before = process_time();
    let start = Instant::now();
    let returned = stretch();
    let elapsed = start.elapsed();
    (returned, Spent { bytes: 0.0, elapsed, cpu: process_time().saturating_sub(before) })
}

#[cfg(test)]
mod tests;
