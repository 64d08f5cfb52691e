//! The engine: the devices that encrypt and decrypt.

use std::ffi::{c_char, c_int};
use std::process;
use std::sync::{Arc, OnceLock};

use lockstep::engine::{EngineBuilder, Verify};
use lockstep::hazmat::backend::{Device, DeviceSelector};
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::{Result as CoreResult, shown};

use crate::error::{Failure, LOCKSTEP_ERROR_FORKED, LOCKSTEP_ERROR_UNKNOWN_DEVICE, Outcome, ensure};
use crate::ffi;

/// The verification that the environment variable LOCKSTEP_VERIFY sets. If the variable is not set, LOCKSTEP_VERIFY_SAMPLE
/// applies.
pub const LOCKSTEP_VERIFY_DEFAULT: c_int = 0;
/// No verification of the results of devices.
pub const LOCKSTEP_VERIFY_OFF: c_int = 1;
/// The CPU computes samples of the results of other devices again.
pub const LOCKSTEP_VERIFY_SAMPLE: c_int = 2;
/// The CPU computes all results of other devices again.
pub const LOCKSTEP_VERIFY_FULL: c_int = 3;

/// The devices that encrypt and decrypt. A program needs only one engine. All threads may use it at the same time.
#[derive(Clone)]
pub struct Engine {
    inner: lockstep::Engine,
    /// The process in which the engine has opened devices other than the CPU.
    opened_in: Arc<OnceLock<u32>>,
}

/// Options of an engine. Zeros are the defaults.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EngineOptions {
    /// sizeof(lockstep_engine_options)
    pub size: usize,
    /// The device, such as "cpu" or "cuda:0". If it is NULL, the environment variable LOCKSTEP_DEVICE applies or, if it is
    /// not set, "auto": the engine chooses.
    pub device: *const c_char,
    /// The kernel, such as "cpu/vaes512". If it is NULL, the environment variable LOCKSTEP_KERNEL applies or, if it is not
    /// set, "auto": the engine chooses.
    pub kernel: *const c_char,
    /// The number of CPU threads, at most 1024. If it is 0, the environment variable LOCKSTEP_THREADS applies or, if it is
    /// not set, there is one thread for each processor.
    pub threads: u32,
    /// One of the numbers LOCKSTEP_VERIFY_.
    pub verify: c_int,
}

// SAFETY: the structure is `repr(C)`, its first member is a `usize`, and zeros are valid.
ffi::impl_options!(EngineOptions, "lockstep_engine_options": size device kernel threads verify);

/// Makes an engine. The options may be NULL. If the options name a device or a kernel, this call opens the drivers of its
/// backend; otherwise drivers are opened when there is enough work for a device.
///
/// Errors: LOCKSTEP_ERROR_ARGUMENT, LOCKSTEP_ERROR_UNKNOWN_DEVICE, LOCKSTEP_ERROR_UNKNOWN_KERNEL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_engine_new(
    options: *const EngineOptions,
    engine: *mut *mut Engine,
) -> c_int {
    ffi::new_object(engine, |_| {
        let options = ffi::options(options)?;
        let device = ffi::text(options.device, "the device")?;
        let kernel = ffi::text(options.kernel, "the kernel")?;
        let threads = Some(options.threads as usize).filter(|threads| *threads != 0);
        let known = [None, Some(Verify::Off), Some(Verify::Sample), Some(Verify::Full)];
        let expected = "a value of `verify`: use a number LOCKSTEP_VERIFY_";
        let verify = ffi::numbered(&known, LOCKSTEP_VERIFY_DEFAULT, options.verify, expected)?;
        let builder = device.into_iter().fold(lockstep::Engine::builder(), EngineBuilder::device);
        let builder = kernel.into_iter().fold(builder, EngineBuilder::kernel);
        let builder = threads.into_iter().fold(builder, EngineBuilder::threads);
        let builder = verify.into_iter().fold(builder, EngineBuilder::verify);
        let engine = Engine { inner: builder.build()?, opened_in: Arc::default() };
        engine.note_devices();
        Ok(engine)
    })
}

/// Frees an engine. No call may be using it. Objects that were made with the engine stay valid. NULL is permitted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_engine_free(engine: *mut Engine) {
    free_with_engine(engine, |engine| engine)
}

