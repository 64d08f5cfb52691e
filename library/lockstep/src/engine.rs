//! The engine: the devices that encrypt and decrypt. They are discovered once, and all calls of a program share them.

use std::sync::{Arc, OnceLock};

use lockstep_cache::environment::variable;
use lockstep_core::backend::{Backend, Device, DeviceSelector, Missing};
use lockstep_core::launch::{self, Launch};
use lockstep_core::shown;
use lockstep_cpu::inline::{InlineKernel, is_proven};
use lockstep_cpu::{CpuBackend, CpuOptions};
use lockstep_modes::Executor;
use lockstep_planner::calibrate::Calibrator;
pub use lockstep_planner::verify::Verify;
use lockstep_planner::{Planner, Selection};

use crate::error::{Error, Result};

/// The environment variable for the device, such as `cpu`. If it is `auto`, empty or not set, the planner chooses.
pub const ENV_DEVICE: &str = "LOCKSTEP_DEVICE";
/// The environment variable for the kernel, such as `cpu/vaes512`. If it is `auto`, empty or not set, the planner
/// chooses.
pub const ENV_KERNEL: &str = "LOCKSTEP_KERNEL";
/// The environment variable for the number of CPU threads, from 1 to [`MAX_THREADS`]. If it is `auto`, empty or not
/// set, there is one thread for each processor.
pub const ENV_THREADS: &str = "LOCKSTEP_THREADS";
/// The environment variable for the verification of the results of devices: `off`, `sample` (the default) or `full`.
pub const ENV_VERIFY: &str = "LOCKSTEP_VERIFY";

/// Maximum number of CPU threads of an engine.
pub const MAX_THREADS: usize = 1024;

/// Options for all backends.
#[derive(Debug, Clone)]
pub struct BackendOptions {
    /// The number of CPU threads that a backend may use for one call.
    pub threads: usize,
}

/// A function that makes a list of backends.
pub type Backends = fn(&BackendOptions) -> Vec<Box<dyn Backend>>;

/// The function that [`register`] has stored: it makes the registered backends. Empty if nothing was registered.
static REGISTERED: OnceLock<Backends> = OnceLock::new();

/// Adds backends to this crate's own backends, for all engines that the process builds afterwards. If a backend of this crate has the
/// same name as an added backend, the added backend replaces it. This function is for programs whose engines are built by other code,
/// such as the OpenSSL provider; [`EngineBuilder::with_backends`] is for one engine.
///
/// Returns false, and changes nothing, if backends were registered before.
pub fn register(more: Backends) -> bool {
    REGISTERED.set(more).is_ok()
}

/// True if [`register`] has added a backend of this name.
pub fn is_registered(name: &str) -> bool {
    registered(&BackendOptions { threads: 1 }).iter().any(|backend| backend.name() == name)
}

fn registered(options: &BackendOptions) -> Vec<Box<dyn Backend>> {
    REGISTERED.get().map_or_else(Vec::new, |more| more(options))
}

/// Returns the backends of this crate and the registered backends. If several backends can use the same GPU, `auto` prefers the
/// backend that is first in this list.
pub fn backends(options: &BackendOptions) -> Vec<Box<dyn Backend>> {
    let mut all = backends_of_crate(options);
    for backend in registered(options) {
        match all.iter_mut().find(|other| other.name() == backend.name()) {
            Some(place) => *place = backend,
            None => all.push(backend),
        }
    }
    all
}

/// The backends of real devices. Some of these backends also have a software device. New backends are added here.
fn backends_of_crate(options: &BackendOptions) -> Vec<Box<dyn Backend>> {
    vec![
        Box::new(CpuBackend::new(CpuOptions { threads: Some(options.threads) })),
        #[cfg(feature = "cuda")]
        Box::new(lockstep_cuda::CudaBackend::default()),
        #[cfg(feature = "wgpu")]
        Box::new(lockstep_wgpu::WgpuBackend),
        #[cfg(feature = "opengl")]
        Box::new(lockstep_opengl::OpenGlBackend),
        #[cfg(feature = "qpu")]
        Box::new(lockstep_qpu::device::QpuBackend::default()),
    ]
}

