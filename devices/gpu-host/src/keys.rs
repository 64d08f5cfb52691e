//! The distinct keys of a chunk, for devices that identify keys by numbers.

use std::collections::HashMap;

use lockstep_core::Key;

use crate::messages::Messages;
use crate::messages::Piece;

/// The keys of the pieces of a chunk, numbered in the order in which they occur. Two keys count as the same key only if they
/// are the same object.
pub struct PieceKeys<'d> {
    /// All keys, by number.
    pub all: Vec<&'d Key>,
    /// For each piece: the number of the key and, for XTS, the number of the tweak key.
    pub numbers: Vec<(u32, u32)>,
}

impl<'d> PieceKeys<'d> {
    /// The keys of these pieces.
    pub fn of(pieces: &[Piece], messages: &Messages<'_, 'd>) -> Self {
        let (mut all, mut known) = (Vec::<&'d Key>::new(), HashMap::<*const Key, u32>::new());
        let mut number = |key: &'d Key| match all.last() {
            // Neighbouring pieces often have the same key.
            Some(last) if std::ptr::eq(*last, key) => all.len() as u32 - 1,
            _ => *known.entry(key).or_insert_with(|| {
                all.push(key);
                all.len() as u32 - 1
            }),
        };
        let numbers = (pieces.iter().map(|piece| piece.segment))
            .map(|segment| {
                let key = number(messages.key(segment));
                (key, messages.tweak(segment).map_or(0, |tweak| number(tweak.key)))
            })
            .collect();
        PieceKeys { all, numbers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_core::data::Data;
    use lockstep_core::work::{Segment, Tweak};

    #[test]
    fn a_key_has_one_number() {
        let keys = [(); 3].map(|()| Key::new(&[0; 16]).unwrap());
        let [a, b, c] = &keys;
        let mut states = [[0; 16]; 4];
        let pairs = [(a, None), (b, Some(c)), (a, None), (b, Some(b))];
        let mut segments: Vec<_> = (pairs.into_iter().zip(&mut states))
            .map(|((key, tweak), state)| Segment {
                key,
                tweak: tweak.map(|key| Tweak { key, position: 0 }),
                state,
                data: Data::read_only(&[]),
            })
            .collect();
        let piece = |segment| Piece { segment, range: 0..0, state: [0; 16], position: 0 };
        let pieces: Vec<_> = (0..4).map(piece).collect();
        let keys = PieceKeys::of(&pieces, &Messages::Segments(&mut segments));
        assert_eq!(keys.numbers, [(0, 0), (1, 2), (0, 0), (1, 1)]);
        assert_eq!(keys.all.len(), 3);
    }
}
