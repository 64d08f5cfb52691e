//! Parallel encryption of whole messages.

use std::io::{IoSlice, Read, Write};

use super::chunks::Piece;
use super::format::{CHUNK, check_full_chunks, ciphertext_len};
use super::header;
use super::io::{Sink, into_buffer, read_full, write_all};
use super::key::FileKey;
use super::options::{Options, Summary};
use super::pipeline::{self, ReadState, Workers};
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
    let next = |piece: &mut Piece| {
        let room = piece.room();
        read_full(&mut piece.plain_slots(room), &options, |slots, _| reader.read_vectored(slots))
    };
    let plaintext = Plaintext { known_len, next, fill: |_: &mut Piece| Ok(()) };
    encrypt_pieces(engine, key, context, plaintext, writer, options)
}

/// The plaintext of a message.
pub(super) struct Plaintext<N, F> {
    /// The length in bytes, if it is known. It is used only to choose small buffers for a short message.
    pub(super) known_len: Option<u64>,
    /// Returns the number of bytes of the next piece, which fill it unless the message ends. Reads the bytes, or leaves this to
    /// `fill`.
    pub(super) next: N,
    /// Reads the bytes of a piece that `next` has not read. Called in parallel.
    pub(super) fill: F,
}

pub(super) fn encrypt_pieces(
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    plaintext: Plaintext<
        impl FnMut(&mut Piece) -> Result<usize> + Send,
        impl Fn(&mut Piece) -> Result<()> + Sync,
    >,
    writer: &mut (dyn Write + Send),
    options: Options<'_>,
) -> Result<Summary> {
    let (header, key) = header::create(key, context)?;
    write_all(writer, &mut [IoSlice::new(&header)], &options)?;
    let Plaintext { known_len, mut next, fill } = plaintext;
    let (mut chunk, mut sink) = (0, Sink { writer, plaintext: 0 });
    pipeline::run(
        Workers::new(engine, options, known_len.map(|len| len / CHUNK as u64 + 1)),
        |(piece, ())| {
            piece.first = chunk;
            let len = next(piece)?;
            let ends = len < piece.room();
            piece.set_plain(len, ends);
            chunk += (len / CHUNK) as u64;
            check_full_chunks(chunk)?;
            Ok(if ends { ReadState::Last } else { ReadState::More })
        },
        |(piece, ())| {
            fill(piece)?;
            piece.seal(engine, &key)
        },
        |(piece, ())| sink.put(&mut [IoSlice::new(piece.ciphertext())], piece.plain_len(), &options),
    )?;
    let plaintext_len = sink.finish()?;
    Ok(Summary { plaintext_len, ciphertext_len: ciphertext_len(plaintext_len)? })
}
