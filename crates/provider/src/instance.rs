//! One loading of the provider into one library context: its settings, the kernel for small calls, the devices for large
//! ones.
//!
//! Loading reads settings and looks at the processor, and no more: no thread is started, no GPU is opened and no random
//! byte is drawn before the first large work, since programs load us early, fork later, and may run their random
//! generator on us.

use std::ffi::CStr;
use std::sync::{Arc, OnceLock};

use lockstep::Engine;
use lockstep::hazmat::inline::{self, InlineKernel};

use crate::ahead::Workshop;
use crate::ffi::core::Core;
use crate::reason::{Outcome, Reason};
use crate::settings::{AheadSetting, Settings, Verify};
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
    pub(crate) workshop: Option<Workshop>,
    engines: OnceLock<Box<Generation>>,
}

/// The devices as one process found them, and as its children did.
///
/// A child of a fork must not use what its parent has opened. The list only grows and nothing here is locked: a fork in
/// the midst of it finds it whole.
struct Generation {
    process: u32,
    engine: Engine,
    next: OnceLock<Box<Generation>>,
}

impl Instance {
    /// Reads the settings and chooses a kernel.
    ///
    /// # Errors
    /// What is wrong with the settings, for people.
    pub(crate) fn new(
        core: Core,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Arc<Instance>, String> {
        let settings = Settings::read(|name: &'static CStr| core.setting(name), environment)?;
        let engine = match (&settings.device, &settings.kernel) {
            (None, None) => None,
            // A name that is not there must be found out now, not in the midst of somebody's work.
            _ => Some(engine(&settings)?),
        };
        let named = settings.kernel.as_deref().and_then(InlineKernel::by_name);
        let kernel = named.unwrap_or_else(InlineKernel::best);
        let device_is_named = engine
            .as_ref()
            .is_some_and(|engine| engine.devices().iter().any(|device| device.id().backend != "cpu"));
        let threshold =
            settings.threshold.unwrap_or(if device_is_named { DEVICE_THRESHOLD } else { CPU_THRESHOLD });
        let trace = match &settings.trace {
            None => None,
            Some(to) => Some(Trace::new(to).map_err(|error| format!("the trace cannot be opened: {error}"))?),
        };
        let ahead = match settings.ahead {
            AheadSetting::On => true,
            AheadSetting::Off => false,
            AheadSetting::Auto => device_is_named || !kernel.has_aes_instructions(),
        };
        let engines = OnceLock::new();
        if let Some(engine) = engine {
            let _ = engines.set(Generation::boxed(engine));
        }
        let workshop = ahead.then(|| Workshop::new(device_is_named));
        Ok(Arc::new(Instance { core, trace, settings, kernel, threshold, workshop, engines }))
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
        bytes >= self.threshold
    }

    /// The provider is unloaded: ends what runs in the background, and tells what was done. Contexts that live on, as those
    /// of exit handlers do, still work inline.
    pub(crate) fn shut_down(&self) {
        if let Some(workshop) = &self.workshop {
            workshop.close();
        }
        if let Some(trace) = &self.trace {
            trace.tell_totals();
        }
    }

    /// How results are checked.
    pub(crate) fn verify(&self) -> Verify {
        self.settings.verify
    }

    /// The devices of this process.
    ///
    /// # Errors
    /// [`Reason::Device`] if there are none.
    pub(crate) fn engine(&self) -> Outcome<&Engine> {
        let process = std::process::id();
        let mut place = &self.engines;
        loop {
            match place.get() {
                Some(generation) if generation.process == process => return Ok(&generation.engine),
                Some(generation) => place = &generation.next,
                None => {
                    let engine = engine(&self.settings).map_err(|detail| {
                        self.core.raise(Reason::Setting, Some(&detail));
                        Reason::Device
                    })?;
                    // Another thread may have been faster: then its engine is taken.
                    let _ = place.set(Generation::boxed(engine));
                }
            }
        }
    }
}

impl Generation {
    fn boxed(engine: Engine) -> Box<Generation> {
        Box::new(Generation { process: std::process::id(), engine, next: OnceLock::new() })
    }
}

fn engine(settings: &Settings) -> Result<Engine, String> {
    let mut builder = Engine::builder()
        .device(settings.device.as_deref().unwrap_or("auto"))
        .kernel(settings.kernel.as_deref().unwrap_or("auto"));
    if let Some(threads) = settings.threads {
        builder = builder.threads(threads);
    }
    builder.build().map_err(|error| error.to_string())
}
