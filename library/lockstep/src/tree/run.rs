//! Processing of the files. Long files are processed one after the other, each on all cores. Then the other files are
//! processed in parallel, each on one core. Both steps can use all cores, and neither step uses more threads than the
//! engine.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use lockstep::output::remove_abandoned;
use lockstep::{Engine, FileMode, OutputOptions, quoted};
use rustix::fs::fsync;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::folder::Folder;
use super::inputs::Place;
use super::plan::{Job, folder_refused, output_error};
use super::times::{self, Times};
use super::{Existing, Operation, Options, clash};
use crate::args::ProgressArgs;
use crate::error::{Error, Result, failed};
use crate::input::Input;
use crate::output::GuardedFile;
use crate::progress::{FileProgress, Progress};
use crate::signals;

/// Files of at least this length are processed by all cores. A file of 8 MiB has at least 16 pieces of up to 512 KiB,
/// so a few cores get several pieces each.
pub(super) const LONG: u64 = 8 << 20;
/// Maximum number of file descriptors for one file that is being processed: input, output, their folders, and the
/// listing of a folder.
const OPEN_FILES: u64 = 8;
/// Number of file descriptors for the rest of the program.
const OTHER_OPEN_FILES: u64 = 32;

/// The results of all files.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) done: usize,
    pub(crate) up_to_date: usize,
    /// Bytes of plaintext of the processed files.
    pub(crate) plaintext: u64,
    pub(crate) failed: Vec<(PathBuf, Error)>,
    /// Files that changed while they were read.
    pub(crate) changed: Vec<PathBuf>,
    /// Outputs without input.
    pub(crate) leftovers: Vec<PathBuf>,
    /// Outputs without input that were deleted.
    pub(crate) deleted: Vec<PathBuf>,
    pub(crate) time: Duration,
    pub(crate) shows_summary: bool,
}

/// Processes the files of a plan and writes the outputs to the output folder.
#[allow(clippy::too_many_arguments, reason = "the parts come from the plan, the command line and the caller")]
pub(crate) fn run(
    engine: &Engine,
    operation: &dyn Operation,
    output: &Folder,
    places: &[Place],
    jobs: Vec<Job>,
    options: &Options<'_>,
    messages: &ProgressArgs,
    outcome: &mut Outcome,
) {
    let total = jobs.iter().map(|job| job.input.len).sum();
    let progress = Progress::start_files(messages, total, jobs.len());
    let work = Work { operation, output, places, options, progress: &progress, outcome: Mutex::new(outcome) };
    // Folders without files are created too.
    let refused = work.create_places();
    let jobs: Vec<_> = jobs.into_iter().filter(|job| work.has_folder(job, &refused)).collect();
    let (long, short): (Vec<_>, Vec<_>) = jobs.iter().partition(|job| job.input.len >= LONG);
    for job in long {
        work.process(job, engine.threads());
    }
    in_parallel(most_threads(engine), &short, |job| work.process(job, 1));
    let Work { outcome, .. } = work;
    let outcome = outcome.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    outcome.time = progress.end();
    outcome.shows_summary = progress.shows_summary();
}

/// Compares existing outputs with their inputs; returns the jobs that are not up to date.
pub(crate) fn skip_up_to_date(
    engine: &Engine,
    operation: &dyn Operation,
    output: &Folder,
    places: &[Place],
    jobs: Vec<Job>,
    options: &Options<'_>,
    outcome: &mut Outcome,
) -> Vec<Job> {
    let results: Vec<_> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let pairs: Vec<_> = jobs.iter().zip(&results).filter(|(job, _)| job.exists).collect();
    in_parallel(most_threads(engine), &pairs, |(job, result)| {
        if !signals::stopped() {
            let compared = compare(operation, output, places, job, options);
            *result.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(compared);
        }
    });
    let results = results.into_iter().map(|result| result.into_inner().unwrap_or_else(|p| p.into_inner()));
    let mut left = Vec::new();
    for (mut job, result) in jobs.into_iter().zip(results) {
        match result {
            None => left.push(job),
            Some(Ok(Existing::UpToDate)) => outcome.up_to_date += 1,
            Some(Ok(Existing::Outdated)) => {
                job.replace = true;
                left.push(job);
            }
            Some(Ok(Existing::Unknown(_))) if options.force => left.push(job),
            Some(Ok(Existing::Unknown(why))) => {
                let (path, advice) = (job.output(options.output_dir, places), options.advice.unknown);
                let error = failed(format!("the output {} exists and {why}: {advice}", quoted(&path)));
                outcome.failed.push((job.input.path(places), error));
            }
            Some(Err(error)) => outcome.failed.push((job.input.path(places), error)),
        }
    }
    left
}

