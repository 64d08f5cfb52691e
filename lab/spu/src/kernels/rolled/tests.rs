
use super::super::field::sbox;
use super::super::permutation::SHIFT_ROWS;
use super::*;
use lockstep_reference::Aes;

#[test]
fn with_the_last_round_it_is_aes() {
    for (way, count) in [(Way::Lookup, 1), (Way::LookupBalanced, 4), (Way::Tables, 2)] {
        let rounds = RoundLoop::compile(way, count).unwrap();
        for len in [16, 24, 32] {
            let aes = Aes::new(&(0..len).collect::<Vec<u8>>());
            let keys = aes.round_keys();
            let plain: Vec<Block> = (0..count).map(|k| [k as u8 * 17 + 3; 16]).collect();
            let mut blocks = plain.clone();
            let add = |block: &mut Block, key: &Block| {
                block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
            };
            blocks.iter_mut().for_each(|block| add(block, &keys[0]));
            rounds.run(keys, &mut blocks).unwrap();
            for (block, plain) in blocks.iter_mut().zip(&plain) {
                *block = SHIFT_ROWS.map(|at| sbox(block[usize::from(at)]));
                add(block, keys.last().unwrap());
                assert_eq!(block.to_vec(), lockstep_reference::ecb::encrypt(&aes, plain), "{way:?} {len}");
            }
        }
    }
    assert!(RoundLoop::compile(Way::Vperm, 4).is_err());
}
