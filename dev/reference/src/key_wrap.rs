//! AES Key Wrap: KW (SP 800-38F, section 6.2; RFC 3394) and KWP, the variant with padding (SP 800-38F, section 6.3; RFC
//! 5649). The steps and variables are those of SP 800-38F.
//!
//! A semiblock is half a block, 8 bytes (SP 800-38F, section 6.1).

use crate::{Aes, Block};

/// A semiblock: 64 bits, as 8 bytes.
type Semiblock = [u8; 8];

/// ICV1, the integrity check value of KW (SP 800-38F, section 6.2); the default initial value of RFC 3394, section
/// 2.2.3.1.
pub const ICV1: [u8; 8] = [0xa6; 8];

/// ICV2, the integrity check value of KWP (SP 800-38F, section 6.3); the first half of the alternative initial value of
/// RFC 5649, section 3.
pub const ICV2: [u8; 4] = [0xa6, 0x59, 0x59, 0xa6];

/// The function of the block cipher that wraps (the designated cipher function of SP 800-38F). Its inverse unwraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Encryption wraps, as in RFC 3394 and RFC 5649.
    Forward,
    /// Decryption wraps, as in the files `*_inv` of NIST's vectors and in the ciphers `*-WRAP-INV` of OpenSSL.
    Inverse,
}

impl Direction {
    /// CIPH_K, which wraps.
    fn ciph(self, aes: &Aes, block: Block) -> Block {
        match self {
            Direction::Forward => aes.encrypt(block),
            Direction::Inverse => aes.decrypt(block),
        }
    }

    /// CIPH_K^-1, which unwraps.
    fn ciph_inverse(self, aes: &Aes, block: Block) -> Block {
        match self {
            Direction::Forward => aes.decrypt(block),
            Direction::Inverse => aes.encrypt(block),
        }
    }
}

/// KW-AE (SP 800-38F, section 6.2, algorithm 3; RFC 3394, section 2.2.1). The result is 8 bytes longer than `plaintext`.
///
/// `icv` is [`ICV1`], or an alternative initial value (RFC 3394, section 2.2.3.2).
///
/// # Panics
///
/// If `plaintext` is not 16, 24, 32 ... bytes: at least two semiblocks.
pub fn wrap(aes: &Aes, direction: Direction, icv: &[u8; 8], plaintext: &[u8]) -> Vec<u8> {
    let p =
        semiblocks(plaintext).unwrap_or_else(|| panic!("{} bytes are not whole semiblocks", plaintext.len()));
    assert!(p.len() >= 2, "KW needs at least 16 bytes, not {}", plaintext.len());
    w(aes, direction, &[&[*icv], p].concat())
}

/// KW-AD (SP 800-38F, section 6.2, algorithm 4; RFC 3394, section 2.2.2).
///
/// `None` if the unwrapped integrity check value is not `icv`, or `ciphertext` is not 24, 32, 40 ... bytes: at least three
/// semiblocks.
pub fn unwrap(aes: &Aes, direction: Direction, icv: &[u8; 8], ciphertext: &[u8]) -> Option<Vec<u8>> {
    let c = semiblocks(ciphertext).filter(|c| c.len() >= 3)?;
    let s = w_inverse(aes, direction, c);
    (s[0] == *icv).then(|| s[1..].concat())
}

/// KWP-AE (SP 800-38F, section 6.3, algorithm 5; RFC 5649, section 4.1). The result is `plaintext` padded to whole
/// semiblocks, and 8 bytes longer.
///
/// `icv` is [`ICV2`], or another prefix of the alternative initial value.
///
/// # Panics
///
/// If `plaintext` is empty, or longer than 2^32 - 1 bytes.
pub fn wrap_padded(aes: &Aes, direction: Direction, icv: &[u8; 4], plaintext: &[u8]) -> Vec<u8> {
    assert!(!plaintext.is_empty(), "KWP needs at least one byte");
    let len = u32::try_from(plaintext.len()).expect("KWP takes at most 2^32 - 1 bytes");
    // S = ICV2 || [len(P)/8]_32 || P || PAD (steps 3 and 4).
    let mut s = [&icv[..], &len.to_be_bytes(), plaintext].concat();
    s.resize(s.len().next_multiple_of(8), 0);
    match <Block>::try_from(&s[..]) {
        Ok(block) => direction.ciph(aes, block).to_vec(),
        Err(_) => w(aes, direction, semiblocks(&s).expect("padded to whole semiblocks")),
    }
}

