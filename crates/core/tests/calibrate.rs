//! Calibration in a time that tests make: what is chosen is what brute force finds, whatever devices state.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use lockstep_core::backend::{Completion, Cost, Device, DeviceId, KernelId, KernelInfo, Unit};
use lockstep_core::cache::Cache;
use lockstep_core::calibrate::{Calibrator, Clock};
use lockstep_core::data::Data;
use lockstep_core::far::Far;
use lockstep_core::planner::{Planner, Selection};
use lockstep_core::timing::Shape;
use lockstep_core::verify::Verify;
use lockstep_core::work::{Operation, Pass, Recipe, Segment, Status, Task, Work};
use lockstep_core::{Error, Key, KeySize, Result};

/// The time that devices say they need: those of one run work side by side.
#[derive(Default)]
struct Virtual(Mutex<BTreeMap<String, f64>>);

impl Virtual {
    fn spend(&self, device: DeviceId, ns: f64) {
        *self.0.lock().unwrap().entry(device.to_string()).or_default() += ns;
    }
}

struct VirtualClock(Arc<Virtual>);

impl Clock for VirtualClock {
    fn time(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
        self.0.0.lock().unwrap().clear();
        work()?;
        Ok(self.0.0.lock().unwrap().values().copied().fold(0.0, f64::max))
    }
}

type Model = fn(Operation, Shape) -> f64;

/// A device that takes as long as a test wants, and states something else. `far` computes.
struct Timed {
    id: DeviceId,
    description: &'static str,
    kernels: [KernelInfo; 1],
    model: Model,
    clock: Arc<Virtual>,
    far: Far,
    /// It computes; else it does long work in thought only, which nobody verifies.
    computes: bool,
    fails: Arc<AtomicBool>,
    submitted: Arc<AtomicUsize>,
}

fn id(backend: &'static str) -> DeviceId {
    DeviceId { backend, unit: Unit::Only }
}

impl Timed {
    fn new(backend: &'static str, kernel: &'static str, model: Model, clock: &Arc<Virtual>) -> Timed {
        let kernels =
            [KernelInfo { name: kernel, description: "takes its time", constant_time: true, missing: None }];
        let (fails, submitted) = Default::default();
        let (description, clock, far) = ("driver 1", Arc::clone(clock), Far::default());
        Timed { id: id(backend), description, kernels, model, clock, far, computes: false, fails, submitted }
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
        self.id.backend == "near"
    }
    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }
    fn cost(&self, _: KernelId, _: Operation, _: KeySize) -> Option<Cost> {
        // The opposite of the truth in most of these tests.
        Some(if self.is_trusted() { Cost::new(1e6, 1.0) } else { Cost::new(1.0, 2.0) })
    }
    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        let operation = work.task.operation();
        let shape = match &work.task {
            Task::Pass(_, segments) => Shape::of(segments.iter().map(|segment| segment.data.len())),
            Task::Recipe(_, messages) => Shape::of(messages.iter().map(|message| message.data.len())),
            Task::Table(..) => unreachable!("no test has one"),
        };
        self.submitted.fetch_add(1, Ordering::Relaxed);
        self.clock.spend(self.id, (self.model)(operation, shape));
        if self.fails.load(Ordering::Relaxed) {
            return Err(Error::DeviceFailed { device: self.id, reason: "told to".into() });
        }
        if self.computes || shape.bytes <= LONGEST_SELF_TEST {
            return self.far.submit(kernel, work);
        }
        if let Task::Recipe(_, messages) = work.task {
            messages.iter_mut().for_each(|message| message.status = Status::Done);
        }
        Ok(Completion::Done)
    }
}

const LONGEST_SELF_TEST: usize = 64 << 10;
const CTR: Operation = Operation::Pass(Pass::Ctr);
const KEY: KeySize = KeySize::Aes128;

/// So many megabytes per second after so many microseconds.
fn line(bytes: usize, fixed_us: f64, mb_per_s: f64) -> f64 {
    fixed_us * 1e3 + bytes as f64 * 1e3 / mb_per_s
}

/// A processor and a device with these models, calibrated for the operation if it pays.
struct Machine {
    planner: Planner,
    clock: Arc<Virtual>,
    fails: Arc<AtomicBool>,
    submitted: Arc<AtomicUsize>,
}

impl Machine {
    fn new(near: Model, far: Model) -> Machine {
        Machine::with(near, far, "driver 1", None, None)
    }

    fn with(
        near: Model,
        far: Model,
        driver: &'static str,
        cache: Option<Cache>,
        only: Option<&str>,
    ) -> Machine {
        Machine::made(near, far, driver, cache, only, false)
    }

    /// One that computes, and whose results are verified.
    fn computing(near: Model, far: Model) -> Machine {
        Machine::made(near, far, "driver 1", None, None, true)
    }

