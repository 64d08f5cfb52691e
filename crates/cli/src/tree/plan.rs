//! The assignment of outputs to inputs, with checks before the first byte is read.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lockstep::{OutputFile, OutputOptions, quoted};

use super::inputs::{Found, Inputs};
use super::{Advice, Options};
use crate::error::{Error, Result, failed};
use crate::signals::Guard;

/// One file to process.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) input: Found,
    /// The name of the output in `input.place`.
    pub(crate) name: OsString,
    /// The full path of the output.
    pub(crate) output: PathBuf,
    /// True if the name of the output exists.
    pub(crate) exists: bool,
    /// True if an existing output may be replaced.
    pub(crate) replace: bool,
}

/// Assigns an output to each file.
///
/// If `rename` returns no name for a file that was found in a folder, the file is moved to `inputs.skipped`.
///
/// # Errors
/// If `rename` returns no name for a file that the command line names; if two inputs have the same output; if an output
/// is an input or one of the files in `protected`; if an output exists and may be neither replaced nor skipped.
pub(crate) fn assign(
    inputs: &mut Inputs,
    rename: impl Fn(&OsStr) -> Option<OsString>,
    options: &Options<'_>,
) -> Result<Vec<Job>> {
    let mut jobs = Vec::with_capacity(inputs.files.len());
    for input in std::mem::take(&mut inputs.files) {
        let Some(name) = input.path.file_name().and_then(&rename) else {
            if input.below.is_none() {
                return Err(failed(format!(
                    "{} does not end in .enc: {}",
                    quoted(&input.path),
                    options.advice.name
                )));
            }
            inputs.skipped.push((input.path, "a file whose name does not end in .enc"));
            continue;
        };
        let output = options.output_dir.join(&input.place).join(&name);
        jobs.push(Job { input, name, output, exists: false, replace: options.force });
    }
    check_distinct(&jobs, options.advice)?;
    check_existing(jobs, &mut inputs.failed, options)
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

fn check_distinct(jobs: &[Job], advice: &Advice) -> Result<()> {
    let mut outputs: HashMap<&Path, &Path> = HashMap::with_capacity(jobs.len());
    for job in jobs {
        if let Some(other) = outputs.insert(&job.output, &job.input.path) {
            return Err(failed(format!(
                "{} and {} would both be written to {}: {}",
                quoted(other),
                quoted(&job.input.path),
                quoted(&job.output),
                advice.same_output
            )));
        }
    }
    Ok(())
}

/// Finds existing outputs. Inputs whose outputs cannot be checked are moved to `failed_files`.
fn check_existing(
    jobs: Vec<Job>,
    failed_files: &mut Vec<(PathBuf, Error)>,
    options: &Options<'_>,
) -> Result<Vec<Job>> {
    let id = |metadata: &Metadata| (metadata.dev(), metadata.ino());
    let inputs: HashSet<_> = jobs.iter().map(|job| job.input.id).collect();
    let protected = options.protected.iter().filter_map(|(what, path)| {
        let metadata = fs::metadata(path).ok().filter(Metadata::is_file)?;
        Some((id(&metadata), (*what, *path)))
    });
    let protected: HashMap<_, _> = protected.collect();
    let mut checked = Vec::with_capacity(jobs.len());
    for mut job in jobs {
        match fs::symlink_metadata(&job.output) {
            Ok(metadata) => {
                if let Some((what, path)) = protected.get(&id(&metadata)) {
                    let path = quoted(*path);
                    return Err(failed(format!(
                        "the output would replace the {what} {path}: choose another folder"
                    )));
                }
                if inputs.contains(&id(&metadata)) {
                    return Err(failed(format!(
                        "the output {} is one of the inputs: choose another folder",
                        quoted(&job.output)
                    )));
                }
                job.exists = true;
                checked.push(job);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => checked.push(job),
            // The error affects only this file, for example if its name is too long or if a folder has no search
            // permission.
            Err(error) => failed_files.push((job.input.path, Error::io("look at", &job.output)(error))),
        }
    }
    let existing = checked.iter().filter(|job| job.exists).count();
    match checked.iter().find(|job| job.exists) {
        Some(first) if !options.force && !options.resume => {
            let first = quoted(&first.output);
            let which = match existing {
                1 => format!("the output {first} exists"),
                _ => format!("{existing} of the outputs exist, the first is {first}"),
            };
            Err(failed(format!("{which}: {}", options.advice.existing)))
        }
        _ => Ok(checked),
    }
}
