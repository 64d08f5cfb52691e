//! Defines the command line, from which the parser, the help, the completions and the manual pages are made. Each subcommand is a
//! module, which defines its part of the command line and a function `run`.

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

use clap::{Args, CommandFactory, Parser, Subcommand};
use lockstep::Engine;
use lockstep::engine::{BackendOptions, Discovered};
use lockstep::hazmat::backend::Device;

use crate::error::{Result, ensure};
use crate::output::Stdout;

/// The text at the end of the help of the program `program`.
pub fn after_help(program: &str) -> String {
    let codes = documents::EXIT_CODES.map(|(code, meaning)| format!("{code} {meaning}")).join("; ");
    format!("Exit codes: {codes}.\n\n{AFTER} See `{program} help COMMAND` for details.")
}

/// A text about properties that all commands have. The help and the manual page of the program contain it.
const AFTER: &str = "\
With --json an error is one JSON object on standard error: error, exit_code, kind and, if there were any, warnings.

An output file appears complete or not at all.";

/// AES on parallel hardware: encrypts files on CPUs and GPUs
#[derive(Parser)]
#[command(name = "lockstep", version, max_term_width = 80, after_help = after_help("lockstep"))]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
#[allow(clippy::large_enum_variant, reason = "a process has one value")]
pub(crate) enum Command {
    #[command(flatten)]
    Shared(SharedCommand),
    Lab(lab::Lab),
}

/// The options before the subcommand.
#[derive(Args)]
pub struct ProgramArgs {
    /// With `--version`: print name, version, commit (null if unknown), os, arch and compiled-in backends as JSON
    #[arg(long)]
    json: bool,
}

impl ProgramArgs {
    /// Checks the options of a program with a subcommand.
    ///
    /// # Errors
    /// If `--json` is given before the subcommand: there it is valid only with `--version`.
    pub fn check(&self) -> Result<()> {
        let rule = "--json before the command requires --version; a command's own --json follows its name";
        ensure(!self.json, rule)
    }
}

/// The subcommands of `lockstep` that other programs can have too.
#[derive(Subcommand)]
#[allow(missing_docs, reason = "a comment on a variant would replace the help of its subcommand")]
pub enum SharedCommand {
    Keygen(keygen::Keygen),
    Encrypt(encrypt::Encrypt),
    Decrypt(decrypt::Decrypt),
    Inspect(inspect::Inspect),
    Cipher(cipher::Cipher),
    Devices(devices::Devices),
    Selftest(selftest::Selftest),
    Calibrate(calibrate::Calibrate),
    Bench(bench::Bench),
    Picture(picture::PictureArgs),
    OpensslConf(openssl_conf::OpensslConf),
    Completions(documents::Completions),
    Man(documents::Man),
}

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

/// Discovers the devices of this machine. Some devices, such as simulators, are not discovered: the engine opens them only if the user
/// names them. These devices of the engine are added.
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
