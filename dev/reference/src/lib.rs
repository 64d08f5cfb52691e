//! The reference implementation (test oracle): AES and its modes as written in the standards, without optimisation.
//!
//! All other crates of Lockstep are tested against this crate, and this crate is tested against the examples in the
//! standards. The code follows the text of the standards: each item names its standard and section, and steps and variables
//! have the names of the standard. AES and the modes have no dependencies; the key derivation of [`cobblestone`] uses the
//! crates `sha2` and `hmac`.
//!
//! **Not for use with secrets.** It is not constant time: the S-box is a table indexed by secret bytes, GHASH branches
//! on secret bits, tags are compared with `==`, and keys are not wiped. It does not return errors: an invalid argument
//! (a key of 17 bytes, half a block for ECB) is a bug in the calling test, and panics.
//!
//! | module | standard |
//! |---|---|
//! | [`Aes`] | FIPS 197 |
//! | [`ecb`], [`cbc`], [`cfb`], [`ofb`], [`ctr`] | SP 800-38A |
//! | [`cbc_cts`] | SP 800-38A, addendum |
//! | [`cmac`] | SP 800-38B |
//! | [`ccm`] | SP 800-38C |
//! | [`ghash`], [`gcm`] | SP 800-38D |
//! | [`xts`] | SP 800-38E, IEEE 1619 |
//! | [`key_wrap`] | SP 800-38F, RFC 3394, RFC 5649 |
//! | [`cbc_mac`] | FIPS 113, SP 800-38C section 6.1 |
//! | [`siv`] | RFC 5297 |
//! | [`polyval`], [`gcm_siv`] | RFC 8452 |
//! | [`ocb`] | RFC 7253 |
//! | [`eax`] | Bellare, Rogaway and Wagner, "The EAX Mode of Operation", 2004 |
//! | [`pcbc`] | Kerberos version 4 |
//! | [`padding`] | RFC 5652 (PKCS #7) |
//! | [`hctr2`] | IACR ePrint 2021/1441 |
//! | [`cobblestone`] | C2SP chunked encryption |
//! | [`xaes`] | C2SP XAES-256-GCM |
#![forbid(unsafe_code)]

mod aes;
pub mod cbc;
pub mod cbc_cts;
pub mod cbc_mac;
pub mod ccm;
pub mod cfb;
pub mod cmac;
pub mod cobblestone;
pub mod ctr;
pub mod eax;
pub mod ecb;
pub mod gcm;
pub mod gcm_siv;
mod gf256;
pub mod ghash;
pub mod hctr2;
mod hkdf;
pub mod key_wrap;
pub mod ocb;
pub mod ofb;
pub mod padding;
pub mod pcbc;
pub mod polyval;
pub mod siv;
pub mod xaes;
pub mod xts;

pub use aes::Aes;

/// A block: 128 bits, as 16 bytes (FIPS 197, section 3.1).
pub type Block = [u8; 16];

/// `a` XOR `b`, which is addition in GF(2^8) of each byte (FIPS 197, section 4.1).
fn xor(a: Block, b: Block) -> Block {
    std::array::from_fn(|i| a[i] ^ b[i])
}

/// `data` as a string of blocks.
///
/// Panics if the length of `data` is not a multiple of 16.
fn blocks(data: &[u8]) -> &[Block] {
    let (blocks, rest) = data.as_chunks();
    assert!(rest.is_empty(), "{} bytes are not whole blocks of 16", data.len());
    blocks
}

/// `data` padded with zero bytes to whole blocks (the padding of SP 800-38C, A.2, and SP 800-38D, 7.1).
fn zero_padded(data: &[u8]) -> Vec<u8> {
    let mut padded = data.to_vec();
    padded.resize(data.len().next_multiple_of(16), 0);
    padded
}
