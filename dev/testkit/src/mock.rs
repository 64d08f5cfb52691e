//! A device for tests with all properties in which GPUs differ from the CPU.
//!
//! The device has memory of its own, which host pointers cannot reach. Work takes a configurable time (a delay and a rate),
//! completes later on a thread of the device, and fails on demand. The oracle computes the results. The whole shared suite
//! runs on this device, so shared code that assumes data in host memory fails the tests.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

mod cpu;
mod memory;
mod oracle;
pub use cpu::MockCpu;
pub(crate) use oracle::{fused as oracle_fused, pass as oracle_pass};
mod table;

use lockstep_core::backend::{
    Backend, Completion, Cost, Device, DeviceId, DeviceMemory, DeviceProperties, Discovery, KernelId,
    KernelInfo, Pending, Unit,
};
use lockstep_core::data::{Data, HostData};
use lockstep_core::error::{Error, Result};
use lockstep_core::key::{Block, KeySize};
use lockstep_core::work::{
    AeadMessage, FusedAead, Operation, Pass, Segment, Status, Stream, Table, Tag, Task, Work,
};

use memory::Memory;

/// The behaviour of a [`MockAsyncDevice`]: its speed, its failures and its operations.
#[derive(Debug, Clone)]
pub struct Behaviour {
    /// The time that each call takes, in addition to the time for its bytes.
    pub delay: Duration,
    /// Bytes per second; 0 for no limit.
    pub bytes_per_second: u64,
    /// The number of the submission that fails, counted from 0 (self-tests included).
    pub fail_at: Option<u64>,
    /// The number of the submission whose result has a wrong byte, as if the device were broken.
    pub corrupt_at: Option<u64>,
    /// True if the wrong byte is the last one, false if it is the first one.
    pub corrupt_last_byte: bool,
    /// True if the device offers GCM as a fused AEAD; otherwise GCM is composed of passes.
    pub fused: bool,
    /// True if the device offers OCB3 as a fused AEAD.
    pub ocb: bool,
    /// True if the device offers GCM-SIV as a fused AEAD. The results of such a device cannot be verified yet.
    pub gcm_siv: bool,
}

/// True if a device with the default [`Behaviour`] offers the operation.
pub fn offers(operation: Operation, key: KeySize) -> bool {
    let is_gcm = |fused| matches!(fused, FusedAead::GcmSeal | FusedAead::GcmOpen);
    operation.takes_key(key) && !matches!(operation, Operation::Fused(fused) if !is_gcm(fused))
}

impl Default for Behaviour {
    fn default() -> Self {
        Behaviour {
            delay: Duration::ZERO,
            bytes_per_second: 0,
            fail_at: None,
            corrupt_at: None,
            corrupt_last_byte: false,
            fused: true,
            ocb: false,
            gcm_siv: false,
        }
    }
}

/// A device for tests. It behaves as its [`Behaviour`] states.
pub struct MockAsyncDevice {
    behaviour: Behaviour,
    kernels: [KernelInfo; 1],
    memory: Arc<Memory>,
    queue: Arc<Mutex<Sender<Job>>>,
    submitted: Mutex<u64>,
}

type Job = Box<dyn FnOnce() + Send>;

/// The id of every [`MockAsyncDevice`] in error messages and in the selection of devices.
pub const MOCK_DEVICE: DeviceId = DeviceId { backend: "mock", unit: Unit::Number(0) };

impl Default for MockAsyncDevice {
    fn default() -> Self {
        MockAsyncDevice::new(Behaviour::default())
    }
}

impl MockAsyncDevice {
    /// A device with this behaviour.
    pub fn new(behaviour: Behaviour) -> Self {
        let (queue, jobs) = channel::<Job>();
        // The thread runs jobs in the order of the queue, as in a stream of a GPU. It ends when the device is dropped.
        thread::spawn(move || jobs.into_iter().for_each(|job| job()));
        let queue = Arc::new(Mutex::new(queue));
        let kernels = [KernelInfo {
            name: "mock/oracle",
            description: "the oracle behind a distance, for tests",
            constant_time: true,
            missing: None,
        }];
        MockAsyncDevice {
            behaviour,
            kernels,
            memory: Arc::new(Memory::new(&queue)),
            queue,
            submitted: Mutex::new(0),
        }
    }

    /// The number of submissions so far, self-tests included.
    pub fn submitted(&self) -> u64 {
        *lock(&self.submitted)
    }

    /// Runs `job` on the device's thread after the time that `bytes` bytes take.
    fn later<T: Send + 'static>(
        &self,
        bytes: usize,
        job: impl FnOnce(Fate) -> Result<T> + Send + 'static,
    ) -> Receiver<Result<T>> {
        let number = {
            let mut submitted = lock(&self.submitted);
            *submitted += 1;
            *submitted - 1
        };
        let behaviour = self.behaviour.clone();
        let (done, result) = channel();
        let job = Box::new(move || {
            let mut time = behaviour.delay;
            if behaviour.bytes_per_second > 0 {
                time += Duration::from_secs_f64(bytes as f64 / behaviour.bytes_per_second as f64);
            }
            thread::sleep(time);
            let fate = Fate {
                corrupt: behaviour.corrupt_at == Some(number),
                last_byte: behaviour.corrupt_last_byte,
            };
            let outcome = if behaviour.fail_at == Some(number) { Err(failed("told to")) } else { job(fate) };
            // If the completion was dropped there is no receiver: the results are lost, as the contract specifies.
            let _ = done.send(outcome);
        });
        lock(&self.queue).send(job).expect("the device's thread lives as long as the device");
        result
    }
}

