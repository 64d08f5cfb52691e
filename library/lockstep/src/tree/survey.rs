//! The content of the output folder before the run.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::clash::StoredNames;
use super::inputs::{Inputs, Job, Place, encrypted};
use super::leftovers::Leftovers;
use super::plan::folder_refused;
use super::write::output_error;
use super::{Direction, Options};
use crate::error::{Error, Result, copy, failed};
use crate::folder::{Folder, Id, id as id_of};
use crate::quoted::quoted;

/// The files, folders and skipped entries that belong to one output folder.
#[derive(Default)]
struct Content<'a> {
    jobs: Vec<&'a mut Job>,
    places: Vec<&'a mut Place>,
    /// Skipped entries of input folders, as paths below the output folder.
    skipped: Vec<&'a Path>,
    /// True if an input folder corresponds to this folder.
    has_input: bool,
}

/// A file that does not count as a leftover, because it is an input, a protected file or an output.
enum Known<'a> {
    Input,
    /// A file that no output may replace, such as a key file, with its description and its path.
    Protected(&'a str, &'a Path),
    Output,
}

struct Survey<'a> {
    options: &'a Options<'a>,
    finds_leftovers: bool,
    known: HashMap<Id, Known<'a>>,
    /// Output folders to which nothing is written.
    refused: HashSet<PathBuf>,
    /// The input folders of the refused output folders, with the reasons.
    failed: Vec<(PathBuf, Error)>,
    leftovers: Leftovers,
}

/// Finds outputs and folders that exist, and sets `exists` and `is_refused`. Inputs whose outputs cannot be checked, or have a name
/// that the file system does not distinguish from another name, are moved to `inputs.failed`. Returns the leftovers if existing
/// outputs of encryption may be kept, replaced or deleted.
///
/// # Errors
/// If an output is an input or one of the protected files.
pub(super) fn survey(
    output: &Folder,
    inputs: &mut Inputs,
    direction: Direction,
    options: &Options<'_>,
) -> Result<Leftovers> {
    let may_change = options.resume || options.force || options.delete;
    let protected = options.protected.iter().filter_map(|(what, path)| {
        let found = fs::metadata(path).ok().filter(Metadata::is_file)?;
        Some(((found.dev(), found.ino()), Known::Protected(what, path)))
    });
    let finds_leftovers = direction == Direction::Encrypt && may_change;
    let known = inputs.jobs.iter().map(|job| (job.id, Known::Input)).chain(protected).collect();
    let (refused, failed, leftovers) = Default::default();
    let mut survey = Survey { options, finds_leftovers, known, refused, failed, leftovers };
    // A folder comes after its parent in the order of paths.
    for (path, content) in contents(inputs) {
        survey.look_into(output, &path, content)?;
    }
    inputs.failed.extend(survey.failed);
    for mut job in std::mem::take(&mut inputs.jobs) {
        match job.error.take() {
            Some(error) => inputs.failed.push((job.path(), error)),
            None => inputs.jobs.push(job),
        }
    }
    Ok(survey.leftovers)
}

/// The content of each output folder.
fn contents(inputs: &mut Inputs) -> BTreeMap<PathBuf, Content<'_>> {
    let mut folders: BTreeMap<PathBuf, Content<'_>> = BTreeMap::new();
    for place in &mut inputs.places {
        folders.entry(place.path.clone()).or_default().has_input |= place.root.is_some();
        if let Some(parent) = place.path.parent().map(Path::to_owned) {
            folders.entry(parent).or_default().places.push(place);
        }
    }
    for job in &mut inputs.jobs {
        folders.entry(job.folder().to_owned()).or_default().jobs.push(job);
    }
    for entry in &inputs.skipped_entries {
        let parent = entry.parent().unwrap_or(Path::new(""));
        folders.entry(parent.to_owned()).or_default().skipped.push(entry);
    }
    folders
}

impl Survey<'_> {
    fn look_into(&mut self, output: &Folder, path: &Path, content: Content<'_>) -> Result<()> {
        let Content { mut jobs, mut places, skipped, has_input } = content;
        if self.refused.contains(path) {
            jobs.into_iter().for_each(|job| job.error = Some(folder_refused()));
            places.into_iter().for_each(|place| self.refuse(place, folder_refused()));
            return Ok(());
        }
        let output_dir = self.options.output_dir;
        let full = |relative: &Path| output_dir.join(relative);
        let folder = match output.open_below(path) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                for job in jobs {
                    job.error = Some(Error::file("look at", &full(&job.output))(copy(&error)));
                }
                return Ok(());
            }
        };
        // Without permission to list the folder, names are not compared.
        let stored = StoredNames::list(&folder).ok();
        let check_name =
            |path: &Path, id: Id| stored.as_ref().map_or(Ok(()), |stored| stored.check(&folder, path, id));
        for job in &mut jobs {
            let path = full(&job.output);
            match folder.look(path.file_name().unwrap_or_default()) {
                Ok(None) => {}
                Ok(Some(stat)) => {
                    let id = id_of(&stat);
                    self.check_unused(&path, id)?;
                    self.known.insert(id, Known::Output);
                    job.exists = true;
                    job.error = check_name(&path, id).err();
                }
                // Only this file fails, for example because its name is too long or because a folder has no search permission.
                Err(error) => job.error = Some(output_error(Error::file("look at", &path)(error), &path)),
            }
        }
        for place in &mut places {
            // If the lookup fails, the later creation of the folder reports the error.
            let Ok(Some(stat)) = folder.look(place.path.file_name().unwrap_or_default()) else { continue };
            match check_name(&full(&place.path), id_of(&stat)) {
                Ok(()) => place.exists = true,
                Err(error) => self.refuse(place, error),
            }
        }
        if self.finds_leftovers && has_input {
            // The output of a skipped input is not a leftover. An input may have an output and be skipped, for example because a
            // symbolic link has replaced the input since the output was created.
            let encrypted = skipped.iter().filter_map(|path| path.file_name()).map(encrypted);
            let outputs = jobs.iter().map(|job| &*job.output).chain(places.iter().map(|place| &*place.path));
            let names = outputs.chain(skipped.iter().copied()).filter_map(Path::file_name);
            let wanted: HashSet<OsString> = names.map(OsStr::to_owned).chain(encrypted).collect();
            let names = stored.iter().flat_map(|stored| &stored.names);
            for name in names.filter(|name| !wanted.contains(*name)) {
                self.leftovers.add(&folder, path, name, |id| self.known.contains_key(&id));
            }
        }
        Ok(())
    }

    /// Refuses an existing output that is an input or a protected file.
    fn check_unused(&self, output: &Path, id: Id) -> Result<()> {
        let problem = match self.known.get(&id) {
            Some(Known::Protected(what, key)) => format!("would replace the {what} {}", quoted(*key)),
            Some(Known::Input) => format!("{} is one of the inputs", quoted(output)),
            Some(Known::Output) | None => return Ok(()),
        };
        Err(failed(format!("the output {problem}: choose another folder")))
    }

    fn refuse(&mut self, place: &mut Place, error: Error) {
        place.is_refused = true;
        self.refused.insert(place.path.clone());
        self.failed.push((place.shown(OsStr::new("")), error));
    }
}
