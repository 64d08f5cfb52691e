//! Whole messages from plaintext, in parallel.

use std::fs::File;
use std::io::{IoSlice, Read, Write};

use super::chunks::Piece;
use super::format::{CHUNK, check_full_chunks, ciphertext_len};
use super::header::{self, MessageKey};
use super::io::{Sink, Source, piece_chunks, read_full, rest_of_file, workers, write_all};
use super::key::FileKey;
use super::options::{Options, Summary};
use super::pipeline::{self, Stage, Taken};
use super::random_access::ReadAt;
use crate::engine::Engine;
use crate::error::{Error, Result};

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
    mut file: &File,
    writer: &mut (dyn Write + Send),
    options: Options<'_>,
) -> Result<Summary> {
    let Some((start, len)) = rest_of_file(file)?.filter(|(_, len)| *len >= POSITIONED) else {
        return encrypt_stream(engine, key, context, &mut file, None, writer, options);
    };
    ciphertext_len(len)?;
    let (header, key) = header::create(key, context)?;
    write_all(writer, &mut [IoSlice::new(&header)], &options)?;
    let workers = workers(engine);
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
    let workers = workers(engine);
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

/// Encrypts a file of known length, which all workers read at once.
struct EncryptAt<'a> {
    engine: &'a Engine,
    key: MessageKey,
    options: Options<'a>,
    /// Chunks in a piece.
    chunks: usize,
    file: &'a File,
    /// Where the plaintext starts in the file.
    start: u64,
    /// Its length.
    len: u64,
}

impl<'a> Stage for EncryptAt<'a> {
    /// The number of the next chunk.
    type Source = u64;
    type Slot = Piece;
    type Sink = Sink<'a>;

    fn slot(&self) -> Piece {
        Piece::new(self.chunks)
    }

    fn take(&self, next: &mut u64, piece: &mut Piece) -> Result<Taken> {
        self.options.check_interrupt()?;
        let room = (self.chunks * CHUNK) as u64;
        let left = self.len - *next * CHUNK as u64;
        piece.first = *next;
        piece.set_plain(left.min(room) as usize, left < room);
        *next += self.chunks as u64;
        Ok(if left < room { Taken::Last } else { Taken::More })
    }

    fn work(&self, piece: &mut Piece) -> Result<()> {
        let mut at = self.start + piece.first * CHUNK as u64;
        for mut slot in piece.plain_slots(piece.plain_len()) {
            // A file that shrinks meanwhile ends here with `UnexpectedEof`.
            ReadAt::read_exact_at(self.file, &mut slot, at).map_err(Error::Read)?;
            at += CHUNK as u64;
        }
        piece.seal(self.engine, &self.key)
    }

    fn put(&self, sink: &mut Sink<'a>, piece: &mut Piece) -> Result<()> {
        sink.put(&mut [IoSlice::new(piece.ciphertext())], piece.plain_len(), &self.options)
    }
}