    fn made(
        near: Model,
        far: Model,
        driver: &'static str,
        cache: Option<Cache>,
        only: Option<&str>,
        computes: bool,
    ) -> Machine {
        let clock = Arc::new(Virtual::default());
        let near = Timed { computes, ..Timed::new("near", "near/kernel", near, &clock) };
        let far = Timed { description: driver, computes, ..Timed::new("far", "far/kernel", far, &clock) };
        let (fails, submitted) = (Arc::clone(&far.fails), Arc::clone(&far.submitted));
        let selection = Selection { device: only.map(Into::into), kernel: None };
        let planner = Planner::new(vec![Arc::new(near), Arc::new(far)], &selection).unwrap();
        let calibrator = Calibrator::new(VirtualClock(Arc::clone(&clock)), cache);
        let verify = if computes { Verify::Sample } else { Verify::Off };
        let planner = planner.with_verify(verify).with_calibrator(calibrator);
        Machine { planner, clock, fails, submitted }
    }

    /// Works until the planner has measured, which takes 50 ms of work.
    fn warmed(self, operation: Operation) -> Machine {
        for _ in 0..1000 {
            if self.is_measured(operation) {
                return self;
            }
            let _ = self.planner.plan(operation, KEY, 1 << 20, None).unwrap();
        }
        panic!("nothing was measured");
    }

    fn is_measured(&self, operation: Operation) -> bool {
        let considered = self.planner.consider(operation, KEY, 1 << 20, None);
        considered.iter().filter(|choice| choice.is_measured).count() >= 2
    }

    fn choice(&self, operation: Operation, shape: impl Into<Shape>) -> String {
        self.planner.plan(operation, KEY, shape, None).unwrap().device.id().to_string()
    }
}

/// Nanoseconds of CTR over so many bytes, as the clock has it.
fn ctr(planner: &Planner, clock: &Arc<Virtual>, bytes: usize) -> f64 {
    let key = Key::new(&[1; 16]).unwrap();
    let mut data = vec![0; bytes];
    VirtualClock(Arc::clone(clock))
        .time(&mut || {
            let mut register = [0; 16];
            let data = Data::in_place(&mut data);
            let segment = Segment { key: &key, tweak: None, register: &mut register, data };
            planner.plan(CTR, KEY, bytes, None)?.run(Task::Pass(Pass::Ctr, &mut [segment]))
        })
        .unwrap()
}

/// Lengths by steps of a fifth, from 16 bytes.
fn lengths(to: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(16.0f64), |bytes| Some(bytes * 1.2))
        .map(|bytes| bytes as usize)
        .take_while(move |&b| b <= to)
}

/// Chooses as brute force would, within a tenth, at every length.
fn chooses_well(near: Model, far: Model) -> Vec<(usize, String)> {
    let machine = Machine::new(near, far).warmed(CTR);
    let mut choices: Vec<(usize, String)> = Vec::new();
    for bytes in lengths(8 << 20) {
        let chosen = machine.choice(CTR, bytes);
        let one = |bytes| Shape::from(bytes);
        let (near, far) = (near(CTR, one(bytes)), far(CTR, one(bytes)));
        let taken = match chosen.as_str() {
            "near" => near,
            "far" => far,
            both => {
                assert_eq!(both, "near+far");
                ctr(&machine.planner, &machine.clock, bytes)
            }
        };
        assert!(taken <= 1.1 * near.min(far), "{bytes} bytes by {chosen}: {near} and {far}, taken {taken}");
        if choices.last().is_none_or(|(_, last)| *last != chosen) {
            choices.push((bytes, chosen));
        }
    }
    choices
}

#[test]
fn the_crossover_is_where_brute_force_finds_it() {
    // 0.4 GB/s at once against 4 GB/s after a while: about as fast at 1 MiB.
    let near = |_, shape: Shape| line(shape.bytes, 1.0, 400.0);
    let far = |_, shape: Shape| line(shape.bytes, 2360.0, 4000.0);
    let choices = chooses_well(near, far);
    let [(16, before), (crossover, behind)] = &choices[..] else { panic!("{choices:?}") };
    assert_eq!((before.as_str(), behind.as_str()), ("near", "far"));
    let exact = lengths(8 << 20).find(|&bytes| far(CTR, bytes.into()) < near(CTR, bytes.into())).unwrap();
    let ratio = *crossover as f64 / exact as f64;
    assert!((0.9..=1.1).contains(&ratio), "{crossover} instead of {exact}");
}

