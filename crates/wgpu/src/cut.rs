//! How work is cut into chunks.

use std::ops::Range;

/// A part of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Index of the segment in the call.
    pub(crate) segment: usize,
    /// The bytes of it.
    pub(crate) range: Range<usize>,
}

/// Pieces of a chunk at most, so that their descriptions stay smaller than the chunk.
const MOST_PIECES: usize = 16 * 1024;

/// The chunks of what is to be done of segments, each of at most `size` bytes if it can be. Segments are cut at multiples of
/// `unit` bytes, or not at all.
pub(crate) fn cut(
    work: impl IntoIterator<Item = Piece>,
    size: usize,
    unit: Option<usize>,
) -> Vec<Vec<Piece>> {
    let (mut chunks, mut chunk, mut used) = (Vec::new(), Vec::new(), 0usize);
    for Piece { segment, range } in work {
        let mut at = range.start;
        while at < range.end {
            let rest = range.end - at;
            let room = size.saturating_sub(used);
            let len = match unit {
                Some(unit) => rest.min(room / unit * unit),
                None if rest <= room => rest,
                None => 0,
            };
            if (len == 0 || chunk.len() == MOST_PIECES) && !chunk.is_empty() {
                chunks.push(std::mem::take(&mut chunk));
                used = 0;
                continue;
            }
            // One that is larger than a chunk, or whose unit is, has a chunk of its own.
            let len = if len > 0 { len } else { rest.min(unit.unwrap_or(rest)) };
            chunk.push(Piece { segment, range: at..at + len });
            at += len;
            used += len.next_multiple_of(16);
        }
    }
    if !chunk.is_empty() {
        chunks.push(chunk);
    }
    chunks
}

/// The chunks of whole messages of so many bytes, each of at most `size` bytes if it can be.
pub(crate) fn gather(messages: impl IntoIterator<Item = (Piece, usize)>, size: usize) -> Vec<Vec<Piece>> {
    let (mut chunks, mut chunk, mut used) = (Vec::new(), Vec::new(), 0usize);
    for (piece, bytes) in messages {
        if !chunk.is_empty() && (used + bytes > size || chunk.len() == MOST_PIECES) {
            chunks.push(std::mem::take(&mut chunk));
            used = 0;
        }
        chunk.push(piece);
        used += bytes;
    }
    if !chunk.is_empty() {
        chunks.push(chunk);
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(segments: &[usize], size: usize, unit: Option<usize>) -> Vec<Vec<usize>> {
        let work = segments.iter().enumerate().map(|(segment, &len)| Piece { segment, range: 0..len });
        let chunks = cut(work, size, unit);
        let mut done = vec![0; segments.len()];
        for piece in chunks.iter().flatten() {
            assert_eq!(piece.range.start, done[piece.segment], "in order, without a gap");
            done[piece.segment] = piece.range.end;
        }
        assert_eq!(done, segments);
        chunks.iter().map(|chunk| chunk.iter().map(|piece| piece.range.len()).collect()).collect()
    }

    #[test]
    fn chunks_are_full_and_units_whole() {
        assert_eq!(lengths(&[], 4096, Some(512)), Vec::<Vec<usize>>::new());
        assert_eq!(lengths(&[0, 1, 0, 5], 4096, Some(512)), [vec![1, 5]]);
        assert_eq!(lengths(&[4096], 4096, Some(512)), [vec![4096]]);
        assert_eq!(lengths(&[8197], 4096, Some(512)), [vec![4096], vec![4096], vec![5]]);
        assert_eq!(lengths(&[100, 4096], 4096, Some(512)), [vec![100, 3584], vec![512]]);
        assert_eq!(lengths(&[4000, 1000], 4096, Some(512)), [vec![4000], vec![1000]]);
        assert_eq!(lengths(&[700], 100, Some(512)), [vec![512], vec![188]]);
        assert_eq!(lengths(&vec![1; MOST_PIECES + 1], usize::MAX, Some(512)).len(), 2);
    }

    #[test]
    fn messages_are_gathered_whole() {
        let gathered = |lengths: &[usize]| -> Vec<usize> {
            let piece = |(segment, &bytes): (usize, &usize)| (Piece { segment, range: 0..0 }, bytes);
            let chunks = gather(lengths.iter().enumerate().map(piece), 100);
            let order: Vec<usize> = chunks.iter().flatten().map(|piece| piece.segment).collect();
            assert_eq!(order, (0..lengths.len()).collect::<Vec<_>>());
            chunks.iter().map(Vec::len).collect()
        };
        assert_eq!(gathered(&[]), [0; 0]);
        assert_eq!(gathered(&[0, 50, 50, 0, 1, 200, 99, 1]), [4, 1, 1, 2]);
        assert_eq!(gathered(&vec![0; MOST_PIECES + 1]), [MOST_PIECES, 1]);
    }

    #[test]
    fn what_must_stay_whole_does() {
        assert_eq!(
            lengths(&[3000, 1000, 1000, 9000, 1], 4096, None),
            [vec![3000, 1000], vec![1000], vec![9000], vec![1]]
        );
    }
}
