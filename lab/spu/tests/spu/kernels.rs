//! Compares the result of every loop with the reference implementation.

use lockstep_core::sbox::sub_word;
use lockstep_reference as reference;
use lockstep_spu::kernels::{
    Columns, Hints, Loop, MAX_RUN_BYTES, Mode, PUBLISHED, Refused, RoundLoop, Substitution, Way,
};
use lockstep_spu::schedule::Effort;
use lockstep_spu::sim::Machine;

/// The operations of `spu/ctr4`.
const BALANCED: Way = Way::Columns(Substitution::LookupBalanced, Columns::FewestEven);

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        })
        .collect()
}

fn expected(way: Way, mode: Mode, aes: &reference::Aes, iv: &[u8; 16], data: &[u8]) -> Vec<u8> {
    match mode {
        Mode::Ecb if matches!(way, Way::VpermInverse | Way::TablesInverse) => {
            reference::ecb::decrypt(aes, data)
        }
        Mode::Ecb => reference::ecb::encrypt(aes, data),
        Mode::Ctr | Mode::CtrCached => reference::ctr::apply32(aes, iv, data),
        Mode::CbcEncrypt => reference::cbc::encrypt(aes, iv, data),
        Mode::CbcDecrypt => reference::cbc::decrypt(aes, iv, data),
        Mode::CfbEncrypt => reference::cfb::encrypt128(aes, iv, data),
        Mode::CfbDecrypt => reference::cfb::decrypt128(aes, iv, data),
        Mode::Ofb => reference::ofb::apply(aes, iv, data),
    }
}

fn check(way: Way, mode: Mode, blocks: u32, effort: Effort) {
    for (rounds, key_len) in [(10, 16), (12, 24), (14, 32)] {
        let compiled = Loop { way, mode, blocks, overlaps: true }.compiled(rounds, effort).unwrap();
        let aes = reference::Aes::new(&noise(7 + rounds as u64, key_len));
        let iv: [u8; 16] = noise(3, 16).try_into().unwrap();
        let mut machine = Machine::new();
        for count in [1, 2, 3, 4, 5, 9, 17, 64] {
            let mut data = noise(count as u64, 16 * count);
            let right = expected(way, mode, &aes, &iv, &data);
            compiled.load(&mut machine, aes.round_keys()).unwrap();
            compiled
                .run(&mut machine, aes.round_keys(), &iv, &mut data)
                .unwrap_or_else(|fault| panic!("{fault}"));
            assert_eq!(
                data, right,
                "{way:?} {mode:?} x{blocks}, {rounds} rounds, {count} blocks, {effort:?}"
            );
        }
    }
}

#[test]
fn encryption_as_published() {
    for of in PUBLISHED.iter().map(|kernel| kernel.loops[0].1) {
        check(of.way, of.mode, of.blocks, Effort::Full);
        if let Way::Columns(_, columns) = of.way {
            for own in [Substitution::Lookup, Substitution::LookupBalanced] {
                check(Way::Columns(own, columns), of.mode, of.blocks, Effort::Full);
            }
        }
    }
}

#[test]
fn encryption_by_lookup() {
    for way in [Way::Lookup, BALANCED] {
        for blocks in [1, 2, 4] {
            check(way, Mode::Ctr, blocks, Effort::Full);
        }
        check(way, Mode::Ecb, 4, Effort::Full);
        check(way, Mode::Ctr, 2, Effort::Straight);
        check(way, Mode::CbcEncrypt, 1, Effort::Full);
    }
}

#[test]
fn encryption_by_vector_permutation() {
    for mode in [Mode::Ctr, Mode::Ecb, Mode::CfbDecrypt] {
        check(Way::Vperm, mode, 4, Effort::Full);
    }
    for mode in [Mode::CbcEncrypt, Mode::CfbEncrypt, Mode::Ofb] {
        check(Way::Vperm, mode, 1, Effort::Full);
    }
}

