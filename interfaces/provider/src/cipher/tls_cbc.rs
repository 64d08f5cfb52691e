//! CBC records of TLS up to 1.2 (RFC 5246, 6.2.3.2). Padding and MAC are inside the ciphertext. Neither the result nor
//! the timing may reveal whether the padding was right: otherwise Vaudenay's padding oracle attack and the Lucky
//! Thirteen attack are possible.
//!
//! For a record with wrong padding, this module therefore returns a random MAC. libssl compares the returned MAC with
//! the computed MAC. The comparison fails in the same way and after the same time as for a record with right padding
//! and a wrong MAC. The code may branch on public values, such as the lengths of the record and of the MAC, but not on
//! the position of the MAC.

use subtle::{Choice, ConditionallySelectable, ConstantTimeEq, ConstantTimeGreater, ConstantTimeLess};
use zeroize::Zeroize;

use crate::reason::{Outcome, Reason};

const SSL_3_0: u32 = 0x0300;
const TLS_1_0: u32 = 0x0301;
const TLS_1_1: u32 = 0x0302;
const TLS_1_2: u32 = 0x0303;
const DTLS_1_0: u32 = 0xFEFF;
const DTLS_1_2: u32 = 0xFEFD;
/// `DTLS1_BAD_VER` of OpenSSL.
const DTLS_0_9: u32 = 0x0100;

/// The longest MAC: that of SHA-512.
const MAX_MAC: usize = 64;

/// Maximum length of the padding, including its length byte.
const MAX_PADDING: usize = 256;

/// The record format, and the MAC of the last record, which is wiped with the memory of the context.
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

/// Fills `record` with padding after its first `len` bytes. The last byte is the length byte: its value is the number
/// of padding bytes before it. These bytes have the same value, except in SSL 3.0, where they are 0.
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
        let end = payload.len() as u64 - u64::from(padding);
        if self.mac_size == 0 {
            // Encrypt-then-MAC: the MAC was checked before, so the padding is not secret.
            return if bool::from(good) { Ok(end as usize) } else { Err(Reason::TlsRecord) };
        }
        let start = end - self.mac_size as u64;
        self.mac = [0; MAX_MAC];
        copy_secret(payload, start, &mut self.mac[..self.mac_size]);
        for (byte, random) in self.mac.iter_mut().zip(random) {
            byte.conditional_assign(random, !good);
        }
        self.mac_is_there = true;
        Ok(start as usize)
    }
}

/// The length of the padding including its length byte (0 if the padding is wrong), and whether the padding is right.
fn padding(payload: &[u8], mac_size: usize, ssl_3: bool) -> (u32, Choice) {
    let count = payload[payload.len() - 1];
    let most = payload.len() - 1 - mac_size;
    let mut good = !u64::from(count).ct_gt(&(most as u64));
    if ssl_3 {
        // SSL 3: the other padding bytes may have any value, but there is less than a block of padding.
        good &= count.ct_lt(&16);
    } else {
        let seen = payload.iter().rev().take(MAX_PADDING);
        for (i, byte) in seen.enumerate() {
            // Each byte must be outside of the padding or have the required value. There are at most 256 bytes, so `i`
            // fits into a `u8`.
            good &= (i as u8).ct_gt(&count) | byte.ct_eq(&count);
        }
    }
    (u32::conditional_select(&0, &(u32::from(count) + 1), good), good)
}

/// Copies `mac.len()` bytes of `payload` to `mac`. They start at the secret position `start`, which is within the last
/// `MAX_PADDING + mac.len()` bytes of `payload`.
///
/// All bytes that may belong to the MAC are read in order. Each byte that belongs to it is stored at its position
/// modulo the length of the MAC. The result is the MAC, rotated by a secret number of bytes. The rotation is then
/// undone in steps of powers of two.
fn copy_secret(payload: &[u8], start: u64, mac: &mut [u8]) {
    let len = mac.len();
    let first = payload.len().saturating_sub(len + MAX_PADDING);
    let mut rotated = [0u8; MAX_MAC];
    let mut place = 0;
    // The MAC starts at `first` or later. The index of its first byte in `rotated` is the rotation.
    let mut rotation = 0u8;
    for (i, byte) in payload.iter().enumerate().skip(first) {
        let i = i as u64;
        let inside = !i.ct_lt(&start) & i.ct_lt(&(start + len as u64));
        rotated[place] |= u8::conditional_select(&0, byte, inside);
        rotation.conditional_assign(&(place as u8), i.ct_eq(&start));
        place = if place + 1 == len { 0 } else { place + 1 };
    }
    for bit in 0..6 {
        let step = 1 << bit;
        let applies = ((rotation >> bit) & 1).ct_eq(&1);
        let mut before = rotated;
        for i in 0..len {
            rotated[i].conditional_assign(&before[(i + step) % len], applies);
        }
        before.zeroize();
    }
    mac.copy_from_slice(&rotated[..len]);
    rotated.zeroize();
}

#[cfg(test)]
mod tests;
