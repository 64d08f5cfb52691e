//! XTS-AES: SP 800-38E, which adopts IEEE 1619; the sections cited are those of IEEE 1619-2007.

use crate::{Aes, Block, xor};

/// XTS encryption of one data unit: XTS-AES-Enc (IEEE 1619, section 5.3.2).
///
/// `tweak` is the number of the data unit in little-endian order (section 5.1). A partial last block is processed by
/// ciphertext stealing.
///
/// # Panics
///
/// If `data` has fewer than 16 bytes.
pub fn encrypt(data_key: &Aes, tweak_key: &Aes, tweak: &Block, data: &[u8]) -> Vec<u8> {
    let encrypt_block = |t: Block, p: Block| xor(data_key.encrypt(xor(p, t)), t);
    let (blocks, rest) = split(data);
    let (last, before) = blocks.split_last().expect("XTS needs at least one block");

    let mut out = Vec::with_capacity(data.len());
    let mut t = tweak_key.encrypt(*tweak);
    for p in before {
        out.extend(encrypt_block(t, *p));
        t = mul_alpha(t);
    }
    let c = encrypt_block(t, *last);
    if rest.is_empty() {
        out.extend(c);
    } else {
        // The end of the last whole block's ciphertext completes the partial block (section 5.3.2).
        out.extend(encrypt_block(mul_alpha(t), overlay(rest, c)));
        out.extend(&c[..rest.len()]);
    }
    out
}

/// XTS decryption of one data unit: XTS-AES-Dec (IEEE 1619, section 5.4.2). See [`encrypt`].
///
/// # Panics
///
/// If `data` has fewer than 16 bytes.
pub fn decrypt(data_key: &Aes, tweak_key: &Aes, tweak: &Block, data: &[u8]) -> Vec<u8> {
    let decrypt_block = |t: Block, c: Block| xor(data_key.decrypt(xor(c, t)), t);
    let (blocks, rest) = split(data);
    let (last, before) = blocks.split_last().expect("XTS needs at least one block");

    let mut out = Vec::with_capacity(data.len());
    let mut t = tweak_key.encrypt(*tweak);
    for c in before {
        out.extend(decrypt_block(t, *c));
        t = mul_alpha(t);
    }
    if rest.is_empty() {
        out.extend(decrypt_block(t, *last));
    } else {
        // Encryption computed the last whole block of the ciphertext after all other blocks, so this block has the last tweak (section
        // 5.4.2).
        let p = decrypt_block(mul_alpha(t), *last);
        out.extend(decrypt_block(t, overlay(rest, p)));
        out.extend(&p[..rest.len()]);
    }
    out
}

/// The tweak times alpha = x in GF(2^128) modulo x^128 + x^7 + x^2 + x + 1, where the first byte holds the
/// lowest powers (IEEE 1619, section 5.2).
pub fn mul_alpha(tweak: Block) -> Block {
    let t = u128::from_le_bytes(tweak);
    let carry = t >> 127 == 1;
    (t << 1 ^ if carry { 0x87 } else { 0 }).to_le_bytes()
}

/// Splits `data` into whole blocks and a partial last block.
fn split(data: &[u8]) -> (&[Block], &[u8]) {
    assert!(data.len() >= 16, "XTS needs at least 16 bytes, not {}", data.len());
    data.as_chunks()
}

/// `head`, completed to a block with the end of `block`.
fn overlay(head: &[u8], mut block: Block) -> Block {
    block[..head.len()].copy_from_slice(head);
    block
}
