//! The authenticated modes: the classes of `lockstep.aead`, batches, and messages in arrays of other libraries.

mod array_batch;
mod call;
mod classes;
mod many;

pub(crate) use array_batch::tensor_batch;
pub(crate) use classes::add;
pub(crate) use many::{many_in_buffer, many_in_list};

use std::borrow::Cow;

use lockstep::Engine;
use lockstep::aead::{Aead, AeadKey, Caller, Error, Key, Result};
use lockstep::hazmat::inline::InlineKernel;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use classes::{has_tag, name};

use crate::buffer::new_bytes;
use crate::engine;
use crate::error::{ensure, from_core};
use crate::forks::{Origin, detached};

/// The length of full tags in bytes.
const TAG: usize = 16;

/// A caller on a thread that is attached to the interpreter. For long work, the thread is detached.
struct Attached<'py>(Python<'py>);

impl<'py> Attached<'py> {
    /// Checks that there is an engine for the calls.
    ///
    /// # Errors
    /// If there is no engine, for example because an environment variable has a wrong value.
    #[inline]
    fn new(py: Python<'py>) -> PyResult<Self> {
        if engine::inline_kernel().is_none() {
            engine::current(py)?;
        }
        Ok(Attached(py))
    }
}

impl Caller for Attached<'_> {
    #[inline]
    fn inline_kernel(&self) -> Option<InlineKernel> {
        engine::inline_kernel()
    }

    fn batch_limit(&self) -> usize {
        64 << 10
    }

    fn engine(&self) -> Result<Engine> {
        let unsupported =
            |error: PyErr| Error::Unsupported { kernel: "lockstep", operation: error.to_string() };
        engine::current(self.0).map_err(unsupported)
    }

    fn run_long<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        detached(self.0, work)
    }
}

/// A key with the parameters of its mode.
pub(crate) struct Cipher {
    key: Key,
    origin: Origin,
}

impl Cipher {
    fn new(mode: Aead, key: &[u8], tag: usize) -> PyResult<Cipher> {
        ensure(has_tag(mode, tag), || "Invalid tag_length")?;
        let mut key = Key::from(AeadKey::new(mode, key).map_err(|_| wrong_key(mode))?);
        if tag != TAG {
            key = key.with_tag_len(tag).map_err(from_core)?;
        }
        Ok(Cipher { key, origin: Origin::new() })
    }

    fn mode(&self) -> Aead {
        self.key.mode()
    }

    /// The class with the lengths of key and tag.
    fn repr(&self) -> String {
        let (class, tag) = (name(self.mode()), 8 * self.key.tag_len());
        // SIV has two AES keys.
        let bits = self.key.size().bits() * if self.mode() == Aead::Siv { 2 } else { 1 };
        format!("<lockstep.aead.{class}: key of {bits} bits, tags of {tag} bits>")
    }

    /// Returns the key for a call. In a child process, the result is a copy of the key if another thread may have been expanding
    /// the key during the fork.
    #[inline]
    fn key(&self) -> Cow<'_, Key> {
        if self.origin.is_usable() { Cow::Borrowed(&self.key) } else { Cow::Owned(self.key.clone()) }
    }
}

/// The exception for a key whose length the mode does not allow.
fn wrong_key(mode: Aead) -> PyErr {
    PyValueError::new_err(format!("{} key must be {} bits.", name(mode), bits(mode)))
}

/// The text that lists the lengths of a mode's keys in bits.
fn bits(mode: Aead) -> String {
    let lengths: Vec<_> = mode.key_lengths().iter().map(|len| (8 * len).to_string()).collect();
    match &lengths[..] {
        [first, second] => format!("{first} or {second}"),
        [others @ .., last] if !others.is_empty() => format!("{}, or {last}", others.join(", ")),
        all => all.concat(),
    }
}

/// A random key from the operating system.
fn generate_key(py: Python<'_>, mode: Aead, bit_length: usize) -> PyResult<Bound<'_, PyBytes>> {
    let is_known = bit_length.is_multiple_of(8) && mode.key_lengths().contains(&(bit_length / 8));
    ensure(is_known, || format!("bit_length must be {}", bits(mode)))?;
    new_bytes(py, bit_length / 8, |key| {
        getrandom::fill(key).map_err(|error| {
            PyOSError::new_err(format!("the operating system returned no random bytes: {error}"))
        })
    })
}