#[test]
fn one_that_is_always_better_is_always_taken() {
    let slow = |_, shape: Shape| line(shape.bytes, 30.0, 50.0);
    let fast = |_, shape: Shape| line(shape.bytes, 1.0, 700.0);
    assert_eq!(chooses_well(fast, slow), [(16, "near".to_owned())]);
    assert_eq!(chooses_well(slow, fast), [(16, "far".to_owned())]);
}

#[test]
fn times_need_not_be_lines() {
    // As caches and threads make them: slower beyond 64 KiB, then twice as fast from 1 MiB on.
    let near: Model = |_, shape: Shape| match shape.bytes {
        bytes if bytes <= 65_536 => line(bytes, 0.5, 8000.0),
        bytes if bytes <= 1 << 20 => line(65_536, 0.5, 8000.0) + line(bytes - 65_536, 0.0, 3000.0),
        bytes => {
            line(65_536, 0.5, 8000.0)
                + line((1 << 20) - 65_536, 0.0, 3000.0)
                + line(bytes - (1 << 20), 0.0, 16_000.0)
        }
    };
    let far: Model = |_, shape: Shape| line(shape.bytes, 30.0, 9000.0);
    let choices = chooses_well(near, far);
    assert_eq!(choices.iter().map(|(_, device)| device.as_str()).collect::<Vec<_>>()[..2], ["near", "far"]);
}

#[test]
fn equals_are_as_good_and_the_choice_stays() {
    let same: Model = |_, shape| line(shape.bytes, 5.0, 500.0);
    let machine = Machine::new(same, same).warmed(CTR);
    for bytes in [16, 1 << 12, 1 << 16] {
        let first = machine.choice(CTR, bytes);
        assert!((0..20).all(|_| machine.choice(CTR, bytes) == first));
    }
}

#[test]
fn equals_share_what_is_long() {
    let same: Model = |_, shape| line(shape.bytes, 5.0, 500.0);
    let machine = Machine::new(same, same).warmed(CTR);
    assert_ne!(machine.choice(CTR, 1 << 16), "near+far");
    assert_eq!(machine.choice(CTR, 4 << 20), "near+far");
    let (alone, shared) = (same(CTR, (4 << 20).into()), ctr(&machine.planner, &machine.clock, 4 << 20));
    assert!(shared < 0.6 * alone, "{shared} of {alone}");
    // Nothing that cannot be cut is shared out.
    let serial = Operation::Pass(Pass::CbcEncrypt);
    let machine = machine.warmed(serial);
    assert_ne!(machine.choice(serial, 4 << 20), "near+far");
}

#[test]
fn work_is_not_shared_with_who_is_no_help() {
    let near: Model = |_, shape| line(shape.bytes, 1.0, 500.0);
    let far: Model = |_, shape| line(shape.bytes, 1000.0, 30.0);
    let machine = Machine::new(near, far).warmed(CTR);
    assert_eq!(machine.choice(CTR, 64 << 20), "near");
    assert!(
        machine
            .planner
            .consider(CTR, KEY, 64 << 20, None)
            .iter()
            .all(|choice| choice.kernel != "near+far/kernel")
    );
}

#[test]
fn many_messages_are_another_matter_than_one() {
    // The device has thousands of slow lanes.
    let near: Model = |operation, shape| match operation {
        Operation::Pass(pass) if pass.is_serial() => line(shape.bytes, 1.0, 600.0),
        _ => line(shape.bytes, 1.0, 600.0),
    };
    let far: Model = |operation, shape| match operation {
        Operation::Pass(pass) if pass.is_serial() => {
            line(shape.longest, 20.0, 10.0).max(line(shape.bytes, 20.0, 6000.0))
        }
        _ => line(shape.bytes, 20.0, 6000.0),
    };
    let serial = Operation::Pass(Pass::CbcEncrypt);
    let machine = Machine::new(near, far).warmed(serial);
    let many = |messages: usize, len: usize| Shape { messages, bytes: messages * len, longest: len };
    assert_eq!(machine.choice(serial, many(1, 1 << 20)), "near");
    assert_eq!(machine.choice(serial, many(10_000, 512)), "far");
    assert_eq!(machine.choice(serial, many(100_000, 16)), "far");
    assert_eq!(machine.choice(serial, many(2, 1 << 20)), "near");
}

#[test]
fn each_message_may_cost_something() {
    // A call of the device takes long, a message of the processor's as well.
    let near: Model = |_, shape| line(shape.bytes, 2.0 * shape.messages as f64, 1000.0);
    let far: Model = |_, shape| line(shape.bytes, 100.0, 1000.0);
    let machine = Machine::new(near, far).warmed(CTR);
    let many = |messages: usize, len: usize| Shape { messages, bytes: messages * len, longest: len };
    assert_eq!(machine.choice(CTR, many(1, 32_000)), "near");
    assert_eq!(machine.choice(CTR, many(40, 800)), "near");
    assert_eq!(machine.choice(CTR, many(70, 400)), "far");
}

