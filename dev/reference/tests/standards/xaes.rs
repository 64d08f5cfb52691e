//! C2SP XAES-256-GCM, "Test vectors". The accumulated vectors need SHAKE-128, which is not a dependency.

use crate::hex;
use lockstep_reference::xaes;

const NONCE: &[u8; 24] = b"ABCDEFGHIJKLMNOPQRSTUVWX";
const PLAINTEXT: &[u8] = b"XAES-256-GCM";

fn check(key: &[u8; 32], k_x: &str, aad: &[u8], result: &str) {
    let (derived, n_x) = xaes::derive(key, NONCE);
    assert_eq!(derived[..], hex(k_x));
    assert_eq!(&n_x, b"MNOPQRSTUVWX");

    let result = hex(result);
    let (ciphertext, tag) = result.split_last_chunk().expect("a tag");
    assert_eq!(xaes::seal(key, NONCE, aad, PLAINTEXT), (ciphertext.to_vec(), *tag));
    assert_eq!(xaes::open(key, NONCE, aad, ciphertext, tag).as_deref(), Some(PLAINTEXT));

    // After any change the tag does not match.
    let mut changed = *tag;
    changed[15] ^= 1;
    assert_eq!(xaes::open(key, NONCE, aad, ciphertext, &changed), None);
    assert_eq!(xaes::open(key, NONCE, &[aad, b"!"].concat(), ciphertext, tag), None);
    assert_eq!(xaes::open(key, NONCE, aad, &ciphertext[1..], tag), None);
    assert_eq!(xaes::open(key, NONCE, aad, ciphertext, &tag[..12]), None, "a tag of 12 bytes is invalid");
    for i in [0, 11, 12, 23] {
        let mut changed = *NONCE;
        changed[i] ^= 1;
        assert_eq!(xaes::open(key, &changed, aad, ciphertext, tag), None, "byte {i} of the nonce");
    }
}

/// The first bit of L, the encrypted zero block, is 0.
#[test]
fn first_bit_clear() {
    check(
        &[0x01; 32],
        "c8612c9ed53fe43e8e005b828a1631a0bbcb6ab2f46514ec4f439fcfd0fa969b",
        b"",
        "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271",
    );
}

/// The first bit of L is 1.
#[test]
fn first_bit_set() {
    check(
        &[0x03; 32],
        "e9c621d4cdd9b11b00a6427ad7e559aeedd66b3857646677748f8ca796cb3fd8",
        b"c2sp.org/XAES-256-GCM",
        "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d",
    );
}
