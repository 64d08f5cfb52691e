//! Counter with CBC-MAC: SP 800-38C, with the formatting of its appendix A.

use crate::{Aes, Block, cbc_mac, ctr, xor, zero_padded};

/// Authenticated encryption: Generation-Encryption (SP 800-38C, section 6.1). Returns the ciphertext and the tag; the
/// standard's C is their concatenation.
///
/// # Panics
///
/// If `nonce` is not 7 to 13 bytes, `tag_len` is not 4, 6, 8, 10, 12, 14 or 16 (appendix A.1), or the length of
/// `plaintext` does not fit in 15 - n bytes, where n is the length of the nonce.
pub fn seal(aes: &Aes, nonce: &[u8], aad: &[u8], plaintext: &[u8], tag_len: usize) -> (Vec<u8>, Vec<u8>) {
    assert!(valid_tag_len(tag_len), "a CCM tag has 4, 6, ..., 16 bytes, not {tag_len}");
    let ciphertext = ctr::apply(aes, &counter_block(nonce, 1), plaintext);
    let tag = tag(aes, nonce, aad, plaintext, tag_len);
    (ciphertext, tag)
}

/// Authenticated decryption: Decryption-Verification (SP 800-38C, section 6.2). The length of the tag determines t.
///
/// `None` if the tag is wrong or has a length that appendix A.1 does not allow.
///
/// # Panics
///
/// If `nonce` is not 7 to 13 bytes, or `ciphertext` is too long for it.
pub fn open(aes: &Aes, nonce: &[u8], aad: &[u8], ciphertext: &[u8], tag: &[u8]) -> Option<Vec<u8>> {
    if !valid_tag_len(tag.len()) {
        return None;
    }
    let plaintext = ctr::apply(aes, &counter_block(nonce, 1), ciphertext);
    (tag == self::tag(aes, nonce, aad, &plaintext, tag.len())).then_some(plaintext)
}

fn valid_tag_len(t: usize) -> bool {
    matches!(t, 4 | 6 | 8 | 10 | 12 | 14 | 16)
}

/// T ^ MSB_Tlen(S_0), the encrypted tag (SP 800-38C, section 6.1, steps 1 to 4 and 8).
fn tag(aes: &Aes, nonce: &[u8], aad: &[u8], payload: &[u8], tag_len: usize) -> Vec<u8> {
    let mut b = first_block(nonce, !aad.is_empty(), payload.len(), tag_len).to_vec();
    b.extend(encoded_aad(aad));
    b.extend(zero_padded(payload));
    let t = cbc_mac::update(aes, [0; 16], &b);
    let s_0 = aes.encrypt(counter_block(nonce, 0));
    xor(t, s_0)[..tag_len].to_vec()
}

/// B_0: flags, the nonce, and the payload's length in q bytes (SP 800-38C, appendix A.2.1).
fn first_block(nonce: &[u8], has_aad: bool, payload_len: usize, tag_len: usize) -> Block {
    let q = 15 - nonce.len();
    assert!(
        q >= 8 || (payload_len as u64) < 1 << (8 * q),
        "{payload_len} bytes do not fit a length of {q} bytes"
    );
    let flags = 64 * u8::from(has_aad) + 8 * ((tag_len as u8 - 2) / 2) + (q as u8 - 1);
    with_number(flags, nonce, payload_len as u64)
}

/// Ctr_i: flags, the nonce, and i in q bytes (SP 800-38C, appendix A.3).
fn counter_block(nonce: &[u8], i: u64) -> Block {
    assert!((7..=13).contains(&nonce.len()), "a CCM nonce has 7 to 13 bytes, not {}", nonce.len());
    let q = 15 - nonce.len();
    with_number(q as u8 - 1, nonce, i)
}

/// flags || nonce || the number, big-endian, in the remaining bytes.
fn with_number(flags: u8, nonce: &[u8], number: u64) -> Block {
    // The number takes at most the last eight bytes of the block. The shortest nonce, of seven bytes, leaves exactly these
    // bytes free.
    let mut block = u128::from(number).to_be_bytes();
    block[0] = flags;
    block[1..=nonce.len()].copy_from_slice(nonce);
    block
}

/// The encoded length of the additional data and the data themselves, padded to whole blocks; empty if there are no
/// additional data (SP 800-38C, appendix A.2.2).
fn encoded_aad(aad: &[u8]) -> Vec<u8> {
    let a = aad.len() as u64;
    let mut encoded = match a {
        0 => vec![],
        1..0xff00 => (a as u16).to_be_bytes().to_vec(),
        0xff00..0x1_0000_0000 => [&[0xff, 0xfe], &(a as u32).to_be_bytes()[..]].concat(),
        _ => [&[0xff, 0xff], &a.to_be_bytes()[..]].concat(),
    };
    encoded.extend(aad);
    zero_padded(&encoded)
}
