//! The envelope: the wrapped key at the start of an encrypted file.
//!
//! | bytes | content |
//! |---|---|
//! | 17 | `lockstep.file/v1` and a newline |
//! | 4 | L, little-endian, at most 65536 |
//! | L | an age file with the 32 random bytes of the [`crate::FileKey`] |
//! | rest | the message |
//!
//! All bytes before the message are the context of the message, so they are authenticated. A file that does not start
//! with the 17 bytes of the first row is a bare message. The first bytes of a bare message are random. This crate does
//! not interpret the age file.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use crate::error::{Error, Result, ensure};
use crate::read;

/// The first bytes of an envelope.
pub const MAGIC: &[u8; 17] = b"lockstep.file/v1\n";
/// Maximum length of the wrapped key.
pub const MAX_PAYLOAD: usize = 65536;

const LENGTH: usize = 4;
const PREAMBLE: usize = MAGIC.len() + LENGTH;

/// An envelope.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Envelope {
    bytes: Vec<u8>,
}

/// The start of an encrypted stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// An envelope; the message follows.
    Envelope(Envelope),
    /// A bare message. The value is the bytes of the message that have already been read. The other bytes of the message follow in
    /// the stream.
    Bare(Vec<u8>),
}

const CUT: Error = Error::Envelope { reason: "it ends too early" };
const LONG: Error = Error::Envelope { reason: "its wrapped key is longer than 64 KiB" };

impl Envelope {
    /// Creates an envelope with a wrapped key.
    ///
    /// # Errors
    /// [`Error::Envelope`] if the payload is longer than [`MAX_PAYLOAD`].
    pub fn new(payload: &[u8]) -> Result<Envelope> {
        ensure(payload.len() <= MAX_PAYLOAD, || LONG)?;
        Ok(Envelope { bytes: [&MAGIC[..], &(payload.len() as u32).to_le_bytes(), payload].concat() })
    }

    /// The wrapped key: an age file.
    pub fn payload(&self) -> &[u8] {
        &self.bytes[PREAMBLE..]
    }

    /// All bytes of the envelope, which are the context of the message.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes the envelope.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write(&self, writer: &mut (impl Write + ?Sized)) -> Result<()> {
        writer.write_all(&self.bytes).map_err(Error::Write)
    }

    /// Reads an envelope, or detects that there is none. After an envelope was read, the reader is at the first byte of the
    /// message.
    ///
    /// # Errors
    /// [`Error::Envelope`] if it is truncated or too long, [`Error::Read`].
    pub fn read(reader: &mut impl Read) -> Result<Start> {
        let mut bytes = vec![0; MAGIC.len()];
        let got = read::full(reader, &mut bytes).map_err(Error::Read)?;
        if bytes[..got] != MAGIC[..] {
            bytes.truncate(got);
            return Ok(Start::Bare(bytes));
        }
        let mut length = [0; LENGTH];
        ensure(read::full(reader, &mut length).map_err(Error::Read)? == LENGTH, || CUT)?;
        let payload = u32::from_le_bytes(length) as usize;
        ensure(payload <= MAX_PAYLOAD, || LONG)?;
        bytes.extend(length);
        bytes.resize(PREAMBLE + payload, 0);
        ensure(read::full(reader, &mut bytes[PREAMBLE..]).map_err(Error::Read)? == payload, || CUT)?;
        Ok(Start::Envelope(Envelope { bytes }))
    }

    /// Reads an envelope from a file at its position, or detects that there is none. The file is then positioned at the
    /// start of the message.
    ///
    /// # Errors
    /// The errors of [`Envelope::read`].
    pub fn read_file(mut file: &File) -> Result<Option<Envelope>> {
        match Envelope::read(&mut file)? {
            Start::Envelope(envelope) => Ok(Some(envelope)),
            Start::Bare(read) => {
                file.seek(SeekFrom::Current(-(read.len() as i64))).map_err(Error::Read)?;
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests;
