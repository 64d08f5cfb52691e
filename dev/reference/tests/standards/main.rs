//! Tests the reference implementation with the examples in the standards.

mod cbc_cts;
mod cbc_mac_family;
mod eax;
mod fips_197;
mod gcm;
mod gcm_siv;
mod hctr2;
mod key_wrap;
mod ocb;
mod pcbc;
mod siv;
mod sp_800_38a;
mod xaes;
mod xts;

/// Decodes hexadecimal digits and skips white space.
fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<char> = digits.chars().filter(|c| !c.is_whitespace()).collect();
    let byte =
        |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).expect("hexadecimal digits");
    assert!(digits.len().is_multiple_of(2), "half a byte");
    digits.chunks(2).map(byte).collect()
}

/// Decodes a block from hexadecimal digits.
fn block(digits: &str) -> [u8; 16] {
    hex(digits).try_into().expect("16 bytes")
}
