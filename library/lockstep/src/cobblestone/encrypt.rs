//! Parallel encryption of whole messages.

use std::io::{IoSlice, Read, Write};

use super::chunks::Piece;
use super::format::{CHUNK, check_full_chunks, ciphertext_len};
use super::header::{self, MessageKey};
use super::io::{Sink, Source, into_buffer, piece_chunks, read_full, workers, write_all};
use super::key::FileKey;
use super::options::{Options, Summary};
use super::pipeline::{self, ReadState, Stage};
use crate::engine::Engine;
use crate::error::{Error, Result};

/// Encrypts all data from `reader` and writes the message to `writer`, with all threads of the engine and less than 64
/// MiB of memory.
///
/// # Errors
/// [`Error::Read`], [`Error::Write`], [`Error::TooLong`], [`Error::Interrupted`], [`Error::Random`], [`Error::Core`].
/// After an error the output is an incomplete message, which decryption refuses.
pub fn encrypt(
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    mut reader: impl Read + Send,
    mut writer: impl Write + Send,
    options: Options<'_>,
) -> Result<Summary> {
    encrypt_stream(engine, key, context, &mut reader, None, &mut writer, options)
}

/// Encrypts a buffer.
///
/// # Errors
/// [`Error::TooLong`], [`Error::Random`], [`Error::Core`].
pub fn seal(engine: &Engine, key: &FileKey, context: &[u8], plaintext: &[u8]) -> Result<Vec<u8>> {
    let len = plaintext.len() as u64;
    let room = usize::try_from(ciphertext_len(len)?).map_err(|_| Error::TooLong)?;
    let mut output = Vec::with_capacity(room);
    let (mut reader, options) = (plaintext, Options::new());
    encrypt_stream(engine, key, context, &mut reader, Some(len), &mut output, options)?;
    Ok(output)
}

/// Encrypts a buffer to a buffer of at least [`ciphertext_len`] bytes, without another buffer of that size. Returns the number
/// of bytes. After an error each byte of the output is zeroed or unchanged.
///
/// # Errors
/// The errors of [`seal`]; `OutputLength` in [`Error::Core`] if the output is too small.
pub fn seal_into(
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    plaintext: &[u8],
    output: &mut [u8],
) -> Result<usize> {
    let len = plaintext.len() as u64;
    into_buffer(ciphertext_len(len)?, output, |writer| {
        encrypt_stream(engine, key, context, &mut &plaintext[..], Some(len), writer, Options::new())
    })
}

pub(super) fn encrypt_stream(
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    reader: &mut (dyn Read + Send),
    known_len: Option<u64>,
    writer: &mut (dyn Write + Send),
    options: Options<'_>,
) -> Result<Summary> {
    let (header, key) = header::create(key, context)?;
    write_all(writer, &mut [IoSlice::new(&header)], &options)?;
    let workers = workers(engine, &options);
    let chunks = piece_chunks(workers, known_len.map(|len| len / CHUNK as u64 + 1));
    let stage = Encrypt { engine, key, options, chunks };
    let mut sink = Sink { writer, plaintext: 0 };
    pipeline::run(&stage, workers, &mut Source { reader, next: 0 }, &mut sink)?;
    summary(sink)
}

pub(super) fn summary(sink: Sink<'_>) -> Result<Summary> {
    let plaintext_len = sink.finish()?;
    Ok(Summary { plaintext_len, ciphertext_len: ciphertext_len(plaintext_len)? })
}

/// Encrypts sequential input.
struct Encrypt<'a> {
    engine: &'a Engine,
    key: MessageKey,
    options: Options<'a>,
    /// Number of chunks in a piece.
    chunks: usize,
}

impl<'a> Stage for Encrypt<'a> {
    type Source = Source<'a>;
    type Slot = Piece;
    type Sink = Sink<'a>;

    fn slot(&self) -> Piece {
        Piece::new(self.chunks)
    }

    fn read(&self, source: &mut Source<'a>, piece: &mut Piece) -> Result<ReadState> {
        self.options.check_interrupt()?;
        let room = self.chunks * CHUNK;
        let len = read_full(source.reader, &mut piece.plain_slots(room), &self.options)?;
        piece.first = source.next;
        piece.set_plain(len, len < room);
        source.next += (len / CHUNK) as u64;
        check_full_chunks(source.next)?;
        Ok(if len < room { ReadState::Last } else { ReadState::More })
    }

    fn process(&self, piece: &mut Piece) -> Result<()> {
        piece.seal(self.engine, &self.key)
    }

    fn write(&self, sink: &mut Sink<'a>, piece: &mut Piece) -> Result<()> {
        sink.put(&mut [IoSlice::new(piece.ciphertext())], piece.plain_len(), &self.options)
    }
}