#[test]
fn decryption() {
    check(Way::VpermInverse, Mode::Ecb, 4, Effort::Full);
    check(Way::VpermInverse, Mode::CbcDecrypt, 4, Effort::Full);
    check(Way::TablesInverse, Mode::Ecb, 2, Effort::Full);
    check(Way::TablesInverse, Mode::CbcDecrypt, 2, Effort::Full);
}

#[test]
fn unscheduled() {
    check(Way::Vperm, Mode::Ctr, 1, Effort::Off);
    check(Way::Lookup, Mode::CbcEncrypt, 1, Effort::Off);
}

#[test]
fn tables() {
    check(Way::Tables, Mode::Ctr, 1, Effort::Full);
    check(Way::Tables, Mode::Ctr, 2, Effort::Full);
    check(Way::Tables, Mode::CbcEncrypt, 1, Effort::Full);
    check(Way::Tables, Mode::CtrCached, 2, Effort::Full);
}

#[test]
fn plain() {
    for hints in [Hints::None, Hints::Fixed, Hints::Table] {
        check(Way::Plain(hints), Mode::Ctr, 1, Effort::Full);
    }
}

#[test]
fn a_loop_over_rounds_and_the_last_round_are_aes() {
    // FIPS 197, 5.1.2.
    const SHIFT_ROWS: [usize; 16] = [0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11];
    let add = |block: &mut [u8; 16], key: &[u8; 16]| {
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
    };
    for (way, count) in [(Way::Lookup, 1), (BALANCED, 4), (Way::Tables, 2)] {
        let rounds = RoundLoop::compile(way, count).unwrap();
        for len in [16, 24, 32] {
            let aes = reference::Aes::new(&(0..len).collect::<Vec<u8>>());
            let keys = aes.round_keys();
            let plain: Vec<[u8; 16]> = (0..count).map(|k| [k as u8 * 17 + 3; 16]).collect();
            let mut blocks = plain.clone();
            blocks.iter_mut().for_each(|block| add(block, &keys[0]));
            rounds.run(keys, &mut blocks).unwrap();
            for (block, plain) in blocks.iter_mut().zip(&plain) {
                *block = SHIFT_ROWS.map(|at| sub_word([block[at]; 4])[0]);
                add(block, keys.last().unwrap());
                assert_eq!(block.to_vec(), reference::ecb::encrypt(&aes, plain), "{way:?} {len}");
            }
        }
    }
    assert!(RoundLoop::compile(Way::Vperm, 4).is_err());
}

#[test]
fn wrong_numbers_of_keys_and_bytes_are_refused() {
    let of = Loop { way: Way::Lookup, mode: Mode::Ctr, blocks: 1, overlaps: false };
    let compiled = of.compiled(10, Effort::Full).unwrap();
    let mut machine = Machine::new();
    let keys = [[0; 16]; 15];
    let wrong = Refused::Keys { found: 15, expected: 11 };
    assert_eq!(compiled.load(&mut machine, &keys), Err(wrong.clone()));
    assert_eq!(compiled.load(&mut machine, &[]), Err(Refused::Keys { found: 0, expected: 11 }));
    compiled.load(&mut machine, &keys[..11]).unwrap();
    assert_eq!(compiled.run(&mut machine, &keys, &[0; 16], &mut [0; 16]), Err(wrong));
    for way in [Way::Plain(Hints::None), Way::Ghash, Way::GhashBits] {
        let of = Loop { way, mode: Mode::Ctr, blocks: 2, overlaps: false };
        let refused = of.compile(10, Effort::Full).err().unwrap();
        assert!(refused.starts_with("there is no loop"), "{refused}");
    }
    for len in [0, 15, MAX_RUN_BYTES + 16] {
        let refused = compiled.run(&mut machine, &keys[..11], &[0; 16], &mut vec![0; len]);
        assert_eq!(refused, Err(Refused::Data(len)));
    }
}
