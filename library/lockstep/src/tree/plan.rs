//! The checks of inputs and outputs before the first byte is read.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::inputs::{Inputs, Job};
use super::leftovers::Leftovers;
use super::survey::survey;
use super::{Direction, Host, Options};
use crate::error::{Error, Result, failed};
use crate::folder::Folder;
use crate::output::{OutputOptions, check_folder};
use crate::quoted::quoted;

/// Lists the inputs, assigns an output to each file, and checks that the outputs can be written. Returns the output folder, if it
/// exists, the inputs with their outputs, and the outputs without input.
///
/// # Errors
/// Those of [`Inputs::find`]; if the folders contain no file to process; if two inputs have the same output; if an output is
/// an input or one of the files in `protected`; if an output exists and may be neither replaced nor skipped; if the output
/// folder cannot be written to.
pub(super) fn assign(
    given: &[PathBuf],
    direction: Direction,
    options: &Options<'_>,
    host: &dyn Host,
) -> Result<(Option<Folder>, Inputs, Leftovers)> {
    let path = options.output_dir;
    let output = match Folder::open(path, true) {
        Ok(folder) => Some(folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Error::file("open the folder", path)(error)),
    };
    let id = output.as_ref().map(Folder::id).transpose().map_err(Error::file("look at", path))?;
    let mut inputs = Inputs::find(given, direction, options, id)?;
    if options.delete {
        check_unambiguous(&inputs)?;
    }
    if inputs.jobs.is_empty() && inputs.failed.is_empty() {
        check_not_empty(&inputs, direction)?;
    }
    check_distinct(&inputs, options)?;
    let mut leftovers = Leftovers::default();
    if let Some(output) = &output {
        leftovers = survey(output, &mut inputs, direction, options)?;
        check_existing(&inputs, options)?;
    }
    check_writable(options, host)?;
    Ok((output, inputs, leftovers))
}

/// Checks that files can be created in the output folder or, if it is missing, in the folder in which it will be
/// created.
fn check_writable(options: &Options<'_>, host: &dyn Host) -> Result<()> {
    let folder = options.output_dir.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let output = OutputOptions { force: options.force, sync: options.sync, ..Default::default() };
    let _guard = host.guard();
    check_folder(folder, output)
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
    let wanted = match direction {
        Direction::Encrypt => "file to encrypt",
        Direction::Decrypt => "file whose name ends in .enc",
    };
    let folder = quoted(&first.shown(OsStr::new(""))).to_string();
    Err(failed(format!("there is no {wanted} in {folder}{skipped}: check the path")))
}

fn check_distinct(inputs: &Inputs, options: &Options<'_>) -> Result<()> {
    let mut outputs: HashMap<&Path, &Job> = HashMap::with_capacity(inputs.jobs.len());
    for job in &inputs.jobs {
        if let Some(other) = outputs.insert(&job.output, job) {
            let paths = [other.path(), job.path(), options.output_dir.join(&job.output)];
            let [first, second, output] = paths.map(|path| quoted(&path).to_string());
            let advice = options.advice.same_output;
            return Err(failed(format!("{first} and {second} would both be written to {output}: {advice}")));
        }
    }
    Ok(())
}

/// Refuses outputs that exist, unless they may be replaced or skipped.
fn check_existing(inputs: &Inputs, options: &Options<'_>) -> Result<()> {
    let mut existing = inputs.jobs.iter().filter(|job| job.exists);
    match existing.next() {
        Some(first) if !options.force && !options.resume => {
            let first = options.output_dir.join(&first.output);
            let which = match existing.count() + 1 {
                1 => format!("the output {} exists", quoted(&first)),
                count => format!("{count} of the outputs exist, the first is {}", quoted(&first)),
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

/// Refuses inputs that share an output folder. In a shared folder, the outputs of one input would count as outputs without input
/// for the other inputs, and could be deleted.
fn check_unambiguous(inputs: &Inputs) -> Result<()> {
    let mut bases = HashSet::new();
    // The list has one place for each folder that the caller names, and one place for all files that the caller names.
    let roots = inputs.places.iter().filter(|place| place.input.as_os_str().is_empty());
    for place in roots.clone() {
        // The output folder itself contains the output folders of all other inputs.
        let contains_others = place.root.is_some() && place.path.as_os_str().is_empty();
        if !bases.insert(&place.path) || contains_others && roots.clone().count() > 1 {
            return Err(failed(format!(
                "with --delete, {} and another input would share an output folder: run the command once for each, with \
                 separate output folders",
                quoted(&place.shown(OsStr::new("")))
            )));
        }
    }
    Ok(())
}
