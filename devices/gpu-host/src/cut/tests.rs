use super::*;
use lockstep_core::Key;
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Segment, Status, Tag};

const LIMITS: Limits =
    Limits { bytes: 4096, pieces: 100, least_room: 1024, tile: 512, serial: usize::MAX, aead_overhead: 0 };

/// The lengths of the pieces of each chunk, for segments of these lengths.
fn lengths(pass: Pass, limits: Limits, segments: &[usize]) -> Vec<Vec<usize>> {
    let key = Key::new(&[0; 16]).unwrap();
    let mut data: Vec<Vec<u8>> = segments.iter().map(|&len| (0..len).map(|at| at as u8).collect()).collect();
    let mut ivs = vec![[0; 16]; segments.len()];
    let mut all: Vec<_> = (data.iter_mut().zip(&mut ivs))
        .map(|(data, state)| Segment { key: &key, tweak: None, state, data: Data::in_place(data) })
        .collect();
    let messages = Messages::Pass(pass, &mut all);
    let work = segments.iter().enumerate().map(|(index, &len)| (index, 0..len));
    let mut states = vec![[0; 16]; segments.len()];
    let chunks = cut(&limits, &messages, &mut states, work);
    let mut done = vec![0; segments.len()];
    for piece in chunks.iter().flatten() {
        assert_eq!(piece.range.start, done[piece.segment], "in order, without a gap");
        assert_eq!(piece.position, piece.range.start as u64 / 16);
        if pass == Pass::Ctr {
            assert_eq!(u128::from_be_bytes(piece.state), piece.range.start as u128 / 16);
        }
        if pass == Pass::CbcDecrypt && piece.range.start > 0 {
            let start = piece.range.start;
            with_input(messages.data(piece.segment), |input| {
                assert_eq!(piece.state, input[start - 16..start]);
            });
        }
        done[piece.segment] = piece.range.end;
    }
    assert_eq!(done, segments);
    if pass == Pass::Ctr {
        let behind = segments.iter().map(|len| (len.div_ceil(16) as u128).to_be_bytes());
        assert_eq!(states, behind.collect::<Vec<_>>());
    }
    chunks.iter().map(|chunk| chunk.iter().map(|piece| piece.range.len()).collect()).collect()
}

#[test]
fn chunks_are_full_and_tiles_whole() {
    for pass in [Pass::Ctr, Pass::CbcDecrypt] {
        let lengths = |segments: &[usize]| lengths(pass, LIMITS, segments);
        assert_eq!(lengths(&[]), Vec::<Vec<usize>>::new());
        assert_eq!(lengths(&[1, 0, 5]), [vec![1, 0, 5]]);
        assert_eq!(lengths(&[4096]), [vec![4096]]);
        assert_eq!(lengths(&[8192 + 5]), [vec![4096], vec![4096], vec![5]]);
        // The second segment fills the rest of the chunk with whole tiles.
        assert_eq!(lengths(&[100, 4096]), [vec![100, 3584], vec![512]]);
        // The rest of the chunk is shorter than `least_room`, so the second segment gets a separate chunk.
        assert_eq!(lengths(&[3500, 1000]), [vec![3500], vec![1000]]);
        assert_eq!(lengths(&[0; 101]).len(), 2);
    }
    // A tile is larger than the limit of a chunk, so each chunk has one tile.
    assert_eq!(lengths(Pass::Ctr, Limits { bytes: 100, ..LIMITS }, &[700]), [vec![512], vec![188]]);
}

#[test]
fn messages_of_an_aead_take_room_for_their_associated_data_and_overhead() {
    let key = Key::new(&[0; 16]).unwrap();
    let cut = |aead_overhead, aad: &[u8]| {
        let mut data = [[0; 1024]; 4];
        let mut messages: Vec<_> = (data.iter_mut())
            .map(|data| AeadMessage {
                key: &key,
                nonce: &[0; 12],
                aad,
                data: Data::in_place(data),
                tag: Tag::Expect(&[0; 16]),
                status: Status::Pending,
            })
            .collect();
        let limits = Limits { least_room: usize::MAX, aead_overhead, ..LIMITS };
        let work = (0..4).map(|index| (index, 0..1024));
        let messages = Messages::Fused(FusedAead::GcmOpen, &mut messages);
        let chunks = cut(&limits, &messages, &mut [[0; 16]; 4], work);
        chunks.iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(cut(0, &[]), [4]);
    assert_eq!(cut(16, &[]), [3, 1]);
    assert_eq!(cut(0, &[0; 1]), [3, 1]);
    assert_eq!(cut(1024, &[0; 1024]), [1, 1, 1, 1]);
}

#[test]
fn serial_segments_stay_whole() {
    let lengths =
        |least_room, segments: &[usize]| lengths(Pass::CbcEncrypt, Limits { least_room, ..LIMITS }, segments);
    let none_larger = [vec![3008, 1008], vec![1008], vec![9008], vec![16]];
    assert_eq!(lengths(usize::MAX, &[3008, 1008, 1008, 9008, 16]), none_larger);
    // The chunk has more than `least_room` bytes left, so it takes the next segment whole, although the chunk then exceeds the limit.
    assert_eq!(lengths(1024, &[3008, 9008, 16]), [vec![3008, 9008], vec![16]]);
}
