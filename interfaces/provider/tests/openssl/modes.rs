//! Data of every length, split in every way, in place and out of place: the output of every update equals the default
//! provider's in content and length.

use proptest::prelude::*;

use crate::harness::{ALGORITHMS, Algorithm, Mode, algorithm, bytes};
use crate::script::Call::*;
use crate::script::{Call, compare, round_trip, start_decrypting, start_encrypting};

/// True if the mode supports messages of this length.
fn supports(algorithm: &Algorithm, n: usize) -> bool {
    match algorithm.mode {
        Mode::Xts => (16..=16 << 20).contains(&n),
        Mode::Cts => n >= 16,
        // Releases treat empty messages differently: see siv.rs.
        Mode::Siv => n > 0,
        Mode::Wrap if algorithm.name().contains("PAD") => (1..=algorithm.max_test_len()).contains(&n),
        Mode::Wrap => n >= 16 && n.is_multiple_of(8) && n <= algorithm.max_test_len(),
        _ => n <= algorithm.max_test_len(),
    }
}

fn whole(data: &[u8]) -> Vec<Call> {
    vec![Update(data.to_vec())]
}

fn in_place(data: &[u8]) -> Vec<Call> {
    vec![InPlace(data.to_vec())]
}

fn every_algorithm_at(lengths: impl Iterator<Item = usize> + Clone) {
    for algorithm in ALGORITHMS {
        for n in lengths.clone().filter(|n| supports(algorithm, *n)) {
            let data = bytes(n, n as u64);
            round_trip(algorithm, b"", &data, &whole);
            // Padding makes the output longer than the input, so the buffer has space for it.
            round_trip(algorithm, b"additional data", &data, &in_place);
        }
    }
}

#[test]
fn short_messages_of_every_length() {
    every_algorithm_at(0..=100);
}

#[test]
fn messages_around_powers_of_two() {
    every_algorithm_at([255, 256, 257, 511, 512, 513, 4095, 4096, 4097, 16384, 65537].into_iter());
}

#[test]
fn a_message_of_a_mebibyte_and_seven() {
    every_algorithm_at([(1 << 20) + 7].into_iter());
}

#[test]
fn a_message_of_ten_megabytes() {
    let data = bytes(10_000_000, 10);
    for algorithm in ALGORITHMS.iter().filter(|algorithm| supports(algorithm, data.len())) {
        round_trip(algorithm, b"", &data, &whole);
    }
}

#[test]
fn without_padding_whole_blocks_pass_and_others_are_refused() {
    for algorithm in ALGORITHMS.iter().filter(|algorithm| algorithm.is_block()) {
        let name = algorithm.name();
        for n in (0..=64).chain([4095, 4096, 4097]) {
            for start in [start_encrypting(name), start_decrypting(name)] {
                let outcomes = compare(name, &[start, Padding(false), Update(bytes(n, 3)), Final]);
                assert_eq!(outcomes.last().unwrap().ok(), n % 16 == 0, "{name}: {n}");
            }
        }
    }
}

#[test]
fn padding_can_change_between_messages_and_stays_through_a_reinit() {
    for name in ["AES-128-ECB", "AES-256-CBC"] {
        let message = |n| [Update(bytes(n, 4)), Final];
        let again = Init(-1, None, None);
        compare(
            name,
            &[
                &[start_encrypting(name), Padding(false)][..],
                &message(32),
                std::slice::from_ref(&again),
                &message(48),
                &[start_encrypting(name)],
                &message(64),
                &[Padding(true)],
                std::slice::from_ref(&again),
                &message(64),
                &[start_decrypting(name), State],
            ]
            .concat(),
        );
    }
}

#[test]
fn wrong_padding_is_refused() {
    let name = "AES-128-CBC";
    // Blocks with each value of the last byte: only 1 to 16 equal padding bytes are valid.
    for last in 0..=255u8 {
        for wrong_at in [None, Some(0), Some(14)] {
            let mut block = [last; 16];
            if let Some(at) = wrong_at {
                block[at] ^= 1;
            }
            let encrypted =
                compare(name, &[start_encrypting(name), Padding(false), Update(block.into()), Final]);
            compare(name, &[start_decrypting(name), Update(encrypted[2].out.clone()), Final]);
        }
    }
}

