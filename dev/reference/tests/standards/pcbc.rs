//! Tests PCBC. No standard has vectors for PCBC, so the tests use its definition.

use lockstep_reference::{Aes, Block, pcbc};

fn xor(blocks: &[Block]) -> Block {
    let mut sum = [0; 16];
    for block in blocks {
        for (s, b) in sum.iter_mut().zip(block) {
            *s ^= b;
        }
    }
    sum
}

fn example() -> (Aes, Block, Vec<u8>) {
    let key: Vec<u8> = (0..32).collect();
    (Aes::new(&key), [0xa5; 16], (0..96).map(|i| (i * i) as u8).collect())
}

/// Checks the definition: E(P_j ^ P_(j-1) ^ C_(j-1)) = C_j, where P_0 ^ C_0 is the IV.
#[test]
fn definition() {
    let (aes, iv, plaintext) = example();
    let ciphertext = pcbc::encrypt(&aes, &iv, &plaintext);
    let (p, c) = (plaintext.as_chunks().0, ciphertext.as_chunks().0);
    assert_eq!(c.len(), p.len());
    assert_eq!(c[0], aes.encrypt(xor(&[p[0], iv])));
    for j in 1..p.len() {
        assert_eq!(c[j], aes.encrypt(xor(&[p[j], p[j - 1], c[j - 1]])));
    }
}

#[test]
fn round_trip() {
    let (aes, iv, plaintext) = example();
    for len in (0..=96).step_by(16) {
        let ciphertext = pcbc::encrypt(&aes, &iv, &plaintext[..len]);
        assert_eq!(pcbc::decrypt(&aes, &iv, &ciphertext), plaintext[..len]);
    }
}

/// The known weakness of the mode: if two neighbouring ciphertext blocks are exchanged, the following plaintext is
/// unchanged.
#[test]
fn swapped_neighbours() {
    let (aes, iv, plaintext) = example();
    let mut ciphertext = pcbc::encrypt(&aes, &iv, &plaintext);
    ciphertext[16..48].rotate_left(16);
    let garbled = pcbc::decrypt(&aes, &iv, &ciphertext);
    assert_eq!(garbled[..16], plaintext[..16]);
    assert_ne!(garbled[16..48], plaintext[16..48]);
    assert_eq!(garbled[48..], plaintext[48..]);
}
