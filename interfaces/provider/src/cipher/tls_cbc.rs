//! CBC records of TLS up to 1.2 (RFC 5246, 6.2.3.2). Padding and MAC are inside the ciphertext. Neither the result nor the
//! timing may reveal whether the padding was right. Otherwise Vaudenay's padding oracle attack and the Lucky Thirteen attack
//! would be possible.
//!
//! For a record with wrong padding, this module therefore returns a random MAC. libssl compares the returned MAC with
//! the computed MAC. The comparison fails in the same way and after the same time as for a record with right padding
//! and a wrong MAC. The code may branch on public values, such as the lengths of the record and of the MAC, but not on
//! the position of the MAC.

use std::hint::black_box;

use lockstep::hazmat::wiping::wipe;

use crate::reason::{Outcome, Reason};

const SSL_3_0: u32 = 0x0300;
const TLS_1_0: u32 = 0x0301;
const TLS_1_1: u32 = 0x0302;
const TLS_1_2: u32 = 0x0303;
const DTLS_1_0: u32 = 0xFEFF;
const DTLS_1_2: u32 = 0xFEFD;
/// `DTLS1_BAD_VER` of OpenSSL.
const DTLS_0_9: u32 = 0x0100;

/// The length of the longest MAC, that of HMAC-SHA-512.
const MAX_MAC: usize = 64;

/// Maximum length of the padding, including its length byte.
const MAX_PADDING: usize = 256;

/// The format of the records, and the MAC of the last record. The MAC is wiped with the memory of the context.
#[derive(Clone)]
pub(super) struct Records {
    /// The protocol version; 0 if updates are not TLS records.
    pub(super) version: u32,
    /// Bytes of the MAC in a record.
    pub(super) mac_size: usize,
    mac: [u8; MAX_MAC],
    mac_is_there: bool,
}

impl Default for Records {
    fn default() -> Self {
        Records { version: 0, mac_size: 0, mac: [0; MAX_MAC], mac_is_there: false }
    }
}

/// Fills `record` with padding after its first `len` bytes. The last padding byte is the length byte: its value is the number
/// of padding bytes before it. All other padding bytes have the same value as the length byte, except in SSL 3.0, where they
/// are 0.
pub(super) fn pad(version: u32, record: &mut [u8], len: usize) {
    let padding = &mut record[len..];
    let count = (padding.len() - 1) as u8;
    padding.fill(if version == SSL_3_0 { 0 } else { count });
    *padding.last_mut().expect("padding is never empty") = count;
}

impl Records {
    /// The MAC of the last record. It is random if the padding of the record was wrong, and empty if there is no MAC.
    pub(super) fn mac(&self) -> &[u8] {
        if self.mac_is_there { &self.mac[..self.mac_size.min(MAX_MAC)] } else { &[] }
    }

    /// Returns the length of the payload of a decrypted record, and stores the MAC.
    ///
    /// # Errors
    /// [`Reason::TlsRecord`] for impossible lengths, and for wrong padding if the record has no MAC.
    pub(super) fn open(&mut self, record: &[u8]) -> Outcome<usize> {
        self.mac_is_there = false;
        if self.mac_size > MAX_MAC {
            return Err(Reason::TlsRecord);
        }
        let mut random = [0; MAX_MAC];
        if self.mac_size > 0 {
            getrandom::fill(&mut random[..self.mac_size]).map_err(|_| Reason::Random)?;
        }
        self.open_with(record, &random)
    }

