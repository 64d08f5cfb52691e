//! What the output folder contains before the run.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::clash::StoredNames;
use super::inputs::{Inputs, encrypted};
use super::leftovers::Leftovers;
use super::plan::folder_refused;
use super::write::output_error;
use super::{Direction, Options};
use crate::error::{Error, Result, copy, failed};
use crate::folder::{Folder, Id, id as id_of};
use crate::quoted::quoted;

/// The jobs and folders of one output folder, as indices.
#[derive(Default)]
struct Content {
    jobs: Vec<usize>,
    places: Vec<usize>,
    /// Skipped entries of input folders.
    skipped: Vec<usize>,
    /// True if an input folder corresponds to this folder.
    has_input: bool,
}

struct Survey<'a> {
    inputs: &'a mut Inputs,
    options: &'a Options<'a>,
    finds_leftovers: bool,
    /// The identities of the inputs.
    input_ids: HashSet<Id>,
    /// The files that no output may replace, each with a description.
    protected: Vec<(Id, &'a str, &'a Path)>,
    /// Inputs, keys and existing outputs: no leftovers.
    known: HashSet<Id>,
    /// Nothing is written to these folders.
    refused: HashSet<PathBuf>,
    /// The jobs whose outputs cannot be written.
    errors: HashMap<usize, Error>,
    leftovers: Leftovers,
}

/// Finds outputs and folders that exist, and sets `exists` and `is_refused`. Inputs whose outputs cannot be checked, or
/// have a name that the file system does not distinguish from another one, are moved to `inputs.failed`. Returns the leftovers
/// if existing outputs of encryption may be kept, replaced or deleted.
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
    let input_ids: HashSet<Id> = inputs.jobs.iter().map(|job| job.id).collect();
    let protected = options.protected.iter().filter_map(|(what, path)| {
        let found = fs::metadata(path).ok().filter(Metadata::is_file)?;
        Some(((found.dev(), found.ino()), *what, *path))
    });
    let protected: Vec<_> = protected.collect();
    let folders = contents(inputs);
    let mut survey = Survey {
        inputs,
        options,
        finds_leftovers: direction == Direction::Encrypt && may_change,
        known: input_ids.iter().copied().chain(protected.iter().map(|(id, ..)| *id)).collect(),
        input_ids,
        protected,
        refused: HashSet::new(),
        errors: HashMap::new(),
        leftovers: Leftovers::default(),
    };
    // The order of paths is such that each folder follows its parent.
    for (path, content) in folders {
        survey.look_into(output, &path, &content)?;
    }
    let Survey { inputs, mut errors, refused, leftovers, .. } = survey;
    for (index, job) in std::mem::take(&mut inputs.jobs).into_iter().enumerate() {
        let is_refused = || refused.contains(job.folder()).then(folder_refused);
        match errors.remove(&index).or_else(is_refused) {
            Some(error) => inputs.failed.push((job.path(), error)),
            None => inputs.jobs.push(job),
        }
    }
    Ok(leftovers)
}

/// The content of each output folder.
fn contents(inputs: &Inputs) -> BTreeMap<PathBuf, Content> {
    let mut folders: BTreeMap<PathBuf, Content> = BTreeMap::new();
    for (index, place) in inputs.places.iter().enumerate() {
        folders.entry(place.path.clone()).or_default().has_input |= place.root.is_some();
        if let Some(parent) = place.path.parent() {
            folders.entry(parent.to_owned()).or_default().places.push(index);
        }
    }
    for (index, job) in inputs.jobs.iter().enumerate() {
        folders.entry(job.folder().to_owned()).or_default().jobs.push(index);
    }
    for (index, entry) in inputs.skipped_entries.iter().enumerate() {
        let parent = entry.parent().unwrap_or(Path::new(""));
        folders.entry(parent.to_owned()).or_default().skipped.push(index);
    }
    folders
}

impl Survey<'_> {
    fn look_into(&mut self, output: &Folder, path: &Path, content: &Content) -> Result<()> {
        if self.refused.contains(path) {
            content.places.iter().for_each(|&index| self.refuse(index, folder_refused()));
            return Ok(());
        }
        let folder = match output.open_below(path) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                for &index in &content.jobs {
                    let error = Error::file("look at", &self.output(index))(copy(&error));
                    self.errors.insert(index, error);
                }
                return Ok(());
            }
        };
        // Without permission to list the folder, names are not compared.
        let stored = StoredNames::list(&folder).ok();
        let check_name =
            |path: &Path, id: Id| stored.as_ref().map_or(Ok(()), |stored| stored.check(&folder, path, id));
        for &index in &content.jobs {
            let path = self.output(index);
            let exists = match folder.look(path.file_name().unwrap_or_default()) {
                Ok(None) => Ok(false),
                Ok(Some(stat)) => {
                    let id = id_of(&stat);
                    self.check_unused(&path, id)?;
                    self.known.insert(id);
                    check_name(&path, id).map(|()| true)
                }
                // The error affects only this file, for example if its name is too long or if a folder has no search
                // permission.
                Err(error) => Err(output_error(Error::file("look at", &path)(error), &path)),
            };
            match exists {
                Ok(exists) => self.inputs.jobs[index].exists = exists,
                Err(error) => drop(self.errors.insert(index, error)),
            }
        }
        for &index in &content.places {
            let place = &mut self.inputs.places[index];
            // Other errors are reported when the folder is created.
            let Ok(Some(stat)) = folder.look(place.path.file_name().unwrap_or_default()) else { continue };
            match check_name(&self.options.output_dir.join(&place.path), id_of(&stat)) {
                Ok(()) => place.exists = true,
                Err(error) => self.refuse(index, error),
            }
        }
        if self.finds_leftovers && content.has_input {
            let wanted = self.wanted(content);
            let names = stored.iter().flat_map(|stored| &stored.names);
            for name in names.filter(|name| !wanted.contains(*name)) {
                self.leftovers.add(&folder, path, name, &self.known);
            }
        }
        Ok(())
    }

    /// Refuses an existing output that is an input or a protected file.
    fn check_unused(&self, output: &Path, id: Id) -> Result<()> {
        if let Some((_, what, key)) = self.protected.iter().find(|(protected, ..)| *protected == id) {
            let key = quoted(*key);
            return Err(failed(format!("the output would replace the {what} {key}: choose another folder")));
        }
        if self.input_ids.contains(&id) {
            let path = quoted(output);
            return Err(failed(format!("the output {path} is one of the inputs: choose another folder")));
        }
        Ok(())
    }

    fn refuse(&mut self, place: usize, error: Error) {
        let place = &mut self.inputs.places[place];
        place.is_refused = true;
        self.refused.insert(place.path.clone());
        self.inputs.failed.push((place.shown(OsStr::new("")), error));
    }

    /// The names in an output folder for which there is an input. A skipped input has one too: for example, a file that
    /// was replaced by a symbolic link.
    fn wanted(&self, content: &Content) -> HashSet<OsString> {
        let Inputs { jobs, places, skipped_entries, .. } = &*self.inputs;
        let jobs = content.jobs.iter().map(|&index| jobs[index].output.as_path());
        let places = content.places.iter().map(|&index| places[index].path.as_path());
        let skipped = || content.skipped.iter().map(|&index| skipped_entries[index].as_path());
        let names = jobs.chain(places).chain(skipped()).filter_map(Path::file_name).map(OsStr::to_owned);
        names.chain(skipped().filter_map(Path::file_name).map(encrypted)).collect()
    }

    fn output(&self, job: usize) -> PathBuf {
        self.options.output_dir.join(&self.inputs.jobs[job].output)
    }
}
