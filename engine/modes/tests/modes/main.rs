//! The authenticated modes behind one type, the engine of the incremental modes, the limits of the modes, failures of
//! executors, key wrap, and CBC with ciphertext stealing.

mod aead;
mod cbc_cts;
mod failures;
mod incremental;
mod key_wrap;
mod limits;

/// The bytes of hexadecimal digits.
fn bytes_of(digits: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a hexadecimal digit") as u8;
    digits.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
