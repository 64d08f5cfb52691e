//! An instance of the provider in a library context: its settings, the kernel for small calls, and the devices for
//! large ones.
//!
//! Loading the provider only reads the settings and queries the processor. It starts no thread, opens no device and
//! draws no random bytes, because programs load providers early, fork later, and may run their random generator on this
//! provider. Devices are opened by the first large call. Exception: a device or kernel that is named in the settings is
//! opened when the provider is loaded, because its absence must be reported.

use std::ffi::OsString;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::thread::available_parallelism;

use lockstep::Engine;
use lockstep::hazmat::backend::Counter;
use lockstep::hazmat::inline::{self, InlineKernel};
use lockstep::provider_settings::{Ahead, Settings};

use crate::ahead::KeystreamPool;
use crate::ffi::core::Core;
use crate::ffi::process::{self, PerProcess};
use crate::ffi::standard::write_message;
use crate::reason::{Outcome, Reason};
use crate::settings::Found;
use crate::trace::Trace;

/// Default threshold with CPUs: calls of at least this number of bytes use the planner. For smaller calls, a second
/// thread costs more than it saves (docs/provider.md has the measurement).
const CPU_THRESHOLD: usize = 2 << 20;

/// Default threshold with a device chosen by name. The threshold is low because a user who names a device expects the
/// device to be used.
const DEVICE_THRESHOLD: usize = 64 << 10;

/// An instance of the provider.
pub(crate) struct Instance {
    pub(crate) core: Core,
    pub(crate) trace: Option<Trace>,
    settings: Settings,
    kernel: InlineKernel,
    threshold: usize,
    /// The worker that computes keystream ahead; `None` if no keystream is computed ahead.
    pub(crate) keystream_pool: Option<KeystreamPool>,
    /// The devices that each process has opened: a child process must not use the devices of its parent.
    engines: PerProcess<Engine>,
    /// Number of device incidents that have been written to the trace.
    reported: AtomicUsize,
}

