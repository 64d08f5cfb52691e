//! Measures the time of one operation with one kernel.

use std::sync::atomic::Ordering;

use super::Clock;
use crate::candidates::DeviceEntry;
use crate::timing::{Point, Shape, Timing};
use lockstep_core::backend::DeviceBuffer;
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Pass, Segment, Status, Tag, Task, Tweak};
use lockstep_core::{Block, Error, Key, KeySize, Result};

/// The memory that holds the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Host memory.
    Host,
    /// The device's memory.
    Device,
}

impl Place {
    /// All kinds of memory.
    pub(crate) const ALL: [Place; 2] = [Place::Host, Place::Device];

    /// The name of the kind of memory in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Place::Host => "host",
            Place::Device => "device",
        }
    }
}

/// Lengths of a single message in bytes. The time of the shortest message shows the cost of a call. The second length is
/// a page. Devices reach their full speed at the longest length. In docs/measured/2026-11-22-zen4-2vcpu-calibrate.md,
/// the rate rises by less than 7 % beyond 16 MiB.
const LENGTHS: [usize; 5] = [64, 4 << 10, 64 << 10, 1 << 20, 16 << 20];

/// Maximum time of a run in nanoseconds. A run is omitted if its time, estimated from shorter runs, exceeds this. The
/// value is the time of 16 MiB at 2.8 GB/s. With this value, and with two to nine runs of each shape, the calibration
/// of a processor took 1.0 s (docs/measured/2026-11-22-zen4-2vcpu-calibrate.md).
const MAX_RUN_NS: f64 = 6e6;

/// Runs of one shape are repeated until their total time reaches this value, but at least twice and at most nine times. The
/// shortest run counts, because disturbances only make runs longer.
const ENOUGH_NS: f64 = 2.5e5;
const MIN_RUNS: usize = 2;
const MAX_RUNS: usize = 9;

/// A batch of short messages. Its time shows the cost of a message. The two numbers are the number of messages and the
/// bytes of each message.
const SHORT: [usize; 2] = [1024, 64];

/// For serial passes: the numbers of messages in the two batches, and the bytes of each message. The larger number
/// represents the thousands of messages for which a GPU is chosen (docs/planner.md). The smaller number is for devices on
/// which the larger batch would take too long.
const LANES: [usize; 2] = [8192, 512];
const LANE: usize = 512;

/// For fused AEADs: the numbers of messages in a batch, and the bytes of each message. Such a batch corresponds to a file
/// that is encrypted in chunks. Only the first batch whose estimated time is below [`MAX_RUN_NS`] is measured.
const CHUNKS: [usize; 3] = [1024, 256, 64];
const CHUNK: usize = 16 << 10;

/// The shortest times of an operation, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Samples {
    /// Single messages, by length.
    single: Vec<(Shape, f64)>,
    /// Batches of messages, sorted by total bytes.
    batches: Vec<(Shape, f64)>,
}

impl Samples {
    /// For each shape, the shorter time of two measurements of the same operation.
    pub(super) fn best_of(mut self, other: Samples) -> Samples {
        let merge = |all: &mut Vec<(Shape, f64)>, others: Vec<(Shape, f64)>| {
            for (shape, ns) in others {
                match all.iter_mut().find(|(known, _)| *known == shape) {
                    Some(known) => known.1 = known.1.min(ns),
                    None => all.push((shape, ns)),
                }
            }
            all.sort_by_key(|(shape, _)| shape.bytes);
        };
        merge(&mut self.single, other.single);
        merge(&mut self.batches, other.batches);
        self
    }

    /// The model of time that fits the measurements. `None` if the measured times are not valid.
    pub(super) fn timing(self, operation: Operation) -> Option<Timing> {
        // Longer work does not take less time than shorter work. A measurement that shows a shorter time for longer
        // work was disturbed.
        let mut least: f64 = 0.0;
        let points = self.single.iter().map(|(shape, ns)| {
            least = ns.max(least);
            Point { bytes: shape.bytes as f64, ns: least }
        });
        let single = Timing::new(points.collect(), 0.0, None)?;
        // The time of each message, without the fixed time of the call.
        let each = |(shape, ns): &(Shape, f64)| (ns - single.fixed_ns()).max(0.0) / shape.messages as f64;
        let is_pass_over_bytes = matches!(operation, Operation::Pass(pass) if !pass.is_serial());
        let (per_message, wide) = match &self.batches[..] {
            [(shape, ns), ..] if is_pass_over_bytes => {
                ((ns - single.ns(shape.bytes.into())).max(0.0) / shape.messages as f64, None)
            }
            [batch] => (0.0, Some(each(batch) / batch.0.longest as f64)),
            [short, .., long] => {
                // A message takes a fixed time, and its bytes take a time in proportion to their number. For the longer
                // messages, the time of the bytes is at least an eighth of the whole time.
                let bytes = (long.0.longest - short.0.longest) as f64;
                let wide = ((each(long) - each(short)) / bytes).max(each(long) / 8.0 / long.0.longest as f64);
                ((each(long) - wide * long.0.longest as f64).max(0.0), Some(wide))
            }
            [] => (0.0, None),
        };
        Timing::new(single.points().to_vec(), per_message, wide)
    }
}

