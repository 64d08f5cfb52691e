//! NIST's vectors for the modes, with the planner's choice of kernel and with each kernel by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, Status, Tag};
use lockstep_core::{Error, Key};
use lockstep_modes::cbc_cts::{self, Variant};
use lockstep_modes::key_wrap::{self, Icv};
use lockstep_modes::stream::CmacStream;
use lockstep_modes::{Aead, Cipher, CipherKey, Direction, Executor, gcm};
use lockstep_planner::Planner;

use super::wycheproof::planner;

/// Vectors, and the number of vectors of each mode. The test fails if it has used another number.
type Vectors = (&'static str, &'static [(&'static str, usize)]);

/// A selection of the vectors in NIST's response files. The head of nist.txt describes its format.
const CAVP: Vectors = (
    include_str!("nist.txt"),
    &[
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
    ],
);

/// A selection of the vectors of NIST's validation server. The head of acvp.txt describes its format.
const ACVP: Vectors = (
    include_str!("acvp.txt"),
    &[
        ("CBC", 24),
        ("CBC-CS3", 38),
        ("CCM", 72),
        ("CMAC", 24),
        ("CTR", 33),
        ("ECB", 24),
        ("GCM", 42),
        ("GMAC", 70),
        ("KW", 30),
        ("KWP", 24),
        ("XTS", 4),
    ],
);

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

/// Encrypts and decrypts with CBC-CS3.
fn check_stealing(planner: &Planner, fields: &[&str]) {
    let [key, iv, plain, cipher] = fields else { panic!("{fields:?}") };
    let key = Key::new(&bytes(key)).unwrap();
    for (direction, from, to) in [(Direction::Encrypt, plain, cipher), (Direction::Decrypt, cipher, plain)] {
        let (mut iv, mut data) = (bytes(iv).try_into().unwrap(), bytes(from));
        cbc_cts::run_in_place(planner, direction, &key, Variant::Cs3, &mut iv, &mut data).unwrap();
        assert_eq!(data, bytes(to), "{direction:?}, {fields:?}");
    }
}

/// Computes the GMAC of the associated data. Also opens the message, which has no data.
fn check_gmac(planner: &Planner, fields: &[&str]) {
    check_aead(planner, Aead::Gcm, fields);
    let [key, nonce, aad, plain, _, tag] = fields else { panic!("{fields:?}") };
    let (key, tag) = (Key::new(&bytes(key)).unwrap(), bytes(tag));
    let mut computed = vec![0; tag.len()];
    gcm::gmac(planner, &key, &bytes(nonce), &bytes(aad), &mut computed).unwrap();
    assert_eq!(computed == tag, *plain != "FAIL", "{fields:?}");
}

/// Compares the first bytes of a CMAC.
fn check_cmac(planner: &Arc<Planner>, fields: &[&str]) {
    let (expected, fields) = match fields {
        ["FAIL", fields @ ..] => (Err(Error::AuthenticationFailed), fields),
        fields => (Ok(()), fields),
    };
    let [key, message, mac] = fields else { panic!("{fields:?}") };
    let executor: Arc<dyn Executor> = planner.clone();
    let mut stream = CmacStream::new(executor, Key::new(&bytes(key)).unwrap());
    stream.update(&bytes(message)).unwrap();
    assert_eq!(stream.verify(&bytes(mac)), expected, "{fields:?}");
}

fn check(kernel: Option<&str>, (vectors, expected): Vectors) {
    let Some(planner) = planner(kernel) else { return };
    let mut counts = BTreeMap::new();
    for line in vectors.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(' ').collect();
        let (mode, fields) = fields.split_first().unwrap();
        *counts.entry(*mode).or_insert(0) += 1;
        match *mode {
            "ECB" => check_cipher(&planner, Cipher::Ecb, fields),
            "CBC" => check_cipher(&planner, Cipher::Cbc, fields),
            "CBC-CS3" => check_stealing(&planner, fields),
            "CFB128" => check_cipher(&planner, Cipher::Cfb128, fields),
            "CFB8" => check_cipher(&planner, Cipher::Cfb8, fields),
            "CFB1" => check_cipher(&planner, Cipher::Cfb1, fields),
            "OFB" => check_cipher(&planner, Cipher::Ofb, fields),
            "CTR" => check_cipher(&planner, Cipher::Ctr, fields),
            "XTS" => check_cipher(&planner, Cipher::Xts, fields),
            "GCM" => check_aead(&planner, Aead::Gcm, fields),
            "GMAC" => check_gmac(&planner, fields),
            "CCM" => check_aead(&planner, Aead::Ccm, fields),
            "CMAC" => check_cmac(&planner, fields),
            "KW" => check_key_wrap(&planner, Icv::KW, fields),
            "KWP" => check_key_wrap(&planner, Icv::KWP, fields),
            other => panic!("no mode {other}"),
        }
    }
    assert_eq!(counts, expected.iter().copied().collect());
}

fn check_all(kernel: Option<&str>) {
    check(kernel, CAVP);
    check(kernel, ACVP);
}

#[test]
fn the_planners_choice() {
    check_all(None);
}

#[test]
fn soft() {
    check_all(Some("cpu/soft"));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn instructions_of_x86() {
    for kernel in ["cpu/aesni", "cpu/vaes256", "cpu/vaes512"] {
        check_all(Some(kernel));
    }
}

#[cfg(target_arch = "aarch64")]
#[test]
fn instructions_of_arm() {
    check_all(Some("cpu/armv8"));
    check_all(Some("cpu/armv8-sha3"));
}
