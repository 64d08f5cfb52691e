//! Many files in one call: `-O DIR`, files and folders, on all cores.
//!
//! [`inputs`] lists the files, [`plan`] assigns the outputs, [`mod@survey`] checks them in advance, [`mod@run`]
//! processes the files. Paths below folders are opened by [`folder`], without
//! following symbolic links. [`groups`] is the interface for other programs.

mod clash;
mod existing;
mod folder;
pub mod groups;
mod inputs;
mod leftovers;
mod names;
mod plan;
mod run;
mod survey;
#[cfg(test)]
mod tests;
mod times;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use lockstep::{Engine, Sparse, quoted};

pub(crate) use self::existing::Existing;
use self::folder::Folder;
pub(crate) use self::inputs::Inputs;
use self::leftovers::Leftovers;
pub(crate) use self::names::Direction;
pub(crate) use self::run::Outcome;
pub(crate) use self::times::Times;
use crate::args::ProgressArgs;
use crate::error::{Error, Result, failed};
use crate::input::Input;
use crate::signals;
use crate::tree_report as report;

/// The operation on each file.
pub(crate) trait Operation: Sync {
    /// The verb for messages: `encrypted`.
    fn done(&self) -> &'static str;

    /// Whether the files are encrypted or decrypted.
    fn direction(&self) -> Direction;

    /// Whether new outputs have holes.
    fn sparse(&self) -> Sparse {
        Sparse::default()
    }

    /// Compares an existing output with its input.
    ///
    /// # Errors
    /// If the input or the output cannot be read.
    fn compare(&self, input: &Input, output: &File, times: Times) -> Result<Existing>;

    /// True if a file is known to be an output of this operation, for an input that does not exist any more.
    fn is_own(&self, output: &File) -> bool;

    /// Reads the whole input and writes the whole output; returns the number of plaintext bytes.
    ///
    /// # Errors
    /// All errors of encryption and decryption. The output is to be kept if [`Error::keeps_output`] is true.
    fn process(
        &self,
        input: &mut Input,
        output: &mut (dyn Write + Send),
        options: lockstep::Options<'_>,
    ) -> Result<u64>;
}

/// The state of a file before it is processed.
pub(crate) enum Prepared {
    Ready,
    /// This file cannot be processed. Other files are not affected.
    Failed(Error),
}

/// The options of the command.
pub(crate) struct Options<'a> {
    pub(crate) output_dir: &'a Path,
    pub(crate) recursive: bool,
    /// Skip outputs that are up to date.
    pub(crate) resume: bool,
    /// Replace existing outputs.
    pub(crate) force: bool,
    /// Put each output on stable storage before it counts as done.
    pub(crate) sync: bool,
    /// Delete outputs without input.
    pub(crate) delete: bool,
    /// Files that no output may replace, each with a description.
    pub(crate) protected: Vec<(&'a str, &'a Path)>,
    /// The remedies in messages.
    pub(crate) advice: &'static Advice,
}

/// What error messages advise: the options of the command, or the arguments of a call.
pub(crate) struct Advice {
    /// For an output that exists before the work starts.
    pub(crate) existing: &'static str,
    /// For an output that exists and that is not known to come from its input.
    pub(crate) unknown: &'static str,
    /// For two inputs with the same output.
    pub(crate) same_output: &'static str,
    /// For a file to decrypt whose name does not end in `.enc`.
    pub(crate) name: &'static str,
}

impl Advice {
    pub(crate) const COMMAND: Advice = Advice {
        existing: "keep those that are up to date with --resume, or use --force",
        unknown: "--force replaces it",
        same_output: "run the command once for each",
        name: "decrypt it by itself, with -o",
    };
}

