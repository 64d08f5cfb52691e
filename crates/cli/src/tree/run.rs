//! Processing the files: long ones one after the other, each on all cores; then the others side by side, one core each.
//! So both kinds use the whole machine, and the number of threads stays that of the engine.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockstep::output::remove_abandoned;
use lockstep::{Engine, FileMode, OutputFile, OutputOptions, quoted};

use super::folder::Folder;
use super::inputs::Place;
use super::plan::Job;
use super::{Existing, Operation, Options};
use crate::args::ProgressArgs;
use crate::error::{Error, Result, failed};
use crate::input::Input;
use crate::progress::{FileProgress, Progress};
use crate::signals::{self, Guard};

/// Files from this length on are worked on by all cores: 8 pieces of 512 KiB or more for each of a few cores.
const LONG: u64 = 8 << 20;

/// What became of all files.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) done: usize,
    pub(crate) up_to_date: usize,
    /// Bytes of plaintext in the files that were done.
    pub(crate) plaintext: u64,
    pub(crate) failed: Vec<(PathBuf, Error)>,
    pub(crate) time: Duration,
    pub(crate) wants_summary: bool,
}

/// What became of one file.
enum Finished {
    Done(u64),
    UpToDate,
}

/// Processes the files of a plan into the output folder.
pub(crate) fn run(
    engine: &Engine,
    operation: &dyn Operation,
    output: &Folder,
    places: &[Place],
    jobs: Vec<Job>,
    options: &Options<'_>,
    messages: &ProgressArgs,
) -> Outcome {
    let total = jobs.iter().map(|job| job.input.metadata.len()).sum();
    let progress = Progress::start_files(messages, total, jobs.len());
    let work = Work { engine, operation, output, options, progress: &progress, outcome: Mutex::default() };
    for place in places {
        // Those without files are kept, too.
        work.make_place(place);
    }
    let (long, short): (Vec<_>, Vec<_>) = jobs.iter().partition(|job| job.input.metadata.len() >= LONG);
    for job in long {
        work.process(job, engine.threads());
    }
    work.side_by_side(&short);
    let time = progress.end();
    let mut outcome = work.outcome.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    outcome.time = time;
    outcome.wants_summary = progress.wants_summary();
    outcome.failed.sort_by(|(a, _), (b, _)| a.cmp(b));
    outcome
}

/// Opens the input of a job: what is opened is the regular file that was found, or an error.
pub(crate) fn open_input(job: &Job) -> Result<Input> {
    let path = &job.input.path;
    let opened = match &job.input.below {
        Some((folder, relative)) => folder.open_file(relative),
        None => open_regular(path),
    };
    Input::from_file(opened.map_err(Error::io("open", path))?, path)
}

/// A file that was given by its path: links in the path before the last component are the user's own.
fn open_regular(path: &Path) -> io::Result<File> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Folder::open(parent, true)?.open_file(Path::new(name))
}

struct Work<'a> {
    engine: &'a Engine,
    operation: &'a dyn Operation,
    output: &'a Folder,
    options: &'a Options<'a>,
    progress: &'a Progress,
    outcome: Mutex<Outcome>,
}

impl Work<'_> {
    fn make_place(&self, place: &Place) {
        let made = self.output.make_folder(&place.path, place.mode, self.options.sync);
        let outcome = made.map(|folder| {
            if self.options.resume {
                // What cannot be removed does no harm.
                let _ = remove_abandoned(OwnedFd::from(folder));
            }
        });
        if let Err(error) = outcome {
            let path = self.options.output_dir.join(&place.path);
            self.record(path.clone(), Err(Error::io("make the folder", &path)(error)));
        }
    }

    fn side_by_side(&self, jobs: &[&Job]) {
        let next = AtomicUsize::new(0);
        let worker = || {
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.process(job, 1);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.engine.threads().min(jobs.len()) {
                // A system that allows no more threads: fewer do it as well.
                if std::thread::Builder::new().spawn_scoped(scope, worker).is_err() {
                    break;
                }
            }
            worker();
        });
    }

    fn process(&self, job: &Job, threads: usize) {
        if signals::stopped() {
            return;
        }
        let progress = self.progress.file(job.input.metadata.len());
        let finished = self.try_process(job, threads, &progress);
        if signals::stopped() {
            // Failures from here on have the signal as their reason.
            return;
        }
        progress.finish();
        self.record(job.input.path.clone(), finished);
    }

    fn try_process(&self, job: &Job, threads: usize, progress: &FileProgress<'_>) -> Result<Finished> {
        let mut input = open_input(job)?;
        let mut force = self.options.force;
        if job.exists && self.options.resume {
            match self.compare(job, &input)? {
                Existing::UpToDate => return Ok(Finished::UpToDate),
                Existing::Outdated => force = true,
                Existing::Unknown(_) if force => {}
                Existing::Unknown(why) => {
                    let output = quoted(&job.output);
                    return Err(failed(format!("the output {output} exists and {why}: --force replaces it")));
                }
            }
        }
        input.rewind()?;
        let folder = self.output.make_folder(&job.input.place, 0o777, self.options.sync);
        let folder = folder.map_err(Error::io("make the folder of", &job.output))?;
        let mode = FileMode::of_input(input.file())?;
        let output_options = OutputOptions { force, mode, sync: self.options.sync, regular_only: true };
        let guard = Guard::creating();
        let mut output = OutputFile::create_in(folder.into(), &job.output, output_options)?;
        let _guard = output.temporary().map(|name| guard.file(name));
        let report = |done| progress.set(done);
        let options =
            lockstep::Options::new().progress(&report).interrupt(signals::flag()).max_threads(threads);
        let plaintext = self.operation.process(&mut input, &mut output, options)?;
        output.commit()?;
        Ok(Finished::Done(plaintext))
    }

    fn compare(&self, job: &Job, input: &Input) -> Result<Existing> {
        let relative = job.input.place.join(&job.name);
        let output = match self.output.open_file(&relative) {
            Ok(output) => output,
            Err(_) => return Ok(Existing::Unknown("is not a regular file that can be read")),
        };
        let looked = input.file().metadata().and_then(|input| Ok((input, output.metadata()?)));
        let (read, written) = looked.map_err(Error::io("look at", &job.output))?;
        let is_older = (written.mtime(), written.mtime_nsec()) < (read.mtime(), read.mtime_nsec());
        self.operation.compare(input, &output, is_older)
    }

    fn record(&self, path: PathBuf, finished: Result<Finished>) {
        let mut outcome = self.outcome.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match finished {
            Ok(Finished::Done(plaintext)) => {
                outcome.done += 1;
                outcome.plaintext += plaintext;
            }
            Ok(Finished::UpToDate) => outcome.up_to_date += 1,
            Err(error) => outcome.failed.push((path, error)),
        }
    }
}
