//! The files and folders that were given, and what lies in the folders.

use std::fs::{FileType, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockstep::quoted;
use walkdir::WalkDir;

use super::folder::Folder;
use crate::error::{Error, Result, failed};

/// A regular file to work on.
#[derive(Debug)]
pub(crate) struct Found {
    /// Its path, as messages show it.
    pub(crate) path: PathBuf,
    /// The folder in which it was found by walking, and its path below that; nothing for a file that was given itself.
    pub(crate) below: Option<(Arc<Folder>, PathBuf)>,
    /// The path of its folder below the output folder.
    pub(crate) place: PathBuf,
    pub(crate) metadata: Metadata,
}

/// A folder that the output has to have.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) mode: u32,
}

/// Everything that was found.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    pub(crate) files: Vec<Found>,
    /// Each folder after the one that holds it.
    pub(crate) places: Vec<Place>,
    /// What is left out on purpose, and why.
    pub(crate) skipped: Vec<(PathBuf, &'static str)>,
    /// Folders that cannot be read.
    pub(crate) failed: Vec<(PathBuf, Error)>,
}

impl Inputs {
    /// Looks at each path that was given and, with `recursive`, below folders. Symbolic links are not followed, and
    /// `output`, the identity of the output folder if it exists, is left out.
    ///
    /// # Errors
    /// A path that does not exist, a folder without `recursive`, standard input.
    pub(crate) fn find(given: &[PathBuf], recursive: bool, output: Option<(u64, u64)>) -> Result<Inputs> {
        let mut inputs = Inputs::default();
        for path in given {
            if path == Path::new("-") {
                return Err(failed("standard input has no name: with -O, give files or folders"));
            }
            let metadata = path.symlink_metadata().map_err(Error::io("read", path))?;
            if metadata.is_dir() {
                if !recursive {
                    let path = quoted(path);
                    return Err(failed(format!(
                        "{path} is a folder: add --recursive to work on what is in it"
                    )));
                }
                inputs.add_folder(path, output)?;
            } else {
                inputs.add(path, None, PathBuf::new(), metadata);
            }
        }
        Ok(inputs)
    }

    fn add(
        &mut self,
        path: &Path,
        below: Option<(Arc<Folder>, PathBuf)>,
        place: PathBuf,
        metadata: Metadata,
    ) {
        let path = path.to_owned();
        match why_skipped(metadata.file_type()) {
            Some(reason) => self.skipped.push((path, reason)),
            None => {
                if self.files.iter().all(|file| file.below.is_some()) && below.is_none() {
                    // The output folder itself, which exists by then.
                    self.places.push(Place { path: PathBuf::new(), mode: 0o777 });
                }
                self.files.push(Found { path, below, place, metadata });
            }
        }
    }

    /// A folder `a/b` becomes the folder `b` of the output. One without a name of its own, such as `.`, becomes the
    /// output folder itself.
    fn add_folder(&mut self, root: &Path, output: Option<(u64, u64)>) -> Result<()> {
        let folder = Arc::new(Folder::open(root, has_trailing_slash(root)).map_err(Error::io("open", root))?);
        if output == Some(folder.id().map_err(Error::io("open", root))?) {
            return Err(failed(format!(
                "{} is the output folder: choose another one, outside of the input",
                quoted(root)
            )));
        }
        let base = root.file_name().map(PathBuf::from).unwrap_or_default();
        let mut walk = WalkDir::new(root).follow_links(false).sort_by_file_name().into_iter();
        while let Some(entry) = walk.next() {
            let looked = entry.and_then(|entry| Ok((entry.metadata()?, entry)));
            let (metadata, entry) = match looked {
                Ok(looked) => looked,
                Err(error) => {
                    let path = error.path().unwrap_or(root).to_owned();
                    let error =
                        error.into_io_error().unwrap_or_else(|| io::Error::other("it cannot be read"));
                    self.failed.push((path.clone(), Error::io("read", &path)(error)));
                    continue;
                }
            };
            let relative = entry.path().strip_prefix(root).unwrap_or(Path::new("")).to_owned();
            if entry.depth() == 0 || metadata.is_dir() {
                if output == Some((metadata.dev(), metadata.ino())) {
                    self.skipped.push((entry.into_path(), "the output folder"));
                    walk.skip_current_dir();
                } else {
                    self.places.push(place(&base.join(&relative), &metadata));
                }
                continue;
            }
            let parent = base.join(relative.parent().unwrap_or(Path::new("")));
            self.add(entry.path(), Some((Arc::clone(&folder), relative.clone())), parent, metadata);
        }
        Ok(())
    }
}

/// The same permission bits as the input folder, but its owner can write to it.
fn place(path: &Path, metadata: &Metadata) -> Place {
    Place { path: path.to_owned(), mode: metadata.permissions().mode() & 0o777 | 0o700 }
}

/// By POSIX, a path that ends in a slash means the folder that a symbolic link points to.
fn has_trailing_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

fn why_skipped(kind: FileType) -> Option<&'static str> {
    match kind {
        _ if kind.is_file() => None,
        _ if kind.is_symlink() => Some("a symbolic link"),
        _ if kind.is_fifo() => Some("a FIFO"),
        _ if kind.is_socket() => Some("a socket"),
        _ => Some("a device"),
    }
}
