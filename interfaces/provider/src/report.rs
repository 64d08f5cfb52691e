//! What a failed call of a cipher leaves on OpenSSL's error queue.
//!
//! Programs act on the queue. For example, Python's `cryptography` takes a failure of a final call with an empty queue for a wrong
//! tag, and with an entry for a wrong length; Node makes an error code of the text of the entry. After a failure the
//! queue therefore has an entry exactly if OpenSSL's default provider leaves one, and the entry has the same number. If
//! releases differ, the newest one decides. Where the default provider succeeds, and this provider is stricter, the queue is
//! as after other failures of the same call. This is also true for a call that fails in both providers for different reasons,
//! because an earlier call has a different effect (a table of docs/provider.md lists these effects).

use crate::algorithm::Mode;
use crate::reason::Reason;

/// A function of a cipher, as in core_dispatch.h.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EntryPoint {
    Init,
    Update,
    Final,
    /// The function for `EVP_Cipher`.
    OneShot,
    GetParams,
    SetParams,
    Copy,
}

/// Entries on the error queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entries {
    /// No entry.
    None,
    /// The number and the text of the reason.
    Own,
    /// A number of openssl/proverr.h. The text of the reason is added as data, which programs do not compare.
    Number(u32),
    /// First the number of the reason, then this number.
    OwnAndNumber(u32),
}

/// `PROV_R_CIPHER_OPERATION_FAILED`
const CIPHER_OPERATION_FAILED: u32 = 102;
/// `PROV_R_FAILED_TO_GET_PARAMETER`: a parameter that is set has a wrong type or value.
const FAILED_TO_GET_PARAMETER: u32 = 103;
/// `PROV_R_FAILED_TO_SET_PARAMETER`: the value of a parameter that is requested cannot be stored.
const FAILED_TO_SET_PARAMETER: u32 = 104;
/// `ERR_R_PASSED_INVALID_ARGUMENT` of openssl/err.h, which all libraries have.
const PASSED_INVALID_ARGUMENT: u32 = 2 << 18 | 262;
/// `PROV_R_INVALID_TAG`
const INVALID_TAG: u32 = 110;
/// `PROV_R_INVALID_DATA`
const INVALID_DATA: u32 = 115;
/// `PROV_R_INVALID_TAG_LENGTH`
const INVALID_TAG_LENGTH: u32 = 118;
/// `PROV_R_TAG_NOT_SET`
const TAG_NOT_SET: u32 = 119;

impl Reason {
    /// The entries after a call of a cipher of this mode has failed for this reason.
    pub(crate) fn entries(self, mode: Mode, at: EntryPoint) -> Entries {
        use {Entries as E, EntryPoint as At};
        if self.is_of_this_provider() {
            return E::Own;
        }
        match at {
            At::Init | At::Copy => E::Own,
            At::Update => self.entries_of_update(mode),
            // The default provider compares the tag here. It reports neither a wrong tag nor a wrong order of calls, except,
            // in newer releases, that there is no tag to compare with.
            At::Final if matches!(mode, Mode::Gcm | Mode::Ccm) && self == Reason::TagNotSet => E::Own,
            At::Final if mode.is_aead() => E::None,
            At::Final if self.is_of_tls() => E::Number(CIPHER_OPERATION_FAILED),
            At::Final => E::Own,
            At::OneShot => match mode {
                _ if self == Reason::OutputTooSmall => E::Own,
                Mode::Xts if self == Reason::XtsTooLong => E::Own,
                Mode::Xts => E::None,
                Mode::Ocb => E::Number(CIPHER_OPERATION_FAILED),
                _ if mode.is_aead() => E::None,
                _ => self.entries_of_update(mode),
            },
            At::GetParams => self.entries_of_get(mode),
            At::SetParams => self.entries_of_set(mode),
        }
    }

    fn entries_of_update(self, mode: Mode) -> Entries {
        match (mode, self) {
            (_, Reason::OutputTooSmall) => Entries::Own,
            (Mode::Xts, Reason::XtsTooLong) | (Mode::Ccm, Reason::TagNotSet) => {
                Entries::OwnAndNumber(CIPHER_OPERATION_FAILED)
            }
            (Mode::Xts | Mode::Gcm | Mode::Ccm, _) => Entries::Number(CIPHER_OPERATION_FAILED),
            (Mode::Ocb | Mode::Siv | Mode::GcmSiv | Mode::CbcCts, _) => Entries::None,
            (_, reason) if reason.is_of_tls() => Entries::Number(CIPHER_OPERATION_FAILED),
            _ => Entries::Own,
        }
    }

    fn entries_of_get(self, mode: Mode) -> Entries {
        match (mode, self) {
            (_, Reason::ParameterType | Reason::ParameterRoom) => Entries::Number(FAILED_TO_SET_PARAMETER),
            (Mode::Gcm, Reason::NoTag | Reason::TagLength) => Entries::Number(INVALID_TAG),
            // No IV, and `tlsivgen`.
            (Mode::Gcm, Reason::NoIv | Reason::TlsIv | Reason::NullBuffer | Reason::MessageTooLong) => {
                Entries::None
            }
            (Mode::Ccm, Reason::NoTag) => Entries::Number(TAG_NOT_SET),
            (Mode::Ocb, Reason::NoTag) => Entries::Number(INVALID_TAG_LENGTH),
            (Mode::Ccm, Reason::TagLength) => Entries::None,
            (Mode::Siv | Mode::GcmSiv, Reason::NoTag | Reason::TagLength) => {
                Entries::Number(FAILED_TO_SET_PARAMETER)
            }
            _ => Entries::Own,
        }
    }

    fn entries_of_set(self, mode: Mode) -> Entries {
        match (mode, self) {
            (Mode::CbcCts, Reason::CtsMode) => Entries::Number(FAILED_TO_SET_PARAMETER),
            (_, Reason::ParameterType | Reason::NullBuffer) => Entries::Number(FAILED_TO_GET_PARAMETER),
            (Mode::Gcm, Reason::TagNotNeeded | Reason::TagEmpty) => Entries::Number(INVALID_TAG),
            (Mode::Gcm, Reason::TagLength) => Entries::Number(FAILED_TO_GET_PARAMETER),
            (Mode::Gcm, Reason::TlsFixedIv) => Entries::Number(FAILED_TO_GET_PARAMETER),
            // `tlsivinv`.
            (Mode::Gcm, Reason::TlsIv) => Entries::None,
            (Mode::Ccm, Reason::TlsAad) => Entries::Number(INVALID_DATA),
            (Mode::Ocb, Reason::TagNotNeeded) => Entries::Number(PASSED_INVALID_ARGUMENT),
            (Mode::Ocb, Reason::IvLength) => Entries::None,
            (Mode::Siv | Mode::GcmSiv, Reason::TagLength) => Entries::Number(FAILED_TO_GET_PARAMETER),
            (Mode::Siv | Mode::Xts, Reason::KeyLength) => Entries::None,
            _ => Entries::Own,
        }
    }

    /// True for failures that the default provider does not have.
    fn is_of_this_provider(self) -> bool {
        matches!(
            self,
            Reason::Internal
                | Reason::OutOfMemory
                | Reason::SelfTest
                | Reason::Device
                | Reason::Random
                | Reason::Length
        )
    }

    /// True for failures of records of TLS, which the default provider does not distinguish.
    fn is_of_tls(self) -> bool {
        matches!(self, Reason::TlsRecord | Reason::NotInPlace | Reason::TlsAad | Reason::TlsIv)
    }
}
