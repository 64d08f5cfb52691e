//! Encryption and decryption from the position of an open file to its end.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::ops::Range;

use super::chunks::Piece;
use super::format::{CHUNK, ciphertext_len};
use super::io::read_full;
use super::key::FileKey;
use super::message::{Plaintext, decrypt_stream, encrypt_pieces, encrypt_stream};
use super::options::{Options, Summary};
use super::random_access::Reader;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// Regular files of at least this length are read by all workers at the same time. Shorter files are read sequentially,
/// since parallel reads would not be faster. Sequential reads also avoid errors for the files of `/sys`, which report a
/// wrong length below this limit.
const PARALLEL: u64 = 1 << 20;

/// Encrypts like [`crate::encrypt`], from the position of an open file to its end. Regular files of at least 1 MiB are
/// read by all threads at the same time. The position of the file after the call is unspecified. Data that are appended
/// during the call are encrypted too.
///
/// # Errors
/// The errors of [`crate::encrypt`], [`Error::InputChanged`] if the file becomes shorter.
pub fn encrypt_open_file(
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    mut file: &File,
    mut output: impl Write + Send,
    options: Options<'_>,
) -> Result<Summary> {
    let Some(rest) = rest_of_file(file)? else {
        return encrypt_stream(engine, key, context, &mut file, None, &mut output, options);
    };
    let len = len_of(&rest);
    ciphertext_len(len)?;
    let is_parallel = len >= PARALLEL;
    let place = |piece: &Piece| rest.start + piece.first * CHUNK as u64;
    let read = |piece: &mut Piece, len: usize| {
        let start = place(piece);
        let got = read_full(&mut piece.plain_slots(len), &options, |slots, done| {
            Ok(rustix::io::preadv(file, slots, start + done as u64)?)
        })?;
        if got < len {
            check_not_shrunk(file, rest.end)?;
            if is_parallel && start + (got as u64) < rest.end {
                return Err(Error::Read(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        Ok(got)
    };
    // The workers read all pieces that were complete in the file when it was opened. `next` reads the bytes after these pieces.
    let is_left_to_worker = |piece: &Piece| is_parallel && place(piece) + piece.room() as u64 <= rest.end;
    let next = |piece: &mut Piece| {
        let room = piece.room();
        if is_left_to_worker(piece) { Ok(room) } else { read(piece, room) }
    };
    let fill = |piece: &mut Piece| {
        if is_left_to_worker(piece) { read(piece, piece.room()).map(drop) } else { Ok(()) }
    };
    let plaintext = Plaintext { known_len: Some(len), next, fill };
    encrypt_pieces(engine, key, context, plaintext, &mut output, options)
}

/// Decrypts like [`crate::decrypt`], from the position of an open file to its end. Regular files are read by all
/// threads at the same time, and a truncated regular file is refused before any plaintext is written, unless
/// [`Options::partial`] is set. The position of the file after the call is unspecified.
///
/// # Errors
/// The errors of [`crate::decrypt`], [`Error::InputChanged`] if the length of the file changes.
pub fn decrypt_open_file(
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    mut file: &File,
    mut output: impl Write + Send,
    options: Options<'_>,
) -> Result<Summary> {
    let rest = rest_of_file(file)?;
    let (Some(rest), false) = (&rest, options.partial) else {
        // With `partial`, `Reader::open_from` below cannot be used: it refuses a truncated message before any plaintext is written.
        let len = rest.map(|rest| len_of(&rest));
        return decrypt_stream(engine, key, context, &mut file, len, &mut output, options);
    };
    let reader = Reader::open_from(engine, key, context, file, rest.start)?;
    let plaintext_len = reader.copy_range(0, reader.len(), &mut output, options)?;
    reader.check_unchanged()?;
    Ok(Summary { plaintext_len, ciphertext_len: len_of(rest) })
}

/// The range of bytes from the position of a regular file to its end; `None` for files without a reliable length. The position may
/// be after the end.
fn rest_of_file(mut file: &File) -> Result<Option<Range<u64>>> {
    let metadata = file.metadata().map_err(Error::Read)?;
    if !metadata.is_file() || metadata.len() == 0 {
        return Ok(None);
    }
    Ok(Some(file.stream_position().map_err(Error::Read)?..metadata.len()))
}

fn len_of(rest: &Range<u64>) -> u64 {
    rest.end.saturating_sub(rest.start)
}

/// Returns an error if a file is now shorter than `before`. Call this function after a read has reached the end of the
/// file. The function returns no error for files of `/sys`, whose reported length is too large but does not change.
///
/// # Errors
/// [`Error::InputChanged`], [`Error::Read`].
pub fn check_not_shrunk(input: &File, before: u64) -> Result<()> {
    let now = input.metadata().map_err(Error::Read)?.len();
    if now < before { Err(Error::InputChanged { before, now }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
