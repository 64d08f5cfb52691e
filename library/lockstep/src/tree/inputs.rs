//! The input files and folders, and the content of the folders. Each file gets the name of its output.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, Stat, statat};

use super::{Direction, Options};
use crate::error::{Error, Result, ensure, failed};
use crate::folder::{Folder, Id, id};
use crate::quoted::quoted;

/// Maximum length in bytes of the path of a folder below the output folder: the limit of Linux on paths. The path of
/// each folder is kept in memory.
pub(super) const MAX_PATH: usize = 4096;
/// Maximum number of folders in the path of a folder below an input folder. Each access to a folder opens all folders of its path,
/// one after the other.
pub(super) const MAX_DEPTH: usize = 256;

/// The end of the name of an encrypted file.
const SUFFIX: &[u8] = b".enc";

/// A regular file to process, and its output.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) root: Arc<Root>,
    /// The path of the input below the root.
    pub(super) input: PathBuf,
    /// The path of the output below the output folder.
    pub(super) output: PathBuf,
    /// Length in bytes.
    pub(super) len: u64,
    pub(super) id: Id,
    /// True if the output exists.
    pub(super) exists: bool,
    /// True if an existing output may be replaced.
    pub(super) replace: bool,
    /// The reason why the output cannot be written.
    pub(super) error: Option<Error>,
}

impl Job {
    /// The path of the input for messages.
    pub(super) fn path(&self) -> PathBuf {
        self.root.path.join(&self.input)
    }

    /// The folder of the output, as a path below the output folder.
    pub(super) fn folder(&self) -> &Path {
        self.output.parent().unwrap_or(Path::new(""))
    }

    /// Opens the input, which must still be a regular file.
    pub(super) fn open(&self) -> Result<File> {
        let opened = self.root.open().and_then(|folder| folder.open_file(&self.input));
        opened.map_err(|error| Error::file("open", &self.path())(error))
    }
}

/// A folder that the caller names, or the folder of a file that the caller names. It is opened for each use, since there may be
/// more folders than the limit on open files permits.
#[derive(Debug)]
pub(super) struct Root {
    /// Empty for the current folder.
    pub(super) path: PathBuf,
    /// The identity of the folder; `None` if the caller names a file in it.
    id: Option<Id>,
}

impl Root {
    /// The folder of a file that the caller names. Symbolic links in the path of the folder are followed, since the user has chosen
    /// them.
    fn of_file(path: &Path) -> Root {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        // The path gets a slash at its end, so that a symbolic link is followed.
        let path = parent.map(|parent| parent.join("")).unwrap_or_default();
        Root { path, id: None }
    }

    /// Opens the folder. Returns an error if another folder has replaced it.
    pub(super) fn open(&self) -> io::Result<Folder> {
        let path = if self.path.as_os_str().is_empty() { Path::new(".") } else { &self.path };
        let folder = Folder::open(path, has_trailing_slash(path))?;
        if let Some(id) = self.id
            && folder.id()? != id
        {
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
    /// The path of its inputs below the root.
    pub(super) input: PathBuf,
    pub(super) mode: u32,
    /// The folder that the caller names and that contains its inputs; `None` for files that the caller names.
    pub(super) root: Option<Arc<Root>>,
    /// True if the folder exists in the output folder.
    pub(super) exists: bool,
    /// True if the file system does not distinguish its name from the name of another folder. Nothing is then written to it.
    pub(super) is_refused: bool,
}

impl Place {
    /// The path of an entry of the input folder, for messages. An empty name means the folder itself.
    pub(super) fn shown(&self, name: &OsStr) -> PathBuf {
        let root = self.root.as_ref().map_or(Path::new(""), |root| &root.path);
        let parts = [root, &self.input, Path::new(name)].into_iter();
        parts.filter(|part| !part.as_os_str().is_empty()).collect()
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
    /// The entries of input folders that are skipped, as paths below the output folder.
    pub(super) skipped_entries: Vec<PathBuf>,
    /// Files that cannot be read.
    pub(super) failed: Vec<(PathBuf, Error)>,
}

impl Inputs {
    /// Lists the given paths and, with [`Options::recursive`], the content of folders. Symbolic links are not followed. If an input
    /// folder contains the output folder, whose identity is `output`, the output folder is skipped. When files are decrypted, a
    /// file in a folder is also skipped if its name is not the name of an encrypted file: see [`decrypted`].
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
        let mut names_files = false;
        for path in given {
            let stdin_error = || failed("standard input has no name for its output: give files or folders");
            ensure(path != Path::new("-"), stdin_error)?;
            let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_err(Error::file("read", path))?;
            let name = path.file_name().unwrap_or_default();
            let shown = quoted(path);
            if is_folder(&stat) {
                let message = || format!("{shown} is a folder: add --recursive to process its content");
                ensure(options.recursive, || failed(message()))?;
                search.add_folder(path, &stat)?;
            } else if let Some(reason) = why_skipped(&stat) {
                search.found.skipped.push((path.clone(), reason));
            } else if let Some(output) = output_name(direction, name) {
                if !std::mem::replace(&mut names_files, true) {
                    // The outputs of all files that the caller names are directly in the output folder, which gets one place for
                    // them.
                    search.add_place(PathBuf::new(), PathBuf::new(), 0o777, None);
                }
                search.add(Arc::new(Root::of_file(path)), name.into(), output.into(), &stat);
            } else {
                return Err(failed(format!("{shown} does not end in .enc: {}", options.advice.name)));
            }
        }
        Ok(search.found)
    }
}

struct Search<'a> {
    direction: Direction,
    options: &'a Options<'a>,
    output: Option<Id>,
    found: Inputs,
}

impl Search<'_> {
    fn add(&mut self, root: Arc<Root>, input: PathBuf, output: PathBuf, stat: &Stat) {
        let (len, id, replace) = (stat.st_size.cast_unsigned(), id(stat), self.options.force);
        self.found.jobs.push(Job { root, input, output, len, id, exists: false, replace, error: None });
    }

