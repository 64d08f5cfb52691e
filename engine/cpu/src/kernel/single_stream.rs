//! The serial modes of one message, generic over the block cipher.
//!
//! Chaining registers are big-endian numbers here, since CFB8 and CFB1 shift them.

use super::{Block, Span};

/// Replaces each whole block by the result of `next`.
#[inline(always)]
fn each_block(data: Span<'_>, mut next: impl FnMut(u128) -> u128) {
    for i in 0..data.len() / 16 {
        // SAFETY: the block lies in the span, which is valid for reads and writes; a Block has alignment 1.
        unsafe {
            let block = data.src().cast::<Block>().add(i).read();
            data.dst().cast::<Block>().add(i).write(next(u128::from_be_bytes(block)).to_be_bytes());
        }
    }
}

/// Runs a mode with the register as a number.
#[inline(always)]
fn with_number(register: &mut Block, mode: impl FnOnce(&mut u128)) {
    let mut number = u128::from_be_bytes(*register);
    mode(&mut number);
    *register = number.to_be_bytes();
}

/// CBC encryption of whole blocks.
#[inline(always)]
pub(crate) fn cbc_encrypt(iv: &mut Block, data: Span<'_>, cipher: impl Fn(u128) -> u128) {
    with_number(iv, |iv| {
        each_block(data, |text| {
            *iv = cipher(*iv ^ text);
            *iv
        });
    });
}

/// CFB128 encryption of whole blocks.
#[inline(always)]
pub(crate) fn cfb128_encrypt(iv: &mut Block, data: Span<'_>, cipher: impl Fn(u128) -> u128) {
    with_number(iv, |iv| {
        each_block(data, |text| {
            *iv = cipher(*iv) ^ text;
            *iv
        });
    });
}

/// OFB of whole blocks.
#[inline(always)]
pub(crate) fn ofb(iv: &mut Block, data: Span<'_>, cipher: impl Fn(u128) -> u128) {
    with_number(iv, |iv| {
        each_block(data, |text| {
            *iv = cipher(*iv);
            *iv ^ text
        });
    });
}

/// CBC-MAC of whole blocks.
#[inline(always)]
pub(crate) fn cbc_mac(state: &mut Block, data: &[u8], cipher: impl Fn(u128) -> u128) {
    with_number(state, |state| {
        for block in data.as_chunks::<16>().0 {
            *state = cipher(*state ^ u128::from_be_bytes(*block));
        }
    });
}

/// CFB8 of any length; `cipher` returns the first byte of the encrypted block.
#[inline(always)]
pub(crate) fn cfb8<const ENCRYPT: bool>(iv: &mut Block, data: Span<'_>, cipher: impl Fn(u128) -> u8) {
    with_number(iv, |register| {
        for i in 0..data.len() {
            // SAFETY: the byte lies in the span, which is valid for reads and writes.
            unsafe {
                let text = data.src().add(i).read();
                let result = text ^ cipher(*register);
                *register = *register << 8 | u128::from(if ENCRYPT { result } else { text });
                data.dst().add(i).write(result);
            }
        }
    });
}

/// CFB1 of `bits` bits. The most significant bit of each byte is the first. Later bits of the output are not changed.
#[inline(always)]
pub(crate) fn cfb1<const ENCRYPT: bool>(
    register: &mut Block,
    data: Span<'_>,
    bits: usize,
    cipher: impl Fn(u128) -> u8,
) {
    assert!(bits.div_ceil(8) <= data.len(), "fewer bytes than bits");
    with_number(register, |register| {
        for at in (0..bits).step_by(8) {
            let count = (bits - at).min(8);
            // SAFETY: the byte lies in the span, which is valid for reads and writes. The destination byte is read only if
            // some of its bits must not change.
            unsafe {
                let text = data.src().add(at / 8).read();
                let mut result = 0;
                for bit in (8 - count..8).rev() {
                    let text = text >> bit & 1;
                    let out = text ^ cipher(*register) >> 7;
                    *register = *register << 1 | u128::from(if ENCRYPT { out } else { text });
                    result |= out << bit;
                }
                let place = data.dst().add(at / 8);
                if count < 8 {
                    result |= place.read() & (0xff >> count);
                }
                place.write(result);
            }
        }
    });
}
