//! Whole messages from plaintext, in parallel.

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};

use super::chunks::Piece;
use super::format::{CHUNK, check_full_chunks, ciphertext_len};
use super::header::{self, MessageKey};
use super::io::{
    Sink, Source, WholeFile, piece_chunks, read_full, read_full_at, rest_of_file, workers, write_all,
};
use super::key::FileKey;
use super::options::{Options, Summary};
use super::pipeline::{self, Stage, Taken};
use super::random_access::ReadAt;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::file::check_not_shrunk;

/// Regular files from this length on are read by all workers at once. Shorter ones do not gain by it, and those whose
/// lengths are made up (`/sys`) are short.
const POSITIONED: u64 = 1 << 20;

/// Encrypts all that `reader` gives and writes the message to `writer`, on all threads of the engine, in less than 64
/// MiB of memory.
///
/// # Errors
/// [`Error::Read`], [`Error::Write`], [`Error::TooLong`], [`Error::Interrupted`], [`Error::Random`], [`Error::Core`].
/// What was written before an error is no whole message, and nobody will take it for one.
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

/// As [`encrypt`], from the position of an open file to its end.
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
        // The length makes the buffers no larger than they have to be: each is wiped after use. A file that grows goes on.
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

/// Encrypts what is read in order.
struct Encrypt<'a> {
    engine: &'a Engine,
    key: MessageKey,
    options: Options<'a>,
    /// Chunks in a piece.
    chunks: usize,
}

impl<'a> Stage for Encrypt<'a> {
    type Source = Source<'a>;
    type Slot = Piece;
    type Sink = Sink<'a>;

    fn slot(&self) -> Piece {
        Piece::new(self.chunks)
    }

    fn take(&self, source: &mut Source<'a>, piece: &mut Piece) -> Result<Taken> {
        self.options.check_interrupt()?;
        let room = self.chunks * CHUNK;
        let len = read_full(source.reader, &mut piece.plain_slots(room), &self.options)?;
        piece.first = source.next;
        piece.set_plain(len, len < room);
        source.next += (len / CHUNK) as u64;
        check_full_chunks(source.next)?;
        Ok(if len < room { Taken::Last } else { Taken::More })
    }

    fn work(&self, piece: &mut Piece) -> Result<()> {
        piece.seal(self.engine, &self.key)
    }

    fn put(&self, sink: &mut Sink<'a>, piece: &mut Piece) -> Result<()> {
        sink.put(&mut [IoSlice::new(piece.ciphertext())], piece.plain_len(), &self.options)
    }
}

/// Encrypts a file of known length. All workers read at once up to that length, and one after the other from there to
/// the end, wherever it is by then.
struct EncryptAt<'a> {
    engine: &'a Engine,
    key: MessageKey,
    options: Options<'a>,
    /// Chunks in a piece.
    chunks: usize,
    file: &'a File,
    /// Where the plaintext starts in the file.
    start: u64,
    /// Its length at first.
    len: u64,
}

impl EncryptAt<'_> {
    /// Why the file ends where it should not.
    fn ended(&self, error: io::Error) -> Error {
        if error.kind() == io::ErrorKind::UnexpectedEof
            && let Err(shrunk) = check_not_shrunk(self.file, self.start + self.len)
        {
            return shrunk;
        }
        Error::Read(error)
    }
}

impl<'a> Stage for EncryptAt<'a> {
    /// The number of the next chunk.
    type Source = u64;
    /// The piece, and whether its plaintext has been read.
    type Slot = (Piece, bool);
    type Sink = Sink<'a>;

    fn slot(&self) -> (Piece, bool) {
        (Piece::new(self.chunks), false)
    }

    fn take(&self, next: &mut u64, (piece, is_read): &mut (Piece, bool)) -> Result<Taken> {
        self.options.check_interrupt()?;
        let room = self.chunks * CHUNK;
        let at = *next * CHUNK as u64;
        piece.first = *next;
        if at + room as u64 <= self.len {
            *is_read = false;
            piece.set_plain(room, false);
            *next += self.chunks as u64;
            return Ok(Taken::More);
        }
        let len = read_full_at(self.file, &mut piece.plain_slots(room), self.start + at, &self.options)?;
        if at + (len as u64) < self.len {
            return Err(self.ended(io::ErrorKind::UnexpectedEof.into()));
        }
        *is_read = true;
        piece.set_plain(len, len < room);
        *next += (len / CHUNK) as u64;
        check_full_chunks(*next)?;
        Ok(if len < room { Taken::Last } else { Taken::More })
    }

    fn work(&self, (piece, is_read): &mut (Piece, bool)) -> Result<()> {
        if !*is_read {
            let mut at = self.start + piece.first * CHUNK as u64;
            for mut slot in piece.plain_slots(piece.plain_len()) {
                ReadAt::read_exact_at(self.file, &mut slot, at).map_err(|error| self.ended(error))?;
                at += CHUNK as u64;
            }
        }
        piece.seal(self.engine, &self.key)
    }

    fn put(&self, sink: &mut Sink<'a>, (piece, _): &mut (Piece, bool)) -> Result<()> {
        sink.put(&mut [IoSlice::new(piece.ciphertext())], piece.plain_len(), &self.options)
    }
}
