//! Processing of the files. Long files are processed one after the other, each on all cores. Then the other files are
//! processed in parallel, each on one core. Both steps can use all cores, and neither step uses more threads than the
//! engine.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lockstep::output::remove_abandoned;
use lockstep::{Engine, FileMode, OutputOptions, quoted};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::folder::Folder;
use super::inputs::Place;
use super::plan::Job;
use super::{Existing, Operation, Options};
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
    pub(crate) time: Duration,
    pub(crate) wants_summary: bool,
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
    let work = Work { operation, output, options, progress: &progress, outcome: Mutex::new(outcome) };
    for place in places {
        // Folders without files are created too.
        work.create_place(place);
    }
    let (long, short): (Vec<_>, Vec<_>) = jobs.iter().partition(|job| job.input.len >= LONG);
    for job in long {
        work.process(job, engine.threads());
    }
    in_parallel(most_threads(engine), &short, |job| work.process(job, 1));
    let Work { outcome, .. } = work;
    let outcome = outcome.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    outcome.time = progress.end();
    outcome.wants_summary = progress.wants_summary();
}

/// Compares existing outputs with their inputs; returns the jobs that are not up to date.
pub(crate) fn skip_up_to_date(
    engine: &Engine,
    operation: &dyn Operation,
    output: &Folder,
    jobs: Vec<Job>,
    options: &Options<'_>,
    outcome: &mut Outcome,
) -> Vec<Job> {
    let results: Vec<_> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let pairs: Vec<_> = jobs.iter().zip(&results).filter(|(job, _)| job.exists).collect();
    in_parallel(most_threads(engine), &pairs, |(job, result)| {
        if !signals::stopped() {
            let compared = compare(operation, output, job, options);
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
                let name = quoted(&job.output);
                let advice = options.advice.unknown;
                let error = failed(format!("the output {name} exists and {why}: {advice}"));
                outcome.failed.push((job.input.path, error));
            }
            Some(Err(error)) => outcome.failed.push((job.input.path, error)),
        }
    }
    left
}

/// Opens the input of a job, which must still be a regular file.
pub(crate) fn open_input(job: &Job) -> Result<Input> {
    let path = &job.input.path;
    let opened = match &job.input.below {
        Some((root, relative)) => root.open().and_then(|folder| folder.open_file(relative)),
        None => open_regular(path),
    };
    Input::from_file(opened.map_err(Error::io("open", path))?, path)
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

fn compare(operation: &dyn Operation, output: &Folder, job: &Job, options: &Options<'_>) -> Result<Existing> {
    let input = open_input(job)?;
    let relative = job.input.place.join(&job.name);
    let Ok(file) = output.open_file(&relative) else {
        return Ok(Existing::Unknown("is not a regular file that can be read"));
    };
    let looked = input.file().metadata().and_then(|input| Ok((input, file.metadata()?)));
    let times = looked.and_then(|(input, output)| Ok((input.modified()?, output.modified()?)));
    let (read, written) = times.map_err(Error::io("look at", &job.output))?;
    let existing = operation.compare(&input, &file, is_same_time(read, written))?;
    if existing == Existing::UpToDate && options.sync {
        // The run that created the output may not have synced it.
        let synced = file
            .sync_all()
            .and_then(|()| output.make_folder(&job.input.place, 0o777, true)?.reader())
            .and_then(|folder| Ok(rustix::fs::fsync(folder)?));
        synced.map_err(Error::io("sync", &job.output))?;
    }
    Ok(existing)
}

/// True if the output has the modification time of the input. Some file systems store times only as whole seconds,
/// others only in units of two seconds.
pub(super) fn is_same_time(input: SystemTime, output: SystemTime) -> bool {
    let has_whole_seconds = output.duration_since(UNIX_EPOCH).is_ok_and(|time| time.subsec_nanos() == 0);
    let difference = input.duration_since(output).unwrap_or_else(|error| error.duration());
    difference.is_zero() || has_whole_seconds && difference < Duration::from_secs(2)
}

/// Processes an open input into a new file in a folder, which gets its name when it is committed. The file gets the
/// permission bits and the modification time of the input. Returns the number of plaintext bytes, and the file.
pub(super) fn write(
    operation: &dyn Operation,
    input: &mut Input,
    input_path: &Path,
    folder: Folder,
    output_path: &Path,
    output: OutputOptions,
    options: lockstep::Options<'_>,
) -> Result<(u64, GuardedFile)> {
    // The modification time is read before the first byte. If the input changes afterwards, its modification time will
    // differ from the time that the output gets here.
    let modified = input.file().metadata().and_then(|metadata| metadata.modified());
    let modified = modified.map_err(Error::io("look at", input_path))?;
    let output = OutputOptions { mode: FileMode::of_input(input.file())?, ..output };
    let mut written = GuardedFile::create_in(folder.into(), output_path, output)?;
    let plaintext = match operation.process(input, written.file(), options) {
        Err(error) if error.keeps_output() => {
            // The output does not get the time of the input, so that it never counts as up to date.
            written.commit()?;
            return Err(error);
        }
        processed => processed?,
    };
    // An error is ignored: on a file system without modification times, the output is created again by `--resume`.
    let _ = written.file().as_file().set_modified(modified);
    Ok((plaintext, written))
}

struct Work<'a> {
    operation: &'a dyn Operation,
    output: &'a Folder,
    options: &'a Options<'a>,
    progress: &'a Progress,
    outcome: Mutex<&'a mut Outcome>,
}

