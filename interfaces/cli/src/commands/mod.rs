//! One module for each subcommand. Each module defines its part of the command line and a function `run`.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod cipher;
pub(crate) mod completions;
pub(crate) mod decrypt;
pub(crate) mod devices;
pub(crate) mod encrypt;
pub(crate) mod inspect;
pub(crate) mod keygen;
#[cfg(feature = "lab")]
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod openssl_conf;
pub(crate) mod picture;
pub(crate) mod selftest;

use std::io::Write;
use std::sync::Arc;

use lockstep::Engine;
use lockstep::engine::{BackendOptions, Discovered};
use lockstep::hazmat::backend::Device;

use crate::args::{Cli, Command};
use crate::error::{Result, failed};
use crate::output::Stdout;

/// Runs the subcommand.
pub(crate) fn run(cli: Cli) -> Result<()> {
    if cli.json {
        return Err(failed(
            "--json before the command requires --version; a command's own --json follows its name",
        ));
    }
    match cli.command {
        Command::Keygen(args) => keygen::run(&args),
        Command::Encrypt(args) => encrypt::run(&args),
        Command::Decrypt(args) => decrypt::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Cipher(args) => cipher::run(&args),
        Command::Devices(args) => devices::run(&args),
        Command::Selftest(args) => selftest::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Picture(args) => picture::run(&args),
        #[cfg(feature = "lab")]
        Command::Lab(args) => lab::run(&args),
        Command::OpensslConf(args) => openssl_conf::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
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
fn print(text: &str) -> Result<()> {
    Ok(Stdout::open()?.write_all(text.as_bytes()).map_err(lockstep::Error::Write)?)
}

/// Prints one JSON value to standard output, with line breaks and indentation.
pub(crate) fn print_json(value: &serde_json::Value) -> Result<()> {
    print(&format!("{value:#}\n"))
}
