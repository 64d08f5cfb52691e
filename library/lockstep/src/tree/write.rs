//! Writing of outputs.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::Path;

use lockstep_core::share::in_parallel;
use rustix::io::Errno;

use super::inputs::Place;
use super::{Host, Operation, clash, existing};
use crate::error::{Error, Result, failed};
use crate::folder::Folder;
use crate::output::{FileMode, OnExisting, OutputFile, OutputOptions, Trials, remove_abandoned};

/// Files of at least this length are processed by all cores. A file of 8 MiB has at least 16 pieces of up to 512 KiB,
/// so a few cores get several pieces each.
pub(super) const LONG: u64 = 8 << 20;

/// Writes outputs below an output folder.
pub(super) struct Writer<'a> {
    pub(super) operation: &'a dyn Operation,
    pub(super) host: &'a dyn Host,
    pub(super) output: &'a Folder,
    /// The path of the output folder, for messages.
    pub(super) output_dir: &'a Path,
    pub(super) sync: bool,
    pub(super) trials: Trials,
}

impl Writer<'_> {
    /// Encrypts or decrypts an open input to a new file. `relative` is the path of the new file below the output folder. The file
    /// gets the permission bits and the modification time of the input. `inspect` is called with the complete file, before the file
    /// gets its name, and with the number of plaintext bytes. Returns the result of `inspect`, and whether the input changed while
    /// it was read.
    pub(super) fn write<T>(
        &self,
        input: &File,
        input_path: &Path,
        relative: &Path,
        existing: OnExisting,
        stream: crate::Options<'_>,
        inspect: impl FnOnce(&File, u64) -> Result<T>,
    ) -> Result<(T, bool)> {
        let path = self.output_dir.join(relative);
        let parent = relative.parent().unwrap_or(Path::new(""));
        let folder = self.output.make_folder(parent, 0o777, self.sync);
        let folder = folder.map_err(Error::file("make the folder of", &path))?;
        // The metadata are read before the content, so that a change of the input during the read is detected. If the input does
        // not change, the output gets the modification time in these metadata. After a later change of the input, the times of the
        // two files differ.
        let before = input.metadata().map_err(Error::file("look at", input_path))?;
        let (mode, sync, sparse) = (FileMode::of_input(input)?, self.sync, self.operation.sparse());
        let options = OutputOptions { mode, sync, sparse, regular_only: true, ..Default::default() };
        // The guard is declared before `file`, so that it is dropped after `file`.
        let _guard = self.host.guard();
        let created = OutputFile::create_in(folder, &path, options, existing, &self.trials);
        let mut file = created.map_err(|error| output_error(error, &path))?;
        let plaintext = match self.operation.process(input, &mut file, stream) {
            Err(error) if error.keeps_output() => {
                // The output does not get the modification time of the input, so that it never counts as up to date.
                file.commit()?;
                return Err(error);
            }
            processed => processed?,
        };
        let after = input.metadata().map_err(Error::file("look at", input_path))?;
        let has_changed = !existing::is_unchanged(&before, &after);
        if !has_changed {
            // An error is ignored: on a file system without modification times, a later run with `--resume` creates the output
            // again.
            let _ = before.modified().map(|modified| file.as_file().set_modified(modified));
        }
        let inspected = inspect(file.as_file(), plaintext)?;
        file.commit()?;
        Ok((inspected, has_changed))
    }
}

/// The error for an output that cannot be looked up or created.
pub(super) fn output_error(error: Error, path: &Path) -> Error {
    if error.errno() != Some(Errno::NAMETOOLONG.raw_os_error()) {
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
    make_path(path, sync).map_err(Error::file("make the folder", path))
}

fn make_path(path: &Path, sync: bool) -> io::Result<Folder> {
    match Folder::open(path, true) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    // The recursive call creates the parent if it is missing, and opens it.
    make_path(parent.unwrap_or(Path::new(".")), sync)?.make_folder(Path::new(name), 0o777, sync)
}

/// Creates the folders of the outputs, also those without files. With `cleans`, removes the temporary files that killed processes
/// have left in them. Calls `failed` with each error; if `failed` returns an error, no more folders are created. Returns the paths
/// of the folders that were not created, also those whose parents were not created.
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
                // A file that cannot be removed does no harm.
                Ok(folder) if cleans => drop(remove_abandoned(&folder)),
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
    // If the parent cannot be opened, `make_folder` below returns the error.
    if let (false, Some(parent)) = (place.exists, place.path.parent())
        && let Ok(parent) = output.open_below(parent)
    {
        clash::check(&parent, &path)?;
    }
    output.make_folder(&place.path, place.mode, sync).map_err(Error::file("make the folder", &path))
}

/// Calls `work` for each item and a number of threads; returns the results in the order of the items. First, items of at least
/// [`LONG`] bytes are processed one after the other, each with `threads` threads. Then the shorter items are processed in parallel
/// with one thread each, at most `parallel` items at the same time.
pub(super) fn by_length<T: Sync, R: Send>(
    items: &[T],
    len: impl Fn(&T) -> u64,
    (threads, parallel): (usize, usize),
    work: impl Fn(&T, usize) -> R + Sync,
) -> Vec<R> {
    let (long, short): (Vec<_>, Vec<_>) = (0..items.len()).partition(|&index| len(&items[index]) >= LONG);
    let process = |index: usize, threads: usize| (index, work(&items[index], threads));
    let mut results: Vec<_> = long.into_iter().map(|index| process(index, threads)).collect();
    // If the limit on open files permits no further thread, `parallel` is 0, and the calling thread processes the items.
    results.extend(in_parallel(parallel, short, |index| process(index, 1)));
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}