/// The result of discovery on this machine.
#[derive(Default)]
pub struct Discovered {
    /// All devices, including those that are used only if they are named.
    pub devices: Vec<Arc<dyn Device>>,
    /// Backends without a real device on this machine.
    pub missing: MissingBackends,
}

impl Discovered {
    /// Adds the devices of a backend and, if the backend has no real device, the reason.
    fn add(&mut self, backend: &dyn Backend) {
        let here = backend.discover();
        self.devices.extend(here.devices);
        self.missing.extend(here.missing.map(|missing| (backend.name(), missing)));
    }
}

/// The names of the backends without a real device on this machine, each with the reason.
pub type MissingBackends = Vec<(&'static str, Missing)>;

/// Discovers the devices of all backends.
pub fn discover(options: &BackendOptions) -> Discovered {
    discover_for(backends(options), &Selection::default())
}

/// The name of the backend for the CPU that runs this program. Its device is discovered without a driver, when an engine is built.
const PROCESSOR: &str = "cpu";

/// Returns a planner and the list of backends without a device. The planner discovers devices other than the CPU only
/// when there is enough work for them, since the discovery starts drivers. The list is not set before this discovery.
fn planner_with_lazy_discovery(backends: Vec<Box<dyn Backend>>) -> (Planner, Arc<OnceLock<MissingBackends>>) {
    let (initial, others): (Vec<_>, Vec<_>) =
        backends.into_iter().partition(|backend| backend.name() == PROCESSOR);
    let missing = Arc::new(OnceLock::new());
    let report = Arc::clone(&missing);
    let discover = Box::new(move || {
        let mut found = Discovered::default();
        for backend in &others {
            match backend.certainly_missing() {
                Some(missing) => found.missing.push((backend.name(), missing)),
                None => found.add(&**backend),
            }
        }
        let _ = report.set(found.missing);
        found.devices
    });
    (Planner::with_lazy_discovery(discover_for(initial, &Selection::default()).devices, discover), missing)
}

/// Discovers the devices of the backends that a selection names, and the CPU, which verifies the results of other devices. If
/// the selection is automatic, all devices are discovered. All devices are also discovered if the selection names an unknown
/// backend, so that the error message can list them.
fn discover_for(mut backends: Vec<Box<dyn Backend>>, selection: &Selection) -> Discovered {
    let device = selection.device.as_ref();
    let named = [device.map(|it| it.backend()), selection.kernel.as_ref().map(|it| it.backend())];
    let is_named = |backend: &dyn Backend| named.iter().flatten().any(|name| *name == backend.name());
    if backends.iter().any(|backend| is_named(&**backend)) {
        backends.retain(|backend| backend.name() == PROCESSOR || is_named(&**backend));
    }
    let mut found = Discovered::default();
    for backend in &backends {
        match device.and_then(|device| backend.named(device)) {
            // The backend's other devices are not discovered: they are not needed, and their discovery may start a driver.
            Some(Ok(device)) => found.devices.push(device),
            Some(Err(missing)) => {
                // The reason for the named device comes before the reasons for the other devices of the backend.
                found.missing.push((backend.name(), missing));
                found.add(&**backend);
            }
            None => found.add(&**backend),
        }
    }
    found
}

/// The devices that encrypt and decrypt, and their planner. Clones of an engine share the devices and the planner. A program needs
/// only one engine.
#[derive(Clone)]
pub struct Engine {
    planner: Arc<Planner>,
    threads: usize,
    missing: Arc<OnceLock<MissingBackends>>,
    /// True if neither a device nor a kernel is named, and no choices are recorded: small messages then bypass the planner.
    is_automatic: bool,
}

impl From<&Engine> for Arc<dyn Executor> {
    /// The planner, for streams of [`crate::hazmat`].
    fn from(engine: &Engine) -> Self {
        engine.planner.clone()
    }
}

impl Engine {
    /// An engine with the defaults of [`EngineBuilder`].
    ///
    /// # Errors
    /// The errors of [`EngineBuilder::build`].
    pub fn new() -> Result<Engine> {
        Engine::builder().build()
    }

    /// Returns a builder, for an engine with options.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// The planner, for the functions of [`crate::hazmat`]. The streams of [`crate::hazmat::stream`] take the engine itself.
    pub fn planner(&self) -> &Planner {
        &self.planner
    }

    /// The number of CPU threads for files and streams.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The devices that the planner chooses from. The call discovers all devices, which starts the drivers of GPUs.
    pub fn devices(&self) -> &[Arc<dyn Device>] {
        self.planner.devices()
    }

    /// The devices that the planner chooses from and that have been discovered so far.
    pub fn devices_so_far(&self) -> &[Arc<dyn Device>] {
        self.planner.devices_so_far()
    }

    /// The names of the backends without a real device on this machine, each with the reason. Discovers all devices.
    pub fn missing(&self) -> &[(&'static str, Missing)] {
        self.devices();
        self.missing.get().map_or(&[], Vec::as_slice)
    }

    /// The kernel for small messages on the calling thread. `None` if the planner must choose, or if the kernel has not passed its
    /// self-test.
    pub(crate) fn inline_kernel(&self) -> Option<InlineKernel> {
        self.is_automatic.then(InlineKernel::best).filter(|kernel| is_proven(*kernel))
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let devices: Vec<_> = self.devices_so_far().iter().map(|device| device.id().to_string()).collect();
        f.debug_struct("Engine").field("devices", &devices).field("threads", &self.threads()).finish()
    }
}

/// Builds an [`Engine`]. Options that are not set are taken from the environment: [`ENV_DEVICE`], [`ENV_KERNEL`],
/// [`ENV_THREADS`], [`ENV_VERIFY`].
#[derive(Debug, Clone, Default)]
pub struct EngineBuilder {
    device: Option<String>,
    kernel: Option<String>,
    threads: Option<usize>,
    max_threads: Option<usize>,
    verify: Option<Verify>,
    launch: Option<String>,
    backends: Option<&'static [&'static str]>,
    make_backends: Option<Backends>,
    records_decisions: bool,
    calibrates_automatically: bool,
}

impl EngineBuilder {
    /// Uses only the backends with these names (see [`backends`]) and the registered backends. Default: all backends.
    pub fn backends(mut self, names: &'static [&'static str]) -> Self {
        self.backends = Some(names);
        self
    }

    /// Uses the backends of this list, which must contain the backend of the CPU ([`lockstep_cpu::CpuBackend`]). Default:
    /// [`backends`].
    pub fn with_backends(mut self, make: Backends) -> Self {
        self.make_backends = Some(make);
        self
    }

    /// Uses only this device, or several devices of one backend, such as `cuda:all`. `auto` lets the planner choose and
    /// overrides the environment.
    pub fn device(mut self, name: impl Into<String>) -> Self {
        self.device = Some(name.into());
        self
    }

    /// Uses only this kernel. `auto` lets the planner choose and overrides the environment. Calls in a mode that the kernel does
    /// not support return an error.
    pub fn kernel(mut self, name: impl Into<String>) -> Self {
        self.kernel = Some(name.into());
        self
    }

    /// Sets launch options of the named device, such as `threads=256,blocks=64`, for measurements and study.
    /// [`Backend::launch_options`] returns the options that exist.
    pub fn launch(mut self, options: impl Into<String>) -> Self {
        self.launch = Some(options.into());
        self
    }

    /// The number of CPU threads, from 1 to [`MAX_THREADS`]. Default: one for each processor.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Sets an upper limit, at least 1, for the number of CPU threads. The limit applies to a number that is set, to a
    /// number from the environment, and to the default.
    pub fn max_threads(mut self, threads: usize) -> Self {
        self.max_threads = Some(threads);
        self
    }

    /// Sets how results of devices other than the CPU are verified. Default: samples.
    pub fn verify(mut self, verify: Verify) -> Self {
        self.verify = Some(verify);
        self
    }

    /// Sets whether the planner records its choices, for [`Planner::decisions`]. Default: no.
    pub fn remember_decisions(mut self, records: bool) -> Self {
        self.records_decisions = records;
        self
    }

    /// Sets whether the planner may measure operations by itself and keep the measurements in the user's cache directory: see
    /// [`Planner::calibrate_automatically`]. Default: no. Existing measurements, such as those of `lockstep calibrate`, are always
    /// used. For operations without measurements, the planner uses the costs that the devices state.
    pub fn calibrate_automatically(mut self, is_allowed: bool) -> Self {
        self.calibrates_automatically = is_allowed;
        self
    }

    /// Builds the engine. If a device or a kernel is named, this call discovers the devices of its backend.
    ///
    /// # Errors
    /// [`Error::Setting`] for a number of threads that is out of range, [`Error::Core`] for a device or a kernel that
    /// does not exist.
    pub fn build(self) -> Result<Engine> {
        self.build_with(of_environment, |_, _| true).map(|engine| engine.expect("this is allowed"))
    }

    /// Builds the engine if it can be built without starting a driver. The result is `None` if only a driver can find the device or
    /// the kernel that is named. For processes that fork: children cannot use a driver that their parent has started.
    ///
    /// # Errors
    /// The errors of [`EngineBuilder::build`]. A device or a kernel that does not exist is an error only if this can be detected
    /// without a driver.
    pub fn build_without_driver(self) -> Result<Option<Engine>> {
        self.build_with(of_environment, needs_no_driver)
    }

    /// Builds the engine, unless `is_allowed` returns false for the backends and the selection.
    fn build_with(
        self,
        env: impl Fn(&'static str) -> Option<String>,
        is_allowed: impl FnOnce(&[Box<dyn Backend>], &Selection) -> bool,
    ) -> Result<Option<Engine>> {
        let chosen = |given: Option<String>, name| {
            given.or_else(|| env(name)).filter(|value| !value.is_empty() && value != "auto")
        };
        let from_env = [(&self.device, ENV_DEVICE), (&self.kernel, ENV_KERNEL)]
            .map(|(given, name)| (given.is_none() && chosen(None, name).is_some()).then_some(name));
        let selection = Selection {
            device: chosen(self.device, ENV_DEVICE).map(|name| name.as_str().into()),
            kernel: chosen(self.kernel, ENV_KERNEL).map(|name| name.as_str().into()),
        };
        let given = self.threads.map(|threads| ("threads", threads.to_string()));
        let threads = match given.or_else(|| Some((ENV_THREADS, chosen(None, ENV_THREADS)?))) {
            Some((name, value)) => match value.parse() {
                Ok(threads @ 1..=MAX_THREADS) => threads,
                _ => return Err(bad_setting(name, &value, "give a number of threads from 1 to 1024")),
            },
            None => std::thread::available_parallelism().map_or(1, |n| n.get()).min(MAX_THREADS),
        };
        let threads = self.max_threads.map_or(threads, |most| threads.min(most.max(1)));
        let verify = match (self.verify, env(ENV_VERIFY).filter(|value| !value.is_empty())) {
            (Some(verify), _) => verify,
            (None, None) => Verify::default(),
            (None, Some(value)) => {
                value.parse().map_err(|()| bad_setting(ENV_VERIFY, &value, "give off, sample or full"))?
            }
        };
        let mut all = self.make_backends.unwrap_or(backends)(&BackendOptions { threads });
        let is_wanted = |name| self.backends.is_none_or(|names| names.contains(&name) || is_registered(name));
        all.retain(|backend| is_wanted(backend.name()));
        let launch = self.launch.map(|options| launch_of(&options, &selection, &all)).transpose()?;
        if !is_allowed(&all, &selection) {
            return Ok(None);
        }
        let is_automatic = selection.is_auto() && !self.records_decisions;
        let (planner, missing) = if selection.is_auto() {
            planner_with_lazy_discovery(all)
        } else {
            let mut found = discover_for(all, &selection);
            if let Some((backend, launch)) = launch {
                for device in found.devices.iter_mut().filter(|device| device.id().backend == backend) {
                    *device = device.with_launch(&launch)?.unwrap_or_else(|| Arc::clone(device));
                }
            }
            let planner = Planner::new(found.devices, &selection)
                .map_err(|error| with_reason(error, &found.missing, &selection, from_env))?;
            (planner, Arc::new(OnceLock::from(found.missing)))
        };
        let planner = planner.with_verify(verify).with_calibrator(Calibrator::of_user());
        let planner = planner.calibrate_automatically(self.calibrates_automatically);
        let planner = Arc::new(if self.records_decisions { planner.with_decisions() } else { planner });
        Ok(Some(Engine { planner, threads, missing, is_automatic }))
    }
}

/// The value of an environment variable. A program with more rights than its user ignores all variables.
fn of_environment(name: &'static str) -> Option<String> {
    variable(name).map(|value| value.to_string_lossy().into_owned())
}

/// True if it can be decided without a driver of hardware whether the named device and the named kernel exist.
fn needs_no_driver(backends: &[Box<dyn Backend>], Selection { device, kernel }: &Selection) -> bool {
    let named = [device.as_ref().map(|it| it.backend()), kernel.as_ref().map(|it| it.backend())];
    let is_found_here = |backend: &dyn Backend| {
        backend.name() == PROCESSOR
            || device.as_ref().is_some_and(|device| backend.named(device).is_some())
            || backend.certainly_missing().is_some()
    };
    let mut named = backends.iter().filter(|backend| named.contains(&Some(backend.name())));
    named.all(|backend| is_found_here(&**backend))
}

/// Returns the name of the backend of the named device or kernel, and the launch options. This function checks the options without
/// a driver; limits that depend on the device are checked later.
fn launch_of(
    options: &str,
    Selection { device, kernel }: &Selection,
    backends: &[Box<dyn Backend>],
) -> Result<(&'static str, Launch)> {
    let named = device.as_ref().map(|it| it.backend()).or(kernel.as_ref().map(|it| it.backend()));
    let Some(named) = named else {
        return Err(bad_setting("launch", options, "name a device or a kernel as well"));
    };
    // Discovery reports a backend that does not exist.
    let Some(backend) = backends.iter().find(|backend| backend.name() == named) else {
        return Ok(("", vec![]));
    };
    let kernel = kernel.as_ref().map(|kernel| kernel.as_str());
    Ok((backend.name(), launch::parse(options, backend.launch_options(), named, kernel)?))
}

/// Adds two texts to the error. The first states why the backend does not have the named device or, for a simulated device, which
/// program has it. The second states from which environment variables the refused names come.
fn with_reason(
    mut error: lockstep_core::Error,
    missing: &MissingBackends,
    selection: &Selection,
    [device_from, kernel_from]: [Option<&'static str>; 2],
) -> lockstep_core::Error {
    use lockstep_core::Error::{KernelElsewhere, UnknownDevice, UnknownKernel};
    let (known, reason, from) = match &mut error {
        UnknownDevice { name, known } => {
            let device = DeviceSelector::from(name.as_str());
            let why = || missing.iter().find(|(backend, _)| device.backend() == *backend);
            let why = || why().map(|(backend, why)| format!("{backend}: {why}"));
            let reason = simulated_elsewhere(&device).map(str::to_owned).or_else(why);
            // The name of the unknown device may be from the name of a kernel, which begins with the name of a device.
            let is_kernels = selection.device.as_ref() != Some(&device);
            (known, reason, [if is_kernels { kernel_from } else { device_from }, None])
        }
        UnknownKernel { known, .. } => (known, None, [None, kernel_from]),
        KernelElsewhere { known, .. } => (known, None, [device_from, kernel_from]),
        _ => return error,
    };
    let variables = from.into_iter().flatten().map(|variable| format!("the name is from {variable}"));
    reason.into_iter().chain(variables).for_each(|part| *known += &format!("; {part}"));
    error
}

/// The text that states which program has the simulated devices. `None` if the name is not that of a simulated device, or if this
/// process has the device.
pub fn simulated_elsewhere(name: &DeviceSelector) -> Option<&'static str> {
    let text = name.to_string();
    let is_simulated = name.backend() == "spu"
        || ["qpu", "cuda:emu"].contains(&text.as_str())
        || text.starts_with("qpu:sim");
    (is_simulated && !is_registered(name.backend())).then_some(
        "simulated devices are in lockstep-lab (`make lab`: target/release/lockstep-lab) and, for OpenSSL, in \
         lockstep-lab.so (`make provider-lab`)",
    )
}

fn bad_setting(name: &'static str, value: &str, expected: &'static str) -> Error {
    Error::Setting { name, value: shown::name(value).into(), expected }
}

#[cfg(test)]
mod tests;
