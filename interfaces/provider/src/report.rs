//! The entries that a failed call of a cipher leaves on OpenSSL's error queue.
//!
//! Programs act on the queue. For example, if a final call fails, Python's `cryptography` reports a wrong tag if the queue is
//! empty, and a wrong length if the queue has an entry. Node derives an error code from the text of the entry. Therefore, after
//! a failure the queue has an entry exactly if OpenSSL's default provider leaves an entry, and this entry has the same number.
//! If releases of OpenSSL differ, the newest release decides. In two cases the default provider has no failure with the same
//! reason. In the first case, this provider rejects a call that the default provider accepts. In the second case, an earlier
//! call had a different effect in the two providers (a table in docs/provider.md lists these effects), and therefore a call
//! fails in both providers for different reasons. In both cases the queue has the entries that the default provider leaves
//! after other failures of the same call.

use crate::algorithm::Mode;
use crate::reason::Reason;

/// A function of a cipher; the functions are those of core_dispatch.h.
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

/// The entries on the error queue after a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entries {
    /// No entry.
    None,
    /// The number and the text of the reason.
    Own,
    /// A number of openssl/proverr.h. The text of the reason is added as data, which programs do not compare.
    Number(u32),
    /// First an entry with the number of the reason, then an entry with this number.
    OwnAndNumber(u32),
}

/// `PROV_R_CIPHER_OPERATION_FAILED`
const CIPHER_OPERATION_FAILED: u32 = 102;
/// `PROV_R_FAILED_TO_GET_PARAMETER`: the caller has set a parameter to a value of a wrong type or out of range.
const FAILED_TO_GET_PARAMETER: u32 = 103;
/// `PROV_R_FAILED_TO_SET_PARAMETER`: the provider cannot store the value of a parameter that the caller has requested.
const FAILED_TO_SET_PARAMETER: u32 = 104;
/// `ERR_R_PASSED_INVALID_ARGUMENT` of openssl/err.h, a reason that all libraries of OpenSSL share.
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
    /// Returns the entries that a failed call leaves on the error queue. `self` is the reason of the failure, `mode` the mode
    /// of the cipher, and `at` the function that was called.
    pub(crate) fn entries(self, mode: Mode, at: EntryPoint) -> Entries {
        use {Entries as E, EntryPoint as At, Reason as R};
        match (at, mode, self) {
            (At::Init | At::Copy, ..) => E::Own,
            _ if self.is_of_this_provider() => E::Own,

            // The default provider compares the tag in this call. It reports neither a wrong tag nor a wrong order of calls.
            // Exception: newer releases report that no tag was set.
            (At::Final, Mode::Gcm | Mode::Ccm, R::TagNotSet) => E::Own,
            (At::Final, ..) if mode.is_aead() => E::None,
            (At::Final, ..) if self.is_of_tls() => E::Number(CIPHER_OPERATION_FAILED),
            (At::Final, ..) => E::Own,

            (At::GetParams, _, R::ParameterType | R::ParameterRoom) => E::Number(FAILED_TO_SET_PARAMETER),
            (At::GetParams, Mode::Gcm, R::NoTag | R::TagLength) => E::Number(INVALID_TAG),
            // Either no IV was set and none can be generated, or the parameter `tlsivgen` failed.
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
            // In all modes that are not listed above, `EVP_Cipher` leaves the same entries as an update.
            (_, Mode::Xts, R::XtsTooLong) | (_, Mode::Ccm, R::TagNotSet) => {
                E::OwnAndNumber(CIPHER_OPERATION_FAILED)
            }
            (_, Mode::Xts | Mode::Gcm | Mode::Ccm, _) => E::Number(CIPHER_OPERATION_FAILED),
            (_, Mode::Ocb | Mode::Siv | Mode::GcmSiv | Mode::CbcCts, _) => E::None,
            _ if self.is_of_tls() => E::Number(CIPHER_OPERATION_FAILED),
            _ => E::Own,
        }
    }

    /// True for failures that cannot occur in the default provider.
    fn is_of_this_provider(self) -> bool {
        use Reason::{Device, Internal, Length, OutOfMemory, Random, SelfTest};
        matches!(self, Internal | OutOfMemory | SelfTest | Device | Random | Length)
    }

    /// True for failures in TLS records. The default provider does not distinguish these failures.
    fn is_of_tls(self) -> bool {
        matches!(self, Reason::TlsRecord | Reason::NotInPlace | Reason::TlsAad | Reason::TlsIv)
    }
}