/// The time of a longer message, extrapolated by the line through the last two points; 0 if there are fewer points.
fn extrapolated(single: &[(Shape, f64)], bytes: usize) -> f64 {
    let [.., (from, from_ns), (to, to_ns)] = single else { return 0.0 };
    to_ns + (bytes as f64 - to.bytes as f64) * (to_ns - from_ns) / (to.bytes - from.bytes) as f64
}

fn batch([messages, len]: [usize; 2]) -> Shape {
    Shape { messages, bytes: messages * len, longest: len }
}

/// The subject of a measurement: an operation by one kernel of a device.
#[derive(Clone, Copy)]
pub(super) struct Subject<'p> {
    pub(super) entry: &'p DeviceEntry,
    /// Runs work with the kernel in the same way as users' work.
    pub(super) run: &'p dyn Fn(Task<'_, '_>) -> Result<()>,
    pub(super) operation: Operation,
    pub(super) key: KeySize,
    pub(super) place: Place,
}

/// The clock, and a buffer for the data that the measured work processes.
pub(super) struct Bench<'c> {
    clock: &'c dyn Clock,
    host: Vec<u8>,
}

impl<'c> Bench<'c> {
    pub(super) fn new(clock: &'c dyn Clock) -> Bench<'c> {
        Bench { clock, host: Vec::new() }
    }

    /// Measures the subject.
    ///
    /// # Errors
    /// Errors of the device.
    pub(super) fn samples(&mut self, subject: Subject<'_>) -> Result<Samples> {
        let mut at = |shape: Shape| Ok::<_, Error>((shape, self.shortest(subject, shape)?));
        let mut samples = Samples::default();
        for bytes in LENGTHS {
            if extrapolated(&samples.single, bytes) > MAX_RUN_NS {
                break;
            }
            samples.single.push(at(bytes.into())?);
        }
        // If a device takes more than a millisecond for a short message, it would take seconds for a batch. Batches are
        // then not measured.
        if samples.single.first().is_some_and(|(_, ns)| *ns > MAX_RUN_NS / 6.0) {
            return Ok(samples);
        }
        let batches = &mut samples.batches;
        match subject.operation {
            Operation::Pass(pass) if pass.is_serial() => {
                let [most, least] = LANES;
                let few = at(batch([least, SHORT[1]]))?;
                // The estimate includes the fixed cost of the call several times, so the true time of the largest batch is
                // shorter.
                let ratio = ((most * LANE) / (least * SHORT[1])) as f64;
                if ratio * few.1 < 4.0 * MAX_RUN_NS {
                    batches.extend([at(batch([most, SHORT[1]]))?, at(batch([most, LANE]))?]);
                } else {
                    batches.push(few);
                }
            }
            Operation::Pass(_) => batches.push(at(batch(SHORT))?),
            Operation::Fused(_) => {
                let is_affordable =
                    |chunks: &usize| extrapolated(&samples.single, chunks * CHUNK) < MAX_RUN_NS;
                let chunks = CHUNKS.into_iter().find(is_affordable).unwrap_or(CHUNKS[2]);
                batches.extend([at(batch(SHORT))?, at(batch([chunks, CHUNK]))?]);
            }
        }
        Ok(samples)
    }

    /// Runs the subject several times, and returns the time of the shortest run in nanoseconds.
    fn shortest(&mut self, subject: Subject<'_>, shape: Shape) -> Result<f64> {
        let clock = self.clock;
        let failures = || subject.entry.failures.load(Ordering::Relaxed);
        let failed = failures();
        let mut runner = Runner::new(self, subject, shape)?;
        let (mut shortest, mut all) = (f64::INFINITY, 0.0);
        for run in 0..MAX_RUNS {
            runner.prepare()?;
            let ns = clock.time(&mut || runner.run())?;
            // The device has failed, and the CPU has repeated the work.
            if failures() != failed {
                let reason = "it failed while it was being measured".into();
                return Err(Error::DeviceFailed { device: subject.entry.device.id(), reason });
            }
            shortest = shortest.min(ns);
            all += ns;
            if run + 1 >= MIN_RUNS && all >= ENOUGH_NS {
                break;
            }
        }
        Ok(shortest)
    }
}

/// Work that can be run repeatedly on the same data.
struct Runner<'b, 'p> {
    subject: Subject<'p>,
    shape: Shape,
    key: Key,
    tweak_key: Key,
    /// The data of all messages, concatenated.
    host: &'b mut [u8],
    /// Memory of the device for the same number of bytes, if the device's memory is measured.
    device: Option<Box<dyn DeviceBuffer>>,
    states: Vec<Block>,
    tags: Vec<Block>,
}

impl<'b, 'p> Runner<'b, 'p> {
    fn new(bench: &'b mut Bench<'_>, subject: Subject<'p>, shape: Shape) -> Result<Runner<'b, 'p>> {
        if bench.host.len() < shape.bytes {
            let no_memory = |_| Error::DeviceFailed {
                device: subject.entry.device.id(),
                reason: "no memory to measure with".into(),
            };
            let more = shape.bytes - bench.host.len();
            bench.host.try_reserve_exact(more).map_err(no_memory)?;
            // The content of the data does not matter, because the time of constant-time kernels does not depend on it.
            let from = bench.host.len();
            bench.host.extend((from..shape.bytes).map(|i| (i * 31 + i / 256) as u8));
        }
        let memory = subject.entry.device.memory().filter(|_| subject.place == Place::Device);
        let device = memory.map(|memory| memory.allocate(shape.bytes)).transpose()?;
        let bytes: [u8; 64] = std::array::from_fn(|i| i as u8 ^ 0xa5);
        Ok(Runner {
            subject,
            shape,
            key: Key::new(&bytes[..subject.key.bytes()])?,
            tweak_key: Key::new(&bytes[32..32 + subject.key.bytes()])?,
            host: &mut bench.host[..shape.bytes],
            device,
            states: vec![[3; 16]; shape.messages],
            tags: vec![[0; 16]; shape.messages],
        })
    }