#[test]
fn recipes_are_measured_as_they_are() {
    let near: Model = |_, shape| line(shape.bytes, 1.0 + 0.5 * shape.messages as f64, 500.0);
    let far: Model = |_, shape| line(shape.bytes, 200.0, 3000.0);
    for recipe in Recipe::ALL {
        let operation = Operation::Recipe(recipe);
        let machine = Machine::new(near, far).warmed(operation);
        let chunks = |messages: usize| Shape { messages, bytes: messages * 16_384, longest: 16_384 };
        assert_eq!(machine.choice(operation, chunks(1)), "near");
        assert_eq!(machine.choice(operation, chunks(4)), "near");
        assert_ne!(machine.choice(operation, chunks(64)), "near");
    }
}

#[test]
fn little_work_is_not_worth_measuring_for() {
    let machine =
        Machine::new(|_, shape| line(shape.bytes, 1.0, 500.0), |_, shape| line(shape.bytes, 9.0, 50.0));
    for _ in 0..10_000 {
        machine.choice(CTR, 4096);
    }
    assert!(!machine.is_measured(CTR));
    // The device states less: it is believed so far.
    assert_eq!(machine.choice(CTR, 4096), "far");
}

#[test]
fn who_fails_is_not_measured_and_its_work_is_done_elsewhere() {
    let near: Model = |_, shape| line(shape.bytes, 1.0, 100.0);
    let far: Model = |_, shape| line(shape.bytes, 1.0, 1000.0);
    let machine = Machine::computing(near, far);
    // It proves itself, and fails from then on.
    assert_eq!(machine.choice(CTR, 1 << 20), "far");
    machine.fails.store(true, Ordering::Relaxed);
    let key = Key::new(&[1; 16]).unwrap();
    let expected =
        lockstep_reference::ctr::apply(&lockstep_reference::Aes::new(&[1; 16]), &[0; 16], &[9; 100_000]);
    for _ in 0..5 {
        let mut data = vec![9; 100_000];
        let mut register = [0; 16];
        let segment =
            Segment { key: &key, tweak: None, register: &mut register, data: Data::in_place(&mut data) };
        let plan = machine.planner.plan(CTR, KEY, 100_000, None).unwrap();
        plan.run(Task::Pass(Pass::Ctr, &mut [segment])).unwrap();
        assert!(data == expected);
    }
    // Three times it was asked, and then no more.
    assert_eq!(machine.planner.incidents().len(), 3);
    assert_eq!(machine.choice(CTR, 1 << 20), "near");
    let considered = machine.planner.consider(CTR, KEY, 1 << 20, None);
    assert!(considered.iter().any(|choice| choice.passed_over.as_deref() == Some("it has failed too often")));
}

#[test]
fn who_fails_while_it_is_measured_is_done_without() {
    let near: Model = |_, shape| line(shape.bytes, 1.0, 100.0);
    let far: Model = |_, shape| line(shape.bytes, 1.0, 1000.0);
    let machine = Machine::computing(near, far);
    assert_eq!(machine.choice(CTR, 16), "far");
    machine.fails.store(true, Ordering::Relaxed);
    for _ in 0..200 {
        machine.choice(CTR, 1 << 20);
    }
    let measured: Vec<_> = machine.planner.consider(CTR, KEY, 1 << 20, None);
    let kernels: Vec<_> =
        measured.iter().filter(|choice| choice.is_measured).map(|choice| choice.kernel).collect();
    assert_eq!(kernels, ["near/kernel"]);
    // By what it states it would be the fastest; what was measured comes first.
    assert_eq!(machine.choice(CTR, 1 << 20), "near");
}

#[test]
fn a_pair_that_fails_midway_is_made_good() {
    let same: Model = |_, shape| line(shape.bytes, 5.0, 500.0);
    let machine = Machine::computing(same, same).warmed(CTR);
    let plan = machine.planner.plan(CTR, KEY, 4 << 20, None).unwrap();
    assert_eq!(plan.kernel_name(), "near+far/kernel");
    machine.fails.store(true, Ordering::Relaxed);
    let (key, mut register, mut data) = (Key::new(&[1; 16]).unwrap(), [0; 16], vec![9; 4 << 20]);
    let segment =
        Segment { key: &key, tweak: None, register: &mut register, data: Data::in_place(&mut data) };
    plan.run(Task::Pass(Pass::Ctr, &mut [segment])).unwrap();
    let aes = lockstep_reference::Aes::new(&[1; 16]);
    assert!(data == lockstep_reference::ctr::apply(&aes, &[0; 16], &vec![9; 4 << 20]));
    assert_eq!(u128::from_be_bytes(register), (4 << 20) / 16);
    assert!(matches!(&machine.planner.incidents()[..], [Error::DeviceFailed { .. }]));
}

