//! The definition of the command line, for parsing, help, completions and man pages.

use clap::{Parser, Subcommand};

use crate::commands::{
    bench, calibrate, cipher, completions, decrypt, devices, encrypt, inspect, keygen, man, openssl_conf,
    picture, selftest,
};

const AFTER: &str = "\
Exit codes: 0 success (also if the reader of the output stops early); 1 the data or the key are not authentic, or a \
self-test failed; 2 a mistake on the command line, or input, output or memory failed; 130 or 143 stopped by a signal.

With --json an error is one JSON object on standard error: error, exit_code, kind and, if there were any, warnings.

An output file appears complete or not at all. See `lockstep help COMMAND` for details.";

/// AES on parallel hardware: encrypts files on CPUs and GPUs
#[derive(Parser)]
#[command(name = "lockstep", version, max_term_width = 80, after_help = AFTER)]
pub(crate) struct Cli {
    /// With `--version`: print name, version, commit (null if unknown), os, arch and compiled-in backends as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
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
    #[cfg(feature = "lab")]
    Lab(crate::commands::lab::Lab),
    OpensslConf(openssl_conf::OpensslConf),
    Completions(completions::Completions),
    Man(man::Man),
}
