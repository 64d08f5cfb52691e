//! The relation of an existing output to its input.

use std::cmp::Ordering;
use std::fs::File;

use lockstep::cobblestone::Tail;
use lockstep::{Engine, Envelope, FileKey, Reader, plaintext_len};

use super::times::Times;
use crate::error::Result;
use crate::input::Input;

/// The relation of an existing output to its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    /// Complete, and created from the present input.
    UpToDate,
    /// Created by this command, possibly from an earlier version of the input. The output can be replaced.
    Outdated,
    /// Possibly not created from this input, for the given reason.
    Unknown(&'static str),
}

impl Existing {
    /// The relation of an output that was encrypted with a key and a context, without an envelope.
    pub(crate) fn encrypted(
        engine: &Engine,
        key: &FileKey,
        context: &[u8],
        input: &Input,
        output: &File,
        times: Times,
    ) -> Existing {
        // `Reader::open` verifies the key, the context and the last chunk.
        match Reader::open(engine, key, context, Tail::new(output, 0)) {
            Ok(message) => Existing::of_own(message.len() == input.len().unwrap_or(0), times),
            Err(_) => Existing::Unknown("was not encrypted with this key and context, or is damaged"),
        }
    }

    /// The relation of an output that was decrypted.
    ///
    /// # Errors
    /// If a file cannot be read, or if the input cannot be an encrypted file.
    pub(crate) fn decrypted(input: &Input, output: &File, times: Times) -> Result<Existing> {
        if !times.is_same {
            return Ok(Existing::Unknown("was not last modified at the time of the encrypted file"));
        }
        // Equal times are accepted, since the output cannot be replaced. File systems store times with a resolution of
        // some milliseconds to two seconds.
        if times.changed == Ordering::Greater {
            return Ok(Existing::Unknown("is older than the last change of the encrypted file"));
        }
        let envelope = Envelope::read_file(input.file())?;
        let before = envelope.map_or(0, |envelope| envelope.as_bytes().len() as u64);
        let expected = plaintext_len(input.len().unwrap_or(0).saturating_sub(before))?;
        let len = output.metadata().map_err(lockstep::Error::Read)?.len();
        Ok(match len == expected {
            true => Existing::UpToDate,
            false => Existing::Unknown("has another length than the plaintext"),
        })
    }

    /// The relation of an output that this command has created. If the input changed at the time of the creation, the
    /// output is outdated: it may have been created before the change.
    pub(crate) fn of_own(is_whole: bool, times: Times) -> Existing {
        let is_current = is_whole && times.is_same && times.changed == Ordering::Less;
        if is_current { Existing::UpToDate } else { Existing::Outdated }
    }

    /// True if the output was encrypted with this key and context, without an envelope.
    pub(crate) fn opens(engine: &Engine, key: &FileKey, context: &[u8], output: &File) -> bool {
        Reader::open(engine, key, context, Tail::new(output, 0)).is_ok()
    }
}
