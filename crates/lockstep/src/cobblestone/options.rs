//! What may be wanted while a message is worked on, and what is told afterwards.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// What may be wanted while a message is worked on.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    progress: Option<&'a (dyn Fn(u64) + Sync)>,
    interrupt: Option<&'a AtomicBool>,
    max_threads: Option<usize>,
}

impl<'a> Options<'a> {
    /// Nothing special.
    pub fn new() -> Self {
        Options::default()
    }

    /// Called now and then with the bytes of plaintext done so far. It runs on the threads that do the work, one call
    /// at a time, so it should be quick.
    pub fn progress(mut self, callback: &'a (dyn Fn(u64) + Sync)) -> Self {
        self.progress = Some(callback);
        self
    }

    /// Looked at before each piece of a megabyte or less, and whenever a signal interrupts reading or writing: once
    /// it is true, work stops with [`Error::Interrupted`].
    pub fn interrupt(mut self, flag: &'a AtomicBool) -> Self {
        self.interrupt = Some(flag);
        self
    }

    /// Upper limit of the CPU threads that work on this message; the engine's number of threads if it is lower. For callers
    /// that process many messages at once.
    pub fn max_threads(mut self, threads: usize) -> Self {
        self.max_threads = Some(threads);
        self
    }

    /// How many of the engine's threads this message may use.
    pub(super) fn limit_threads(&self, threads: usize) -> usize {
        self.max_threads.map_or(threads, |limit| limit.clamp(1, threads))
    }

    pub(super) fn check_interrupt(&self) -> Result<()> {
        match self.interrupt {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(Error::Interrupted),
            _ => Ok(()),
        }
    }

    pub(super) fn report(&self, bytes: u64) {
        if let Some(progress) = self.progress {
            progress(bytes);
        }
    }
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Options { progress, interrupt, max_threads } = self;
        f.debug_struct("Options")
            .field("progress", &progress.is_some())
            .field("interrupt", interrupt)
            .field("max_threads", max_threads)
            .finish()
    }
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Bytes of plaintext.
    pub plaintext_len: u64,
    /// Bytes of the encrypted message.
    pub ciphertext_len: u64,
}
