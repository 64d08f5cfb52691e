//! The table of ciphers, with all names that OpenSSL's default provider has for them.

use std::ffi::CStr;

/// A mode of operation, as OpenSSL distinguishes them.
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
    /// Key wrap that uses AES in the other direction (SP 800-38F, 5.1).
    WrapInv,
    WrapPadInv,
}

impl Mode {
    /// `EVP_CIPH_*_MODE` of `openssl/evp.h`.
    pub(crate) const fn number(self) -> u64 {
        match self {
            Mode::Ecb => 0x1,
            Mode::Cbc | Mode::CbcCts => 0x2,
            Mode::Cfb128 | Mode::Cfb8 | Mode::Cfb1 => 0x3,
            Mode::Ofb => 0x4,
            Mode::Ctr => 0x5,
            Mode::Gcm => 0x6,
            Mode::Ccm => 0x7,
            Mode::Xts => 0x10001,
            Mode::Ocb => 0x10003,
            Mode::Siv => 0x10004,
            Mode::GcmSiv => 0x10005,
            Mode::Wrap | Mode::WrapPad | Mode::WrapInv | Mode::WrapPadInv => 0x10002,
        }
    }

    /// The block size in bytes, as OpenSSL defines it: 1 for stream modes.
    pub(crate) const fn block_size(self) -> usize {
        match self {
            // OCB buffers partial blocks, as the block modes do.
            Mode::Ecb | Mode::Cbc | Mode::CbcCts | Mode::Ocb => 16,
            Mode::Wrap | Mode::WrapPad | Mode::WrapInv | Mode::WrapPadInv => 8,
            _ => 1,
        }
    }

    /// The default length of the IV in bytes.
    pub(crate) const fn iv_len(self) -> usize {
        match self {
            Mode::Ecb | Mode::Siv => 0,
            Mode::Gcm | Mode::Ccm | Mode::Ocb | Mode::GcmSiv => 12,
            Mode::Wrap | Mode::WrapInv => 8,
            Mode::WrapPad | Mode::WrapPadInv => 4,
            _ => 16,
        }
    }

    /// True if the list contains the mode.
    pub(crate) const fn is_one_of(self, modes: &[Mode]) -> bool {
        let mut i = 0;
        while i < modes.len() {
            if modes[i] as u8 == self as u8 {
                return true;
            }
            i += 1;
        }
        false
    }

    /// True for authenticated encryption.
    pub(crate) const fn is_aead(self) -> bool {
        matches!(self, Mode::Gcm | Mode::Ccm | Mode::Ocb | Mode::GcmSiv | Mode::Siv)
    }

    /// True if the mode processes its IV itself (`custom-iv` in OpenSSL's terms).
    pub(crate) const fn has_custom_iv(self) -> bool {
        self.is_aead() || self.is_key_wrap() || matches!(self, Mode::Xts)
    }

    /// True for key wrap.
    pub(crate) const fn is_key_wrap(self) -> bool {
        matches!(self, Mode::Wrap | Mode::WrapPad | Mode::WrapInv | Mode::WrapPadInv)
    }

    /// True if key wrap pads the data to whole semiblocks of 8 bytes.
    pub(crate) const fn pads_semiblocks(self) -> bool {
        matches!(self, Mode::WrapPad | Mode::WrapPadInv)
    }
}

/// A cipher: AES in one mode with one key length.
#[derive(Debug)]
pub(crate) struct Algorithm {
    /// All names, separated by colons.
    pub(crate) names: &'static CStr,
    /// A description for messages and lists.
    pub(crate) description: &'static CStr,
    /// The mode.
    pub(crate) mode: Mode,
    /// Bytes of the key; for XTS and SIV, of both keys together.
    pub(crate) key_len: usize,
}

impl Algorithm {
    /// The first name.
    pub(crate) fn name(&self) -> &'static str {
        let names = self.names.to_str().unwrap_or_default();
        names.split(':').next().unwrap_or(names)
    }
}

macro_rules! algorithms {
    ($($mode:ident $key_len:literal: $names:literal, $description:literal;)*) => {
        /// All ciphers.
        pub(crate) const ALGORITHMS: &[Algorithm] = &[$(
            Algorithm {
                names: $names,
                description: $description,
                mode: Mode::$mode,
                key_len: $key_len,
            },
        )*];
    };
}

