//! The table of ciphers, with all names that OpenSSL's default provider has for them.

use std::ffi::CStr;

/// A mode of operation. The distinctions are those of OpenSSL, so key wrap and ciphertext stealing are modes of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Ecb,
    Cbc,
    Cfb128,
    Cfb8,
    Cfb1,
    Ofb,
    Ctr,
    Xts,
    Gcm,
    Ccm,
    Ocb,
    GcmSiv,
    Siv,
    CbcCts,
    Wrap,
    WrapPad,
    /// Key wrap that uses the inverse cipher of AES to wrap (SP 800-38F, 5.1).
    WrapInv,
    WrapPadInv,
}

impl Mode {
    /// True for authenticated encryption.
    pub(crate) const fn is_aead(self) -> bool {
        matches!(self, Mode::Gcm | Mode::Ccm | Mode::Ocb | Mode::GcmSiv | Mode::Siv)
    }

    /// True if the mode processes its IV itself (`custom-iv` in OpenSSL's terms).
    pub(crate) const fn has_custom_iv(self) -> bool {
        use Mode::{Wrap, WrapInv, WrapPad, WrapPadInv, Xts};
        self.is_aead() || matches!(self, Xts | Wrap | WrapPad | WrapInv | WrapPadInv)
    }
}

/// A cipher: AES in one mode with one key length.
#[derive(Debug)]
pub(crate) struct Algorithm {
    /// All names, separated by colons.
    pub(crate) names: &'static CStr,
    /// A description for messages and lists.
    pub(crate) description: &'static CStr,
    pub(crate) mode: Mode,
    /// `EVP_CIPH_*_MODE` of `openssl/evp.h`.
    pub(crate) mode_number: u64,
    /// The block size in bytes, as OpenSSL defines it: 1 for stream modes. OCB buffers partial blocks, as the block modes do.
    pub(crate) block_size: usize,
    /// The default length of the IV in bytes.
    pub(crate) iv_len: usize,
    /// Bytes of the key; for XTS and SIV, of both keys together.
    pub(crate) key_len: usize,
}

impl Algorithm {
    /// The first name.
    pub(crate) fn name(&self) -> &'static str {
        self.names.to_str().ok().and_then(|names| names.split(':').next()).unwrap_or_default()
    }
}

/// A C string from a text that ends with NUL.
pub(crate) const fn c_str(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the text ends with its only NUL"),
    }
}

/// Generates the table. Before the colon, a row contains a mode, its number in OpenSSL, the block size, the length of the IV,
/// the name and the description. After the colon, it contains an entry for each key length: the bits of the AES key, the bytes
/// of the whole key, further names, and after `@` the last number of NIST's object identifier.
macro_rules! algorithms {
    ($(
        $mode:ident $mode_number:literal $block_size:literal $iv_len:literal $name:literal, $text:literal:
        $($bits:literal $key_len:literal $($alias:literal)* $(@ $oid:literal)?),*;
    )*) => {
        /// All ciphers.
        pub(crate) const ALGORITHMS: &[Algorithm] = &[$($(
            Algorithm {
                names: c_str(concat!(
                    "AES-", $bits, "-", $name, $(":", $alias,)* $(":2.16.840.1.101.3.4.1.", $oid,)? "\0"
                )),
                description: c_str(concat!("AES-", $bits, " ", $text, " by Lockstep\0")),
                mode: Mode::$mode,
                mode_number: $mode_number,
                block_size: $block_size,
                iv_len: $iv_len,
                key_len: $key_len,
            },
        )*)*];
    };
}

// `dispatch_tables` in `ffi::cipher` refers to a cipher by its position. A compile-time assertion there checks the mode at each
// position.
algorithms! {
    Ecb 0x1 16 0 "ECB", "in ECB mode": 128 16 @1, 192 24 @21, 256 32 @41;
    Cbc 0x2 16 16 "CBC", "in CBC mode": 128 16 "AES128" @2, 192 24 "AES192" @22, 256 32 "AES256" @42;
    Cfb128 0x3 1 16 "CFB", "in CFB mode": 128 16 @4, 192 24 @24, 256 32 @44;
    Cfb8 0x3 1 16 "CFB8", "in 8-bit CFB mode": 128 16, 192 24, 256 32;
    Cfb1 0x3 1 16 "CFB1", "in 1-bit CFB mode": 128 16, 192 24, 256 32;
    Ofb 0x4 1 16 "OFB", "in OFB mode": 128 16 @3, 192 24 @23, 256 32 @43;
    Ctr 0x5 1 16 "CTR", "in CTR mode": 128 16, 192 24, 256 32;
    Xts 0x10001 1 16 "XTS", "in XTS mode": 128 32 "1.3.111.2.1619.0.1.1", 256 64 "1.3.111.2.1619.0.1.2";
    Gcm 0x6 1 12 "GCM", "in GCM mode":
        128 16 "id-aes128-GCM" @6, 192 24 "id-aes192-GCM" @26, 256 32 "id-aes256-GCM" @46;
    Ccm 0x7 1 12 "CCM", "in CCM mode":
        128 16 "id-aes128-CCM" @7, 192 24 "id-aes192-CCM" @27, 256 32 "id-aes256-CCM" @47;
    Ocb 0x10003 16 12 "OCB", "in OCB mode": 128 16, 192 24, 256 32;
    GcmSiv 0x10005 1 12 "GCM-SIV", "in GCM-SIV mode": 128 16, 192 24, 256 32;
    Siv 0x10004 1 0 "SIV", "in SIV mode": 128 32, 192 48, 256 64;
    CbcCts 0x2 16 16 "CBC-CTS", "in CBC mode with ciphertext stealing": 128 16, 192 24, 256 32;
    Wrap 0x10002 8 8 "WRAP", "key wrap":
        128 16 "id-aes128-wrap" "AES128-WRAP" @5,
        192 24 "id-aes192-wrap" "AES192-WRAP" @25,
        256 32 "id-aes256-wrap" "AES256-WRAP" @45;
    WrapPad 0x10002 8 4 "WRAP-PAD", "key wrap with padding":
        128 16 "id-aes128-wrap-pad" "AES128-WRAP-PAD" @8,
        192 24 "id-aes192-wrap-pad" "AES192-WRAP-PAD" @28,
        256 32 "id-aes256-wrap-pad" "AES256-WRAP-PAD" @48;
    WrapInv 0x10002 8 8 "WRAP-INV", "key wrap with the inverse cipher":
        128 16 "AES128-WRAP-INV", 192 24 "AES192-WRAP-INV", 256 32 "AES256-WRAP-INV";
    WrapPadInv 0x10002 8 4 "WRAP-PAD-INV", "key wrap with padding and the inverse cipher":
        128 16 "AES128-WRAP-PAD-INV", 192 24 "AES192-WRAP-PAD-INV", 256 32 "AES256-WRAP-PAD-INV";
}

#[cfg(test)]
mod tests;
