//! XAES-256-GCM: AES-256-GCM with nonces of 24 bytes (C2SP, <https://c2sp.org/XAES-256-GCM>).

use crate::{Aes, Block, cmac, gcm};

/// Authenticated encryption: AES-256-GCM with the derived key and nonce (C2SP XAES-256-GCM, "Overview"). Returns the
/// ciphertext and the tag; the specification's ciphertext is their concatenation.
pub fn seal(key: &[u8; 32], nonce: &[u8; 24], aad: &[u8], plaintext: &[u8]) -> (Vec<u8>, Block) {
    let (k_x, n_x) = derive(key, nonce);
    gcm::seal(&Aes::new(&k_x), &n_x, aad, plaintext)
}

/// Authenticated decryption. See [`seal`].
///
/// `None` if the tag is wrong, or is not 16 bytes.
pub fn open(key: &[u8; 32], nonce: &[u8; 24], aad: &[u8], ciphertext: &[u8], tag: &[u8]) -> Option<Vec<u8>> {
    let tag: &Block = tag.try_into().ok()?;
    let (k_x, n_x) = derive(key, nonce);
    gcm::open(&Aes::new(&k_x), &n_x, aad, ciphertext, tag)
}

/// K_x and N_x, the key and the nonce of AES-256-GCM (C2SP XAES-256-GCM, "Overview").
///
/// The key is derived with the KDF in counter mode of SP 800-108r1, section 4.1: CMAC-AES256 of `[i]_2 || "X" || 00 ||
/// Context`, without `[L]_2`, where Context is the first half of the nonce. The second half of the nonce is N_x.
pub fn derive(key: &[u8; 32], nonce: &[u8; 24]) -> ([u8; 32], [u8; 12]) {
    let aes = Aes::new(key);
    let (context, n_x) = nonce.split_at(12);
    let k = |i: u16| cmac::cmac(&aes, &[&i.to_be_bytes(), &b"X\0"[..], context].concat());
    let k_x = [k(1), k(2)].concat();
    (k_x.try_into().expect("two blocks"), n_x.try_into().expect("the second half"))
}