/// Splits data into pieces of one size.
fn pieces(data: &[u8], n: usize) -> Vec<Call> {
    data.chunks(n).map(|piece| Update(piece.to_vec())).collect()
}

/// Modes that process a message in pieces.
fn streaming() -> impl Iterator<Item = &'static Algorithm> {
    let in_pieces = |algorithm: &&Algorithm| {
        !matches!(algorithm.mode, Mode::Xts | Mode::Ccm) && !algorithm.is_one_update()
    };
    ALGORITHMS.iter().filter(in_pieces)
}

#[test]
fn updates_of_one_byte_and_of_every_small_size() {
    for algorithm in streaming() {
        for n in [1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 100, 129] {
            round_trip(algorithm, b"aad", &bytes(400, 5), &|data| pieces(data, n));
        }
    }
}

#[test]
fn updates_of_4096_bytes_as_openssl_enc_makes_them() {
    for algorithm in streaming().filter(|algorithm| algorithm.max_test_len() == usize::MAX) {
        round_trip(algorithm, b"", &bytes(1_000_001, 6), &|data| pieces(data, 4096));
        round_trip(algorithm, b"", &bytes(500_001, 6), &|data| pieces(data, 4095));
    }
}

#[test]
fn empty_updates_change_nothing() {
    for algorithm in streaming() {
        round_trip(algorithm, b"", &bytes(50, 7), &|data| {
            let (a, b) = data.split_at(19);
            vec![
                Update(vec![]),
                Update(a.to_vec()),
                Update(vec![]),
                InPlace(vec![]),
                Update(b.to_vec()),
                Update(vec![]),
            ]
        });
    }
}

/// Keystream computed ahead must survive parameter queries, copies and re-inits during a run of small updates.
#[test]
fn a_run_of_small_updates_is_interrupted_by_everything() {
    for name in ["AES-128-CTR", "AES-256-CTR", "AES-256-GCM"] {
        let iv = |n| Init(-1, None, Some(bytes(if name.ends_with("GCM") { 12 } else { 16 }, n)));
        let run = |n: usize, seed| -> Vec<Call> {
            (0..n).map(|i| Update(bytes(if i % 7 == 6 { 4000 } else { 4096 }, seed + i as u64))).collect()
        };
        let key = Init(
            -1,
            Some(bytes(key_length(name), 77)),
            Some(bytes(12, 78)).filter(|_| name.ends_with("GCM")),
        );
        let script = [
            vec![start_encrypting(name)],
            run(40, 1),
            vec![State, Copy],
            run(40, 100),
            vec![Update(bytes(1, 1)), Update(bytes(1_000_000, 2)), State],
            run(40, 200),
            vec![iv(1), State],
            run(40, 300),
            vec![Copy, iv(2)],
            run(20, 400),
            vec![key],
            run(40, 500),
            vec![State, Update(bytes(13, 3)), State],
        ];
        compare(name, &script.concat());
    }
}

fn key_length(name: &str) -> usize {
    crate::script::key_and_iv(name).0.len()
}

/// Counters that wrap within 32, 64 and 128 bits.
#[test]
fn counters_wrap_as_in_the_default_provider() {
    for (name, ones) in [("AES-128-CTR", 4), ("AES-192-CTR", 8), ("AES-256-CTR", 15), ("AES-256-CTR", 16)] {
        for last in [0xff, 0xfe, 0xf0, 0x80] {
            let mut iv = [0x12; 16];
            iv[16 - ones..].fill(0xff);
            iv[15] = last;
            let init = Init(1, Some(crate::script::key_and_iv(name).0), Some(iv.into()));
            let whole =
                compare(name, &[init.clone(), Update(bytes(5000, 8)), State, Update(bytes(37, 8)), State]);
            let cut = [&[init][..], &pieces(&bytes(5000, 8), 333)].concat();
            assert!(crate::script::joined(&compare(name, &cut)) == whole[1].out);
        }
    }
}

#[test]
fn cfb1_lengths_are_in_bits_if_the_flag_is_set() {
    for name in ["AES-128-CFB1", "AES-256-CFB1"] {
        for n in [1, 7, 8, 9, 64, 127, 128, 129, 800] {
            // The length of the update is in bits, so only a part of the data is processed.
            for start in [start_encrypting(name), start_decrypting(name)] {
                compare(name, &[start, Set("use-bits", 1), Update(bytes(n, 9)), Update(bytes(n, 10)), State]);
            }
        }
    }
}