    /// If the operation opens messages, seals the data first.
    fn prepare(&mut self) -> Result<()> {
        match self.subject.operation {
            Operation::Fused(fused) if fused.opens() => self.fused(fused.sealing()),
            _ => Ok(()),
        }
    }

    fn run(&mut self) -> Result<()> {
        match self.subject.operation {
            Operation::Pass(pass) => self.pass(pass),
            Operation::Fused(fused) => self.fused(fused),
        }
    }

    fn pass(&mut self, pass: Pass) -> Result<()> {
        let tweak = pass.is_xts().then_some(Tweak { key: &self.tweak_key, position: 0 });
        let len = self.shape.longest;
        let data = data(self.host, self.device.as_deref(), len, pass.is_read_only());
        let segments =
            data.zip(&mut self.states).map(|(data, state)| Segment { key: &self.key, tweak, state, data });
        let mut segments: Vec<_> = segments.collect();
        (self.subject.run)(Task::Pass(pass, &mut segments))
    }

    fn fused(&mut self, fused: FusedAead) -> Result<()> {
        let data = data(self.host, self.device.as_deref(), self.shape.longest, false);
        let messages = data.zip(&mut self.tags).map(|(data, tag)| AeadMessage {
            key: &self.key,
            // All messages use the same key and nonce. This is harmless, because the data are not user data and are
            // discarded.
            nonce: &[7; 12],
            aad: &[],
            data,
            tag: if fused.opens() { Tag::Expect(tag) } else { Tag::Write(tag) },
            status: Status::Pending,
        });
        let mut messages: Vec<_> = messages.collect();
        (self.subject.run)(Task::Fused(fused, &mut messages))?;
        match messages.iter().all(|message| message.status == Status::Done) {
            true => Ok(()),
            false => Err(Error::WrongResult { device: self.subject.entry.device.id() }),
        }
    }
}

/// Divides host memory or the device's memory into the data of the messages, of `len` bytes each.
fn data<'d>(
    host: &'d mut [u8],
    device: Option<&dyn DeviceBuffer>,
    len: usize,
    reads_only: bool,
) -> Box<dyn Iterator<Item = Data<'d>> + 'd> {
    match device {
        None if reads_only => Box::new(host.chunks_exact(len).map(Data::read_only)),
        None => Box::new(host.chunks_exact_mut(len).map(Data::in_place)),
        Some(device) => {
            let all = device.slice();
            let slices = (0..host.len() / len).map(move |i| all.slice(i * len..(i + 1) * len));
            Box::new(slices.map(|slice| Data::on_device(slice.clone(), slice).expect("one length")))
        }
    }
}
