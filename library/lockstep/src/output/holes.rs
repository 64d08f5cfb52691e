//! Holes in new files: blocks of zeros that are skipped instead of written, so that they take no space on the disk.

use std::fs::File;
use std::io::{self, IoSlice, Seek, SeekFrom, Write};

/// Length and alignment of the blocks that are skipped: the block size of most file systems. A shorter hole would save
/// no space.
const BLOCK: usize = 4096;

/// The state of a writer that writes a new file from its start and skips blocks of zeros.
#[derive(Debug, Default)]
pub(super) struct Holes {
    /// The position in the file.
    position: u64,
    /// True if the file ends before the position, since the last blocks were skipped.
    is_short: bool,
}

impl Holes {
    /// Writes the first bytes of the slices, or skips them if they are blocks of zeros. Returns the number of bytes that were
    /// written or skipped.
    pub(super) fn write(&mut self, mut file: &File, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(start) = slices.iter().position(|slice| !slice.is_empty()) else { return Ok(0) };
        let slices = &slices[start..];
        let (done, is_skipped) = match first_zeros(self.position, &slices[0]) {
            Some(0) => {
                let blocks = slices[0].chunks_exact(BLOCK).take_while(|block| is_zero(block)).count();
                file.seek(SeekFrom::Current((blocks * BLOCK) as i64))?;
                (blocks * BLOCK, true)
            }
            Some(before) => (file.write(&slices[0][..before])?, false),
            None => {
                let mut position = self.position;
                let has_no_zeros = |slice: &&IoSlice<'_>| {
                    let found = first_zeros(position, slice);
                    position += slice.len() as u64;
                    found.is_none()
                };
                let count = slices.iter().take_while(has_no_zeros).count();
                (file.write_vectored(&slices[..count])?, false)
            }
        };
        self.is_short = is_skipped || self.is_short && done == 0;
        self.position += done as u64;
        Ok(done)
    }

    /// Gives the file its length if it ends with a hole.
    pub(super) fn finish(&mut self, file: &File) -> io::Result<()> {
        if self.is_short {
            file.set_len(self.position)?;
            self.is_short = false;
        }
        Ok(())
    }
}

/// Returns the offset in `bytes` of the first block of zeros. `position` is the position of `bytes` in the file, in which blocks
/// begin at multiples of their length.
fn first_zeros(position: u64, bytes: &[u8]) -> Option<usize> {
    let start = (position.next_multiple_of(BLOCK as u64) - position) as usize;
    let block = bytes.get(start..)?.chunks_exact(BLOCK).position(is_zero)?;
    Some(start + block * BLOCK)
}

/// True if all bytes of a block are zero. The comparison uses `memcmp`, which stops at the first byte that is not zero: for most
/// other blocks after a few bytes.
fn is_zero(block: &[u8]) -> bool {
    static ZEROS: [u8; BLOCK] = [0; BLOCK];
    block == ZEROS
}

#[cfg(test)]
mod tests;
