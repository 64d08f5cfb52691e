//! Key wrap: authenticated encryption of keys without a nonce (SP 800-38F).
//!
//! | functions | algorithm | plaintext |
//! |---|---|---|
//! | [`wrap`], [`unwrap`] | KW (SP 800-38F, 6.2; RFC 3394) | a multiple of 8 bytes, at least 16 |
//! | [`wrap_padded`], [`unwrap_padded`] | KWP (SP 800-38F, 6.3; RFC 5649) | 1 to 2^32 - 1 bytes |
//!
//! Equal plaintexts have equal ciphertexts under one key. The algorithms are serial: n semiblocks (8 bytes each) take 6n
//! operations on single blocks, one after the other.
//!
//! The functions with the suffix `_in_place` are the same algorithms over a [`KeyedExecutor`]. They take or return the first
//! semiblock of the ciphertext separately. The rest of the ciphertext is as long as the plaintext.

use lockstep_core::data::Span;
use lockstep_core::work::Pass;
use lockstep_core::{Block, Error, Key};
use subtle::{Choice, ConstantTimeEq, ConstantTimeGreater};
use zeroize::{Zeroize, Zeroizing};

use crate::executor::Executor;
use crate::incremental::{KeyedExecutor, Planned};

/// Half a block, the unit of key wrap.
pub type Semiblock = [u8; 8];

/// ICV1, the integrity check value of KW (SP 800-38F, 6.2; RFC 3394, 2.2.3.1).
pub const ICV: Semiblock = [0xa6; 8];

/// ICV2, the first half of the integrity check value of KWP. The other half is the length of the plaintext (SP 800-38F,
/// 6.3; RFC 5649, section 3).
pub const PADDED_ICV: [u8; 4] = [0xa6, 0x59, 0x59, 0xa6];

/// The designated cipher function (SP 800-38F, 5.1): the direction of AES that wrapping uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CipherFunction {
    /// Wrapping encrypts blocks, and unwrapping decrypts them, as in RFC 3394 and RFC 5649.
    Forward,
    /// Wrapping decrypts blocks, and unwrapping encrypts them.
    Inverse,
}

impl CipherFunction {
    /// The pass over a block when wrapping.
    const fn wrapping(self) -> Pass {
        match self {
            CipherFunction::Forward => Pass::EcbEncrypt,
            CipherFunction::Inverse => Pass::EcbDecrypt,
        }
    }

    /// The pass over a block when unwrapping.
    const fn unwrapping(self) -> Pass {
        match self {
            CipherFunction::Forward => Pass::EcbDecrypt,
            CipherFunction::Inverse => Pass::EcbEncrypt,
        }
    }
}

/// KW-AE (SP 800-38F, 6.2, algorithm 3; RFC 3394, 2.2.1): wraps a key of a multiple of 8 bytes, at least 16. The result is 8
/// bytes longer.
///
/// # Errors
/// [`Error::DataLength`]; errors of devices.
pub fn wrap(executor: &dyn Executor, kek: &Key, plaintext: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = Zeroizing::new([&[0; 8], plaintext].concat());
    let (first, rest) = split_first(&mut out);
    *first = wrap_in_place(&mut Planned::new(executor, kek), CipherFunction::Forward, &ICV, rest)?;
    Ok(std::mem::take(&mut *out))
}

/// KW-AD (SP 800-38F, 6.2, algorithm 4; RFC 3394, 2.2.2): unwraps a ciphertext of a multiple of 8 bytes, at least 24. The result
/// is 8 bytes shorter.
///
/// # Errors
/// [`Error::DataLength`]; [`Error::AuthenticationFailed`]; errors of devices.
pub fn unwrap(executor: &dyn Executor, kek: &Key, ciphertext: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
    check(KW, UNWRAPPED_KW, ciphertext.len(), ciphertext.len() >= 24 && ciphertext.len().is_multiple_of(8))?;
    let (first, rest) = ciphertext.split_at(8);
    let mut out = Zeroizing::new(rest.to_vec());
    let first = first.try_into().expect("8 bytes");
    unwrap_in_place(&mut Planned::new(executor, kek), CipherFunction::Forward, &ICV, first, &mut out)?;
    Ok(out)
}

/// KWP-AE (SP 800-38F, 6.3, algorithm 5; RFC 5649, 4.1): wraps a key of 1 to 2^32 - 1 bytes. The result has
/// [`padded_len`] + 8 bytes.
///
/// # Errors
/// [`Error::DataLength`]; errors of devices.
pub fn wrap_padded(executor: &dyn Executor, kek: &Key, plaintext: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = Zeroizing::new(vec![0; 8 + padded_len(plaintext.len())]);
    out[8..8 + plaintext.len()].copy_from_slice(plaintext);
    let (first, rest) = split_first(&mut out);
    let (mut executor, function) = (Planned::new(executor, kek), CipherFunction::Forward);
    *first = wrap_padded_in_place(&mut executor, function, &PADDED_ICV, plaintext.len(), rest)?;
    Ok(std::mem::take(&mut *out))
}

