//! Key wrap: the examples of the standards, refusals, and the data after a failure.

use lockstep_core::data::Span;
use lockstep_core::work::Pass;
use lockstep_core::{Block, Error, Key};
use lockstep_modes::incremental::{KeyedExecutor, Planned};
use lockstep_modes::key_wrap::{self, CipherFunction, Icv};
use lockstep_planner::Planner;

use crate::bytes_of;
use crate::cbc_cts::planner;

type Wrap = fn(&Planner, &Key, &[u8]) -> Result<Vec<u8>, Error>;
type Unwrap = fn(&Planner, &Key, &[u8]) -> Result<Vec<u8>, Error>;

const KW: (Wrap, Unwrap) = (
    |planner, key, data| key_wrap::wrap(planner, key, Icv::KW, data),
    |planner, key, data| key_wrap::unwrap(planner, key, Icv::KW, data).map(|data| data.to_vec()),
);
const KWP: (Wrap, Unwrap) = (
    |planner, key, data| key_wrap::wrap(planner, key, Icv::KWP, data),
    |planner, key, data| key_wrap::unwrap(planner, key, Icv::KWP, data).map(|data| data.to_vec()),
);

fn check((wrap, unwrap): (Wrap, Unwrap), kek: &str, plaintext: &str, ciphertext: &str) {
    let planner = planner();
    let kek = Key::new(&bytes_of(kek)).unwrap();
    let (plaintext, ciphertext) = (bytes_of(plaintext), bytes_of(ciphertext));
    assert_eq!(wrap(&planner, &kek, &plaintext).unwrap(), ciphertext);
    assert_eq!(unwrap(&planner, &kek, &ciphertext).unwrap(), plaintext);
    for at in 0..ciphertext.len() {
        let mut changed = ciphertext.clone();
        changed[at] ^= 0x10;
        assert_eq!(unwrap(&planner, &kek, &changed), Err(Error::AuthenticationFailed), "byte {at}");
    }
}

/// RFC 3394, section 4.
#[test]
fn examples_of_rfc_3394() {
    let kek = |n: usize| &"000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F"[..2 * n];
    let data = |n: usize| &"00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F"[..2 * n];
    for (kek_len, data_len, ciphertext) in [
        (16, 16, "1FA68B0A8112B447AEF34BD8FB5A7B829D3E862371D2CFE5"),
        (24, 16, "96778B25AE6CA435F92B5B97C050AED2468AB8A17AD84E5D"),
        (32, 16, "64E8C3F9CE0F5BA263E9777905818A2A93C8191E7D6E8AE7"),
        (24, 24, "031D33264E15D33268F24EC260743EDCE1C6C7DDEE725A936BA814915C6762D2"),
        (32, 24, "A8F9BC1612C68B3FF6E6F4FBE30E71E4769C8B80A32CB8958CD5D17D6B254DA1"),
        (32, 32, "28C9F404C4B810F4CBCCB35CFB87F8263F5786E2D80ED326CBC7F0E71A99F43BFB988B9B7A02DD21"),
    ] {
        check(KW, kek(kek_len), data(data_len), ciphertext);
    }
}

/// RFC 5649, section 6.
#[test]
fn examples_of_rfc_5649() {
    let kek = "5840df6e29b02af1ab493b705bf16ea1ae8338f4dcc176a8";
    check(
        KWP,
        kek,
        "c37b7e6492584340bed12207808941155068f738",
        "138bdeaa9b8fa7fc61f97742e72248ee5ae6ae5360d1ae6a5f54f373fa543b6a",
    );
    check(KWP, kek, "466f7250617369", "afbeb0f07dfbf5419200f2ccb50bb24f");
}

#[test]
fn lengths_that_the_algorithms_exclude_are_refused() {
    let planner = planner();
    let kek = Key::new(&[1; 16]).unwrap();
    let refuses = |outcome: Result<Vec<u8>, Error>| matches!(outcome, Err(Error::DataLength { .. }));
    for len in 0..50usize {
        let data = vec![0; len];
        let whole = len.is_multiple_of(8);
        assert_eq!(refuses(KW.0(&planner, &kek, &data)), len < 16 || !whole, "wrap {len}");
        assert_eq!(refuses(KW.1(&planner, &kek, &data)), len < 24 || !whole, "unwrap {len}");
        assert_eq!(refuses(KWP.0(&planner, &kek, &data)), len == 0, "wrap {len} with padding");
        assert_eq!(refuses(KWP.1(&planner, &kek, &data)), len < 16 || !whole, "unwrap {len} with padding");
    }
}

