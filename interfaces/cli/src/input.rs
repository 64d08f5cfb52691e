//! The input of a command, which is a file or standard input.

use std::fs::{File, Metadata};
use std::io::{self, IoSliceMut, Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lockstep::{keyfile, quoted, read};
use rustix::event::PollFlags;

use crate::error::{Error, Result, ensure};
use crate::options::{OutputArgs, is_stdin};
use crate::{signals, standard, terminal};

/// An opened input. A reference to this type implements [`Read`].
pub struct Input {
    /// The file. If `len` is known, the file can be read from any position.
    pub(crate) file: File,
    /// Number of bytes from the position of the opened file to its end. `None` if the file is not a regular file.
    pub(crate) len: Option<u64>,
    /// The size of the file when it was opened. `None` if the file is not a regular file.
    size: Option<u64>,
}

impl Input {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(path: &Path) -> Result<Input> {
        let mut file = if is_stdin(path) { stdin()? } else { lockstep::file::open_input(path)? };
        let metadata = file.metadata().map_err(Error::io("look at", path))?;
        let size = metadata.is_file().then_some(metadata.len());
        // Some files, such as those in /proc, report length 0 although they have content.
        let is_special = is_stdin(path) || path.starts_with("/proc") || path.starts_with("/sys");
        let is_regular = size.is_some_and(|size| size > 0 || !is_special);
        let position = is_regular.then(|| file.stream_position()).transpose();
        let position = position.map_err(Error::io("look at", path))?;
        let len = size.zip(position).map(|(size, position)| size.saturating_sub(position));
        Ok(Input { file, len, size })
    }
}

/// A read fails if a signal has arrived, or arrives while the read waits for data. It also fails at the end of a file that has become
/// shorter since it was opened.
impl Read for &Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(buffer)])
    }

    /// Waits until data are available, and reads them. If a read from a non-blocking descriptor then finds no data, the function
    /// waits again.
    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut file = &self.file;
        if self.len.is_none() {
            signals::wait(file, PollFlags::IN)?;
        }
        let got = signals::repeat_when_ready(file, PollFlags::IN, || file.read_vectored(buffers))?;
        if let (0, Some(size)) = (got, self.size) {
            lockstep::file::check_not_shrunk(file, size)?;
        }
        Ok(got)
    }
}

/// Reads until the buffer is full or the input ends; returns the number of bytes.
pub(crate) fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    Ok(read::full(reader, buffer).map_err(lockstep::Error::read)?)
}

/// Reads a small file completely, such as a key, identities or a list of recipients. `-` is standard input.
pub(crate) fn read_small(path: &Path, what: &str, limit: usize) -> Result<zeroize::Zeroizing<Vec<u8>>> {
    let input = Input::open(path)?;
    // Allocates the whole size at once, since a growing buffer would leave copies in freed memory.
    let mut bytes = zeroize::Zeroizing::new(vec![0; limit + 1]);
    let got = read_full(&mut &input, &mut bytes)?;
    let name = quoted(path);
    ensure(got <= limit, format_args!("{name} is not a {what}: it is longer than {limit} bytes"))?;
    bytes.truncate(got);
    Ok(bytes)
}

fn stdin() -> Result<File> {
    standard::check_input()?;
    let owned = io::stdin().as_fd().try_clone_to_owned();
    Ok(File::from(owned.map_err(lockstep::Error::Read)?))
}

/// A description of the inputs for a question or a message: the name of a single input, otherwise the number of inputs.
pub(crate) fn names(inputs: &[PathBuf]) -> String {
    match inputs {
        [one] if is_stdin(one) => "standard input".into(),
        [one] => quoted(one).to_string(),
        several => format!("{} inputs", several.len()),
    }
}

/// Prints a warning if other users can read or change a file that contains a secret. The permissions of pipes, such as
/// those of a shell's process substitution, are irrelevant.
pub(crate) fn warn_if_open_to_others(path: &Path, what: &str, quiet: bool) {
    // The file has already been read, so a failure to query its permissions is ignored.
    if !is_stdin(path) && std::fs::metadata(path).is_ok_and(|file| keyfile::is_open_to_others(&file)) {
        let file = format!("the {what} {}", quoted(path));
        terminal::warn(quiet, &format!("other users can read or change {file}: run `chmod 600` on it"));
    }
}

/// Refuses a call that reads standard input twice. Also refuses an output that is one of `others`, since `--force` would overwrite
/// this file, for example the only copy of a key.
///
/// `others` are the files that the command reads in addition to the input, each with a description.
pub(crate) fn check_sources(args: &OutputArgs, input: &Path, others: &[(&str, &Path)]) -> Result<()> {
    let all: Vec<_> = others.iter().copied().chain([("input", input)]).collect();
    check_standard_input(&all)?;
    let output = args.file().map_or_else(standard::output_metadata, std::fs::metadata);
    // If the output does not exist, it is not one of the files to read.
    let Ok(output) = output else { return Ok(()) };
    for (what, path) in others.iter().filter(|(_, path)| !is_stdin(path)) {
        let is_output = std::fs::metadata(path).is_ok_and(|read| is_same_file(&read, &output));
        ensure(!is_output, format_args!("the output is the {what} {}: choose another output", quoted(path)))?;
    }
    Ok(())
}

/// Refuses a call that reads standard input twice: only one of the files may be `-`.
pub(crate) fn check_standard_input(files: &[(&str, &Path)]) -> Result<()> {
    let count = files.iter().filter(|(_, path)| is_stdin(path)).count();
    ensure(count <= 1, "standard input can be read once: give a file for one of the two")
}

pub(crate) fn is_same_file(a: &Metadata, b: &Metadata) -> bool {
    a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino())
}