/// KWP-AD (SP 800-38F, 6.3, algorithm 6; RFC 5649, 4.2): unwraps a ciphertext of a multiple of 8 bytes, at least 16. The
/// result is 8 to 15 bytes shorter.
///
/// # Errors
/// [`Error::DataLength`]; [`Error::AuthenticationFailed`], also if the length or the padding is wrong; errors of devices.
pub fn unwrap_padded(
    executor: &dyn Executor,
    kek: &Key,
    ciphertext: &[u8],
) -> Result<Zeroizing<Vec<u8>>, Error> {
    check(
        KWP,
        UNWRAPPED_KWP,
        ciphertext.len(),
        ciphertext.len() >= 16 && ciphertext.len().is_multiple_of(8),
    )?;
    let (first, rest) = ciphertext.split_at(8);
    let mut out = Zeroizing::new(rest.to_vec());
    let first = first.try_into().expect("8 bytes");
    let (mut executor, function) = (Planned::new(executor, kek), CipherFunction::Forward);
    let len = unwrap_padded_in_place(&mut executor, function, &PADDED_ICV, first, &mut out)?;
    // The bytes after the plaintext are zero.
    out.truncate(len);
    Ok(out)
}

/// The length of a plaintext of `len` bytes with the padding of KWP: the next multiple of 8 bytes.
pub fn padded_len(len: usize) -> usize {
    len.next_multiple_of(8)
}

const KW: &str = "KW";
const KWP: &str = "KWP";
const WRAPPED_KW: &str = "a multiple of 8 bytes, at least 16";
const UNWRAPPED_KW: &str = "a ciphertext of a multiple of 8 bytes, at least 24";
const WRAPPED_KWP: &str = "1 to 2^32 - 1 bytes";
const UNWRAPPED_KWP: &str = "a ciphertext of a multiple of 8 bytes, at least 16";

fn check(mode: &'static str, expected: &'static str, got: usize, valid: bool) -> Result<(), Error> {
    if valid { Ok(()) } else { Err(Error::DataLength { mode, expected, got }) }
}

fn split_first(out: &mut [u8]) -> (&mut Semiblock, &mut [u8]) {
    let (first, rest) = out.split_at_mut(8);
    (first.try_into().expect("8 bytes"), rest)
}

/// KW-AE with any integrity check value. Replaces the plaintext by the ciphertext without its first semiblock, and returns
/// this semiblock.
///
/// # Errors
/// [`Error::DataLength`] before anything is done; errors of the executor.
pub fn wrap_in_place<E: KeyedExecutor>(
    executor: &mut E,
    function: CipherFunction,
    icv: &Semiblock,
    data: &mut [u8],
) -> Result<Semiblock, E::Error> {
    check(KW, WRAPPED_KW, data.len(), data.len() >= 16 && data.len().is_multiple_of(8))?;
    w(executor, function.wrapping(), icv, data)
}

/// KW-AD with any integrity check value. `first` is the first semiblock of the ciphertext, and `data` the others, which are
/// replaced by the plaintext. The check value is compared in constant time. After any error but
/// [`Error::DataLength`], `data` is zero.
///
/// # Errors
/// [`Error::DataLength`], with `data` unchanged; [`Error::AuthenticationFailed`]; errors of the executor.
pub fn unwrap_in_place<E: KeyedExecutor>(
    executor: &mut E,
    function: CipherFunction,
    icv: &Semiblock,
    first: Semiblock,
    data: &mut [u8],
) -> Result<(), E::Error> {
    let len = data.len() + 8;
    check(KW, UNWRAPPED_KW, len, len >= 24 && len.is_multiple_of(8))?;
    let outcome = w_inverse(executor, function.unwrapping(), first, data);
    settle(outcome, data, |found, _| found.ct_eq(icv))?;
    Ok(())
}

