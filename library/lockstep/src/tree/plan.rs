//! The assignment of outputs to inputs, with checks before the first byte is read.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use super::error::{Error, Result, failed};
use super::folder::Folder;
use super::inputs::{Found, Inputs, Place};
use super::leftovers::Leftovers;
use super::names::Direction;
use super::survey::survey;
use super::{Host, Options};
use crate::output::{OutputFile, OutputOptions};
use crate::quoted::quoted;

/// One file to process.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) input: Found,
    /// The name of the output in its folder.
    pub(super) name: OsString,
    /// True if the output exists.
    pub(super) exists: bool,
    /// True if an existing output may be replaced.
    pub(super) replace: bool,
}

impl Job {
    /// The path of the output below the output folder.
    pub(super) fn relative(&self, places: &[Place]) -> PathBuf {
        places[self.input.place].path.join(&self.name)
    }

    /// The path of the output.
    pub(super) fn output(&self, output_dir: &Path, places: &[Place]) -> PathBuf {
        output_dir.join(self.relative(places))
    }
}

/// The inputs and their outputs.
pub(super) struct Assigned {
    /// The output folder, if it exists.
    pub(super) output: Option<Folder>,
    pub(super) inputs: Inputs,
    pub(super) jobs: Vec<Job>,
    pub(super) leftovers: Leftovers,
}

impl Assigned {
    /// Lists the inputs, assigns an output to each file, and checks that the outputs can be written.
    ///
    /// A file without an output name that was found in a folder is skipped.
    ///
    /// # Errors
    /// Those of [`Inputs::find`]; if a file that is given has no output name; if the folders contain no file to process; if
    /// two inputs have the same output; if an output is an input or one of the files in `protected`; if an output exists and
    /// may be neither replaced nor skipped; if the output folder cannot be written to.
    pub(super) fn new(
        given: &[PathBuf],
        direction: Direction,
        options: &Options<'_>,
        host: &dyn Host,
    ) -> Result<Assigned> {
        let path = options.output_dir;
        let output = match Folder::open(path, true) {
            Ok(folder) => Some(folder),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io("open the folder", path)(error)),
        };
        let id = output.as_ref().map(Folder::id).transpose().map_err(Error::io("look at", path))?;
        let mut inputs = Inputs::find(given, options.recursive, id)?;
        if options.delete {
            check_unambiguous(&inputs)?;
        }
        let mut jobs = name_outputs(&mut inputs, direction, options)?;
        if jobs.is_empty() && inputs.failed.is_empty() {
            check_not_empty(&inputs, direction)?;
        }
        check_distinct(&jobs, &inputs.places, options)?;
        let mut leftovers = Leftovers::default();
        if let Some(output) = &output {
            (jobs, leftovers) = survey(output, jobs, &mut inputs, direction, options)?;
            check_existing(&jobs, &inputs.places, options)?;
        }
        check_writable(options, host)?;
        Ok(Assigned { output, inputs, jobs, leftovers })
    }
}

fn name_outputs(inputs: &mut Inputs, direction: Direction, options: &Options<'_>) -> Result<Vec<Job>> {
    let mut jobs = Vec::with_capacity(inputs.files.len());
    for input in std::mem::take(&mut inputs.files) {
        match direction.output_name(&input.name) {
            Some(name) => jobs.push(Job { input, name, exists: false, replace: options.force }),
            None => {
                let path = input.path(&inputs.places);
                if input.given.is_some() {
                    let (path, advice) = (quoted(&path), options.advice.name);
                    return Err(failed(format!("{path} does not end in .enc: {advice}")));
                }
                inputs.skipped.push((path, "a file whose name does not end in .enc"));
            }
        }
    }
    Ok(jobs)
}

/// Checks that files can be created in the output folder or, if it is missing, in the folder in which it will be
/// created.
fn check_writable(options: &Options<'_>, host: &dyn Host) -> Result<()> {
    let mut folder = options.output_dir;
    while !folder.exists() {
        folder = match folder.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
    }
    let output = OutputOptions { force: options.force, sync: options.sync, ..Default::default() };
    let _guard = host.guard();
    Ok(OutputFile::check_folder(folder, output)?)
}

/// Refuses folders without any file to process: their names may be mistyped, or a file system is not mounted.
fn check_not_empty(inputs: &Inputs, direction: Direction) -> Result<()> {
    let mut roots = inputs.places.iter().filter(|place| place.root.is_some());
    let Some(first) = roots.next() else { return Ok(()) };
    let skipped = match inputs.skipped.len() {
        0 => String::new(),
        1 => ", only another entry that is skipped".to_owned(),
        n => format!(", only {n} other entries that are skipped"),
    };
    Err(failed(format!(
        "there is no {} in {}{skipped}: check the path",
        direction.inputs(),
        quoted(&first.shown(OsStr::new("")))
    )))
}

fn check_distinct(jobs: &[Job], places: &[Place], options: &Options<'_>) -> Result<()> {
    let mut outputs: HashMap<(&Path, &OsStr), &Job> = HashMap::with_capacity(jobs.len());
    for job in jobs {
        if let Some(other) = outputs.insert((&places[job.input.place].path, &job.name), job) {
            return Err(failed(format!(
                "{} and {} would both be written to {}: {}",
                quoted(&other.input.path(places)),
                quoted(&job.input.path(places)),
                quoted(&job.output(options.output_dir, places)),
                options.advice.same_output
            )));
        }
    }
    Ok(())
}

/// Refuses outputs that exist, unless they may be replaced or skipped.
fn check_existing(jobs: &[Job], places: &[Place], options: &Options<'_>) -> Result<()> {
    let existing = jobs.iter().filter(|job| job.exists).count();
    match jobs.iter().find(|job| job.exists) {
        Some(first) if !options.force && !options.resume => {
            let first = first.output(options.output_dir, places);
            let which = match existing {
                1 => format!("the output {} exists", quoted(&first)),
                _ => format!("{existing} of the outputs exist, the first is {}", quoted(&first)),
            };
            Err(failed(format!("{which}: {}", options.advice.existing)))
        }
        _ => Ok(()),
    }
}

/// The error for a file whose output folder is not created.
pub(super) fn folder_refused() -> Error {
    failed("the folder of its output was not created")
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