/// A cache that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("lockstep-calibrate-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn cache(&self) -> Option<Cache> {
        Some(Cache::at(&self.0))
    }

    fn files(&self) -> Vec<PathBuf> {
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

const NEAR: Model = |_, shape| line(shape.bytes, 1.0, 400.0);
const DEVICE: Model = |_, shape| line(shape.bytes, 2360.0, 4000.0);

#[test]
fn what_was_measured_is_kept_for_the_next_process() {
    let folder = Folder::new("kept");
    let first = Machine::with(NEAR, DEVICE, "driver 1", folder.cache(), None).warmed(CTR);
    assert_eq!(folder.files().len(), 2, "one for each device");
    let next = Machine::with(NEAR, DEVICE, "driver 1", folder.cache(), None);
    assert!(next.is_measured(CTR) && !next.is_measured(Operation::Pass(Pass::EcbEncrypt)));
    for bytes in lengths(8 << 20) {
        assert_eq!(first.choice(CTR, bytes), next.choice(CTR, bytes));
    }
    // Self-tests only: nothing was measured again.
    let after_self_tests = next.submitted.load(Ordering::Relaxed);
    for _ in 0..200 {
        next.choice(CTR, 1 << 20);
    }
    assert_eq!(next.submitted.load(Ordering::Relaxed), after_self_tests);
    // The other operations of the files stay when more is measured.
    let both = next.warmed(Operation::Pass(Pass::EcbEncrypt));
    assert!(both.is_measured(CTR));
    let third = Machine::with(NEAR, DEVICE, "driver 1", folder.cache(), None);
    assert!(third.is_measured(CTR) && third.is_measured(Operation::Pass(Pass::EcbEncrypt)));
}

#[test]
fn what_is_stale_foreign_or_damaged_is_measured_again() {
    let folder = Folder::new("stale");
    Machine::with(NEAR, DEVICE, "driver 1", folder.cache(), None).warmed(CTR);
    // Another driver, as fast as lightning.
    let fast: Model = |_, shape| line(shape.bytes, 0.1, 50_000.0);
    let newer = Machine::with(NEAR, fast, "driver 2", folder.cache(), None);
    assert!(!newer.is_measured(CTR));
    assert_eq!(newer.warmed(CTR).choice(CTR, 1024), "far");
    let older = Machine::with(NEAR, DEVICE, "driver 1", folder.cache(), None);
    assert_eq!(older.choice(CTR, 1024), "near", "each has its own");

    let intact: Vec<_> = folder.files().iter().map(|file| std::fs::read(file).unwrap()).collect();
    type Damage = fn(&[u8]) -> Vec<u8>;
    let damages: [Damage; 6] = [
        |_| Vec::new(),
        |file| file[..file.len() / 2].to_vec(),
        |file| [&file[..60], b"7", &file[60..]].concat(),
        |_| vec![0xff; 10_000],
        |file| file.repeat(2),
        |_| vec![b'x'; 2 << 20],
    ];
    for damage in damages {
        for (file, content) in folder.files().iter().zip(&intact) {
            std::fs::write(file, damage(content)).unwrap();
        }
        let machine = Machine::with(NEAR, DEVICE, "driver 1", folder.cache(), None);
        assert!(!machine.is_measured(CTR));
        assert_eq!(machine.warmed(CTR).choice(CTR, 1024), "near");
        let repaired = Machine::with(NEAR, DEVICE, "driver 1", folder.cache(), None);
        assert!(repaired.is_measured(CTR), "it was written anew");
    }
    // One device's file under another's name.
    let (processor, devices): (Vec<_>, Vec<_>) =
        folder.files().into_iter().partition(|file| file.to_string_lossy().contains("processor-"));
    for file in &devices {
        std::fs::copy(&processor[0], file).unwrap();
    }
    assert!(!Machine::with(NEAR, DEVICE, "driver 1", folder.cache(), None).is_measured(CTR));
}

#[test]
fn a_cache_that_cannot_be_written_to_does_no_harm() {
    let folder = Folder::new("file");
    std::fs::write(&folder.0, b"a file where the folder should be").unwrap();
    let machine = Machine::with(NEAR, DEVICE, "driver 1", folder.cache(), None).warmed(CTR);
    assert_eq!(machine.choice(CTR, 1024), "near");
    assert_eq!(std::fs::read(&folder.0).unwrap(), b"a file where the folder should be");
    std::fs::remove_file(&folder.0).unwrap();
}

#[test]
fn everything_is_measured_on_demand() {
    let folder = Folder::new("all");
    let slow: Model = |_, shape| line(shape.bytes, 3.0, 20.0);
    let machine =
        Machine::with(slow, |_, shape| line(shape.bytes, 9.0, 10.0), "driver 1", folder.cache(), None);
    let mut steps = Vec::new();
    let findings = machine.planner.calibrate(&mut |done, of| steps.push((done, of)));
    assert_eq!(steps.first(), Some(&(0, Operation::COUNT)));
    assert_eq!(steps.last(), Some(&(Operation::COUNT, Operation::COUNT)));
    for device in ["near", "far"] {
        for operation in Operation::all() {
            for key in KeySize::ALL {
                let one = findings.iter().find(|finding| {
                    (finding.device, finding.operation, finding.key) == (id(device), operation, key)
                });
                let timing = &one.unwrap_or_else(|| panic!("no {operation} of {key:?} on {device}")).timing;
                let truth = if device == "near" { 20e6 } else { 10e6 };
                assert!((timing.bytes_per_second() / truth - 1.0).abs() < 0.01, "{operation}: {timing:?}");
            }
        }
    }
    let next = Machine::with(slow, slow, "driver 1", folder.cache(), None);
    assert!(Operation::all().all(|operation| next.is_measured(operation)));
    let calibrator = Calibrator::new(VirtualClock(Arc::default()), folder.cache());
    calibrator.forget().unwrap();
    assert!(folder.files().is_empty());
}

#[test]
fn other_devices_are_looked_for_when_it_is_worth_the_trouble() {
    let clock = Arc::new(Virtual::default());
    let near: Model = |_, shape| line(shape.bytes, 1.0, 500.0);
    let far: Model = |_, shape| line(shape.bytes, 1.0, 5000.0);
    let looked = Arc::new(AtomicUsize::new(0));
    let planner = || {
        let (near, far) =
            (Timed::new("near", "near/kernel", near, &clock), Timed::new("far", "far/kernel", far, &clock));
        let looked = Arc::clone(&looked);
        let look = Box::new(move || {
            looked.fetch_add(1, Ordering::Relaxed);
            vec![Arc::new(far) as Arc<dyn Device>, Arc::new(Far::default())]
        });
        let planner = Planner::looking(vec![Arc::new(near)], look).with_verify(Verify::Off);
        planner.with_calibrator(Calibrator::new(VirtualClock(Arc::clone(&clock)), None))
    };
    let chosen = |planner: &Planner, bytes: usize| {
        planner.plan(CTR, KEY, bytes, None).unwrap().device.id().to_string()
    };
    let first = planner();
    // By its account 2 ms each: two seconds are not over.
    for _ in 0..900 {
        assert_eq!(chosen(&first, 1 << 20), "near");
    }
    // However often, short work does not count.
    for _ in 0..100_000 {
        chosen(&first, 1024);
    }
    assert_eq!((looked.load(Ordering::Relaxed), first.devices_so_far().len()), (0, 1));
    for _ in 0..200 {
        chosen(&first, 1 << 20);
    }
    assert_eq!(chosen(&first, 1 << 20), "far");
    assert_eq!(looked.load(Ordering::Relaxed), 1);
    // Simulated devices are for who names them.
    assert_eq!(first.devices().iter().map(|device| device.id()).collect::<Vec<_>>(), [id("near"), id("far")]);
    // Who asks for all devices gets them.
    let second = planner();
    assert_eq!(second.devices().len(), 2);
    assert_eq!(looked.load(Ordering::Relaxed), 2);
    // What lies on a device that was not looked for yet, too.
    let third = planner();
    assert_eq!(third.plan(CTR, KEY, 16, Some(id("far"))).unwrap().device.id(), id("far"));
    assert_eq!(third.device(id("far")).unwrap().id(), id("far"));
}

/// What lies in one hand is waited for by the next.
#[test]
fn who_comes_while_a_device_is_at_work_goes_elsewhere() {
    let (begun, has_begun) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    /// Works until it is told to go on.
    struct Busy(Timed, Mutex<std::sync::mpsc::Sender<()>>, Mutex<std::sync::mpsc::Receiver<()>>);
    impl Device for Busy {
        fn id(&self) -> DeviceId {
            self.0.id()
        }
        fn description(&self) -> String {
            self.0.description()
        }
        fn kernels(&self) -> &[KernelInfo] {
            self.0.kernels()
        }
        fn cost(&self, _: KernelId, _: Operation, _: KeySize) -> Option<Cost> {
            Some(Cost::new(1000.0, 1.0))
        }
        fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
            if matches!(&work.task, Task::Pass(_, segments) if segments[0].data.len() == 1 << 20) {
                self.1.lock().unwrap().send(()).unwrap();
                self.2.lock().unwrap().recv().unwrap();
            }
            self.0.submit(kernel, work)
        }
    }
    let clock = Arc::new(Virtual::default());
    let busy = Timed::new("far", "far/kernel", DEVICE, &clock);
    let near = Timed::new("near", "near/kernel", NEAR, &clock);
    let devices: Vec<Arc<dyn Device>> =
        vec![Arc::new(near), Arc::new(Busy(busy, Mutex::new(begun), Mutex::new(may_go_on)))];
    let planner = Planner::new(devices, &Selection::default()).unwrap().with_verify(Verify::Off);
    let chosen = || planner.plan(CTR, KEY, 1 << 20, None).unwrap().device.id();
    // As they state: 2 ms by the processor, and half of it by the device.
    assert_eq!(chosen(), id("far"));
    std::thread::scope(|scope| {
        scope.spawn(|| ctr(&planner, &clock, 1 << 20));
        has_begun.recv().unwrap();
        let meanwhile = chosen();
        go_on.send(()).unwrap();
        assert_eq!(meanwhile, id("near"));
    });
    assert_eq!(chosen(), id("far"));
}

