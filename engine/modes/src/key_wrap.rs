//! Key wrap: authenticated encryption of keys without a nonce (SP 800-38F).
//!
//! | check value | algorithm | plaintext |
//! |---|---|---|
//! | [`Icv::KW`] | KW (SP 800-38F, 6.2; RFC 3394) | a multiple of 8 bytes, at least 16 |
//! | [`Icv::KWP`] | KWP (SP 800-38F, 6.3; RFC 5649) | 1 to 2^32 - 1 bytes |
//!
//! Under one key, equal plaintexts have equal ciphertexts. The algorithms are serial: wrapping n semiblocks of 8 bytes requires
//! 6n operations on single blocks, one after the other.
//!
//! [`wrap_in_place`] and [`unwrap_in_place`] are the same algorithms over a [`KeyedExecutor`], with any integrity check value.
//! They take or return the first semiblock of the ciphertext separately. All other semiblocks of the ciphertext together are as
//! long as the padded plaintext.

use lockstep_core::data::Span;
use lockstep_core::work::Pass;
use lockstep_core::{Block, Error, Key};
use subtle::{ConstantTimeEq, ConstantTimeGreater};
use zeroize::{Zeroize, Zeroizing};

use crate::executor::Executor;
use crate::incremental::{KeyedExecutor, Planned};
use crate::message::Direction;

/// Half a block, the unit of key wrap.
pub type Semiblock = [u8; 8];

/// The algorithm of key wrap, with its integrity check value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Icv {
    /// KW.
    Whole(Semiblock),
    /// KWP. The second half of its check value is the length of the plaintext.
    Padded([u8; 4]),
}

impl Icv {
    /// ICV1 (SP 800-38F, 6.2; RFC 3394, 2.2.3.1).
    pub const KW: Icv = Icv::Whole([0xa6; 8]);
    /// ICV2 (SP 800-38F, 6.3; RFC 5649, section 3).
    pub const KWP: Icv = Icv::Padded([0xa6, 0x59, 0x59, 0xa6]);

    /// Checks the length of a plaintext or of a ciphertext.
    fn check_len(self, direction: Direction, len: usize) -> Result<(), Error> {
        let (mode, least, expected) = match (self, direction) {
            (Icv::Whole(_), Direction::Encrypt) => ("KW", 16, "a multiple of 8 bytes, at least 16"),
            (Icv::Whole(_), Direction::Decrypt) => {
                ("KW", 24, "a ciphertext of a multiple of 8 bytes, at least 24")
            }
            (Icv::Padded(_), Direction::Encrypt) => ("KWP", 1, "1 to 2^32 - 1 bytes"),
            (Icv::Padded(_), Direction::Decrypt) => {
                ("KWP", 16, "a ciphertext of a multiple of 8 bytes, at least 16")
            }
        };
        let fits = if least == 1 { u32::try_from(len).is_ok() } else { len.is_multiple_of(8) };
        if fits && len >= least { Ok(()) } else { Err(Error::DataLength { mode, expected, got: len }) }
    }
}

/// The designated cipher function (SP 800-38F, 5.1), which states whether wrapping encrypts or decrypts blocks with AES.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CipherFunction {
    /// Wrapping encrypts blocks, and unwrapping decrypts them, as in RFC 3394 and RFC 5649.
    Forward,
    /// Wrapping decrypts blocks, and unwrapping encrypts them.
    Inverse,
}

impl CipherFunction {
    /// Returns the pass for a block when wrapping (`Encrypt`) or unwrapping (`Decrypt`).
    fn pass(self, direction: Direction) -> Pass {
        let encrypts = (self == CipherFunction::Forward) == (direction == Direction::Encrypt);
        if encrypts { Pass::EcbEncrypt } else { Pass::EcbDecrypt }
    }
}

/// KW-AE or KWP-AE (SP 800-38F, 6.2 and 6.3, algorithms 3 and 5): wraps a key. The result has [`padded_len`] + 8 bytes.
///
/// # Errors
/// [`Error::DataLength`]; errors of devices.
pub fn wrap(executor: &dyn Executor, kek: &Key, icv: Icv, plaintext: &[u8]) -> Result<Vec<u8>, Error> {
    let (mut executor, len) = (Planned::new(executor, kek), plaintext.len());
    let mut out = Zeroizing::new(vec![0; 8 + padded_len(len)]);
    out[8..8 + len].copy_from_slice(plaintext);
    let first = wrap_in_place(&mut executor, CipherFunction::Forward, icv, len, &mut out[8..])?;
    out[..8].copy_from_slice(&first);
    Ok(std::mem::take(&mut *out))
}

/// KW-AD or KWP-AD (SP 800-38F, 6.2 and 6.3, algorithms 4 and 6): unwraps a ciphertext. The result is 8 bytes shorter than the
/// ciphertext; in KWP, it is 8 to 15 bytes shorter.
///
/// # Errors
/// [`Error::DataLength`]; [`Error::AuthenticationFailed`] if the check value, the encoded length or the padding is wrong;
/// errors of devices.
pub fn unwrap(
    executor: &dyn Executor,
    kek: &Key,
    icv: Icv,
    ciphertext: &[u8],
) -> Result<Zeroizing<Vec<u8>>, Error> {
    icv.check_len(Direction::Decrypt, ciphertext.len())?;
    let (first, rest) = ciphertext.split_first_chunk().expect("the length was checked");
    let (mut executor, mut out) = (Planned::new(executor, kek), Zeroizing::new(rest.to_vec()));
    let len = unwrap_in_place(&mut executor, CipherFunction::Forward, icv, *first, &mut out)?;
    // The removed bytes are zero, so they need not be wiped.
    out.truncate(len);
    Ok(out)
}

