//! The assignment of outputs to inputs, with checks before the first byte is read.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use lockstep::{OutputFile, OutputOptions, quoted};
use rustix::io::Errno;

use super::Options;
use super::folder::Folder;
use super::inputs::{Found, Inputs, Place};
use super::leftovers::Leftovers;
use super::names::Direction;
use super::survey::survey;
use crate::error::{Error, Result, failed};
use crate::signals::Guard;

/// One file to process.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) input: Found,
    /// The name of the output in its folder.
    pub(crate) name: OsString,
    /// True if the output exists.
    pub(crate) exists: bool,
    /// True if an existing output may be replaced.
    pub(crate) replace: bool,
}

impl Job {
    /// The path of the output below the output folder.
    pub(crate) fn relative(&self, places: &[Place]) -> PathBuf {
        places[self.input.place].path.join(&self.name)
    }

    /// The path of the output.
    pub(crate) fn output(&self, output_dir: &Path, places: &[Place]) -> PathBuf {
        output_dir.join(self.relative(places))
    }
}

/// Assigns an output to each file. `output` is the output folder, if it exists.
///
/// A file without an output name that was found in a folder is moved to `inputs.skipped`.
///
/// # Errors
/// If a file that the command line names has no output name; if the folders contain no file to process; if two inputs
/// have the same output; if an output is an input or one of the files in `protected`; if an output exists and may be
/// neither replaced nor skipped.
pub(crate) fn assign(
    inputs: &mut Inputs,
    direction: Direction,
    output: Option<&Folder>,
    options: &Options<'_>,
) -> Result<(Vec<Job>, Leftovers)> {
    let mut jobs = Vec::with_capacity(inputs.files.len());
    for input in std::mem::take(&mut inputs.files) {
        let Some(name) = direction.output_name(&input.name) else {
            let path = input.path(&inputs.places);
            if input.given.is_some() {
                return Err(failed(format!(
                    "{} does not end in .enc: {}",
                    quoted(&path),
                    options.advice.name
                )));
            }
            inputs.skipped.push((path, "a file whose name does not end in .enc"));
            continue;
        };
        jobs.push(Job { input, name, exists: false, replace: options.force });
    }
    if jobs.is_empty() && inputs.failed.is_empty() {
        check_not_empty(inputs, direction)?;
    }
    check_distinct(&jobs, &inputs.places, options)?;
    let Some(output) = output else { return Ok((jobs, Leftovers::default())) };
    let (jobs, leftovers) = survey(output, jobs, inputs, direction, options)?;
    check_existing(&jobs, &inputs.places, options)?;
    Ok((jobs, leftovers))
}

/// Checks that files can be created in the output folder or, if it is missing, in the folder in which it will be
/// created.
pub(crate) fn check_writable(options: &Options<'_>) -> Result<()> {
    let mut folder = options.output_dir;
    while !folder.exists() {
        folder = match folder.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
    }
    let output = OutputOptions { force: options.force, sync: options.sync, ..Default::default() };
    let _guard = Guard::creating();
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
pub(crate) fn folder_refused() -> Error {
    failed("the folder of its output was not created")
}

/// The error for an output that cannot be looked up or created.
pub(crate) fn output_error(error: Error, path: &Path) -> Error {
    let is_too_long = matches!(
        &error,
        Error::Library(lockstep::Error::File { source, .. })
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
