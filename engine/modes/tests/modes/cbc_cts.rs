//! Tests of CBC with ciphertext stealing: the examples of RFC 3962, the variants in comparison with each other, and all lengths.

use std::sync::Arc;

use lockstep_core::{Error, Key};
use lockstep_modes::Direction;
use lockstep_modes::cbc_cts::{self, Variant};
use lockstep_modes::incremental::{Planned, SliceIo};
use lockstep_planner::{Planner, Selection};
use lockstep_reference as reference;
use lockstep_testkit::mock::MockAsyncDevice;

use crate::bytes_of;

/// A planner whose device is the oracle.
pub(crate) fn planner() -> Planner {
    let device = Arc::new(MockAsyncDevice::default());
    Planner::new(vec![device], &Selection { device: Some("mock:0".into()), kernel: None }).unwrap()
}

/// Checks the examples of RFC 3962, appendix B, with the IV of the next message.
#[test]
fn examples_of_rfc_3962() {
    let planner = planner();
    let key = Key::new(b"chicken teriyaki").unwrap();
    let text = b"I would like the General Gau's Chicken, please, and wonton soup.";
    for (len, ciphertext, next) in [
        (17, "c6353568f2bf8cb4d8a580362da7ff7f97", "c6353568f2bf8cb4d8a580362da7ff7f"),
        (
            31,
            "fc00783e0efdb2c1d445d4c8eff7ed2297687268d6ecccc0c07b25e25ecfe5",
            "fc00783e0efdb2c1d445d4c8eff7ed22",
        ),
        (
            32,
            "39312523a78662d5be7fcbcc98ebf5a897687268d6ecccc0c07b25e25ecfe584",
            "39312523a78662d5be7fcbcc98ebf5a8",
        ),
        (
            47,
            "97687268d6ecccc0c07b25e25ecfe584b3fffd940c16a18c1b5549d2f838029e39312523a78662d5be7fcbcc98ebf5",
            "b3fffd940c16a18c1b5549d2f838029e",
        ),
        (
            48,
            "97687268d6ecccc0c07b25e25ecfe5849dad8bbb96c4cdc03bc103e1a194bbd839312523a78662d5be7fcbcc98ebf5a8",
            "9dad8bbb96c4cdc03bc103e1a194bbd8",
        ),
        (
            64,
            "97687268d6ecccc0c07b25e25ecfe58439312523a78662d5be7fcbcc98ebf5a84807efe836ee89a526730dbc2f7bc840\
             9dad8bbb96c4cdc03bc103e1a194bbd8",
            "4807efe836ee89a526730dbc2f7bc840",
        ),
    ] {
        let (mut iv, mut data) = ([0; 16], text[..len].to_vec());
        cbc_cts::run_in_place(&planner, Direction::Encrypt, &key, Variant::Cs3, &mut iv, &mut data).unwrap();
        assert_eq!((&data, iv.as_slice()), (&bytes_of(ciphertext), &*bytes_of(next)), "{len} bytes");
        let mut iv = [0; 16];
        cbc_cts::run_in_place(&planner, Direction::Decrypt, &key, Variant::Cs3, &mut iv, &mut data).unwrap();
        assert_eq!((&*data, iv.as_slice()), (&text[..len], &*bytes_of(next)), "{len} bytes");
    }
}

/// The ciphertext by its definition (addendum to SP 800-38A): CBC of the data padded with zeros, without the bytes of the
/// second to last block that are stolen.
fn expected(variant: Variant, key: &[u8], iv: &[u8; 16], data: &[u8]) -> Vec<u8> {
    let aes = reference::Aes::new(key);
    let padded = [data, &vec![0; data.len().next_multiple_of(16) - data.len()]].concat();
    let mut ciphertext = reference::cbc::encrypt(&aes, iv, &padded);
    let whole = data.len().is_multiple_of(16);
    if data.len() == 16 || (whole && variant != Variant::Cs3) {
        return ciphertext;
    }
    let last = ciphertext.split_off(padded.len() - 16);
    let mut previous = ciphertext.split_off(padded.len() - 32);
    previous.truncate(16 - (padded.len() - data.len()));
    let end = if variant == Variant::Cs1 { [previous, last] } else { [last, previous] };
    [ciphertext, end.concat()].concat()
}

#[test]
fn messages_of_every_length_in_every_variant() {
    let planner = planner();
    let iv = [0x5a; 16];
    for key_len in [16, 24, 32] {
        let bytes: Vec<u8> = (0..key_len).collect();
        let key = Key::new(&bytes).unwrap();
        for variant in Variant::ALL {
            for len in 16..=100usize {
                let data: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
                let expected = expected(variant, &bytes, &iv, &data);
                let mut out = data.clone();
                let mut next = iv;
                cbc_cts::run_in_place(&planner, Direction::Encrypt, &key, variant, &mut next, &mut out)
                    .unwrap();
                assert_eq!(out, expected, "{variant:?}, {len} bytes");
                // The data are processed out of place, with an output buffer that is longer than the output.
                let (mut state, mut room) = (iv, vec![0x77; len + 20]);
                let mut executor = Planned::new(&planner, &key);
                let mut io = SliceIo { input: Some(&expected), output: &mut room };
                cbc_cts::run(&mut executor, Direction::Decrypt, variant, &mut state, &mut io).unwrap();
                assert_eq!((&room[..len], state), (&*data, next), "{variant:?}, {len} bytes");
                assert!(room[len..].iter().all(|byte| *byte == 0x77), "written beyond the output");
            }
        }
    }
}

#[test]
fn short_messages_and_outputs_are_refused_unchanged() {
    let planner = planner();
    let key = Key::new(&[1; 16]).unwrap();
    let mut executor = Planned::new(&planner, &key);
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        for variant in Variant::ALL {
            for len in 0..16 {
                let (mut state, mut data) = ([4; 16], vec![3; len]);
                let outcome =
                    cbc_cts::run_in_place(&planner, direction, &key, variant, &mut state, &mut data);
                assert!(matches!(outcome, Err(Error::DataLength { got, .. }) if got == len));
                assert!(state == [4; 16] && data == vec![3; len]);
            }
            let (mut state, mut output) = ([4; 16], [3; 32]);
            let mut io = SliceIo { input: Some(&[0; 33]), output: &mut output };
            let outcome = cbc_cts::run(&mut executor, direction, variant, &mut state, &mut io);
            assert_eq!(outcome, Err(Error::OutputLength { needed: 33, got: 32 }));
            assert!(state == [4; 16] && output == [3; 32]);
        }
    }
}
