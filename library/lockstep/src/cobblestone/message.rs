//! Parallel encryption and decryption of whole messages.

use std::io::{IoSlice, IoSliceMut, Read, Write};

use zeroize::Zeroize;

use super::chunks::Piece;
use super::format::{
    CHUNK, ENCRYPTED_CHUNK, HEADER, check_full_chunks, chunk_offset, ciphertext_len, plaintext_len,
};
use super::header::MessageKey;
use super::io::{Sink, into_buffer, read_full};
use super::key::FileKey;
use super::options::{Options, Summary};
use super::pipeline::{self, Slot, Workers};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::foreign;

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
    let len = usize::try_from(ciphertext_len(plaintext.len() as u64)?).map_err(|_| Error::TooLong)?;
    let mut output = vec![0; len];
    seal_into(engine, key, context, plaintext, &mut output)?;
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
        encrypt_stream(engine, key, context, &mut &plaintext[..], Some(len), writer, Options::default())
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
    /// Returns the number of bytes of the next piece. The bytes fill the piece unless the message ends with them. `next` either
    /// reads the bytes, or leaves the reading to `fill`.
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
    let (header, key) = MessageKey::create(key, context)?;
    let mut sink = Sink { writer, options, plaintext: 0 };
    sink.write_all(&mut [IoSlice::new(&header)])?;
    let (mut chunk, Plaintext { known_len, mut next, fill }) = (0, plaintext);
    pipeline::run(
        Workers::new(engine, options, known_len.map(|len| len / CHUNK as u64 + 1)),
        |(piece, ())| {
            piece.first = chunk;
            let len = next(piece)?;
            let ends = len < piece.room();
            piece.set_plain(len, ends);
            chunk += (len / CHUNK) as u64;
            check_full_chunks(chunk)?;
            Ok(ends)
        },
        |(piece, ())| {
            fill(piece)?;
            piece.seal(engine, &key)
        },
        |(piece, ())| sink.put(&mut [IoSlice::new(piece.ciphertext())], piece.plain_len()),
    )?;
    finish(sink)
}

/// Ends the processing of a whole message; returns the lengths of the plaintext and of the message.
fn finish(sink: Sink<'_>) -> Result<Summary> {
    let plaintext_len = sink.finish()?;
    Ok(Summary { plaintext_len, ciphertext_len: ciphertext_len(plaintext_len)? })
}

/// Decrypts the message from `reader` to its end and writes the plaintext to `writer`, with all threads of the engine
/// and less than 64 MiB of memory.
///
/// Only verified plaintext is written. However, the *message* is known to be complete only after its end has been read,
/// so discard the output after an error. [`crate::decrypt_file`] does this for files.
///
/// To read the plaintext by the trait `Read`, run this function on a thread with the writer of [`std::io::pipe`], and read from the
/// reader of the pipe. The message is complete if the thread then returns no error.
///
/// # Errors
/// [`Error::WrongKeyOrContext`], [`Error::OtherFormat`], [`Error::Damaged`], [`Error::Truncated`], [`Error::TooLong`],
/// [`Error::Read`], [`Error::Write`], [`Error::Interrupted`], [`Error::Core`]; with [`Options::partial`] [`Error::Partial`].
pub fn decrypt(
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    mut reader: impl Read + Send,
    mut writer: impl Write + Send,
    options: Options<'_>,
) -> Result<Summary> {
    decrypt_stream(engine, key, context, &mut reader, None, &mut writer, options)
}

