//! Processes data on the host in pieces, for modes that mask blocks before or after a pass. The data may be in any memory.

use std::ops::Range;

use zeroize::Zeroizing;

use crate::executor::Executor;
use crate::transfer;
use lockstep_core::data::Data;
use lockstep_core::error::Result;

/// The length of a piece in bytes. A piece is long enough for a device to be efficient, and short enough for the cache of a
/// processor.
const PIECE: usize = 256 * 1024;

/// Copies each piece of the range from the input to the host, calls `process` with the offset of the piece in the range and the
/// piece, and copies the result to the output. All pieces except the last consist of whole blocks.
pub(crate) fn process(
    executor: &dyn Executor,
    data: &mut Data<'_>,
    range: Range<usize>,
    mut process: impl FnMut(usize, &mut [u8]) -> Result<()>,
) -> Result<()> {
    let mut buffer = Zeroizing::new(vec![0; PIECE.min(range.len())]);
    for at in range.clone().step_by(PIECE) {
        let piece = &mut buffer[..PIECE.min(range.end - at)];
        transfer::fetch_input(executor, data, at, piece)?;
        process(at - range.start, piece)?;
        transfer::store_output(executor, data, at, piece)?;
    }
    Ok(())
}
