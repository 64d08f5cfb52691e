use std::sync::LazyLock;

use super::super::workload;
use super::*;

/// The product of two bytes as polynomials, modulo x^8 + x^4 + x^3 + x + 1 (FIPS 197, 4.2).
fn times(a: u8, b: u8) -> u8 {
    (0..8).rev().fold(0, |sum: u8, bit| (sum << 1) ^ ((sum >> 7) * 0x1b) ^ (((b >> bit) & 1) * a))
}

/// The table of SubBytes (FIPS 197, 5.1.1): the inverse of the byte, computed as its power 254, and then the affine transformation.
static SBOX: LazyLock<[u8; 256]> = LazyLock::new(|| {
    std::array::from_fn(|byte| {
        let inverse = (0..254).fold(1, |power, _| times(power, byte as u8));
        [1, 2, 3, 4].iter().fold(inverse ^ 0x63, |sum, &by| sum ^ inverse.rotate_left(by))
    })
});

/// A round of FIPS 197, 5.1: SubBytes, ShiftRows, MixColumns, AddRoundKey.
fn software_round(block: u128, key: u128) -> u128 {
    let bytes = block.to_le_bytes().map(|byte| SBOX[usize::from(byte)]);
    let shifted: [u8; 16] = std::array::from_fn(|at| bytes[(at + 4 * (at % 4)) % 16]);
    let mixed = std::array::from_fn(|at| {
        let row = |by: usize| shifted[at / 4 * 4 + (at + by) % 4];
        times(row(0), 2) ^ times(row(1), 3) ^ row(2) ^ row(3)
    });
    u128::from_le_bytes(mixed) ^ key
}

/// The carry-less product of the low halves of two values.
fn product(a: u128, b: u128) -> u128 {
    (0..64).filter(|bit| b >> bit & 1 == 1).fold(0, |sum, bit| sum ^ ((a & u128::from(u64::MAX)) << bit))
}

/// The expected result of a loop, computed without the instructions for AES and carry-less multiplication.
fn expected(part: Part, rounds: usize, products: usize, lanes: usize, steps: usize) -> u128 {
    let mut blocks: Vec<u128> = (0..lanes).map(value).collect();
    let mut sums: [u128; 4] = std::array::from_fn(|at| value(MOST + at));
    let [factors, keys] = [MOST + 4, 2 * MOST + 4].map(|from| move |at: usize| value(from + at));
    for _ in 0..steps {
        if part != Part::Hash {
            for key in (0..rounds).map(keys) {
                blocks.iter_mut().for_each(|block| *block = software_round(*block, key));
            }
        }
        if part != Part::Cipher {
            for factor in (0..lanes).map(factors) {
                for (at, sum) in sums[..products].iter_mut().enumerate() {
                    let folds = products == 3 && at == 2;
                    *sum = product(*sum, if folds { factor ^ factor.rotate_left(64) } else { factor });
                }
            }
            sums[..2].iter_mut().for_each(|sum| *sum = product(*sum, factors(0)));
        }
    }
    blocks.into_iter().chain(sums).fold(0, |sum, one| sum ^ one)
}

/// Each step of a loop computes all of its rounds and products.
#[test]
fn loops_compute_what_they_count() {
    // Checks `software_round` with the first round of the example in FIPS 197, appendix B.
    let [block, key] = ["193de3bea0f4e22b9ac68d2ae9f84808", "a0fafe1788542cb123a339392a6c7605"]
        .map(|hex| u128::from_str_radix(hex, 16).unwrap().swap_bytes());
    assert_eq!(software_round(block, key).swap_bytes(), 0xa49c_7ff2_689f_352b_6b5b_ea43_026a_5049);
    for part in [Part::Cipher, Part::Hash, Part::Both] {
        for rounds in [10, 12, 14] {
            let mut found = [0; 2];
            for Loop { lanes, steps: run, width } in loops(part, rounds) {
                let wanted = [3, 4].map(|products| expected(part, rounds, products, lanes, 5));
                let is = wanted.map(|wanted| run(5) == wanted);
                assert!(is.contains(&true), "{part:?}, {rounds} rounds, {lanes} registers of {width} B");
                found[usize::from(is[1])] += 1;
                assert_ne!(run(4), run(5));
            }
            // There are as many loops with three products for each block (Karatsuba's method) as with four (schoolbook method).
            assert!(part == Part::Cipher || found[0] == found[1], "{found:?}");
        }
    }
}

/// Parallel modes have a limit if the processor has the instructions. Serial modes and batches never have one.
#[test]
fn parallel_modes_have_a_limit() {
    let has_aes = loops(Part::Both, 10).next().is_some();
    for work in workload::all() {
        let is_serial = match work.mode {
            Mode::Cipher(Cipher::Cbc | Cipher::Cfb128) => work.direction == Direction::Encrypt,
            mode => [Mode::Cipher(Cipher::Ofb), Mode::Cipher(Cipher::Pcbc)].contains(&mode),
        };
        let found = limit(&work, Shape::one(1024));
        assert_eq!(found.is_some(), has_aes && !is_serial, "{}", work.name);
        assert!(limit(&work, Shape { size: 1024, messages: 2 }).is_none());
        if let Some(mut run) = found {
            let mut data = workload::random(1024);
            let before = data.clone();
            assert!(run(&mut data, 0).unwrap() == 0 && data == before);
        }
    }
}