/// States whether the results of a job are corrupted.
#[derive(Clone, Copy)]
struct Fate {
    corrupt: bool,
    /// True if the last byte is corrupted, false if the first byte is.
    last_byte: bool,
}

impl Fate {
    fn befall<T: AsMut<[u8]>>(self, outputs: &mut [T]) {
        if self.corrupt
            && let Some(output) = outputs.iter_mut().map(T::as_mut).find(|output| !output.is_empty())
            && let Some(byte) = if self.last_byte { output.last_mut() } else { output.first_mut() }
        {
            *byte ^= 0x40;
        }
    }
}

fn failed(reason: &str) -> Error {
    Error::DeviceFailed { device: MOCK_DEVICE, reason: reason.into() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A backend whose only device is a [`MockAsyncDevice`] with this behaviour.
pub struct MockBackend(pub Behaviour);

impl Backend for MockBackend {
    fn name(&self) -> &'static str {
        "mock"
    }

    fn discover(&self) -> Discovery {
        Discovery { devices: vec![Arc::new(MockAsyncDevice::new(self.0.clone()))], missing: None }
    }
}

impl Device for MockAsyncDevice {
    fn id(&self) -> DeviceId {
        MOCK_DEVICE
    }

    fn description(&self) -> String {
        "the oracle behind a distance".into()
    }

    fn properties(&self) -> DeviceProperties {
        DeviceProperties::SOFTWARE
    }

    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }

    fn cost(&self, kernel: KernelId, operation: Operation, key: KeySize) -> Option<Cost> {
        let rate =
            if self.behaviour.bytes_per_second == 0 { 1e8 } else { self.behaviour.bytes_per_second as f64 };
        let fixed = self.behaviour.delay.as_nanos() as f64 + 10_000.0;
        let offered = match operation {
            Operation::Pass(pass) => pass.takes_key(key),
            Operation::Fused(fused) => match fused.sealing() {
                FusedAead::OcbSeal => self.behaviour.ocb,
                FusedAead::GcmSivSeal => self.behaviour.gcm_siv,
                _ => self.behaviour.fused,
            },
        };
        (kernel.0 == 0 && offered).then(|| Cost::new(fixed, rate / 1e9))
    }

    fn memory(&self) -> Option<&dyn DeviceMemory> {
        Some(&*self.memory)
    }

    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        let operation = work.task.operation();
        if self.cost(kernel, operation, KeySize::Aes128).is_none() {
            return Err(operation.unsupported_by("mock/oracle"));
        }
        match work.task {
            Task::Pass(pass, segments) => self.submit_pass(pass, segments),
            Task::Fused(fused, messages) => self.submit_fused(fused, messages),
        }
    }

    fn submit_table(
        &self,
        kernel: KernelId,
        _: Stream,
        operation: Operation,
        table: &Table,
    ) -> Result<Completion<'static>> {
        if self.cost(kernel, operation, KeySize::Aes128).is_none() {
            return Err(operation.unsupported_by("mock/oracle"));
        }
        let (memory, table) = (Arc::clone(&self.memory), table.clone());
        let bytes = table.longest * table.messages;
        let outcome = self.later(bytes, move |_| table::run(&memory, operation, &table));
        Ok(pending(outcome, |()| Ok(())))
    }
}

