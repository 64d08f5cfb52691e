//! Options of encryption and decryption, and the summary of the result.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Options of encryption and decryption.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// A function that is called regularly with the number of plaintext bytes processed so far. It runs on the worker threads,
    /// one call at a time, and should return quickly.
    pub progress: Option<&'a (dyn Fn(u64) + Sync)>,
    /// A flag that stops the work: once it is true, the call returns [`Error::Interrupted`]. The flag is checked before each
    /// piece of at most a megabyte, and when a signal interrupts a read or a write.
    pub interrupt: Option<&'a AtomicBool>,
    /// The maximum number of CPU threads for this message. The number of threads of the engine remains the upper limit.
    /// This option is for callers that process many messages at the same time.
    pub max_threads: Option<usize>,
    /// Whether decryption of a damaged or truncated message writes all chunks before the first chunk that is damaged or missing.
    /// The call still fails, with [`Error::Partial`], which contains the number of bytes. If this option is false, the call writes
    /// fewer chunks, or no chunk. Functions that read ranges or decrypt buffers ignore this option.
    pub partial: bool,
}

impl Options<'_> {
    /// True once the flag of [`Options::interrupt`] is true. Functions that do other work in the same call can stop this work too.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    pub(super) fn check_interrupt(&self) -> Result<()> {
        if self.is_interrupted() { Err(Error::Interrupted) } else { Ok(()) }
    }

    pub(super) fn report(&self, bytes: u64) {
        if let Some(progress) = self.progress {
            progress(bytes);
        }
    }
}

crate::impl_debug!([] Options<'_>, "Options", max_threads, partial);

/// The result of an encryption or decryption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Bytes of plaintext.
    pub plaintext_len: u64,
    /// Bytes of the encrypted message.
    pub ciphertext_len: u64,
}
