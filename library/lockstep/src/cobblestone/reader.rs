//! A reader that decrypts a message.

use std::io::{self, Read};

use super::chunks::Piece;
use super::format::{CHUNK, ENCRYPTED_CHUNK, HEADER, check_full_chunks, chunk_offset};
use super::header::{self, MessageKey};
use super::key::FileKey;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::read;

/// Maximum number of chunks opened in one call.
const BATCH: usize = 16;

/// A reader that decrypts the message of an inner reader, on the calling thread.
///
/// It returns only verified plaintext, as soon as a chunk is complete. The *message* is known to be complete only when
/// `read` has returned `Ok(0)`. After an error every further call fails, except if the inner reader was interrupted or
/// would have blocked.
pub struct DecryptReader<R> {
    inner: R,
    engine: Engine,
    key: MessageKey,
    piece: Piece,
    /// Plaintext bytes of the piece that have been returned to the caller.
    given: usize,
    /// Bytes of ciphertext that are read but not opened; they are stored after the opened chunks.
    waiting: usize,
    /// Number of opened chunks in the piece.
    opened: usize,
    ended: bool,
    failed: Option<String>,
}

impl<R: Read> DecryptReader<R> {
    /// Reads and checks the header.
    ///
    /// # Errors
    /// [`Error::WrongKeyOrContext`], [`Error::OtherFormat`], [`Error::Truncated`], [`Error::Read`].
    pub fn new(engine: &Engine, key: &FileKey, context: &[u8], mut inner: R) -> Result<Self> {
        let mut header = [0; HEADER];
        let got = read::full(&mut inner, &mut header).map_err(Error::Read)?;
        Ok(DecryptReader {
            inner,
            engine: engine.clone(),
            key: header::check(key, context, &header[..got], |_| ())?,
            piece: Piece::new(BATCH),
            given: 0,
            waiting: 0,
            opened: 0,
            ended: false,
            failed: None,
        })
    }

    /// The inner reader.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// Reads and opens at least one chunk. After an error of the inner reader, the call can be repeated.
    fn fill(&mut self) -> Result<()> {
        if self.opened > 0 {
            self.piece.move_to_front(self.opened, self.waiting);
            self.piece.first += self.opened as u64;
            (self.opened, self.given) = (0, 0);
            self.piece.set_plain(0, false);
        }
        while self.waiting < ENCRYPTED_CHUNK {
            match self.inner.read(&mut self.piece.encrypted_slot()[self.waiting..]).map_err(Error::Read)? {
                0 => {
                    self.ended = true;
                    break;
                }
                n => self.waiting += n,
            }
        }
        let full = self.waiting / ENCRYPTED_CHUNK;
        let now = if self.ended { self.waiting } else { full * ENCRYPTED_CHUNK };
        if !self.piece.set_encrypted(now, self.ended) {
            return Err(Error::Truncated { got: chunk_offset(self.piece.first) + now as u64 });
        }
        check_full_chunks(self.piece.first + full as u64)?;
        self.piece.open(&self.engine, &self.key)?;
        self.opened = full;
        self.waiting -= now;
        Ok(())
    }
}

impl<R: Read> Read for DecryptReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(first) = &self.failed {
            return Err(Error::FailedBefore { first: first.clone() }.into());
        }
        if buffer.is_empty() {
            return Ok(0);
        }
        while self.given == self.piece.plain_len() {
            if self.ended {
                return Ok(0);
            }
            match self.fill() {
                Ok(()) => {}
                Err(Error::Read(error))
                    if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) =>
                {
                    return Err(error);
                }
                Err(error) => {
                    self.failed = Some(error.to_string());
                    return Err(error.into());
                }
            }
        }
        let chunk = self.piece.plain_chunk(self.given / CHUNK);
        let n = (&chunk[self.given % CHUNK..]).read(buffer)?;
        self.given += n;
        Ok(n)
    }
}

impl<R> std::fmt::Debug for DecryptReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DecryptReader").field("failed", &self.failed).finish_non_exhaustive()
    }
}