/// Processes all files. The failure of a file does not affect the other files.
///
/// `prepare` finds keys and asks for passphrases. It is called on this thread for each file, before the first file is
/// processed.
///
/// If the work cannot start, returns the reason, such as an error of `prepare`. If some files have failed, prints a
/// list of them and returns [`Error::Reported`].
pub(crate) fn run(
    engine: &Engine,
    operation: &dyn Operation,
    prepare: &mut dyn FnMut(&mut Input) -> Result<Prepared>,
    given: &[PathBuf],
    options: &Options<'_>,
    messages: &ProgressArgs,
) -> Result<()> {
    let path = options.output_dir;
    let existing = match Folder::open(path, true) {
        Ok(folder) => Some(folder),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(Error::io("open the folder", path)(error)),
    };
    let output_id = existing.as_ref().map(Folder::id).transpose().map_err(Error::io("look at", path))?;
    let mut inputs = Inputs::find(given, options.recursive, output_id)?;
    if options.delete {
        check_unambiguous(&inputs)?;
    }
    let (jobs, leftovers) = plan::assign(&mut inputs, operation.direction(), existing.as_ref(), options)?;
    plan::check_writable(options)?;
    let mut outcome = Outcome::default();
    let jobs = match &existing {
        Some(folder) if options.resume => {
            run::skip_up_to_date(engine, operation, folder, &inputs.places, jobs, options, &mut outcome)
        }
        _ => jobs,
    };
    let mut ready = Vec::with_capacity(jobs.len());
    for job in jobs {
        let prepared = match run::open_input(&job, &inputs.places) {
            Ok(mut input) => prepare(&mut input)?,
            Err(error) => Prepared::Failed(error),
        };
        match prepared {
            Prepared::Ready => ready.push(job),
            Prepared::Failed(error) => outcome.failed.push((job.input.path(&inputs.places), error)),
        }
        if signals::stopped() {
            return Err(Error::Stopped);
        }
    }
    // If every file has failed, no folder is created.
    if !ready.is_empty() || outcome.failed.is_empty() && inputs.failed.is_empty() {
        let output = run::make_output(path, options.sync).map_err(Error::io("make the folder", path))?;
        run::run(engine, operation, &output, &inputs.places, ready, options, messages, &mut outcome);
    }
    if let Some(output) = existing {
        handle_leftovers(operation, &output, &leftovers, options, &mut inputs, &mut outcome);
    }
    report::report(engine, operation.done(), inputs, outcome, messages)
}

/// Refuses inputs whose outputs share a folder, since the outputs of one could be deleted as those without an input of
/// the other.
fn check_unambiguous(inputs: &Inputs) -> Result<()> {
    let mut bases = HashSet::new();
    for place in inputs.places.iter().filter(|place| place.relative().as_os_str().is_empty()) {
        // The output folder itself contains all others.
        let contains_others = place.root.is_some() && place.path.as_os_str().is_empty();
        if !bases.insert(&place.path) || contains_others && inputs.roots() > 1 {
            return Err(failed(format!(
                "with --delete, {} and another input would share an output folder: run the command once for each, with \
                 separate output folders",
                quoted(&place.shown(OsStr::new("")))
            )));
        }
    }
    Ok(())
}

/// Deletes outputs without input, or lists them. If any input is not known or has failed, its output could be taken for
/// one without input, so nothing is deleted.
fn handle_leftovers(
    operation: &dyn Operation,
    output: &Folder,
    leftovers: &Leftovers,
    options: &Options<'_>,
    inputs: &mut Inputs,
    outcome: &mut Outcome,
) {
    let full = |path: &Path| options.output_dir.join(path);
    let is_complete = inputs.failed.is_empty() && outcome.failed.is_empty() && !signals::stopped();
    if !options.delete || !is_complete {
        outcome.leftovers = leftovers.paths().map(full).collect();
        return;
    }
    let deletion = leftovers.delete(output, options.sync, |file| operation.is_own(file));
    outcome.deleted = deletion.deleted.iter().map(|path| full(path)).collect();
    let kept =
        deletion.kept.iter().map(|path| (full(path), "not an output of this command, so it is not deleted"));
    inputs.skipped.extend(kept);
    outcome.failed.extend(deletion.failed.into_iter().map(|(path, error)| (full(&path), error)));
}
