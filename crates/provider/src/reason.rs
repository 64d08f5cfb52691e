//! Errors, with the texts that OpenSSL's error stack shows.

use std::ffi::CStr;

use lockstep::hazmat::Error;

/// A result with a [`Reason`] as error.
pub(crate) type Outcome<T> = Result<T, Reason>;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident $(= $text:literal)? $(as $number:literal: $advice:literal)?,)*) => {
        /// A reason. Its number and text are put on OpenSSL's error stack.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        pub(crate) enum Reason {
            /// Never raised: OpenSSL has no reason 0.
            #[allow(dead_code)]
            None = 0,
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// The reasons of this provider, with their texts.
            pub(crate) const OWN: &'static [(Reason, &'static CStr)] = &[$($((Reason::$name, $text),)?)*];

            /// For a reason that OpenSSL's own providers have: its number, which programs may check, and the detail
            /// that this provider adds. `None` for other reasons.
            pub(crate) fn shared(self) -> Option<(u32, &'static CStr)> {
                match self {
                    $($(Reason::$name => Some(($number, $advice)),)?)*
                    _ => None,
                }
            }
        }
    };
}

// Reasons with a number are `PROV_R_*` of openssl/proverr.h: OpenSSL has the text, and programs may check the number.
reasons! {
    /// A bug in this provider.
    Internal = c"internal error in lockstep: please report it",
    /// Out of memory.
    OutOfMemory = c"out of memory",
    /// A bad setting in the configuration or the environment.
    Setting = c"bad setting",
    /// The kernel failed its known-answer test.
    SelfTest = c"the kernel failed its self-test on this machine",
    /// A device or kernel has failed.
    Device = c"a device failed",
    /// The operating system returned no random bytes.
    Random = c"no random bytes from the operating system",

    /// A key of the wrong length.
    KeyLength as 105: c"",
    /// An IV of a length that the mode does not support.
    IvLength as 109: c"",
    /// Update before a key was set.
    NoKey as 114: c"",
    /// Update before an IV was set, or after the end of the message.
    NoIv = c"no iv set for this message",
    /// Both halves of an XTS key are equal.
    XtsEqualKeys as 149: c"both halves of the key are equal",
    /// A CBC-CTS message of less than a block.
    CtsTooShort = c"cbc-cts: message shorter than 16 bytes",
    /// CBC-CTS requires the whole message in one update.
    CtsSecondUpdate = c"cbc-cts: the message has ended: call init for another one",
    /// SIV requires the whole message in one update.
    SivSecondUpdate = c"siv: the message has ended: call init with a key for another one",
    /// SIV has no message without an update.
    SivNoUpdate = c"siv: there was no successful update",
    /// More strings of additional data than RFC 5297 allows.
    SivStrings = c"siv: more than 126 strings of additional data",
    /// A length that key wrap does not accept.
    WrapLength as 230: c"key wrap takes whole semiblocks of 8 bytes, at least two; key wrap with padding wraps any length",
    /// The wrapped key is not authentic: wrong key or changed data.
    Unwrap as 102: c"wrong key, or the data were changed",
    /// An XTS data unit of less than a block.
    XtsTooShort = c"xts: data unit shorter than 16 bytes",
    /// An XTS data unit of more than 2^20 blocks.
    XtsTooLong as 148: c"at most 2^20 blocks of 16 bytes",

    /// A null pointer with a length other than 0.
    NullBuffer = c"null buffer",
    /// A length that exceeds the address space.
    Length = c"impossible length",
    /// The output buffer is too small.
    OutputTooSmall as 106: c"",
    /// A TLS record must be processed in place.
    NotInPlace = c"tls records must be processed in place",

    /// The data end with a partial block and padding is off.
    WrongFinalBlockLength as 107: c"the data are not a multiple of 16 bytes",
    /// The padding is wrong: wrong key or changed data.
    BadDecrypt as 100: c"wrong key, or the data were changed",
    /// The tag is wrong: wrong key or changed data.
    TagMismatch = c"tag mismatch: wrong key, or the data were changed",
    /// The tag to compare with has not been set.
    TagNotSet as 119: c"",
    /// The tag was requested before the end of an encryption, or during decryption.
    NoTag = c"there is no tag: it is computed at the end of encryption",
    /// A tag was set for encryption, which computes the tag itself.
    TagNotNeeded as 120: c"encryption computes it",
    /// A tag length that the mode does not support.
    TagLength as 118: c"",
    /// Additional data must come before the data.
    AadAfterData = c"additional data after the data have begun",
    /// CCM requires all additional data in one update.
    SecondAad = c"ccm: additional data in more than one piece",
    /// CCM requires the length of the message before its additional data.
    NoLength = c"ccm: message length not set before additional data",
    /// CCM requires all data in one update, of the length that was set.
    WrongLength = c"ccm: the data have another length than the one that was set",
    /// A message longer than the limit of the mode.
    MessageTooLong = c"message too long for its mode or iv",
    /// The message has ended.
    Finished = c"the message has ended: set a new iv",
    /// Additional data of a TLS record that are not 13 bytes long or contradict the record.
    TlsAad as 108: c"additional data of a tls record",
    /// A TLS record of an impossible length.
    TlsRecord = c"tls record of an impossible length",
    /// Invalid parts of an IV for TLS.
    TlsIv = c"invalid iv parts for tls",
    /// More records than allowed for one key.
    TooManyRecords as 126: c"",

    /// A parameter of the wrong type or with a value out of range.
    ParameterType = c"parameter of the wrong type or out of range",
    /// A parameter with too little space for the value.
    ParameterRoom = c"parameter has too little space for the value",
}

impl From<Error> for Reason {
    /// Converts an error of the incremental engine or of a device.
    fn from(error: Error) -> Reason {
        match error {
            Error::NotWholeBlocks { .. } => Reason::WrongFinalBlockLength,
            Error::Padding => Reason::BadDecrypt,
            Error::OutputLength { .. } => Reason::OutputTooSmall,
            Error::AuthenticationFailed => Reason::Unwrap,
            Error::DataLength { .. } => Reason::WrapLength,
            _ => Reason::Device,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_distinct_and_contain_no_percent_signs() {
        for (i, (reason, text)) in Reason::OWN.iter().enumerate() {
            assert!(reason.shared().is_none());
            assert!(!text.to_str().unwrap().contains('%'), "texts are used as format strings");
            assert!(Reason::OWN[..i].iter().all(|(_, other)| other != text));
        }
    }

    #[test]
    fn shared_reasons_have_openssls_numbers() {
        // openssl/proverr.h
        assert_eq!(Reason::BadDecrypt.shared().unwrap().0, 100);
        assert_eq!(Reason::WrongFinalBlockLength.shared().unwrap().0, 107);
        assert_eq!(Reason::Device.shared(), None);
    }
}
