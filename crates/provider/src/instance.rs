//! One loading of the provider into one library context: its settings, the kernel for small calls, the devices for large
//! ones.
//!
//! Loading reads settings and looks at the processor, and no more: no thread is started, no device is looked for and no
//! random byte is drawn before the first large work, since programs load us early, fork later, and may run their random
//! generator on us. The exception is a device or kernel that was named: whether it is there must be known at once.

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
use crate::ffi::standard::say;
use crate::reason::{Outcome, Reason};
use crate::settings::Found;
use crate::trace::Trace;

/// Bytes in one call from which on the planner chooses, if nothing else is set, on CPUs: below, a second thread costs more
/// than it brings (docs/provider.md has the measurement).
const CPU_THRESHOLD: usize = 2 << 20;

/// The same with a device chosen by name, which is then meant to be used.
const DEVICE_THRESHOLD: usize = 64 << 10;

/// One loading of the provider.
pub(crate) struct Instance {
    pub(crate) core: Core,
    pub(crate) trace: Option<Trace>,
    settings: Settings,
    kernel: InlineKernel,
    threshold: usize,
    /// Where keystream is made ahead, if it is.
    pub(crate) keystream_pool: Option<KeystreamPool>,
    /// The devices as this process found them: a child of a fork must not use what its parent has opened.
    engines: PerProcess<Engine>,
    /// Incidents of devices that have been told of.
    told: AtomicUsize,
}

impl Instance {
    /// Reads the settings and chooses a kernel.
    ///
    /// # Errors
    /// What is wrong with the settings of the configuration file, in words.
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
            warnings.iter().for_each(|warning| trace.tell_failure(warning));
        }
        let ahead = match settings.ahead {
            Ahead::On => true,
            Ahead::Off => false,
            // A second processor must be there to make it.
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
            told: AtomicUsize::new(0),
        });
        if traced {
            tell_totals_at_exit(&instance);
        }
        Ok(instance)
    }

    /// The kernel for calls on the caller's thread, once it has passed its self-test.
    ///
    /// # Errors
    /// [`Reason::SelfTest`]
    pub(crate) fn kernel(&self) -> Outcome<InlineKernel> {
        if inline::is_proven(self.kernel) { Ok(self.kernel) } else { Err(Reason::SelfTest) }
    }

    /// True if so many bytes in one call are for the planner.
    #[inline(always)]
    pub(crate) fn is_large(&self, bytes: usize) -> bool {
        bytes >= self.threshold && bytes > 0
    }

    /// The provider is unloaded: ends what runs in the background, and tells what was done. Contexts that live on, as those
    /// of exit handlers do, still work inline.
    pub(crate) fn shut_down(&self) {
        if let Some(keystream_pool) = &self.keystream_pool {
            keystream_pool.close();
        }
        if let Some(trace) = &self.trace {
            trace.tell_totals(&self.device_totals());
        }
    }

    /// Tells in the trace what devices did wrong since the last time.
    pub(crate) fn tell_incidents(&self, engine: &Engine) {
        if let Some(trace) = &self.trace {
            let incidents = engine.planner().incidents();
            let told = self.told.fetch_max(incidents.len(), Relaxed);
            incidents.iter().skip(told).for_each(|incident| trace.tell_failure(&incident.to_string()));
        }
    }

    /// What the devices of this process have done, self-tests included: a line for each entry point.
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
    /// Why there are none, for people.
    pub(crate) fn engine(&self) -> Result<&Engine, String> {
        self.engines.get_or_make(|| engine(&self.settings), drop)
    }
}

/// Instances whose totals are told when the process ends, if they have not been unloaded by then.
static TRACED: Mutex<Vec<Weak<Instance>>> = Mutex::new(Vec::new());

fn tell_totals_at_exit(instance: &Arc<Instance>) {
    if let Ok(mut traced) = TRACED.lock() {
        traced.retain(|instance| instance.strong_count() > 0);
        traced.push(Arc::downgrade(instance));
    }
    process::at_exit(|| {
        // A thread that does not exist in this process may hold the lock.
        let Ok(traced) = TRACED.try_lock() else { return };
        for instance in traced.iter().filter_map(Weak::upgrade) {
            if let Some(trace) = &instance.trace {
                trace.tell_totals(&instance.device_totals());
            }
        }
    });
}

fn processors() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// The settings that hold, the device or kernel if one is named, and what is wrong with the environment.
///
/// # Errors
/// What is wrong with the settings of the configuration file, in words.
fn choose(found: Found) -> Result<(Settings, Option<Engine>, Vec<String>), String> {
    let Found { settings, without, mut warnings } = found;
    let why = match named(&settings) {
        Ok(engine) => return Ok((settings, engine, warnings)),
        Err(why) => why,
    };
    let Some(without) = without else { return Err(why) };
    let engine = named(&without)?;
    let ignored = match (settings.device != without.device, settings.kernel != without.kernel) {
        (true, true) => "LOCKSTEP_DEVICE and LOCKSTEP_KERNEL are",
        (true, false) => "LOCKSTEP_DEVICE is",
        _ => "LOCKSTEP_KERNEL is",
    };
    warnings.push(format!("{ignored} ignored: {why}"));
    Ok((without, engine, warnings))
}

/// The device or kernel that is named, if any is: one that is not there must be found out now, not in the midst of
/// somebody's work.
fn named(settings: &Settings) -> Result<Option<Engine>, String> {
    match (settings.device.as_deref(), &settings.kernel) {
        (None | Some("auto"), None) => Ok(None),
        _ => engine(settings).map(Some),
    }
}

/// The backends that this module was built with: `make provider` takes the default features, `make provider-lab` adds the
/// emulator and the simulators.
const BACKENDS: &[&str] = &[
    "cpu",
    #[cfg(feature = "cuda")]
    "cuda",
    #[cfg(feature = "wgpu")]
    "wgpu",
    #[cfg(feature = "lab")]
    "spu",
];

fn engine(settings: &Settings) -> Result<Engine, String> {
    settings.engine(BACKENDS).map_err(|error| error.to_string())
}

/// Reports what is wrong with the environment, the first time that the provider is loaded into a process.
fn warn_once(warnings: &[String]) {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if !warnings.is_empty() && !WARNED.swap(true, Relaxed) {
        warnings.iter().for_each(|warning| say(warning));
    }
}
