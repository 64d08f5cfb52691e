//! CBC with ciphertext stealing: RFC 3962, appendix B, whose order is CBC-CS3, and OpenSSL's vectors for longer keys and
//! other orders (`evpciph_aes_cts*.txt`). The addendum to SP 800-38A has no vectors.

use crate::{block, hex};
use lockstep_reference::cbc_cts::Variant::{Cs1, Cs2, Cs3};
use lockstep_reference::cbc_cts::{Variant, decrypt, encrypt};
use lockstep_reference::{Aes, cbc};

/// The longest plaintext of the vectors. All other plaintexts are its first bytes.
const PLAINTEXT: &[u8] = b"I would like the General Gau's Chicken, please, and wonton soup.";

const ZERO_IV: &str = "00000000000000000000000000000000";
const COUNTING_IV: &str = "000102030405060708090a0b0c0d0e0f";

fn check(key: &[u8], variant: Variant, iv: &str, len: usize, ciphertext: &str) {
    let (aes, iv, ciphertext) = (Aes::new(key), block(iv), hex(ciphertext));
    assert_eq!(encrypt(&aes, variant, &iv, &PLAINTEXT[..len]), ciphertext, "{variant:?}, {len} bytes");
    assert_eq!(decrypt(&aes, variant, &iv, &ciphertext), &PLAINTEXT[..len], "{variant:?}, {len} bytes");
}

/// RFC 3962, appendix B: 17, 31, 32, 47, 48 and 64 bytes.
#[test]
fn rfc_3962() {
    for (len, ciphertext) in [
        (17, "c6353568f2bf8cb4d8a580362da7ff7f97"),
        (31, "fc00783e0efdb2c1d445d4c8eff7ed2297687268d6ecccc0c07b25e25ecfe5"),
        (32, "39312523a78662d5be7fcbcc98ebf5a897687268d6ecccc0c07b25e25ecfe584"),
        (
            47,
            "97687268d6ecccc0c07b25e25ecfe584b3fffd940c16a18c1b5549d2f838029e39312523a78662d5be7fcbcc98ebf5",
        ),
        (
            48,
            "97687268d6ecccc0c07b25e25ecfe5849dad8bbb96c4cdc03bc103e1a194bbd839312523a78662d5be7fcbcc98ebf5a8",
        ),
        (
            64,
            "97687268d6ecccc0c07b25e25ecfe58439312523a78662d5be7fcbcc98ebf5a8
             4807efe836ee89a526730dbc2f7bc8409dad8bbb96c4cdc03bc103e1a194bbd8",
        ),
    ] {
        check(b"chicken teriyaki", Cs3, ZERO_IV, len, ciphertext);
    }
}

/// OpenSSL's vectors for CBC-CS1 and CBC-CS2.
#[test]
fn other_orders() {
    let key = b"chicken teriyaki";
    check(key, Cs1, ZERO_IV, 17, "97c6353568f2bf8cb4d8a580362da7ff7f");
    check(key, Cs2, ZERO_IV, 17, "c6353568f2bf8cb4d8a580362da7ff7f97");
    for variant in [Cs1, Cs2] {
        check(key, variant, ZERO_IV, 32, "97687268d6ecccc0c07b25e25ecfe58439312523a78662d5be7fcbcc98ebf5a8");
    }
    check(
        key,
        Cs1,
        COUNTING_IV,
        47,
        "5432a630742dee7beb70f9f1400ee6a0b557cfb581949a4bdf3bb67dedd472426da5c54a9990f5ae0b7825f51f0060",
    );
    check(
        key,
        Cs3,
        COUNTING_IV,
        47,
        "5432a630742dee7beb70f9f1400ee6a0426da5c54a9990f5ae0b7825f51f0060b557cfb581949a4bdf3bb67dedd472",
    );
}

/// OpenSSL's vectors for AES-192 and AES-256.
#[test]
fn longer_keys() {
    let key = b"chicken teriyakichicken ";
    check(key, Cs1, COUNTING_IV, 17, "e9de1b402de8f79f947cc6b5880588d9b6");
    check(key, Cs2, COUNTING_IV, 31, "dea2b610546f3b1e1d231821e283e153e9de17d6248fb492bdea1fb2e09c8e");
    check(key, Cs3, COUNTING_IV, 32, "31d005cc9fea948fed1ba6308dad9dd1e9de17d6248fb492bdea1fb2e09c8e8e");
    let key = b"chicken teriyakichicken teriyaki";
    check(key, Cs3, COUNTING_IV, 17, "6b5f5abc21c4d04156c73850da3bba29e9");
    check(key, Cs3, COUNTING_IV, 31, "f22553af78ee4f468f02fbe6f0f2168ee954e79fae9310dc75b6070e1d6253");
    check(key, Cs3, COUNTING_IV, 32, "2c0463982174df10baa9d8f782c5a5b3e954e79fae9310dc75b6070e1d625346");
}

/// The variants differ only in the order of the last two parts. For whole blocks, CS1 and CS2 equal CBC.
#[test]
fn every_length() {
    let (aes, iv) = (Aes::new(&[7; 24]), block(COUNTING_IV));
    for len in 16..=64 {
        let plaintext = &PLAINTEXT[..len];
        let [cs1, cs2, cs3] = [Cs1, Cs2, Cs3].map(|variant| {
            let ciphertext = encrypt(&aes, variant, &iv, plaintext);
            assert_eq!(decrypt(&aes, variant, &iv, &ciphertext), plaintext, "{variant:?}, {len} bytes");
            ciphertext
        });
        assert_eq!(cs1.len(), len);
        if len == 16 {
            assert_eq!([&cs1, &cs3], [&cs2, &cs2]);
            assert_eq!(cs1, cbc::encrypt(&aes, &iv, plaintext));
            continue;
        }
        let swapped =
            [&cs1[..(len - 17) / 16 * 16], &cs1[len - 16..], &cs1[(len - 17) / 16 * 16..len - 16]].concat();
        assert_eq!(cs3, swapped);
        if len % 16 == 0 {
            assert_eq!(cs1, cbc::encrypt(&aes, &iv, plaintext));
            assert_eq!(cs2, cs1);
        } else {
            assert_eq!(cs2, cs3);
        }
    }
}

#[test]
#[should_panic(expected = "at least 16 bytes, not 15")]
fn too_short() {
    encrypt(&Aes::new(&[1; 16]), Cs1, &[0; 16], &[0; 15]);
}