/// Drops an object that uses an engine. If the devices of the engine were opened before a fork, the object is leaked: the drivers
/// of devices do not support calls in the child.
pub(crate) unsafe fn free_with_engine<T>(object: *mut T, engine: impl FnOnce(&T) -> &Engine) {
    if object.as_ref().is_some_and(|object| engine(object).check_process().is_ok()) {
        ffi::free(object);
    }
}

/// Stores the number of devices that the engine chooses from. The call discovers all devices, which opens the drivers of
/// GPUs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_engine_device_count(engine: *const Engine, count: *mut usize) -> c_int {
    ffi::store(count, "the place for the number", |_| {
        ffi::object(engine, "the engine")?.run(|engine| Ok(engine.devices().len()))
    })
}

/// Writes the name of a device, such as "cuda:0", with a null byte, to a buffer of `room` bytes. The index is below
/// lockstep_engine_device_count. 64 bytes are enough for all names.
///
/// Errors: LOCKSTEP_ERROR_UNKNOWN_DEVICE, LOCKSTEP_ERROR_OUTPUT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_engine_device_name(
    engine: *const Engine,
    index: usize,
    name: *mut c_char,
    room: usize,
) -> c_int {
    ffi::call(|call| {
        let engine = ffi::object(engine, "the engine")?;
        let output = call.output(name.cast::<u8>(), room, "the place for the name")?;
        let message =
            || format!("there is no device {index}: use an index below lockstep_engine_device_count");
        let unknown = || Failure::new(LOCKSTEP_ERROR_UNKNOWN_DEVICE, message());
        let name = engine.run(|engine| {
            let device = engine.devices().get(index).ok_or_else(unknown)?;
            Ok(format!("{}\0", device.id()))
        })?;
        ffi::copy_result(name.as_bytes(), output)
    })
}

impl Engine {
    /// Runs work with the engine.
    ///
    /// # Errors
    /// Those of the work. [`LOCKSTEP_ERROR_FORKED`] if the engine has opened devices other than the CPU in another process:
    /// their drivers do not support a fork.
    pub(crate) fn run<T>(&self, work: impl FnOnce(&lockstep::Engine) -> Outcome<T>) -> Outcome<T> {
        self.check_process()?;
        let outcome = work(&self.inner);
        self.note_devices();
        outcome
    }

    /// Fails if the engine has opened devices other than the CPU in another process.
    pub(crate) fn check_process(&self) -> Outcome<()> {
        let message = "the engine has opened devices before a fork, and their drivers do not support this: make an engine \
             in this process, or an engine with the device `cpu` before the fork";
        let is_here = self.opened_in.get().is_none_or(|opener| *opener == process::id());
        ensure(is_here, || Failure::new(LOCKSTEP_ERROR_FORKED, message))
    }

    /// Runs `work` with the executor of the engine, which runs the modes.
    pub(crate) fn run_mode<T>(&self, work: impl FnOnce(&dyn Executor) -> CoreResult<T>) -> Outcome<T> {
        self.run(|engine| Ok(work(engine.planner())?))
    }

    /// Records the process if devices other than the CPU are open. An engine that uses only the CPU makes no system call
    /// here.
    fn note_devices(&self) {
        if self.opened_in.get().is_none()
            && self.inner.devices_so_far().iter().any(|device| !device.is_trusted())
        {
            self.opened_in.get_or_init(process::id);
        }
    }

    /// The device of this name, or, without a name, the first device with memory of its own.
    pub(crate) fn device<'e>(engine: &'e lockstep::Engine, name: Option<&str>) -> Outcome<&'e dyn Device> {
        let mut devices = engine.devices().iter();
        let found = match name.map(DeviceSelector::from) {
            Some(selector) => devices.find(|device| selector == device.id()),
            None => devices.find(|device| device.memory().is_some()),
        };
        found.map(|device| &**device).ok_or_else(|| {
            let known: Vec<_> = engine.devices().iter().map(|device| device.id().to_string()).collect();
            let known = known.join(", ");
            let wanted = match name {
                Some(name) => format!("device `{}`", shown::name(name)),
                None => "device with memory of its own".into(),
            };
            let message = format!(
                "the engine has no {wanted}: it has {known}; make an engine with the option `device`"
            );
            Failure::new(LOCKSTEP_ERROR_UNKNOWN_DEVICE, message)
        })
    }
}