impl MockAsyncDevice {
    fn submit_pass<'w, 'd>(&self, pass: Pass, segments: &'w mut [Segment<'d>]) -> Result<Completion<'w>> {
        let mut jobs = Vec::new();
        for segment in &*segments {
            let tweak = segment.tweak.map(|tweak| (tweak.key.bytes().to_vec(), tweak.position));
            let place = Place::of(&segment.data);
            let input = self.memory.read_in(&segment.data)?;
            jobs.push((segment.key.bytes().to_vec(), tweak, *segment.state, input, place));
        }
        let bytes = jobs.iter().map(|job| job.3.len()).sum();
        let memory = Arc::clone(&self.memory);
        let outcome = self.later(bytes, move |fate| {
            let mut states = Vec::new();
            let mut outputs = Vec::new();
            let mut places = Vec::new();
            for (key, tweak, mut state, input, place) in jobs {
                let input = place.load(&memory, input)?;
                let tweak = tweak.as_ref().map(|(key, position)| (key.as_slice(), *position));
                outputs.push(oracle::pass(pass, &key, tweak, &mut state, &input));
                states.push(state);
                places.push(place);
            }
            if pass.is_read_only() {
                fate.befall(&mut states);
            } else {
                fate.befall(&mut outputs);
                for (place, output) in places.iter().zip(&outputs) {
                    place.store(&memory, output)?;
                }
            }
            Ok((states, outputs))
        });
        Ok(pending(outcome, move |(states, outputs): (Vec<Block>, Vec<Vec<u8>>)| {
            for ((segment, state), output) in segments.iter_mut().zip(states).zip(outputs) {
                *segment.state = state;
                if let Data::Host(data) = &mut segment.data
                    && !pass.is_read_only()
                {
                    data.output().copy_from_slice(&output);
                }
            }
            Ok(())
        }))
    }

    fn submit_fused<'w, 'd>(
        &self,
        fused: FusedAead,
        messages: &'w mut [AeadMessage<'d>],
    ) -> Result<Completion<'w>> {
        let mut jobs = Vec::new();
        for message in &*messages {
            let tag = match &message.tag {
                Tag::Write(tag) => vec![0; tag.len()],
                Tag::Expect(tag) => tag.to_vec(),
            };
            let place = Place::of(&message.data);
            let input = self.memory.read_in(&message.data)?;
            let key = message.key.bytes().to_vec();
            jobs.push((key, message.nonce.to_vec(), message.aad.to_vec(), tag, input, place));
        }
        let bytes = jobs.iter().map(|job| job.4.len()).sum();
        let memory = Arc::clone(&self.memory);
        let outcome = self.later(bytes, move |fate| {
            let mut results = Vec::new();
            let mut outputs = Vec::new();
            for (key, nonce, aad, tag, input, place) in jobs {
                let input = place.load(&memory, input)?;
                let (output, tag, status) = oracle::fused(fused, &key, &nonce, &aad, &tag, &input);
                outputs.push(output);
                results.push((tag, status, place));
            }
            fate.befall(&mut outputs);
            for ((_, _, place), output) in results.iter().zip(&outputs) {
                place.store(&memory, output)?;
            }
            Ok((results, outputs))
        });
        Ok(pending(outcome, move |(results, outputs): (Vec<Verdict>, Vec<Vec<u8>>)| {
            for ((message, (tag, status, _)), output) in messages.iter_mut().zip(results).zip(outputs) {
                message.status = status;
                if let Data::Host(data) = &mut message.data {
                    data.output().copy_from_slice(&output);
                }
                if let Tag::Write(place) = &mut message.tag {
                    place.copy_from_slice(&tag[..place.len()]);
                }
            }
            Ok(())
        }))
    }
}

/// The result of a message: its tag, its status, and the place of its data.
type Verdict = (Block, Status, Place);

/// The location of a job's data. Borrowed host memory has no variant here, because the job contains a copy of such data.
enum Place {
    Host,
    Pinned(lockstep_core::data::PinnedSlice, lockstep_core::data::PinnedSlice),
    Device(lockstep_core::data::DeviceSlice, lockstep_core::data::DeviceSlice),
}

impl Place {
    fn of(data: &Data<'_>) -> Place {
        match data {
            Data::Host(_) => Place::Host,
            Data::Pinned { from, to, .. } => Place::Pinned(from.clone(), to.clone()),
            Data::Device { from, to, .. } => Place::Device(from.clone(), to.clone()),
        }
    }

    fn load(&self, memory: &Memory, host: Vec<u8>) -> Result<Vec<u8>> {
        match self {
            Place::Host => Ok(host),
            Place::Pinned(from, _) => Ok(from.buffer().lock()[from.range()].to_vec()),
            Place::Device(from, _) => memory.read(from),
        }
    }

    fn store(&self, memory: &Memory, output: &[u8]) -> Result<()> {
        match self {
            Place::Host => {}
            Place::Pinned(_, to) => to.buffer().lock()[to.range()].copy_from_slice(output),
            Place::Device(_, to) => memory.write(to, output)?,
        }
        Ok(())
    }
}

/// A completion whose `wait` passes the results of the job to `deliver`.
fn pending<'w, T: 'w>(
    outcome: Receiver<Result<T>>,
    deliver: impl FnOnce(T) -> Result<()> + 'w,
) -> Completion<'w> {
    Completion::Pending(Box::new(FarPending { outcome, early: Mutex::new(None), deliver }))
}

struct FarPending<T, D> {
    outcome: Receiver<Result<T>>,
    /// The result, if `is_ready` has received it.
    early: Mutex<Option<Result<T>>>,
    deliver: D,
}

impl<T, D: FnOnce(T) -> Result<()>> Pending for FarPending<T, D> {
    fn is_ready(&self) -> bool {
        let mut early = lock(&self.early);
        if early.is_none() {
            *early = self.outcome.try_recv().ok();
        }
        early.is_some()
    }

    fn wait(self: Box<Self>) -> Result<()> {
        let early = lock(&self.early).take();
        let outcome = match early {
            Some(outcome) => outcome,
            None => self.outcome.recv().map_err(|_| failed("its thread is gone"))?,
        };
        (self.deliver)(outcome?)
    }
}