/// Opens the input of a job, which must still be a regular file.
pub(crate) fn open_input(job: &Job, places: &[Place]) -> Result<Input> {
    let (path, place) = (job.input.path(places), &places[job.input.place]);
    let opened = match &place.root {
        Some(root) => {
            root.open().and_then(|folder| folder.open_file(&place.relative().join(&job.input.name)))
        }
        None => open_regular(&path),
    };
    Input::from_file(opened.map_err(Error::io("open", &path))?, &path)
}

/// Opens the output folder. It is created if it is missing, with its parent folders.
pub(crate) fn make_output(path: &Path, sync: bool) -> io::Result<Folder> {
    match Folder::open(path, true) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    let (parent, name) = split(path)?;
    // The recursive call creates the parent if it is missing, and opens it.
    make_output(parent, sync)?.make_folder(Path::new(name), 0o777, sync)
}

/// Opens a file by a path that the user has given. Symbolic links before the last component are followed, since the
/// user has chosen them.
fn open_regular(path: &Path) -> io::Result<File> {
    let (parent, name) = split(path)?;
    Folder::open(parent, true)?.open_file(Path::new(name))
}

fn split(path: &Path) -> io::Result<(&Path, &std::ffi::OsStr)> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok((parent.unwrap_or(Path::new(".")), name))
}

/// The number of threads of the engine, unless the limit on open files permits fewer.
fn most_threads(engine: &Engine) -> usize {
    let most = open_files_limit().saturating_sub(OTHER_OPEN_FILES) / OPEN_FILES;
    engine.threads().min(usize::try_from(most).unwrap_or(usize::MAX))
}

/// Runs `work` for each item, in parallel on at most `threads` threads.
pub(super) fn in_parallel<T: Sync>(threads: usize, items: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(item);
        }
    };
    let threads = threads.min(items.len());
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // If the system cannot start more threads, the work continues with fewer.
            if std::thread::Builder::new().spawn_scoped(scope, worker).is_err() {
                break;
            }
        }
        worker();
    });
}

/// Raises the limit on open files as far as permitted, and returns it.
fn open_files_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum.unwrap_or(u64::MAX),
        Err(_) => limit.current.unwrap_or(u64::MAX),
    }
}

fn compare(
    operation: &dyn Operation,
    output: &Folder,
    places: &[Place],
    job: &Job,
    options: &Options<'_>,
) -> Result<Existing> {
    let input = open_input(job, places)?;
    let Ok(file) = output.open_file(&job.relative(places)) else {
        return Ok(Existing::Unknown("is not a regular file that can be read"));
    };
    let path = job.output(options.output_dir, places);
    let looked = input.file().metadata().and_then(|input| Times::compare(&input, &file.metadata()?));
    let times = looked.map_err(Error::io("look at", &path))?;
    let existing = operation.compare(&input, &file, times)?;
    if existing == Existing::UpToDate && options.sync {
        // The run that created the output may not have synced it.
        let synced = file
            .sync_all()
            .and_then(|()| output.make_folder(&places[job.input.place].path, 0o777, true)?.reader())
            .and_then(|folder| Ok(fsync(folder)?));
        synced.map_err(Error::io("sync", &path))?;
    }
    Ok(existing)
}

/// What [`write()`] does if the name of the output exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnExisting {
    /// It replaces the file.
    Replace,
    /// It fails.
    Fail,
    /// It fails. On a file system without an operation that takes only an unused name, the name is looked up first:
    /// another process that creates it after that loses its file.
    FailByLookup,
}

/// A complete output that does not have its name yet.
pub(super) struct Written {
    pub(super) plaintext: u64,
    /// True if the input changed while it was read.
    pub(super) has_changed: bool,
    file: GuardedFile,
    /// The folder and the path of an output whose name must be looked up before it is taken.
    unused: Option<(Folder, PathBuf)>,
}

