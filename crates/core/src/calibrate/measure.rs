//! One measurement: an operation by a kernel, at some lengths.

use super::Clock;
use crate::backend::DeviceBuffer;
use crate::data::Data;
use crate::error::{Error, Result};
use crate::key::{Block, Key, KeySize};
use crate::planner::Plan;
use crate::timing::{Point, Shape, Timing};
use crate::work::{AeadMessage, Operation, Recipe, Segment, Status, Tag, Task, Tweak};

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

/// A run that would take longer is not made: what is longer follows the line so far. Most devices do 16 MiB in less.
const LONGEST_NS: f64 = 6e6;

/// The same for the processor with a device beside it, who share out only what is long.
const LONGEST_OF_PAIR_NS: f64 = 6e7;

/// Runs go on until they took so long together ...
const ENOUGH_NS: f64 = 2.5e5;

/// ... or there were so many; the shortest counts, for whatever disturbs makes longer.
const MOST_RUNS: usize = 9;
const LEAST_RUNS: usize = 2;

/// Messages at once, and their lengths: short ones for what a message costs, longer ones for what their bytes cost side by side.
const MANY: Shape = Shape { messages: 1024, bytes: 1024 * SHORT, longest: SHORT };
const SHORT: usize = 64;
/// Serial passes: so many lanes fill any GPU, or any processor.
const LANES: usize = 8192;
const LANES_OF_PROCESSOR: usize = 512;
const LANE: usize = 512;
/// Recipes: chunks of a file.
const CHUNKS: usize = 256;
const CHUNK: usize = 16 << 10;

/// What measurements have in common.
pub(super) struct Bench<'c> {
    clock: &'c dyn Clock,
    host: Vec<u8>,
}