/// KWP-AE with any value in place of ICV2. `data` starts with the plaintext of `len` bytes, and has [`padded_len`] bytes;
/// the bytes after the plaintext are overwritten. Replaces `data` by the ciphertext without its first semiblock, and returns
/// this semiblock.
///
/// # Errors
/// [`Error::DataLength`] before anything is done; errors of the executor.
///
/// # Panics
/// If `data` does not have [`padded_len`] bytes.
pub fn wrap_padded_in_place<E: KeyedExecutor>(
    executor: &mut E,
    function: CipherFunction,
    icv: &[u8; 4],
    len: usize,
    data: &mut [u8],
) -> Result<Semiblock, E::Error> {
    let too_long = Error::DataLength { mode: KWP, expected: WRAPPED_KWP, got: len };
    let length = u32::try_from(len).ok().filter(|len| *len > 0).ok_or(too_long)?;
    assert_eq!(data.len(), padded_len(len), "space for the padding");
    data[len..].fill(0);
    let mut first = Semiblock::default();
    first[..4].copy_from_slice(icv);
    first[4..].copy_from_slice(&length.to_be_bytes());
    if data.len() > 8 {
        return w(executor, function.wrapping(), &first, data);
    }
    single(executor, function.wrapping(), &mut first, data)?;
    Ok(first)
}

/// KWP-AD with any value in place of ICV2. `first` is the first semiblock of the ciphertext, and `data` the others, which are
/// replaced by the plaintext and zeros. Returns the length of the plaintext. Prefix, length and padding are all checked, in
/// constant time and with the same error, so that the error reveals nothing about the plaintext. After any error but
/// [`Error::DataLength`], `data` is zero.
///
/// # Errors
/// [`Error::DataLength`], with `data` unchanged; [`Error::AuthenticationFailed`]; errors of the executor.
pub fn unwrap_padded_in_place<E: KeyedExecutor>(
    executor: &mut E,
    function: CipherFunction,
    icv: &[u8; 4],
    mut first: Semiblock,
    data: &mut [u8],
) -> Result<usize, E::Error> {
    let len = data.len() + 8;
    check(KWP, UNWRAPPED_KWP, len, len >= 16 && len.is_multiple_of(8))?;
    let outcome = if data.len() == 8 {
        single(executor, function.unwrapping(), &mut first, data).map(|()| first)
    } else {
        w_inverse(executor, function.unwrapping(), first, data)
    };
    let found = settle(outcome, data, |found, data| {
        let before_last = data.len() as u64 - 8;
        // The number of bytes of the last semiblock that belong to the plaintext: 1 to 8.
        let used = length_of(found).wrapping_sub(before_last);
        let mut good = found[..4].ct_eq(icv) & used.ct_gt(&0) & !used.ct_gt(&8);
        for (i, byte) in (0u64..).zip(&data[data.len() - 8..]) {
            let is_plaintext = used.ct_gt(&i);
            good &= is_plaintext | byte.ct_eq(&0);
        }
        good
    })?;
    // The length is at most the length of the data, so it fits in a `usize`.
    Ok(length_of(&found) as usize)
}

/// The length of the plaintext in the integrity check value of KWP.
fn length_of(icv: &Semiblock) -> u64 {
    icv[4..].iter().fold(0, |length, byte| length << 8 | u64::from(*byte))
}

/// Returns the integrity check value if `is_good` accepts it; otherwise the data are zeroed.
fn settle<E: From<Error>>(
    outcome: Result<Semiblock, E>,
    data: &mut [u8],
    is_good: impl FnOnce(&Semiblock, &[u8]) -> Choice,
) -> Result<Semiblock, E> {
    let outcome = outcome.and_then(|found| {
        if bool::from(is_good(&found, data)) { Ok(found) } else { Err(Error::AuthenticationFailed.into()) }
    });
    if outcome.is_err() {
        data.zeroize();
    }
    outcome
}

/// The function W (SP 800-38F, 6.1, algorithm 1) with `first` as the first semiblock of its input.
fn w<E: KeyedExecutor>(
    executor: &mut E,
    pass: Pass,
    first: &Semiblock,
    data: &mut [u8],
) -> Result<Semiblock, E::Error> {
    let mut a = *first;
    let mut t = 0u64;
    for _ in 0..6 {
        for r in data.chunks_exact_mut(8) {
            t += 1;
            single(executor, pass, &mut a, r)?;
            xor_counter(&mut a, t);
        }
    }
    Ok(a)
}

/// The inverse of W (SP 800-38F, 6.1, algorithm 2) with `first` as the first semiblock of its input.
fn w_inverse<E: KeyedExecutor>(
    executor: &mut E,
    pass: Pass,
    first: Semiblock,
    data: &mut [u8],
) -> Result<Semiblock, E::Error> {
    let mut a = first;
    let mut t = 6 * (data.len() as u64 / 8);
    for _ in 0..6 {
        for r in data.chunks_exact_mut(8).rev() {
            xor_counter(&mut a, t);
            single(executor, pass, &mut a, r)?;
            t -= 1;
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
