//! The program `lockstep`.
#![deny(unsafe_code)]

use std::process::ExitCode;

mod start;

fn main() -> ExitCode {
    start::disable_device_selection();
    ExitCode::from(lockstep_cli::run(std::env::args_os().collect(), std::env::current_exe().ok()))
}
