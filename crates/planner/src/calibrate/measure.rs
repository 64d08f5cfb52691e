//! One measurement: an operation by a kernel, at some lengths.

use super::Clock;
use crate::planner::Plan;
use crate::timing::{Point, Shape, Timing};
use lockstep_core::backend::DeviceBuffer;
use lockstep_core::data::Data;
use lockstep_core::error::{Error, Result};
use lockstep_core::key::{Block, Key, KeySize};
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Segment, Status, Tag, Task, Tweak};

/// Where data are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the host's memory.
    Host,
    /// In the device's own.
    Device,
}

impl Place {
    /// Its name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Place::Host => "host",
            Place::Device => "device",
        }
    }
}

/// Lengths of a single message, in bytes: a cipher's call, a page, and on to where all devices are at full speed.
const LENGTHS: [usize; 5] = [64, 4 << 10, 64 << 10, 1 << 20, 16 << 20];

/// One more, where the last two took about as long: so it is where threads or transfers come in between.
const LAST_LENGTH: usize = 64 << 20;

/// The same for the processor with a device beside it, who share out nothing that is shorter.
const LENGTHS_OF_PAIR: [usize; 3] = [2 << 20, 8 << 20, 32 << 20];

/// A run that would take longer is not made: what is longer follows the line so far. Most devices do 16 MiB in less.
const LONGEST_NS: f64 = 6e6;

/// The same for pairs.
const LONGEST_OF_PAIR_NS: f64 = 6e7;

/// Runs go on until they took so long together ...
const ENOUGH_NS: f64 = 2.5e5;

/// ... or there were so many; the shortest counts, for whatever disturbs makes longer.
const MOST_RUNS: usize = 9;
const LEAST_RUNS: usize = 2;

/// Short messages at once, for what a message costs.
const SHORT: usize = 64;
const MANY: usize = 1024;
/// Serial passes: so many lanes of so many bytes fill any device; fewer where that would take too long.
const LANES: [usize; 2] = [8192, 512];
const LANE: usize = 512;
/// Recipes: so many chunks of a file; fewer where they would take too long, more for pairs, who share them out.
const CHUNK: usize = 16 << 10;
const CHUNKS: [usize; 3] = [1024, 256, 64];

/// What was measured of an operation.
#[derive(Debug, Clone)]
pub(super) struct Samples {
    /// Single messages.
    alone: Vec<Point>,
    /// Many at once: fewer or shorter ones first.
    crowds: Vec<(Shape, f64)>,
}

impl Samples {
    /// The shorter times of two measurements of the same: whatever disturbs makes longer.
    pub(super) fn best_of(mut self, other: Samples) -> Samples {
        for again in other.alone {
            match self.alone.iter_mut().find(|point| point.bytes == again.bytes) {
                Some(point) => point.ns = point.ns.min(again.ns),
                None => self.alone.push(again),
            }
        }
        self.alone.sort_by(|one, other| one.bytes.total_cmp(&other.bytes));
        for (shape, ns) in other.crowds {
            if let Some(same) = self.crowds.iter_mut().find(|(known, _)| *known == shape) {
                same.1 = same.1.min(ns);
            }
        }
        self
    }

    /// The model of time that fits. `None` if the clock shows none.
    pub(super) fn timing(mut self, operation: Operation) -> Option<Timing> {
        // Longer work is no shorter, whatever disturbed the clock.
        let mut least = 0.0;
        for point in &mut self.alone {
            least = point.ns.max(least);
            point.ns = least;
        }
        let alone = Timing::new(self.alone, 0.0, None)?;
        let fixed = alone.fixed_ns();
        let (per_message, wide) = match (operation, &self.crowds[..]) {
            (Operation::Pass(pass), [(shape, ns)]) if pass.is_serial() => {
                (0.0, Some((ns - fixed).max(0.0) / shape.bytes as f64))
            }
            (Operation::Pass(pass), [(short, short_ns), (long, long_ns)]) if pass.is_serial() => {
                let wide = slope(fixed, (short.bytes, *short_ns), (long.bytes, *long_ns));
                let rest = short_ns - fixed - wide * short.bytes as f64;
                (rest.max(0.0) / short.messages as f64, Some(wide))
            }
            (Operation::Pass(_), [(shape, ns)]) => {
                let more = (ns - alone.ns(shape.bytes.into())).max(0.0);
                (more / (shape.messages - 1) as f64, None)
            }
            (Operation::Fused(_), [(short, short_ns), (few, few_ns), (many, many_ns)]) => {
                // A chunk takes what a message takes, and its bytes.
                let chunk = slope(fixed, (few.messages, *few_ns), (many.messages, *many_ns));
                let message = (short_ns - fixed).max(0.0) / (short.messages - 1) as f64;
                let wide = (chunk - message).max(chunk / 8.0) / CHUNK as f64;
                ((chunk - wide * CHUNK as f64).max(0.0), Some(wide))
            }
            _ => (0.0, None),
        };
        Timing::new(alone.points().to_vec(), per_message, wide)
    }
}

