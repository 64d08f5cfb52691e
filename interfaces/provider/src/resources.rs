//! The resources that all contexts of an instance of the provider share: the settings, the kernel for small calls, the devices for
//! large calls, and the trace.
//!
//! Loading the provider only reads the settings and queries the processor. It starts no thread, opens no device and draws no
//! random bytes, because programs load providers early, fork later, and may run their random generator on this provider. Each
//! process opens the devices when it first uses them, because a child process cannot use a driver that its parent has started.
//! If a named device or kernel does not exist, this is reported when the provider is loaded, or by the first use if only a
//! driver can find the device or kernel.

use std::ffi::OsString;
use std::fmt::Display;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::thread::available_parallelism;

use lockstep::Engine;
use lockstep::hazmat::backend::Counter;
use lockstep::hazmat::inline::{self, InlineKernel};
use lockstep_provider_settings::Settings;

use crate::libcrypto::core::Core;
use crate::reason::{Outcome, Reason};
use crate::settings::Found;
use crate::system::process::{self, PerProcess};
use crate::system::standard::write_message;
use crate::trace::{Trace, Way};

/// Default threshold with CPUs: calls of at least this number of bytes use the planner. For smaller calls, a second thread
/// takes more time than it saves (docs/provider.md contains the measurement).
const CPU_THRESHOLD: usize = 2 << 20;

/// Default threshold with a named device. It is low because a user who names a device expects that the device is used.
const DEVICE_THRESHOLD: usize = 64 << 10;

/// Default threshold with a named device that is for study only, such as a simulated device: one block.
const STUDY_THRESHOLD: usize = 16;

/// The resources of an instance of the provider.
pub(crate) struct Resources {
    pub(crate) core: Core,
    pub(crate) trace: Option<Trace>,
    settings: Settings,
    kernel: InlineKernel,
    /// Calls of at least this number of bytes are passed to the planner. At least 1.
    pub(crate) threshold: usize,
    /// True if the settings name a device other than the CPU.
    pub(crate) device_is_named: bool,
    /// True if the named device is simulated or runs as slow software: see
    /// [`is_for_study`](lockstep::hazmat::backend::DeviceProperties::is_for_study).
    pub(crate) device_is_for_study: bool,
    /// The devices that each process has opened; `None` if they cannot be opened.
    engines: PerProcess<Option<Engine>>,
    /// True in a process that has already reported that the CPU does work of the named device.
    has_stated_work: PerProcess<AtomicBool>,
    /// Number of device incidents that have been written to the trace.
    reported: AtomicUsize,
}

