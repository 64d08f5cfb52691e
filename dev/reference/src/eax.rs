//! EAX: Bellare, Rogaway and Wagner, "The EAX Mode of Operation", FSE 2004.

use crate::cmac::cmac;
use crate::{Aes, Block, ctr, xor};

/// EAX.Encrypt (figure 1). Returns CT: the ciphertext, and the tag of tau = `tag_len` bytes.
///
/// # Panics
///
/// If `tag_len` is more than 16.
pub fn seal(aes: &Aes, nonce: &[u8], header: &[u8], plaintext: &[u8], tag_len: usize) -> (Vec<u8>, Vec<u8>) {
    let n = omac(aes, 0, nonce);
    let c = ctr::apply(aes, &n, plaintext);
    let tag = tag(aes, n, header, &c)[..tag_len].to_vec();
    (c, tag)
}

/// EAX.Decrypt (figure 1). `None` if the tag is wrong, is empty, or has more than 16 bytes.
pub fn open(aes: &Aes, nonce: &[u8], header: &[u8], ciphertext: &[u8], t: &[u8]) -> Option<Vec<u8>> {
    let n = omac(aes, 0, nonce);
    let is_right = !t.is_empty() && tag(aes, n, header, ciphertext).get(..t.len()) == Some(t);
    is_right.then(|| ctr::apply(aes, &n, ciphertext))
}

/// Tag = N XOR C XOR H, before it is shortened.
fn tag(aes: &Aes, n: Block, header: &[u8], ciphertext: &[u8]) -> Block {
    xor(xor(n, omac(aes, 2, ciphertext)), omac(aes, 1, header))
}

/// `OMAC^t_K(M) = OMAC_K([t]_n || M)` (section 3).
fn omac(aes: &Aes, t: u8, m: &[u8]) -> Block {
    cmac(aes, &[&u128::from(t).to_be_bytes(), m].concat())
}