    fn open_with(&mut self, record: &[u8], random: &[u8; MAX_MAC]) -> Outcome<usize> {
        let payload = match self.version {
            TLS_1_1 | TLS_1_2 | DTLS_1_0 | DTLS_1_2 | DTLS_0_9 => {
                // The record starts with the IV. The caller skips it.
                record.get(16..).ok_or(Reason::TlsRecord)?
            }
            SSL_3_0 | TLS_1_0 => record,
            _ => return Err(Reason::TlsRecord),
        };
        if payload.len() < 1 + self.mac_size {
            return Err(Reason::TlsRecord);
        }
        let (padding, good) = padding(payload, self.mac_size, self.version == SSL_3_0);
        let end = payload.len() - padding;
        if self.mac_size == 0 {
            // With encrypt-then-MAC, libssl has verified the MAC before this call, so the padding is not secret.
            return if good != 0 { Ok(end) } else { Err(Reason::TlsRecord) };
        }
        let start = end - self.mac_size;
        self.mac = [0; MAX_MAC];
        copy_secret(payload, start, &mut self.mac[..self.mac_size]);
        self.mac.iter_mut().zip(random).for_each(|(byte, random)| *byte = select(good, *byte, *random));
        self.mac_is_there = true;
        Ok(start)
    }
}

// A mask is all ones or zero. `black_box` hides this from the compiler, which could otherwise replace the masks by branches. Rust does
// not guarantee this effect; it was checked in the machine code of the pinned compiler (rust-toolchain.toml). The compiler vectorises
// loops over byte masks, but not loops over the types of the crate `subtle`.

/// All ones if `a < b`, else zero.
fn is_less(a: usize, b: usize) -> u8 {
    black_box((((a as i64) - (b as i64)) >> 63) as u8)
}

/// `a` if the mask is all ones, `b` if it is zero.
fn select(mask: u8, a: u8, b: u8) -> u8 {
    b ^ mask & (a ^ b)
}

/// Returns the length of the padding including its length byte, and a mask that is all ones if the padding is right. If the
/// padding is wrong, both are 0.
fn padding(payload: &[u8], mac_size: usize, ssl_3: bool) -> (usize, u8) {
    let count = black_box(payload[payload.len() - 1]);
    let mut good = is_less(count.into(), payload.len() - mac_size);
    if ssl_3 {
        // In SSL 3.0, the padding bytes before the length byte may have any value, but the padding is at most one block.
        good &= is_less(count.into(), 16);
    } else {
        let seen = payload.len().min(MAX_PADDING);
        let mut wrong = 0;
        for (i, byte) in payload[payload.len() - seen..].iter().enumerate() {
            // A byte that is `distance` bytes before the length byte is either outside of the padding or must have the value of
            // the length byte.
            let distance = (seen - 1 - i) as i16;
            let is_outside = ((i16::from(count) - distance) >> 15) as u8;
            wrong |= !is_outside & (byte ^ count);
        }
        good &= is_less(wrong.into(), 1);
    }
    (usize::from(good & count) + usize::from(good & 1), good)
}

/// Copies `mac.len()` bytes of `payload` to `mac`. The bytes start at the secret position `start`, which is within the last
/// `MAX_PADDING + mac.len()` bytes of `payload`.
///
/// All bytes that may belong to the MAC are copied. The copy is then moved to the front, in steps whose widths are powers of
/// two. A mask selects whether a step moves the bytes or leaves them in place.
fn copy_secret(payload: &[u8], start: usize, mac: &mut [u8]) {
    // A step reads up to MAX_PADDING bytes beyond the bytes that it moves.
    let mut window = [0; MAX_MAC + 2 * MAX_PADDING];
    let first = payload.len().saturating_sub(mac.len() + MAX_PADDING);
    window[..payload.len() - first].copy_from_slice(&payload[first..]);
    let distance = start - first;
    for bit in (0..=MAX_PADDING.ilog2()).rev() {
        let step = 1 << bit;
        let moves = black_box(((distance >> bit & 1) as u8).wrapping_neg());
        // All later steps together move the bytes by less than `step`, so only these bytes are needed.
        for i in 0..MAX_MAC + step - 1 {
            window[i] = select(moves, window[i + step], window[i]);
        }
    }
    mac.copy_from_slice(&window[..mac.len()]);
    wipe(&mut window);
}

#[cfg(test)]
mod tests;
