//! Output files that appear complete or not at all.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// A file being written. [`commit`](OutputFile::commit) makes it appear under its name; dropped without that, it was
/// never there.
///
/// Until then it is a temporary file in the same folder that only its owner can read. What is not a regular file (a
/// terminal, a pipe, `/dev/null`) is written directly.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Temporary { file: NamedTempFile, target: PathBuf, permissions: Permissions, force: bool },
    Direct(File),
}

impl OutputFile {
    /// Starts a file.
    ///
    /// An existing regular file is replaced, and a block device overwritten, if `force` says so. The file is complete
    /// and unchanged until the commit; the new one takes over its permissions and, where the process may give it
    /// away, its owner and group. A symbolic link to it is followed; one to nothing is replaced.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::File`].
    pub fn create(path: &Path, force: bool) -> Result<OutputFile> {
        let existing = match fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::file("create", path)(error)),
        };
        let kind = match existing {
            Some(metadata) if metadata.is_file() => {
                if !force {
                    return Err(Error::Exists { path: path.into() });
                }
                // What could not be opened for writing is not to be replaced behind its owner's back.
                OpenOptions::new().write(true).open(path).map_err(Error::file("overwrite", path))?;
                let target = fs::canonicalize(path).map_err(Error::file("create", path))?;
                temporary(path, target, Some(&metadata), true)?
            }
            Some(metadata) => {
                if is_block_device(&metadata) && !force {
                    // A disk has content as a file has.
                    return Err(Error::Exists { path: path.into() });
                }
                // Not truncated, not created: it is there, and opening a folder says what is wrong.
                let file =
                    OpenOptions::new().write(true).open(path).map_err(Error::file("write to", path))?;
                Kind::Direct(file)
            }
            None if fs::symlink_metadata(path).is_ok() && !force => {
                // A link to nothing.
                return Err(Error::Exists { path: path.into() });
            }
            None => temporary(path, path.into(), None, force)?,
        };
        Ok(OutputFile { path: path.into(), kind })
    }

    /// Makes the file appear under its name, with `sync` only after it is safe on the disk.
    ///
    /// # Errors
    /// [`Error::Exists`] if another file has taken the name meanwhile and `force` was not said, [`Error::File`]. The
    /// temporary file is removed then.
    pub fn commit(self, sync: bool) -> Result<()> {
        let OutputFile { path, kind } = self;
        match kind {
            Kind::Direct(file) => {
                // Pipes and terminals have nothing to sync.
                if sync && file.metadata().is_ok_and(|metadata| metadata.is_file()) {
                    file.sync_all().map_err(Error::file("sync", path))?;
                }
                Ok(())
            }
            Kind::Temporary { file, target, permissions, force } => {
                file.as_file().set_permissions(permissions).map_err(Error::file("set the mode of", &path))?;
                if sync {
                    file.as_file().sync_all().map_err(Error::file("sync", &path))?;
                }
                let persisted = if force { file.persist(&target) } else { file.persist_noclobber(&target) };
                persisted.map_err(|failed| match failed.error.kind() {
                    io::ErrorKind::AlreadyExists => Error::Exists { path: path.clone() },
                    _ => Error::file("rename the finished file to", &path)(failed.error),
                })?;
                if sync {
                    let folder = folder_of(&target);
                    File::open(folder)
                        .and_then(|folder| folder.sync_all())
                        .map_err(Error::file("sync", folder))?;
                }
                Ok(())
            }
        }
    }

    /// Makes the file readable by its owner alone when it appears, whatever the one that it replaces was.
    pub fn keep_private(&mut self) {
        #[cfg(unix)]
        if let Kind::Temporary { permissions, .. } = &mut self.kind {
            *permissions = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        }
    }

    /// Where the bytes go until the commit; nothing if they are written directly.
    pub fn temporary_path(&self) -> Option<&Path> {
        match &self.kind {
            Kind::Temporary { file, .. } => Some(file.path()),
            Kind::Direct(_) => None,
        }
    }

    /// True if it is written directly, since it is no regular file.
    pub fn is_direct(&self) -> bool {
        matches!(self.kind, Kind::Direct(_))
    }

    /// The file being written.
    pub fn as_file(&self) -> &File {
        match &self.kind {
            Kind::Temporary { file, .. } => file.as_file(),
            Kind::Direct(file) => file,
        }
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

/// A temporary file beside the target, which is to have owner and permissions of the file that it replaces, or else
/// those that a new file gets here.
fn temporary(path: &Path, target: PathBuf, replaced: Option<&fs::Metadata>, force: bool) -> Result<Kind> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".lockstep-").suffix(".tmp");
    let folder = folder_of(&target);
    let permissions = match replaced {
        Some(metadata) => without_special_bits(metadata.permissions()),
        None => new_file_permissions(folder).map_err(Error::file("create", path))?,
    };
    // 0600 from the beginning: nobody else may open it while it is incomplete, or before it has the mode of a private
    // file that it replaces.
    let file = builder.tempfile_in(folder).map_err(Error::file("create", path))?;
    let permissions = match replaced {
        Some(metadata) => keep_owner(file.as_file(), metadata, permissions),
        None => permissions,
    };
    Ok(Kind::Temporary { file, target, permissions, force })
}

/// Gives the file to the owner and group of the one it replaces. Where only the owner of the process may have it, the
/// permissions of the group, which is another one then, are left out.
#[cfg(unix)]
fn keep_owner(file: &File, replaced: &fs::Metadata, permissions: Permissions) -> Permissions {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let is_kept = |now: fs::Metadata| (now.uid(), now.gid()) == (replaced.uid(), replaced.gid());
    if file.metadata().is_ok_and(is_kept) || fchown(file, Some(replaced.uid()), Some(replaced.gid())).is_ok()
    {
        return permissions;
    }
    match fchown(file, None, Some(replaced.gid())) {
        Ok(()) => permissions,
        Err(_) => Permissions::from_mode(permissions.mode() & !0o070),
    }
}

#[cfg(not(unix))]
fn keep_owner(_file: &File, _replaced: &fs::Metadata, permissions: Permissions) -> Permissions {
    permissions
}

/// The mode of the file replaced, less set-user-ID and its like, which are not to pass to other content.
#[cfg(unix)]
fn without_special_bits(permissions: Permissions) -> Permissions {
    use std::os::unix::fs::PermissionsExt;
    Permissions::from_mode(permissions.mode() & 0o777)
}

#[cfg(not(unix))]
fn without_special_bits(permissions: Permissions) -> Permissions {
    permissions
}

/// The permissions that any new file gets in this folder, by the system's umask and defaults: those of an empty file
/// made for the question.
fn new_file_permissions(folder: &Path) -> io::Result<Permissions> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".lockstep-").suffix(".tmp");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    Ok(builder.tempfile_in(folder)?.as_file().metadata()?.permissions())
}

#[cfg(unix)]
fn is_block_device(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_block_device(&metadata.file_type())
}

#[cfg(not(unix))]
fn is_block_device(_metadata: &fs::Metadata) -> bool {
    false
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}
