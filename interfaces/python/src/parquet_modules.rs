//! Modules of encrypted Parquet files in arrays: the native part of `lockstep.parquet.decrypt_modules`.

use lockstep::hazmat::Key;
use lockstep::hazmat::backend::DeviceId;
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::planner::OnStream;
use lockstep::hazmat::work::Status;
use lockstep_parquet::{
    DeviceModule, EncryptedModule, Error, Kind, Protection, ciphertext, decrypt_modules, device_modules,
};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::buffer::{Input, slice, slice_mut, unfilled_bytes};
use crate::engine;
use crate::error::{ensure, from_core, from_parquet};
use crate::forks::detached;
use crate::tensor::{Imported, Place, empty_like, is_tensor, result_like};

/// A module and the place for its plaintext.
struct Page<'py> {
    from: Imported,
    output: Bound<'py, PyAny>,
    /// The memory of the output.
    to: Place,
    /// Keeps the memory of the output valid if the output is an array.
    array: Option<Imported>,
}

/// Decrypts modules: `bytes`-like objects and arrays on the host, or arrays on one device. `keys` contains one key for all modules, or
/// one key for each module; `aads` has the associated data of each module, which CTR does not use. Returns a list with the plaintexts:
/// `bytes` for objects with a buffer, otherwise arrays of the library of the module. None stands for a module that is not authentic.
#[pyfunction]
#[pyo3(signature = (pages, keys, aads, is_ctr, stream=None))]
pub(crate) fn parquet_modules<'py>(
    py: Python<'py>,
    pages: Vec<Bound<'py, PyAny>>,
    keys: Vec<Input<'py>>,
    aads: Vec<Input<'py>>,
    is_ctr: bool,
    stream: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let count = pages.len();
    ensure(aads.len() == count && [1, count].contains(&keys.len()), || {
        let (keys, aads) = (keys.len(), aads.len());
        format!(
            "{keys} keys and {aads} strings of associated data for {count} modules: give one for each module"
        )
    })?;
    let kind = if is_ctr { Kind::Ctr } else { Kind::Gcm };
    let keys = keys.iter().map(|key| Key::new(key).map_err(from_core)).collect::<PyResult<Vec<Key>>>()?;
    let given = pages;
    let pages = given.iter().map(|page| import(page, kind, stream)).collect::<PyResult<Vec<_>>>()?;
    // A single key is used for all modules.
    let keyed = keys.iter().cycle().zip(&aads);
    let protections = keyed.map(|(key, aad)| Protection { key, kind, aad: aad.to_vec() }).collect();
    let Some(first) = pages.first() else { return Ok(PyList::empty(py)) };
    let device = first.from.place.device();
    let is_on_device = |page: &Page<'_>| page.from.place.device() == device && page.to.device() == device;
    ensure(pages.iter().all(is_on_device), || "the modules must be on the host or on one device")?;
    let statuses = match device {
        None => on_host(py, &pages, protections)?,
        Some(device) => on_device(py, &pages, protections, device)?,
    };
    let outputs =
        pages.into_iter().zip(statuses).zip(&given).map(|((page, status), given)| match page.array {
            _ if status != Status::Done => Ok(None),
            None => Ok(Some(page.output)),
            Some(_) => result_like(&page.output, given).map(Some),
        });
    PyList::new(py, outputs.collect::<PyResult<Vec<_>>>()?)
}

/// Finds the memory of a module, and makes a new object for its plaintext.
fn import<'py>(
    page: &Bound<'py, PyAny>,
    kind: Kind,
    stream: Option<&Bound<'py, PyAny>>,
) -> PyResult<Page<'py>> {
    let from = Imported::read(page, stream)?;
    let len = ciphertext(kind, from.len()).map_err(from_parquet)?.len();
    if is_tensor(page)? {
        let output = empty_like(page, len)?;
        let array = Imported::write(&output, from.stream_for_others(page.py(), stream)?.as_ref())?;
        return Ok(Page { from, output, to: array.place.clone(), array: Some(array) });
    }
    let (output, memory) = unfilled_bytes(page.py(), len)?;
    Ok(Page { from, output: output.into_any(), to: Place::Host(memory), array: None })
}

fn on_host(py: Python<'_>, pages: &[Page<'_>], protections: Vec<Protection<'_>>) -> PyResult<Vec<Status>> {
    let modules = pages.iter().zip(protections).map(|(page, protection)| {
        let (&Place::Host(from), &Place::Host(to)) = (&page.from.place, &page.to) else {
            unreachable!("checked above")
        };
        // SAFETY: the memory of both objects is kept by the page. The output is initialised, and nothing else has access to it yet.
        let (from, to) = unsafe { (slice(from), slice_mut(to)) };
        EncryptedModule::on_host(protection, from, to).map_err(from_parquet)
    });
    let modules = modules.collect::<PyResult<Vec<_>>>()?;
    let engine = engine::current(py)?;
    detached(py, || run(engine.planner(), modules)).map_err(from_parquet)
}

fn on_device(
    py: Python<'_>,
    pages: &[Page<'_>],
    protections: Vec<Protection<'_>>,
    device: DeviceId,
) -> PyResult<Vec<Status>> {
    let stream = pages[0].from.stream;
    let has_one_stream = pages.iter().all(|page| page.from.stream == stream);
    ensure(has_one_stream, || "the modules belong to several streams: pass a stream")?;
    let described = pages.iter().zip(protections).map(|(page, protection)| {
        let (Place::Device(module), Place::Device(output)) = (&page.from.place, &page.to) else {
            unreachable!("checked above")
        };
        DeviceModule { protection, module: module.clone(), output: output.clone() }
    });
    let described: Vec<_> = described.collect();
    let engine = engine::current(py)?;
    let work = || {
        let executor = OnStream::new(engine.planner(), device, stream)?;
        run(&executor, device_modules(executor.device_memory(), stream, &described)?)
    };
    detached(py, work).map_err(from_parquet)
}

/// Decrypts modules. The statuses show which of them are not authentic.
fn run(
    executor: &dyn Executor,
    mut modules: Vec<EncryptedModule<'_>>,
) -> lockstep_parquet::Result<Vec<Status>> {
    match decrypt_modules(executor, &mut modules) {
        Ok(()) | Err(Error::NotAuthentic(_)) => Ok(modules.iter().map(EncryptedModule::status).collect()),
        Err(error) => Err(error),
    }
}
