//! Which devices do the work: found once, shared by everything a program does.

use std::sync::{Arc, OnceLock};

use lockstep_cache::environment::variable;
use lockstep_core::backend::{Backend, Device, Missing};
use lockstep_core::work::AeadMessage;
use lockstep_cpu::{CpuBackend, CpuOptions};
use lockstep_planner::calibrate::Calibrator;
pub use lockstep_planner::verify::Verify;
use lockstep_planner::{Planner, Selection};

use crate::error::{Error, Result};

/// Names a device, such as `cpu`; `auto` or nothing lets the planner choose.
pub const ENV_DEVICE: &str = "LOCKSTEP_DEVICE";
/// Names a kernel, such as `cpu/vaes512`; `auto` or nothing lets the planner choose.
pub const ENV_KERNEL: &str = "LOCKSTEP_KERNEL";
/// How many CPU threads to use, from 1; `auto` or nothing means one for each processor.
pub const ENV_THREADS: &str = "LOCKSTEP_THREADS";
/// How results of devices are checked: `off`, `sample` (or nothing) or `full`.
pub const ENV_VERIFY: &str = "LOCKSTEP_VERIFY";

/// More threads than this are never started.
pub const MAX_THREADS: usize = 1024;

/// What every backend is told.
#[derive(Debug, Clone)]
pub struct BackendOptions {
    /// How many CPU threads a backend may use for one piece of work.
    pub threads: usize,
}

/// All backends. This list is the only place that a new one is added to.
pub fn backends(options: &BackendOptions) -> Vec<Box<dyn Backend>> {
    vec![
        Box::new(CpuBackend::new(CpuOptions { threads: Some(options.threads) })),
        #[cfg(feature = "cuda")]
        Box::new(lockstep_cuda::CudaBackend),
        #[cfg(feature = "wgpu")]
        Box::new(lockstep_wgpu::WgpuBackend),
        #[cfg(feature = "lab")]
        Box::new(lockstep_spu::device::SpuBackend),
    ]
}

/// What was found on this machine.
pub struct Discovered {
    /// All devices, simulated ones too.
    pub devices: Vec<Arc<dyn Device>>,
    /// Backends without a real device here.
    pub missing: Absent,
}

/// Backends without a real device here, by name, and why.
pub type Absent = Vec<(&'static str, Missing)>;

/// Asks every backend for its devices.
pub fn discover(options: &BackendOptions) -> Discovered {
    discover_among(&backends(options))
}

/// The backend of the processor itself, which need not be looked for.
const PROCESSOR: &str = "cpu";

/// A planner that chooses by itself: it looks for other devices than the CPU when there is enough to do for them, for that
/// starts their drivers. What it does not find is told by the second.
fn look_late(backends: Vec<Box<dyn Backend>>) -> (Planner, Arc<OnceLock<Absent>>) {
    let (near, others): (Vec<_>, Vec<_>) =
        backends.into_iter().partition(|backend| backend.name() == PROCESSOR);
    let missing = Arc::new(OnceLock::new());
    let tell = Arc::clone(&missing);
    let look = Box::new(move || {
        let mut absent: Absent = Vec::new();
        let mut others = others;
        others.retain(|backend| match backend.certainly_missing() {
            Some(missing) => {
                absent.push((backend.name(), missing));
                false
            }
            None => true,
        });
        let found = discover_among(&others);
        absent.extend(found.missing);
        let _ = tell.set(absent);
        found.devices
    });
    (Planner::looking(discover_among(&near).devices, look), missing)
}

/// Asks the backends that a selection needs: those it names, and the CPU's, by which others are verified.
fn discover_for(mut backends: Vec<Box<dyn Backend>>, selection: &Selection) -> Discovered {
    let names = [&selection.device, &selection.kernel].into_iter().flatten();
    let wanted: Vec<&str> = names.filter_map(|name| name.split([':', '/']).next()).collect();
    if wanted.iter().any(|name| backends.iter().any(|backend| backend.name() == *name)) {
        backends.retain(|backend| backend.name() == PROCESSOR || wanted.contains(&backend.name()));
    }
    let mut found = discover_among(&backends);
    let name =
        selection.device.as_ref().filter(|name| found.devices.iter().all(|d| d.id().to_string() != **name));
    if let Some((backend, made)) =
        name.and_then(|name| backends.iter().find_map(|backend| Some((backend.name(), backend.named(name)?))))
    {
        match made {
            Ok(device) => found.devices.push(device),
            Err(missing) => found.missing.push((backend, missing)),
        }
    }
    found
}

fn discover_among(backends: &[Box<dyn Backend>]) -> Discovered {
    let mut found = Discovered { devices: Vec::new(), missing: Vec::new() };
    for backend in backends {
        let here = backend.discover();
        found.devices.extend(here.devices);
        found.missing.extend(here.missing.map(|missing| (backend.name(), missing)));
    }
    found
}

/// The devices that work is done on, and how. Cloning shares it; make one and keep it.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    planner: Arc<Planner>,
    threads: usize,
    missing: Arc<OnceLock<Absent>>,
}

