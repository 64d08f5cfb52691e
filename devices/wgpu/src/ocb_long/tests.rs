use super::*;
use crate::kernel::FAMILIES;
use crate::software;
use crate::task::Chunks;
use lockstep_core::KeySize;
use lockstep_core::work::{Operation, Tweak};
use lockstep_gpu_host::Kind;
use lockstep_reference::Aes;
use lockstep_testkit::suite::{noise, test_block, test_key};

/// A chunk may start at any tile of a message, even at a position so far from the start that all masks are used.
#[test]
fn chunks_can_start_at_any_tile() {
    let Some(device) = software::device() else { return };
    let key = test_key(1, KeySize::Aes128);
    let aes = Aes::new(key.bytes());
    let (star, first) = (aes.encrypt([0; 16]), test_block(5));
    for wide in [false, true] {
        let blocks: u64 = if wide { 1024 } else { 32 };
        // After 0b1010...10 tiles, all upper bits of the Gray codes of the next blocks are set. After 2^i - 1 tiles, the number of the last
        // block of the next tile is 2^i times the number of blocks of a tile. Its offset differs from the previous offset by the mask of
        // this number.
        let all = (1 << 48) / blocks;
        let few = [0, 31, 0xAAAA_AAAA_AAAA_AAAA % all, 0x1_2345_6789, all - 2];
        let steps = (1..48 - blocks.trailing_zeros()).map(|i| (1 << i) - 1);
        for (index, before) in few.into_iter().chain(steps).enumerate() {
            let opens = index % 2 == 1;
            let offsets = Offsets::new(&star, &first);
            let input = noise(before, 16 * blocks as usize - 16 * (index % 3));
            let (mut expected, mut sum) = (input.clone(), Block::default());
            for (number, block) in (before * blocks + 1..).zip(expected.as_chunks_mut::<16>().0) {
                let offset = offsets.masks.offset(&first, number);
                let plaintext = *block;
                xor(block, &offset);
                *block = if opens { aes.decrypt(*block) } else { aes.encrypt(*block) };
                xor(block, &offset);
                xor(&mut sum, if opens { block } else { &plaintext });
            }
            let pass = if opens { Pass::EcbDecrypt } else { Pass::EcbEncrypt };
            let task = Task {
                pool: device.pool().unwrap(),
                family: Some(&FAMILIES[0]),
                operation: Operation::Pass(pass),
                kind: Kind::of_pass(pass),
                size: KeySize::Aes128,
                wide,
                chunks: Chunks { host: 1 << 20, device: 1 << 20 },
                offsets: Some(Arc::clone(&offsets)),
            };
            let (mut output, state) = (input, &mut Block::default());
            // ECB has no tweak, but the position in the tweak states how many blocks of the message come before the piece.
            let tweak = Some(Tweak { key: &key, position: before * blocks });
            let data = Data::in_place(&mut output);
            let mut segments = [Segment { key: &key, tweak, state, data }];
            submit(task, Messages::Pass(pass, &mut segments)).unwrap().wait().unwrap();
            assert!(output == expected, "{before} tiles before, wide {wide}, opens {opens}");
            assert_eq!(**lock(&offsets.checksum), sum, "{before} tiles before, wide {wide}");
        }
    }
}
