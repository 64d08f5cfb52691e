//! Random access to a message.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use lockstep_cache::fresh;
use zeroize::{Zeroize, Zeroizing};

use super::chunks::Piece;
use super::format::{CHUNK, ENCRYPTED_CHUNK, HEADER, chunk_offset, plaintext_len};
use super::header::MessageKey;
use super::io::Sink;
use super::key::FileKey;
use super::options::Options;
use super::pipeline::{self, Slot, Workers};
use crate::engine::Engine;
use crate::error::{Error, Result, ensure};
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

    /// True if only the thread that calls a function of this library may read the source during this call, for example because the
    /// source calls code of the caller. The whole call then runs on this thread.
    fn is_serial(&self) -> bool {
        false
    }
}

#[cfg(unix)]
impl ReadAt for std::fs::File {
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

/// A message with random access.
///
/// [`Reader::open`] verifies the header and the last chunk, and thus the length, so a truncated message cannot be
/// opened. A read verifies each chunk that it needs, before it returns plaintext of the chunk. Other chunks are not
/// verified.
pub struct Reader<S> {
    source: S,
    /// The offset of the message in the source.
    start: u64,
    engine: Engine,
    key: MessageKey,
    /// Bytes of plaintext.
    len: u64,
    /// Bytes of the message.
    size: u64,
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
        Reader::open_from(engine, key, context, source, 0)
    }

    /// Opens the message from byte `start` of the source to its end, for example in a file with an envelope.
    ///
    /// # Errors
    /// Those of [`Reader::open`].
    pub fn open_from(engine: &Engine, key: &FileKey, context: &[u8], source: S, start: u64) -> Result<Self> {
        let size = source.size().map_err(Error::Read)?.saturating_sub(start);
        let up_to = |most: usize| size.min(most as u64) as usize;
        let mut header = [0; HEADER];
        let header = &mut header[..up_to(HEADER)];
        // `start` may be after the end of the source. In this case no byte is read, and the offset is 0.
        let start = if size > 0 { start } else { 0 };
        source.read_exact_at(header, start).map_err(Error::Read)?;
        let key = MessageKey::check(key, context, header, |first| {
            first.resize(up_to(foreign::START), 0);
            if source.read_exact_at(first, start).is_err() {
                first.clear();
            }
        })?;
        let len = plaintext_len(size)?;
        let engine = engine.clone();
        let reader = Reader { source, start, engine, key, len, size, position: 0, current: None };
        reader.read_chunks(&mut Piece::new(1), chunk_of(len), 1)?;
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
        Ok(self.read_scattered(offset, &mut [buffer], Options::default())? as usize)
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
        let mut sink = Sink { writer: &mut writer, options, plaintext: 0 };
        let write = |part: &Part, piece: &Piece| sink.put(&mut plaintext(piece, part), len_of(part));
        self.read_parts(offset, len, options, |_| (), |_, _, ()| (), write)?;
        sink.finish()
    }

    /// Reads plaintext from this offset into buffers, one after the other, until they are full or the message ends. Uses all
    /// threads of the engine; each thread writes to its own part of the buffers. Returns the number of bytes. If the message ends
    /// before the buffers are full, the bytes after this number are unchanged. On failure all buffers are zeroed.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Read`], [`Error::Interrupted`], [`Error::Core`].
    pub fn read_scattered(
        &self,
        offset: u64,
        buffers: &mut [&mut [u8]],
        options: Options<'_>,
    ) -> Result<u64> {
        let room = buffers.iter().fold(0_u64, |sum, buffer| sum.saturating_add(buffer.len() as u64));
        let mut rest: VecDeque<_> = buffers.iter_mut().map(|buffer| &mut **buffer).collect();
        let mut done = 0;
        let outcome = self.read_parts(
            offset,
            room,
            options,
            |part| take(&mut rest, len_of(part)),
            |part, piece, buffers| fill(buffers, &plaintext(piece, part)),
            |part, _| {
                done = part.end - offset;
                options.report(done);
                Ok(())
            },
        );
        if outcome.is_err() {
            buffers.iter_mut().for_each(|buffer| buffer.zeroize());
        }
        outcome.map(|()| done)
    }