impl Engine {
    /// All devices of this machine, as the environment narrows them.
    ///
    /// # Errors
    /// Those of [`EngineBuilder::build`].
    pub fn new() -> Result<Engine> {
        Engine::builder().build()
    }

    /// For a choice of device, kernel or threads.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// The planner, for the raw modes of [`crate::hazmat`]; streams keep a clone of it.
    pub fn planner(&self) -> &Arc<Planner> {
        &self.inner.planner
    }

    /// How many CPU threads files and streams are worked on with.
    pub fn threads(&self) -> usize {
        self.inner.threads
    }

    /// The devices that the planner chooses among; looks for all there are, which starts the drivers of GPUs.
    pub fn devices(&self) -> &[Arc<dyn Device>] {
        self.inner.planner.devices()
    }

    /// The devices that the planner knows of, without looking further.
    pub fn devices_so_far(&self) -> &[Arc<dyn Device>] {
        self.inner.planner.devices_so_far()
    }

    /// Backends without a real device on this machine, by name, and why; looks for all there are.
    pub fn missing(&self) -> &[(&'static str, Missing)] {
        self.devices();
        self.inner.missing.get().map_or(&[], Vec::as_slice)
    }

    /// What devices did wrong or failed to do, and the CPU has done in their place.
    pub fn incidents(&self) -> Vec<lockstep_core::Error> {
        self.inner.planner.incidents()
    }

    pub(crate) fn gcm_seal(&self, messages: &mut [AeadMessage<'_>]) -> lockstep_core::Result<()> {
        lockstep_modes::gcm::seal(&self.inner.planner, messages)
    }

    pub(crate) fn gcm_open(&self, messages: &mut [AeadMessage<'_>]) -> lockstep_core::Result<()> {
        lockstep_modes::gcm::open(&self.inner.planner, messages)
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let devices: Vec<_> = self.devices_so_far().iter().map(|device| device.id().to_string()).collect();
        f.debug_struct("Engine").field("devices", &devices).field("threads", &self.threads()).finish()
    }
}

/// Makes an [`Engine`]. What is not said here is taken from the environment: [`ENV_DEVICE`], [`ENV_KERNEL`],
/// [`ENV_THREADS`], [`ENV_VERIFY`].
#[derive(Debug, Clone, Default)]
pub struct EngineBuilder {
    device: Option<String>,
    kernel: Option<String>,
    threads: Option<usize>,
    verify: Option<Verify>,
    backends: Option<&'static [&'static str]>,
    remembers: bool,
}

impl EngineBuilder {
    /// Only the devices of these backends, by their names in [`backends`]; without this, those of all.
    pub(crate) fn backends(mut self, names: &'static [&'static str]) -> Self {
        self.backends = Some(names);
        self
    }

    /// Only this device, by name; `auto` lets the planner choose whatever the environment says.
    pub fn device(mut self, name: impl Into<String>) -> Self {
        self.device = Some(name.into());
        self
    }

    /// Only this kernel, by name; `auto` lets the planner choose whatever the environment says. A named kernel may
    /// lack some modes, and those then fail.
    pub fn kernel(mut self, name: impl Into<String>) -> Self {
        self.kernel = Some(name.into());
        self
    }

    /// This many CPU threads, from 1 to [`MAX_THREADS`].
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// How results of devices other than the CPU are checked.
    pub fn verify(mut self, verify: Verify) -> Self {
        self.verify = Some(verify);
        self
    }

    /// Remembers what the planner chooses, for [`Planner::decisions`].
    pub fn remember_decisions(mut self, remembers: bool) -> Self {
        self.remembers = remembers;
        self
    }

    /// Makes the engine, and finds its devices if some were named.
    ///
    /// # Errors
    /// [`Error::Setting`] for a number of threads that cannot be, [`Error::Core`] for devices and kernels that are not
    /// there.
    pub fn build(self) -> Result<Engine> {
        // A program with more rights than its user is not told by him what to run.
        self.build_with(|name| variable(name).map(|value| value.to_string_lossy().into_owned()))
    }

    fn build_with(self, env: impl Fn(&'static str) -> Option<String>) -> Result<Engine> {
        let chosen = |given: Option<String>, name| {
            given.or_else(|| env(name)).filter(|value| !value.is_empty() && value != "auto")
        };
        let selection = Selection {
            device: chosen(self.device, ENV_DEVICE).map(without_alias),
            kernel: chosen(self.kernel, ENV_KERNEL).map(without_alias),
        };
        let threads = match self.threads {
            Some(threads) => check_threads("threads", threads.to_string())?,
            None => match chosen(None, ENV_THREADS) {
                Some(value) => check_threads(ENV_THREADS, value)?,
                None => std::thread::available_parallelism().map_or(1, |n| n.get()).min(MAX_THREADS),
            },
        };
        let verify = match (self.verify, env(ENV_VERIFY).filter(|value| !value.is_empty())) {
            (Some(verify), _) => verify,
            (None, None) => Verify::default(),
            (None, Some(value)) => value.parse().map_err(|()| Error::Setting {
                name: ENV_VERIFY,
                value,
                expected: "say off, sample or full",
            })?,
        };
        let mut all = backends(&BackendOptions { threads });
        all.retain(|backend| self.backends.is_none_or(|names| names.contains(&backend.name())));
        let (planner, missing) = if selection == Selection::default() {
            look_late(all)
        } else {
            let found = discover_for(all, &selection);
            let planner =
                Planner::new(found.devices, &selection).map_err(|error| why_not(error, &found.missing))?;
            (planner, Arc::new(OnceLock::from(found.missing)))
        };
        let planner = planner.with_verify(verify).with_calibrator(Calibrator::of_user());
        let planner = Arc::new(if self.remembers { planner.with_decisions() } else { planner });
        Ok(Engine { inner: Arc::new(Inner { planner, threads, missing }) })
    }
}

/// The name of a device or a kernel under the backend's own name: `vulkan:0` is an alias of `wgpu:0`, for users of the time when
/// the backend was called so.
fn without_alias(name: String) -> String {
    match name.strip_prefix("vulkan") {
        Some(rest) if rest.is_empty() || rest.starts_with([':', '/']) => format!("wgpu{rest}"),
        _ => name,
    }
}

/// Says also why a backend has not the device that was asked for.
fn why_not(error: lockstep_core::Error, missing: &[(&'static str, Missing)]) -> lockstep_core::Error {
    match error {
        lockstep_core::Error::UnknownDevice { name, known } => {
            let backend = name.split([':', '/']).next().unwrap_or_default();
            let why = missing.iter().find(|(missing, _)| *missing == backend);
            let why = why.map_or(String::new(), |(backend, why)| format!("; {backend}: {why}"));
            lockstep_core::Error::UnknownDevice { name, known: known + &why }
        }
        error => error,
    }
}

fn check_threads(name: &'static str, value: String) -> Result<usize> {
    match value.parse() {
        Ok(threads @ 1..=MAX_THREADS) => Ok(threads),
        _ => Err(Error::Setting { name, value, expected: "give a number of threads from 1 to 1024" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(builder: EngineBuilder, env: &[(&str, &str)]) -> Result<Engine> {
        builder.build_with(|name| env.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).into()))
    }

    #[test]
    fn the_builder_comes_before_the_environment() {
        assert_eq!(build(Engine::builder(), &[(ENV_THREADS, "3")]).unwrap().threads(), 3);
        assert_eq!(build(Engine::builder().threads(5), &[(ENV_THREADS, "3")]).unwrap().threads(), 5);
        assert!(build(Engine::builder().device("auto"), &[(ENV_DEVICE, "nonsense")]).is_ok());
        assert!(build(Engine::builder(), &[(ENV_DEVICE, "cpu"), (ENV_KERNEL, "")]).is_ok());
    }

    #[cfg(feature = "lab")]
    #[test]
    fn devices_are_made_by_name() {
        let engine = build(Engine::builder().device("spu:4"), &[]).unwrap();
        assert_eq!(engine.devices()[0].description(), "Cell with 4 SPEs");
        let error = build(Engine::builder().device("spu:17"), &[]).unwrap_err().to_string();
        assert!(error.contains("spu:17") && error.contains("spu:1 to spu:16"), "{error}");
    }

    #[test]
    fn vulkan_is_an_alias_of_wgpu() {
        for (name, expected) in [
            ("vulkan:0", "wgpu:0"),
            ("vulkan:software", "wgpu:software"),
            ("vulkan/bitslice", "wgpu/bitslice"),
            ("vulkan", "wgpu"),
            ("vulkanic:0", "vulkanic:0"),
            ("cuda:0", "cuda:0"),
        ] {
            assert_eq!(without_alias(name.into()), expected);
        }
    }

    #[test]
    fn bad_values_are_errors() {
        for bad in ["0", "-1", "many", "1025", "1.5", "99999999999999999999"] {
            let error = build(Engine::builder(), &[(ENV_THREADS, bad)]).unwrap_err();
            assert!(matches!(&error, Error::Setting { value, .. } if value == bad), "{error}");
        }
        assert!(build(Engine::builder().threads(0), &[]).is_err());
        assert!(build(Engine::builder(), &[(ENV_VERIFY, "maybe")]).is_err());
        assert!(build(Engine::builder().verify(Verify::Off), &[(ENV_VERIFY, "maybe")]).is_ok());
        assert!(matches!(build(Engine::builder(), &[(ENV_DEVICE, "abacus")]), Err(Error::Core(_))));
        assert!(matches!(build(Engine::builder().kernel("cpu/abacus"), &[]), Err(Error::Core(_))));
    }
}
