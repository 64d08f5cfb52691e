//! A run of a program, with its CPU time over time from `/proc`.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Error;

/// A run of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Seconds from the start of the program to its end.
    pub seconds: f64,
    /// The CPU time of all its threads in seconds.
    pub cpu_seconds: f64,
    /// Samples: the time since the start, and the CPU time so far, both in seconds.
    samples: Vec<(f64, f64)>,
}

/// The time between two samples. It limits the error of the time of a run. The system counts CPU time in steps of 10 ms.
const INTERVAL: Duration = Duration::from_millis(1);

impl Run {
    /// A run with these samples.
    pub(super) fn new(samples: Vec<(f64, f64)>) -> Run {
        let (seconds, cpu_seconds) = samples.last().copied().unwrap_or_default();
        Run { seconds, cpu_seconds, samples }
    }

    /// The processors in use in each of `parts` equal parts of the run.
    pub fn usage(&self, parts: usize) -> Vec<f64> {
        let edges: Vec<f64> =
            (0..=parts).map(|at| self.cpu_at(self.seconds * at as f64 / parts as f64)).collect();
        edges.windows(2).map(|pair| (pair[1] - pair[0]) * parts as f64 / self.seconds).collect()
    }

    /// The CPU time at a time, interpolated between samples.
    fn cpu_at(&self, time: f64) -> f64 {
        let after = self.samples.partition_point(|(at, _)| *at < time);
        let (from, to) =
            (after.checked_sub(1).map_or((0.0, 0.0), |before| self.samples[before]), self.samples.get(after));
        match to {
            Some(to) if to.0 > from.0 => from.1 + (to.1 - from.1) * (time - from.0) / (to.0 - from.0),
            _ => from.1,
        }
    }
}

/// Runs a program to its end.
///
/// # Errors
/// If it cannot be started, fails, or prints a message: the provider prints a message if the device did not do the work.
pub(super) fn run(name: &str, mut command: Command) -> Result<Run, Error> {
    let start = Instant::now();
    let failed = |error| Error::System { what: name.into(), error };
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(failed)?;
    let messages = child.stderr.take().map(|mut stderr| {
        // The messages are read while the program runs, because it waits if nobody reads them.
        std::thread::spawn(move || {
            let mut messages = Vec::new();
            stderr.read_to_end(&mut messages).map(|_| messages)
        })
    });
    let mut samples = Vec::new();
    loop {
        let sample = cpu_time(&child);
        let at = start.elapsed().as_secs_f64();
        let has_ended = sample.as_ref().is_none_or(|(state, _)| *state == 'Z');
        samples.extend(sample.map(|(_, cpu)| (at, cpu)));
        if has_ended {
            break;
        }
        std::thread::sleep(INTERVAL);
    }
    let status = child.wait().map_err(failed)?;
    let messages = messages.map(|reader| reader.join().expect("the reader does not panic"));
    let messages = messages.transpose().map_err(failed)?.unwrap_or_default();
    let message = String::from_utf8_lossy(&messages);
    // OpenSSL warns that the derivation of keys of `enc -k` is old.
    let is_warning = |line: &&str| !line.starts_with("*** WARNING") && !line.starts_with("Using -iter");
    let message: Vec<&str> = message.lines().filter(is_warning).collect();
    if status.success() && message.is_empty() && !samples.is_empty() {
        return Ok(Run::new(samples));
    }
    let message = match status.success() {
        _ if !message.is_empty() => message.join("; "),
        true => "its CPU time is not known: this command needs the files of Linux in /proc".into(),
        false => status.to_string(),
    };
    Err(Error::Failed { program: name.into(), message })
}

/// Returns the state of a process, and its CPU time so far in seconds. The CPU time includes threads that have ended (proc_pid_stat(5)).
fn cpu_time(child: &Child) -> Option<(char, f64)> {
    state_and_time(&std::fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?)
}

/// The state and the CPU time of a line of `/proc/PID/stat`.
pub(super) fn state_and_time(text: &str) -> Option<(char, f64)> {
    // The name of the program is in brackets, and may contain anything. The third field follows it.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| -> Option<f64> { fields.get(at)?.parse().ok() };
    // Fields 14 and 15: user time and system time.
    let seconds = (ticks(11)? + ticks(12)?) / rustix::param::clock_ticks_per_second() as f64;
    Some((fields.first()?.chars().next()?, seconds))
}