/// Decrypts a buffer. Returns the whole plaintext or an error.
///
/// # Errors
/// [`Error::WrongKeyOrContext`], [`Error::OtherFormat`], [`Error::Damaged`], [`Error::Truncated`], [`Error::TooLong`],
/// [`Error::Core`].
pub fn open(engine: &Engine, key: &FileKey, context: &[u8], message: &[u8]) -> Result<Vec<u8>> {
    let len = message.len() as u64;
    // Allocates the whole size at once, since a growing vector would leave copies of plaintext in freed memory. If no
    // message can have this length, nothing is allocated here and the decryption below returns an error. The decryption
    // checks the key first, so a wrong key is reported before a wrong length.
    let room = usize::try_from(plaintext_len(len).unwrap_or(0)).map_err(|_| Error::TooLong)?;
    let mut output = Vec::with_capacity(room);
    let (mut reader, options) = (message, Options::default());
    let outcome = decrypt_stream(engine, key, context, &mut reader, Some(len), &mut output, options);
    if outcome.is_err() {
        output.zeroize();
    }
    outcome.map(|_| output)
}

/// Decrypts a buffer to a buffer of at least [`plaintext_len`] bytes, without another buffer of that size. Returns the number of
/// bytes. After an error each byte of the output is zeroed or unchanged.
///
/// # Errors
/// The errors of [`open`]; `OutputLength` in [`Error::Core`] if the output is too small.
pub fn open_into(
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    message: &[u8],
    output: &mut [u8],
) -> Result<usize> {
    let len = message.len() as u64;
    into_buffer(plaintext_len(len)?, output, |writer| {
        decrypt_stream(engine, key, context, &mut &message[..], Some(len), writer, Options::default())
    })
}

pub(super) fn decrypt_stream(
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    reader: &mut (dyn Read + Send),
    known_len: Option<u64>,
    writer: &mut (dyn Write + Send),
    options: Options<'_>,
) -> Result<Summary> {
    let mut sink = Sink { writer, options, plaintext: 0 };
    let decrypted = decrypt_to(&mut sink, engine, key, context, reader, known_len);
    let is_partial = |error: &Error| error.is_authentication_failure() || matches!(error, Error::Read(_));
    match decrypted {
        Err(error) if options.partial && is_partial(&error) => {
            Err(Error::Partial { verified: sink.finish()?, source: Box::new(error) })
        }
        Err(error) => Err(error),
        Ok(()) => finish(sink),
    }
}

fn decrypt_to(
    sink: &mut Sink<'_>,
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    reader: &mut (dyn Read + Send),
    known_len: Option<u64>,
) -> Result<()> {
    let options = sink.options;
    let mut read = |slot: &mut [u8]| {
        read_full(&mut [IoSliceMut::new(slot)], &options, |slots, _| reader.read_vectored(slots))
    };
    let mut header = [0; HEADER];
    let got = read(&mut header)?;
    let key = MessageKey::check(key, context, &header[..got], |start| {
        // More bytes are read only if the length of the input is known: a read from a stream could wait forever.
        if known_len.is_some() {
            start.resize(foreign::START, 0);
            let more = read(&mut start[got..]).unwrap_or(0);
            start.truncate(got + more);
        }
    })?;
    let mut chunk = 0;
    pipeline::run(
        Workers::new(engine, options, known_len.map(|len| len / CHUNK as u64 + 1)),
        // The value of a slot is the error that makes decryption stop after the piece, if the beginning of the piece is still
        // written.
        |(piece, stopped): &mut Slot<Option<Error>>| {
            let slot = piece.encrypted_slot();
            let room = slot.len();
            let len = read(slot)?;
            piece.first = chunk;
            if !piece.set_encrypted(len, len < room) {
                let error = Error::Truncated { got: chunk_offset(chunk) + len as u64 };
                if !options.partial {
                    return Err(error);
                }
                *stopped = Some(error);
            }
            chunk += (len / ENCRYPTED_CHUNK) as u64;
            check_full_chunks(chunk)?;
            Ok(len < room)
        },
        |(piece, stopped)| match piece.open(engine, &key) {
            Err(error @ Error::Damaged { .. }) if options.partial => {
                *stopped = Some(error);
                Ok(())
            }
            opened => opened,
        },
        |(piece, stopped)| {
            let len = piece.plain_len();
            sink.put(&mut piece.plaintext(0, len), len)?;
            stopped.take().map_or(Ok(()), Err)
        },
    )
}