/// The length of a plaintext of `len` bytes with the padding of KWP: the next multiple of 8 bytes.
pub fn padded_len(len: usize) -> usize {
    len.next_multiple_of(8)
}

/// Wraps in place. `data` starts with the plaintext of `len` bytes, and has a length of [`padded_len`] bytes. The bytes after
/// the plaintext are overwritten. Replaces `data` by all semiblocks of the ciphertext except the first, and returns the first
/// semiblock.
///
/// # Errors
/// [`Error::DataLength`], with `data` unchanged; errors of the executor.
///
/// # Panics
/// Panics if `data` does not have [`padded_len`] bytes.
pub fn wrap_in_place<E: KeyedExecutor>(
    executor: &mut E,
    function: CipherFunction,
    icv: Icv,
    len: usize,
    data: &mut [u8],
) -> Result<Semiblock, E::Error> {
    icv.check_len(Direction::Encrypt, len)?;
    assert_eq!(data.len(), padded_len(len), "space for the padding");
    data[len..].fill(0);
    let mut first = Semiblock::default();
    match icv {
        Icv::Whole(icv) => first = icv,
        Icv::Padded(icv) => {
            first[..4].copy_from_slice(&icv);
            first[4..].copy_from_slice(&(len as u32).to_be_bytes());
        }
    }
    w(executor, function, Direction::Encrypt, first, data)
}

/// Unwraps in place. `first` is the first semiblock of the ciphertext, and `data` contains all other semiblocks. Replaces
/// `data` by the plaintext, followed in KWP by zeros, and returns the length of the plaintext. The check value, and in KWP also
/// the length and the padding, are checked in constant time. All of these checks return the same error, so the error reveals
/// nothing about the plaintext. After any error except [`Error::DataLength`], `data` is zeroed.
///
/// # Errors
/// [`Error::DataLength`], with `data` unchanged; [`Error::AuthenticationFailed`]; errors of the executor.
pub fn unwrap_in_place<E: KeyedExecutor>(
    executor: &mut E,
    function: CipherFunction,
    icv: Icv,
    first: Semiblock,
    data: &mut [u8],
) -> Result<usize, E::Error> {
    icv.check_len(Direction::Decrypt, data.len() + 8)?;
    let outcome = w(executor, function, Direction::Decrypt, first, data);
    let checked = outcome.and_then(|found| check(icv, &found, data).map_err(E::Error::from));
    checked.inspect_err(|_| data.zeroize())
}

/// Checks the integrity check value `found` and the padding. Returns the length of the plaintext.
fn check(icv: Icv, found: &Semiblock, data: &[u8]) -> Result<usize, Error> {
    let (good, len) = match icv {
        Icv::Whole(icv) => (found.ct_eq(&icv), data.len()),
        Icv::Padded(icv) => {
            let len = found[4..].iter().fold(0, |length, byte| length << 8 | u64::from(*byte));
            let before_last = data.len() as u64 - 8;
            // The number of bytes of the last semiblock that belong to the plaintext: 1 to 8.
            let used = len.wrapping_sub(before_last);
            let mut good = found[..4].ct_eq(&icv) & used.ct_gt(&0) & !used.ct_gt(&8);
            for (i, byte) in (0u64..).zip(&data[data.len() - 8..]) {
                let is_plaintext = used.ct_gt(&i);
                good &= is_plaintext | byte.ct_eq(&0);
            }
            // If `good` is true, `len` is at most the length of the data, so it fits in a `usize`.
            (good, len as usize)
        }
    };
    if bool::from(good) { Ok(len) } else { Err(Error::AuthenticationFailed) }
}

/// The function W (SP 800-38F, 6.1, algorithm 1), or its inverse (algorithm 2), with `a` as the first semiblock of its input. A single
/// semiblock of data makes one block with `a`, to which only the cipher function is applied (SP 800-38F, 6.3).
fn w<E: KeyedExecutor>(
    executor: &mut E,
    function: CipherFunction,
    direction: Direction,
    mut a: Semiblock,
    data: &mut [u8],
) -> Result<Semiblock, E::Error> {
    let (pass, wraps, n) = (function.pass(direction), direction == Direction::Encrypt, data.len() / 8);
    if n == 1 {
        single(executor, pass, &mut a, data)?;
        return Ok(a);
    }
    for round in 0..6 {
        for step in 0..n {
            // The inverse makes the same steps in reverse order.
            let (round, i) = if wraps { (round, step) } else { (5 - round, n - 1 - step) };
            let t = (n * round + i + 1) as u64;
            let r = &mut data[8 * i..8 * i + 8];
            if !wraps {
                xor_counter(&mut a, t);
            }
            single(executor, pass, &mut a, r)?;
            if wraps {
                xor_counter(&mut a, t);
            }
        }
    }
    Ok(a)
}

fn xor_counter(a: &mut Semiblock, t: u64) {
    *a = (u64::from_be_bytes(*a) ^ t).to_be_bytes();
}

/// Encrypts or decrypts the block that consists of `a` and the 8 bytes `r`.
fn single<E: KeyedExecutor>(
    executor: &mut E,
    pass: Pass,
    a: &mut Semiblock,
    r: &mut [u8],
) -> Result<(), E::Error> {
    let mut block = Zeroizing::new(Block::default());
    block[..8].copy_from_slice(a);
    block[8..].copy_from_slice(r);
    executor.run(pass, &mut [0; 16], Span::in_place(&mut *block))?;
    a.copy_from_slice(&block[..8]);
    r.copy_from_slice(&block[8..]);
    Ok(())
}
