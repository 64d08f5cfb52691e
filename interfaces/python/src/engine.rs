//! The engine of the process: selection of devices, and forks.

use std::ffi::CString;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{LazyLock, Mutex};

use lockstep::Engine;
use lockstep::aead::Caller;
use lockstep::engine::{EngineBuilder, Verify};
use lockstep::hazmat::backend::KernelId;
use lockstep::hazmat::inline::InlineKernel;
use lockstep::hazmat::selftest as tests;
use lockstep::hazmat::share::lock;
use pyo3::exceptions::{PyRuntimeWarning, PyValueError};
use pyo3::prelude::*;

use crate::error::from_library;
use crate::forks::detached;
use crate::text::Text;

/// The engine that all calls of the process use.
///
/// Only threads that are attached to the interpreter take the lock, and they do not wait while they hold it. A thread that forks
/// is attached, so with an interpreter lock no other thread holds this lock in a fork.
static CURRENT: Mutex<Current> = Mutex::new(Current::DEFAULT);

/// The selection of the user, and its engine.
struct Current {
    /// None before the first call that needs it.
    engine: Option<Engine>,
    /// None if nothing was selected.
    builder: Option<EngineBuilder>,
    /// In the child of a fork, until this process has an engine: the device that the user named and that the parent has used.
    inherited: Option<String>,
    /// The device that the user named and that this child of a fork cannot use; None after the warning about it.
    lost: Option<String>,
}

impl Current {
    const DEFAULT: Current = Current { engine: None, builder: None, inherited: None, lost: None };

    fn engine(&mut self) -> PyResult<Engine> {
        if let Some(engine) = &self.engine {
            return Ok(engine.clone());
        }
        let build = |current: &Current| current.builder.clone().unwrap_or_default().build();
        let mut engine = build(self);
        if self.inherited.is_some() && !engine.as_ref().is_ok_and(has_memory) {
            self.lost = self.inherited.take();
            self.use_cpu();
            engine = build(self);
        }
        self.inherited = None;
        Ok(self.engine.insert(engine.map_err(from_library)?).clone())
    }

    /// Called in the child of a fork: removes the parent's engine, so that the next use makes an engine for the same selection.
    ///
    /// A lock of the parent's engine may be held by a thread that does not exist here, and drivers do not survive a fork: the engine is
    /// neither used nor dropped. A child cannot use a driver that its parent has started, so the CPU is used instead. If the user has
    /// named the device, `lost` records it for a warning. Simulated devices can be opened again.
    fn leave_parent(&mut self) {
        let Some(engine) = self.engine.take().map(std::mem::ManuallyDrop::new) else { return };
        let devices = engine.devices_so_far();
        if devices.iter().all(|device| device.id().backend == "cpu") {
            return;
        }
        let names = || devices.iter().map(|device| device.id().to_string()).collect::<Vec<_>>().join(",");
        let named = are_named(&engine).then(names);
        if named.is_some() && devices.iter().all(|device| device.properties().simulated) {
            self.inherited = named;
        } else {
            self.lost = named;
            self.use_cpu();
        }
    }

    fn use_cpu(&mut self) {
        self.builder = Some(self.builder.take().unwrap_or_default().device("cpu").kernel("auto"));
    }
}

/// True if the user has named the devices of an engine, other than the CPU. If no device is named, the CPU is among them.
fn are_named(engine: &Engine) -> bool {
    engine.devices_so_far().iter().all(|device| device.id().backend != "cpu")
}

/// True if memory can be allocated on each device of an engine that has memory of its own. A driver that a process has used refuses
/// this in the child of the process.
fn has_memory(engine: &Engine) -> bool {
    let mut memories = engine.devices().iter().filter_map(|device| device.memory());
    memories.all(|memory| memory.allocate(1).is_ok())
}

/// The engine of the process, made at first use.
///
/// # Errors
/// The errors of the construction of the engine. If warnings are errors, also the warning about a device of the parent process.
pub(crate) fn current(py: Python<'_>) -> PyResult<Engine> {
    let (engine, lost) = {
        let mut current = lock(&CURRENT);
        (current.engine()?, current.lost.take())
    };
    if let Some(device) = lost {
        let text = format!(
            "the device '{device}' of the parent process cannot be used in its child, and the CPU computes instead: start the child by \
             the method 'spawn', or use the device in the child only"
        );
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &CString::new(text)?, 1)?;
    }
    Ok(engine)
}

/// The kernel for small calls. It is stored because the search for it takes about as long as the encryption of a block.
static KERNEL: LazyLock<InlineKernel> = LazyLock::new(InlineKernel::best);
/// Where small calls run: [`INLINE`] (on the calling thread), [`PLANNED`] (by the planner) or [`UNKNOWN`].
static SMALL: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const INLINE: u8 = 1;
const PLANNED: u8 = 2;

/// The kernel for small calls, which run on the calling thread without the planner. None if the user has named a device or a
/// kernel, or if the kernel has failed its self-test.
#[inline]
pub(crate) fn inline_kernel() -> Option<InlineKernel> {
    match SMALL.load(Ordering::Relaxed) {
        INLINE => return Some(*KERNEL),
        PLANNED => return None,
        _ => {}
    }
    // The lock is held until the store. Otherwise the result for an earlier selection could replace the result for a newer
    // selection.
    let mut current = lock(&CURRENT);
    // If the engine cannot be made, the caller requests it again and reports the error.
    let kernel = current.engine().ok()?.inline_kernel();
    SMALL.store(if kernel.is_some() { INLINE } else { PLANNED }, Ordering::Relaxed);
    kernel
}