    fn add_place(&mut self, input: PathBuf, path: PathBuf, mode: u32, root: Option<Arc<Root>>) -> usize {
        self.found.places.push(Place { path, input, mode, root, exists: false, is_refused: false });
        self.found.places.len() - 1
    }

    /// Adds a folder and its content. An input folder `a/b` becomes the folder `b` in the output folder. An input
    /// folder without a name, such as `.`, becomes the output folder itself.
    fn add_folder(&mut self, path: &Path, stat: &Stat) -> Result<()> {
        let shown = quoted(path);
        let message = || format!("{shown} is the output folder: choose another one, outside of the input");
        ensure(self.output != Some(id(stat)), || failed(message()))?;
        let base = path.file_name().map(PathBuf::from).unwrap_or_default();
        let root = Arc::new(Root { path: path.to_owned(), id: Some(id(stat)) });
        let folder = root.open().map_err(Error::file("open", path))?;
        // A stack of the folders that are not listed yet.
        let first = self.add_place(PathBuf::new(), base, folder_mode(stat), Some(Arc::clone(&root)));
        let mut pending = vec![first];
        while let Some(place) = pending.pop() {
            let first = self.found.places.len();
            match folder.list(&self.found.places[place].input) {
                Ok(entries) => {
                    entries.into_iter().for_each(|(name, stat)| self.add_entry(&root, place, &name, stat));
                }
                Err(error) => self.fail(place, OsStr::new(""), |path| Error::file("read", path)(error)),
            }
            pending.extend((first..self.found.places.len()).rev());
        }
        Ok(())
    }

    /// Adds an entry of an input folder: a file, or a folder whose content is not listed yet.
    fn add_entry(&mut self, root: &Arc<Root>, place: usize, name: &OsStr, stat: rustix::io::Result<Stat>) {
        let stat = match stat {
            Ok(stat) => stat,
            Err(error) => return self.fail(place, name, |path| Error::file("read", path)(error)),
        };
        let (parent, root) = (&self.found.places[place], Arc::clone(root));
        if is_folder(&stat) {
            let path = parent.path.join(name);
            if self.output == Some(id(&stat)) {
                self.skip(place, name, "the output folder");
            } else if path.as_os_str().len() > MAX_PATH || parent.input.iter().count() >= MAX_DEPTH {
                self.fail(place, name, |_| too_deep());
            } else {
                let input = parent.input.join(name);
                self.add_place(input, path, folder_mode(&stat), Some(root));
            }
        } else if let Some(reason) = why_skipped(&stat) {
            self.skip(place, name, reason);
        } else if let Some(output) = output_name(self.direction, name) {
            let (input, output) = (parent.input.join(name), parent.path.join(output));
            self.add(root, input, output, &stat);
        } else {
            self.skip(place, name, "a file whose name does not end in .enc");
        }
    }

    fn skip(&mut self, place: usize, name: &OsStr, reason: &'static str) {
        let place = &self.found.places[place];
        self.found.skipped.push((place.shown(name), reason));
        self.found.skipped_entries.push(place.path.join(name));
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

/// True if a path ends with a slash. POSIX requires that a symbolic link with such a path is followed.
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

/// The name of the output for an input with this name; `None` if no output name exists: see [`decrypted`].
fn output_name(direction: Direction, input: &OsStr) -> Option<OsString> {
    match direction {
        Direction::Encrypt => Some(encrypted(input)),
        Direction::Decrypt => decrypted(input),
    }
}

/// Converts `report.pdf` to `report.pdf.enc`.
pub(super) fn encrypted(name: &OsStr) -> OsString {
    OsString::from_vec([name.as_bytes(), SUFFIX].concat())
}

/// Converts `report.pdf.enc` to `report.pdf`. Returns `None` for a name without the suffix, or if no file name would
/// remain.
pub(super) fn decrypted(name: &OsStr) -> Option<OsString> {
    let stem = name.as_bytes().strip_suffix(SUFFIX)?;
    let is_name = !matches!(stem, b"" | b"." | b"..") && !stem.contains(&b'/');
    is_name.then(|| OsString::from_vec(stem.to_vec()))
}

#[cfg(test)]
mod tests;
