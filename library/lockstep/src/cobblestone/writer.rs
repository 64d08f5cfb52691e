//! A writer that encrypts a message, on the calling thread.

use std::io::{self, Write};

use super::chunks::Piece;
use super::format::{CHUNK, check_full_chunks};
use super::header::MessageKey;
use super::key::FileKey;
use crate::creator::Creator;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// Maximum number of chunks sealed in one call.
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
        let (header, key) = MessageKey::create(key, context)?;
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

    /// Seals and writes the full chunks of the piece, and keeps the bytes after them.
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

crate::impl_debug!([W] EncryptWriter<W>, "EncryptWriter", failed);