impl Resources {
    /// Reads the settings and chooses a kernel.
    ///
    /// # Errors
    /// A message about a wrong setting in the configuration file.
    pub(crate) fn new(
        core: Core,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Arc<Resources>, String> {
        let (settings, engine, warnings) = choose(Found::read(|names| core.settings(names), environment)?)?;
        // Warnings are reported the first time that the provider is loaded into a process.
        static WARNED: AtomicBool = AtomicBool::new(false);
        if !warnings.is_empty() && !WARNED.swap(true, Relaxed) {
            warnings.iter().for_each(|warning| write_message(warning, true));
        }
        let named = settings.kernel.as_deref().and_then(InlineKernel::by_name);
        let kernel = named.unwrap_or_else(InlineKernel::best);
        let devices = engine.as_ref().map(Engine::devices_so_far);
        let device_is_named = match devices {
            Some(devices) => devices.iter().any(|device| device.id().backend != "cpu"),
            None => is_named(&settings),
        };
        let device_is_for_study =
            devices.into_iter().flatten().any(|device| device.properties().is_for_study());
        let default = match (device_is_named, device_is_for_study) {
            (_, true) => STUDY_THRESHOLD,
            (true, false) => DEVICE_THRESHOLD,
            (false, false) => CPU_THRESHOLD,
        };
        let threshold = settings.threshold.unwrap_or(default).max(1);
        let trace = settings.trace.as_ref().and_then(Trace::open);
        let engines = PerProcess::default();
        if let Some(engine) = engine {
            engines.get_or_make(|| Some(engine));
        }
        let resources = Arc::new(Resources {
            core,
            trace,
            settings,
            kernel,
            threshold,
            device_is_named,
            device_is_for_study,
            engines,
            has_stated_work: PerProcess::default(),
            reported: AtomicUsize::new(0),
        });
        warnings.iter().for_each(|warning| resources.trace_failure(warning));
        if resources.trace.is_some() {
            write_totals_at_exit(&resources);
        }
        Ok(resources)
    }

    /// Returns the kernel for calls on the caller's thread, if it has passed its self-test.
    ///
    /// # Errors
    /// [`Reason::SelfTest`]
    #[inline]
    pub(crate) fn kernel(&self) -> Outcome<InlineKernel> {
        if inline::is_proven(self.kernel) { Ok(self.kernel) } else { Err(Reason::SelfTest) }
    }

    /// True if setting or copying a key may leave parts of the key on the stack.
    #[inline]
    pub(crate) fn leaves_keys(&self) -> bool {
        !self.kernel.expands_in_place()
    }

    /// True if keystream is computed ahead.
    pub(crate) fn computes_ahead(&self) -> bool {
        self.settings.ahead.unwrap_or_else(|| {
            // On CPUs, computing keystream ahead is only useful if the kernel has no AES instructions and a second CPU
            // can run the worker.
            let processors = || available_parallelism().map_or(1, NonZero::get);
            // A device for study must process the data of each call itself, so no keystream is computed ahead for it.
            let for_device = self.device_is_named && !self.device_is_for_study;
            for_device || !self.kernel.has_aes_instructions() && processors() > 1
        })
    }

    /// Writes the totals to the trace, if there is a trace. For each device that this process used, the totals include the
    /// number of bytes of its work. For each pass, they include the bytes that the CPU processed. For each entry point of a
    /// kernel, they include the bytes that it processed, including the bytes of self-tests.
    pub(crate) fn write_totals(&self) {
        let Some(trace) = &self.trace else { return };
        let engine = self.engines.get().and_then(Option::as_ref);
        let mut lines = Vec::new();
        if let Some(engine) = engine {
            let planner = engine.planner();
            lines.extend(planner.worked().into_iter().map(|(id, bytes)| format!("{bytes} bytes on {id}")));
            let by_cpu = planner.assisted().into_iter();
            lines.extend(by_cpu.map(|(pass, bytes)| format!("{bytes} bytes of {pass} on cpu")));
            for device in engine.devices_so_far() {
                lines.extend(device.notice().map(|notice| format!("{}: {notice}", device.id())));
                let used = device.counters().into_iter().filter(|counter| counter.launches > 0);
                lines.extend(used.map(|Counter { name, launches, bytes }| {
                    format!("{} {name}: {bytes} bytes in {launches} launches", device.id())
                }));
            }
        }
        trace.write_totals(self.device_is_named, lines);
    }

    /// Counts bytes that the planner has processed, for the trace.
    pub(crate) fn count_planned(&self, bytes: usize) {
        self.trace.iter().for_each(|trace| trace.count_way(Way::Planned, bytes));
    }

    /// Writes to the trace all device incidents that it does not contain yet.
    pub(crate) fn trace_incidents(&self, engine: &Engine) {
        let incidents = engine.planner().incidents();
        let reported = self.reported.fetch_max(incidents.len(), Relaxed);
        incidents.iter().skip(reported).for_each(|incident| self.trace_failure(&incident.to_string()));
    }

    /// Writes a failure to the trace, if there is a trace.
    pub(crate) fn trace_failure(&self, what: &str) {
        self.trace.iter().for_each(|trace| trace.write_failure(what));
    }

    /// If a device is named, reports that the CPU does work of the named device. The report is made once in each process: in
    /// the trace, and for devices for study also on standard error.
    #[cold]
    pub(crate) fn state_work_of_cpu(&self, why: impl Display) {
        if !self.device_is_named || !is_first(&self.has_stated_work) {
            return;
        }
        let message = format!("{why}; the CPU does this work");
        self.trace_failure(&message);
        if self.device_is_for_study {
            write_message(&message, false);
        }
    }

    /// Returns the devices of this process. The first call opens them; all other threads wait for it. Returns `None` if the
    /// devices cannot be opened, which is reported once.
    pub(crate) fn engine(&self) -> Option<&Engine> {
        let open = || {
            self.settings.engine(BACKENDS).inspect_err(|error| {
                let message = format!("{error}; the CPU does the work");
                self.trace_failure(&message);
                write_message(&message, false);
            })
        };
        self.engines.get_or_make(|| open().ok()).as_ref()
    }
}

/// Sets a flag of this process. Returns true only for the first call in the process, even if several threads call this function
/// at once.
fn is_first(flag: &PerProcess<AtomicBool>) -> bool {
    !flag.get_or_make(AtomicBool::default).swap(true, Relaxed)
}

/// The resources that have a trace. At the end of the process, the totals of those resources that still exist are written.
static TRACED: Mutex<Vec<Weak<Resources>>> = Mutex::new(Vec::new());

fn write_totals_at_exit(resources: &Arc<Resources>) {
    if let Ok(mut traced) = TRACED.lock() {
        traced.retain(|resources| resources.strong_count() > 0);
        traced.push(Arc::downgrade(resources));
    }
    process::at_exit(|| {
        // After a fork, a thread that does not exist in this process may hold the lock.
        let Ok(traced) = TRACED.try_lock() else { return };
        traced.iter().filter_map(Weak::upgrade).for_each(|resources| resources.write_totals());
    });
}

/// Returns the settings, the engine for a named device or kernel, and warnings about the environment.
///
/// # Errors
/// A message about a wrong setting in the configuration file.
fn choose(found: Found) -> Result<(Settings, Option<Engine>, Vec<String>), String> {
    let Found { mut settings, fallback, mut warnings } = found;
    let mut engine = named(&settings);
    if let (Err(why), Some(fallback)) = (&engine, fallback) {
        let differ = [
            ("LOCKSTEP_DEVICE", settings.device != fallback.device),
            ("LOCKSTEP_KERNEL", settings.kernel != fallback.kernel),
            ("LOCKSTEP_LAUNCH", settings.launch != fallback.launch),
        ];
        let names: Vec<_> = differ.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
        let verb = if names.len() == 1 { "is" } else { "are" };
        warnings.push(format!("{} {verb} ignored: {why}", names.join(" and ")));
        (engine, settings) = (named(&fallback), fallback);
    }
    Ok((settings, engine?, warnings))
}

/// True if a device or a kernel is named.
fn is_named(settings: &Settings) -> bool {
    let Settings { device, kernel, launch, .. } = settings;
    !matches!((device.as_deref(), kernel, launch), (None | Some("auto"), None, None))
}

/// Returns the engine for the named device or kernel. Returns `None` if neither is named, or if only a driver can find it.
fn named(settings: &Settings) -> Result<Option<Engine>, String> {
    match is_named(settings) {
        true => settings.engine_without_driver(BACKENDS).map_err(|error| error.to_string()),
        false => Ok(None),
    }
}

/// The backends that this module was built with. `make provider` uses the default features. Registered backends are not in this
/// list.
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

#[cfg(test)]
mod tests;
