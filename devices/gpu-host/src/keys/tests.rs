
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
