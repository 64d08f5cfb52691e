//! `lockstep keygen`

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use lockstep::cobblestone::Suite;
use lockstep::{FileKey, FileMode, OutputOptions, keyfile};

use crate::error::Result;
use crate::options::{choice, is_stdout};
use crate::output::{GuardedFile, Stdout};
use crate::{standard, terminal};

/// Create a key file for `encrypt -k`
///
/// A key file is one line of text. Anyone who has the key can read and forge all files that are encrypted with it, so with
/// -o only the owner can read the key file. Keep a copy in a safe place: without the key, the data cannot be recovered.
#[derive(Args)]
#[command(after_long_help = "Examples:\n  lockstep keygen -o key")]
pub struct Keygen {
    /// The size of the key: 256 for Cobblestone-256, 128 for Cobblestone-128
    #[arg(long, value_name = "BITS", default_value = "256", value_parser = choice(&SUITES))]
    bits: Suite,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Replace the output file if it exists; the previous key is lost
    ///
    /// The new file belongs to the caller, and only its owner can read it. Owner, permissions and content of the old file are
    /// lost. A symbolic link is replaced, not followed.
    #[arg(short, long)]
    force: bool,

    /// Exit only after the key file is on stable storage
    ///
    /// With -o, the key file is always synced. Without -o, standard output must be a file.
    #[arg(long)]
    sync: bool,

    /// Show no warnings
    #[arg(short, long)]
    quiet: bool,
}

const SUITES: [(&str, Suite); 2] = [("128", Suite::Cobblestone128), ("256", Suite::Cobblestone256)];

pub(crate) fn run(args: &Keygen) -> Result<()> {
    let key = FileKey::generate_for(args.bits)?;
    match args.output.as_deref().filter(|path| !is_stdout(path)) {
        Some(path) => {
            // The key file is always synced, since data that are encrypted with a lost key cannot be recovered.
            let (force, mode) = (args.force, FileMode::PRIVATE);
            let options = OutputOptions { force, mode, sync: true, regular_only: true, ..Default::default() };
            GuardedFile::write(path, options, keyfile::to_text(&key).as_bytes())
        }
        None => {
            if standard::output_metadata().is_ok_and(|stdout| keyfile::is_open_to_others(&stdout)) {
                let message = "others can read the file that the key goes to: -o makes a private one";
                terminal::warn(args.quiet, message);
            }
            let mut stdout = Stdout::open(args.sync)?;
            stdout.write_all(keyfile::to_text(&key).as_bytes()).map_err(lockstep::Error::Write)?;
            stdout.commit()
        }
    }
}
