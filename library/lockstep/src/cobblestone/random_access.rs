//! Random access to a message.

use std::fs::File;
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use zeroize::Zeroizing;

use super::chunks::Piece;
use super::format::{CHUNK, ENCRYPTED_CHUNK, HEADER, TAG, chunk_offset, plaintext_len};
use super::header::{self, MessageKey};
use super::io::{Sink, piece_chunks, workers};
use super::key::FileKey;
use super::options::Options;
use super::pipeline::{self, ReadState, Stage};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::foreign;

/// Bytes that several threads can read at any offset at the same time.
pub trait ReadAt: Sync {
    /// Fills the buffer from this offset.
    ///
    /// # Errors
    /// `UnexpectedEof` if there are fewer bytes, or another error of the source.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// The number of bytes.
    ///
    /// # Errors
    /// An error of the source.
    fn size(&self) -> io::Result<u64>;

    /// True if only the thread that calls a function of this library may read for this call, for example because the source calls
    /// code of the caller. The whole call then runs on this thread.
    fn is_serial(&self) -> bool {
        false
    }
}

#[cfg(unix)]
impl ReadAt for File {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl ReadAt for [u8] {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let part = usize::try_from(offset).ok().and_then(|start| self.get(start..)?.get(..buffer.len()));
        buffer.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl ReadAt for Vec<u8> {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self[..].read_exact_at(buffer, offset)
    }

    fn size(&self) -> io::Result<u64> {
        self[..].size()
    }
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        (**self).read_exact_at(buffer, offset)
    }

    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }

    fn is_serial(&self) -> bool {
        (**self).is_serial()
    }
}

impl<T: ReadAt + Send + ?Sized> ReadAt for Arc<T> {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        (**self).read_exact_at(buffer, offset)
    }

    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }

    fn is_serial(&self) -> bool {
        (**self).is_serial()
    }
}

/// A source without its first bytes, for example a file without its envelope.
#[derive(Debug, Clone)]
pub struct Tail<S> {
    inner: S,
    start: u64,
}

impl<S: ReadAt> Tail<S> {
    /// Skips the first `start` bytes.
    pub fn new(inner: S, start: u64) -> Self {
        Tail { inner, start }
    }
}

impl<S: ReadAt> ReadAt for Tail<S> {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let at = self.start.checked_add(offset).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.inner.read_exact_at(buffer, at)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.inner.size()?.saturating_sub(self.start))
    }

    fn is_serial(&self) -> bool {
        self.inner.is_serial()
    }
}

/// A message with random access.
///
/// [`Reader::open`] verifies the header and the last chunk, and thus the length, so a truncated message cannot be
/// opened. A read verifies each chunk that it needs, before it returns plaintext of the chunk. Other chunks are not
/// verified.
pub struct Reader<S> {
    source: S,
    engine: Engine,
    key: MessageKey,
    len: u64,
    /// The position of `Read` and `Seek`.
    position: u64,
    /// The number and the plaintext of the chunk that `Read` has opened last.
    current: Option<(u64, Zeroizing<Vec<u8>>)>,
}

impl<S: ReadAt> Reader<S> {
    /// Opens a message: checks the header and the last chunk.
    ///
    /// # Errors
    /// [`Error::WrongKeyOrContext`], [`Error::OtherFormat`], [`Error::Truncated`], [`Error::Damaged`], [`Error::TooLong`],
    /// [`Error::Read`].
    pub fn open(engine: &Engine, key: &FileKey, context: &[u8], source: S) -> Result<Reader<S>> {
        let size = source.size().map_err(Error::Read)?;
        let key = check_header(key, context, &source, size)
            .map_err(|error| header::or_other_format(error, || first_bytes(&source, size)))?;
        let len = plaintext_len(size)?;
        let reader = Reader { source, engine: engine.clone(), key, len, position: 0, current: None };
        let last = len / CHUNK as u64;
        reader.read_chunks(&mut Piece::new(1), last, 1)?;
        Ok(reader)
    }

    /// Bytes of plaintext.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if the plaintext is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The source.
    pub fn get_ref(&self) -> &S {
        &self.source
    }

