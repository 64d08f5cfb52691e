//! A writer that encrypts a message and a reader that decrypts one, on the calling thread.

use std::io::{self, Read, Write};

use super::chunks::Piece;
use super::format::{CHUNK, ENCRYPTED_CHUNK, HEADER, check_full_chunks, chunk_offset};
use super::header::{self, MessageKey};
use super::key::FileKey;
use crate::creator::Creator;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::read;

/// Maximum number of chunks sealed or opened in one call.
const BATCH: usize = 16;

/// A writer that encrypts the data that are written to it, on the calling thread.
///
/// [`finish`](EncryptWriter::finish) must be called: without it the message has no end, and decryption refuses it.
/// After an error every further call fails, since the state of the inner writer is unknown. After a fork, the child process
/// cannot use the writer: both processes would encrypt different chunks with the same nonce.
pub struct EncryptWriter<W> {
    inner: W,
    engine: Engine,
    key: MessageKey,
    piece: Piece,
    /// Bytes of plaintext in the piece.
    filled: usize,
    creator: Creator,
    failed: Option<String>,
}

impl<W: Write> EncryptWriter<W> {
    /// Starts a message: writes its header.
    ///
    /// # Errors
    /// [`Error::Random`], [`Error::Write`].
    pub fn new(engine: &Engine, key: &FileKey, context: &[u8], mut inner: W) -> Result<Self> {
        let (header, key) = header::create(key, context)?;
        inner.write_all(&header).map_err(Error::Write)?;
        let (engine, piece, creator) = (engine.clone(), Piece::new(BATCH), Creator::current());
        Ok(EncryptWriter { inner, engine, key, piece, filled: 0, creator, failed: None })
    }

    /// Ends the message and returns the inner writer, without flushing it.
    ///
    /// # Errors
    /// [`Error::Write`], [`Error::Core`], [`Error::FailedBefore`].
    pub fn finish(mut self) -> Result<W> {
        self.run_unless_failed(|this| {
            this.make_room()?;
            this.piece.set_plain(this.filled, true);
            this.send()
        })?;
        Ok(self.inner)
    }

    /// The inner writer. Data that are written to it directly corrupt the message.
    pub fn get_ref(&self) -> &W {
        &self.inner
    }

    /// Makes space for at least one more byte, or for the end of the message.
    fn make_room(&mut self) -> Result<()> {
        if self.filled == self.piece.room() { self.send_full() } else { Ok(()) }
    }

    /// Seals and writes the full chunks of the piece, and keeps the rest.
    fn send_full(&mut self) -> Result<()> {
        let full = self.filled / CHUNK;
        if full == 0 {
            return Ok(());
        }
        check_full_chunks(self.piece.first + full as u64)?;
        self.piece.set_plain(full * CHUNK, false);
        self.send()?;
        self.filled %= CHUNK;
        self.piece.move_to_front(full, self.filled);
        self.piece.first += full as u64;
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        self.creator.check().map_err(Error::Write)?;
        self.piece.seal(&self.engine, &self.key)?;
        self.inner.write_all(self.piece.ciphertext()).map_err(Error::Write)
    }

    /// Runs `action` unless an earlier call has failed.
    fn run_unless_failed<T>(&mut self, action: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if let Some(first) = &self.failed {
            return Err(Error::FailedBefore { first: first.clone() });
        }
        // This value remains if the inner writer panics.
        self.failed = Some("a panic".into());
        let outcome = action(self);
        self.failed = outcome.as_ref().err().map(Error::to_string);
        outcome
    }
}

impl<W: Write> Write for EncryptWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.run_unless_failed(|this| {
            this.make_room()?;
            let taken = this.piece.copy_plain(this.filled, bytes);
            this.filled += taken;
            Ok(taken)
        });
        Ok(taken?)
    }

    /// Writes all full chunks. A partial chunk stays buffered.
    fn flush(&mut self) -> io::Result<()> {
        Ok(self.run_unless_failed(|this| {
            this.send_full()?;
            this.inner.flush().map_err(Error::Write)
        })?)
    }
}

impl<W> std::fmt::Debug for EncryptWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EncryptWriter").field("failed", &self.failed).finish_non_exhaustive()
    }
}

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