/// What one more takes, by two measurements; half of what the larger says by itself at least, if the smaller was disturbed.
fn slope(fixed: f64, (few, few_ns): (usize, f64), (many, many_ns): (usize, f64)) -> f64 {
    let between = (many_ns - few_ns) / (many - few) as f64;
    between.max((many_ns - fixed).max(0.0) / many as f64 / 2.0)
}

fn crowd(messages: usize, len: usize) -> Shape {
    Shape { messages, bytes: messages * len, longest: len }
}

/// What measurements have in common.
pub(super) struct Bench<'c> {
    clock: &'c dyn Clock,
    host: Vec<u8>,
}

impl<'c> Bench<'c> {
    pub(super) fn new(clock: &'c dyn Clock) -> Bench<'c> {
        Bench { clock, host: Vec::new() }
    }

    /// Measures the operation by the planned kernel. `failures` counts how often the device failed, in whose place others work.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn samples(
        &mut self,
        plan: Plan<'_>,
        operation: Operation,
        key: KeySize,
        place: Place,
        failures: &dyn Fn() -> u32,
    ) -> Result<Samples> {
        let is_pair = plan.device.parts(plan.kernel, operation).len() > 1;
        let mut at = |shape: Shape| self.shortest(plan, operation, key, place, shape, failures);
        let (lengths, longest) = match is_pair {
            true => (&LENGTHS_OF_PAIR[..], LONGEST_OF_PAIR_NS),
            false => (&LENGTHS[..], LONGEST_NS),
        };
        let mut alone: Vec<Point> = Vec::new();
        let line = |points: &[Point], bytes: usize| match points {
            [.., from, to] => to.ns + (bytes as f64 - to.bytes) * (to.ns - from.ns) / (to.bytes - from.bytes),
            _ => 0.0,
        };
        for &bytes in lengths {
            if line(&alone, bytes) > longest {
                break;
            }
            alone.push(Point { bytes: bytes as f64, ns: at(bytes.into())? });
        }
        if let [.., from, to] = alone[..]
            && !is_pair
            && to.bytes == LENGTHS[4] as f64
            && to.ns < 4.0 * from.ns
            && line(&alone, LAST_LENGTH) < longest
        {
            alone.push(Point { bytes: LAST_LENGTH as f64, ns: at(LAST_LENGTH.into())? });
        }
        let mut crowds = Vec::new();
        // A device so slow that a short message takes a millisecond is spared the crowd.
        if alone.first().is_some_and(|first| first.ns > LONGEST_NS / 6.0 && !is_pair) {
            return Ok(Samples { alone, crowds });
        }
        let mut add = |shape: Shape| {
            let ns = at(shape)?;
            crowds.push((shape, ns));
            Ok(ns)
        };
        match operation {
            Operation::Pass(pass) if pass.is_serial() => {
                // What fewer take says how many can be afforded.
                let [most, least] = LANES;
                let ratio = (most * LANE / (least * SHORT)) as f64;
                let few = add(crowd(least, SHORT))?;
                if few * ratio < 4.0 * LONGEST_NS {
                    crowds.clear();
                    for len in [SHORT, LANE] {
                        crowds.push((crowd(most, len), at(crowd(most, len))?));
                    }
                }
            }
            Operation::Pass(_) => {
                add(crowd(MANY, SHORT))?;
            }
            Operation::Fused(_) => {
                add(crowd(MANY, SHORT))?;
                let affordable = |chunks: &&usize| line(&alone, **chunks * CHUNK) < longest;
                let chunks = CHUNKS.iter().find(affordable).copied().unwrap_or(CHUNKS[2]);
                // Of pairs the fewer ones are shared out as well.
                let fewer = if is_pair { 4 } else { 8 };
                let chunks = if is_pair { chunks.max(512) } else { chunks };
                for chunks in [chunks / fewer, chunks] {
                    add(crowd(chunks, CHUNK))?;
                }
            }
        }
        Ok(Samples { alone, crowds })
    }