impl Written {
    pub(super) fn as_file(&mut self) -> &File {
        self.file.file().as_file()
    }

    /// Gives the file its name.
    pub(super) fn commit(self) -> Result<()> {
        static TURN: Mutex<()> = Mutex::new(());
        // Other threads of this process must not take the name after it was looked up.
        let _turn =
            self.unused.as_ref().map(|_| TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        if let Some((folder, path)) = self.unused {
            let found =
                folder.look(path.file_name().unwrap_or_default()).map_err(Error::io("look at", &path))?;
            if found.is_some() {
                return Err(lockstep::Error::Exists { path }.into());
            }
        }
        self.file.commit()
    }
}

/// Processes an open input into a new file in a folder, which gets its name when it is committed. The file gets the
/// permission bits and the modification time of the input.
pub(super) fn write(
    operation: &dyn Operation,
    input: &mut Input,
    input_path: &Path,
    (folder, path): (Folder, &Path),
    (existing, sync): (OnExisting, bool),
    options: lockstep::Options<'_>,
) -> Result<Written> {
    let look = |input: &Input| input.file().metadata().map_err(Error::io("look at", input_path));
    // The input is looked at before the first byte is read. If it changes afterwards, its times will differ from those
    // of the output.
    let before = look(input)?;
    let (mode, sparse) = (FileMode::of_input(input.file())?, operation.sparse());
    let output = OutputOptions { mode, sync, sparse, ..Default::default() };
    let (mut file, unused) = create(folder, path, existing, output).map_err(|e| output_error(e, path))?;
    let plaintext = match operation.process(input, file.file(), options) {
        Err(error) if error.keeps_output() => {
            // The output does not get the time of the input, so that it never counts as up to date.
            Written { plaintext: 0, has_changed: true, file, unused }.commit()?;
            return Err(error);
        }
        processed => processed?,
    };
    let has_changed = !times::is_unchanged(&before, &look(input)?);
    if !has_changed {
        // An error is ignored: on a file system without modification times, the output is created again by `--resume`.
        let _ = before.modified().map(|modified| file.file().as_file().set_modified(modified));
    }
    Ok(Written { plaintext, has_changed, file, unused })
}

fn create(
    folder: Folder,
    path: &Path,
    existing: OnExisting,
    options: OutputOptions,
) -> Result<(GuardedFile, Option<(Folder, PathBuf)>)> {
    // Only tests resolve names.
    let resolved = path.with_file_name(folder.resolved(path.file_name().unwrap_or_default()));
    let force = existing == OnExisting::Replace;
    let options = OutputOptions { force, regular_only: true, ..options };
    let again = folder.try_clone().map_err(Error::io("open the folder of", path))?;
    match GuardedFile::create_in(folder.into(), &resolved, options) {
        // The library refuses file systems that can replace a file but cannot take only an unused name. An error of
        // another cause comes again.
        Err(Error::Library(lockstep::Error::File { source, .. }))
            if existing == OnExisting::FailByLookup
                && source.kind() == io::ErrorKind::PermissionDenied
                && source.raw_os_error().is_none() =>
        {
            let folder = again.try_clone().map_err(Error::io("open the folder of", path))?;
            let options = OutputOptions { force: true, ..options };
            Ok((GuardedFile::create_in(folder.into(), &resolved, options)?, Some((again, path.into()))))
        }
        created => Ok((created?, None)),
    }
}

/// Creates the folder of a place.
///
/// # Errors
/// Those of the file system; if the folder stores another name that the file system does not distinguish.
pub(super) fn create_place(output: &Folder, path: &Path, place: &Place, sync: bool) -> Result<Folder> {
    let path = path.join(&place.path);
    let cannot = Error::io("make the folder", &path);
    if let (false, Some(parent)) = (place.exists, place.path.parent()) {
        // The parent may be missing: the error comes below.
        if let Ok(parent) = output.open_below(parent) {
            clash::check(&parent, &path)?;
        }
    }
    output.make_folder(&place.path, place.mode, sync).map_err(cannot)
}

struct Work<'a> {
    operation: &'a dyn Operation,
    output: &'a Folder,
    places: &'a [Place],
    options: &'a Options<'a>,
    progress: &'a Progress,
    outcome: Mutex<&'a mut Outcome>,
}

