//! The relation of an existing output to its input. The times of the two files show whether the input has changed since the output
//! was created.

use std::cmp::Ordering;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Advice;
use crate::cobblestone::{FileKey, Reader, plaintext_len};
use crate::engine::Engine;
use crate::envelope::Envelope;
use crate::error::{Error, Result, failed};
use crate::quoted::quoted;

/// An input and its existing output.
#[derive(Debug)]
pub struct Pair<'a> {
    /// The input file. Its position is the start of the file.
    pub input: &'a File,
    /// The output file. Its position is the start of the file.
    pub output: &'a File,
    /// Length of the input in bytes.
    pub input_len: u64,
    /// Length of the output in bytes.
    pub output_len: u64,
    /// The output has the modification time of the input.
    has_same_time: bool,
    /// The order of two times: the time of the last change of the input's status, and the time of the creation of the output. Each
    /// change of the content or of the modification time also changes the status, and programs cannot set the time of this change.
    changed: Ordering,
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
    pub(super) fn of(input: &'a File, output: &'a File) -> io::Result<Pair<'a>> {
        let (before, after) = (input.metadata()?, output.metadata()?);
        let (input_len, output_len) = (before.len(), after.len());
        let has_same_time = is_same_time(before.modified()?, after.modified()?);
        let changed = status_time(&before).cmp(&creation(&after));
        Ok(Pair { input, output, input_len, output_len, has_same_time, changed })
    }

    /// Returns the relation of an output that was encrypted with a key and a context, without an envelope, to its input.
    pub fn encrypted(&self, engine: &Engine, key: &FileKey, context: &[u8]) -> Existing {
        // `Reader::open` verifies the key, the context and the last chunk.
        match Reader::open(engine, key, context, self.output) {
            Ok(message) => self.own(message.len() == self.input_len),
            Err(_) => Existing::Unknown("was not encrypted with this key and context, or is damaged"),
        }
    }

    /// Returns the relation of a decrypted output to its encrypted input.
    ///
    /// # Errors
    /// If a file cannot be read, or if the input cannot be an encrypted file.
    pub fn decrypted(&self) -> Result<Existing> {
        if !self.has_same_time {
            return Ok(Existing::Unknown("was not last modified at the time of the encrypted file"));
        }
        // Equal times are accepted: file systems store times with a resolution of some milliseconds to two seconds, and a
        // decrypted output is never replaced as outdated.
        if self.changed == Ordering::Greater {
            return Ok(Existing::Unknown("is older than the last change of the encrypted file"));
        }
        let envelope = Envelope::read_file(self.input)?;
        let before = envelope.map_or(0, |envelope| envelope.as_bytes().len() as u64);
        let expected = plaintext_len(self.input_len.saturating_sub(before))?;
        if self.output_len != expected {
            return Ok(Existing::Unknown("has another length than the plaintext"));
        }
        Ok(Existing::UpToDate)
    }

    /// Returns the relation of an output that is known to be created by this operation. If the input changed at the time at which
    /// the output was created, the output counts as outdated: its creation may precede the change.
    pub fn own(&self, is_whole: bool) -> Existing {
        let is_current = is_whole && self.has_same_time && self.changed == Ordering::Less;
        if is_current { Existing::UpToDate } else { Existing::Outdated }
    }
}

/// The error for an output that may not come from its input. `why` is the reason.
pub(super) fn unknown(output: &Path, why: &str, advice: &Advice) -> Error {
    failed(format!("the output {} exists and {why}: {}", quoted(output), advice.unknown))
}

/// True if a file has not changed between the calls that have returned these metadata.
pub(super) fn is_unchanged(before: &Metadata, after: &Metadata) -> bool {
    let state = |file: &Metadata| (file.len(), file.mtime(), file.mtime_nsec(), status_time(file));
    state(before) == state(after)
}

/// The time of the last change of the status (ctime), in seconds and nanoseconds since 1970.
fn status_time(file: &Metadata) -> (i64, i64) {
    (file.ctime(), file.ctime_nsec())
}

/// The time at which an output was created. The output is created before its input is read. If the file system does not store this
/// time, the result is the later time of the last change of the status. This later time is also the result on macOS, because a
/// program there that sets the modification time back also sets the time of creation back.
fn creation(file: &Metadata) -> (i64, i64) {
    let created = if cfg!(target_vendor = "apple") { None } else { file.created().ok() };
    let since = created.and_then(|created| created.duration_since(UNIX_EPOCH).ok());
    since.map_or(status_time(file), |since| (since.as_secs().cast_signed(), since.subsec_nanos().into()))
}

/// True if the output has the modification time of the input. Some file systems store times only as whole seconds, and other file
/// systems only in units of two seconds.
fn is_same_time(input: SystemTime, output: SystemTime) -> bool {
    let has_whole_seconds = output.duration_since(UNIX_EPOCH).is_ok_and(|time| time.subsec_nanos() == 0);
    let difference = input.duration_since(output).unwrap_or_else(|error| error.duration());
    difference.is_zero() || has_whole_seconds && difference < Duration::from_secs(2)
}

#[cfg(test)]
mod tests;
