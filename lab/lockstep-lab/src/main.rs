//! The program `lockstep-lab`: the subcommands of `lockstep` with simulated devices, and `lockstep-lab lab`, which reproduces
//! published papers.
#![deny(unsafe_code)]

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use lockstep_cli::program::{ProgramArgs, Result, SharedCommand, after_help, run_shared};

mod lab;
#[path = "../../../interfaces/cli/src/start.rs"]
mod start;

/// AES on parallel hardware and on simulated devices, and reproductions of published papers
#[derive(Parser)]
#[command(name = "lockstep-lab", version, max_term_width = 80, after_help = after_help("lockstep-lab"))]
struct Cli {
    #[command(flatten)]
    program: ProgramArgs,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Shared(SharedCommand),
    Lab(lab::Lab),
}

fn main() -> ExitCode {
    start::disable_device_selection();
    lockstep_lab_backends::register();
    let program = std::env::current_exe().ok();
    ExitCode::from(lockstep_cli::run_program(std::env::args_os().collect(), program, run))
}

fn run(cli: Cli) -> Result<()> {
    cli.program.check()?;
    match cli.command {
        Command::Shared(shared) => run_shared(shared, &mut Cli::command()),
        Command::Lab(args) => lab::run(&args),
    }
}
