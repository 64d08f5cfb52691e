//! Encryption and decryption of files.

use std::fs::{File, Metadata};
use std::path::Path;

use crate::cobblestone::{FileKey, Options, Summary};
use crate::engine::Engine;
use crate::error::{Error, Result, ensure};
use crate::output::{FileMode, OutputFile, OutputOptions, Sparse};

pub use crate::cobblestone::open_file::{check_not_shrunk, decrypt_open_file, encrypt_open_file};

/// Options of file encryption and decryption.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileOptions<'a> {
    /// The options of the encryption or decryption of the message in the file.
    pub stream: Options<'a>,
    /// Replace the output if it exists; see [`OutputOptions::force`].
    pub force: bool,
    /// Put the output on stable storage before the call returns successfully; see [`OutputOptions::sync`].
    pub sync: bool,
    /// Whether blocks of zeros become holes; see [`OutputOptions::sparse`].
    pub sparse: Sparse,
}

/// Encrypts a file to a file. The output appears complete or not at all, with the permission bits of the input under
/// the umask.
///
/// # Errors
/// [`Error::SameFile`], [`Error::Exists`], [`Error::File`] and the errors of [`crate::encrypt`].
pub fn encrypt_file(
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    from: &Path,
    to: &Path,
    options: FileOptions<'_>,
) -> Result<Summary> {
    let (input, mut output) = open_pair(from, to, &options)?;
    let summary = encrypt_open_file(engine, key, context, &input, &mut output, options.stream)?;
    output.commit()?;
    Ok(summary)
}

/// Decrypts a file to a file. The output appears complete and verified or not at all, with the permission bits of the
/// input under the umask. With [`Options::partial`], the verified beginning of a damaged file appears, unless it is empty,
/// and the error is [`Error::Partial`]. An existing output is replaced only by a complete plaintext: if the output exists and
/// [`FileOptions::force`] is set, the output is unchanged, and the error is the cause instead of `Partial`.
///
/// # Errors
/// [`Error::SameFile`], [`Error::Exists`], [`Error::File`] and the errors of [`crate::decrypt`].
pub fn decrypt_file(
    engine: &Engine,
    key: &FileKey,
    context: &[u8],
    from: &Path,
    to: &Path,
    options: FileOptions<'_>,
) -> Result<Summary> {
    let (input, mut output) = open_pair(from, to, &options)?;
    let decrypted = decrypt_open_file(engine, key, context, &input, &mut output, options.stream);
    let replaces = || options.force && !output.is_direct() && to.symlink_metadata().is_ok();
    match decrypted {
        Err(error) if !error.keeps_output() => Err(error),
        Err(Error::Partial { source, .. }) if replaces() => Err(*source),
        complete_or_part => {
            output.commit()?;
            complete_or_part
        }
    }
}

/// Opens a file for reading.
///
/// # Errors
/// [`Error::File`], also if the path is a folder.
pub fn open_input(path: &Path) -> Result<File> {
    let file = File::open(path).map_err(Error::file("open", path))?;
    let is_folder = file.metadata().map_err(Error::file("open", path))?.is_dir();
    ensure(!is_folder, || Error::file("read", path)(std::io::ErrorKind::IsADirectory))?;
    Ok(file)
}

/// Returns an error if the output and the input are the same file, even if their names differ.
///
/// # Errors
/// [`Error::SameFile`], [`Error::File`].
pub fn check_not_same(input: &File, output: &Path) -> Result<()> {
    let read = input.metadata().map_err(Error::Read)?;
    match std::fs::metadata(output) {
        Ok(written) if is_same(&read, &written) => Err(Error::SameFile { path: output.into() }),
        // Errors of the output are reported when it is created.
        _ => Ok(()),
    }
}

fn open_pair(from: &Path, to: &Path, options: &FileOptions<'_>) -> Result<(File, OutputFile)> {
    let input = open_input(from)?;
    check_not_same(&input, to)?;
    let mode = FileMode::of_input(&input)?;
    let FileOptions { force, sync, sparse, .. } = *options;
    let output = OutputFile::create(to, OutputOptions { force, mode, sync, sparse, ..Default::default() })?;
    Ok((input, output))
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let is_disk = |metadata: &Metadata| metadata.file_type().is_block_device();
    // A disk, like a file, must not be read and written at the same time. Since a disk may have several device files,
    // the device numbers are compared.
    let is_same_disk = is_disk(a) && is_disk(b) && a.rdev() == b.rdev();
    is_same_disk || (a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()))
}

#[cfg(test)]
mod tests;
