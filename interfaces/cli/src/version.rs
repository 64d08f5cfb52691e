//! `lockstep --version --json`

use clap::error::ErrorKind;
use lockstep::engine::{BackendOptions, backends};
use serde_json::json;

use crate::commands::print_json;
use crate::error::Result;
use crate::invocation;

/// True if the command line requests the version as JSON. clap stops at `--version`, so this function searches the
/// other arguments for `--json`.
pub(crate) fn is_wanted_as_json(message: &clap::Error) -> bool {
    message.kind() == ErrorKind::DisplayVersion && invocation::arguments().iter().any(|arg| arg == "--json")
}

/// Prints one JSON object to standard output: the name of the program and its build.
///
/// - `name`, `version`: of the package.
/// - `commit`: the Git commit of the build, or null if the environment variable `LOCKSTEP_COMMIT` was not set; ends in
///   `-dirty` if files had been changed.
/// - `os`, `arch`: the platform of the build, with Rust's names.
/// - `backends`: the compiled-in backends, whether or not this machine has devices for them.
pub(crate) fn print() -> Result<()> {
    let backends = backends(&BackendOptions { threads: 1 });
    print_json(&json!({
        "name": "lockstep",
        "version": env!("CARGO_PKG_VERSION"),
        "commit": option_env!("LOCKSTEP_COMMIT").filter(|commit| !commit.is_empty()),
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "backends": backends.iter().map(|backend| backend.name()).collect::<Vec<_>>(),
    }))
}
