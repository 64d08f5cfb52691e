//! `lockstep lab`, which starts the program `lockstep-lab`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::error::{Error, Result, failed};
use crate::invocation;

/// Reproduce published papers: runs `lockstep-lab lab` with the same arguments
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Lab {
    /// Arguments of `lockstep-lab lab`
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// The name of the program that reproduces papers and contains simulated devices.
const PROGRAM: &str = "lockstep-lab";

/// Replaces this process by `lockstep-lab`. The program is searched for in the folder of `lockstep`, and then on PATH.
pub(crate) fn run(args: &Lab) -> Result<()> {
    let beside = invocation::program().map(|program| program.with_file_name(PROGRAM));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join(PROGRAM));
    // A file named `lockstep-lab` that links to this program is skipped: this program would start itself without end.
    let own = std::env::current_exe().and_then(fs::canonicalize).ok();
    let is_other = |path: &PathBuf| path.is_file() && fs::canonicalize(path).ok() != own;
    let missing = "lockstep-lab, the program with the papers, is neither beside lockstep nor on PATH: `make lab` builds \
                   target/release/lockstep-lab";
    let program = beside.into_iter().chain(on_path).find(is_other).ok_or_else(|| failed(missing))?;
    // `exec` returns only if it fails.
    let error = Command::new(&program).arg("lab").args(&args.arguments).exec();
    Err(Error::io("run", &program)(error))
}
