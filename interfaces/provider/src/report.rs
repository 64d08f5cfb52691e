//! The entries that a failed call of a cipher leaves on OpenSSL's error queue.
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
        use {Entries as E, EntryPoint as At, Reason as R};
        match (at, mode, self) {
            (At::Init | At::Copy, ..) => E::Own,
            _ if self.is_of_this_provider() => E::Own,

            // The default provider compares the tag here. It reports neither a wrong tag nor a wrong order of calls, except,
            // in newer releases, that there is no tag to compare with.
            (At::Final, Mode::Gcm | Mode::Ccm, R::TagNotSet) => E::Own,
            (At::Final, ..) if mode.is_aead() => E::None,
            (At::Final, ..) if self.is_of_tls() => E::Number(CIPHER_OPERATION_FAILED),
            (At::Final, ..) => E::Own,

            (At::GetParams, _, R::ParameterType | R::ParameterRoom) => E::Number(FAILED_TO_SET_PARAMETER),
            (At::GetParams, Mode::Gcm, R::NoTag | R::TagLength) => E::Number(INVALID_TAG),
            // No IV was set and none can be generated, or `tlsivgen` failed.
            (At::GetParams, Mode::Gcm, R::NoIv | R::TlsIv | R::NullBuffer | R::MessageTooLong) => E::None,
            (At::GetParams, Mode::Ccm, R::NoTag) => E::Number(TAG_NOT_SET),
            (At::GetParams, Mode::Ocb, R::NoTag) => E::Number(INVALID_TAG_LENGTH),
            (At::GetParams, Mode::Ccm, R::TagLength) => E::None,
            (At::GetParams, Mode::Siv | Mode::GcmSiv, R::NoTag | R::TagLength) => {
                E::Number(FAILED_TO_SET_PARAMETER)
            }
            (At::GetParams, ..) => E::Own,

            (At::SetParams, Mode::CbcCts, R::CtsMode) => E::Number(FAILED_TO_SET_PARAMETER),
            (At::SetParams, _, R::ParameterType | R::NullBuffer) => E::Number(FAILED_TO_GET_PARAMETER),
            (At::SetParams, Mode::Gcm, R::TagNotNeeded | R::TagEmpty) => E::Number(INVALID_TAG),
            (At::SetParams, Mode::Gcm, R::TagLength | R::TlsFixedIv) => E::Number(FAILED_TO_GET_PARAMETER),
            // `tlsivinv` failed.
            (At::SetParams, Mode::Gcm, R::TlsIv) => E::None,
            (At::SetParams, Mode::Ccm, R::TlsAad) => E::Number(INVALID_DATA),
            (At::SetParams, Mode::Ocb, R::TagNotNeeded) => E::Number(PASSED_INVALID_ARGUMENT),
            (At::SetParams, Mode::Ocb, R::IvLength) => E::None,
            (At::SetParams, Mode::Siv | Mode::GcmSiv, R::TagLength) => E::Number(FAILED_TO_GET_PARAMETER),
            (At::SetParams, Mode::Siv | Mode::Xts, R::KeyLength) => E::None,
            (At::SetParams, ..) => E::Own,

            (_, _, R::OutputTooSmall) => E::Own,
            (At::OneShot, Mode::Xts, R::XtsTooLong) => E::Own,
            (At::OneShot, Mode::Ocb, _) => E::Number(CIPHER_OPERATION_FAILED),
            (At::OneShot, ..) if mode == Mode::Xts || mode.is_aead() => E::None,
            // `EVP_Cipher` is like an update in the other modes.
            (_, Mode::Xts, R::XtsTooLong) | (_, Mode::Ccm, R::TagNotSet) => {
                E::OwnAndNumber(CIPHER_OPERATION_FAILED)
            }
            (_, Mode::Xts | Mode::Gcm | Mode::Ccm, _) => E::Number(CIPHER_OPERATION_FAILED),
            (_, Mode::Ocb | Mode::Siv | Mode::GcmSiv | Mode::CbcCts, _) => E::None,
            _ if self.is_of_tls() => E::Number(CIPHER_OPERATION_FAILED),
            _ => E::Own,
        }
    }

    /// True for failures that the default provider does not have.
    fn is_of_this_provider(self) -> bool {
        use Reason::{Device, Internal, Length, OutOfMemory, Random, SelfTest};
        matches!(self, Internal | OutOfMemory | SelfTest | Device | Random | Length)
    }

    /// True for failures of records of TLS, which the default provider does not distinguish.
    fn is_of_tls(self) -> bool {
        matches!(self, Reason::TlsRecord | Reason::NotInPlace | Reason::TlsAad | Reason::TlsIv)
    }
}