impl<'a> Work<'a> {
    /// Creates the folders of the outputs; returns the paths of those that could not be created, and of all folders in
    /// them.
    fn create_places(&self) -> HashSet<&Path> {
        let (mut refused, mut made) = (HashSet::new(), HashSet::new());
        for place in self.places {
            let path = place.path.as_path();
            if place.is_refused || path.parent().is_some_and(|parent| refused.contains(parent)) {
                refused.insert(path);
            } else if made.insert(path) {
                match create_place(self.output, self.options.output_dir, place, self.options.sync) {
                    Ok(folder) if self.options.resume => remove_abandoned_in(&folder),
                    Ok(_) => {}
                    Err(error) => {
                        refused.insert(path);
                        self.record(self.options.output_dir.join(path), Err(error));
                    }
                }
            }
        }
        refused
    }

    fn has_folder(&self, job: &Job, refused: &HashSet<&Path>) -> bool {
        let has_folder = !refused.contains(self.places[job.input.place].path.as_path());
        if !has_folder {
            self.record(job.input.path(self.places), Err(folder_refused()));
        }
        has_folder
    }

    fn process(&self, job: &Job, threads: usize) {
        if signals::stopped() {
            return;
        }
        let progress = self.progress.file(job.input.len);
        let finished = self.try_process(job, threads, &progress);
        if signals::stopped() {
            // The signal may be the cause of a failure, so the result is not recorded.
            return;
        }
        progress.finish();
        self.record(job.input.path(self.places), finished);
    }

    /// Processes a file and returns the number of plaintext bytes.
    fn try_process(&self, job: &Job, threads: usize, progress: &FileProgress<'_>) -> Result<u64> {
        let mut input = open_input(job, self.places)?;
        let input_path = job.input.path(self.places);
        let path = job.output(self.options.output_dir, self.places);
        let place = &self.places[job.input.place].path;
        let folder = self.output.make_folder(place, 0o777, self.options.sync);
        let folder = folder.map_err(Error::io("make the folder of", &path))?;
        let report = |done| progress.set(done);
        let options =
            lockstep::Options::new().progress(&report).interrupt(signals::flag()).max_threads(threads);
        let existing = match () {
            () if job.replace && job.exists => OnExisting::Replace,
            // An output that did not exist before the run is never replaced, even with `--force`: it may be the output
            // of another input, whose name the file system does not distinguish.
            () if job.replace => OnExisting::FailByLookup,
            () => OnExisting::Fail,
        };
        let how = (existing, self.options.sync);
        let done = write(self.operation, &mut input, &input_path, (folder, &path), how, options).and_then(
            |written| {
                let (plaintext, has_changed) = (written.plaintext, written.has_changed);
                written.commit()?;
                Ok((plaintext, has_changed))
            },
        );
        match done {
            Ok((plaintext, has_changed)) => {
                if has_changed {
                    self.outcome().changed.push(input_path);
                }
                Ok(plaintext)
            }
            Err(Error::Library(lockstep::Error::Exists { .. })) => Err(self.taken(place, &path)),
            Err(error) => Err(error),
        }
    }

    /// The error for an output that did not exist before the run.
    fn taken(&self, place: &Path, path: &Path) -> Error {
        let folder = self.output.open_below(place).map_err(Error::io("look at", path));
        if let Err(error) = folder.and_then(|folder| clash::check(&folder, path)) {
            return error;
        }
        failed(format!(
            "another process created the output {} during the run: run the command again",
            quoted(path)
        ))
    }

    fn record(&self, path: PathBuf, plaintext: Result<u64>) {
        let mut outcome = self.outcome();
        match plaintext {
            Ok(plaintext) => {
                outcome.done += 1;
                outcome.plaintext += plaintext;
            }
            Err(error) => outcome.failed.push((path, error)),
        }
    }

    fn outcome(&self) -> MutexGuard<'_, &'a mut Outcome> {
        self.outcome.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Removes the temporary files that killed processes have left. A file that cannot be removed does no harm, so errors
/// are ignored.
pub(super) fn remove_abandoned_in(folder: &Folder) {
    if let Ok(folder) = folder.reader() {
        let _ = remove_abandoned(folder);
    }
}
