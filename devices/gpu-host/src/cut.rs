//! Cuts the data of a call into chunks.

use std::ops::Range;

use lockstep_core::Block;
use lockstep_core::chaining::ChainingState;
use lockstep_core::data::Data;
use lockstep_core::share::can_cut;
use lockstep_core::work::Operation;

use crate::messages::{Messages, Piece, with_input};

/// The limits for the chunks and pieces of a call to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Limit for the bytes of a chunk: large enough to fill the device and to outweigh the cost of a launch, but so small that copies and
    /// kernels overlap. A message that is not cut may exceed this limit.
    pub bytes: usize,
    /// Maximum number of pieces of a chunk. It limits the size of their descriptions.
    pub pieces: usize,
    /// If the next piece does not fit and the chunk has room for fewer bytes than this, the chunk is closed.
    pub least_room: usize,
    /// Segments are cut at multiples of this number of bytes, which is itself a multiple of 16.
    pub tile: usize,
    /// Maximum bytes of a segment in one chunk, for operations whose chaining state only the device can compute; a multiple of 16. The next
    /// part of the segment follows after the device has returned the chaining state.
    pub serial: usize,
    /// Bytes that a message of an AEAD takes in addition to its data and associated data.
    pub aead_overhead: usize,
}

/// Cuts ranges of segments, given by index, into chunks. Advances the chaining states of the segments to the ends of the
/// ranges where the host can compute these states. This reads input, so it must run before any output is written.
pub(crate) fn cut(
    limits: &Limits,
    messages: &Messages<'_, '_>,
    states: &mut [Block],
    work: impl IntoIterator<Item = (usize, Range<usize>)>,
) -> Vec<Vec<Piece>> {
    let operation = messages.operation();
    let chaining = ChainingState::of_operation(operation);
    let is_cut = matches!(operation, Operation::Pass(pass) if can_cut(pass));
    let (mut chunks, mut chunk, mut used) = (Vec::new(), Vec::new(), 0usize);
    for (segment, Range { start: mut at, end }) in work {
        let data = messages.data(segment);
        let extra = messages.aead(segment).map_or(0, |message| message.aad.len() + limits.aead_overhead);
        let position = messages.tweak(segment).map_or(0, |tweak| tweak.position);
        loop {
            let room = limits.bytes.saturating_sub(used);
            let room = if is_cut { room / limits.tile * limits.tile } else { room };
            let wanted = (end - at).saturating_add(extra);
            let is_full = room < wanted && room < limits.least_room || chunk.len() == limits.pieces;
            if is_full && !chunk.is_empty() {
                chunks.push(std::mem::take(&mut chunk));
                used = 0;
                continue;
            }
            let len = if is_cut { (end - at).min(room.max(limits.tile)) } else { end - at };
            let range = at..at + len;
            let state = states[segment];
            states[segment] = chaining.after(state, len, last_block(chaining, data, &range));
            let position = position.wrapping_add(at as u64 / 16);
            chunk.push(Piece { segment, range, state, position });
            used = used.saturating_add(len.next_multiple_of(16)).saturating_add(extra);
            at += len;
            if at == end {
                break;
            }
        }
    }
    if !chunk.is_empty() {
        chunks.push(chunk);
    }
    chunks
}

/// The last whole block of a range of the input, if this block is the chaining state and the host can read the input.
fn last_block(chaining: ChainingState, data: &Data<'_>, range: &Range<usize>) -> Option<Block> {
    let mut last = None;
    if chaining == ChainingState::LastCiphertext {
        let whole = range.start..range.start + range.len() / 16 * 16;
        with_input(data, |input| last = input[whole].last_chunk().copied());
    }
    last
}

#[cfg(test)]
mod tests;
