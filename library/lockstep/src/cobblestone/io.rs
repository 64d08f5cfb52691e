//! Reading and writing in pieces, and the number of pieces in flight.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};

use zeroize::Zeroize;

use super::format::ENCRYPTED_CHUNK;
use super::options::Options;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// Maximum number of workers. More workers would only wait, since pieces are written one after the other.
const MAX_WORKERS: usize = 256;
/// Maximum total size of the pieces of all workers in bytes.
const MEMORY: usize = 32 << 20;
/// Number of chunks in a piece, unless the pieces of all workers would exceed [`MEMORY`]. A piece of this size makes
/// the cost of system calls small and still fits in the cache. The CPU backend does not divide a piece of this size
/// among its own threads.
const PIECE_CHUNKS: usize = 32;

/// The number of workers to use.
pub(super) fn workers(engine: &Engine, options: &Options<'_>) -> usize {
    options.limit_threads(engine.threads()).min(MAX_WORKERS)
}

/// The number of chunks in a piece. `chunks` is the number of chunks of the message, if known.
pub(super) fn piece_chunks(workers: usize, chunks: Option<u64>) -> usize {
    let chunks = chunks.map_or(usize::MAX, |chunks| usize::try_from(chunks).unwrap_or(usize::MAX));
    chunks.min(PIECE_CHUNKS).min(MEMORY / ENCRYPTED_CHUNK / workers).max(1)
}

/// Runs `process` with a writer to the first `needed` bytes of a buffer, and returns `needed`. `process` must write all
/// these bytes. After an error the bytes that were written are zeroed. A buffer that is too small is unchanged.
pub(super) fn into_buffer<T>(
    needed: u64,
    output: &mut [u8],
    process: impl FnOnce(&mut (dyn Write + Send)) -> Result<T>,
) -> Result<usize> {
    let needed = usize::try_from(needed).map_err(|_| Error::TooLong)?;
    let got = output.len();
    let place = output.get_mut(..needed).ok_or(lockstep_core::Error::OutputLength { needed, got })?;
    let mut writer = BufferWriter { place, written: 0, is_complete: false };
    process(&mut writer)?;
    writer.is_complete = true;
    Ok(needed)
}

/// Writes to a buffer. The written bytes are zeroed after an error or a panic.
struct BufferWriter<'a> {
    place: &'a mut [u8],
    written: usize,
    is_complete: bool,
}

impl Write for BufferWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = (&mut self.place[self.written..]).write(bytes)?;
        self.written += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for BufferWriter<'_> {
    fn drop(&mut self) {
        if !self.is_complete {
            self.place[..self.written].zeroize();
        }
    }
}

/// Sequential input.
pub(super) struct Source<'r> {
    pub(super) reader: &'r mut (dyn Read + Send),
    /// Number of the next chunk.
    pub(super) next: u64,
}

/// The destination of pieces.
pub(super) struct Sink<'w> {
    pub(super) writer: &'w mut (dyn Write + Send),
    /// Bytes of plaintext processed.
    pub(super) plaintext: u64,
}

impl Sink<'_> {
    /// Writes the bytes of a piece with `plain` bytes of plaintext.
    pub(super) fn put(
        &mut self,
        slices: &mut [IoSlice<'_>],
        plain: usize,
        options: &Options<'_>,
    ) -> Result<()> {
        write_all(self.writer, slices, options)?;
        self.plaintext += plain as u64;
        options.report(self.plaintext);
        Ok(())
    }

    /// Flushes the writer and returns the total number of plaintext bytes.
    pub(super) fn finish(self) -> Result<u64> {
        self.writer.flush().map_err(Error::Write)?;
        Ok(self.plaintext)
    }
}

/// Reads until the slices are full or the input ends; returns the number of bytes.
pub(super) fn read_full(
    reader: &mut dyn Read,
    mut slices: &mut [IoSliceMut<'_>],
    options: &Options<'_>,
) -> Result<usize> {
    let mut done = 0;
    while !slices.is_empty() {
        match reader.read_vectored(slices) {
            Ok(0) => break,
            Ok(n) => {
                done += n;
                IoSliceMut::advance_slices(&mut slices, n);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => options.check_interrupt()?,
            Err(error) => return Err(Error::read(error)),
        }
    }
    Ok(done)
}

/// Writes the slices completely.
pub(super) fn write_all(
    writer: &mut dyn Write,
    mut slices: &mut [IoSlice<'_>],
    options: &Options<'_>,
) -> Result<()> {
    while !slices.is_empty() {
        match writer.write_vectored(slices) {
            Ok(0) => return Err(Error::Write(io::ErrorKind::WriteZero.into())),
            Ok(n) => IoSlice::advance_slices(&mut slices, n),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => options.check_interrupt()?,
            Err(error) => return Err(Error::Write(error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_for_any_number_of_threads() {
        for workers in 1..=MAX_WORKERS {
            let chunks = piece_chunks(workers, None);
            assert!(chunks >= 1 && workers * chunks * ENCRYPTED_CHUNK <= MEMORY, "{workers}");
        }
        assert_eq!(piece_chunks(2, Some(3)), 3);
        assert_eq!(piece_chunks(2, Some(u64::MAX)), PIECE_CHUNKS);
    }
}
