//! Errors in the form of JavaScript: an `Error` with the property `code`.

use js_sys::{Error, Reflect};
use wasm_bindgen::JsValue;

use lockstep::aead;

/// An error with this code and message.
pub(crate) fn error(code: &str, message: &str) -> JsValue {
    let error = Error::new(message);
    // Setting a property of a new object does not fail.
    let _ = Reflect::set(&error, &"code".into(), &code.into());
    error.into()
}

/// Converts an error of an authenticated mode.
pub(crate) fn of_mode(cause: aead::Error) -> JsValue {
    use aead::Error::{AuthenticationFailed, IvLength, ModeKey, Order, TagLength, TooLong};
    let code = match &cause {
        AuthenticationFailed => "not-authentic",
        ModeKey { .. } | IvLength { .. } | TagLength { .. } | Order { .. } => "argument",
        TooLong { .. } => "too-long",
        _ => "failed",
    };
    error(code, &cause.to_string())
}

/// Converts an error of a file.
#[cfg(feature = "files")]
pub(crate) fn of_file(cause: lockstep::Error) -> JsValue {
    use lockstep::Error::{
        Core, Damaged, Envelope, KeyFile, KeyLength, NotAuthentic, OtherFormat, TooLong, Truncated,
        WrongKeyOrContext,
    };
    let code = match cause {
        Core(cause) => return of_mode(cause),
        WrongKeyOrContext => "wrong-key",
        OtherFormat(_) => "other-format",
        Damaged { .. } | NotAuthentic(_) => "damaged",
        Truncated { .. } => "truncated",
        TooLong => "too-long",
        KeyFile { .. } | KeyLength { .. } => "key-file",
        Envelope { .. } => "envelope",
        _ => "failed",
    };
    error(code, &cause.to_string())
}
