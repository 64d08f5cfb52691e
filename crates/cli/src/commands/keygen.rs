//! `lockstep keygen`

use std::fs;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use lockstep::cobblestone::Suite;
use lockstep::{FileKey, OutputFile, keyfile};

use crate::error::{Error, Result, failed};
use crate::signals::Guard;
use crate::terminal;

/// Make a key file for `encrypt -k`
///
/// A key file is one line of text. Whoever has it can read and forge all files that are encrypted with it: the file
/// is made readable to its owner only. Keep a copy in a safe place, for nothing is recovered without it.
#[derive(Debug, Args)]
pub(crate) struct Keygen {
    /// The size of the key: 256 for Cobblestone-256, 128 for Cobblestone-128
    #[arg(long, value_name = "BITS", default_value = "256", value_parser = ["128", "256"])]
    bits: String,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Overwrite the output file if it exists: a key in it is lost
    #[arg(short, long)]
    force: bool,

    /// No warnings
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(args: &Keygen) -> Result<()> {
    let suite = if args.bits == "128" { Suite::Cobblestone128 } else { Suite::Cobblestone256 };
    let key = FileKey::generate_for(suite)?;
    match args.output.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) if args.force => replace(path, &key),
        Some(path) => Ok(keyfile::create(path, &key)?),
        None => {
            if is_open_to_others() {
                terminal::warn(
                    args.quiet,
                    "others can read the file that the key goes to: -o makes a private one",
                );
            }
            super::print(&keyfile::to_text(&key))
        }
    }
}

/// Makes a private file beside the old one, and puts it in its place.
fn replace(path: &Path, key: &FileKey) -> Result<()> {
    let guard = Guard::creating();
    let mut output = OutputFile::create(path, true)?;
    let Some(temporary) = output.temporary_path() else {
        return Err(failed(format!("{} is no regular file: leave out -o and redirect", path.display())));
    };
    let _guard = guard.at(temporary);
    output.keep_private();
    output.write_all(keyfile::to_text(key).as_bytes()).map_err(Error::io("write", path))?;
    Ok(output.commit(false)?)
}

/// True if standard output is a file that others can read.
fn is_open_to_others() -> bool {
    let stdout = io::stdout().as_fd().try_clone_to_owned().map(fs::File::from);
    let metadata = stdout.and_then(|stdout| stdout.metadata());
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o077 != 0)
}
