//! The input files and folders, and the content of the folders.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockstep::quoted;
use rustix::fs::{AtFlags, CWD, FileType, Stat, statat};

use super::folder::{Folder, Id, id};
use crate::error::{Error, Result, failed};

/// A regular file to process.
#[derive(Debug)]
pub(crate) struct Found {
    /// The path for messages.
    pub(crate) path: PathBuf,
    /// The folder named on the command line in which the file was found, and the path of the file below this folder.
    /// `None` for a file that is itself named on the command line.
    pub(crate) below: Option<(Arc<Root>, PathBuf)>,
    /// The folder of the output file, as a path below the output folder.
    pub(crate) place: PathBuf,
    /// Length in bytes.
    pub(crate) len: u64,
    pub(crate) id: Id,
}

/// A folder that the command line names. It is opened for each use, since there may be more folders than the limit on
/// open files permits.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    id: Id,
}

impl Root {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the folder. Returns an error if another folder has replaced it.
    pub(crate) fn open(&self) -> io::Result<Folder> {
        let folder = Folder::open(&self.path, has_trailing_slash(&self.path))?;
        if folder.id()? != self.id {
            return Err(io::Error::other("another folder has taken the place of the input folder"));
        }
        Ok(folder)
    }
}

/// A folder to create for the outputs: its path below the output folder, and its permission bits.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) mode: u32,
}

/// All files and folders that were found.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    pub(crate) files: Vec<Found>,
    /// Each folder comes after its parent.
    pub(crate) places: Vec<Place>,
    /// Files that are skipped, with the reason.
    pub(crate) skipped: Vec<(PathBuf, &'static str)>,
    /// Files that cannot be read.
    pub(crate) failed: Vec<(PathBuf, Error)>,
}

impl Inputs {
    /// Lists the paths of the command line and, with `recursive`, the content of folders. Symbolic links are not
    /// followed. If an input folder contains the output folder, whose identity is `output`, the output folder is
    /// skipped.
    ///
    /// # Errors
    /// If a path does not exist, means standard input or is the output folder; if a path is a folder, but `recursive`
    /// is false.
    pub(crate) fn find(given: &[PathBuf], recursive: bool, output: Option<Id>) -> Result<Inputs> {
        let mut inputs = Inputs::default();
        for path in given {
            if path == Path::new("-") {
                return Err(failed("standard input has no name: with -O, give files or folders"));
            }
            let look = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from);
            let stat = look.map_err(Error::io("read", path))?;
            if is_folder(&stat) {
                if !recursive {
                    let path = quoted(path);
                    return Err(failed(format!(
                        "{path} is a folder: add --recursive to process its content"
                    )));
                }
                inputs.add_folder(path, &stat, output)?;
            } else {
                inputs.add(path, None, PathBuf::new(), &stat);
            }
        }
        if inputs.files.iter().any(|file| file.below.is_none()) {
            // The empty path means the output folder itself.
            inputs.places.push(Place { path: PathBuf::new(), mode: 0o777 });
        }
        Ok(inputs)
    }

    fn add(&mut self, path: &Path, below: Option<(Arc<Root>, PathBuf)>, place: PathBuf, stat: &Stat) {
        let path = path.to_owned();
        match why_skipped(stat) {
            Some(reason) => self.skipped.push((path, reason)),
            None => {
                let (len, id) = (stat.st_size.cast_unsigned(), id(stat));
                self.files.push(Found { path, below, place, len, id });
            }
        }
    }

    /// Adds a folder and its content. An input folder `a/b` becomes the folder `b` in the output folder. An input
    /// folder without a name, such as `.`, becomes the output folder itself.
    fn add_folder(&mut self, path: &Path, stat: &Stat, output: Option<Id>) -> Result<()> {
        if output == Some(id(stat)) {
            return Err(failed(format!(
                "{} is the output folder: choose another one, outside of the input",
                quoted(path)
            )));
        }
        let root = Arc::new(Root { path: path.to_owned(), id: id(stat) });
        let folder = root.open().map_err(Error::io("open", path))?;
        let base = path.file_name().map(PathBuf::from).unwrap_or_default();
        self.places.push(Place { path: base.clone(), mode: folder_mode(stat) });
        // The folders that are not listed yet, as paths below the root. The last of these folders is listed next.
        let mut pending = vec![PathBuf::new()];
        while let Some(relative) = pending.pop() {
            let entries = match folder.list(&relative) {
                Ok(entries) => entries,
                Err(error) => {
                    let path = path.join(&relative);
                    self.failed.push((path.clone(), Error::io("read", &path)(error)));
                    continue;
                }
            };
            let mut folders = Vec::new();
            for (name, stat) in entries {
                let below = relative.join(&name);
                let shown = path.join(&below);
                match stat {
                    Ok(stat) if is_folder(&stat) && output == Some(id(&stat)) => {
                        self.skipped.push((shown, "the output folder"));
                    }
                    Ok(stat) if is_folder(&stat) => {
                        self.places.push(Place { path: base.join(&below), mode: folder_mode(&stat) });
                        folders.push(below);
                    }
                    Ok(stat) => {
                        self.add(&shown, Some((Arc::clone(&root), below)), base.join(&relative), &stat)
                    }
                    Err(error) => self.failed.push((shown.clone(), Error::io("read", &shown)(error))),
                }
            }
            pending.extend(folders.into_iter().rev());
        }
        Ok(())
    }
}

/// The permission bits of the input folder, with all permissions for the owner.
fn folder_mode(stat: &Stat) -> u32 {
    stat.st_mode & 0o777 | 0o700
}

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// If the path of a symbolic link has a trailing slash, POSIX requires that the link is followed.
pub(super) fn has_trailing_slash(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(b"/")
}

fn why_skipped(stat: &Stat) -> Option<&'static str> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => None,
        FileType::Symlink => Some("a symbolic link"),
        FileType::Fifo => Some("a FIFO"),
        FileType::Socket => Some("a socket"),
        _ => Some("a device"),
    }
}
