//! The trace records which algorithms were used, and for how many bytes. The setting `trace` enables it.
//!
//! One line is written when an algorithm is first used in a process. Lines with totals are written when the provider is
//! unloaded or when the process ends. (The end of the process is needed because OpenSSL does not unload a provider if the
//! program still holds ciphers of the provider at its end.) The file is opened when the provider is loaded, so that processes
//! that drop privileges later can still write to it. The lines contain names, sizes and counts, but no data or keys.
//!
//! Failures of the trace do not affect the program: the provider loads even if the file cannot be opened, and a write
//! neither waits nor raises a signal ([`crate::system::descriptor`]). Only the first failure in a process is reported on
//! standard error.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use lockstep_provider_settings::TraceTo;

use crate::algorithm::{ALGORITHMS, Algorithm};
use crate::message::escaped;
use crate::system::descriptor::Descriptor;
use crate::system::standard;

/// A number of calls, and the total number of bytes of these calls.
type Counter = [AtomicU64; 2];

/// Counters for every algorithm, and the file to which they are written.
pub(crate) struct Trace {
    to: Descriptor,
    /// The name of the file, for messages.
    name: String,
    /// True if a write has failed permanently. After such a failure nothing more is written.
    failed: AtomicBool,
    /// For each algorithm, the counter of encryption and the counter of decryption.
    counters: Vec<[Counter; 2]>,
    /// Bytes for each [`Way`]: bytes processed through the planner, and bytes processed with keystream computed ahead.
    ways: [AtomicU64; 2],
    /// The number of the process to which the counters belong.
    process: AtomicU32,
    /// True once the totals have been written.
    reported: AtomicBool,
}

/// A way of processing bytes other than inline on the caller's thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// Through the planner.
    Planned,
    /// XORed with keystream computed ahead.
    Ahead,
}

impl Trace {
    /// Opens the trace. Returns `None` if the file cannot be opened, and reports the failure on standard error.
    pub(crate) fn open(to: &TraceTo) -> Option<Trace> {
        let (opened, name) = match to {
            TraceTo::Stderr => (standard::copy(libc::STDERR_FILENO), "standard error".into()),
            TraceTo::Stdout => (standard::copy(libc::STDOUT_FILENO), "standard output".into()),
            TraceTo::File(path) => (Descriptor::append_to(path), format!("{path:?}")),
        };
        let to = opened.inspect_err(|error| report(&name, "cannot be opened", error, true)).ok()?;
        Some(Trace {
            to,
            name,
            failed: AtomicBool::new(false),
            counters: ALGORITHMS.iter().map(|_| Default::default()).collect(),
            ways: Default::default(),
            process: AtomicU32::new(std::process::id()),
            reported: AtomicBool::new(false),
        })
    }

    /// Counts a call.
    pub(crate) fn count(&self, algorithm: &'static Algorithm, encrypts: bool, bytes: usize) {
        let process = self.enter();
        let Some(index) = ALGORITHMS.iter().position(|other| other.names == algorithm.names) else { return };
        let [calls, of_bytes] = &self.counters[index][usize::from(!encrypts)];
        of_bytes.fetch_add(bytes as u64, Relaxed);
        if calls.fetch_add(1, Relaxed) == 0 {
            self.write_line(process, &format!("{} {}: first use", algorithm.name(), direction(encrypts)));
        }
    }

    /// Counts bytes that were not processed inline.
    pub(crate) fn count_way(&self, way: Way, bytes: usize) {
        self.enter();
        self.ways[way as usize].fetch_add(bytes as u64, Relaxed);
    }

    /// Records the failure of a device. The work of the device was done inline, or the failure was returned to the
    /// program.
    pub(crate) fn write_failure(&self, what: &str) {
        self.write_line(self.enter(), what);
    }

    /// Returns the number of the current process. If the process is a new child after a fork, resets the counters to zero.
    fn enter(&self) -> u32 {
        let process = std::process::id();
        if self.process.swap(process, Relaxed) != process {
            let counters = self.counters.as_flattened().as_flattened().iter();
            counters.chain(&self.ways).for_each(|value| value.store(0, Relaxed));
            self.reported.store(false, Relaxed);
        }
        process
    }

    fn write_line(&self, process: u32, text: &str) {
        if self.failed.load(Relaxed) {
            return;
        }
        // The line is written by a single write, so that lines of several processes do not mix.
        let line = format!("lockstep[{process}]: {}\n", escaped(text));
        let Err(error) = self.to.write(line.as_bytes()) else { return };
        // If the file is full, there may be space again later, so later lines are still written.
        let is_full = error.kind() == io::ErrorKind::WouldBlock;
        self.failed.fetch_or(!is_full, Relaxed);
        let what =
            if is_full { "is full, so lines of it are lost" } else { "cannot be written and ends here" };
        report(&self.name, what, &error, false);
    }

    /// Writes the totals of this process, and the lines with the totals of its devices. If a device is named, the totals
    /// include the number of bytes that were processed on the caller's thread. This number is approximate: calls are counted
    /// with additional data and without padding, but work through the planner is counted without additional data and in whole
    /// blocks.
    pub(crate) fn write_totals(&self, device_is_named: bool, devices: Vec<String>) {
        let process = std::process::id();
        // A child process that has processed no data writes no totals.
        if self.process.load(Relaxed) != process || self.reported.swap(true, Relaxed) {
            return;
        }
        let mut inline: u64 = 0;
        for (algorithm, counters) in ALGORITHMS.iter().zip(&self.counters) {
            for (counter, encrypts) in counters.iter().zip([true, false]) {
                let [calls, bytes] = counter.each_ref().map(|value| value.load(Relaxed));
                inline += bytes;
                if calls > 0 {
                    let (name, direction) = (algorithm.name(), direction(encrypts));
                    self.write_line(process, &format!("{name} {direction}: {bytes} bytes in {calls} calls"));
                }
            }
        }
        for (bytes, what) in self.ways.iter().zip(["through the planner", "with keystream computed ahead"]) {
            let bytes = bytes.load(Relaxed);
            inline = inline.saturating_sub(bytes);
            if bytes > 0 {
                self.write_line(process, &format!("{bytes} bytes {what}"));
            }
        }
        if device_is_named && inline > 0 {
            self.write_line(process, &format!("about {inline} bytes on cpu, on the caller's thread"));
        }
        devices.iter().for_each(|line| self.write_line(process, line));
    }
}

/// Reports a failure of the trace on standard error. Only the first failure in a process is reported.
fn report(name: &str, what: &str, error: &io::Error, may_open: bool) {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    if !REPORTED.swap(true, Relaxed) {
        let message = format!("the trace to {name} {what}: {error}; the program is not affected");
        standard::write_message(&message, may_open);
    }
}

fn direction(encrypts: bool) -> &'static str {
    if encrypts { "encrypt" } else { "decrypt" }
}