/// KWP-AD (SP 800-38F, section 6.3, algorithm 6; RFC 5649, section 4.2).
///
/// `None` if the unwrapped integrity check value is not `icv`, the length or the padding is wrong, or `ciphertext` is not
/// 16, 24, 32 ... bytes: at least two semiblocks.
pub fn unwrap_padded(aes: &Aes, direction: Direction, icv: &[u8; 4], ciphertext: &[u8]) -> Option<Vec<u8>> {
    let c = semiblocks(ciphertext).filter(|c| c.len() >= 2)?;
    let s = match <Block>::try_from(ciphertext) {
        Ok(block) => direction.ciph_inverse(aes, block).to_vec(),
        Err(_) => w_inverse(aes, direction, c).concat(),
    };
    let (head, padded) = s.split_first_chunk::<8>().expect("at least two semiblocks");
    let (icv_and_len, _) = head.as_chunks::<4>();
    let len = u32::from_be_bytes(icv_and_len[1]) as usize;
    // Steps 5 to 8: ICV2, 0 <= padlen <= 7, and PAD of zero bytes. The plaintext is not empty, since the first semiblock
    // is followed by at least one more.
    if icv_and_len[0] != *icv || len.next_multiple_of(8) != padded.len() {
        return None;
    }
    let (plaintext, pad) = padded.split_at(len);
    pad.iter().all(|b| *b == 0).then(|| plaintext.to_vec())
}

/// W (SP 800-38F, section 6.1, algorithm 1), for at least three semiblocks.
fn w(aes: &Aes, direction: Direction, s: &[Semiblock]) -> Vec<u8> {
    let (mut a, mut r) = (s[0], s[1..].to_vec());
    for t in 1..=steps(s) {
        // A^t = MSB_64(CIPH_K(A^(t-1) || R_2^(t-1))) ^ [t]_64; R_i^t = R_(i+1)^(t-1); R_n^t = LSB_64(CIPH_K(...)).
        let [msb, lsb] = halves(direction.ciph(aes, join(a, r[0])));
        a = xor_number(msb, t);
        r.rotate_left(1);
        *r.last_mut().expect("at least two semiblocks") = lsb;
    }
    [&[a], &r[..]].concat().concat()
}

/// W^-1 (SP 800-38F, section 6.1, algorithm 2), for at least three semiblocks.
fn w_inverse(aes: &Aes, direction: Direction, c: &[Semiblock]) -> Vec<Semiblock> {
    let (mut a, mut r) = (c[0], c[1..].to_vec());
    for t in (1..=steps(c)).rev() {
        // A^(t-1) = MSB_64(CIPH_K^-1((A^t ^ [t]_64) || R_n^t)); R_2^(t-1) = LSB_64(CIPH_K^-1(...));
        // R_(i+1)^(t-1) = R_i^t.
        let last = *r.last().expect("at least two semiblocks");
        let [msb, lsb] = halves(direction.ciph_inverse(aes, join(xor_number(a, t), last)));
        a = msb;
        r.rotate_right(1);
        r[0] = lsb;
    }
    [&[a], &r[..]].concat()
}

/// s = 6(n - 1), the number of steps for n semiblocks (SP 800-38F, section 6.1).
fn steps(semiblocks: &[Semiblock]) -> u64 {
    6 * (semiblocks.len() as u64 - 1)
}

/// `data` as semiblocks; `None` if a part of a semiblock is left over.
fn semiblocks(data: &[u8]) -> Option<&[Semiblock]> {
    let (semiblocks, rest) = data.as_chunks();
    rest.is_empty().then_some(semiblocks)
}

/// `a` || `b`.
fn join(a: Semiblock, b: Semiblock) -> Block {
    [a, b].concat().try_into().expect("two halves")
}

/// MSB_64 and LSB_64 of a block.
fn halves(block: Block) -> [Semiblock; 2] {
    block.as_chunks().0.try_into().expect("two halves")
}

/// `a ^ [t]_64`.
fn xor_number(a: Semiblock, t: u64) -> Semiblock {
    (u64::from_be_bytes(a) ^ t).to_be_bytes()
}
