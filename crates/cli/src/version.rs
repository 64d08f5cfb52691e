//! `lockstep --version --json`

use clap::error::ErrorKind;
use lockstep::engine::{BackendOptions, backends};
use serde_json::json;

use crate::commands::print_json;
use crate::error::Result;

/// True if the command line asks for the version, and for JSON. clap stops at `--version`, whatever follows.
pub(crate) fn is_wanted_as_json(message: &clap::Error) -> bool {
    message.kind() == ErrorKind::DisplayVersion && std::env::args_os().skip(1).any(|arg| arg == "--json")
}

/// One JSON object on standard output: what this program is, and what it was built with.
///
/// - `name`, `version`: of the package.
/// - `commit`: the Git commit it was built from, or null if the build was not given one in the environment variable
///   `LOCKSTEP_COMMIT`; ends in `-dirty` if files had been changed.
/// - `os`, `arch`: the platform it was built for, in Rust's words.
/// - `backends`: those compiled in, whether or not this machine has devices for them.
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