    /// Reads plaintext from this offset until the buffer is full or the message ends; returns the number of bytes. On
    /// failure the buffer is zeroed.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Read`], [`Error::Core`].
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        Ok(self.read_scattered(offset, &mut [buffer], Options::new())? as usize)
    }

    /// Reads `len` bytes of plaintext from this offset, or fewer at the end of the message.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Read`], [`Error::Core`]; [`Error::TooLong`] if the plaintext does not fit in
    /// memory.
    pub fn read_range(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        let len = self.len.saturating_sub(offset).min(len);
        let mut buffer = vec![0; usize::try_from(len).map_err(|_| Error::TooLong)?];
        self.read_at(offset, &mut buffer)?;
        Ok(buffer)
    }

    /// Writes `len` bytes of plaintext from this offset to `writer`, or fewer at the end of the message. Uses all
    /// threads of the engine. Returns the number of bytes.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Read`], [`Error::Write`], [`Error::Interrupted`], [`Error::Core`]. The bytes
    /// written before an error are verified plaintext.
    pub fn copy_range(
        &self,
        offset: u64,
        len: u64,
        mut writer: impl Write + Send,
        options: Options<'_>,
    ) -> Result<u64> {
        let len = self.len.saturating_sub(offset).min(len);
        if len == 0 {
            return Ok(0);
        }
        let workers = self.workers(&options);
        let (first, last) = (offset / CHUNK as u64, (offset + len - 1) / CHUNK as u64);
        let chunks = piece_chunks(workers, Some(last - first + 1));
        let stage = Range { reader: self, options, chunks, last, start: offset, end: offset + len };
        let mut next = first;
        let mut sink = Sink { writer: &mut writer, plaintext: 0 };
        pipeline::run(&stage, workers, &mut next, &mut sink)?;
        sink.finish()
    }

    /// The number of workers to use.
    pub(super) fn workers(&self, options: &Options<'_>) -> usize {
        if self.source.is_serial() { 1 } else { workers(&self.engine, options) }
    }

    /// Returns an error if the source has become longer or shorter since it was opened. The data that were read are
    /// then not the current content.
    ///
    /// # Errors
    /// [`Error::InputChanged`], [`Error::Read`].
    pub fn check_unchanged(&self) -> Result<()> {
        let (before, now) = (self.encrypted_len(), self.source.size().map_err(Error::Read)?);
        if now == before { Ok(()) } else { Err(Error::InputChanged { before, now }) }
    }

    /// Length of the message in bytes.
    fn encrypted_len(&self) -> u64 {
        HEADER as u64 + self.len + (self.len / CHUNK as u64 + 1) * TAG as u64
    }

    /// Reads and opens `count` chunks, starting with chunk `first`.
    pub(super) fn read_chunks(&self, piece: &mut Piece, first: u64, count: usize) -> Result<()> {
        let end = self.encrypted_len();
        let start = chunk_offset(first);
        let len = (end - start).min((count * ENCRYPTED_CHUNK) as u64) as usize;
        let read = self.source.read_exact_at(&mut piece.encrypted_slot()[..len], start);
        read.map_err(|error| match (error.kind(), self.source.size()) {
            // The source was truncated after it had been opened.
            (io::ErrorKind::UnexpectedEof, Ok(got)) if got < end => Error::Truncated { got },
            _ => Error::Read(error),
        })?;
        piece.first = first;
        if !piece.set_encrypted(len, start + len as u64 == end) {
            return Err(Error::Truncated { got: end });
        }
        piece.open(&self.engine, &self.key)
    }
}

/// Derives the key of the message in a source of this size.
fn check_header(key: &FileKey, context: &[u8], source: &impl ReadAt, size: u64) -> Result<MessageKey> {
    if size < HEADER as u64 {
        return Err(Error::Truncated { got: size });
    }
    let mut header = [0; HEADER];
    source.read_exact_at(&mut header, 0).map_err(Error::Read)?;
    header::check(key, context, &header)
}

/// The bytes by which the format of a source of this size can be recognised; none if they cannot be read.
fn first_bytes(source: &impl ReadAt, size: u64) -> Vec<u8> {
    let mut start = vec![0; size.min(foreign::START as u64) as usize];
    if source.read_exact_at(&mut start, 0).is_err() {
        start.clear();
    }
    start
}

/// Reads a part of a message.
struct Range<'a, S> {
    reader: &'a Reader<S>,
    options: Options<'a>,
    /// Number of chunks in a piece.
    chunks: usize,
    /// Number of the last chunk.
    last: u64,
    /// Start and end of the part in the plaintext.
    start: u64,
    end: u64,
}

impl<'a, S: ReadAt> Stage for Range<'a, S> {
    /// Number of the next chunk.
    type Source = u64;
    /// Number of the first chunk, number of chunks, and their buffer.
    type Slot = (u64, usize, Piece);
    type Sink = Sink<'a>;

    fn slot(&self) -> Self::Slot {
        (0, 0, Piece::new(self.chunks))
    }

    fn read(&self, next: &mut u64, (first, count, _): &mut Self::Slot) -> Result<ReadState> {
        self.options.check_interrupt()?;
        *first = *next;
        *count = (self.last - *next + 1).min(self.chunks as u64) as usize;
        *next += *count as u64;
        Ok(if *next > self.last { ReadState::Last } else { ReadState::More })
    }

    fn process(&self, (first, count, piece): &mut Self::Slot) -> Result<()> {
        self.reader.read_chunks(piece, *first, *count)
    }

    fn write(&self, sink: &mut Sink<'a>, (first, _, piece): &mut Self::Slot) -> Result<()> {
        let mut at = *first * CHUNK as u64;
        let (mut slices, mut len) = (Vec::with_capacity(self.chunks), 0);
        for chunk in piece.plain_chunks() {
            let from = self.start.saturating_sub(at).min(chunk.len() as u64) as usize;
            let to = self.end.saturating_sub(at).min(chunk.len() as u64) as usize;
            if from < to {
                slices.push(IoSlice::new(&chunk[from..to]));
                len += to - from;
            }
            at += chunk.len() as u64;
        }
        sink.put(&mut slices, len, &self.options)
    }
}

impl<S: ReadAt> Read for Reader<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let chunk = self.position / CHUNK as u64;
        let inside = (self.position % CHUNK as u64) as usize;
        if buffer.len() >= 2 * CHUNK {
            let n = self.read_at(self.position, buffer)?;
            self.position += n as u64;
            return Ok(n);
        }
        if self.position >= self.len {
            return Ok(0);
        }
        if self.current.as_ref().is_none_or(|(number, _)| *number != chunk) {
            self.current = None;
            let plain = self.read_range(chunk * CHUNK as u64, CHUNK as u64)?;
            self.current = Some((chunk, Zeroizing::new(plain)));
        }
        let Some((_, plain)) = &self.current else { return Ok(0) };
        let rest = &plain[inside..];
        let n = rest.len().min(buffer.len());
        buffer[..n].copy_from_slice(&rest[..n]);
        self.position += n as u64;
        Ok(n)
    }
}

impl<S: ReadAt> Seek for Reader<S> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.len.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

impl<S> std::fmt::Debug for Reader<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("len", &self.len)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
