//! AES-GCM-SIV: RFC 8452.

use crate::polyval::polyval;
use crate::{Aes, Block, xor, zero_padded};

/// The keys of one message (RFC 8452, section 4).
pub struct MessageKeys {
    /// The key of POLYVAL.
    pub authentication: Block,
    /// The key of AES, which has the length of the key-generating key.
    pub encryption: Vec<u8>,
}

/// Authenticated encryption (RFC 8452, section 4). Returns the ciphertext and the tag; the standard's result is their
/// concatenation.
///
/// RFC 8452 defines keys of 16 and 32 bytes. Keys of 24 bytes are an extension of OpenSSL: see [`derive_keys`].
///
/// # Panics
///
/// If `key` is not 16, 24 or 32 bytes.
pub fn seal(key: &[u8], nonce: &[u8; 12], aad: &[u8], plaintext: &[u8]) -> (Vec<u8>, Block) {
    let keys = derive_keys(key, nonce);
    let tag = tag(&keys, nonce, aad, plaintext);
    (aes_ctr(&keys, tag, plaintext), tag)
}

/// Authenticated decryption (RFC 8452, section 5). See [`seal`].
///
/// `None` if the tag is wrong, or is not 16 bytes.
///
/// # Panics
///
/// If `key` is not 16, 24 or 32 bytes.
pub fn open(key: &[u8], nonce: &[u8; 12], aad: &[u8], ciphertext: &[u8], tag: &[u8]) -> Option<Vec<u8>> {
    let keys = derive_keys(key, nonce);
    let tag: Block = tag.try_into().ok()?;
    let plaintext = aes_ctr(&keys, tag, ciphertext);
    (tag == self::tag(&keys, nonce, aad, &plaintext)).then_some(plaintext)
}

/// derive_keys (RFC 8452, section 4): each block of counter and nonce yields 8 bytes of keys.
///
/// For a key of 24 bytes, for which RFC 8452 has no instance, this follows the same rule with three blocks for the
/// encryption key, as AES-192-GCM-SIV of OpenSSL does.
///
/// # Panics
///
/// If `key_generating_key` is not 16, 24 or 32 bytes.
pub fn derive_keys(key_generating_key: &[u8], nonce: &[u8; 12]) -> MessageKeys {
    let aes = Aes::new(key_generating_key);
    let halves = 2 + key_generating_key.len() as u32 / 8;
    let derived: Vec<u8> = (0..halves)
        .flat_map(|i| {
            let mut block = [0; 16];
            block[..4].copy_from_slice(&i.to_le_bytes());
            block[4..].copy_from_slice(nonce);
            aes.encrypt(block)[..8].to_vec()
        })
        .collect();
    let (authentication, encryption) = derived.split_first_chunk().expect("at least two blocks");
    MessageKeys { authentication: *authentication, encryption: encryption.to_vec() }
}

/// The tag: the encrypted POLYVAL of the padded additional data, the padded plaintext and the length block (RFC 8452, section
/// 4).
fn tag(keys: &MessageKeys, nonce: &[u8; 12], aad: &[u8], plaintext: &[u8]) -> Block {
    let mut hashed = zero_padded(aad);
    hashed.extend(zero_padded(plaintext));
    hashed.extend(bits(aad));
    hashed.extend(bits(plaintext));
    let mut s_s = polyval(&keys.authentication, &hashed);
    for (s, n) in s_s.iter_mut().zip(nonce) {
        *s ^= n;
    }
    s_s[15] &= 0x7f;
    Aes::new(&keys.encryption).encrypt(s_s)
}

/// AES_CTR (RFC 8452, section 4). The initial counter block is the tag with the most significant bit of the last byte set. Its
/// first four bytes are a little-endian counter that wraps modulo 2^32.
fn aes_ctr(keys: &MessageKeys, tag: Block, data: &[u8]) -> Vec<u8> {
    let aes = Aes::new(&keys.encryption);
    let mut block = tag;
    block[15] |= 0x80;
    let mut out = Vec::with_capacity(data.len());
    for chunk in data.chunks(16) {
        let mut padded = [0; 16];
        padded[..chunk.len()].copy_from_slice(chunk);
        out.extend(&xor(padded, aes.encrypt(block))[..chunk.len()]);
        let (counter, _) = block.split_first_chunk_mut::<4>().expect("a block has 16 bytes");
        *counter = u32::from_le_bytes(*counter).wrapping_add(1).to_le_bytes();
    }
    out
}

/// The length in bits, as a little-endian integer of eight bytes.
fn bits(x: &[u8]) -> [u8; 8] {
    (8 * x.len() as u64).to_le_bytes()
}
