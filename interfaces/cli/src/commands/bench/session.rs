//! A run of `lockstep bench`. It chooses the engines to be measured, and the engines that verify the results.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indexmap::IndexSet;
use lockstep::Engine;
use lockstep::engine::{BackendOptions, ENV_DEVICE, ENV_KERNEL};
use lockstep_bench::limit;
use lockstep_bench::peers::{self, OpenSsl};
use lockstep_bench::workload::{self, Inputs, Shape, Workload};

use super::Bench;
use super::measure::{Contender, Setting};
use super::report::Machine;
use crate::error::{Result, ensure};
use crate::memory;
use crate::options::EngineArgs;
use crate::progress::Note;

/// A run of one or several suites.
pub(super) struct Session<'a> {
    pub(super) args: &'a Bench,
    /// Names of devices, or `auto` for the choice of the planner. If the list is empty, all devices are measured, except the devices
    /// that Lockstep uses only if the user names them (simulators, emulators and software devices).
    pub(super) devices: Vec<String>,
    /// Names of kernels. If the list is empty, each suite chooses the kernels.
    pub(super) kernels: Vec<String>,
    /// The `openssl` programs that are measured.
    pub(super) openssl: Vec<OpenSsl>,
    /// The machine at the start of the run.
    pub(super) machine: Machine,
    /// Shows the progress, unless `--quiet` was given.
    note: Option<Note>,
    engines: RefCell<HashMap<Key, Engine>>,
}

/// Device, kernel and threads of an engine.
type Key = (String, Option<String>, Option<usize>);

/// The name for the planner's choice of a device.
pub(super) const AUTO: &str = "auto";

/// Time of a contender in a round of a quick run.
const QUICK: Duration = Duration::from_millis(2);

/// A device or kernel that is measured, with its engine.
pub(super) struct Subject {
    /// The name of the device or kernel.
    pub(super) name: String,
    pub(super) engine: Engine,
}

