//! NIST's vectors for the modes, with the planner's choice of kernel and with each kernel by name.

use std::collections::BTreeMap;

use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, Status, Tag};
use lockstep_core::{Error, Key};
use lockstep_modes::key_wrap::{self, Icv};
use lockstep_modes::{Aead, Cipher, CipherKey, Direction};
use lockstep_planner::Planner;

use super::wycheproof::planner;

/// A selection of the vectors in NIST's response files. The head of nist.txt describes its format.
const VECTORS: &str = include_str!("nist.txt");

/// Number of vectors of each mode. The test fails if it has used fewer.
const COUNTS: [(&str, usize); 11] = [
    ("CBC", 21),
    ("CCM", 123),
    ("CFB1", 6),
    ("CFB128", 21),
    ("CFB8", 21),
    ("ECB", 21),
    ("GCM", 156),
    ("KW", 31),
    ("KWP", 35),
    ("OFB", 21),
    ("XTS", 35),
];

/// Converts hexadecimal digits to bytes. `-` means no bytes.
fn bytes(digits: &str) -> Vec<u8> {
    if digits == "-" {
        return Vec::new();
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    assert!(digits.len().is_multiple_of(2), "{digits}");
    digits.as_bytes().chunks(2).map(byte).collect()
}

/// Encrypts and decrypts with a mode without a tag.
fn check_cipher(planner: &Planner, mode: Cipher, fields: &[&str]) {
    let [key, iv, plain, cipher] = fields else { panic!("{fields:?}") };
    let key = CipherKey::new(mode, &bytes(key)).unwrap();
    for (direction, from, to) in [(Direction::Encrypt, plain, cipher), (Direction::Decrypt, cipher, plain)] {
        let mut iv = if *iv == "-" { [0; 16] } else { bytes(iv).try_into().unwrap() };
        let mut data = bytes(from);
        mode.one(planner, direction, &key, &mut iv, Data::in_place(&mut data)).unwrap();
        assert_eq!(data, bytes(to), "{mode:?}, {direction:?}, {fields:?}");
    }
}

/// Seals and opens with a mode with a tag. A message that is not authentic is refused, and its output is zeros.
fn check_aead(planner: &Planner, mode: Aead, fields: &[&str]) {
    let [key, nonce, aad, plain, cipher, tag] = fields else { panic!("{fields:?}") };
    let (key, nonce, aad, tag) = (Key::new(&bytes(key)).unwrap(), bytes(nonce), bytes(aad), bytes(tag));
    let run = |direction, data: &mut [u8], tag: Tag<'_>| {
        let (data, status) = (Data::in_place(data), Status::Pending);
        let message = AeadMessage { key: &key, nonce: &nonce, aad: &aad, data, tag, status };
        mode.run_messages(planner, direction, &mut [message])
    };
    let mut data = bytes(cipher);
    let opened = run(Direction::Decrypt, &mut data, Tag::Expect(&tag));
    if *plain == "FAIL" {
        assert_eq!(opened, Err(Error::AuthenticationFailed), "{mode:?}, {fields:?}");
        assert!(data.iter().all(|byte| *byte == 0), "{mode:?}, {fields:?}: plaintext left over");
        return;
    }
    assert_eq!((opened, &data), (Ok(()), &bytes(plain)), "{mode:?}, {fields:?}");
    let mut computed = vec![0; tag.len()];
    run(Direction::Encrypt, &mut data, Tag::Write(&mut computed)).unwrap();
    assert_eq!((data, computed), (bytes(cipher), tag), "{mode:?}, {fields:?}");
}

/// Wraps and unwraps a key.
fn check_key_wrap(planner: &Planner, icv: Icv, fields: &[&str]) {
    let [key, plain, cipher] = fields else { panic!("{fields:?}") };
    let (key, cipher) = (Key::new(&bytes(key)).unwrap(), bytes(cipher));
    let unwrapped = key_wrap::unwrap(planner, &key, icv, &cipher);
    if *plain == "FAIL" {
        assert!(matches!(unwrapped, Err(Error::AuthenticationFailed)), "{fields:?}");
        return;
    }
    assert_eq!(*unwrapped.unwrap(), bytes(plain), "{fields:?}");
    assert_eq!(key_wrap::wrap(planner, &key, icv, &bytes(plain)).unwrap(), cipher, "{fields:?}");
}

fn check(kernel: Option<&str>) {
    let Some(planner) = planner(kernel) else { return };
    let mut counts = BTreeMap::new();
    for line in VECTORS.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(' ').collect();
        let (mode, fields) = fields.split_first().unwrap();
        *counts.entry(*mode).or_insert(0) += 1;
        match *mode {
            "ECB" => check_cipher(&planner, Cipher::Ecb, fields),
            "CBC" => check_cipher(&planner, Cipher::Cbc, fields),
            "CFB128" => check_cipher(&planner, Cipher::Cfb128, fields),
            "CFB8" => check_cipher(&planner, Cipher::Cfb8, fields),
            "CFB1" => check_cipher(&planner, Cipher::Cfb1, fields),
            "OFB" => check_cipher(&planner, Cipher::Ofb, fields),
            "XTS" => check_cipher(&planner, Cipher::Xts, fields),
            "GCM" => check_aead(&planner, Aead::Gcm, fields),
            "CCM" => check_aead(&planner, Aead::Ccm, fields),
            "KW" => check_key_wrap(&planner, Icv::KW, fields),
            "KWP" => check_key_wrap(&planner, Icv::KWP, fields),
            other => panic!("no mode {other}"),
        }
    }
    assert_eq!(counts, BTreeMap::from(COUNTS));
}

#[test]
fn the_planners_choice() {
    check(None);
}

#[test]
fn soft() {
    check(Some("cpu/soft"));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn instructions_of_x86() {
    for kernel in ["cpu/aesni", "cpu/vaes256", "cpu/vaes512"] {
        check(Some(kernel));
    }
}

#[cfg(target_arch = "aarch64")]
#[test]
fn instructions_of_arm() {
    check(Some("cpu/armv8"));
    check(Some("cpu/armv8-sha3"));
}
