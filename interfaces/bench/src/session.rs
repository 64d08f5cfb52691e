//! A run: the engines that are measured, and the engines that verify their results.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockstep::Engine;
use lockstep::engine::{BackendOptions, Verify};

use super::cpu_time::Curve;
use super::energy::Meter;
use super::machine::Machine;
use super::measure::{Contender, Setting};
use super::openssl::OpenSsl;
use super::report::{Report, Section};
use super::workload::{self, Inputs, Run, Shape, Workload};
use crate::error::{Error, Result, failed};
use crate::host::Host;

/// What is measured, and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Prefixes of names of workloads, such as `ctr` or `gcm-128`. If empty, the suite uses its defaults.
    pub modes: Vec<String>,
    /// Sizes of messages in bytes: multiples of 16, at most [`MAX_CALL_BYTES`](crate::MAX_CALL_BYTES). If empty, the
    /// suite uses its defaults.
    pub sizes: Vec<usize>,
    /// Messages in a call of the suite `batch`. If empty, the suite uses its default.
    pub messages: Vec<usize>,
    /// Names of devices, or `auto` for the choice of the planner. If empty, all devices are
    /// measured that are not used by name only (simulators, emulators and software devices are).
    pub devices: Vec<String>,
    /// Names of kernels. If empty, the suite uses its default.
    pub kernels: Vec<String>,
    /// CPU threads.
    pub threads: Option<usize>,
    /// How the CPU verifies the results of other devices.
    pub verify: Option<Verify>,
    /// Rounds that are counted.
    pub rounds: Option<usize>,
    /// Time of each contender in each round.
    pub time: Option<Duration>,
    /// A quick run: few and short rounds, and small sizes.
    pub quick: bool,
    /// The parent of the temporary folder of the suite `files`. `None`: the temporary folder of the system.
    pub folder: Option<PathBuf>,
    /// The `openssl` programs that are measured.
    pub openssl: Vec<OpenSsl>,
}

/// A run of one or several suites.
pub struct Session {
    pub(crate) options: Options,
    pub(crate) host: Rc<dyn Host>,
    pub(crate) curve: Curve,
    pub(crate) meter: std::result::Result<Meter, String>,
    /// The machine at the start of the run.
    machine: Machine,
    engines: RefCell<HashMap<Key, Engine>>,
}

/// Device, kernel and threads of an engine.
type Key = (String, Option<String>, Option<usize>);

/// The name for the planner's choice of a device.
pub(crate) const AUTO: &str = "auto";

/// Time of a contender in a round of a quick run.
const QUICK: Duration = Duration::from_millis(2);

/// A device or kernel that is measured, with its engine.
#[derive(Clone)]
pub(crate) struct Subject {
    /// The name of the device or kernel.
    pub(crate) name: String,
    pub(crate) engine: Engine,
}

impl Session {
    /// Starts a run.
    pub fn new(options: Options, host: Rc<dyn Host>) -> Session {
        Session {
            machine: Machine::here(),
            curve: Curve::start(),
            meter: Meter::find(),
            host,
            engines: RefCell::default(),
            options,
        }
    }

    /// Shows which step is being measured.
    pub(crate) fn note(&self, what: &str) {
        self.host.show_step(what);
    }

    /// The number and the length of the rounds: the values of the options, or else these defaults.
    pub(crate) fn setting(&self, rounds: usize, time: Duration) -> Setting {
        let quick = self.options.quick;
        Setting {
            rounds: self.options.rounds.unwrap_or(if quick { 2 } else { rounds }),
            time: self.options.time.unwrap_or(if quick { QUICK } else { time }),
            max_call_time: Duration::from_millis(if quick { 100 } else { 2000 }),
            curve: self.curve.clone(),
            meter: self.meter.as_ref().ok().cloned(),
            host: Rc::clone(&self.host),
        }
    }

    /// The sizes of the options, or else these defaults: `quick` for a quick run, `usual` for any other run.
    pub(crate) fn sizes(&self, usual: &[usize], quick: &[usize]) -> Vec<usize> {
        match &self.options {
            Options { sizes, .. } if !sizes.is_empty() => sizes.clone(),
            Options { quick: true, .. } => quick.to_vec(),
            _ => usual.to_vec(),
        }
    }

