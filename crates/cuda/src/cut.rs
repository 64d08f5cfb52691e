//! How work on memory of the host is cut into chunks that pass through lanes.

use std::ops::Range;

use lockstep_core::Block;
use lockstep_core::chaining::ChainingState;
use lockstep_core::data::Data;
use lockstep_core::messages::Messages;

use crate::passes::Plan;

/// Bytes of a chunk: large enough to fill the device and to pay for its launches, small enough to overlap.
pub(crate) const CHUNK: usize = 4 << 20;

/// Segments of a chunk at most, so that their descriptions stay smaller than the chunk.
const MOST_PIECES: usize = 32 * 1024;

/// A part of a segment.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    /// Index of the segment in the call.
    pub(crate) segment: usize,
    /// The bytes of it.
    pub(crate) range: Range<usize>,
    pub(crate) state: Block,
    /// For XTS: blocks of the data unit before it.
    pub(crate) position: u64,
}

/// The chunks of segments whose data are with the host, each but the last in whole tiles of `tile` bytes; and the
/// chaining state behind each segment. Input is read, so this comes before anything is written.
pub(crate) fn cut(
    plan: &Plan,
    tile: usize,
    messages: &Messages<'_, '_>,
    which: impl Fn(&Data<'_>) -> bool,
) -> (Vec<Vec<Piece>>, Vec<(usize, Block)>) {
    let (mut chunks, mut states) = (Vec::new(), Vec::new());
    let (mut chunk, mut used) = (Vec::new(), 0);
    for index in (0..messages.len()).filter(|&index| which(messages.data(index))) {
        let data = messages.data(index);
        let len = data.len();
        let beside = messages.aead(index).map_or(0, |message| message.aad.len());
        let position = messages.tweak(index).map_or(0, |tweak| tweak.position);
        let (mut at, mut state) = (0, messages.state(index));
        let mut is_left = len > 0 || plan.kind.minds_empty();
        while is_left {
            // Each piece begins at a multiple of 16, so the rest of a chunk may be a little less than it seems.
            let whole = !plan.kind.may_cut();
            let room =
                if whole { CHUNK.saturating_sub(used) } else { CHUNK.saturating_sub(used) / tile * tile };
            let wanted = len - at + beside;
            if chunk.len() == MOST_PIECES || (room < wanted && room < CHUNK / 4 && !chunk.is_empty()) {
                chunks.push(std::mem::take(&mut chunk));
                used = 0;
                continue;
            }
            let range = at..if whole { len } else { at + room.max(tile).min(len - at) };
            let position = position.wrapping_add(at as u64 / 16);
            at = range.end;
            is_left = at < len;
            used += range.len().next_multiple_of(16) + beside;
            let next = plan.state.after(state, range.len(), last_block(plan, data, &range));
            chunk.push(Piece { segment: index, range, state, position });
            state = next;
        }
        states.push((index, state));
    }
    if !chunk.is_empty() {
        chunks.push(chunk);
    }
    (chunks, states)
}

/// The last whole block of a range of the input, if the plan needs it and there is one.
fn last_block(plan: &Plan, data: &Data<'_>, range: &Range<usize>) -> Option<Block> {
    if plan.state != ChainingState::LastCiphertext || range.len() < 16 {
        return None;
    }
    let end = range.start + range.len() / 16 * 16;
    let mut block = Block::default();
    match data {
        Data::Host(data) => block.copy_from_slice(&data.input()[end - 16..end]),
        Data::Pinned { from, .. } => {
            let start = from.range().start;
            block.copy_from_slice(&from.buffer().lock()[start + end - 16..start + end]);
        }
        Data::Device { .. } => return None,
    }
    Some(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::plan;
    use lockstep_core::Key;
    use lockstep_core::work::{Pass, Segment};

    /// Chunks of segments of these lengths, as lengths of pieces.
    fn lengths(segments: &[usize]) -> Vec<Vec<usize>> {
        let key = Key::new(&[0; 16]).unwrap();
        let mut data: Vec<Vec<u8>> = segments.iter().map(|&len| vec![0; len]).collect();
        let mut states = vec![[0; 16]; segments.len()];
        let mut segments: Vec<_> = (data.iter_mut().zip(&mut states))
            .map(|(data, state)| Segment { key: &key, tweak: None, state, data: Data::in_place(data) })
            .collect();
        let messages = Messages::Segments(&mut segments);
        let (chunks, states) = cut(plan(Pass::Ctr).unwrap(), 16384, &messages, |_| true);
        for ((index, state), segment) in states.iter().zip(&segments) {
            assert_eq!(&segments[*index].data.len(), &segment.data.len());
            assert_eq!(u128::from_be_bytes(*state), segment.data.len().div_ceil(16) as u128);
        }
        chunks.iter().map(|chunk| chunk.iter().map(|piece| piece.range.len()).collect()).collect()
    }

    #[test]
    fn chunks_are_full_and_whole() {
        assert_eq!(lengths(&[]), Vec::<Vec<usize>>::new());
        assert_eq!(lengths(&[0, 1, 0, 5]), [vec![1, 5]]);
        assert_eq!(lengths(&[CHUNK]), [vec![CHUNK]]);
        assert_eq!(lengths(&[2 * CHUNK + 5]), [vec![CHUNK], vec![CHUNK], vec![5]]);
        // The long one fills the chunk up by whole tiles.
        assert_eq!(lengths(&[100, CHUNK]), [vec![100, CHUNK - 16384], vec![16384]]);
        // Too little room: a chunk of its own.
        assert_eq!(lengths(&[CHUNK - 100, 1000]), [vec![CHUNK - 100], vec![1000]]);
        assert_eq!(lengths(&vec![1; MOST_PIECES + 1]).len(), 2);
    }
}
