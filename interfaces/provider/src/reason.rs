//! The errors of this provider, with the texts that OpenSSL's error stack shows.

use std::ffi::CStr;

use lockstep::hazmat::Error;

/// A result with a [`Reason`] as error.
pub(crate) type Outcome<T> = Result<T, Reason>;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident $(= $own:literal)? $(as $number:literal $shared:literal)? $(: $advice:literal)?,)*) => {
        /// The reason of an error. Its number and text are put on OpenSSL's error stack.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        pub(crate) enum Reason {
            /// Never raised: OpenSSL has no reason 0.
            #[allow(dead_code)]
            None = 0,
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// The reasons that only this provider has, with their texts.
            pub(crate) const OWN: &'static [(Reason, &'static CStr)] = &[$($((Reason::$name, $own),)?)*];

            /// Returns the number of the reason if OpenSSL's own providers have the same reason. Programs may compare this
            /// number.
            pub(crate) fn shared(self) -> Option<u32> {
                match self {
                    $($(Reason::$name => Some($number),)?)*
                    _ => None,
                }
            }

            /// Returns the remedy or details of the cause. Empty if the text of the reason suffices.
            pub(crate) fn advice(self) -> &'static CStr {
                match self {
                    $($(Reason::$name => $advice,)?)*
                    _ => c"",
                }
            }

            pub(crate) fn text(self) -> &'static CStr {
                match self {
                    $($(Reason::$name => $own,)? $(Reason::$name => $shared,)?)*
                    Reason::None => c"",
                }
            }
        }
    };
}

// Reasons with a number are `PROV_R_*` of openssl/proverr.h, with OpenSSL's texts. Programs may compare the number. The texts
// of all other reasons contain only words and spaces, as OpenSSL's texts do, because some programs derive error codes from
// them. The advice after the colon is stored as the data of the entry, and may contain any characters.
reasons! {
    /// A bug in this provider.
    Internal = c"internal error in lockstep": c"please report it",
    /// Out of memory.
    OutOfMemory = c"out of memory",
    /// A bad setting in the configuration or the environment.
    Setting = c"bad setting",
    /// The kernel failed its known-answer test.
    SelfTest = c"self test failure": c"the kernel returned wrong results on this machine",
    /// A device or kernel has failed.
    Device = c"device failure",
    /// The operating system returned no random bytes.
    Random = c"no random bytes from the operating system",

    /// A key of the wrong length.
    KeyLength as 105 c"invalid key length",
    /// An IV of a length that the mode does not support.
    IvLength as 109 c"invalid iv length",
    /// Update before a key was set.
    NoKey as 114 c"no key set",
    /// Update before an IV was set, or after the end of the message.
    NoIv = c"no iv set for this message",
    /// Both halves of an XTS key are equal.
    XtsEqualKeys as 149 c"xts duplicated keys": c"both halves of the key are equal",
    /// A CBC-CTS message of less than a block.
    CtsTooShort = c"message shorter than 16 bytes",
    /// CBC-CTS requires the whole message in one update.
    CtsSecondUpdate = c"cts message has ended": c"call init for another one",
    /// A variant of CBC-CTS that does not exist.
    CtsMode = c"unknown cts mode": c"there are CS1, CS2 and CS3",
    /// SIV requires the whole message in one update.
    SivSecondUpdate = c"siv message has ended": c"call init for another one",
    /// SIV requires an update for each message, even for an empty message.
    SivNoUpdate = c"no successful update of the siv message",
    /// More strings of additional data than RFC 5297 allows.
    SivStrings = c"more than 126 strings of additional data",
    /// A length that key wrap does not accept.
    WrapLength as 230 c"invalid input length": c"key wrap takes whole semiblocks of 8 bytes, at least two; key wrap with padding wraps any length",
    /// A whole number of semiblocks, but fewer than key wrap requires.
    WrapShort as 102 c"cipher operation failed": c"key wrap takes at least two semiblocks of 8 bytes, and unwrapping one more",
    /// The wrapped key is not authentic: wrong key or changed data.
    Unwrap as 102 c"cipher operation failed": c"wrong key, or the data were changed",
    /// An XTS data unit of less than a block.
    XtsTooShort = c"data unit shorter than 16 bytes",
    /// An XTS data unit of more than 2^20 blocks.
    XtsTooLong as 148 c"xts data unit is too large": c"at most 2^20 blocks of 16 bytes",

    /// A null pointer with a length other than 0.
    NullBuffer = c"null buffer",
    /// A length that exceeds the address space.
    Length = c"impossible length",
    /// The output buffer is too small.
    OutputTooSmall as 106 c"output buffer too small",
    /// A TLS record must be processed in place.
    NotInPlace = c"tls records must be processed in place",

    /// The data end with a partial block and padding is off.
    WrongFinalBlockLength as 107 c"wrong final block length": c"the data are not a multiple of 16 bytes",
    /// The padding is wrong, because the key is wrong or the data were changed.
    BadDecrypt as 100 c"bad decrypt": c"wrong key, or the data were changed",
    /// The tag is wrong: wrong key or changed data.
    TagMismatch = c"tag mismatch": c"wrong key, or the data were changed",
    /// The tag to compare with has not been set.
    TagNotSet as 119 c"tag not set",
    /// The tag was requested before the end of an encryption, or during decryption.
    NoTag = c"there is no tag": c"it is computed at the end of encryption",
    /// A tag was set for encryption, which computes the tag itself.
    TagNotNeeded as 120 c"tag not needed": c"encryption computes it",
    /// A tag length that the mode does not support.
    TagLength as 118 c"invalid tag length",
    /// A tag of 0 bytes.
    TagEmpty as 110 c"invalid tag",
    /// Additional data must come before the data.
    AadAfterData = c"additional data after the data have begun",
    /// CCM requires all additional data in one update.
    SecondAad = c"additional data in more than one piece",
    /// CCM requires the length of the message before its additional data.
    NoLength = c"message length not set before additional data",
    /// CCM requires all data in one update, with the length that was set before.
    WrongLength = c"data of another length than the one that was set",
    /// A message longer than the limit of the mode.
    MessageTooLong = c"message too long for its mode or iv",
    /// The message has ended.
    Finished = c"message has ended": c"set a new iv",
    /// The additional data of a TLS record are not 13 bytes long, or they contradict the record.
    TlsAad as 108 c"invalid aad": c"additional data of a tls record",
    /// A TLS record of an impossible length.
    TlsRecord = c"tls record of an impossible length",
    /// Invalid parts of an IV for TLS.
    TlsIv = c"invalid iv parts for tls",
    /// A fixed part of the IVs of TLS records that is too short or too long.
    TlsFixedIv = c"invalid fixed part of the iv for tls",

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
            Error::DataLength { .. } => Reason::WrapShort,
            _ => Reason::Device,
        }
    }
}

#[cfg(test)]
mod tests;
