//! The output of a command: standard output, or a file that appears under its name only when it is complete.

use std::fs::File;
use std::io::{self, IoSlice, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use lockstep::{FileMode, OutputFile, OutputOptions, Sparse, file};
use rustix::event::PollFlags;

use crate::error::{Error, Result, ensure, failed};
use crate::input::{Input, is_same_file};
use crate::options::OutputArgs;
use crate::signals::{self, Guard};
use crate::standard;

/// The type of the content. It determines whether the content may be written to a terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Binary data, which a terminal must not show.
    Binary,
    /// Text or binary data. The output detects the type while it writes.
    Unknown,
}

/// The type of the writer to which a job writes its output.
pub(crate) type Writer = dyn Write + Send;

/// An opened output.
pub(crate) enum Output {
    /// A file. It appears under its name at the end.
    File(GuardedFile),
    Stdout(Stdout),
    /// A terminal that accepts only text.
    Terminal(TextOnly),
}

impl Output {
    /// Performs the checks of [`Output::open`], before a passphrase is asked for and before input is read.
    pub(crate) fn check(args: &OutputArgs, input: &Input, content: Content) -> Result<()> {
        let Some(path) = args.file() else {
            ensure(
                !io::stdout().is_terminal() || args.output.is_some() || content != Content::Binary,
                "the output is binary and would garble the terminal: give a file with -o, or pipe it (-o - forces it)",
            )?;
            // The input must not be the output, as in `lockstep encrypt file >> file`.
            let files = input.file.metadata().ok().zip(Stdout::open(args.sync)?.file.metadata().ok());
            return ensure(
                files.is_none_or(|(read, written)| !is_same_file(&read, &written)),
                "standard output is the file that is read: choose another output",
            );
        };
        file::check_not_same(&input.file, path)?;
        let _guard = Guard::creating();
        Ok(OutputFile::check(path, options(args, input, Sparse::default())?)?)
    }

    /// Opens the output. `sparse` has an effect only on new files.
    pub(crate) fn open(args: &OutputArgs, input: &Input, content: Content, sparse: Sparse) -> Result<Output> {
        let Some(path) = args.file() else {
            Output::check(args, input, content)?;
            let terminal = Stdout::open(args.sync)?;
            return Ok(match terminal.file.is_terminal() && args.output.is_none() {
                true => Output::Terminal(TextOnly { terminal, first_bytes: Vec::new() }),
                false => Output::Stdout(terminal),
            });
        };
        file::check_not_same(&input.file, path)?;
        Ok(Output::File(GuardedFile::create(path, options(args, input, sparse)?)?))
    }

    pub(crate) fn writer(&mut self) -> &mut Writer {
        match self {
            Output::File(output) => &mut output.file,
            Output::Stdout(stdout) => stdout,
            Output::Terminal(text) => text,
        }
    }

    /// Completes the output. An output file appears under its name.
    pub(crate) fn commit(self) -> Result<()> {
        match self {
            Output::File(output) => output.commit(),
            Output::Stdout(stdout) => stdout.commit(),
            Output::Terminal(TextOnly { first_bytes, .. }) if first_bytes.is_empty() => Ok(()),
            Output::Terminal(_) => Err(lockstep::Error::Write(not_text()).into()),
        }
    }
}

/// An output file. After a signal, the program does not end before this value is dropped.
pub struct GuardedFile {
    // This field is dropped first, since the guard must outlive the file.
    file: OutputFile,
    _guard: Option<Guard>,
}

impl GuardedFile {
    /// Creates the file: see [`OutputFile::create`].
    ///
    /// # Errors
    /// Those of [`OutputFile::create`].
    pub fn create(path: &Path, options: OutputOptions) -> Result<GuardedFile> {
        // Only a new file needs a guard. Opening a FIFO creates no file but waits for a reader; without a guard, a
        // signal can end the program during this wait.
        let is_direct = std::fs::metadata(path).is_ok_and(|existing| !existing.is_file());
        let guard = (!is_direct).then(Guard::creating);
        let file = OutputFile::create(path, options)?;
        let _guard = guard.filter(|_| !file.is_direct());
        Ok(GuardedFile { file, _guard })
    }

    /// Creates a file with this content.
    ///
    /// # Errors
    /// Those of [`OutputFile`].
    pub fn write(path: &Path, options: OutputOptions, content: &[u8]) -> Result<()> {
        let mut output = GuardedFile::create(path, options)?;
        output.file.write_all(content).map_err(Error::io("write", path))?;
        output.commit()
    }

    /// The file to which the caller writes.
    pub fn file(&mut self) -> &mut OutputFile {
        &mut self.file
    }

    /// Completes the file, which appears under its name.
    ///
    /// # Errors
    /// Those of [`OutputFile::commit`].
    pub fn commit(self) -> Result<()> {
        let GuardedFile { file, _guard } = self;
        Ok(file.commit()?)
    }
}

/// The options of the output file. A new file gets the permission bits of the input.
fn options(args: &OutputArgs, input: &Input, sparse: Sparse) -> Result<OutputOptions> {
    let mode = FileMode::of_input(&input.file)?;
    Ok(OutputOptions { force: args.force, mode, sync: args.sync, regular_only: false, sparse })
}

/// Standard output without a buffer. If the descriptor is non-blocking, a write waits until it is ready.
pub(crate) struct Stdout {
    file: File,
    /// True if `commit` must put the written data on stable storage.
    sync: bool,
}

impl Stdout {
    /// Opens standard output.
    ///
    /// # Errors
    /// If standard output is closed, or if a sync is requested and standard output cannot be synced.
    pub(crate) fn open(sync: bool) -> Result<Stdout> {
        standard::check_output()?;
        // This uses the descriptor itself, since `io::Stdout` is line-buffered.
        let stdout = io::stdout().as_fd().try_clone_to_owned().map_err(lockstep::Error::Write)?;
        let file = File::from(stdout);
        if sync {
            let kind = file.metadata().map_err(lockstep::Error::Write)?.file_type();
            ensure(
                kind.is_file() || kind.is_block_device(),
                "standard output is not a file and cannot be synced: omit --sync, or give a file with -o",
            )?;
        }
        Ok(Stdout { file, sync })
    }

    /// Completes the output. If a sync was requested, puts the data on stable storage.
    pub(crate) fn commit(self) -> Result<()> {
        if self.sync {
            self.file.sync_all().map_err(|error| failed(format!("cannot sync standard output: {error}")))?;
        }
        Ok(())
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut file = &self.file;
        signals::repeat_when_ready(file, PollFlags::OUT, || file.write_vectored(slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A writer to a terminal. It accepts UTF-8 text whose only control characters are line breaks and tabs. Other data
/// cause an error before they are shown: decrypted files may be binary, and some bytes control a terminal.
pub(crate) struct TextOnly {
    terminal: Stdout,
    /// The bytes of the last character if it is not complete yet.
    first_bytes: Vec<u8>,
}

impl Write for TextOnly {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.first_bytes);
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
        self.first_bytes = all.split_off(whole);
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