    /// Reads and opens a range of the plaintext, which ends at the latest with the message, in parts of a piece each. For each part,
    /// `take` makes a value, then `process` uses the opened piece with this value, and then `write` writes the piece. `take` and
    /// `write` are called in the order of the parts; `process` is called in parallel.
    fn read_parts<V: Default + Send>(
        &self,
        offset: u64,
        len: u64,
        options: Options<'_>,
        mut take: impl FnMut(&Part) -> V + Send,
        process: impl Fn(&Part, &Piece, &mut V) + Sync,
        mut write: impl FnMut(&Part, &Piece) -> Result<()> + Send,
    ) -> Result<()> {
        let end = offset.saturating_add(len).min(self.len);
        if offset >= end {
            return Ok(());
        }
        let chunks = chunk_of(end - 1) - chunk_of(offset) + 1;
        let max_threads = if self.source.is_serial() { Some(1) } else { options.max_threads };
        let options = Options { max_threads, ..options };
        let mut start = offset;
        pipeline::run(
            Workers::new(&self.engine, options, Some(chunks)),
            |(piece, (part, value)): &mut Slot<(Part, V)>| {
                let room = piece.room() - inside(start);
                *part = start..end.min(start + room as u64);
                *value = take(part);
                start = part.end;
                Ok(start == end)
            },
            |(piece, (part, value))| {
                let first = chunk_of(part.start);
                self.read_chunks(piece, first, (chunk_of(part.end - 1) - first + 1) as usize)?;
                process(part, piece, value);
                Ok(())
            },
            |(piece, (part, _))| write(part, piece),
        )
    }

    /// Returns an error if the source has become longer or shorter since it was opened. The data that were read are
    /// then not the current content.
    ///
    /// # Errors
    /// [`Error::InputChanged`], [`Error::Read`].
    pub fn check_unchanged(&self) -> Result<()> {
        let (before, now) = (self.size, self.source_size().map_err(Error::Read)?);
        ensure(now == before, || Error::InputChanged { before, now })
    }

    /// The present length of the source after the start of the message, in bytes.
    fn source_size(&self) -> io::Result<u64> {
        Ok(self.source.size()?.saturating_sub(self.start))
    }

    /// Reads and opens `count` chunks, starting with chunk `first`.
    fn read_chunks(&self, piece: &mut Piece, first: u64, count: usize) -> Result<()> {
        let (start, end) = (chunk_offset(first), self.size);
        let len = (end - start).min((count * ENCRYPTED_CHUNK) as u64) as usize;
        let read = self.source.read_exact_at(&mut piece.encrypted_slot()[..len], self.start + start);
        read.map_err(|error| match (error.kind(), self.source_size()) {
            // The source was truncated after it had been opened.
            (io::ErrorKind::UnexpectedEof, Ok(got)) if got < end => Error::Truncated { got },
            _ => Error::Read(error),
        })?;
        piece.first = first;
        ensure(piece.set_encrypted(len, start + len as u64 == end), || Error::Truncated { got: end })?;
        piece.open(&self.engine, &self.key)
    }
}

/// The number of the chunk that contains this position of the plaintext.
fn chunk_of(position: u64) -> u64 {
    position / CHUNK as u64
}

/// The offset of this plaintext position from the start of its chunk.
fn inside(position: u64) -> usize {
    (position % CHUNK as u64) as usize
}

/// The part of the plaintext that one piece contains.
type Part = Range<u64>;

fn len_of(part: &Part) -> usize {
    (part.end - part.start) as usize
}

/// Returns the plaintext of the part. `piece` begins with the chunk that contains the first byte of the part.
fn plaintext<'p>(piece: &'p Piece, part: &Part) -> Vec<IoSlice<'p>> {
    piece.plaintext(inside(part.start), len_of(part))
}

/// Removes the first `len` bytes from the list of buffers, and returns them as slices.
fn take<'b>(buffers: &mut VecDeque<&'b mut [u8]>, mut len: usize) -> Vec<IoSliceMut<'b>> {
    let mut taken = Vec::new();
    while len > 0 {
        let Some(buffer) = buffers.pop_front() else { break };
        let (now, later) = buffer.split_at_mut(len.min(buffer.len()));
        len -= now.len();
        taken.push(IoSliceMut::new(now));
        if !later.is_empty() {
            buffers.push_front(later);
        }
    }
    taken
}

/// Fills buffers with plaintext of the same total length.
fn fill(mut buffers: &mut [IoSliceMut<'_>], plaintext: &[IoSlice<'_>]) {
    buffers.iter_mut().for_each(|buffer| fresh::populate(buffer));
    for slice in plaintext {
        let copied = (&**slice).read_vectored(buffers).expect("reading from memory does not fail");
        IoSliceMut::advance_slices(&mut buffers, copied);
    }
}

/// The trait `Read` is for programs that parse the plaintext, for example as an archive. Each call verifies the bytes that it
/// returns.
impl<S: ReadAt> Read for Reader<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let chunk = chunk_of(self.position);
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
        let n = (&plain[inside(self.position)..]).read(buffer)?;
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

crate::impl_debug!([S] Reader<S>, "Reader", len);
