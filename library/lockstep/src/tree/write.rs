//! Writing of one output.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use rustix::io::Errno;

use super::error::{Error, Result, failed};
use super::folder::Folder;
use super::inputs::Place;
use super::{Host, Operation, clash, times};
use crate::output::{FileMode, OnExisting, OutputFile, OutputOptions, Trials, remove_abandoned};

/// Files of at least this length are processed by all cores. A file of 8 MiB has at least 16 pieces of up to 512 KiB,
/// so a few cores get several pieces each.
pub(super) const LONG: u64 = 8 << 20;

/// Writes outputs below an output folder.
pub(super) struct Writer<'a> {
    operation: &'a dyn Operation,
    host: &'a dyn Host,
    output: &'a Folder,
    /// The path of the output folder, for messages.
    output_dir: &'a Path,
    sync: bool,
    trials: Trials,
}

/// A complete output that does not have its name yet.
pub(super) struct Written {
    pub(super) plaintext: u64,
    /// True if the input changed while it was read.
    pub(super) has_changed: bool,
    // This field is dropped before the guard.
    file: OutputFile,
    guard: Box<dyn Send>,
}

impl Written {
    pub(super) fn as_file(&self) -> &File {
        self.file.as_file()
    }

    /// Gives the file its name.
    pub(super) fn commit(self) -> Result<()> {
        let Written { file, guard, .. } = self;
        file.commit()?;
        drop(guard);
        Ok(())
    }
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        operation: &'a dyn Operation,
        host: &'a dyn Host,
        (output, output_dir): (&'a Folder, &'a Path),
        sync: bool,
    ) -> Writer<'a> {
        Writer { operation, host, output, output_dir, sync, trials: Trials::default() }
    }

    /// Processes an open input into a new file, which gets its name when it is committed. `relative` is its path below the
    /// output folder. The file gets the permission bits and the modification time of the input.
    pub(super) fn write(
        &self,
        input: &File,
        input_path: &Path,
        relative: &Path,
        existing: OnExisting,
        stream: crate::Options<'_>,
    ) -> Result<Written> {
        let path = self.output_dir.join(relative);
        let parent = relative.parent().unwrap_or(Path::new(""));
        let folder = self.output.make_folder(parent, 0o777, self.sync);
        let folder = folder.map_err(Error::io("make the folder of", &path))?;
        // The input is looked at before the first byte is read. If it changes afterwards, its times will differ from
        // those of the output.
        let before = input.metadata().map_err(Error::io("look at", input_path))?;
        let options = OutputOptions {
            mode: FileMode::of_input(input)?,
            sync: self.sync,
            sparse: self.operation.sparse(),
            regular_only: true,
            ..Default::default()
        };
        // Only tests resolve names.
        let resolved = path.with_file_name(folder.resolved(path.file_name().unwrap_or_default()));
        let guard = self.host.guard();
        let created = OutputFile::create_in(folder.into(), &resolved, options, existing, &self.trials);
        let mut file = created.map_err(|error| output_error(error.into(), &path))?;
        let plaintext = match self.operation.process(input, &mut file, stream) {
            Err(Error::Library(error)) if error.keeps_output() => {
                // The output does not get the time of the input, so that it never counts as up to date.
                file.commit()?;
                return Err(error.into());
            }
            processed => processed?,
        };
        let after = input.metadata().map_err(Error::io("look at", input_path))?;
        let has_changed = !times::is_unchanged(&before, &after);
        if !has_changed {
            // An error is ignored: on a file system without modification times, the output is created again by
            // `--resume`.
            let _ = before.modified().map(|modified| file.as_file().set_modified(modified));
        }
        Ok(Written { plaintext, has_changed, file, guard })
    }
}

/// The error for an output that cannot be looked up or created.
pub(super) fn output_error(error: Error, path: &Path) -> Error {
    let is_too_long = matches!(
        &error,
        Error::Library(crate::Error::File { source, .. })
            if source.raw_os_error() == Some(Errno::NAMETOOLONG.raw_os_error())
    );
    if !is_too_long {
        return error;
    }
    let len = path.file_name().unwrap_or_default().len();
    failed(format!(
        "the name of its output has {len} bytes, which is too long for the file system: shorten the name of the \
         input, or archive the input with tar and process the archive"
    ))
}

/// Opens the output folder. It is created if it is missing, with its parent folders.
pub(super) fn make_output(path: &Path, sync: bool) -> Result<Folder> {
    make_path(path, sync).map_err(Error::io("make the folder", path))
}

fn make_path(path: &Path, sync: bool) -> io::Result<Folder> {
    match Folder::open(path, true) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    let (parent, name) = split(path)?;
    // The recursive call creates the parent if it is missing, and opens it.
    make_path(parent, sync)?.make_folder(Path::new(name), 0o777, sync)
}

/// The folder of a path, and the name in it.
pub(super) fn split(path: &Path) -> io::Result<(&Path, &std::ffi::OsStr)> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok((parent.unwrap_or(Path::new(".")), name))
}

/// Creates the folders of the outputs, also those without files. With `cleans`, removes the temporary files that killed
/// processes have left in them. Returns the paths of the folders that were not created, also because of their parents, and
/// calls `failed` with each error. If it returns an error too, no more folders are created.
pub(super) fn create_places<'p>(
    output: &Folder,
    output_dir: &Path,
    places: &'p [Place],
    (sync, cleans): (bool, bool),
    mut failed: impl FnMut(&Path, Error) -> Result<()>,
) -> Result<HashSet<&'p Path>> {
    let (mut refused, mut made) = (HashSet::new(), HashSet::new());
    for place in places {
        let path = place.path.as_path();
        if place.is_refused || path.parent().is_some_and(|parent| refused.contains(parent)) {
            refused.insert(path);
        } else if made.insert(path) {
            match create_place(output, output_dir, place, sync) {
                Ok(folder) if cleans => remove_abandoned_in(&folder),
                Ok(_) => {}
                Err(error) => {
                    refused.insert(path);
                    failed(path, error)?;
                }
            }
        }
    }
    Ok(refused)
}

fn create_place(output: &Folder, output_dir: &Path, place: &Place, sync: bool) -> Result<Folder> {
    let path = output_dir.join(&place.path);
    if let (false, Some(parent)) = (place.exists, place.path.parent()) {
        // The parent may be missing: the error comes below.
        if let Ok(parent) = output.open_below(parent) {
            clash::check(&parent, &path)?;
        }
    }
    output.make_folder(&place.path, place.mode, sync).map_err(Error::io("make the folder", &path))
}

/// Removes the temporary files that killed processes have left. A file that cannot be removed does no harm, so errors
/// are ignored.
pub(super) fn remove_abandoned_in(folder: &Folder) {
    if let Ok(folder) = folder.reader() {
        let _ = remove_abandoned(folder);
    }
}

/// Calls `work` for each item, in parallel on at most `threads` threads; returns the results in the order of the items.
pub(super) fn in_parallel<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(items.len())));
    let worker = || {
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&index| index < items.len());
        while let Some(index) = take() {
            let result = work(&items[index]);
            lock(&results).push((index, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(items.len()) {
            // If the system cannot start more threads, the work continues with fewer.
            if std::thread::Builder::new().spawn_scoped(scope, worker).is_err() {
                break;
            }
        }
        worker();
    });
    let mut results = results.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