/// Nobody waits for who looks or measures, and all come to the same.
#[test]
fn many_threads_plan_at_once() {
    let same: Model = |_, shape| line(shape.bytes, 5.0, 500.0);
    let clock = Arc::new(Virtual::default());
    let (near, far) =
        (Timed::new("near", "near/kernel", same, &clock), Timed::new("far", "far/kernel", DEVICE, &clock));
    let look = Box::new(move || vec![Arc::new(far) as Arc<dyn Device>]);
    let planner = Planner::looking(vec![Arc::new(near)], look).with_verify(Verify::Off);
    let planner = planner.with_calibrator(Calibrator::new(VirtualClock(Arc::clone(&clock)), None));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let planner = &planner;
            scope.spawn(move || {
                let operation = if thread % 2 == 0 { CTR } else { Operation::Pass(Pass::XtsEncrypt) };
                // Others may look or measure meanwhile, so nobody knows how often.
                for _ in 0..60_000 {
                    for _ in 0..100 {
                        let _ = planner.plan(operation, KEY, 1 << 20, None).unwrap();
                    }
                    let considered = planner.consider(operation, KEY, 1 << 20, None);
                    if considered.iter().filter(|choice| choice.is_measured).count() >= 2 {
                        return;
                    }
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                panic!("nothing was measured");
            });
        }
    });
}

