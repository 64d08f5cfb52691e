//! `--json`: what goes wrong is one JSON object on standard error, with nothing else beside it.

use std::ffi::OsStr;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::terminal;

static WANTED: AtomicBool = AtomicBool::new(false);
/// Warnings so far, which become part of the object.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Looks for `--json` among the arguments, without the parser: errors of the parser are printed as JSON, too.
pub(crate) fn look_for_option<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) {
    let mut options = args.into_iter().skip(1).take_while(|arg| arg.as_ref() != "--");
    WANTED.store(options.any(|arg| arg.as_ref() == "--json"), Ordering::Relaxed);
}

/// True if `--json` was given.
pub(crate) fn is_wanted() -> bool {
    WANTED.load(Ordering::Relaxed)
}

/// Keeps a warning for the object at the end. False if it must be shown as text.
pub(crate) fn keep_warning(message: &str) -> bool {
    if is_wanted() {
        warnings().push(message.to_owned());
    }
    is_wanted()
}

/// Shows a message that is not the last one, or keeps it for the object at the end.
pub(crate) fn say_or_keep(message: &str) {
    if !keep_warning(message) {
        terminal::say(message);
    }
}

/// Adds the warnings so far to an object.
pub(crate) fn add_warnings(object: &mut Value) {
    let warnings = std::mem::take(&mut *warnings());
    if !warnings.is_empty() {
        object["warnings"] = warnings.into();
    }
}

/// Shows warnings that have become part of no object, when all is done.
pub(crate) fn show_warnings_left() {
    let left = std::mem::take(&mut *warnings());
    left.iter().for_each(|warning| terminal::say(&format!("warning: {warning}")));
}

/// An error as an object on standard error.
pub(crate) fn show_error(message: &str, kind: &str, exit_code: u8) {
    let mut object = json!({ "error": message, "exit_code": exit_code, "kind": kind });
    add_warnings(&mut object);
    // If standard error is gone, the exit code still says that something went wrong.
    let _ = writeln!(std::io::stderr(), "{object}");
}

fn warnings() -> MutexGuard<'static, Vec<String>> {
    WARNINGS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
