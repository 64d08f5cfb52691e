//! What can go wrong, in the words that OpenSSL's error stack shows.

use std::ffi::CStr;

use lockstep::hazmat::Error;

/// A result of anything that can fail.
pub(crate) type Outcome<T> = Result<T, Reason>;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident $(= $text:literal)? $(as $number:literal: $advice:literal)?,)*) => {
        /// A reason, whose number and text go onto OpenSSL's error stack.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        pub(crate) enum Reason {
            /// Never raised: OpenSSL has no reason 0.
            #[allow(dead_code)]
            None = 0,
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// Those of our own, with their texts.
            pub(crate) const OWN: &'static [(Reason, &'static CStr)] = &[$($((Reason::$name, $text),)?)*];

            /// If OpenSSL's own providers have this reason: its number there, which programs may look for, and what we
            /// say beside it.
            pub(crate) fn shared(self) -> Option<(u32, &'static CStr)> {
                match self {
                    $($(Reason::$name => Some(($number, $advice)),)?)*
                    _ => None,
                }
            }
        }
    };
}

// Those with a number are `PROV_R_*` of openssl/proverr.h: OpenSSL has the text, and programs know the number.
reasons! {
    /// Something in here is wrong.
    Internal = c"internal error in lockstep: please report it",
    /// Memory is short.
    OutOfMemory = c"out of memory",
    /// A setting of the configuration or the environment.
    Setting = c"bad setting",
    /// The kernel failed its known-answer test.
    SelfTest = c"the kernel failed its self-test on this machine",
    /// A device or kernel could not do the work.
    Device = c"a device failed at the work",
    /// The operating system gave no random bytes.
    Random = c"no random bytes from the operating system",

    /// Key of another length than the cipher has.
    KeyLength as 105: c"",
    /// IV of a length that the mode does not take.
    IvLength as 109: c"",
    /// Update before a key was set.
    NoKey as 114: c"",
    /// Update before an IV was set, or after the message it was for has ended.
    NoIv = c"no iv set for this message",
    /// Both halves of an XTS key are equal.
    XtsEqualKeys as 149: c"both halves of the key are equal",
    /// An XTS data unit of less than a block.
    XtsTooShort = c"xts: data unit shorter than 16 bytes",
    /// An XTS data unit of more than 2^20 blocks.
    XtsTooLong as 148: c"at most 2^20 blocks of 16 bytes",

    /// A null pointer with a length.
    NullBuffer = c"null buffer",
    /// More bytes than memory can have.
    Length = c"impossible length",
    /// The result does not fit.
    OutputTooSmall as 106: c"",
    /// TLS records are worked on in place.
    NotInPlace = c"tls records must be worked on in place",

    /// The data end within a block and padding is off.
    WrongFinalBlockLength as 107: c"the data are not a multiple of 16 bytes",
    /// Padding is wrong: wrong key or changed data.
    BadDecrypt as 100: c"wrong key, or the data were changed",
    /// The tag is wrong: wrong key or changed data.
    TagMismatch = c"tag mismatch: wrong key, or the data were changed",
    /// The tag to compare with has not been given.
    TagNotSet as 119: c"",
    /// The tag was asked for before the message was encrypted, or when decrypting.
    NoTag = c"there is no tag: it is made by finishing encryption",
    /// When encrypting the tag comes out.
    TagNotNeeded as 120: c"it comes out of encryption",
    /// A tag length the mode does not have.
    TagLength as 118: c"",
    /// Additional data must come before the data.
    AadAfterData = c"additional data after the data have begun",
    /// CCM takes all additional data at once.
    SecondAad = c"ccm: additional data in more than one piece",
    /// CCM must know the message's length before its additional data.
    NoLength = c"ccm: message length not set before additional data",
    /// CCM takes all data at once.
    WrongLength = c"ccm: data of another length than was announced",
    /// A message longer than its mode can protect.
    MessageTooLong = c"message too long for its mode or iv",
    /// The message has ended.
    Finished = c"the message has ended: set a new iv",
    /// Additional data of a TLS record that are not 13 bytes or contradict the record.
    TlsAad as 108: c"additional data of a tls record",
    /// A TLS record whose length cannot be.
    TlsRecord = c"tls record of an impossible length",
    /// IV parts for TLS that do not fit together.
    TlsIv = c"invalid iv parts for tls",
    /// More records than a key may protect.
    TooManyRecords as 126: c"",

    /// A parameter of the wrong type or with a value that cannot be.
    ParameterType = c"parameter of the wrong type or out of range",
    /// A parameter with too little room for the answer.
    ParameterRoom = c"parameter has too little room for the answer",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_distinct_and_no_formats() {
        for (i, (reason, text)) in Reason::OWN.iter().enumerate() {
            assert!(reason.shared().is_none());
            assert!(!text.to_str().unwrap().contains('%'), "texts are used as formats");
            assert!(Reason::OWN[..i].iter().all(|(_, other)| other != text));
        }
    }

    #[test]
    fn what_programs_look_for_has_openssls_numbers() {
        // openssl/proverr.h
        assert_eq!(Reason::BadDecrypt.shared().unwrap().0, 100);
        assert_eq!(Reason::WrongFinalBlockLength.shared().unwrap().0, 107);
        assert_eq!(Reason::Device.shared(), None);
    }
}

impl From<Error> for Reason {
    /// What the incremental engine and devices report.
    fn from(error: Error) -> Reason {
        match error {
            Error::NotWholeBlocks { .. } => Reason::WrongFinalBlockLength,
            Error::Padding => Reason::BadDecrypt,
            Error::OutputLength { .. } => Reason::OutputTooSmall,
            _ => Reason::Device,
        }
    }
}