    /// The workloads that the options select, or else the workloads with the names in `usual`.
    ///
    /// # Errors
    /// If no workload has a name that begins with one of the prefixes in the options.
    pub(crate) fn works(&self, usual: &[&str]) -> Result<Vec<Workload>> {
        if self.options.modes.is_empty() {
            let named = usual.iter().map(|name| workload::named(name).expect("a work of ours"));
            return Ok(named.collect());
        }
        let names: Vec<&str> = self.options.modes.iter().map(String::as_str).collect();
        let works = workload::with_prefix(&names);
        if works.is_empty() {
            return Err(no_such_work(workload::all().into_iter().map(|work| work.name)));
        }
        Ok(works)
    }

    /// The devices that are measured: those of the options, or all that are not used by name only.
    pub(crate) fn devices(&self) -> Result<Vec<String>> {
        if !self.options.devices.is_empty() {
            return Ok(self.options.devices.clone());
        }
        if !self.options.kernels.is_empty() {
            // The name of a kernel determines its device.
            let mut names = Vec::new();
            for kernel in &self.options.kernels {
                let engine = self.engine(AUTO, Some(kernel))?;
                let found = engine.devices().iter().map(|device| device.id().to_string());
                names.extend(found.filter(|name| !names.contains(name)).collect::<Vec<_>>());
            }
            return Ok(names);
        }
        let threads = self.engine("cpu", None)?.threads();
        let found = lockstep::engine::discover(&BackendOptions { threads });
        let real = found.devices.iter().filter(|device| !device.properties().by_name_only);
        Ok(real.map(|device| device.id().to_string()).collect())
    }

    /// Each device, or each named kernel of each device. If the options name no device and no kernel, the choice of the
    /// planner is included.
    pub(crate) fn subjects(&self) -> Result<Vec<Subject>> {
        let mut names = self.devices()?;
        if self.options.devices.is_empty() && self.options.kernels.is_empty() {
            names.insert(0, AUTO.into());
        }
        let is_unmatched = |kernel: &&String| !names.iter().any(|device| is_of_backend(kernel, device));
        if let Some(kernel) = self.options.kernels.iter().find(is_unmatched) {
            return Err(failed(format!(
                "none of the measured devices has kernels like {kernel}: see `lockstep devices`"
            )));
        }
        let mut subjects = Vec::new();
        for device in names {
            if self.options.kernels.is_empty() {
                subjects.push(Subject { engine: self.engine(&device, None)?, name: device });
                continue;
            }
            for kernel in self.options.kernels.iter().filter(|kernel| is_of_backend(kernel, &device)) {
                let engine = self.engine(&device, Some(kernel))?;
                subjects.push(Subject { name: format!("{kernel} on {device}"), engine });
            }
        }
        if subjects.is_empty() {
            return Err(failed("no device has a kernel of that name: see `lockstep devices`"));
        }
        Ok(subjects)
    }

    /// Each kernel of each device: the kernels of the options, or else all constant-time kernels.
    pub(crate) fn kernels(&self) -> Result<Vec<Subject>> {
        if !self.options.kernels.is_empty() {
            return self.subjects();
        }
        let devices = self.devices()?;
        let mut subjects = Vec::new();
        for device in &devices {
            let engine = self.engine(device, None)?;
            for info in engine.devices().first().map(|device| device.kernels()).unwrap_or_default() {
                if !info.constant_time || info.missing.is_some() {
                    continue;
                }
                // Devices of the same backend have kernels with the same names, so the name of the device is appended.
                let alone = devices.iter().filter(|other| is_of_backend(info.name, other)).count() == 1;
                let name = if alone { info.name.into() } else { format!("{} on {device}", info.name) };
                subjects.push(Subject { name, engine: self.engine(device, Some(info.name))? });
            }
        }
        Ok(subjects)
    }

    /// For a suite that measures only the first of the names: a sentence that lists the other names.
    pub(crate) fn left_out(&self, named: &[String]) -> Option<String> {
        let (first, rest) = named.split_first()?;
        (!rest.is_empty()).then(|| format!("This suite measures {first} only, not {}.", rest.join(", ")))
    }

    /// The engine of a device (or `auto`) and a kernel, with the number of threads of the options.
    pub(crate) fn engine(&self, device: &str, kernel: Option<&str>) -> Result<Engine> {
        self.engine_on(device, kernel, self.options.threads)
    }