impl Work<'_> {
    fn create_place(&self, place: &Place) {
        let made = self.output.make_folder(&place.path, place.mode, self.options.sync);
        let outcome = made.map(|folder| {
            if self.options.resume
                && let Ok(folder) = folder.reader()
            {
                // A file that cannot be removed does no harm.
                let _ = remove_abandoned(folder);
            }
        });
        if let Err(error) = outcome {
            let path = self.options.output_dir.join(&place.path);
            self.record(path.clone(), Err(Error::io("make the folder", &path)(error)));
        }
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
        self.record(job.input.path.clone(), finished);
    }

    /// Processes a file and returns the number of plaintext bytes.
    fn try_process(&self, job: &Job, threads: usize, progress: &FileProgress<'_>) -> Result<u64> {
        let mut input = open_input(job)?;
        let folder = self.output.make_folder(&job.input.place, 0o777, self.options.sync);
        let folder = folder.map_err(Error::io("make the folder of", &job.output))?;
        let sync = self.options.sync;
        let sparse = self.operation.sparse();
        let output =
            OutputOptions { force: job.replace, sync, regular_only: true, sparse, ..Default::default() };
        let report = |done| progress.set(done);
        let options =
            lockstep::Options::new().progress(&report).interrupt(signals::flag()).max_threads(threads);
        let (plaintext, written) =
            write(self.operation, &mut input, &job.input.path, folder, &job.output, output, options)?;
        written.commit()?;
        Ok(plaintext)
    }

    fn record(&self, path: PathBuf, plaintext: Result<u64>) {
        let mut outcome = self.outcome.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match plaintext {
            Ok(plaintext) => {
                outcome.done += 1;
                outcome.plaintext += plaintext;
            }
            Err(error) => outcome.failed.push((path, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_compared_at_the_resolution_of_file_systems() {
        let at = |seconds, nanos| UNIX_EPOCH + Duration::new(seconds, nanos);
        assert!(is_same_time(at(1000, 5), at(1000, 5)));
        assert!(!is_same_time(at(1000, 5), at(1000, 6)));
        assert!(!is_same_time(at(1001, 5), at(1000, 5)));
        // FAT stores times in units of two seconds.
        assert!(is_same_time(at(1001, 999), at(1000, 0)));
        assert!(!is_same_time(at(1002, 0), at(1000, 0)));
    }
}
