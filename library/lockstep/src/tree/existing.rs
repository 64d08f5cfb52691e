//! The relation of an existing output to its input.

use std::cmp::Ordering;
use std::fs::File;

use super::error::Result;
use super::times::Times;
use crate::cobblestone::{FileKey, Reader, Tail, plaintext_len};
use crate::engine::Engine;
use crate::envelope::Envelope;

/// An input and its existing output.
#[derive(Debug)]
pub struct Pair<'a> {
    /// The input, at its start.
    pub input: &'a File,
    /// The output, at its start.
    pub output: &'a File,
    /// Length of the input in bytes.
    pub input_len: u64,
    /// Length of the output in bytes.
    pub output_len: u64,
    times: Times,
}

/// The relation of an existing output to its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Complete, and created from the present input.
    UpToDate,
    /// Created by this operation, possibly from an earlier version of the input. The output can be replaced.
    Outdated,
    /// Possibly not created from this input, for the given reason.
    Unknown(&'static str),
}

impl<'a> Pair<'a> {
    pub(super) fn of(input: &'a File, output: &'a File) -> std::io::Result<Pair<'a>> {
        let (before, after) = (input.metadata()?, output.metadata()?);
        let times = Times::compare(&before, &after)?;
        Ok(Pair { input, output, input_len: before.len(), output_len: after.len(), times })
    }

    /// The relation of an output that was encrypted with a key and a context, without an envelope.
    pub fn encrypted(&self, engine: &Engine, key: &FileKey, context: &[u8]) -> Existing {
        // `Reader::open` verifies the key, the context and the last chunk.
        match Reader::open(engine, key, context, Tail::new(self.output, 0)) {
            Ok(message) => self.own(message.len() == self.input_len),
            Err(_) => Existing::Unknown("was not encrypted with this key and context, or is damaged"),
        }
    }

    /// The relation of an output that was decrypted.
    ///
    /// # Errors
    /// If a file cannot be read, or if the input cannot be an encrypted file.
    pub fn decrypted(&self) -> Result<Existing> {
        if !self.times.is_same {
            return Ok(Existing::Unknown("was not last modified at the time of the encrypted file"));
        }
        // Equal times are accepted, since the output cannot be replaced. File systems store times with a resolution of
        // some milliseconds to two seconds.
        if self.times.changed == Ordering::Greater {
            return Ok(Existing::Unknown("is older than the last change of the encrypted file"));
        }
        let envelope = Envelope::read_file(self.input)?;
        let before = envelope.map_or(0, |envelope| envelope.as_bytes().len() as u64);
        let expected = plaintext_len(self.input_len.saturating_sub(before))?;
        Ok(match self.output_len == expected {
            true => Existing::UpToDate,
            false => Existing::Unknown("has another length than the plaintext"),
        })
    }

    /// The relation of an output that the operation has created. If the input changed at the time of the creation, the
    /// output is outdated: it may have been created before the change.
    pub fn own(&self, is_whole: bool) -> Existing {
        let is_current = is_whole && self.times.is_same && self.times.changed == Ordering::Less;
        if is_current { Existing::UpToDate } else { Existing::Outdated }
    }
}
