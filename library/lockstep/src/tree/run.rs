//! A run over many files in this process. Long files are processed one after the other, each on all cores. Then the other
//! files are processed in parallel, each on one core. Both steps can use all cores, and neither step uses more threads than
//! the engine.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use lockstep_core::share::{in_parallel, lock};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::existing::unknown;
use super::inputs::{Inputs, Job};
use super::leftovers::Leftovers;
use super::plan::{assign, folder_refused};
use super::write::{Writer, by_length, create_places, make_output};
use super::{Existing, Host, Operation, Options, Pair, clash};
use crate::engine::Engine;
use crate::error::{Error, Result, failed};
use crate::folder::Folder;
use crate::output::{OnExisting, Trials};
use crate::quoted::quoted;

/// Maximum number of file descriptors for one file that is being processed: input, output, their folders, and the
/// listing of a folder.
const OPEN_FILES: u64 = 8;
/// Number of file descriptors that the program needs for purposes other than the files that it processes.
const OTHER_OPEN_FILES: u64 = 32;

/// The results of all files.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Number of files that were processed.
    pub done: usize,
    /// Number of files whose outputs were up to date.
    pub up_to_date: usize,
    /// Bytes of plaintext of the processed files.
    pub plaintext: u64,
    /// Files that were skipped, with the reasons.
    pub skipped: Vec<(PathBuf, &'static str)>,
    /// Files and folders that have failed, sorted by their paths at the end of the run.
    pub failed: Vec<(PathBuf, Error)>,
    /// Files that changed while they were read.
    pub changed: Vec<PathBuf>,
    /// Outputs without input.
    pub leftovers: Vec<PathBuf>,
    /// Outputs without input that were deleted.
    pub deleted: Vec<PathBuf>,
}

/// A run over many files: [`plan`](Run::plan), [`prepare`](Run::prepare), [`process`](Run::process),
/// [`finish`](Run::finish). The failure of a file does not affect the other files.
pub struct Run<'a> {
    engine: &'a Engine,
    operation: &'a dyn Operation,
    options: &'a Options<'a>,
    /// The output folder, if it existed before the run.
    output: Option<Folder>,
    inputs: Inputs,
    leftovers: Leftovers,
    outcome: Outcome,
}

