//! Data of users' programs: numbers, places in memory, and round keys.

use std::ops::Range;

use lockstep_core::key::Key;
use zeroize::Zeroizing;

/// A number of 32 bits: decimal or, after `0x`, hexadecimal.
pub(crate) fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A number of 32 bits: a number in the form that [`number`] accepts, or a negative decimal number. Returns its 32 bits.
pub(crate) fn word(text: &str) -> Option<u32> {
    number(text).or_else(|| text.parse::<i32>().ok().map(|value| value as u32))
}

/// The range of `bytes` bytes from an address in a memory of `size` bytes. `text` is the address as the user wrote it, and
/// `memory` the name of the memory.
///
/// # Errors
/// A message if the bytes are not inside the memory.
pub(crate) fn range(
    from: u32,
    text: &str,
    bytes: usize,
    size: usize,
    memory: &str,
) -> Result<Range<usize>, String> {
    let start = from as usize;
    let end = start.checked_add(bytes).filter(|end| *end <= size);
    let outside = || {
        // A label is shown with its address.
        let address = if number(text).is_some() { String::new() } else { format!(" ({from:#x})") };
        format!("{bytes} bytes from {text}{address} do not fit: the {memory} has {size} bytes")
    };
    Ok(start..end.ok_or_else(outside)?)
}

/// The round keys of FIPS 197, section 5.2, in the order of encryption: 16 bytes each.
///
/// # Errors
/// A message if the key does not have 16, 24 or 32 bytes.
pub fn round_keys(key: Vec<u8>) -> Result<Vec<u8>, String> {
    let key = Zeroizing::new(key);
    let refused = |_| format!("a key of {} bytes: an AES key has 16, 24 or 32 bytes", key.len());
    Ok(Key::new(&key).map_err(refused)?.round_keys().as_blocks().as_flattened().to_vec())
}