impl Instance {
    /// Reads the settings and chooses a kernel.
    ///
    /// # Errors
    /// A message about the settings of the configuration file.
    pub(crate) fn new(
        core: Core,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Arc<Instance>, String> {
        let (settings, engine, warnings) = choose(Found::read(&core, environment)?)?;
        warn_once(&warnings);
        let named = settings.kernel.as_deref().and_then(InlineKernel::by_name);
        let kernel = named.unwrap_or_else(InlineKernel::best);
        let device_is_named = engine
            .as_ref()
            .is_some_and(|engine| engine.devices_so_far().iter().any(|device| device.id().backend != "cpu"));
        let threshold =
            settings.threshold.unwrap_or(if device_is_named { DEVICE_THRESHOLD } else { CPU_THRESHOLD });
        let trace = settings.trace.as_ref().and_then(Trace::open);
        if let Some(trace) = &trace {
            warnings.iter().for_each(|warning| trace.write_failure(warning));
        }
        let ahead = match settings.ahead {
            Ahead::On => true,
            Ahead::Off => false,
            // On CPUs, computing keystream ahead is only useful if the kernel has no AES instructions and a second CPU
            // can run the worker.
            Ahead::Auto => device_is_named || !kernel.has_aes_instructions() && processors() > 1,
        };
        let engines = PerProcess::new();
        if let Some(engine) = engine {
            let _ = engines.get_or_make(|| Ok::<_, ()>(engine), drop);
        }
        let keystream_pool = ahead.then(|| KeystreamPool::new(device_is_named));
        let traced = trace.is_some();
        let instance = Arc::new(Instance {
            core,
            trace,
            settings,
            kernel,
            threshold,
            keystream_pool,
            engines,
            reported: AtomicUsize::new(0),
        });
        if traced {
            write_totals_at_exit(&instance);
        }
        Ok(instance)
    }

    /// The kernel for calls on the caller's thread, after its self-test.
    ///
    /// # Errors
    /// [`Reason::SelfTest`]
    pub(crate) fn kernel(&self) -> Outcome<InlineKernel> {
        if inline::is_proven(self.kernel) { Ok(self.kernel) } else { Err(Reason::SelfTest) }
    }

    /// True if a call with this number of bytes is passed to the planner.
    #[inline(always)]
    pub(crate) fn is_large(&self, bytes: usize) -> bool {
        bytes >= self.threshold && bytes > 0
    }

    /// Called when the provider is unloaded: ends the background work and writes the totals to the trace. Contexts that
    /// still exist, for example in exit handlers, then work without the worker.
    pub(crate) fn shut_down(&self) {
        if let Some(keystream_pool) = &self.keystream_pool {
            keystream_pool.close();
        }
        if let Some(trace) = &self.trace {
            trace.write_totals(&self.device_totals());
        }
    }

    /// Writes to the trace all device incidents that it does not contain yet.
    pub(crate) fn trace_incidents(&self, engine: &Engine) {
        if let Some(trace) = &self.trace {
            let incidents = engine.planner().incidents();
            let reported = self.reported.fetch_max(incidents.len(), Relaxed);
            incidents.iter().skip(reported).for_each(|incident| trace.write_failure(&incident.to_string()));
        }
    }

    /// The totals of the devices of this process, self-tests included: one line for each device and kernel.
    fn device_totals(&self) -> Vec<String> {
        let devices = self.engines.get().into_iter().flat_map(Engine::devices_so_far);
        let lines = devices.flat_map(|device| {
            let id = device.id();
            let line = move |counter: Counter| {
                let Counter { name, launches, bytes } = counter;
                format!("{id} {name}: {bytes} bytes in {launches} launches")
            };
            device.counters().into_iter().map(line)
        });
        lines.collect()
    }

    /// The devices of this process.
    ///
    /// # Errors
    /// A message that says why there are no devices.
    pub(crate) fn engine(&self) -> Result<&Engine, String> {
        self.engines.get_or_make(|| engine(&self.settings), drop)
    }
}

/// Instances with a trace. When the process ends, the totals of the instances that still exist are written.
static TRACED: Mutex<Vec<Weak<Instance>>> = Mutex::new(Vec::new());

fn write_totals_at_exit(instance: &Arc<Instance>) {
    if let Ok(mut traced) = TRACED.lock() {
        traced.retain(|instance| instance.strong_count() > 0);
        traced.push(Arc::downgrade(instance));
    }
    process::at_exit(|| {
        // After a fork, a thread that does not exist in this process may hold the lock.
        let Ok(traced) = TRACED.try_lock() else { return };
        for instance in traced.iter().filter_map(Weak::upgrade) {
            if let Some(trace) = &instance.trace {
                trace.write_totals(&instance.device_totals());
            }
        }
    });
}

fn processors() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// The settings, the engine if a device or kernel is named, and warnings about the environment.
///
/// # Errors
/// A message about the settings of the configuration file.
fn choose(found: Found) -> Result<(Settings, Option<Engine>, Vec<String>), String> {
    let Found { settings, fallback, mut warnings } = found;
    let why = match named(&settings) {
        Ok(engine) => return Ok((settings, engine, warnings)),
        Err(why) => why,
    };
    let Some(fallback) = fallback else { return Err(why) };
    let engine = named(&fallback)?;
    let ignored = match (settings.device != fallback.device, settings.kernel != fallback.kernel) {
        (true, true) => "LOCKSTEP_DEVICE and LOCKSTEP_KERNEL are",
        (true, false) => "LOCKSTEP_DEVICE is",
        _ => "LOCKSTEP_KERNEL is",
    };
    warnings.push(format!("{ignored} ignored: {why}"));
    Ok((fallback, engine, warnings))
}

/// Opens the device or kernel that is named, if any: its absence must be reported now, not during later work.
fn named(settings: &Settings) -> Result<Option<Engine>, String> {
    match (settings.device.as_deref(), &settings.kernel) {
        (None | Some("auto"), None) => Ok(None),
        _ => engine(settings).map(Some),
    }
}

/// The backends that this module was built with: `make provider` uses the default features. Registered backends are not
/// in this list.
const BACKENDS: &[&str] = &[
    "cpu",
    #[cfg(feature = "cuda")]
    "cuda",
    #[cfg(feature = "wgpu")]
    "wgpu",
    #[cfg(feature = "opengl")]
    "opengl",
    #[cfg(feature = "qpu")]
    "qpu",
];

fn engine(settings: &Settings) -> Result<Engine, String> {
    settings.engine(BACKENDS).map_err(|error| error.to_string())
}

/// Reports warnings about the environment, the first time that the provider is loaded into a process.
fn warn_once(warnings: &[String]) {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if !warnings.is_empty() && !WARNED.swap(true, Relaxed) {
        warnings.iter().for_each(|warning| write_message(warning));
    }
}