impl<'a> Session<'a> {
    /// Starts a run.
    pub(super) fn new(args: &'a Bench, openssl: Vec<OpenSsl>) -> Session<'a> {
        // As in all commands, an environment variable sets the default of an option.
        let from_env = |named: &[String], variable| match std::env::var(variable) {
            Ok(value) if named.is_empty() && !value.is_empty() && value != AUTO => vec![value],
            _ => named.to_vec(),
        };
        Session {
            args,
            devices: from_env(&args.device, ENV_DEVICE),
            kernels: from_env(&args.kernel, ENV_KERNEL),
            openssl,
            machine: Machine::here(),
            note: (!args.quiet).then(Note::new),
            engines: RefCell::default(),
        }
    }

    /// Shows the step that is being measured, unless `--quiet` was given.
    pub(super) fn note(&self, what: &str) {
        self.note.iter().for_each(|note| note.show(what));
    }

    /// The number and the length of the rounds. The options determine them; `rounds` and `time` are the defaults.
    pub(super) fn setting(&self, rounds: usize, time: Duration) -> Setting {
        let (rounds, time) = if self.args.quick { (2, QUICK) } else { (rounds, time) };
        Setting {
            rounds: self.args.rounds.map_or(rounds, usize::from),
            time: self.args.seconds.unwrap_or(time),
            times_calls: false,
        }
    }

    /// The sizes that the option `--size` gives. If it gives none, `quick` for a quick run and `usual` for any other run.
    pub(super) fn sizes(&self, usual: &[usize], quick: &[usize]) -> Vec<usize> {
        numbers(&self.args.size, if self.args.quick { quick } else { usual })
    }

    /// The workloads that the options select. If the options select none, the workloads with the names in `usual`, which are separated
    /// by spaces.
    ///
    /// # Errors
    /// If no workload has a name that begins with one of the prefixes in the options.
    pub(super) fn works(&self, usual: &str) -> Result<Vec<Workload>> {
        if self.args.mode.is_empty() {
            return Ok(usual.split_whitespace().map(workload::named).collect());
        }
        self.matching(workload::all())
    }

    /// The workloads of `all` whose names begin with one of the prefixes in the options, in the order of the prefixes.
    ///
    /// # Errors
    /// If no name begins with one of the prefixes.
    pub(super) fn matching(&self, mut all: Vec<Workload>) -> Result<Vec<Workload>> {
        let names = all.iter().map(|work| work.name.as_str()).collect::<Vec<_>>().join(", ");
        let prefixes = &self.args.mode;
        let prefix =
            |one: &Workload| prefixes.iter().position(|prefix| one.name.starts_with(prefix.as_str()));
        all.retain(|one| prefix(one).is_some());
        all.sort_by_key(prefix);
        ensure(!all.is_empty(), format_args!("no such name to measure: there are {names}"))?;
        Ok(all)
    }

    /// The names of the devices that are measured. They are the devices that the options name. If the options name only kernels, they
    /// are the devices of these kernels. If the options name neither, they are all devices except those that Lockstep uses only if the
    /// user names them.
    pub(super) fn devices(&self) -> Result<Vec<String>> {
        if !self.devices.is_empty() {
            return Ok(self.devices.clone());
        }
        let mut names = IndexSet::new();
        // The name of a kernel determines its device.
        for kernel in &self.kernels {
            let engine = self.engine(AUTO, Some(kernel), self.args.threads)?;
            names.extend(engine.devices().iter().map(|device| device.id().to_string()));
        }
        if self.kernels.is_empty() {
            let threads = self.engine("cpu", None, self.args.threads)?.threads();
            let found = lockstep::engine::discover(&BackendOptions { threads });
            let real = found.devices.iter().filter(|device| !device.properties().by_name_only);
            names.extend(real.map(|device| device.id().to_string()));
        }
        Ok(names.into_iter().collect())
    }

    /// The devices or kernels that are measured. If the options name kernels, these kernels are measured on each device. If the options
    /// name no kernel and `by_kernel` is true, all constant-time kernels of each device are measured. Otherwise each device is measured
    /// once, and if the options name no device, the choice of the planner is measured as well.
    pub(super) fn subjects(&self, by_kernel: bool) -> Result<Vec<Subject>> {
        let mut names = self.devices()?;
        if !by_kernel && self.devices.is_empty() && self.kernels.is_empty() {
            names.insert(0, AUTO.into());
        }
        for kernel in &self.kernels {
            let message = format_args!(
                "none of the measured devices has kernels like {kernel}: see `lockstep devices`"
            );
            ensure(names.iter().any(|device| is_of_backend(kernel, device)), message)?;
        }
        let mut subjects = Vec::new();
        for device in &names {
            let engine = |kernel| self.engine(device, kernel, self.args.threads);
            if self.kernels.is_empty() && !by_kernel {
                subjects.push(Subject { name: device.clone(), engine: engine(None)? });
                continue;
            }
            let kernels = match self.kernels.is_empty() {
                false => self.kernels.iter().map(String::as_str).collect(),
                true => constant_time_kernels(&engine(None)?),
            };
            for kernel in kernels.into_iter().filter(|kernel| is_of_backend(kernel, device)) {
                // Devices of the same backend have kernels with the same names, so the name of the device is appended if it
                // is needed to tell the kernels apart.
                let alone = names.iter().filter(|other| is_of_backend(kernel, other)).count() == 1;
                let is_clear = alone && self.kernels.is_empty();
                let name = if is_clear { kernel.into() } else { format!("{kernel} on {device}") };
                subjects.push(Subject { name, engine: engine(Some(kernel))? });
            }
        }
        Ok(subjects)
    }

    /// A sentence for a suite that measures only the first of the named devices or kernels. It lists the others; `None` if there are no
    /// others.
    pub(super) fn left_out(&self, named: &[String]) -> Option<String> {
        let (first, rest) = named.split_first()?;
        (!rest.is_empty()).then(|| format!("This suite measures {first} only, not {}.", rest.join(", ")))
    }

    /// The engine for a device (or `auto`), a kernel and a number of threads.
    pub(super) fn engine(
        &self,
        device: &str,
        kernel: Option<&str>,
        threads: Option<usize>,
    ) -> Result<Engine> {
        let key = (device.to_owned(), kernel.map(str::to_owned), threads);
        if let Some(engine) = self.engines.borrow().get(&key) {
            return Ok(engine.clone());
        }
        let backend = if device == AUTO { kernel.unwrap_or(AUTO) } else { device };
        let launch = self.args.launch.as_deref().filter(|_| backend != AUTO && !backend.starts_with("cpu"));
        // The device and the kernel are always set, so that the environment variables of the library have no effect.
        let (device, kernel) = (Some(device.to_owned()), Some(kernel.unwrap_or(AUTO).to_owned()));
        let engine = EngineArgs { device, kernel, threads, verify: self.args.verify };
        let engine = engine.engine(false, launch)?;
        self.engines.borrow_mut().insert(key, engine.clone());
        Ok(engine)
    }

    /// The engine that verifies the results of a workload. It uses the CPU, with another kernel than the measured one if there is one.
    fn verifier(&self, work: &Workload, measured: &str) -> Result<Engine> {
        let cpu = self.engine("cpu", None, None)?;
        for kernel in constant_time_kernels(&cpu).into_iter().filter(|kernel| *kernel != measured) {
            let engine = self.engine("cpu", Some(kernel), None)?;
            if work.is_supported_by(&engine) {
                return Ok(engine);
            }
        }
        // The CPU has no other kernel for this workload, so the default kernel of the CPU is the verifier.
        Ok(cpu)
    }

    /// The inputs of a workload.
    pub(super) fn inputs(&self, work: &Workload, shape: Shape) -> Result<Inputs> {
        let purpose = "to measure calls of this size; --size and --messages give smaller ones";
        memory::check(3 * shape.bytes() as u64, purpose)?;
        Ok(work.inputs(shape, &self.verifier(work, "")?)?)
    }

    /// The contender for a subject, with its verifier. `None` if the subject does not support the workload.
    pub(super) fn contender(
        &self,
        Subject { name, engine }: &Subject,
        work: &Workload,
        inputs: &Inputs,
        shape: Shape,
    ) -> Result<Option<Contender>> {
        if !work.is_supported_by(engine) {
            return Ok(None);
        }
        if !self.args.quick {
            // Without this call, the planner might calibrate during the measurement.
            work.calibrate(engine);
        }
        let start = Instant::now();
        let kernel = work.kernel(engine, shape);
        let run = work.ours(engine, inputs, shape)?;
        let setup_seconds = start.elapsed().as_secs_f64();
        let verifier = work.ours(&self.verifier(work, kernel)?, inputs, shape)?;
        Ok(Some(Contender { name: Arc::from(&**name), run, verifier, setup_seconds }))
    }

    /// The contenders of a workload, each with its verifier: the subjects that support the workload. If `with_peers` is true and at
    /// least one subject supports the workload, the peers that support the workload follow.
    pub(super) fn contenders<'s>(
        &self,
        subjects: impl IntoIterator<Item = &'s Subject>,
        work: &Workload,
        shape: Shape,
        with_peers: bool,
    ) -> Result<Vec<Contender>> {
        let inputs = self.inputs(work, shape)?;
        let subjects = subjects.into_iter().map(|subject| self.contender(subject, work, &inputs, shape));
        let mut contenders: Vec<_> = subjects.filter_map(Result::transpose).collect::<Result<_>>()?;
        if with_peers && !contenders.is_empty() {
            for (name, run) in peers::contenders(work, &inputs, shape) {
                let verifier = work.ours(&self.verifier(work, name)?, &inputs, shape)?;
                contenders.push(Contender { name: Arc::from(name), run, verifier, setup_seconds: 0.0 });
            }
        }
        Ok(contenders)
    }

