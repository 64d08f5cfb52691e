//! A range of a message, read into several buffers by all threads at the same time.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::marker::PhantomData;

use lockstep_cache::fresh;
use zeroize::Zeroize;

use super::chunks::Piece;
use super::format::CHUNK;
use super::io::piece_chunks;
use super::options::Options;
use super::pipeline::{self, ReadState, Stage};
use super::random_access::{ReadAt, Reader};
use crate::error::{Error, Result};

impl<S: ReadAt> Reader<S> {
    /// Reads plaintext from this offset into buffers, one after the other, until they are full or the message ends. Uses all
    /// threads of the engine; each thread writes to its own part of the buffers. Returns the number of bytes; the rest of
    /// the buffers is unchanged. On failure all buffers are zeroed.
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
        let len = self.len().saturating_sub(offset).min(room);
        if len == 0 {
            return Ok(0);
        }
        let end = offset + len;
        let workers = self.workers(&options);
        let chunks = piece_chunks(workers, Some((end - 1) / CHUNK as u64 - offset / CHUNK as u64 + 1));
        let rest = buffers.iter_mut().map(|buffer| &mut **buffer).collect();
        let mut source = Rest { position: offset, rest };
        let stage = Scatter { reader: self, options, chunks, end, buffers: PhantomData };
        let outcome = pipeline::run(&stage, workers, &mut source, &mut 0);
        drop(source);
        if outcome.is_err() {
            buffers.iter_mut().for_each(|buffer| buffer.zeroize());
        }
        outcome.map(|()| len)
    }
}

/// The part that no worker has taken yet.
struct Rest<'b> {
    /// Offset of the part in the plaintext.
    position: u64,
    rest: VecDeque<&'b mut [u8]>,
}

impl<'b> Rest<'b> {
    /// Takes the next `len` bytes of the buffers.
    fn take(&mut self, mut len: usize) -> Vec<&'b mut [u8]> {
        self.position += len as u64;
        let mut taken = Vec::new();
        while len > 0 {
            let Some(buffer) = self.rest.pop_front() else { break };
            let (now, later) = buffer.split_at_mut(len.min(buffer.len()));
            len -= now.len();
            taken.push(now);
            if !later.is_empty() {
                self.rest.push_front(later);
            }
        }
        taken
    }
}

/// A piece of the range.
struct Slot<'b> {
    piece: Piece,
    /// Offset in the plaintext, and length.
    position: u64,
    len: usize,
    buffers: Vec<&'b mut [u8]>,
}

/// Reads a range into buffers.
struct Scatter<'a, 'b, S> {
    reader: &'a Reader<S>,
    options: Options<'a>,
    /// Number of chunks in a piece.
    chunks: usize,
    /// End of the range in the plaintext.
    end: u64,
    /// The lifetime of the buffers.
    buffers: PhantomData<fn(&'b mut [u8])>,
}

impl<'b, S: ReadAt> Stage for Scatter<'_, 'b, S> {
    type Source = Rest<'b>;
    type Slot = Slot<'b>;
    /// Number of bytes that are complete.
    type Sink = u64;

    fn slot(&self) -> Slot<'b> {
        Slot { piece: Piece::new(self.chunks), position: 0, len: 0, buffers: Vec::new() }
    }

    fn read(&self, source: &mut Rest<'b>, slot: &mut Slot<'b>) -> Result<ReadState> {
        self.options.check_interrupt()?;
        slot.position = source.position;
        let room = (self.chunks * CHUNK - (slot.position % CHUNK as u64) as usize) as u64;
        slot.len = (self.end - slot.position).min(room) as usize;
        slot.buffers = source.take(slot.len);
        Ok(if source.position == self.end { ReadState::Last } else { ReadState::More })
    }

    fn process(&self, slot: &mut Slot<'b>) -> Result<()> {
        let inside = (slot.position % CHUNK as u64) as usize;
        let count = (inside + slot.len).div_ceil(CHUNK);
        self.reader.read_chunks(&mut slot.piece, slot.position / CHUNK as u64, count)?;
        slot.buffers.iter_mut().for_each(|buffer| fresh::populate(buffer));
        copy(slot.piece.plain_chunks(), inside, &mut slot.buffers)
    }

    fn write(&self, done: &mut u64, slot: &mut Slot<'b>) -> Result<()> {
        *done += slot.len as u64;
        self.options.report(*done);
        Ok(())
    }
}

/// Fills the buffers with the bytes of chunks, without the first `skip` bytes of the first chunk.
fn copy<'c>(
    mut chunks: impl Iterator<Item = &'c [u8]>,
    skip: usize,
    buffers: &mut [&mut [u8]],
) -> Result<()> {
    let mut from = chunks.next().and_then(|first| first.get(skip..)).unwrap_or_default();
    for buffer in buffers {
        let mut filled = 0;
        while filled < buffer.len() {
            if from.is_empty() {
                from = chunks
                    .next()
                    .filter(|chunk| !chunk.is_empty())
                    .ok_or_else(|| Error::Read(ErrorKind::UnexpectedEof.into()))?;
            }
            let (now, later) = from.split_at(from.len().min(buffer.len() - filled));
            buffer[filled..filled + now.len()].copy_from_slice(now);
            filled += now.len();
            from = later;
        }
    }
    Ok(())
}