/// With more threads come in as messages grow, the line between two lengths is flat; beyond it is not.
#[test]
fn a_flat_line_does_not_go_on_for_ever() {
    // 64 threads, of which each takes 1 MiB at least.
    let near: Model = |_, shape| line(shape.bytes / (shape.bytes >> 20).clamp(1, 64), 1.0, 8000.0);
    let far: Model = |_, shape| line(shape.bytes, 30.0, 50_000.0);
    let machine = Machine::new(near, far).warmed(CTR);
    let considered = machine.planner.consider(CTR, KEY, 256 << 20, None);
    let found = considered.iter().find(|choice| choice.kernel == "near/kernel").unwrap().ns;
    let truth = near(CTR, (256 << 20).into());
    // Better than off by a factor: it is measured up to 64 MiB.
    assert!(found > 0.3 * truth && found < 1.1 * truth, "{found} for {truth}");
}

/// A pair is measured anew when one of the two has changed.
#[test]
fn what_is_kept_of_a_pair_depends_on_both() {
    let folder = Folder::new("pair");
    let same: Model = |_, shape| line(shape.bytes, 5.0, 500.0);
    let first = Machine::with(same, same, "driver 1", folder.cache(), None).warmed(CTR);
    assert_eq!(first.choice(CTR, 4 << 20), "near+far");
    assert_eq!(folder.files().len(), 3);
    let next = Machine::with(same, same, "driver 1", folder.cache(), None);
    assert_eq!(next.choice(CTR, 4 << 20), "near+far");
    let newer = Machine::with(same, same, "driver 2", folder.cache(), None).warmed(CTR);
    assert_eq!(newer.choice(CTR, 4 << 20), "near+far");
    assert_eq!(folder.files().len(), 5, "the processor's is the same");
    // Of a pair whose file is lost nothing is known, and so it is measured again.
    for file in
        folder.files().iter().filter(|file| std::fs::read_to_string(file).unwrap().contains("near+far"))
    {
        std::fs::remove_file(file).unwrap();
    }
    let again = Machine::with(same, same, "driver 1", folder.cache(), None);
    assert!(!again.is_measured(CTR));
    assert_eq!(again.warmed(CTR).choice(CTR, 4 << 20), "near+far");
}

