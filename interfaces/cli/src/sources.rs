//! Checks that the files of a command differ from each other.

use std::fs::Metadata;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use lockstep::quoted;

use crate::error::{Result, failed};
use crate::options::OutputArgs;

/// Refuses standard input in more than one place. Also refuses an output that is one of `others`, since `--force` would
/// overwrite this file, for example the only copy of a key.
///
/// `others` are the files that the command reads in addition to the input, each with a description.
pub(crate) fn check(args: &OutputArgs, input: &Path, others: &[(&str, &Path)]) -> Result<()> {
    let all: Vec<_> = others.iter().copied().chain([("input", input)]).collect();
    check_standard_input(&all)?;
    let output = match args.file() {
        Some(path) => std::fs::metadata(path),
        None => io::stdout().as_fd().try_clone_to_owned().and_then(|fd| std::fs::File::from(fd).metadata()),
    };
    // If the output does not exist, it is not one of the files to read.
    let Ok(output) = output else { return Ok(()) };
    for (what, path) in others.iter().filter(|(_, path)| !is_stdin(path)) {
        if std::fs::metadata(path).is_ok_and(|read| is_same_file(&read, &output)) {
            return Err(failed(format!("the output is the {what} {}: choose another output", quoted(path))));
        }
    }
    Ok(())
}

/// Refuses standard input in more than one place.
pub(crate) fn check_standard_input(files: &[(&str, &Path)]) -> Result<()> {
    if files.iter().filter(|(_, path)| is_stdin(path)).count() > 1 {
        return Err(failed("standard input can be read once: give a file for one of the two"));
    }
    Ok(())
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

pub(crate) fn is_same_file(a: &Metadata, b: &Metadata) -> bool {
    a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino())
}
