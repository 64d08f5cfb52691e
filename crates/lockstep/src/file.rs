//! Files to files.

use std::fs::{File, Metadata};
use std::io::Write;
use std::path::Path;

use crate::cobblestone::{self, FileKey, Options, Summary};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::output::OutputFile;

/// What may be wanted of files.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileOptions<'a> {
    /// Progress and interruption.
    pub stream: Options<'a>,
    /// Replace the output if it exists.
    pub force: bool,
    /// Have the output safe on the disk before it appears under its name.
    pub sync: bool,
}

/// Encrypts a file to a file, which appears complete or not at all.
///
/// # Errors
/// [`Error::SameFile`], [`Error::Exists`], [`Error::File`] and those of [`crate::encrypt`].
pub fn encrypt_file(
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    from: &Path,
    to: &Path,
    options: FileOptions<'_>,
) -> Result<Summary> {
    let (input, mut output) = open_pair(from, to, options.force)?;
    let summary = encrypt_open_file(engine, key, context, &input, &mut output, options.stream)?;
    output.commit(options.sync)?;
    Ok(summary)
}

/// Decrypts a file to a file, which appears complete and verified or not at all.
///
/// # Errors
/// [`Error::SameFile`], [`Error::Exists`], [`Error::File`] and those of [`crate::decrypt`].
pub fn decrypt_file(
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    from: &Path,
    to: &Path,
    options: FileOptions<'_>,
) -> Result<Summary> {
    let (input, mut output) = open_pair(from, to, options.force)?;
    let summary = decrypt_open_file(engine, key, context, &input, &mut output, options.stream)?;
    output.commit(options.sync)?;
    Ok(summary)
}

/// As [`crate::encrypt`], from the position of an open file to its end: regular files are read by all threads at once.
/// Where the file's position is afterwards is not said.
///
/// # Errors
/// Those of [`crate::encrypt`].
pub fn encrypt_open_file(
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    input: &File,
    mut output: impl Write + Send,
    options: Options<'_>,
) -> Result<Summary> {
    cobblestone::encrypt_open_file(engine, key, context, input, &mut output, options)
}

/// As [`crate::decrypt`], from the position of an open file to its end: regular files are read by all threads at once,
/// and one that was cut off is refused before anything is written. Where the file's position is afterwards is not said.
///
/// # Errors
/// Those of [`crate::decrypt`].
pub fn decrypt_open_file(
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    input: &File,
    mut output: impl Write + Send,
    options: Options<'_>,
) -> Result<Summary> {
    cobblestone::decrypt_open_file(engine, key, context, input, &mut output, options)
}

/// Opens a file for reading.
///
/// # Errors
/// [`Error::File`], also for folders.
pub fn open_input(path: &Path) -> Result<File> {
    let file = File::open(path).map_err(Error::file("open", path))?;
    let metadata = file.metadata().map_err(Error::file("open", path))?;
    if metadata.is_dir() {
        return Err(Error::file("read", path)(std::io::ErrorKind::IsADirectory.into()));
    }
    Ok(file)
}

/// Refuses an output that is the very file that is read, under whatever name.
///
/// # Errors
/// [`Error::SameFile`], [`Error::File`].
pub fn check_not_same(input: &File, output: &Path) -> Result<()> {
    let read = input.metadata().map_err(Error::Read)?;
    match std::fs::metadata(output) {
        Ok(written) if is_same(&read, &written) => Err(Error::SameFile { path: output.into() }),
        // What is wrong with the output is told when it is created.
        _ => Ok(()),
    }
}

fn open_pair(from: &Path, to: &Path, force: bool) -> Result<(File, OutputFile)> {
    let input = open_input(from)?;
    check_not_same(&input, to)?;
    Ok((input, OutputFile::create(to, force)?))
}

#[cfg(unix)]
fn is_same(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let is_disk = |metadata: &Metadata| metadata.file_type().is_block_device();
    // A disk may have several names, and may be read and written at the same time no more than a file.
    let is_same_disk = is_disk(a) && is_disk(b) && a.rdev() == b.rdev();
    is_same_disk || (a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()))
}

#[cfg(not(unix))]
fn is_same(_: &Metadata, _: &Metadata) -> bool {
    false
}
