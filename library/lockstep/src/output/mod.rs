//! Output files that appear complete or not at all.
//!
//! If the name of the output exists, the output is refused without [`OutputOptions::force`]. With `force`, a single
//! rename replaces the existing regular file or symbolic link with the new file, which belongs to the caller. Symbolic
//! links to regular files are not followed. The content, owner and permissions of the replaced file are not kept.
//! Devices, FIFOs and symbolic links to them are opened and written directly.

mod destination;
mod holes;
mod name;
mod temporary;
#[cfg(test)]
mod tests;

use std::collections::hash_map::{Entry, HashMap};
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;

use lockstep_core::share::lock;

use crate::creator::Creator;
use crate::error::{Error, Result};
use crate::folder::{Folder, Id};
use destination::Destination;
pub(crate) use destination::check_folder;
use holes::Holes;
pub(crate) use temporary::remove_abandoned;
use temporary::{Outcome, Temporary};

/// The options for the creation of an output file.
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
    /// Whether blocks of zeros become holes.
    pub sparse: Sparse,
}

/// What happens if the name of an output exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OnExisting {
    /// The output replaces the file.
    Replace,
    /// The output fails.
    Fail,
    /// The output fails. On a file system that can neither rename without replacing nor make hard links, the name is looked up
    /// before the rename. If another process creates a file with this name between the lookup and the rename, this file is lost.
    FailByLookup,
}

/// The results of trials in several folders. One trial is enough for all files of a folder: if the file system stops supporting an
/// operation after the trial, the commit returns an error.
#[derive(Debug, Default)]
pub(crate) struct Trials(Mutex<HashMap<(Id, OnExisting), Outcome>>);

impl Trials {
    fn get(&self, destination: &Destination) -> Result<Outcome> {
        // The keys of the map are the identities of folders instead of their paths, since another process may replace the folder at
        // a path.
        let id = destination.folder.id().map_err(Error::file("create", &destination.path))?;
        let mut known = lock(&self.0);
        Ok(match known.entry((id, destination.existing)) {
            Entry::Occupied(outcome) => *outcome.get(),
            Entry::Vacant(place) => *place.insert(destination.trial("create")?),
        })
    }
}

/// Whether a new file has holes. A hole takes no space on the disk and is read as zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sparse {
    /// Each block of 4096 zeros, at a multiple of 4096 in the file, becomes a part of a hole. Anyone who can see the disk usage of
    /// the file can compute the number of these blocks from it.
    #[default]
    Always,
    /// All bytes are written, so that the file system allocates space for the whole file.
    Never,
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
/// Until the commit the file has no name (on Linux, if the file system supports this), or a temporary name in the same folder.
/// During this time, only the owner can read the file. A file without a name does not remain even if the process is killed. A
/// temporary name is also removed when the process ends by `exit` or by a return from `main`. A file that is not regular (a
/// terminal, a pipe, `/dev/null`) is written directly.
///
/// After a fork, the child process can neither write nor commit the file, and dropping the value has no effect there.
#[derive(Debug)]
pub struct OutputFile {
    destination: Destination,
    file: File,
    /// `None` if the output is not a regular file.
    temporary: Option<Temporary>,
    /// `None` if blocks of zeros are written like all others.
    holes: Option<Holes>,
    creator: Creator,
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
        OutputFile::start(Destination::find(path, options)?, &Trials::default())
    }

    /// Starts a file in an open folder. The name of the file is the last component of `path`. The components before it are used
    /// only in error messages. `existing` replaces [`OutputOptions::force`].
    ///
    /// # Errors
    /// The errors of [`OutputFile::create`].
    pub(crate) fn create_in(
        folder: Folder,
        path: &Path,
        options: OutputOptions,
        existing: OnExisting,
        trials: &Trials,
    ) -> Result<OutputFile> {
        OutputFile::start(Destination::find_in(folder, path, options, existing)?, trials)
    }

    fn start(destination: Destination, trials: &Trials) -> Result<OutputFile> {
        let (file, temporary, holes) = match destination.open_special()? {
            Some(file) => (file, None, None),
            None => {
                let started = Temporary::start(&destination.folder, trials.get(&destination)?);
                let (file, temporary) = started.map_err(Error::file("create", &destination.path))?;
                let holes = (destination.options.sparse == Sparse::Always).then(Holes::default);
                (file, Some(temporary), holes)
            }
        };
        Ok(OutputFile { destination, file, temporary, holes, creator: Creator::current() })
    }

    /// Checks in advance, as far as possible, whether [`create`](OutputFile::create) and [`commit`](OutputFile::commit)
    /// will succeed. The check leaves no file behind and does not open a FIFO.
    ///
    /// # Errors
    /// The errors of [`create`](OutputFile::create).
    pub fn check(path: &Path, options: OutputOptions) -> Result<()> {
        Destination::find(path, options)?.check()
    }

    /// Gives the file its final name. With [`OutputOptions::sync`], the file is on stable storage when the call
    /// returns.
    ///
    /// # Errors
    /// [`Error::Exists`] if another file with this name has been created meanwhile and `force` is not set, [`Error::File`] for
    /// other failures, and in a child process of the process that created the file. After an error no file remains. There is one
    /// exception: if only the sync of the folder fails, the file remains under its final name.
    pub fn commit(mut self) -> Result<()> {
        self.flush().map_err(Error::file("finish", &self.destination.path))?;
        let OutputFile { destination, file, temporary, .. } = self;
        match temporary {
            Some(temporary) => destination.place(temporary, &file),
            None if destination.options.sync => {
                file.sync_all().map_err(Error::file("sync", &destination.path))
            }
            None => Ok(()),
        }
    }

    /// True if the output is not a regular file, so the data are written directly.
    pub fn is_direct(&self) -> bool {
        self.temporary.is_none()
    }

    /// The file that is being written. A file that ends with a hole gets its full length only by a flush.
    pub fn as_file(&self) -> &File {
        &self.file
    }
}

/// Blocks of zeros become holes, as [`OutputOptions::sparse`] requests.
impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.creator.check()?;
        match &mut self.holes {
            Some(holes) => holes.write(&self.file, slices),
            None => self.file.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.creator.check()?;
        self.holes.as_mut().map_or(Ok(()), |holes| holes.finish(&self.file))
    }
}
