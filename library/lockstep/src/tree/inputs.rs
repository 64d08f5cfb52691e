//! The input files and folders, and the content of the folders. Each file gets the name of its output.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, Stat, statat};

use super::error::{Error, Result, failed};
use super::{Direction, Options, names};
use crate::folder::{Folder, Id, id};
use crate::quoted::quoted;

/// Maximum length in bytes of the path of a folder below the output folder: the limit of Linux on paths. The path of
/// each folder is kept in memory.
pub(super) const MAX_PATH: usize = 4096;
/// Maximum number of folders in the path of a folder below an input folder. Each access to a folder opens all of them.
pub(super) const MAX_DEPTH: usize = 256;

/// A regular file to process, and its output.
#[derive(Debug)]
pub(super) struct Job {
    /// The folder of the output: an index into [`Inputs::places`].
    pub(super) place: usize,
    /// The name of the input in its folder.
    pub(super) name: OsString,
    /// The name of the output in its folder.
    pub(super) output_name: OsString,
    /// The path on the command line, for a file that is itself named there.
    pub(super) given: Option<PathBuf>,
    /// Length in bytes.
    pub(super) len: u64,
    pub(super) id: Id,
    /// True if the output exists.
    pub(super) exists: bool,
    /// True if an existing output may be replaced.
    pub(super) replace: bool,
}

impl Job {
    /// The path of the input for messages.
    pub(super) fn path(&self, places: &[Place]) -> PathBuf {
        self.given.clone().unwrap_or_else(|| places[self.place].shown(&self.name))
    }

    /// The path of the output below the output folder.
    pub(super) fn relative(&self, places: &[Place]) -> PathBuf {
        places[self.place].path.join(&self.output_name)
    }

    /// The path of the output.
    pub(super) fn output(&self, output_dir: &Path, places: &[Place]) -> PathBuf {
        output_dir.join(self.relative(places))
    }
}

/// A folder that the command line names. It is opened for each use, since there may be more folders than the limit on
/// open files permits.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    /// The path of its outputs below the output folder.
    base: PathBuf,
    id: Id,
}

impl Root {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the folder. Returns an error if another folder has replaced it.
    pub(super) fn open(&self) -> io::Result<Folder> {
        let folder = Folder::open(&self.path, has_trailing_slash(&self.path))?;
        if folder.id()? != self.id {
            return Err(io::Error::other("another folder has taken the place of the input folder"));
        }
        Ok(folder)
    }
}

/// A folder to create for the outputs.
#[derive(Debug)]
pub(super) struct Place {
    /// Its path below the output folder.
    pub(super) path: PathBuf,
    pub(super) mode: u32,
    /// The folder on the command line that contains its inputs; `None` for files that are themselves named there.
    pub(super) root: Option<Arc<Root>>,
    /// True if the folder exists in the output folder.
    pub(super) exists: bool,
    /// True if the file system does not distinguish its name from that of another folder: nothing is written to it.
    pub(super) is_refused: bool,
}

impl Place {
    /// The path of the input folder below the root.
    pub(super) fn relative(&self) -> &Path {
        let base = self.root.as_ref().map_or(Path::new(""), |root| &root.base);
        self.path.strip_prefix(base).unwrap_or(&self.path)
    }

    /// The path of an entry of the input folder, for messages. An empty name means the folder itself.
    pub(super) fn shown(&self, name: &OsStr) -> PathBuf {
        let mut path = self.root.as_ref().map_or_else(PathBuf::new, |root| root.path.clone());
        for part in [self.relative(), Path::new(name)] {
            if !part.as_os_str().is_empty() {
                path.push(part);
            }
        }
        path
    }
}

/// All files and folders that were found.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    pub(super) jobs: Vec<Job>,
    /// Each folder comes after its parent.
    pub(super) places: Vec<Place>,
    /// Files that are skipped, with the reason.
    pub(super) skipped: Vec<(PathBuf, &'static str)>,
    /// The entries of input folders that are skipped: the index of the folder in `places`, and the name.
    pub(super) skipped_entries: Vec<(usize, OsString)>,
    /// Files that cannot be read.
    pub(super) failed: Vec<(PathBuf, Error)>,
}

