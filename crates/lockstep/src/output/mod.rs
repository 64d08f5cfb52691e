//! Output files that appear complete or not at all.
//!
//! If the name of the output exists, the output is refused without [`OutputOptions::force`]. With `force`, a single
//! rename replaces the existing regular file or symbolic link with the new file, which belongs to the caller. Symbolic
//! links to regular files are not followed. The content, owner and permissions of the replaced file are not kept.
//! Devices, FIFOs and symbolic links to them are opened and written directly.

mod folder;
mod place;
mod temporary;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use place::Place;
use temporary::{Failed, Temporary};

pub use temporary::TemporaryName;

/// How an output file is created.
#[derive(Debug, Clone, Copy, Default)]
pub struct OutputOptions {
    /// Replace an existing file or symbolic link, or overwrite a block device.
    pub force: bool,
    /// The permissions of a new file.
    pub mode: FileMode,
    /// Put the data on stable storage before the commit returns, and for a new file also its name in the folder. Pipes,
    /// terminals and all devices except block devices are refused.
    pub sync: bool,
    /// Refuse devices, FIFOs and symbolic links to them.
    pub regular_only: bool,
}

/// The permission bits of a new file, before the umask of the process is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMode(u32);

impl FileMode {
    /// The bits of an ordinary new file: 0666.
    pub const ORDINARY: FileMode = FileMode(0o666);
    /// For the owner only: 0600.
    pub const PRIVATE: FileMode = FileMode(0o600);

    /// The permission bits of a regular file, without set-user-ID, set-group-ID and the sticky bit; for other files
    /// [`FileMode::ORDINARY`].
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn of_input(input: &File) -> Result<FileMode> {
        let metadata = input.metadata().map_err(Error::Read)?;
        let permissions = metadata.permissions().mode() & 0o777;
        Ok(if metadata.is_file() { FileMode(permissions) } else { FileMode::ORDINARY })
    }
}

impl Default for FileMode {
    fn default() -> FileMode {
        FileMode::ORDINARY
    }
}

/// A file that is being written. [`commit`](OutputFile::commit) gives the file its final name. If the value is dropped
/// without a commit, no file remains.
///
/// Until the commit the data are in a temporary file in the same folder. Only the owner can read this file. A file that
/// is not regular (a terminal, a pipe, `/dev/null`) is written directly.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Temporary(Temporary),
    Direct { file: File, sync: bool },
}

impl OutputFile {
    /// Starts an output file.
    ///
    /// The call opens the folder. Later operations use the open folder and do not resolve its path again. A trial with
    /// an empty file detects file systems that do not support the operations of the commit. For a FIFO the call waits
    /// until another process opens it for reading.
    ///
    /// # Errors
    /// [`Error::Exists`] if the name exists and `force` is not set, [`Error::File`].
    pub fn create(path: &Path, options: OutputOptions) -> Result<OutputFile> {
        OutputFile::start(Place::find(path, options)?, path, options)
    }

    /// Starts a file in a folder that is open for reading. The name of the file is the last component of `path`. The
    /// rest of `path` is used only in error messages.
    ///
    /// # Errors
    /// The errors of [`OutputFile::create`].
    pub fn create_in(folder: OwnedFd, path: &Path, options: OutputOptions) -> Result<OutputFile> {
        OutputFile::start(Place::find_in(folder, path, options)?, path, options)
    }

    fn start(place: Place, path: &Path, options: OutputOptions) -> Result<OutputFile> {
        let kind = match place.open_special()? {
            Some(file) => Kind::Direct { file, sync: options.sync },
            None => Kind::Temporary(place.start()?),
        };
        Ok(OutputFile { path: path.into(), kind })
    }

    /// Checks in advance, as far as possible, whether [`create`](OutputFile::create) and [`commit`](OutputFile::commit)
    /// will succeed. The check leaves no file behind and does not open a FIFO.
    ///
    /// # Errors
    /// The errors of [`create`](OutputFile::create).
    pub fn check(path: &Path, options: OutputOptions) -> Result<()> {
        Place::find(path, options)?.check()
    }

    /// Gives the file its final name. With [`OutputOptions::sync`], the file is on stable storage when the call
    /// returns.
    ///
    /// # Errors
    /// [`Error::Exists`] if another file with this name has been created meanwhile and `force` is not set,
    /// [`Error::File`]. After an error the temporary file is removed. There is one exception: if only the sync of the
    /// folder fails, the file remains under its final name.
    pub fn commit(self) -> Result<()> {
        let OutputFile { path, kind } = self;
        match kind {
            Kind::Direct { file, sync: true } => file.sync_all().map_err(Error::file("sync", path)),
            Kind::Direct { .. } => Ok(()),
            Kind::Temporary(temporary) => temporary.place().map_err(|failed| place_error(path, failed)),
        }
    }

    /// The temporary file that contains the bytes until the commit; `None` if they are written directly.
    pub fn temporary(&self) -> Option<&TemporaryName> {
        match &self.kind {
            Kind::Temporary(temporary) => Some(temporary.name()),
            Kind::Direct { .. } => None,
        }
    }

    /// True if the output is not a regular file, so the data are written directly.
    pub fn is_direct(&self) -> bool {
        matches!(self.kind, Kind::Direct { .. })
    }

    /// The file that is being written.
    pub fn as_file(&self) -> &File {
        match &self.kind {
            Kind::Temporary(temporary) => temporary.file(),
            Kind::Direct { file, .. } => file,
        }
    }
}

/// Removes the temporary files that killed processes of this user have left in a folder. Files of running processes are
/// locked and are kept. Returns the number of files removed.
///
/// # Errors
/// If the folder cannot be read. A file that cannot be removed is skipped.
pub fn remove_abandoned(folder: impl AsFd) -> io::Result<usize> {
    Ok(temporary::remove_abandoned(folder.as_fd())?)
}

fn place_error(path: PathBuf, failed: Failed) -> Error {
    match failed {
        Failed::Mode(error) => Error::file("set the mode of", path)(error.into()),
        Failed::Sync(error) => Error::file("sync", path)(error.into()),
        Failed::Rename(rustix::io::Errno::EXIST) => Error::Exists { path },
        Failed::Rename(error) => Error::file("rename the finished file to", path)(error.into()),
        Failed::Taken => Error::file("rename the finished file to", path)(io::Error::other(
            "another process removed or replaced the temporary file: use a folder in which nobody else may write",
        )),
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.as_file().write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.as_file().write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
