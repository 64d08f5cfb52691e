//! Devices whose work takes a time that the test sets, and a virtual clock that shows this time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use lockstep_cache::Cache;
use lockstep_core::backend::{Completion, Cost, Device, DeviceId, KernelId, KernelInfo, Unit};
use lockstep_core::data::Data;
use lockstep_core::work::{Operation, Pass, Segment, Status, Task, Work};
use lockstep_core::{Error, Key, KeySize, Result};
use lockstep_planner::calibrate::{Calibrator, Clock};
use lockstep_planner::timing::Shape;
use lockstep_planner::verify::Verify;
use lockstep_planner::{Planner, Selection};
use lockstep_testkit::mock::{MockAsyncDevice, offers};

/// The time of each device; devices work in parallel.
#[derive(Default)]
pub(crate) struct Virtual(pub(crate) Mutex<BTreeMap<String, f64>>);

impl Virtual {
    pub(crate) fn spend(&self, device: DeviceId, ns: f64) {
        *self.0.lock().unwrap().entry(device.to_string()).or_default() += ns;
    }
}

pub(crate) struct VirtualClock(pub(crate) Arc<Virtual>);

impl Clock for VirtualClock {
    fn time(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
        self.0.0.lock().unwrap().clear();
        work()?;
        Ok(self.0.0.lock().unwrap().values().copied().fold(0.0, f64::max))
    }
}

pub(crate) type Model = fn(Operation, Shape) -> f64;

/// A device whose work takes the time of a model, and whose stated cost differs from this time.
pub(crate) struct Timed {
    pub(crate) id: DeviceId,
    pub(crate) description: &'static str,
    pub(crate) kernels: [KernelInfo; 1],
    pub(crate) model: Model,
    pub(crate) clock: Arc<Virtual>,
    /// The device that computes the results.
    pub(crate) oracle: MockAsyncDevice,
    /// True if the device computes all results. Otherwise it computes only self-tests, and returns from other work without a
    /// result.
    pub(crate) computes: bool,
    pub(crate) fails: Arc<AtomicBool>,
    pub(crate) submitted: Arc<AtomicUsize>,
}

pub(crate) fn id(backend: &'static str) -> DeviceId {
    DeviceId { backend, unit: Unit::Only }
}

impl Timed {
    pub(crate) fn new(
        backend: &'static str,
        kernel: &'static str,
        model: Model,
        clock: &Arc<Virtual>,
    ) -> Timed {
        let kernels = [KernelInfo {
            name: kernel,
            description: "takes the time of a model",
            constant_time: true,
            missing: None,
        }];
        let (fails, submitted) = Default::default();
        let (description, clock, oracle) = ("driver 1", Arc::clone(clock), MockAsyncDevice::default());
        Timed {
            id: id(backend),
            description,
            kernels,
            model,
            clock,
            oracle,
            computes: false,
            fails,
            submitted,
        }
    }
}

impl Device for Timed {
    fn id(&self) -> DeviceId {
        self.id
    }
    fn description(&self) -> String {
        self.description.into()
    }
    fn is_trusted(&self) -> bool {
        self.id.backend == "mock-cpu"
    }
    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }
    fn cost(&self, _: KernelId, operation: Operation, key: KeySize) -> Option<Cost> {
        // In most of these tests, the stated costs contradict the times of the model.
        let cost = if self.is_trusted() { Cost::new(1e6, 1.0) } else { Cost::new(1.0, 2.0) };
        offers(operation, key).then_some(cost)
    }
    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        let operation = work.task.operation();
        let shape = match &work.task {
            Task::Pass(_, segments) => Shape::of(segments.iter().map(|segment| segment.data.len())),
            Task::Fused(_, messages) => Shape::of(messages.iter().map(|message| message.data.len())),
        };
        self.submitted.fetch_add(1, Ordering::Relaxed);
        self.clock.spend(self.id, (self.model)(operation, shape));
        if self.fails.load(Ordering::Relaxed) {
            return Err(Error::DeviceFailed { device: self.id, reason: "told to".into() });
        }
        // The lengths that calibration measures are powers of two. The lengths of the self-tests are not.
        if self.computes || !shape.bytes.is_power_of_two() {
            return self.oracle.submit(kernel, work);
        }
        if let Task::Fused(_, messages) = work.task {
            messages.iter_mut().for_each(|message| message.status = Status::Done);
        }
        Ok(Completion::Done)
    }
}

pub(crate) const CTR: Operation = Operation::Pass(Pass::Ctr);
pub(crate) const KEY: KeySize = KeySize::Aes128;