    /// A contender that measures the limit of the processor for this workload. Its output is not verified. `None` if the workload has no
    /// such limit, or if no subject computes the workload on one thread of the CPU.
    pub(super) fn limit(&self, subjects: &[Subject], work: &Workload, shape: Shape) -> Option<Contender> {
        let on_one_thread = |Subject { engine, .. }: &Subject| {
            engine.threads() == 1 && work.kernel(engine, shape).starts_with("cpu/")
        };
        let start = Instant::now();
        let run = subjects.iter().any(on_one_thread).then(|| limit::limit(work, shape)).flatten()?;
        let setup_seconds = start.elapsed().as_secs_f64();
        Some(Contender { name: limit::NAME.into(), run, verifier: Box::new(|_, _| Ok(0)), setup_seconds })
    }

    /// Names and descriptions of the devices that were used.
    pub(super) fn used_devices(&self) -> BTreeMap<String, String> {
        let engines = self.engines.borrow();
        let devices = engines.values().flat_map(|engine| engine.devices());
        devices.map(|device| (device.id().to_string(), device.description())).collect()
    }
}

/// The numbers in `given`, which are those of an option. If `given` is empty, the numbers in `otherwise`.
pub(super) fn numbers(given: &[u64], otherwise: &[usize]) -> Vec<usize> {
    if given.is_empty() { otherwise.to_vec() } else { given.iter().map(|number| *number as usize).collect() }
}

/// The names of the constant-time kernels that the first device of the engine can use.
fn constant_time_kernels(engine: &Engine) -> Vec<&'static str> {
    let kernels = engine.devices().first().map_or(&[][..], |device| device.kernels());
    let usable = kernels.iter().filter(|info| info.constant_time && info.missing.is_none());
    usable.map(|info| info.name).collect()
}

fn is_of_backend(kernel: &str, device: &str) -> bool {
    let backend = device.split(':').next().unwrap_or_default();
    device == AUTO || kernel.split('/').next() == Some(backend)
}
