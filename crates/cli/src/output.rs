//! Where data go: a file that appears complete or not at all, or standard output.

use std::fs::File;
use std::io::{self, IoSlice, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use lockstep::{OutputFile, file};

use crate::args::OutputArgs;
use crate::error::{Result, failed};
use crate::input::Input;
use crate::signals::Guard;

/// What is going to be written, as far as terminals are concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Never fit for a terminal.
    Binary,
    /// Text or not, which shows on the way.
    Unknown,
}

/// Output, opened.
pub(crate) enum Output {
    /// A file, to be committed, and the guard of its temporary one.
    File(OutputFile, Option<Guard>),
    /// Standard output.
    Stdout(File),
    /// Standard output that is a terminal and takes text only.
    Terminal(TextOnly),
}

impl Output {
    /// Refuses what [`Output::open`] would refuse, before a passphrase is asked for.
    pub(crate) fn check(args: &OutputArgs, input: &Input, content: Content) -> Result<()> {
        match target(args) {
            Some(path) => {
                file::check_not_same(input.file(), path)?;
                if path.is_dir() {
                    return Err(failed(format!("cannot write to {}: it is a directory", path.display())));
                }
                if let Some(folder) =
                    path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
                {
                    let (path, folder) = (path.display(), folder.display());
                    return Err(failed(format!("cannot create {path}: there is no folder {folder}")));
                }
                if !args.force && std::fs::metadata(path).is_ok_and(|existing| existing.is_file()) {
                    return Err(lockstep::Error::Exists { path: path.into() }.into());
                }
            }
            None => {
                let terminal = io::stdout().is_terminal() && args.output.is_none();
                if terminal && content == Content::Binary {
                    return Err(failed(
                        "the output is binary and would garble the terminal: give a file with -o, or pipe it \
                         (-o - forces it)",
                    ));
                }
                check_stdout(input.file())?;
            }
        }
        Ok(())
    }

    pub(crate) fn open(args: &OutputArgs, input: &Input, content: Content) -> Result<Output> {
        Output::check(args, input, content)?;
        match target(args) {
            Some(path) => {
                // Opening a named pipe waits for its reader: nothing is created then, and a signal may end it.
                let direct = std::fs::metadata(path).is_ok_and(|existing| !existing.is_file());
                let guard = (!direct).then(Guard::creating);
                let output = OutputFile::create(path, args.force)?;
                let guard = guard.zip(output.temporary_path()).map(|(guard, path)| guard.at(path));
                Ok(Output::File(output, guard))
            }
            None => {
                // The descriptor itself: `Stdout` looks for line breaks in what it writes.
                let stdout = io::stdout().as_fd().try_clone_to_owned().map_err(lockstep::Error::Write)?;
                let stdout = File::from(stdout);
                if stdout.is_terminal() && args.output.is_none() {
                    return Ok(Output::Terminal(TextOnly { terminal: stdout, begun: Vec::new() }));
                }
                Ok(Output::Stdout(stdout))
            }
        }
    }

    /// All has been written: the file appears.
    pub(crate) fn commit(self) -> Result<()> {
        match self {
            Output::File(output, guard) => {
                output.commit(false)?;
                drop(guard);
                Ok(())
            }
            Output::Stdout(_) => Ok(()),
            Output::Terminal(text) => Ok(text.finish().map_err(lockstep::Error::Write)?),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::File(output, _) => output.write(bytes),
            Output::Stdout(stdout) => stdout.write(bytes),
            Output::Terminal(text) => text.write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Output::File(output, _) => output.write_vectored(slices),
            Output::Stdout(stdout) => stdout.write_vectored(slices),
            Output::Terminal(text) => text.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A terminal that takes UTF-8 without control characters but line breaks and tabs, and fails on anything else before
/// it is shown: encrypted files are not all texts, and some bytes are commands to a terminal.
pub(crate) struct TextOnly {
    terminal: File,
    /// The first bytes of a character whose rest is to come.
    begun: Vec<u8>,
}

impl TextOnly {
    fn finish(self) -> io::Result<()> {
        if self.begun.is_empty() { Ok(()) } else { Err(not_text()) }
    }
}

impl Write for TextOnly {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.begun);
        all.extend(bytes);
        let whole = match str::from_utf8(&all) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => return Err(not_text()),
        };
        let text = str::from_utf8(&all[..whole]).map_err(|_| not_text())?;
        if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
            return Err(not_text());
        }
        self.terminal.write_all(text.as_bytes())?;
        self.begun = all.split_off(whole);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn not_text() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "it is not text and would garble the terminal: give a file with -o, or pipe it (-o - forces it)",
    )
}

/// The file to write to, unless it is standard output.
fn target(args: &OutputArgs) -> Option<&Path> {
    args.output.as_deref().filter(|path| *path != Path::new("-"))
}

/// Refuses standard output that is the very file that is read (`lockstep encrypt file >> file`).
fn check_stdout(input: &File) -> Result<()> {
    let Ok(stdout) = io::stdout().as_fd().try_clone_to_owned() else { return Ok(()) };
    let (Ok(read), Ok(written)) = (input.metadata(), File::from(stdout).metadata()) else { return Ok(()) };
    if read.is_file() && (read.dev(), read.ino()) == (written.dev(), written.ino()) {
        return Err(failed("standard output is the file that is read: choose another output"));
    }
    Ok(())
}