    /// Does the same as [`Session::engine`], with this number of threads.
    pub(crate) fn engine_on(
        &self,
        device: &str,
        kernel: Option<&str>,
        threads: Option<usize>,
    ) -> Result<Engine> {
        let key = (device.to_owned(), kernel.map(str::to_owned), threads);
        if let Some(engine) = self.engines.borrow().get(&key) {
            return Ok(engine.clone());
        }
        // The device and the kernel are always set, so that the environment variables of the library have no effect.
        let mut builder =
            Engine::builder().calibrate_automatically(true).device(device).kernel(kernel.unwrap_or(AUTO));
        if let Some(threads) = threads {
            builder = builder.threads(threads);
        }
        if let Some(verify) = self.options.verify {
            builder = builder.verify(verify);
        }
        let engine = builder.build()?;
        self.engines.borrow_mut().insert(key, engine.clone());
        Ok(engine)
    }

    /// The engine that verifies a workload: the CPU, with a kernel that is not the measured one.
    pub(crate) fn verifier(&self, work: &Workload, measured: &str) -> Result<Engine> {
        let cpu = self.engine_on("cpu", None, None)?;
        for info in cpu.devices().first().map(|device| device.kernels()).unwrap_or_default() {
            if info.name == measured || !info.constant_time || info.missing.is_some() {
                continue;
            }
            let engine = self.engine_on("cpu", Some(info.name), None)?;
            if work.is_supported_by(&engine) {
                return Ok(engine);
            }
        }
        // The CPU has no other kernel for this workload, so the default kernel of the CPU is the verifier.
        Ok(cpu)
    }

    /// Keys and sealed messages for a workload.
    pub(crate) fn inputs(&self, work: &Workload, shape: Shape) -> Result<Inputs> {
        super::measure::check_memory(&*self.host, shape.bytes())?;
        Ok(work.inputs(shape, &self.verifier(work, "")?)?)
    }

    /// The contender of a subject, if it supports the workload.
    pub(crate) fn contender(
        &self,
        subject: &Subject,
        work: &Workload,
        inputs: &Inputs,
        shape: Shape,
    ) -> Result<Option<Contender>> {
        if !work.is_supported_by(&subject.engine) {
            return Ok(None);
        }
        if !self.options.quick {
            // Without this call, the planner might calibrate during the measurement.
            work.settle(&subject.engine);
        }
        let start = Instant::now();
        let (kernel, _) = work.kernel(&subject.engine, shape);
        let run = work.ours(&subject.engine, inputs, shape)?;
        let setup_seconds = start.elapsed().as_secs_f64();
        let contender = self.verified(&subject.name, run, kernel, work, inputs, shape)?;
        Ok(Some(Contender { setup_seconds, ..contender }))
    }

    /// A contender with its verifier.
    pub(crate) fn verified(
        &self,
        name: &str,
        run: Run,
        kernel: &str,
        work: &Workload,
        inputs: &Inputs,
        shape: Shape,
    ) -> Result<Contender> {
        let verifier = work.ours(&self.verifier(work, kernel)?, inputs, shape)?;
        Ok(Contender { name: Arc::from(name), run, verifier, setup_seconds: 0.0 })
    }

    /// Ends the run. `date` and `command` are printed in the report.
    pub fn into_report(self, sections: Vec<Section>, date: String, command: String) -> Report {
        let energy = match &self.meter {
            Ok(meter) => meter.describe(),
            Err(why) => format!("not measured: {why}"),
        };
        Report {
            date,
            command,
            devices: self.described(),
            openssl: self.options.openssl.iter().map(|openssl| openssl.version.clone()).collect(),
            energy,
            sections,
            cpu_use: self.curve.finish(),
            machine: self.machine,
        }
    }

    /// Names and descriptions of the devices that were used.
    fn described(&self) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = Vec::new();
        for engine in self.engines.borrow().values() {
            for device in engine.devices() {
                let pair = (device.id().to_string(), device.description());
                if !all.iter().any(|(name, _)| *name == pair.0) {
                    all.push(pair);
                }
            }
        }
        all.sort();
        all
    }
}

fn is_of_backend(kernel: &str, device: &str) -> bool {
    let backend = device.split(':').next().unwrap_or_default();
    device == AUTO || kernel.split('/').next() == Some(backend)
}

/// The error for names that match none of these.
pub(crate) fn no_such_work(names: impl Iterator<Item = String>) -> Error {
    failed(format!("no such name to measure: there are {}", names.collect::<Vec<_>>().join(", ")))
}
