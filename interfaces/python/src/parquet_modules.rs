//! Modules of encrypted Parquet files in arrays: the native part of `lockstep.parquet.decrypt_modules`.

use lockstep::hazmat::Key;
use lockstep::hazmat::backend::DeviceId;
use lockstep::hazmat::planner::OnStream;
use lockstep::hazmat::work::Status;
use lockstep_parquet::{
    DeviceModule, EncryptedModule, Error, Kind, Protection, ciphertext, decrypt_modules, device_modules,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::buffer::{Export, Memory, slice, slice_mut, unfilled_bytes};
use crate::engine;
use crate::error::{from_core, from_parquet};
use crate::forks::detached;
use crate::tensor::{Imported, Place, empty_like, is_tensor, result_like};

/// A module and the place for its plaintext.
struct Page<'py> {
    from: Imported,
    output: Bound<'py, PyAny>,
    /// The memory of an output that is an array.
    to: Option<Imported>,
    /// The memory of an output that is `bytes`.
    bytes: Memory,
}

/// Decrypts modules: `bytes`-like objects and arrays on the host, or arrays on one device. `keys` has one key, or one for each module;
/// `aads` has the associated data of each module, which CTR does not use. Returns a list with the plaintexts: `bytes` for objects with a
/// buffer, otherwise arrays of the library of the module. None stands for a module that is not authentic.
#[pyfunction]
#[pyo3(signature = (pages, keys, aads, is_ctr, stream=None))]
pub(crate) fn parquet_modules<'py>(
    py: Python<'py>,
    pages: Vec<Bound<'py, PyAny>>,
    keys: Vec<Bound<'py, PyAny>>,
    aads: Vec<Bound<'py, PyAny>>,
    is_ctr: bool,
    stream: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let count = pages.len();
    if aads.len() != count || (keys.len() != count && keys.len() != 1) {
        return Err(PyValueError::new_err(format!(
            "{} keys and {} strings of associated data for {count} modules: give one for each module",
            keys.len(),
            aads.len()
        )));
    }
    let kind = if is_ctr { Kind::Ctr } else { Kind::Gcm };
    let key = |given: &Bound<'_, PyAny>| Key::new(Export::new().read(given)?).map_err(from_core);
    let keys = keys.iter().map(key).collect::<PyResult<Vec<Key>>>()?;
    let aad = |given: &Bound<'_, PyAny>| PyResult::Ok(Export::new().read(given)?.to_vec());
    let aads = aads.iter().map(aad).collect::<PyResult<Vec<Vec<u8>>>>()?;
    let given = pages;
    let pages = given.iter().map(|page| import(page, kind, stream)).collect::<PyResult<Vec<_>>>()?;
    let protections: Vec<Protection<'_>> = aads
        .into_iter()
        .enumerate()
        .map(|(index, aad)| Protection { key: &keys[if keys.len() == 1 { 0 } else { index }], kind, aad })
        .collect();
    let Some(first) = pages.first() else { return Ok(PyList::empty(py)) };
    let device = first.from.device();
    let is_elsewhere = |page: &Page<'_>| {
        page.from.device() != device || page.to.as_ref().is_some_and(|to| to.device() != device)
    };
    if pages.iter().any(is_elsewhere) {
        return Err(PyValueError::new_err("the modules must be on the host or on one device"));
    }
    let statuses = match device {
        None => on_host(py, &pages, protections)?,
        Some(device) => on_device(py, &pages, protections, device)?,
    };
    let outputs = pages.into_iter().zip(statuses).zip(&given).map(|((page, status), given)| match page.to {
        _ if status != Status::Done => Ok(None),
        None => Ok(Some(page.output)),
        Some(_) => result_like(&page.output, given).map(Some),
    });
    PyList::new(py, outputs.collect::<PyResult<Vec<_>>>()?)
}

/// The memory of a module, and a new object for its plaintext.
fn import<'py>(
    page: &Bound<'py, PyAny>,
    kind: Kind,
    stream: Option<&Bound<'py, PyAny>>,
) -> PyResult<Page<'py>> {
    let from = Imported::read(page, stream)?;
    let len = ciphertext(kind, from.len()).map_err(from_parquet)?.len();
    if is_tensor(page) {
        let output = empty_like(page, len)?;
        let to = Some(Imported::write(&output, from.stream_for_others(page.py(), stream)?.as_ref())?);
        return Ok(Page { from, output, to, bytes: Memory::EMPTY });
    }
    let (output, bytes) = unfilled_bytes(page.py(), len)?;
    Ok(Page { from, output: output.into_any(), to: None, bytes })
}

fn on_host(py: Python<'_>, pages: &[Page<'_>], protections: Vec<Protection<'_>>) -> PyResult<Vec<Status>> {
    let modules = pages.iter().zip(protections).map(|(page, protection)| {
        let to = match page.to.as_ref().map(|to| &to.place) {
            None => page.bytes,
            Some(Place::Host(memory)) => *memory,
            Some(Place::Device(_)) => unreachable!("checked above"),
        };
        let Place::Host(from) = page.from.place else { unreachable!("checked above") };
        // SAFETY: the memory of both objects is kept by the page. The output is initialised, and nothing else has access to it yet.
        let (from, to) = unsafe { (slice(from), slice_mut(to)) };
        EncryptedModule::on_host(protection, from, to).map_err(from_parquet)
    });
    let mut modules = modules.collect::<PyResult<Vec<_>>>()?;
    let engine = engine::current(py)?;
    finish(detached(py, || decrypt_modules(&**engine.planner(), &mut modules)))?;
    Ok(modules.iter().map(EncryptedModule::status).collect())
}

fn on_device(
    py: Python<'_>,
    pages: &[Page<'_>],
    protections: Vec<Protection<'_>>,
    device: DeviceId,
) -> PyResult<Vec<Status>> {
    let stream = pages[0].from.stream;
    if pages.iter().any(|page| page.from.stream != stream) {
        return Err(PyValueError::new_err("the modules belong to several streams: pass a stream"));
    }
    let described = pages.iter().zip(protections).map(|(page, protection)| {
        match (&page.from.place, page.to.as_ref().map(|to| &to.place)) {
            (Place::Device(module), Some(Place::Device(output))) => {
                let (module, output) = (module.clone(), output.clone());
                Ok(DeviceModule { protection, module, output })
            }
            _ => Err(PyValueError::new_err("the modules must be on the host or on one device")),
        }
    });
    let described = described.collect::<PyResult<Vec<_>>>()?;
    let engine = engine::current(py)?;
    let work = || -> lockstep_parquet::Result<Vec<Status>> {
        let executor = OnStream::new(engine.planner(), device, stream)?;
        let mut modules = device_modules(executor.device_memory(), stream, &described)?;
        match decrypt_modules(&executor, &mut modules) {
            Ok(()) | Err(Error::NotAuthentic { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(modules.iter().map(EncryptedModule::status).collect())
    };
    detached(py, work).map_err(from_parquet)
}

/// The statuses show which modules are not authentic.
fn finish(outcome: lockstep_parquet::Result<()>) -> PyResult<()> {
    match outcome {
        Ok(()) | Err(Error::NotAuthentic { .. }) => Ok(()),
        Err(error) => Err(from_parquet(error)),
    }
}
