//! Parallel encryption of whole messages.

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};

use super::chunks::Piece;
use super::format::{CHUNK, check_full_chunks, ciphertext_len};
use super::header::{self, MessageKey};
use super::io::{
    Sink, Source, WholeFile, check_not_shrunk, into_buffer, piece_chunks, read_full, read_full_at,
    rest_of_file, workers, write_all,
};
use super::key::FileKey;
use super::options::{Options, Summary};
use super::pipeline::{self, ReadState, Stage};
use crate::engine::Engine;
use crate::error::{Error, Result};

/// Regular files of at least this length are read by all workers at the same time. Shorter files are read sequentially,
/// since parallel reads would not be faster. Sequential reads also avoid errors for the files of `/sys`, which report a
/// wrong length below this limit.
const POSITIONED: u64 = 1 << 20;

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

/// Encrypts like [`encrypt`], from the position of an open file to its end.
pub(crate) fn encrypt_open_file(
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    file: &File,
    writer: &mut (dyn Write + Send),
    options: Options<'_>,
) -> Result<Summary> {
    let rest = rest_of_file(file)?;
    let Some((start, len)) = rest.filter(|(_, len)| *len >= POSITIONED) else {
        // The length is used only to choose small buffers for a short file, since each buffer is wiped after use. The
        // file may become longer than `len`.
        let len = rest.map(|(_, len)| len);
        return encrypt_stream(engine, key, context, &mut WholeFile::new(file)?, len, writer, options);
    };
    ciphertext_len(len)?;
    let (header, key) = header::create(key, context)?;
    write_all(writer, &mut [IoSlice::new(&header)], &options)?;
    let workers = workers(engine, &options);
    let chunks = piece_chunks(workers, Some(len / CHUNK as u64 + 1));
    let stage = EncryptAt { engine, key, options, chunks, file, start, len };
    let mut sink = Sink { writer, plaintext: 0 };
    pipeline::run(&stage, workers, &mut 0, &mut sink)?;
    summary(sink)
}

fn encrypt_stream(
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

fn summary(sink: Sink<'_>) -> Result<Summary> {
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

/// Encrypts a file of known length. All workers read at the same time, up to this length. If the file has grown, the
/// rest is read sequentially.
struct EncryptAt<'a> {
    engine: &'a Engine,
    key: MessageKey,
    options: Options<'a>,
    /// Number of chunks in a piece.
    chunks: usize,
    file: &'a File,
    /// Offset of the plaintext in the file.
    start: u64,
    /// Length of the plaintext when the file was opened.
    len: u64,
}

impl EncryptAt<'_> {
    /// The error for a file that ends early.
    fn ended(&self) -> Error {
        match check_not_shrunk(self.file, self.start + self.len) {
            Err(shrunk) => shrunk,
            Ok(()) => Error::Read(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl<'a> Stage for EncryptAt<'a> {
    /// Number of the next chunk.
    type Source = u64;
    /// The piece, and whether its plaintext has been read.
    type Slot = (Piece, bool);
    type Sink = Sink<'a>;

    fn slot(&self) -> (Piece, bool) {
        (Piece::new(self.chunks), false)
    }

    fn read(&self, next: &mut u64, (piece, is_read): &mut (Piece, bool)) -> Result<ReadState> {
        self.options.check_interrupt()?;
        let room = self.chunks * CHUNK;
        let at = *next * CHUNK as u64;
        piece.first = *next;
        if at + room as u64 <= self.len {
            *is_read = false;
            piece.set_plain(room, false);
            *next += self.chunks as u64;
            return Ok(ReadState::More);
        }
        let len = read_full_at(self.file, &mut piece.plain_slots(room), self.start + at, &self.options)?;
        if at + (len as u64) < self.len {
            return Err(self.ended());
        }
        *is_read = true;
        piece.set_plain(len, len < room);
        *next += (len / CHUNK) as u64;
        check_full_chunks(*next)?;
        Ok(if len < room { ReadState::Last } else { ReadState::More })
    }

    fn process(&self, (piece, is_read): &mut (Piece, bool)) -> Result<()> {
        if !*is_read {
            let (at, len) = (self.start + piece.first * CHUNK as u64, piece.plain_len());
            if read_full_at(self.file, &mut piece.plain_slots(len), at, &self.options)? < len {
                return Err(self.ended());
            }
        }
        piece.seal(self.engine, &self.key)
    }

    fn write(&self, sink: &mut Sink<'a>, (piece, _): &mut (Piece, bool)) -> Result<()> {
        sink.put(&mut [IoSlice::new(piece.ciphertext())], piece.plain_len(), &self.options)
    }
}
