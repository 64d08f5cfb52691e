//! The trace: which algorithms were used, and how much. Switched on by the setting `trace`.
//!
//! One line when an algorithm is first used in a process, one with totals when the provider is unloaded or the process ends:
//! OpenSSL does not unload a provider whose ciphers a program still holds at its end. The file is opened
//! when the provider is loaded, so that processes that give up their rights later can still write to it. Only sizes and
//! counts are written.
//!
//! The program goes on whatever becomes of the trace: a file that cannot be opened is no reason not to load the provider,
//! and writing neither waits nor raises a signal ([`crate::ffi::descriptor`]). The first failure is reported on standard
//! error, once in a process.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use lockstep::provider_settings::TraceTo;

use crate::algorithm::{ALGORITHMS, Algorithm};
use crate::ffi::descriptor::Descriptor;
use crate::ffi::standard;
use crate::message::escaped;

/// Counters of every algorithm, and where they are written.
pub(crate) struct Trace {
    to: Descriptor,
    /// What `to` is, for messages.
    name: String,
    /// Writing has failed: nothing is written any more.
    failed: AtomicBool,
    /// For each algorithm: encryption, decryption.
    counters: Vec<[Counter; 2]>,
    /// Bytes through the planner, and with keystream made ahead.
    ways: [AtomicU64; 2],
    /// The process that the counters count for.
    process: AtomicU32,
    /// The totals have been written.
    told: AtomicBool,
}

#[derive(Default)]
struct Counter {
    calls: AtomicU64,
    bytes: AtomicU64,
}

/// Which way bytes went, other than inline on the caller's thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// Through the planner.
    Planned,
    /// XORed with keystream that was there already.
    Ahead,
}

impl Trace {
    /// Opens the trace. None if that cannot be done, which is reported on standard error.
    pub(crate) fn open(to: &TraceTo) -> Option<Trace> {
        let (opened, name) = match to {
            TraceTo::Stderr => (standard::copy(libc::STDERR_FILENO), "standard error".into()),
            TraceTo::Stdout => (standard::copy(libc::STDOUT_FILENO), "standard output".into()),
            TraceTo::File(path) => (Descriptor::append_to(path), format!("{path:?}")),
        };
        let to = match opened {
            Ok(to) => to,
            Err(error) => {
                report(standard::say, &name, "cannot be opened", &error);
                return None;
            }
        };
        Some(Trace {
            to,
            name,
            failed: AtomicBool::new(false),
            counters: ALGORITHMS.iter().map(|_| Default::default()).collect(),
            ways: Default::default(),
            process: AtomicU32::new(std::process::id()),
            told: AtomicBool::new(false),
        })
    }

    /// Counts a call.
    pub(crate) fn count(&self, algorithm: &'static Algorithm, encrypts: bool, bytes: usize) {
        let process = self.enter();
        let Some(index) = ALGORITHMS.iter().position(|other| other.names == algorithm.names) else { return };
        let counter = &self.counters[index][usize::from(!encrypts)];
        counter.bytes.fetch_add(bytes as u64, Relaxed);
        if counter.calls.fetch_add(1, Relaxed) == 0 {
            self.tell(process, &format!("{} {}: first use", algorithm.name(), direction(encrypts)));
        }
    }

    /// Counts bytes that went another way than inline.
    pub(crate) fn count_way(&self, way: Way, bytes: usize) {
        self.enter();
        self.ways[way as usize].fetch_add(bytes as u64, Relaxed);
    }

    /// A device failed, and what it should have done was done here or reported.
    pub(crate) fn tell_failure(&self, what: &str) {
        let process = self.enter();
        self.tell(process, what);
    }

    /// The process that counts; a child of a fork begins anew.
    fn enter(&self) -> u32 {
        let process = std::process::id();
        if self.process.swap(process, Relaxed) != process {
            let counters =
                self.counters.iter().flatten().flat_map(|counter| [&counter.calls, &counter.bytes]);
            counters.chain(&self.ways).for_each(|value| value.store(0, Relaxed));
            self.told.store(false, Relaxed);
        }
        process
    }

    fn tell(&self, process: u32, text: &str) {
        if self.failed.load(Relaxed) {
            return;
        }
        // One write, so that lines of several processes do not mix.
        let line = format!("lockstep[{process}]: {}\n", escaped(text));
        match self.to.write(line.as_bytes()) {
            Ok(()) => {}
            // There can be room again later.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                report(standard::say_later, &self.name, "is full, so lines of it are lost", &error);
            }
            Err(error) => {
                self.failed.store(true, Relaxed);
                report(standard::say_later, &self.name, "cannot be written and ends here", &error);
            }
        }
    }

    /// Writes the totals of this process and of its devices.
    pub(crate) fn tell_totals(&self, devices: &[String]) {
        let process = std::process::id();
        if self.process.load(Relaxed) != process {
            // Forked, and did nothing.
            return;
        }
        if self.told.swap(true, Relaxed) {
            return;
        }
        for (algorithm, counters) in ALGORITHMS.iter().zip(&self.counters) {
            for (counter, encrypts) in counters.iter().zip([true, false]) {
                let [calls, bytes] = [&counter.calls, &counter.bytes].map(|value| value.load(Relaxed));
                if calls > 0 {
                    let (name, direction) = (algorithm.name(), direction(encrypts));
                    self.tell(process, &format!("{name} {direction}: {bytes} bytes in {calls} calls"));
                }
            }
        }
        for (bytes, what) in self.ways.iter().zip(["through the planner", "with keystream made ahead"]) {
            let bytes = bytes.load(Relaxed);
            if bytes > 0 {
                self.tell(process, &format!("{bytes} bytes {what}"));
            }
        }
        devices.iter().for_each(|line| self.tell(process, line));
    }
}

/// Reports on standard error that a trace has failed, by `say`; once in a process.
fn report(say: fn(&str), name: &str, what: &str, error: &io::Error) {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    if !REPORTED.swap(true, Relaxed) {
        say(&format!("the trace to {name} {what}: {error}; the program is not affected"));
    }
}

fn direction(encrypts: bool) -> &'static str {
    if encrypts { "encrypt" } else { "decrypt" }
}