impl<'a> Run<'a> {
    /// Lists the files, assigns the outputs and checks them. With [`Options::resume`], compares existing outputs with their
    /// inputs.
    ///
    /// # Errors
    /// The reason why the work cannot start.
    pub fn plan(
        engine: &'a Engine,
        operation: &'a dyn Operation,
        given: &[PathBuf],
        options: &'a Options<'a>,
        host: &dyn Host,
    ) -> Result<Run<'a>> {
        let (output, mut inputs, leftovers) = assign(given, operation.direction(), options, host)?;
        let (skipped, failed) = (std::mem::take(&mut inputs.skipped), std::mem::take(&mut inputs.failed));
        let outcome = Outcome { skipped, failed, ..Outcome::default() };
        let mut run = Run { engine, operation, options, output, inputs, leftovers, outcome };
        if options.resume {
            run.skip_up_to_date();
        }
        Ok(run)
    }

    /// Calls `prepare` for each open input, on this thread. If `prepare` returns `Ok(Err(_))` for a file, this file is not
    /// processed; other files are not affected.
    ///
    /// # Errors
    /// The first `Err(_)` that `prepare` returns; [`Error::Interrupted`].
    pub fn prepare<E: From<Error>>(
        &mut self,
        mut prepare: impl FnMut(File, &Path) -> std::result::Result<Result<()>, E>,
    ) -> std::result::Result<(), E> {
        for job in std::mem::take(&mut self.inputs.jobs) {
            let path = job.path();
            let prepared = match job.open() {
                Ok(input) => prepare(input, &path)?,
                Err(error) => Err(error),
            };
            match prepared {
                Ok(()) => self.inputs.jobs.push(job),
                Err(error) => self.outcome.failed.push((path, error)),
            }
            if self.is_stopped() {
                return Err(Error::Interrupted.into());
            }
        }
        Ok(())
    }

    /// Number of files to process.
    pub fn files(&self) -> usize {
        self.inputs.jobs.len()
    }

    /// Total length of the files to process, in bytes.
    pub fn bytes(&self) -> u64 {
        self.inputs.jobs.iter().map(|job| job.len).sum()
    }

    /// True if every file has failed. Then no folder is created, and [`process`](Run::process) has no effect.
    pub fn has_failed(&self) -> bool {
        self.inputs.jobs.is_empty() && !self.outcome.failed.is_empty()
    }

    /// Processes the files and writes the outputs to the output folder.
    ///
    /// # Errors
    /// If the output folder cannot be created.
    pub fn process(&mut self, host: &dyn Host) -> Result<()> {
        if self.has_failed() {
            return Ok(());
        }
        let (Inputs { jobs, places, .. }, options) = (&self.inputs, self.options);
        let Options { output_dir, sync, resume, .. } = *options;
        let output = make_output(output_dir, sync)?;
        let (operation, trials) = (self.operation, Trials::default());
        let writer = Writer { operation, host, output: &output, output_dir, sync, trials };
        let work = Work { writer, options, outcome: Mutex::new(&mut self.outcome) };
        // Folders without files are created too.
        let refused = create_places(&output, output_dir, places, (sync, resume), |path, error| {
            work.record(output_dir.join(path), Err(error));
            Ok(())
        })?;
        let (refused, jobs): (Vec<_>, Vec<_>) = jobs.iter().partition(|job| refused.contains(job.folder()));
        refused.into_iter().for_each(|job| work.record(job.path(), Err(folder_refused())));
        let threads = (self.engine.threads(), most_threads(self.engine));
        by_length(&jobs, |job| job.len, threads, |job, threads| work.process(job, threads));
        Ok(())
    }

    /// Deletes outputs without input, or lists them. Nothing is deleted if an input could not be listed or has failed, because its
    /// output could be mistaken for an output without input. Returns the results.
    pub fn finish(self) -> Outcome {
        let is_stopped = self.is_stopped();
        let Run { operation, options, output, leftovers, mut outcome, .. } = self;
        let full = |path: &Path| options.output_dir.join(path);
        let is_complete = outcome.failed.is_empty() && !is_stopped;
        match output {
            Some(output) if options.delete && is_complete => {
                let is_own = |file: &File| operation.is_own(file);
                for (path, deleted) in leftovers.delete(&output, options.sync, is_own) {
                    let reason = "not an output of this command, so it is not deleted";
                    match deleted {
                        Ok(true) => outcome.deleted.push(full(path)),
                        Ok(false) => outcome.skipped.push((full(path), reason)),
                        Err(error) => outcome.failed.push((full(path), error)),
                    }
                }
            }
            _ => outcome.leftovers = leftovers.paths().map(full).collect(),
        }
        outcome.failed.sort_by(|(a, _), (b, _)| a.cmp(b));
        outcome
    }

    fn is_stopped(&self) -> bool {
        self.options.stream.is_interrupted()
    }

    fn output_of(&self, job: &Job) -> PathBuf {
        self.options.output_dir.join(&job.output)
    }

    /// Compares existing outputs with their inputs, and removes the jobs that are up to date.
    fn skip_up_to_date(&mut self) {
        let Some(output) = &self.output else { return };
        let jobs = std::mem::take(&mut self.inputs.jobs);
        let results = in_parallel(most_threads(self.engine), jobs.iter().collect(), |job: &Job| {
            (job.exists && !self.is_stopped()).then(|| self.compare(output, job))
        });
        for (mut job, result) in jobs.into_iter().zip(results) {
            match result {
                Some(Ok(Existing::UpToDate)) => self.outcome.up_to_date += 1,
                Some(Ok(Existing::Unknown(why))) if !self.options.force => {
                    let error = unknown(&self.output_of(&job), why, self.options.advice);
                    self.outcome.failed.push((job.path(), error));
                }
                Some(Err(error)) => self.outcome.failed.push((job.path(), error)),
                other => {
                    job.replace |= matches!(other, Some(Ok(Existing::Outdated)));
                    self.inputs.jobs.push(job);
                }
            }
        }
    }

    fn compare(&self, output: &Folder, job: &Job) -> Result<Existing> {
        let input = job.open()?;
        let Ok(file) = output.open_file(&job.output) else {
            return Ok(Existing::Unknown("is not a regular file that can be read"));
        };
        let path = self.output_of(job);
        let pair = Pair::of(&input, &file).map_err(Error::file("look at", &path))?;
        let existing = self.operation.compare(&pair)?;
        if existing == Existing::UpToDate && self.options.sync {
            // The run that created the output may not have synced it.
            let folder = file.sync_all().and_then(|()| output.open_below(job.folder()));
            let synced = folder.and_then(|folder| Ok(folder.sync(|| Ok(&file))?));
            synced.map_err(Error::file("sync", &path))?;
        }
        Ok(existing)
    }
}

