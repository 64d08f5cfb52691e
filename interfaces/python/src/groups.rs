//! Many files with one key, on several machines: the native part of `lockstep.ray`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lockstep::Error;
use lockstep::tree::{Group, IfExists, Plan, PlannedFile};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::buffer::Input;
use crate::engine;
use crate::error::{InvalidTag, from_library};
use crate::forks::{Origin, detached};
use crate::hazmat::direction;
use crate::keys::file_key;
use crate::task;

/// A file of a plan in Python: root, input, output, length, and None.
type PlannedTuple<'py> = (Bound<'py, PyString>, OsString, OsString, u64, Option<()>);

/// The files of a call, with their outputs.
#[pyclass(frozen, module = "lockstep._native")]
pub(crate) struct NativePlan(Plan);

#[pymethods]
impl NativePlan {
    /// Lists files and the content of folders, and assigns the outputs. existing: "refuse", "resume" or "replace".
    #[new]
    fn new(
        py: Python<'_>,
        encrypts: bool,
        inputs: Vec<PathBuf>,
        output: PathBuf,
        existing: &str,
        syncs: bool,
    ) -> PyResult<NativePlan> {
        let existing = match existing {
            "refuse" => IfExists::Refuse,
            "resume" => IfExists::Resume,
            "replace" => IfExists::Replace,
            _ => return Err(PyValueError::new_err("existing must be 'refuse', 'resume' or 'replace'")),
        };
        let plan = detached(py, || Plan::new(direction(encrypts), &inputs, &output, existing, syncs));
        Ok(NativePlan(plan.map_err(exception)?))
    }

    /// For each file: the root, the input below it, the output below the output folder, the length of the input, and None for the
    /// commitment. Consecutive files with the same root share one object for the root.
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Vec<PlannedTuple<'py>>> {
        let mut last: Option<(&Path, Bound<'py, PyString>)> = None;
        let files = self.0.files.iter().map(|file| {
            let root = match &last {
                Some((path, root)) if *path == file.root => root,
                _ => &last.insert((&file.root, OsString::from(&file.root).into_pyobject(py)?)).1,
            };
            Ok((root.clone(), OsString::from(&file.input), OsString::from(&file.output), file.len, None))
        });
        files.collect()
    }

    /// The files that are skipped, with the reasons.
    fn skipped(&self) -> Vec<(OsString, &'static str)> {
        self.0.skipped.iter().map(|(path, reason)| (OsString::from(path), *reason)).collect()
    }

    /// The files that cannot be processed, with the reasons.
    fn failed(&self) -> Vec<(OsString, String)> {
        self.0.failed.iter().map(|(path, error)| (OsString::from(path), error.to_string())).collect()
    }

    /// Encrypted files of earlier calls whose inputs do not exist any more, as paths below the output folder.
    fn without_input(&self) -> Vec<OsString> {
        self.0.without_input.iter().map(OsString::from).collect()
    }

    /// Creates the output folder and its planned subfolders.
    fn create_folders(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.0.create_folders()).map_err(exception)
    }

    /// Removes the temporary files that killed processes have left.
    fn remove_abandoned(&self, py: Python<'_>) {
        detached(py, || self.0.remove_abandoned());
    }
}

/// The result for a file: "written", "up to date", "not authentic" or "failed"; the lengths of the plain and of the encrypted file
/// and the commitment; an error message. Equal results share one string object, which makes pickles short.
type Outcome<'py> = (Bound<'py, PyString>, u64, u64, Option<Bound<'py, PyBytes>>, Option<String>);

/// A file to process: root, input, output, length, and the commitment that it must have.
type FileToProcess = (PathBuf, PathBuf, PathBuf, u64, Option<[u8; 32]>);

/// The key and the settings for the files of a plan. The key is wiped when the object is dropped.
#[pyclass(frozen, module = "lockstep._native")]
pub(crate) struct NativeGroups {
    /// Its engine is the engine that was selected when the object was made.
    group: Group,
    origin: Origin,
}

#[pymethods]
impl NativeGroups {
    #[new]
    fn new(
        py: Python<'_>,
        encrypts: bool,
        key: &Bound<'_, PyAny>,
        context: Input<'_>,
        output: PathBuf,
        replaces: bool,
        syncs: bool,
    ) -> PyResult<NativeGroups> {
        let (engine, direction) = (engine::current(py)?, direction(encrypts));
        let (key, context) = (file_key(key)?, context.to_vec());
        let group = Group { engine, direction, key, context, output, replace: replaces, sync: syncs };
        Ok(NativeGroups { group, origin: Origin::new() })
    }

    /// The number of threads of the engine.
    fn threads(&self) -> usize {
        self.group.engine.threads()
    }

    /// Processes files: root, input, output, and the commitment of the input or None. The results are in the order of the files.
    fn process<'py>(&self, py: Python<'py>, files: Vec<FileToProcess>) -> PyResult<Vec<Outcome<'py>>> {
        self.origin.check()?;
        let planned =
            |(root, input, output, len, expected)| (PlannedFile { root, input, output, len }, expected);
        let planned: Vec<_> = files.into_iter().map(planned).collect();
        let results = task::run(py, None, None, |options| Ok(self.group.process(&planned, options)))?;
        let outcomes = results.into_iter().map(|result| match result {
            Ok(done) => {
                let state =
                    if done.is_up_to_date { intern!(py, "up to date") } else { intern!(py, "written") };
                let commitment = PyBytes::new(py, &done.commitment);
                (state.clone(), done.plaintext_len, done.ciphertext_len, Some(commitment), None)
            }
            Err(error) => {
                let is_changed = is_not_authentic(&error);
                let state = if is_changed { intern!(py, "not authentic") } else { intern!(py, "failed") };
                (state.clone(), 0, 0, None, Some(error.to_string()))
            }
        });
        Ok(outcomes.collect())
    }
}

/// True if data are not authentic, or if an envelope is damaged.
fn is_not_authentic(error: &Error) -> bool {
    error.is_authentication_failure() || matches!(error, Error::Envelope { .. })
}

fn exception(error: Error) -> PyErr {
    if is_not_authentic(&error) { InvalidTag::new_err(error.to_string()) } else { from_library(error) }
}
