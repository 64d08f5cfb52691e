//! `lockstep lab`, which is a program of its own

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
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

/// The program with the papers and with simulated devices.
const PROGRAM: &str = "lockstep-lab";

/// Replaces this process by the program that stands beside this one, or on PATH.
pub(crate) fn run(args: &Lab) -> Result<()> {
    let beside = invocation::program().map(|program| program.with_file_name(PROGRAM));
    let beside = beside.filter(|path| path.is_file());
    let program = beside.as_deref().unwrap_or(Path::new(PROGRAM));
    // `exec` returns only if it fails.
    let error = Command::new(program).arg("lab").args(&args.arguments).exec();
    Err(match error.kind() {
        ErrorKind::NotFound => failed(
            "lockstep-lab, the program with the papers, is neither beside lockstep nor on PATH: `make lab` builds \
             target/release/lockstep-lab",
        ),
        _ => Error::io("run", program)(error),
    })
}
