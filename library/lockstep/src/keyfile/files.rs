//! Key files on disk.

use std::fs::{File, Metadata};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use zeroize::Zeroizing;

use super::{LINE, parse, to_text};
use crate::cobblestone::FileKey;
use crate::error::{Error, Result, ensure};
use crate::output::{FileMode, OutputFile, OutputOptions};
use crate::read;

/// Maximum number of bytes of line breaks after the line.
pub(super) const BREAKS: usize = 16;

/// Maximum length of a key file in UTF-16 with its byte order mark, and one byte more to detect longer files.
const ROOM: usize = 2 * (LINE + BREAKS + 1) + 1;

/// Reads a key file. For a FIFO, the call waits until another process has opened it for writing, and until its writers have closed it.
///
/// # Errors
/// [`Error::File`], [`Error::KeyFile`].
pub fn read(path: &Path) -> Result<FileKey> {
    read_open(open(path)?, path)
}

/// Opens a key file for [`read_open`].
///
/// # Errors
/// [`Error::File`].
pub fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(Error::file("open the key file", path))
}

/// Reads an open key file to its end. The path is for messages.
///
/// # Errors
/// Those of [`read`].
pub fn read_open(mut file: File, path: &Path) -> Result<FileKey> {
    let mut text = Zeroizing::new([0; ROOM]);
    let got = read::full(&mut file, &mut text[..]).map_err(Error::file("read the key file", path))?;
    let name = |reason| Error::KeyFile { path: Some(path.into()), reason };
    ensure(got < ROOM, || name("it is too long"))?;
    parse(&text[..got]).map_err(|error| match error {
        Error::KeyFile { reason, .. } => name(reason),
        other => other,
    })
}

/// Creates a key file that only its owner can read, and puts the file on stable storage. An existing file is never
/// overwritten, since it may contain the only copy of a key.
///
/// # Errors
/// [`Error::Exists`], [`Error::File`].
pub fn create(path: &Path, key: &FileKey) -> Result<()> {
    let mode = FileMode::PRIVATE;
    let options = OutputOptions { mode, sync: true, regular_only: true, ..Default::default() };
    let mut file = OutputFile::create(path, options)?;
    file.write_all(to_text(key).as_bytes()).map_err(Error::file("write the key file", path))?;
    file.commit()
}

/// True for a regular file that users other than its owner can read, write or execute. For a key file, the caller should then
/// print a warning.
pub fn is_open_to_others(metadata: &Metadata) -> bool {
    metadata.is_file() && metadata.permissions().mode() & 0o077 != 0
}
