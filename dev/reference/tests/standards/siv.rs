//! RFC 5297, appendix A, and OpenSSL's vectors for longer keys (`evpciph_aes_siv.txt`).

use crate::{block, hex};
use lockstep_reference::{Aes, cmac, siv};

fn check(key: &str, associated_data: &[&str], plaintext: &str, v: &str, ciphertext: &str) {
    let (key, plaintext, ciphertext, v) = (hex(key), hex(plaintext), hex(ciphertext), block(v));
    let strings: Vec<Vec<u8>> = associated_data.iter().map(|string| hex(string)).collect();
    let strings: Vec<&[u8]> = strings.iter().map(Vec::as_slice).collect();

    assert_eq!(siv::seal(&key, &strings, &plaintext), (ciphertext.clone(), v));
    assert_eq!(siv::open(&key, &strings, &ciphertext, &v), Some(plaintext));

    // After any change the synthetic IV does not match.
    for i in [0, 8, 12, 15] {
        let mut changed = v;
        changed[i] ^= 0x80;
        assert_eq!(siv::open(&key, &strings, &ciphertext, &changed), None, "byte {i} of the synthetic IV");
    }
    let mut changed = ciphertext.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(siv::open(&key, &strings, &changed, &v), None);
    assert_eq!(siv::open(&key, &strings[1..], &ciphertext, &v), None, "one string less");
    assert_eq!(
        siv::open(&key, &[&strings[..], &[&[]]].concat(), &ciphertext, &v),
        None,
        "an empty string more"
    );
    assert_eq!(siv::open(&key, &[&strings.concat()[1..]], &ciphertext, &v), None);
    assert_eq!(siv::open(&key, &strings, &ciphertext, &v[..15]), None, "15 bytes are not a synthetic IV");
}

/// RFC 5297, A.1: deterministic authenticated encryption.
#[test]
fn deterministic() {
    check(
        "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        &["101112131415161718191a1b1c1d1e1f2021222324252627"],
        "112233445566778899aabbccddee",
        "85632d07c6e8f37f950acd320a2ecc93",
        "40c02b9690c4dc04daef7f6afe5c",
    );
}

/// RFC 5297, A.2: two strings of associated data and a nonce.
#[test]
fn with_nonce() {
    check(
        "7f7e7d7c7b7a79787776757473727170404142434445464748494a4b4c4d4e4f",
        &[
            "00112233445566778899aabbccddeeffdeaddadadeaddadaffeeddccbbaa99887766554433221100",
            "102030405060708090a0",
            "09f911029d74e35bd84156c5635688c0",
        ],
        "7468697320697320736f6d6520706c61696e7465787420746f20656e637279707420
         7573696e67205349562d414553",
        "7bdb6e3b432667eb06f4d14bff2fbd0f",
        "cb900f2fddbe404326601965c889bf17dba77ceb094fa663b7a3f748ba8af829
         ea64ad544a272e9c485b62a3fd5c0d",
    );
}

/// The intermediate values of A.1 and A.2: CMAC of the zero block and of the strings.
#[test]
fn intermediate_values() {
    let aes = Aes::new(&hex("fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0"));
    assert_eq!(cmac::cmac(&aes, &[0; 16]), block("0e04dfafc1efbf040140582859bf073a"));
    let associated_data = hex("101112131415161718191a1b1c1d1e1f2021222324252627");
    assert_eq!(cmac::cmac(&aes, &associated_data), block("f1f922b7f5193ce64ff80cb47d93f23b"));
    let aes = Aes::new(&hex("7f7e7d7c7b7a79787776757473727170"));
    assert_eq!(cmac::cmac(&aes, &[0; 16]), block("c8b43b5974960e7ce6a5dd85231e591a"));
}

/// OpenSSL's vectors for keys of 48 and 64 bytes.
#[test]
fn longer_keys() {
    let associated_data = ["101112131415161718191a1b1c1d1e1f2021222324252627"];
    let plaintext = "112233445566778899aabbccddee";
    check(
        "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff
         fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0",
        &associated_data,
        plaintext,
        "89e869b93256785154f0963962fe0740",
        "eff356e42dec1f4febded36642f2",
    );
    check(
        "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff
         f0f1f2f3f4f5f6f7f8f9fafbfcfdfefffffefdfcfbfaf9f8f7f6f5f4f3f2f1f0",
        &associated_data,
        plaintext,
        "724dfb2eaf94dbb19b0ba3a299a0801e",
        "f3b05a55498ec2552690b89810e4",
    );
}

/// RFC 5297, section 2.4: S2V of no string is the CMAC of the number one. S2V of an empty string is another value.
#[test]
fn no_strings() {
    let aes = Aes::new(&[3; 16]);
    assert_eq!(siv::s2v(&aes, &[]), cmac::cmac(&aes, &block("00000000000000000000000000000001")));
    assert_ne!(siv::s2v(&aes, &[&[]]), siv::s2v(&aes, &[]));
    assert_ne!(siv::s2v(&aes, &[&[], &[]]), siv::s2v(&aes, &[&[]]));
}

/// Checks every length from 0 bytes to three blocks, with zero to two strings of associated data.
#[test]
fn every_length() {
    let key: Vec<u8> = (0..64).collect();
    let strings: [&[u8]; 2] = [&[], b"associated data"];
    for len in 0..=48 {
        for count in 0..=2 {
            let (ciphertext, v) = siv::seal(&key, &strings[..count], &key[..len]);
            assert_eq!(ciphertext.len(), len);
            assert_eq!(siv::open(&key, &strings[..count], &ciphertext, &v).as_deref(), Some(&key[..len]));
        }
    }
}

#[test]
#[should_panic(expected = "32, 48 or 64 bytes, not 16")]
fn wrong_key_length() {
    siv::seal(&[0; 16], &[], &[]);
}

#[test]
#[should_panic(expected = "at most 127 strings, not 128")]
fn too_many_strings() {
    siv::seal(&[0; 32], &[[].as_slice(); 127], &[]);
}
