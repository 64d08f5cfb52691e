//! The option `--json`. With this option, an error is printed as one JSON object on standard error, without other text.

use std::ffi::OsStr;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use lockstep::hazmat::share::lock;
use serde_json::{Value, json};

use crate::error::Error;
use crate::invocation;

static REQUESTED: AtomicBool = AtomicBool::new(false);
/// The warnings so far. They become part of the JSON object that is printed at the end.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Searches the arguments for `--json` without the parser, so that errors of the parser are printed as JSON too.
pub(crate) fn look_for_option<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) {
    let mut options = args.into_iter().skip(1).take_while(|arg| arg.as_ref() != "--");
    REQUESTED.store(options.any(|arg| arg.as_ref() == "--json"), Ordering::Relaxed);
}

/// True if `--json` was given.
pub(crate) fn is_requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// With `--json`, stores a warning for the JSON object that is printed at the end, and returns true. Without `--json`, returns false,
/// and the caller must show the warning as text.
pub(crate) fn store_warning(message: &str) -> bool {
    if is_requested() {
        lock(&WARNINGS).push(invocation::without_keys(message).into_owned());
    }
    is_requested()
}

/// The JSON object for an error.
pub(crate) fn of_error(error: &Error) -> Value {
    let mut object = object(&error.to_string(), error.kind(), error.exit_code());
    if let Some(verified) = error.verified() {
        object["verified_bytes"] = verified.into();
    }
    object
}

/// The JSON object for an error with this message, kind and exit code.
pub(crate) fn object(message: &str, kind: &str, exit_code: u8) -> Value {
    let message = invocation::without_keys(message);
    json!({ "error": message, "exit_code": exit_code, "kind": kind })
}

/// Prints an object with the stored warnings to standard error.
pub(crate) fn print(mut object: Value) {
    let warnings = take_warnings();
    if !warnings.is_empty() {
        object["warnings"] = warnings.into();
    }
    // An error of the write is ignored: if standard error is closed, the exit code still reports the failure.
    let _ = writeln!(std::io::stderr(), "{object}");
}

/// Removes the stored warnings and returns them.
pub(crate) fn take_warnings() -> Vec<String> {
    std::mem::take(&mut *lock(&WARNINGS))
}
