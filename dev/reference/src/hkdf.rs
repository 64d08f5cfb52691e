//! HKDF-Expand with HMAC-SHA-512, only for [`crate::cobblestone`].
//!
//! SHA-512 and HMAC are from the crates `sha2` and `hmac`: this crate is the reference for AES and its modes, not for
//! hash functions. The crate `hkdf` is not used: its `Hkdf::from_prk` rejects keys shorter than the hash, and the keys
//! of Cobblestone have 16 or 32 bytes.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha512;

/// The first `len` bytes of T(1) || T(2) || ... (RFC 5869, section 2.3).
pub(crate) fn expand(prk: &[u8], info: &[u8], len: usize) -> Vec<u8> {
    let mut okm = Vec::new();
    let mut t = Vec::new();
    for i in 1..=u8::MAX {
        if okm.len() >= len {
            break;
        }
        t = hmac(prk, &[&t[..], info, &[i]].concat());
        okm.extend(&t);
    }
    assert!(okm.len() >= len, "HKDF-Expand gives at most 255 blocks");
    okm.truncate(len);
    okm
}

fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let hmac = Hmac::<Sha512>::new_from_slice(key).expect("HMAC takes keys of any length");
    hmac.chain_update(text).finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests;
