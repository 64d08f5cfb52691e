//! The definition of the command line, for parsing, help, completions and man pages.

use clap::{Args, Parser, Subcommand};

use crate::commands::{
    bench, calibrate, cipher, decrypt, devices, documents, encrypt, inspect, keygen, lab, openssl_conf,
    picture, selftest,
};
use crate::error::{Result, failed};

/// The end of the help of the program.
pub const AFTER: &str = "\
Exit codes: 0 success (also if the reader of the output stops early); 1 the data or the key are not authentic, or a \
self-test failed; 2 a mistake on the command line, or input, output or memory failed; 130 or 143 stopped by a signal.

With --json an error is one JSON object on standard error: error, exit_code, kind and, if there were any, warnings.

An output file appears complete or not at all. See `lockstep help COMMAND` for details.";

/// AES on parallel hardware: encrypts files on CPUs and GPUs
#[derive(Parser)]
#[command(name = "lockstep", version, max_term_width = 80, after_help = AFTER)]
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
    /// For `--json`, which belongs to `--version`.
    pub fn check(&self) -> Result<()> {
        match self.json {
            true => Err(failed(
                "--json before the command requires --version; a command's own --json follows its name",
            )),
            false => Ok(()),
        }
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