    /// The shortest of some runs, in nanoseconds.
    fn shortest(
        &mut self,
        plan: Plan<'_>,
        operation: Operation,
        key: KeySize,
        place: Place,
        shape: Shape,
        failures: &dyn Fn() -> u32,
    ) -> Result<f64> {
        let clock = self.clock;
        let failed = failures();
        let mut runner = Runner::new(self, plan, operation, key, place, shape)?;
        let (mut shortest, mut all) = (f64::INFINITY, 0.0);
        for run in 0..MOST_RUNS {
            runner.prepare()?;
            let ns = clock.time(&mut || runner.run())?;
            // It was not this device that did the work.
            if failures() != failed {
                let reason = "it failed while it was measured".into();
                return Err(Error::DeviceFailed { device: plan.device.id(), reason });
            }
            shortest = shortest.min(ns);
            all += ns;
            if run + 1 >= LEAST_RUNS && all >= ENOUGH_NS {
                break;
            }
        }
        Ok(shortest)
    }
}

/// Work that can be done again and again.
struct Runner<'b, 'p> {
    plan: Plan<'p>,
    operation: Operation,
    shape: Shape,
    key: Key,
    tweak_key: Key,
    /// The data of all messages, one behind the other.
    host: &'b mut [u8],
    /// The same in the device's memory, if they are to be there.
    device: Option<Box<dyn DeviceBuffer>>,
    states: Vec<Block>,
    tags: Vec<Block>,
}

impl<'b, 'p> Runner<'b, 'p> {
    fn new(
        bench: &'b mut Bench<'_>,
        plan: Plan<'p>,
        operation: Operation,
        key: KeySize,
        place: Place,
        shape: Shape,
    ) -> Result<Runner<'b, 'p>> {
        if bench.host.len() < shape.bytes {
            let no_memory = |_| Error::DeviceFailed {
                device: plan.device.id(),
                reason: "no memory to measure with".into(),
            };
            let more = shape.bytes - bench.host.len();
            bench.host.try_reserve_exact(more).map_err(no_memory)?;
            // Neither zeros nor anybody's data: constant-time kernels do not care.
            let from = bench.host.len();
            bench.host.extend((from..shape.bytes).map(|i| (i * 31 + i / 256) as u8));
        }
        let device = match place {
            Place::Host => None,
            Place::Device => {
                let none =
                    || Error::OutOfReach { device: plan.device.id(), what: "memory of its own".into() };
                let memory = plan.device.memory().ok_or_else(none)?;
                Some(memory.allocate(shape.bytes)?)
            }
        };
        let bytes: [u8; 64] = std::array::from_fn(|i| i as u8 ^ 0xa5);
        Ok(Runner {
            plan,
            operation,
            shape,
            key: Key::new(&bytes[..key.bytes()])?,
            tweak_key: Key::new(&bytes[32..32 + key.bytes()])?,
            host: &mut bench.host[..shape.bytes],
            device,
            states: vec![[3; 16]; shape.messages],
            tags: vec![[0; 16]; shape.messages],
        })
    }

    /// What is opened must be sealed before.
    fn prepare(&mut self) -> Result<()> {
        if self.operation == Operation::Fused(FusedAead::GcmOpen) {
            self.fused(FusedAead::GcmSeal)
        } else {
            Ok(())
        }
    }

    fn run(&mut self) -> Result<()> {
        match self.operation {
            Operation::Pass(_) => self.pass(),
            Operation::Fused(fused) => self.fused(fused),
        }
    }

    fn pass(&mut self) -> Result<()> {
        let Operation::Pass(pass) = self.operation else { unreachable!("asked for passes only") };
        let tweak = pass.is_xts().then_some(Tweak { key: &self.tweak_key, position: 0 });
        let len = self.shape.longest;
        let data = data(self.host, self.device.as_deref(), len, pass.is_read_only());
        let segments =
            data.zip(&mut self.states).map(|(data, state)| Segment { key: &self.key, tweak, state, data });
        let mut segments: Vec<_> = segments.collect();
        self.plan.run(Task::Pass(pass, &mut segments))
    }

    fn fused(&mut self, fused: FusedAead) -> Result<()> {
        let data = data(self.host, self.device.as_deref(), self.shape.longest, false);
        let messages = data.zip(&mut self.tags).map(|(data, tag)| AeadMessage {
            key: &self.key,
            // One key and nonce for all: it is nobody's data, and nothing of it leaves.
            nonce: &[7; 12],
            aad: &[],
            data,
            tag: match fused {
                FusedAead::GcmSeal => Tag::Write(tag),
                FusedAead::GcmOpen => Tag::Expect(tag),
            },
            status: Status::Pending,
        });
        let mut messages: Vec<_> = messages.collect();
        self.plan.run(Task::Fused(fused, &mut messages))?;
        match messages.iter().all(|message| message.status == Status::Done) {
            true => Ok(()),
            false => Err(Error::WrongResult { device: self.plan.device.id() }),
        }
    }
}

/// The messages' data.
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