#[test]
fn an_xts_context_processes_many_data_units() {
    for name in ["AES-128-XTS", "AES-256-XTS"] {
        let iv = |n: u8| Init(-1, None, Some(vec![n; 16]));
        for start in [start_encrypting(name), start_decrypting(name)] {
            compare(
                name,
                &[
                    start,
                    Update(bytes(512, 1)),
                    // Without an init in between, the default provider restarts with the same IV.
                    Update(bytes(512, 1)),
                    State,
                    iv(1),
                    InPlace(bytes(4097, 2)),
                    Final,
                    iv(2),
                    Update(bytes(16, 3)),
                    Update(bytes(31, 3)),
                    Final,
                    State,
                ],
            );
        }
    }
}

#[test]
fn an_xts_data_unit_has_a_maximum_size() {
    let unit = |n| compare("AES-128-XTS", &[start_encrypting("AES-128-XTS"), Update(bytes(n, 1))]);
    assert!(unit(16 << 20)[1].ok());
    assert!(!unit((16 << 20) + 1)[1].ok());
}

#[test]
fn one_shot_calls_equal_the_default_providers() {
    for algorithm in ALGORITHMS {
        let name = algorithm.name();
        for n in [0, 1, 15, 16, 17, 32, 48, 100, 4096, 4101] {
            let whole_blocks = algorithm.is_block() || algorithm.mode == Mode::Cts;
            let n = if whole_blocks { n / 16 * 16 } else { n };
            for start in [start_encrypting(name), start_decrypting(name)] {
                match algorithm.mode {
                    // The default provider's OCB processes the data without starting the message.
                    Mode::Ccm | Mode::Ocb => continue,
                    // EVP_Cipher returns no length for key wrap: see wrap.rs.
                    Mode::Wrap => continue,
                    Mode::Xts if n < 16 => continue,
                    // In GCM, an update of length 0 ends the message. Another test covers this.
                    Mode::Gcm | Mode::Siv if n == 0 => continue,
                    _ => compare(name, &[start, Cipher(bytes(n, 11)), Cipher(bytes(n, 12)), State]),
                };
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Pieces of random sizes.
    #[test]
    fn any_split_equals_the_default_provider(
        sizes in prop::collection::vec(prop_oneof![0..40usize, 0..700usize, Just(4096usize)], 1..12),
        seed in any::<u64>(),
    ) {
        let data = bytes(sizes.iter().sum(), seed);
        for algorithm in streaming() {
            if algorithm.max_test_len() < usize::MAX && data.len() > 4000 {
                continue;
            }
            round_trip(algorithm, &data[..data.len().min(33)], &data, &|data| {
                let mut rest = data;
                let mut calls: Vec<Call> = sizes.iter().map(|n| {
                    let (piece, after) = rest.split_at((*n).min(rest.len()));
                    rest = after;
                    if n % 2 == 0 || keeps_partial_blocks(algorithm) { Update(piece.to_vec()) } else { InPlace(piece.to_vec()) }
                }).collect();
                calls.push(Update(rest.to_vec()));
                calls
            });
        }
    }
}

#[test]
fn a_context_processes_several_messages() {
    for name in ["AES-256-CTR", "AES-128-CBC", "AES-256-GCM", "AES-128-CFB", "AES-192-OFB"] {
        assert_ne!(algorithm(name).mode, Mode::Ccm);
        let mut script = vec![start_encrypting(name)];
        for n in 0..60 {
            script.push(Init(-1, None, Some(bytes(if name.ends_with("GCM") { 12 } else { 16 }, n))));
            script.push(Update(bytes(n as usize * 37, n)));
            script.push(Final);
        }
        compare(name, &script);
    }
}

/// True if the mode buffers partial blocks between updates. In such a mode, updates in place are not compared, because the default
/// provider overwrites input that it has not read.
fn keeps_partial_blocks(algorithm: &Algorithm) -> bool {
    algorithm.is_block() || algorithm.mode == Mode::Ocb
}