/// The nanoseconds of a call that takes `fixed_us` microseconds, and in addition the time for `bytes` bytes at the given rate.
pub(crate) fn line(bytes: usize, fixed_us: f64, mb_per_s: f64) -> f64 {
    fixed_us * 1e3 + bytes as f64 * 1e3 / mb_per_s
}

/// A CPU and a GPU with these models, and their planner, which calibrates automatically.
pub(crate) struct Machine {
    pub(crate) planner: Planner,
    pub(crate) fails: Arc<AtomicBool>,
    pub(crate) submitted: Arc<AtomicUsize>,
}

impl Machine {
    pub(crate) fn new(cpu: Model, gpu: Model) -> Machine {
        Machine::with(cpu, gpu, "driver 1", None, None)
    }

    pub(crate) fn with(
        cpu: Model,
        gpu: Model,
        driver: &'static str,
        cache: Option<Cache>,
        only: Option<&str>,
    ) -> Machine {
        Machine::made(cpu, gpu, driver, cache, only, false)
    }

    /// A machine with devices that compute, and whose results are verified.
    pub(crate) fn computing(cpu: Model, gpu: Model) -> Machine {
        Machine::made(cpu, gpu, "driver 1", None, None, true)
    }

    pub(crate) fn made(
        cpu: Model,
        gpu: Model,
        driver: &'static str,
        cache: Option<Cache>,
        only: Option<&str>,
        computes: bool,
    ) -> Machine {
        let clock = Arc::new(Virtual::default());
        let cpu = Timed { computes, ..Timed::new("mock-cpu", "mock-cpu/kernel", cpu, &clock) };
        let gpu = Timed { description: driver, computes, ..Timed::new("mock", "mock/kernel", gpu, &clock) };
        let (fails, submitted) = (Arc::clone(&gpu.fails), Arc::clone(&gpu.submitted));
        let selection = Selection { device: only.map(Into::into), kernel: None };
        let planner = Planner::new(vec![Arc::new(cpu), Arc::new(gpu)], &selection).unwrap();
        let calibrator = Calibrator::new(VirtualClock(Arc::clone(&clock)), cache);
        let verify = if computes { Verify::Sample } else { Verify::Off };
        let planner = planner.with_verify(verify).with_calibrator(calibrator).calibrate_automatically(true);
        Machine { planner, fails, submitted }
    }

    /// Plans work until the planner has measured the operation. It measures after 50 ms of work.
    pub(crate) fn warmed(self, operation: Operation) -> Machine {
        for _ in 0..1000 {
            if self.is_measured(operation) {
                return self;
            }
            let _ = self.planner.plan(operation, KEY, 1 << 20, None).unwrap();
        }
        panic!("nothing was measured");
    }

    pub(crate) fn is_measured(&self, operation: Operation) -> bool {
        let considered = self.planner.consider(operation, KEY, 1 << 20, None);
        considered.iter().filter(|choice| choice.is_measured).count() >= 2
    }

    pub(crate) fn choice(&self, operation: Operation, shape: impl Into<Shape>) -> String {
        self.planner.plan(operation, KEY, shape, None).unwrap().device.id().to_string()
    }
}

/// Nanoseconds of CTR over this number of bytes, by the virtual clock.
pub(crate) fn ctr(planner: &Planner, clock: &Arc<Virtual>, bytes: usize) -> f64 {
    let key = Key::new(&[1; 16]).unwrap();
    let mut data = vec![0; bytes];
    VirtualClock(Arc::clone(clock))
        .time(&mut || {
            let mut state = [0; 16];
            let data = Data::in_place(&mut data);
            let segment = Segment { key: &key, tweak: None, state: &mut state, data };
            planner.plan(CTR, KEY, bytes, None)?.run(Task::Pass(Pass::Ctr, &mut [segment]))
        })
        .unwrap()
}

/// Lengths from 16 bytes up to `to`. Each is a fifth longer than the previous one.
pub(crate) fn lengths(to: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(16.0f64), |bytes| Some(bytes * 1.2))
        .map(|bytes| bytes as usize)
        .take_while(move |&b| b <= to)
}

/// A cache directory that is removed after the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("lockstep-calibrate-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    pub(crate) fn cache(&self) -> Option<Cache> {
        Some(Cache::at(&self.0))
    }

    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut all: Vec<_> =
            std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect();
        all.sort();
        all
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) const CPU: Model = |_, shape| line(shape.bytes, 1.0, 400.0);
pub(crate) const GPU: Model = |_, shape| line(shape.bytes, 2360.0, 4000.0);
