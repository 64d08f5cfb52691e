//! One module for each subcommand. Each module defines its part of the command line and a function `run`.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod cipher;
pub(crate) mod decrypt;
pub(crate) mod devices;
pub(crate) mod documents;
pub(crate) mod encrypt;
pub(crate) mod inspect;
pub(crate) mod keygen;
pub(crate) mod lab;
pub(crate) mod openssl_conf;
pub(crate) mod picture;
pub(crate) mod selftest;

use std::io::Write;
use std::sync::Arc;

use clap::CommandFactory;
use lockstep::Engine;
use lockstep::engine::{BackendOptions, Discovered};
use lockstep::hazmat::backend::Device;

use crate::args::{Cli, Command, SharedCommand};
use crate::error::Result;
use crate::output::Stdout;

/// Runs the subcommand of `lockstep`.
pub(crate) fn run(cli: Cli) -> Result<()> {
    cli.program.check()?;
    match cli.command {
        Command::Shared(shared) => run_shared(shared, &mut Cli::command()),
        Command::Lab(args) => lab::run(&args),
    }
}

/// Runs a subcommand of `lockstep` for a program with this command line.
///
/// # Errors
/// Those of the subcommand.
pub fn run_shared(command: SharedCommand, line: &mut clap::Command) -> Result<()> {
    match command {
        SharedCommand::Keygen(args) => keygen::run(&args),
        SharedCommand::Encrypt(args) => encrypt::run(&args),
        SharedCommand::Decrypt(args) => decrypt::run(&args),
        SharedCommand::Inspect(args) => inspect::run(&args),
        SharedCommand::Cipher(args) => cipher::run(&args),
        SharedCommand::Devices(args) => devices::run(&args),
        SharedCommand::Selftest(args) => selftest::run(&args),
        SharedCommand::Calibrate(args) => calibrate::run(&args),
        SharedCommand::Bench(args) => bench::run(&args),
        SharedCommand::Picture(args) => picture::run(&args),
        SharedCommand::OpensslConf(args) => openssl_conf::run(&args),
        SharedCommand::Completions(args) => documents::completions(&args, line),
        SharedCommand::Man(args) => documents::man(&args, line),
    }
}

/// Discovers all devices of this machine. Adds those devices of the engine that discovery does not return: the engine
/// has opened them because the user named them.
fn discover(engine: &Engine) -> Discovered {
    let mut found = lockstep::engine::discover(&BackendOptions { threads: engine.threads() });
    let is_new = |device: &&Arc<dyn Device>| found.devices.iter().all(|other| other.id() != device.id());
    let made: Vec<_> = engine.devices().iter().filter(is_new).cloned().collect();
    found.devices.extend(made);
    found
}

/// Prints text to standard output.
///
/// # Errors
/// If it cannot be written.
pub fn print(text: &str) -> Result<()> {
    Ok(Stdout::open(false)?.write_all(text.as_bytes()).map_err(lockstep::Error::Write)?)
}

/// Prints one JSON value to standard output, with line breaks and indentation.
///
/// # Errors
/// If it cannot be written.
pub fn print_json(value: &serde_json::Value) -> Result<()> {
    print(&format!("{value:#}\n"))
}
