//! OCB3: RFC 7253, with AES.

use crate::cmac::double;
use crate::{Aes, Block, xor};

/// OCB-ENCRYPT (RFC 7253, section 4.2). Returns the ciphertext and the tag; the standard's C is their concatenation.
///
/// TAGLEN, the length of the tag in bits, enters the computation: a shorter tag is not a part of a longer one.
///
/// # Panics
///
/// If `nonce` is not 1 to 15 bytes, or `tag_len` is not 1 to 16 bytes.
pub fn seal(aes: &Aes, nonce: &[u8], aad: &[u8], plaintext: &[u8], tag_len: usize) -> (Vec<u8>, Vec<u8>) {
    assert!(valid_tag_len(tag_len), "an OCB tag has 1 to 16 bytes, not {tag_len}");
    let (blocks, rest) = plaintext.as_chunks();
    let mut offset = offset_0(aes, nonce, tag_len);
    let mut ciphertext = Vec::with_capacity(plaintext.len());
    for (i, p) in (1..).zip(blocks) {
        offset = xor(offset, l(aes, i));
        ciphertext.extend(xor(offset, aes.encrypt(xor(*p, offset))));
    }
    if !rest.is_empty() {
        offset = xor(offset, l_star(aes));
        ciphertext.extend(xor_partial(rest, aes.encrypt(offset)));
    }
    (ciphertext, tag(aes, offset, aad, plaintext)[..tag_len].to_vec())
}

/// OCB-DECRYPT (RFC 7253, section 4.3). The length of the tag determines TAGLEN.
///
/// `None` if the tag is wrong, or is not 1 to 16 bytes.
///
/// # Panics
///
/// If `nonce` is not 1 to 15 bytes.
pub fn open(aes: &Aes, nonce: &[u8], aad: &[u8], ciphertext: &[u8], tag: &[u8]) -> Option<Vec<u8>> {
    if !valid_tag_len(tag.len()) {
        return None;
    }
    let (blocks, rest) = ciphertext.as_chunks();
    let mut offset = offset_0(aes, nonce, tag.len());
    let mut plaintext = Vec::with_capacity(ciphertext.len());
    for (i, c) in (1..).zip(blocks) {
        offset = xor(offset, l(aes, i));
        plaintext.extend(xor(offset, aes.decrypt(xor(*c, offset))));
    }
    if !rest.is_empty() {
        offset = xor(offset, l_star(aes));
        plaintext.extend(xor_partial(rest, aes.encrypt(offset)));
    }
    (tag == &self::tag(aes, offset, aad, &plaintext)[..tag.len()]).then_some(plaintext)
}

fn valid_tag_len(bytes: usize) -> bool {
    (1..=16).contains(&bytes)
}

/// HASH(K, A) (RFC 7253, section 4.1).
fn hash(aes: &Aes, a: &[u8]) -> Block {
    let (blocks, rest) = a.as_chunks();
    let mut sum = [0; 16];
    let mut offset = [0; 16];
    for (i, a_i) in (1..).zip(blocks) {
        offset = xor(offset, l(aes, i));
        sum = xor(sum, aes.encrypt(xor(*a_i, offset)));
    }
    if !rest.is_empty() {
        offset = xor(offset, l_star(aes));
        sum = xor(sum, aes.encrypt(xor(pad(rest), offset)));
    }
    sum
}

/// The tag before truncation: ENCIPHER(K, Checksum ^ Offset ^ L_$) ^ HASH(K, A) (RFC 7253, section 4.2). `offset` is the offset of the last
/// block, whole or partial.
fn tag(aes: &Aes, offset: Block, aad: &[u8], plaintext: &[u8]) -> Block {
    let (blocks, rest) = plaintext.as_chunks();
    let mut checksum = [0; 16];
    for p in blocks {
        checksum = xor(checksum, *p);
    }
    if !rest.is_empty() {
        checksum = xor(checksum, pad(rest));
    }
    let enciphered = aes.encrypt(xor(xor(checksum, offset), l_dollar(aes)));
    xor(enciphered, hash(aes, aad))
}

/// Offset_0 (RFC 7253, section 4.2, nonce-dependent and per-encryption variables).
fn offset_0(aes: &Aes, n: &[u8], tag_len: usize) -> Block {
    assert!((1..=15).contains(&n.len()), "an OCB nonce has 1 to 15 bytes, not {}", n.len());
    // Nonce = num2str(TAGLEN mod 128, 7) || zeros(120 - bitlen(N)) || 1 || N.
    let mut nonce = [0; 16];
    nonce[16 - n.len()..].copy_from_slice(n);
    nonce[15 - n.len()] |= 1;
    nonce[0] |= ((8 * tag_len % 128) as u8) << 1;

    // bottom = str2num(Nonce[123..128]), Ktop = ENCIPHER(K, Nonce[1..122] || zeros(6)).
    let bottom = nonce[15] % 64;
    nonce[15] -= bottom;
    let ktop = u128::from_be_bytes(aes.encrypt(nonce));

    // Stretch = Ktop || (Ktop[1..64] ^ Ktop[9..72]), Offset_0 = Stretch[1+bottom..128+bottom].
    let after_ktop = (ktop >> 64) as u64 ^ (ktop >> 56) as u64;
    let offset = if bottom == 0 { ktop } else { ktop << bottom | u128::from(after_ktop >> (64 - bottom)) };
    offset.to_be_bytes()
}

/// L_* = ENCIPHER(K, zeros(128)) (RFC 7253, section 4.1).
fn l_star(aes: &Aes) -> Block {
    aes.encrypt([0; 16])
}

/// L_$ = double(L_*) (RFC 7253, section 4.1).
fn l_dollar(aes: &Aes) -> Block {
    double(l_star(aes))
}

/// L_{ntz(i)}, where L_0 = double(L_$) and L_j = double(L_{j-1}) (RFC 7253, section 4.1).
fn l(aes: &Aes, i: u64) -> Block {
    let mut l = double(l_dollar(aes));
    for _ in 0..i.trailing_zeros() {
        l = double(l);
    }
    l
}

/// X || 1 || zeros(127 - bitlen(X)), for fewer than 16 bytes (RFC 7253, sections 4.1 and 4.2).
fn pad(x: &[u8]) -> Block {
    let mut padded = [0; 16];
    padded[..x.len()].copy_from_slice(x);
    padded[x.len()] = 0x80;
    padded
}

/// X ^ Pad[1..bitlen(X)] (RFC 7253, section 4.2).
fn xor_partial(x: &[u8], pad: Block) -> Vec<u8> {
    x.iter().zip(pad).map(|(x, p)| x ^ p).collect()
}
