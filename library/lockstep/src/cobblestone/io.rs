//! Reading and writing of several slices at once.

use std::io::{self, IoSlice, IoSliceMut, Write};

use zeroize::Zeroize;

use super::options::Options;
use crate::error::{Error, Result};

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
    let mut unfinished = Unfinished(io::Cursor::new(place));
    process(&mut unfinished.0)?;
    unfinished.0.set_position(0);
    Ok(needed)
}

/// A buffer that is not completely written. On drop, after an error or a panic, the bytes before its position are zeroed.
struct Unfinished<'a>(io::Cursor<&'a mut [u8]>);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let written = self.0.position() as usize;
        self.0.get_mut()[..written].zeroize();
    }
}

/// The destination of pieces.
pub(super) struct Sink<'w> {
    pub(super) writer: &'w mut (dyn Write + Send),
    pub(super) options: Options<'w>,
    /// Bytes of plaintext processed.
    pub(super) plaintext: u64,
}

impl Sink<'_> {
    /// Writes the slices completely.
    pub(super) fn write_all(&mut self, mut slices: &mut [IoSlice<'_>]) -> Result<()> {
        while !slices.is_empty() {
            match self.writer.write_vectored(slices) {
                Ok(0) => return Err(Error::Write(io::ErrorKind::WriteZero.into())),
                Ok(n) => IoSlice::advance_slices(&mut slices, n),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => self.options.check_interrupt()?,
                Err(error) => return Err(Error::Write(error)),
            }
        }
        Ok(())
    }

    /// Writes the bytes of a piece with `plain` bytes of plaintext.
    pub(super) fn put(&mut self, slices: &mut [IoSlice<'_>], plain: usize) -> Result<()> {
        self.write_all(slices)?;
        self.plaintext += plain as u64;
        self.options.report(self.plaintext);
        Ok(())
    }

    /// Flushes the writer; returns the number of bytes of plaintext.
    pub(super) fn finish(self) -> Result<u64> {
        self.writer.flush().map_err(Error::Write)?;
        Ok(self.plaintext)
    }
}

/// Calls `read` until the slices are full or the input ends; returns the number of bytes. The arguments of `read` are the slices
/// that are not yet full, and the number of bytes that were read before.
pub(super) fn read_full(
    mut slices: &mut [IoSliceMut<'_>],
    options: &Options<'_>,
    mut read: impl FnMut(&mut [IoSliceMut<'_>], usize) -> io::Result<usize>,
) -> Result<usize> {
    let mut done = 0;
    while !slices.is_empty() {
        match read(slices, done) {
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
