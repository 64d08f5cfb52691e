//! PKCS#7 padding (RFC 5652, 6.3): 1 to 16 bytes are added, each with the number of added bytes as its value.

use subtle::{Choice, ConstantTimeEq, ConstantTimeGreater, ConstantTimeLess};

use lockstep_core::{Block, Error, Result};

/// Returns the last block of a message: `tail`, which is the last 0 to 15 bytes of the message, and the padding.
pub fn pad(tail: &[u8]) -> Block {
    let fill = 16 - tail.len();
    let mut block = [fill as u8; 16];
    block[..tail.len()].copy_from_slice(tail);
    block
}

/// Returns the number of data bytes in the last decrypted block. All padding bytes are checked in constant time.
///
/// # Errors
/// [`Error::Padding`] if the padding is wrong.
pub fn unpad(block: &Block) -> Result<usize> {
    let fill = block[15];
    let mut good: Choice = fill.ct_gt(&0) & fill.ct_lt(&17);
    for (i, byte) in block.iter().enumerate() {
        let is_data = ((15 - i) as u8).ct_gt(&fill.wrapping_sub(1));
        good &= is_data | byte.ct_eq(&fill);
    }
    if bool::from(good) { Ok(16 - usize::from(fill)) } else { Err(Error::Padding) }
}

#[cfg(test)]
mod tests;
