//! Holes in new files: blocks of zeros that are skipped instead of written, so that they take no space on the disk.

use std::fs::File;
use std::io::{self, IoSlice, Seek, SeekFrom, Write};

/// Length and alignment of the blocks that are skipped: the block size of most file systems. A shorter hole would save
/// no space.
const BLOCK: usize = 4096;

/// Writes to a new file from its start.
#[derive(Debug, Default)]
pub(super) struct Holes {
    /// The position in the file.
    position: u64,
    /// True if the file ends before the position, since the last blocks were skipped.
    is_short: bool,
}

impl Holes {
    /// Writes the first bytes of the slices, or skips them if they are blocks of zeros. Returns the number of bytes.
    pub(super) fn write(&mut self, mut file: &File, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(start) = slices.iter().position(|slice| !slice.is_empty()) else { return Ok(0) };
        let slices = &slices[start..];
        let done = match first_zeros(self.position, &slices[0]) {
            Some(0) => {
                let blocks = slices[0].chunks_exact(BLOCK).take_while(|block| is_zero(block)).count();
                file.seek(SeekFrom::Current((blocks * BLOCK) as i64))?;
                self.is_short = true;
                blocks * BLOCK
            }
            Some(before) => self.written(file.write(&slices[0][..before])?),
            None => {
                let mut position = self.position;
                let has_no_zeros = |slice: &&IoSlice<'_>| {
                    let found = first_zeros(position, slice);
                    position += slice.len() as u64;
                    found.is_none()
                };
                let count = slices.iter().take_while(has_no_zeros).count();
                self.written(file.write_vectored(&slices[..count])?)
            }
        };
        self.position += done as u64;
        Ok(done)
    }

    fn written(&mut self, bytes: usize) -> usize {
        self.is_short &= bytes == 0;
        bytes
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

/// The offset of the first block of zeros in bytes that belong at this position of the file. Blocks begin at multiples of
/// their length in the file.
fn first_zeros(position: u64, bytes: &[u8]) -> Option<usize> {
    let start = (position.next_multiple_of(BLOCK as u64) - position) as usize;
    let block = bytes.get(start..)?.chunks_exact(BLOCK).position(is_zero)?;
    Some(start + block * BLOCK)
}

/// True if all bytes of a block are zero. The comparison is `memcmp`, which ends at the first bytes of most other blocks.
fn is_zero(block: &[u8]) -> bool {
    static ZEROS: [u8; BLOCK] = [0; BLOCK];
    block == ZEROS
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    /// Writes slices of these lengths of the content to a new file, and returns the space on the disk in bytes.
    fn write(content: &[u8], lengths: &[usize]) -> u64 {
        let mut file = tempfile::tempfile().unwrap();
        let (mut holes, mut rest) = (Holes::default(), content);
        let mut slices = Vec::new();
        for &length in lengths.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (slice, later) = rest.split_at(length.min(rest.len()));
            slices.push(IoSlice::new(slice));
            rest = later;
        }
        let mut left = &mut slices[..];
        while !left.is_empty() {
            let done = holes.write(&file, left).unwrap();
            assert!(done > 0 || left.iter().all(|slice| slice.is_empty()));
            IoSlice::advance_slices(&mut left, done);
        }
        holes.finish(&file).unwrap();
        let mut back = Vec::new();
        file.rewind().unwrap();
        io::Read::read_to_end(&mut file, &mut back).unwrap();
        assert!(back == content, "{lengths:?}");
        file.metadata().unwrap().blocks() * 512
    }

    #[test]
    fn the_content_is_the_same_for_all_slices_and_holes() {
        let blocks = [0_u8, 1, 0, 0, 2, 3, 0, 0, 0, 0, 4, 0];
        for end in [0, 1, 100, BLOCK] {
            let mut content = vec![0; blocks.len() * BLOCK + end];
            for (at, &value) in blocks.iter().enumerate() {
                // Only the last byte of a block differs from zero.
                content[(at + 1) * BLOCK - 1] = value;
            }
            for lengths in
                [&[4 * BLOCK][..], &[BLOCK], &[1 << 20], &[1000], &[5000, 0, 3 * BLOCK], &[1, BLOCK]]
            {
                write(&content, lengths);
            }
        }
    }

    #[test]
    fn zeros_take_no_space() {
        let mut content = vec![0; 4 << 20];
        content[2 << 20] = 1;
        // The file system of the tests has holes if this file has one.
        let sparse = tempfile::tempfile().unwrap();
        sparse.set_len(4 << 20).unwrap();
        if sparse.metadata().unwrap().blocks() > 0 {
            eprintln!("NOT TESTED: this file system has no holes");
            return;
        }
        assert!(write(&content, &[4 * BLOCK]) <= 64 << 10);
        assert!(write(&vec![1; 1 << 20], &[4 * BLOCK]) >= 1 << 20);
    }
}