/// Makes a selection current; returns the earlier selection.
fn replace(new: Current) -> Current {
    let mut current = lock(&CURRENT);
    SMALL.store(UNKNOWN, Ordering::Relaxed);
    std::mem::replace(&mut *current, new)
}

/// The selection that a call of `select` has replaced.
#[pyclass(frozen, module = "lockstep._native")]
pub(crate) struct EarlierSelection {
    selection: Mutex<Option<Current>>,
    /// The process that has replaced the selection.
    process: u32,
}

#[pymethods]
impl EarlierSelection {
    /// Makes the selection current again. A second call has no effect.
    fn restore(&self) {
        drop(self.take().map(replace));
    }
}

impl EarlierSelection {
    /// Takes the selection. In the child of a fork, the engine of the parent is removed from the selection.
    fn take(&self) -> Option<Current> {
        let mut selection = lock(&self.selection).take();
        if self.process != std::process::id() {
            selection.iter_mut().for_each(Current::leave_parent);
        }
        selection
    }
}

impl Drop for EarlierSelection {
    fn drop(&mut self) {
        self.take();
    }
}

/// Makes the selection of `lockstep.use` current; returns the earlier selection. The selection belongs to the process, not to the
/// thread.
///
/// # Errors
/// `ValueError` for a device, a kernel or a number of threads that does not exist. The selection then does not change.
#[pyfunction]
pub(crate) fn select(
    py: Python<'_>,
    device: Option<Text>,
    kernel: Option<Text>,
    threads: Option<usize>,
    verify: Option<Text>,
) -> PyResult<EarlierSelection> {
    let verify = verify.map(|value| value.parse::<Verify>()).transpose();
    let verify = verify.map_err(|()| PyValueError::new_err("verify must be 'off', 'sample' or 'full'"))?;
    let builder = device.iter().fold(Engine::builder(), |builder, name| builder.device(&**name));
    let builder = kernel.iter().fold(builder, |builder, name| builder.kernel(&**name));
    let builder = threads.into_iter().fold(builder, EngineBuilder::threads);
    let builder = verify.into_iter().fold(builder, EngineBuilder::verify);
    // The thread is detached, because the call may start a driver.
    let engine = detached(py, || builder.clone().build()).map_err(from_library)?;
    let current = Current { engine: Some(engine), builder: Some(builder), ..Current::DEFAULT };
    let selection = Mutex::new(Some(replace(current)));
    Ok(EarlierSelection { selection, process: std::process::id() })
}

/// Runs in the child of a fork.
pub(crate) fn after_fork_in_child() {
    SMALL.store(UNKNOWN, Ordering::Relaxed);
    lock(&CURRENT).leave_parent();
}

/// The devices that Lockstep can use on this machine: the name, the model and the kernels that it can run. The call starts the drivers
/// of GPUs.
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> PyResult<Vec<(String, String, Vec<&'static str>)>> {
    let engine = current(py)?;
    Ok(detached(py, || {
        let described = engine.devices().iter().map(|device| {
            let kernels = device.kernels().iter().filter(|kernel| kernel.missing.is_none());
            (device.id().to_string(), device.description(), kernels.map(|kernel| kernel.name).collect())
        });
        described.collect()
    }))
}

/// The backends without a device on this machine, each with the reason. The call starts the drivers of GPUs.
#[pyfunction]
pub(crate) fn missing_devices(py: Python<'_>) -> PyResult<std::collections::BTreeMap<String, String>> {
    let engine = current(py)?;
    Ok(detached(py, || {
        engine.missing().iter().map(|(name, why)| (name.to_string(), why.to_string())).collect()
    }))
}

/// A kernel that was tested: the names of the device and of the kernel, the number of operations that were tested, and the
/// failures.
type Tested = (String, &'static str, usize, Vec<String>);

/// Tests every kernel of the selected devices against known answers, and returns the results. Devices for tests and study, such
/// as "cuda:emu", are tested only if they are named, by `use` or by LOCKSTEP_DEVICE.
///
/// Each kernel is also tested automatically before its first use.
#[pyfunction]
pub(crate) fn selftest(py: Python<'_>) -> PyResult<Vec<Tested>> {
    let engine = current(py)?;
    let mut results = Vec::new();
    let devices = detached(py, || engine.devices()).iter();
    for device in devices.filter(|it| are_named(&engine) || !it.properties().by_name_only) {
        for (number, kernel) in device.kernels().iter().enumerate().filter(|(_, it)| it.missing.is_none()) {
            let (id, mut failures) = (KernelId(number as u16), Vec::new());
            let operations = tests::operations(&**device, id);
            for &operation in &operations {
                let outcome = detached(py, || tests::run(&**device, id, operation));
                failures.extend(outcome.err().map(|error| error.to_string()));
                py.check_signals()?;
            }
            results.push((device.id().to_string(), kernel.name, operations.len(), failures));
        }
    }
    Ok(results)
}
