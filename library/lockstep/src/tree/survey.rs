//! What the output folder contains before the run.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::clash::StoredNames;
use super::error::{self, Error, Result, failed};
use super::folder::{Folder, Id, id as id_of};
use super::inputs::{Inputs, Place};
use super::leftovers::Leftovers;
use super::names::Direction;
use super::plan::Job;
use super::write::output_error;
use super::{Options, plan};
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
    output: &'a Folder,
    options: &'a Options<'a>,
    finds_leftovers: bool,
    jobs: &'a [Job],
    places: &'a [Place],
    skipped: &'a [(usize, OsString)],
    /// Inputs, keys and existing outputs: no leftovers.
    known: HashSet<Id>,
    /// Whether the outputs exist. Nothing is written to those with an error.
    job_states: Vec<Result<bool>>,
    place_states: Vec<Result<bool>>,
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
    jobs: Vec<Job>,
    inputs: &mut Inputs,
    direction: Direction,
    options: &Options<'_>,
) -> Result<(Vec<Job>, Leftovers)> {
    let may_change = options.resume || options.force || options.delete;
    let mut survey = Survey {
        output,
        options,
        finds_leftovers: direction == Direction::Encrypt && may_change,
        jobs: &jobs,
        places: &inputs.places,
        skipped: &inputs.skipped_entries,
        known: HashSet::new(),
        job_states: jobs.iter().map(|_| Ok(false)).collect(),
        place_states: inputs.places.iter().map(|_| Ok(false)).collect(),
        leftovers: Leftovers::default(),
    };
    survey.run()?;
    let Survey { job_states, place_states, leftovers, .. } = survey;
    for (place, state) in inputs.places.iter_mut().zip(place_states) {
        match state {
            Ok(exists) => place.exists = exists,
            Err(error) => {
                place.is_refused = true;
                inputs.failed.push((place.shown(OsStr::new("")), error));
            }
        }
    }
    let mut left = Vec::with_capacity(jobs.len());
    for (mut job, state) in jobs.into_iter().zip(job_states) {
        let is_refused = inputs.places[job.input.place].is_refused;
        match state {
            Ok(_) if is_refused => {
                inputs.failed.push((job.input.path(&inputs.places), plan::folder_refused()));
            }
            Ok(exists) => {
                job.exists = exists;
                left.push(job);
            }
            Err(error) => inputs.failed.push((job.input.path(&inputs.places), error)),
        }
    }
    Ok((left, leftovers))
}

impl<'a> Survey<'a> {
    fn run(&mut self) -> Result<()> {
        let inputs: HashSet<Id> = self.jobs.iter().map(|job| job.input.id).collect();
        self.known.extend(&inputs);
        let mut protected = Vec::new();
        for (what, path) in &self.options.protected {
            if let Some(found) = fs::metadata(path).ok().filter(Metadata::is_file) {
                self.known.insert((found.dev(), found.ino()));
                protected.push(((found.dev(), found.ino()), *what, *path));
            }
        }
        let mut folders: BTreeMap<&'a Path, Content> = BTreeMap::new();
        for (index, place) in self.places.iter().enumerate() {
            folders.entry(&place.path).or_default().has_input |= place.root.is_some();
            if let Some(parent) = place.path.parent() {
                folders.entry(parent).or_default().places.push(index);
            }
        }
        for (index, job) in self.jobs.iter().enumerate() {
            folders.entry(&self.places[job.input.place].path).or_default().jobs.push(index);
        }
        for (index, (place, _)) in self.skipped.iter().enumerate() {
            folders.entry(&self.places[*place].path).or_default().skipped.push(index);
        }
        let mut refused: HashSet<&Path> = HashSet::new();
        // The order of paths is such that each folder follows its parent.
        for (path, content) in folders {
            if refused.contains(path) {
                for index in content.places {
                    refused.insert(&self.places[index].path);
                    self.place_states[index] = Err(plan::folder_refused());
                }
                continue;
            }
            let folder = match self.output.open_below(path) {
                Ok(folder) => folder,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    for index in content.jobs {
                        let refused = Error::io("look at", &self.path(index))(error::copy(&error));
                        self.job_states[index] = Err(refused);
                    }
                    continue;
                }
            };
            self.look_into(&folder, path, content, &inputs, &protected, &mut refused)?;
        }
        self.leftovers.sort();
        Ok(())
    }

    fn look_into(
        &mut self,
        folder: &Folder,
        path: &Path,
        content: Content,
        inputs: &HashSet<Id>,
        protected: &[(Id, &str, &Path)],
        refused: &mut HashSet<&'a Path>,
    ) -> Result<()> {
        // Without permission to list the folder, names are not compared.
        let stored = StoredNames::list(folder).ok();
        let is_distinguished = |path: &Path, id: Id| {
            let checked = stored.as_ref().map_or(Ok(()), |stored| stored.check(folder, path, id));
            checked.map(|()| true)
        };
        for &index in &content.jobs {
            let name = &self.jobs[index].name;
            self.job_states[index] = match folder.look(name) {
                Ok(None) => Ok(false),
                Ok(Some(stat)) => {
                    let (id, path) = (id_of(&stat), self.path(index));
                    if let Some((_, what, key)) = protected.iter().find(|(protected, ..)| *protected == id) {
                        let key = quoted(*key);
                        return Err(failed(format!(
                            "the output would replace the {what} {key}: choose another folder"
                        )));
                    }
                    if inputs.contains(&id) {
                        let path = quoted(&path);
                        return Err(failed(format!(
                            "the output {path} is one of the inputs: choose another folder"
                        )));
                    }
                    self.known.insert(id);
                    is_distinguished(&path, id)
                }
                // The error affects only this file, for example if its name is too long or if a folder has no search
                // permission.
                Err(error) => {
                    let path = self.path(index);
                    Err(output_error(Error::io("look at", &path)(error), &path))
                }
            };
        }
        for &index in &content.places {
            let place = &self.places[index];
            let name = place.path.file_name().unwrap_or_default();
            // Other errors are reported when the folder is created.
            let Ok(Some(stat)) = folder.look(name) else { continue };
            let path = self.options.output_dir.join(&place.path);
            self.place_states[index] = is_distinguished(&path, id_of(&stat));
            if self.place_states[index].is_err() {
                refused.insert(&place.path);
            }
        }
        if self.finds_leftovers && content.has_input {
            let wanted = self.wanted(&content);
            for name in stored.iter().flat_map(StoredNames::iter).filter(|&name| !wanted.contains(name)) {
                self.leftovers.add(folder, path, name, &self.known);
            }
        }
        Ok(())
    }

    /// The names in an output folder for which there is an input. A skipped input has one too: for example, a file that
    /// was replaced by a symbolic link.
    fn wanted(&self, content: &Content) -> HashSet<Cow<'a, OsStr>> {
        let jobs = content.jobs.iter().map(|&index| self.jobs[index].name.as_os_str());
        let places = content.places.iter().filter_map(|&index| self.places[index].path.file_name());
        let skipped = || content.skipped.iter().map(|&index| self.skipped[index].1.as_os_str());
        let outputs = skipped().filter_map(|name| Direction::Encrypt.output_name(name));
        jobs.chain(places).chain(skipped()).map(Cow::Borrowed).chain(outputs.map(Cow::Owned)).collect()
    }

    fn path(&self, job: usize) -> PathBuf {
        self.jobs[job].output(self.options.output_dir, self.places)
    }
}