/// The number of threads of the engine, or fewer if the limit on open files requires it. First raises this limit to its permitted
/// maximum.
fn most_threads(engine: &Engine) -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let is_raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let limit = if is_raised { maximum } else { current }.unwrap_or(u64::MAX);
    let most = limit.saturating_sub(OTHER_OPEN_FILES) / OPEN_FILES;
    engine.threads().min(usize::try_from(most).unwrap_or(usize::MAX))
}

struct Work<'a> {
    writer: Writer<'a>,
    options: &'a Options<'a>,
    outcome: Mutex<&'a mut Outcome>,
}

impl Work<'_> {
    fn process(&self, job: &Job, threads: usize) {
        let stream = self.options.stream;
        if stream.is_interrupted() {
            return;
        }
        let processed = AtomicU64::new(0);
        // The progress for a file stops at its initial length, even if the file grows.
        let advance = |done: u64| {
            let done = done.min(job.len);
            self.writer.host.advance(done.saturating_sub(processed.swap(done, Ordering::Relaxed)));
        };
        let (progress, max_threads) = (Some(&advance as _), Some(threads));
        let finished = self.try_process(job, crate::Options { progress, max_threads, ..stream });
        if stream.is_interrupted() {
            // The interruption may be the cause of a failure, so the result is not recorded.
            return;
        }
        self.writer.host.file_done();
        advance(job.len);
        self.record(job.path(), finished);
    }

    /// Processes a file and returns the number of plaintext bytes.
    fn try_process(&self, job: &Job, stream: crate::Options<'_>) -> Result<u64> {
        let (input, input_path) = (job.open()?, job.path());
        let existing = match () {
            () if job.replace && job.exists => OnExisting::Replace,
            // An output that did not exist before the run is never replaced, even with `--force`: it may be the output
            // of another input, whose name the file system does not distinguish.
            () if job.replace => OnExisting::FailByLookup,
            () => OnExisting::Fail,
        };
        match self.writer.write(&input, &input_path, &job.output, existing, stream, |_, bytes| Ok(bytes)) {
            Ok((plaintext, has_changed)) => {
                if has_changed {
                    lock(&self.outcome).changed.push(input_path);
                }
                Ok(plaintext)
            }
            Err(Error::Exists { .. }) => Err(self.taken(job)),
            Err(error) => Err(error),
        }
    }

    /// The error for an output that did not exist before the run.
    fn taken(&self, job: &Job) -> Error {
        let path = self.options.output_dir.join(&job.output);
        let folder = self.writer.output.open_below(job.folder()).map_err(Error::file("look at", &path));
        if let Err(error) = folder.and_then(|folder| clash::check(&folder, &path)) {
            return error;
        }
        let path = quoted(&path);
        failed(format!("another process created the output {path} during the run: run the command again"))
    }

    fn record(&self, path: PathBuf, plaintext: Result<u64>) {
        let mut outcome = lock(&self.outcome);
        match plaintext {
            Ok(plaintext) => {
                outcome.done += 1;
                outcome.plaintext += plaintext;
            }
            Err(error) => outcome.failed.push((path, error)),
        }
    }
}
