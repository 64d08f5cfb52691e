//! The arguments of this call, and the program that was called.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

struct Invocation {
    arguments: Vec<OsString>,
    program: Option<PathBuf>,
}

static INVOCATION: OnceLock<Invocation> = OnceLock::new();

/// Stores the arguments and the path of the program. The first argument is the name of the program.
pub(crate) fn set(arguments: Vec<OsString>, program: Option<PathBuf>) {
    INVOCATION.get_or_init(|| Invocation { arguments, program });
}

/// The arguments after the name of the program.
pub(crate) fn arguments() -> &'static [OsString] {
    INVOCATION.get().and_then(|invocation| invocation.arguments.get(1..)).unwrap_or_default()
}

/// The path of the program; None if the command is a part of another program.
pub(crate) fn program() -> Option<&'static Path> {
    INVOCATION.get()?.program.as_deref()
}
