//! Input in pieces, and input that is read as a whole.

use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::input::{Input, read_full};
use crate::job::Report;
use crate::{memory, signals};

/// Number of bytes that are processed in one call.
pub(super) const PIECE: usize = 1 << 20;

impl Input {
    /// Reads the input in pieces and passes each to `work`; returns the number of input bytes.
    pub(super) fn for_each_piece(
        &self,
        report: Report<'_>,
        mut work: impl FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<u64> {
        let mut reader = self.reader();
        let mut piece = Zeroizing::new(vec![0; PIECE]);
        let mut total = 0;
        loop {
            let got = read_full(&mut reader, &mut piece)?;
            if signals::stopped() {
                return Err(Error::Stopped);
            }
            if got > 0 {
                work(&mut piece[..got])?;
            }
            total += got as u64;
            report(total);
            if got < PIECE {
                return Ok(total);
            }
        }
    }

    /// Reads all input into memory. `purpose` is used in the error message if there is too little memory.
    pub(super) fn read_all(&self, report: Report<'_>, purpose: &str) -> Result<Zeroizing<Vec<u8>>> {
        let mut all = Zeroizing::new(Vec::new());
        memory::reserve(&mut all, self.len().unwrap_or(0), purpose)?;
        self.for_each_piece(report, |piece| {
            if all.capacity() - all.len() < piece.len() {
                all = enlarged(&all, purpose)?;
            }
            all.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(all)
    }
}

/// Copies the bytes to a larger buffer, with space for at least one more piece. A vector that grows by itself would
/// leave a copy that is not wiped.
fn enlarged(bytes: &[u8], purpose: &str) -> Result<Zeroizing<Vec<u8>>> {
    let mut larger = Zeroizing::new(Vec::new());
    let least = bytes.len() + 4 * PIECE;
    let double = 2 * bytes.len();
    if double <= least || memory::reserve(&mut larger, double as u64, purpose).is_err() {
        memory::reserve(&mut larger, (least + bytes.len() / 8) as u64, purpose)?;
    }
    larger.extend_from_slice(bytes);
    Ok(larger)
}
