//! Many files in one call: `-O DIR`, files and folders, spread over all cores.
//!
//! [`inputs`] lists what there is to do, [`plan`] assigns the outputs and refuses what cannot work before any of it is
//! done, [`mod@run`] processes the files, and [`mod@report`] prints what became of them. Paths below folders are opened by
//! [`folder`], without following symbolic links.

mod folder;
mod inputs;
pub(crate) mod names;
mod plan;
mod report;
mod run;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};

use lockstep::{Engine, OutputFile};

use self::folder::Folder;
use self::inputs::Inputs;
use self::run::Outcome;
use crate::args::ProgressArgs;
use crate::error::{self, Error, Result};
use crate::input::Input;
use crate::signals;

/// What is done to each file.
pub(crate) trait Operation: Sync {
    /// What was done, for messages: `encrypted`.
    fn done(&self) -> &'static str;

    /// The output's name for an input's name, if it has one.
    fn output_name(&self, input: &OsStr) -> Option<OsString>;

    /// Compares an output that exists with its input; `is_older`: it was last written before the input was.
    ///
    /// # Errors
    /// Reading fails.
    fn compare(&self, input: &Input, output: &File, is_older: bool) -> Result<Existing>;

    /// Reads all of the input and writes all of the output. The result is the number of plaintext bytes.
    ///
    /// # Errors
    /// All of those of encryption and decryption.
    fn process(
        &self,
        input: &mut Input,
        output: &mut OutputFile,
        options: lockstep::Options<'_>,
    ) -> Result<u64>;
}

/// How an output that exists relates to its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    /// Complete, and not older than its input.
    UpToDate,
    /// Made by this command from an earlier version of the input: it can be replaced.
    Outdated,
    /// Perhaps something else.
    Unknown(&'static str),
}

/// What was asked for.
pub(crate) struct Options<'a> {
    pub(crate) output_dir: &'a Path,
    pub(crate) recursive: bool,
    /// Skip outputs that are up to date.
    pub(crate) resume: bool,
    /// Replace outputs that exist.
    pub(crate) force: bool,
    /// Have each output on stable storage before it counts as done.
    pub(crate) sync: bool,
    /// Files that no output may replace, each with what it is.
    pub(crate) protected: Vec<(&'a str, &'a Path)>,
}

/// Processes all files. Those that fail do not keep the others from being processed.
///
/// `prepare` is called on this thread for each file before any of the work begins: it finds keys, and asks for passphrases.
///
/// # Errors
/// What keeps all of the work from beginning, also a mistake on the command line that `prepare` finds with the first
/// file; [`Error::Reported`] if some files failed, and were listed.
pub(crate) fn run(
    engine: &Engine,
    operation: &dyn Operation,
    prepare: &mut dyn FnMut(&mut Input) -> Result<()>,
    given: &[PathBuf],
    options: &Options<'_>,
    messages: &ProgressArgs,
) -> Result<()> {
    let path = options.output_dir;
    let output_id = match std::fs::metadata(path) {
        Ok(_) => {
            Some(Folder::open(path, true).and_then(|folder| folder.id()).map_err(Error::io("open", path))?)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(Error::io("open", path)(error)),
    };
    let mut inputs = Inputs::find(given, options.recursive, output_id)?;
    let jobs = plan::assign(&mut inputs, |name| operation.output_name(name), options)?;
    let mut ready = Vec::with_capacity(jobs.len());
    for (index, job) in jobs.into_iter().enumerate() {
        match run::open_input(&job).and_then(|mut input| prepare(&mut input)) {
            Ok(()) => ready.push(job),
            Err(error) if index == 0 && error.exit_code() == error::FAILED => return Err(error),
            Err(error) => inputs.failed.push((job.input.path, error)),
        }
        if signals::stopped() {
            return Err(Error::Stopped);
        }
    }
    let outcome = if ready.is_empty() && !inputs.failed.is_empty() {
        Outcome::default()
    } else {
        std::fs::create_dir_all(path).map_err(Error::io("make the folder", path))?;
        let output = Folder::open(path, true).map_err(Error::io("open the folder", path))?;
        run::run(engine, operation, &output, &inputs.places, ready, options, messages)
    };
    report::report(engine, operation.done(), inputs, outcome, messages)
}