impl Inputs {
    /// Lists the paths of the command line and, with [`Options::recursive`], the content of folders. Symbolic links are not
    /// followed. If an input folder contains the output folder, whose identity is `output`, the output folder is
    /// skipped, as is a file without an output name in a folder.
    ///
    /// # Errors
    /// If a path does not exist, means standard input, is the output folder or has no output name; if a path is a folder, but
    /// `recursive` is false.
    pub(super) fn find(
        given: &[PathBuf],
        direction: Direction,
        options: &Options<'_>,
        output: Option<Id>,
    ) -> Result<Inputs> {
        let mut search = Search { direction, options, output, found: Inputs::default() };
        // The folder of the files that the command line names: the output folder itself.
        let mut place = None;
        for path in given {
            if path == Path::new("-") {
                return Err(failed("standard input has no name: with -O, give files or folders"));
            }
            let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_err(Error::io("read", path))?;
            let name = path.file_name().unwrap_or_default();
            let shown = quoted(path);
            if is_folder(&stat) {
                if !options.recursive {
                    return Err(failed(format!(
                        "{shown} is a folder: add --recursive to process its content"
                    )));
                }
                search.add_folder(path, &stat)?;
            } else if let Some(reason) = why_skipped(&stat) {
                search.found.skipped.push((path.clone(), reason));
            } else if names::of_output(direction, name).is_none() {
                return Err(failed(format!("{shown} does not end in .enc: {}", options.advice.name)));
            } else {
                let place = *place.get_or_insert_with(|| search.add_place(PathBuf::new(), 0o777, None));
                search.add(place, name.to_owned(), Some(path.clone()), &stat);
            }
        }
        Ok(search.found)
    }

    /// The number of folders on the command line, and one more if it names files.
    pub(super) fn roots(&self) -> usize {
        self.places.iter().filter(|place| place.relative().as_os_str().is_empty()).count()
    }
}

struct Search<'a> {
    direction: Direction,
    options: &'a Options<'a>,
    output: Option<Id>,
    found: Inputs,
}

impl Search<'_> {
    fn add(&mut self, place: usize, name: OsString, given: Option<PathBuf>, stat: &Stat) {
        let Some(output_name) = names::of_output(self.direction, &name) else {
            return self.skip(place, name, "a file whose name does not end in .enc");
        };
        let (len, id, replace) = (stat.st_size.cast_unsigned(), id(stat), self.options.force);
        self.found.jobs.push(Job { place, name, output_name, given, len, id, exists: false, replace });
    }

    fn add_place(&mut self, path: PathBuf, mode: u32, root: Option<Arc<Root>>) -> usize {
        self.found.places.push(Place { path, mode, root, exists: false, is_refused: false });
        self.found.places.len() - 1
    }

    /// Adds a folder and its content. An input folder `a/b` becomes the folder `b` in the output folder. An input
    /// folder without a name, such as `.`, becomes the output folder itself.
    fn add_folder(&mut self, path: &Path, stat: &Stat) -> Result<()> {
        if self.output == Some(id(stat)) {
            return Err(failed(format!(
                "{} is the output folder: choose another one, outside of the input",
                quoted(path)
            )));
        }
        let base = path.file_name().map(PathBuf::from).unwrap_or_default();
        let root = Arc::new(Root { path: path.to_owned(), base: base.clone(), id: id(stat) });
        let folder = root.open().map_err(Error::io("open", path))?;
        // The folders that are not listed yet. The last of these folders is listed next.
        let mut pending = vec![self.add_place(base, folder_mode(stat), Some(root))];
        while let Some(place) = pending.pop() {
            let first = self.found.places.len();
            match folder.list(self.found.places[place].relative()) {
                Ok(entries) => {
                    entries.into_iter().for_each(|(name, stat)| self.add_entry(place, name, stat));
                }
                Err(error) => self.fail(place, OsStr::new(""), |path| Error::io("read", path)(error)),
            }
            pending.extend((first..self.found.places.len()).rev());
        }
        Ok(())
    }

    /// Adds an entry of an input folder: a file, or a folder whose content is not listed yet.
    fn add_entry(&mut self, place: usize, name: OsString, stat: rustix::io::Result<Stat>) {
        let parent = &self.found.places[place];
        let stat = match stat {
            Ok(stat) => stat,
            Err(error) => return self.fail(place, &name, |path| Error::io("read", path)(error)),
        };
        if is_folder(&stat) {
            if self.output == Some(id(&stat)) {
                return self.skip(place, name, "the output folder");
            }
            let path = parent.path.join(&name);
            if path.as_os_str().len() > MAX_PATH || parent.relative().iter().count() >= MAX_DEPTH {
                return self.fail(place, &name, |_| too_deep());
            }
            let root = parent.root.clone();
            self.add_place(path, folder_mode(&stat), root);
        } else if let Some(reason) = why_skipped(&stat) {
            self.skip(place, name, reason);
        } else {
            self.add(place, name, None, &stat);
        }
    }

    fn skip(&mut self, place: usize, name: OsString, reason: &'static str) {
        self.found.skipped.push((self.found.places[place].shown(&name), reason));
        self.found.skipped_entries.push((place, name));
    }

    fn fail(&mut self, place: usize, name: &OsStr, error: impl FnOnce(&Path) -> Error) {
        let path = self.found.places[place].shown(name);
        let error = error(&path);
        self.found.failed.push((path, error));
    }
}

fn too_deep() -> Error {
    failed(format!(
        "the folder has a path of more than {MAX_PATH} bytes or of more than {MAX_DEPTH} folders, and its content is not \
         processed: move it to a shorter path, or archive it with tar and process the archive"
    ))
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