// The order must match `dispatch_tables` in `ffi::cipher`. A compile-time assertion there checks the mode at each
// position.
algorithms! {
    Ecb 16: c"AES-128-ECB:2.16.840.1.101.3.4.1.1", c"AES-128 in ECB mode by Lockstep";
    Ecb 24: c"AES-192-ECB:2.16.840.1.101.3.4.1.21", c"AES-192 in ECB mode by Lockstep";
    Ecb 32: c"AES-256-ECB:2.16.840.1.101.3.4.1.41", c"AES-256 in ECB mode by Lockstep";
    Cbc 16: c"AES-128-CBC:AES128:2.16.840.1.101.3.4.1.2", c"AES-128 in CBC mode by Lockstep";
    Cbc 24: c"AES-192-CBC:AES192:2.16.840.1.101.3.4.1.22", c"AES-192 in CBC mode by Lockstep";
    Cbc 32: c"AES-256-CBC:AES256:2.16.840.1.101.3.4.1.42", c"AES-256 in CBC mode by Lockstep";
    Cfb128 16: c"AES-128-CFB:2.16.840.1.101.3.4.1.4", c"AES-128 in CFB mode by Lockstep";
    Cfb128 24: c"AES-192-CFB:2.16.840.1.101.3.4.1.24", c"AES-192 in CFB mode by Lockstep";
    Cfb128 32: c"AES-256-CFB:2.16.840.1.101.3.4.1.44", c"AES-256 in CFB mode by Lockstep";
    Cfb8 16: c"AES-128-CFB8", c"AES-128 in 8-bit CFB mode by Lockstep";
    Cfb8 24: c"AES-192-CFB8", c"AES-192 in 8-bit CFB mode by Lockstep";
    Cfb8 32: c"AES-256-CFB8", c"AES-256 in 8-bit CFB mode by Lockstep";
    Cfb1 16: c"AES-128-CFB1", c"AES-128 in 1-bit CFB mode by Lockstep";
    Cfb1 24: c"AES-192-CFB1", c"AES-192 in 1-bit CFB mode by Lockstep";
    Cfb1 32: c"AES-256-CFB1", c"AES-256 in 1-bit CFB mode by Lockstep";
    Ofb 16: c"AES-128-OFB:2.16.840.1.101.3.4.1.3", c"AES-128 in OFB mode by Lockstep";
    Ofb 24: c"AES-192-OFB:2.16.840.1.101.3.4.1.23", c"AES-192 in OFB mode by Lockstep";
    Ofb 32: c"AES-256-OFB:2.16.840.1.101.3.4.1.43", c"AES-256 in OFB mode by Lockstep";
    Ctr 16: c"AES-128-CTR", c"AES-128 in CTR mode by Lockstep";
    Ctr 24: c"AES-192-CTR", c"AES-192 in CTR mode by Lockstep";
    Ctr 32: c"AES-256-CTR", c"AES-256 in CTR mode by Lockstep";
    Xts 32: c"AES-128-XTS:1.3.111.2.1619.0.1.1", c"AES-128 in XTS mode by Lockstep";
    Xts 64: c"AES-256-XTS:1.3.111.2.1619.0.1.2", c"AES-256 in XTS mode by Lockstep";
    Gcm 16: c"AES-128-GCM:id-aes128-GCM:2.16.840.1.101.3.4.1.6", c"AES-128 in GCM mode by Lockstep";
    Gcm 24: c"AES-192-GCM:id-aes192-GCM:2.16.840.1.101.3.4.1.26", c"AES-192 in GCM mode by Lockstep";
    Gcm 32: c"AES-256-GCM:id-aes256-GCM:2.16.840.1.101.3.4.1.46", c"AES-256 in GCM mode by Lockstep";
    Ccm 16: c"AES-128-CCM:id-aes128-CCM:2.16.840.1.101.3.4.1.7", c"AES-128 in CCM mode by Lockstep";
    Ccm 24: c"AES-192-CCM:id-aes192-CCM:2.16.840.1.101.3.4.1.27", c"AES-192 in CCM mode by Lockstep";
    Ccm 32: c"AES-256-CCM:id-aes256-CCM:2.16.840.1.101.3.4.1.47", c"AES-256 in CCM mode by Lockstep";
    Ocb 16: c"AES-128-OCB", c"AES-128 in OCB mode by Lockstep";
    Ocb 24: c"AES-192-OCB", c"AES-192 in OCB mode by Lockstep";
    Ocb 32: c"AES-256-OCB", c"AES-256 in OCB mode by Lockstep";
    GcmSiv 16: c"AES-128-GCM-SIV", c"AES-128 in GCM-SIV mode by Lockstep";
    GcmSiv 24: c"AES-192-GCM-SIV", c"AES-192 in GCM-SIV mode by Lockstep";
    GcmSiv 32: c"AES-256-GCM-SIV", c"AES-256 in GCM-SIV mode by Lockstep";
    Siv 32: c"AES-128-SIV", c"AES-128 in SIV mode by Lockstep";
    Siv 48: c"AES-192-SIV", c"AES-192 in SIV mode by Lockstep";
    Siv 64: c"AES-256-SIV", c"AES-256 in SIV mode by Lockstep";
    CbcCts 16: c"AES-128-CBC-CTS", c"AES-128 in CBC mode with ciphertext stealing by Lockstep";
    CbcCts 24: c"AES-192-CBC-CTS", c"AES-192 in CBC mode with ciphertext stealing by Lockstep";
    CbcCts 32: c"AES-256-CBC-CTS", c"AES-256 in CBC mode with ciphertext stealing by Lockstep";
    Wrap 16: c"AES-128-WRAP:id-aes128-wrap:AES128-WRAP:2.16.840.1.101.3.4.1.5",
        c"AES-128 key wrap by Lockstep";
    Wrap 24: c"AES-192-WRAP:id-aes192-wrap:AES192-WRAP:2.16.840.1.101.3.4.1.25",
        c"AES-192 key wrap by Lockstep";
    Wrap 32: c"AES-256-WRAP:id-aes256-wrap:AES256-WRAP:2.16.840.1.101.3.4.1.45",
        c"AES-256 key wrap by Lockstep";
    WrapPad 16: c"AES-128-WRAP-PAD:id-aes128-wrap-pad:AES128-WRAP-PAD:2.16.840.1.101.3.4.1.8",
        c"AES-128 key wrap with padding by Lockstep";
    WrapPad 24: c"AES-192-WRAP-PAD:id-aes192-wrap-pad:AES192-WRAP-PAD:2.16.840.1.101.3.4.1.28",
        c"AES-192 key wrap with padding by Lockstep";
    WrapPad 32: c"AES-256-WRAP-PAD:id-aes256-wrap-pad:AES256-WRAP-PAD:2.16.840.1.101.3.4.1.48",
        c"AES-256 key wrap with padding by Lockstep";
    WrapInv 16: c"AES-128-WRAP-INV:AES128-WRAP-INV", c"AES-128 key wrap with the inverse cipher by Lockstep";
    WrapInv 24: c"AES-192-WRAP-INV:AES192-WRAP-INV", c"AES-192 key wrap with the inverse cipher by Lockstep";
    WrapInv 32: c"AES-256-WRAP-INV:AES256-WRAP-INV", c"AES-256 key wrap with the inverse cipher by Lockstep";
    WrapPadInv 16: c"AES-128-WRAP-PAD-INV:AES128-WRAP-PAD-INV",
        c"AES-128 key wrap with padding and the inverse cipher by Lockstep";
    WrapPadInv 24: c"AES-192-WRAP-PAD-INV:AES192-WRAP-PAD-INV",
        c"AES-192 key wrap with padding and the inverse cipher by Lockstep";
    WrapPadInv 32: c"AES-256-WRAP-PAD-INV:AES256-WRAP-PAD-INV",
        c"AES-256 key wrap with padding and the inverse cipher by Lockstep";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_contain_mode_and_key_length() {
        for algorithm in ALGORITHMS {
            let name = algorithm.name();
            let has_two_keys = matches!(algorithm.mode, Mode::Xts | Mode::Siv);
            let bits = if has_two_keys { 4 } else { 8 } * algorithm.key_len;
            let mode = format!("{:?}", algorithm.mode).to_uppercase().replace("CFB128", "CFB");
            let bare = name.strip_prefix(&format!("AES-{bits}-")).unwrap_or_default();
            assert_eq!(bare.replace('-', ""), mode);
            assert!(algorithm.description.to_str().unwrap().starts_with(&format!("AES-{bits} ")));
        }
    }

    #[test]
    fn names_are_unique() {
        let names: Vec<&str> =
            ALGORITHMS.iter().flat_map(|algorithm| algorithm.names.to_str().unwrap().split(':')).collect();
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name), "{name}");
        }
    }
}