#[test]
fn decisions_follow_what_is_found_out() {
    let machine = Machine::new(NEAR, DEVICE);
    let planner = machine.planner.with_decisions();
    for _ in 0..1000 {
        let _ = planner.plan(CTR, KEY, 1 << 18, None).unwrap();
    }
    // First by what the devices state, and then by what was measured.
    let told: Vec<_> = planner
        .decisions()
        .into_iter()
        .map(|decision| {
            let chosen = decision.considered.iter().find(|choice| choice.is_chosen).unwrap();
            (chosen.kernel, chosen.is_measured, decision.calls > 1)
        })
        .collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told.contains(&("far/kernel", false, true)) && told.contains(&("near/kernel", true, true)),
        "{told:?}"
    );
}

#[test]
fn decisions_are_remembered_if_somebody_asks() {
    let clock = Arc::new(Virtual::default());
    let near = Timed::new("near", "near/kernel", NEAR, &clock);
    let far = Timed::new("far", "far/kernel", DEVICE, &clock);
    let planner = Planner::new(vec![Arc::new(near), Arc::new(far)], &Selection::default()).unwrap();
    assert!(planner.decisions().is_empty());
    let planner = planner.with_decisions();
    for bytes in [1000, 1020, 50, 1000] {
        let _ = planner.plan(CTR, KEY, bytes, None).unwrap();
    }
    let decisions = planner.decisions();
    let told: Vec<_> = decisions.iter().map(|d| (d.shape.bytes, d.calls, d.bytes)).collect();
    assert_eq!(told, [(50, 1, 50), (1000, 3, 3020)]);
    let [cheapest, other] = &decisions[0].considered[..] else { panic!("{decisions:?}") };
    assert!(cheapest.is_chosen && cheapest.kernel == "far/kernel" && !cheapest.is_measured);
    assert!(!other.is_chosen && other.ns > cheapest.ns);
}

/// A processor with two kernels.
struct Two {
    timed: Timed,
    kernels: [KernelInfo; 2],
    /// The gigabytes per second that each states.
    stated: [f64; 2],
    /// How much of the time of the first the second takes.
    second: f64,
}

impl Two {
    fn new(stated: [f64; 2], second: f64, clock: &Arc<Virtual>) -> Two {
        let timed = Timed::new("near", "near/first", NEAR, clock);
        let kernels =
            ["near/first", "near/second"].map(|name| KernelInfo { name, ..timed.kernels[0].clone() });
        Two { timed, kernels, stated, second }
    }
}

impl Device for Two {
    fn id(&self) -> DeviceId {
        self.timed.id()
    }
    fn description(&self) -> String {
        self.timed.description()
    }
    fn is_trusted(&self) -> bool {
        true
    }
    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }
    fn cost(&self, kernel: KernelId, _: Operation, _: KeySize) -> Option<Cost> {
        Some(Cost::new(1.0, self.stated[usize::from(kernel.0)]))
    }
    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        let completion = self.timed.submit(KernelId(0), work)?;
        if kernel.0 == 1 {
            self.timed.clock.0.lock().unwrap().values_mut().for_each(|ns| *ns *= self.second);
        }
        Ok(completion)
    }
}

#[test]
fn of_one_device_a_kernel_must_be_clearly_better() {
    let clock = Arc::new(Virtual::default());
    let make = |second: f64| {
        let two = Two::new([1.1, 1.0], second, &clock);
        let far = Timed::new("far", "far/kernel", DEVICE, &clock);
        let devices: Vec<Arc<dyn Device>> = vec![Arc::new(two), Arc::new(far)];
        let planner = Planner::new(devices, &Selection::default()).unwrap().with_verify(Verify::Off);
        let planner = planner.with_calibrator(Calibrator::new(VirtualClock(Arc::clone(&clock)), None));
        for _ in 0..500 {
            let _ = planner.plan(CTR, KEY, 1 << 18, None).unwrap();
        }
        planner.plan(CTR, KEY, 1 << 14, None).unwrap().kernel_name()
    };
    assert_eq!(make(0.95), "near/first");
    assert_eq!(make(0.8), "near/second");
    assert_eq!(make(1.3), "near/first");
}

/// Of two kernels that state the same, the second is taken for the first's equal.
#[test]
fn equal_kernels_of_a_device_are_measured_once() {
    let clock = Arc::new(Virtual::default());
    let two = Two::new([1.0, 0.99], 1.0, &clock);
    let planner = Planner::new(vec![Arc::new(two)], &Selection::default()).unwrap();
    let planner = planner.with_calibrator(Calibrator::new(VirtualClock(clock), None));
    let findings = planner.calibrate(&mut |_, _| ());
    assert!(findings.iter().all(|finding| finding.kernel == "near/first"));
    assert_eq!(findings.len(), Operation::COUNT * KeySize::ALL.len());
}