impl<'c> Bench<'c> {
    pub(super) fn new(clock: &'c dyn Clock) -> Bench<'c> {
        Bench { clock, host: Vec::new() }
    }

    /// What the operation takes by the planned kernel.
    ///
    /// # Errors
    /// Those of the device; [`Error::Unsupported`] if the clock shows no time.
    pub(super) fn timing(
        &mut self,
        plan: Plan<'_>,
        operation: Operation,
        key: KeySize,
        place: Place,
    ) -> Result<Timing> {
        let is_pair = plan.device.parts(plan.kernel, operation).len() > 1;
        let longest = if is_pair { LONGEST_OF_PAIR_NS } else { LONGEST_NS };
        let mut points: Vec<Point> = Vec::new();
        for bytes in LENGTHS {
            let ns_before = points.last().map_or(0.0, |point| point.ns);
            let predicted = match &points[..] {
                [.., from, to] => {
                    to.ns + (bytes as f64 - to.bytes) * (to.ns - from.ns) / (to.bytes - from.bytes)
                }
                _ => 0.0,
            };
            if predicted > longest {
                break;
            }
            let ns = self.shortest(plan, operation, key, place, Shape::from(bytes))?;
            // Longer work is no shorter, whatever disturbed the clock.
            points.push(Point { bytes: bytes as f64, ns: ns.max(ns_before) });
        }
        let alone = Timing::new(points, 0.0, None).ok_or_else(|| no_time(operation))?;
        let fixed = alone.fixed_ns();
        // A device so slow that a short message takes a millisecond is spared the crowd.
        if fixed > LONGEST_NS / 6.0 {
            return Ok(alone);
        }
        let mut at = |shape: Shape| self.shortest(plan, operation, key, place, shape);
        let (per_message, wide) = match operation {
            Operation::Pass(pass) if pass.is_serial() => {
                let lanes = if plan.device.is_trusted() { LANES_OF_PROCESSOR } else { LANES };
                let of = |len: usize| Shape { messages: lanes, bytes: lanes * len, longest: len };
                let short = at(of(SHORT))?;
                let ratio = LANE / SHORT;
                if short * ratio as f64 > 8.0 * LONGEST_NS {
                    (0.0, Some((short - fixed).max(0.0) / of(SHORT).bytes as f64))
                } else {
                    let long = at(of(LANE))?;
                    let wide = (long - short).max(0.0) / (of(LANE).bytes - of(SHORT).bytes) as f64;
                    let rest = short - fixed - wide * of(SHORT).bytes as f64;
                    (rest.max(0.0) / lanes as f64, Some(wide))
                }
            }
            Operation::Pass(_) => ((at(MANY)? - alone.ns(MANY.bytes.into())).max(0.0) / 1023.0, None),
            Operation::Recipe(_) => {
                let of = |messages: usize| Shape { messages, bytes: messages * CHUNK, longest: CHUNK };
                let (few, many) = (at(of(CHUNKS / 8))?, at(of(CHUNKS))?);
                let per_chunk = (many - few).max(0.0) / (CHUNKS - CHUNKS / 8) as f64;
                let short = (at(MANY)? - fixed).max(0.0) / 1023.0;
                // A chunk takes what a message takes, and its bytes.
                let wide = (per_chunk - short).max(per_chunk / 8.0) / CHUNK as f64;
                ((per_chunk - wide * CHUNK as f64).max(0.0), Some(wide))
            }
        };
        Timing::new(alone.points().to_vec(), per_message, wide).ok_or_else(|| no_time(operation))
    }

    /// The shortest of some runs, in nanoseconds.
    fn shortest(
        &mut self,
        plan: Plan<'_>,
        operation: Operation,
        key: KeySize,
        place: Place,
        shape: Shape,
    ) -> Result<f64> {
        let clock = self.clock;
        let told = plan.planner().told();
        let mut runner = Runner::new(self, plan, operation, key, place, shape)?;
        let (mut shortest, mut all) = (f64::INFINITY, 0.0);
        for run in 0..MOST_RUNS {
            runner.prepare()?;
            let ns = clock.time(&mut || runner.run())?;
            // It was not this device that did the work.
            if plan.planner().told() != told {
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

fn no_time(operation: Operation) -> Error {
    Error::Unsupported { kernel: "the clock", operation: operation.to_string() }
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
    registers: Vec<Block>,
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
                let memory = plan.device.memory().ok_or_else(|| no_time(operation))?;
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
            registers: vec![[3; 16]; shape.messages],
            tags: vec![[0; 16]; shape.messages],
        })
    }

    /// What is opened must be sealed before.
    fn prepare(&mut self) -> Result<()> {
        if self.operation == Operation::Recipe(Recipe::GcmOpen) {
            self.recipe(Recipe::GcmSeal)
        } else {
            Ok(())
        }
    }

    fn run(&mut self) -> Result<()> {
        match self.operation {
            Operation::Pass(_) => self.pass(),
            Operation::Recipe(recipe) => self.recipe(recipe),
        }
    }

    fn pass(&mut self) -> Result<()> {
        let Operation::Pass(pass) = self.operation else { unreachable!("asked for passes only") };
        let tweak = pass.is_xts().then_some(Tweak { key: &self.tweak_key, position: 0 });
        let len = self.shape.longest;
        let data = data(self.host, self.device.as_deref(), len, pass.is_read_only());
        let segments = data.zip(&mut self.registers).map(|(data, register)| Segment {
            key: &self.key,
            tweak,
            register,
            data,
        });
        let mut segments: Vec<_> = segments.collect();
        self.plan.run(Task::Pass(pass, &mut segments))
    }

    fn recipe(&mut self, recipe: Recipe) -> Result<()> {
        let data = data(self.host, self.device.as_deref(), self.shape.longest, false);
        let messages = data.zip(&mut self.tags).map(|(data, tag)| AeadMessage {
            key: &self.key,
            nonce: &[7; 12],
            aad: &[],
            data,
            tag: match recipe {
                Recipe::GcmSeal => Tag::Write(tag),
                Recipe::GcmOpen => Tag::Expect(tag),
            },
            status: Status::Pending,
        });
        let mut messages: Vec<_> = messages.collect();
        self.plan.run(Task::Recipe(recipe, &mut messages))?;
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