/// The inputs are made with KW, with every length in the check value and every number of bytes before the zeros. Unwrapping
/// succeeds only if the length fits the number of semiblocks, and all bytes after this length are zero.
#[test]
fn prefix_length_and_padding_are_checked() {
    let planner = planner();
    let kek = Key::new(&[2; 32]).unwrap();
    let mut executor = Planned::new(&planner, &kek);
    for (semiblocks, function) in
        [(2usize, CipherFunction::Forward), (2, CipherFunction::Inverse), (3, CipherFunction::Forward)]
    {
        let all = 8 * semiblocks;
        for length in (0..=all as u32 + 9).chain([1 << 8, 1 << 16, 1 << 24, u32::MAX - 7, u32::MAX]) {
            for used in all - 9..=all {
                for prefix in [[0xa6, 0x59, 0x59, 0xa6], [0xa6; 4]] {
                    let mut icv = [0; 8];
                    icv[..4].copy_from_slice(&prefix);
                    icv[4..].copy_from_slice(&length.to_be_bytes());
                    let mut data = vec![0; all];
                    data[..used].fill(0x22);
                    let icv = Icv::Whole(icv);
                    let first =
                        key_wrap::wrap_in_place(&mut executor, function, icv, all, &mut data).unwrap();
                    let outcome =
                        key_wrap::unwrap_in_place(&mut executor, function, Icv::KWP, first, &mut data);
                    let valid = Icv::Padded(prefix) == Icv::KWP
                        && (all - 7..=all).contains(&(length as usize))
                        && used <= length as usize;
                    let expected = if valid { Ok(length as usize) } else { Err(Error::AuthenticationFailed) };
                    assert_eq!(outcome, expected, "{semiblocks} semiblocks, length {length}, {used} used");
                    assert!(valid || data.iter().all(|byte| *byte == 0), "plaintext after a refusal");
                }
            }
        }
    }
}

#[test]
fn the_inverse_function_exchanges_the_directions() {
    let planner = planner();
    let kek = Key::new(&[3; 16]).unwrap();
    let mut executor = Planned::new(&planner, &kek);
    let mut data = [5; 16];
    let first =
        key_wrap::wrap_in_place(&mut executor, CipherFunction::Inverse, Icv::KW, 16, &mut data).unwrap();
    assert!([&first[..], &data].concat() != KW.0(&planner, &kek, &[5; 16]).unwrap());
    let (function, mut copy) = (CipherFunction::Forward, data);
    let wrong = key_wrap::unwrap_in_place(&mut executor, function, Icv::KW, first, &mut copy);
    assert_eq!((wrong, copy), (Err(Error::AuthenticationFailed), [0; 16]));
    key_wrap::unwrap_in_place(&mut executor, CipherFunction::Inverse, Icv::KW, first, &mut data).unwrap();
    assert_eq!(data, [5; 16]);
}

/// An executor that does not change the data. It fails in the call with this number, counted from 1.
struct Failing(usize);

impl KeyedExecutor for Failing {
    type Error = Error;

    fn run(&mut self, _pass: Pass, _state: &mut Block, _data: Span<'_>) -> Result<(), Error> {
        self.0 -= 1;
        if self.0 == 0 { Err(Error::NotSealed) } else { Ok(()) }
    }
}

#[test]
fn the_data_are_zero_after_a_failure_of_the_executor() {
    for calls in 1..=12 {
        let mut data = [9; 16];
        let function = CipherFunction::Forward;
        let outcome = key_wrap::unwrap_in_place(&mut Failing(calls), function, Icv::KW, [9; 8], &mut data);
        assert_eq!((outcome, data), (Err(Error::NotSealed), [0; 16]));
        let mut data = [9; 16];
        let outcome = key_wrap::unwrap_in_place(&mut Failing(calls), function, Icv::KWP, [9; 8], &mut data);
        assert_eq!((outcome, data), (Err(Error::NotSealed), [0; 16]));
    }
}
