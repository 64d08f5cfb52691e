//! Results of devices compared with those of the processor that runs this program: GPUs do return wrong ones.
//!
//! Work on host memory by any other device is compared before it counts: by samples, a block in every few thousand computed
//! again, or whole. If it was wrong, or the device failed where the user named none, the input is still there and the work is
//! done again, and [`Planner::incidents`] tells. So input that is overwritten is copied first. Chaining states are compared as well.
//!
//! MACs and tags leave no blocks to take samples of: where there are many, a message in 256 is computed again as a whole. Work
//! on a device's own or on page-locked memory is compared by samples too, its tags and MACs never: see `resident.rs`.
//!
//! Not seen, but by [`Verify::Full`]: the MAC of a single long message; blocks at the end that are not whole. Never seen: work
//! on host or page-locked memory that is submitted without [`Plan::run`].

use zeroize::Zeroizing;

mod resident;
use resident::Waits;

use crate::planner::{Plan, Planner};
use crate::timing::Shape;
use lockstep_core::backend::Completion;
use lockstep_core::chaining::counter_after;
use lockstep_core::data::{Data, HostData};
use lockstep_core::error::{Error, Result};
use lockstep_core::key::Block;
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Pass, Segment, Status, Tag, Task, Tweak, Work};
use lockstep_modes::gcm;

/// How results of devices are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verify {
    /// Not at all.
    Off,
    /// A block in every few thousand, at a place that changes from call to call.
    #[default]
    Sample,
    /// Everything is computed again.
    Full,
}

impl Verify {
    /// Its name in options and settings.
    pub const fn name(self) -> &'static str {
        match self {
            Verify::Off => "off",
            Verify::Sample => "sample",
            Verify::Full => "full",
        }
    }
}

impl std::str::FromStr for Verify {
    type Err = ();

    fn from_str(name: &str) -> std::result::Result<Verify, ()> {
        [Verify::Off, Verify::Sample, Verify::Full].into_iter().find(|verify| verify.name() == name).ok_or(())
    }
}

/// A block in so many is computed again: of 64 KiB, one.
pub(crate) const STRIDE: usize = 4096;

/// Who checks, how, and where the samples of this call begin.
#[derive(Clone, Copy)]
pub(crate) struct Judge<'p> {
    pub(crate) planner: &'p Planner,
    pub(crate) verify: Verify,
    pub(crate) seed: usize,
    /// Work that a device failed to do is done again; else only what it did wrong.
    pub(crate) redoes_failures: bool,
}

/// A block of a message: which one, and where its input is in the message.
struct Sample {
    message: usize,
    number: usize,
}

/// Input that the work overwrites.
struct Originals(Vec<Option<Zeroizing<Vec<u8>>>>);

impl Originals {
    /// Nothing if there is no memory.
    fn keep<'a, 'd: 'a>(all: impl ExactSizeIterator<Item = &'a Data<'d>>) -> Option<Originals> {
        let mut copies = Vec::new();
        copies.try_reserve_exact(all.len()).ok()?;
        for data in all {
            copies.push(match data {
                Data::Host(HostData::InPlace(data)) => Some(Originals::copy(data)?),
                _ => None,
            });
        }
        Some(Originals(copies))
    }

    fn copy(data: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let mut copy = Vec::new();
        copy.try_reserve_exact(data.len()).ok()?;
        copy.extend_from_slice(data);
        Some(Zeroizing::new(copy))
    }

    /// The input of a message, whatever has become of its place.
    fn input<'a>(&'a self, message: usize, data: &'a Data<'_>) -> &'a [u8] {
        match (&self.0[message], data) {
            (Some(copy), _) => copy,
            (None, Data::Host(data)) => data.input(),
            (None, _) => &[],
        }
    }

    /// Puts the input back where it was.
    fn restore(&self, message: usize, data: &mut Data<'_>) {
        if let (Some(copy), Data::Host(data)) = (&self.0[message], data) {
            data.output().copy_from_slice(copy);
        }
    }
}

/// True for host memory of the kind that the work takes: others are the device's to refuse, or to verify.
fn is_host(data: &Data<'_>, reads_only: bool) -> bool {
    match data {
        Data::Host(HostData::ReadOnly(_)) => reads_only,
        data => matches!(data, Data::Host(_)),
    }
}

fn output<'a>(data: &'a mut Data<'_>) -> &'a mut [u8] {
    match data {
        Data::Host(data) => data.output(),
        _ => &mut [],
    }
}

fn block_at(data: &[u8], number: usize) -> Block {
    data[16 * number..16 * number + 16].try_into().expect("16 bytes")
}

/// Runs a plan, verified.
pub(crate) fn run(plan: Plan<'_>, judge: &Judge<'_>, work: Work<'_, '_>) -> Result<()> {
    match work.task {
        Task::Pass(pass, segments)
            if segments.iter().all(|segment| is_host(&segment.data, pass.is_read_only())) =>
        {
            run_pass(plan, judge, pass, segments)
        }
        Task::Fused(fused, messages) if messages.iter().all(|message| is_host(&message.data, false)) => {
            run_fused(plan, judge, fused, messages)
        }
        Task::Pass(pass, segments) => {
            let states: Zeroizing<Vec<Block>> =
                Zeroizing::new(segments.iter().map(|segment| *segment.state).collect());
            let task = Task::Pass(pass, &mut *segments);
            let started = resident::start(plan, *judge, Work { stream: work.stream, task }, Waits::Now);
            let outcome = started.and_then(|started| started.finish().map(|_| ()));
            outcome.inspect_err(|_| {
                for (segment, state) in segments.iter_mut().zip(states.iter()) {
                    *segment.state = *state;
                }
            })
        }
        Task::Fused(fused, messages) => {
            let task = Task::Fused(fused, &mut *messages);
            let started = resident::start(plan, *judge, Work { stream: work.stream, task }, Waits::Now);
            let outcome = started.and_then(|started| started.finish()).and_then(|zeros| {
                // Zeros are what refused messages become, and no others.
                if zeros.iter().all(|&index| messages[index].status != Status::Done) {
                    return Ok(());
                }
                for message in messages.iter_mut() {
                    let _ = lockstep_modes::transfer::zero_output(plan.planner(), &mut message.data);
                }
                Err(Error::WrongResult { device: plan.device.id() })
            });
            outcome.inspect_err(|_| invalidate(messages))
        }
        task => plan.submit_unverified(Work { stream: work.stream, task })?.wait(),
    }
}

/// No message of a call that failed counts.
fn invalidate(messages: &mut [AeadMessage<'_>]) {
    for message in messages {
        message.status = Status::Pending;
        if let Tag::Write(tag) = &mut message.tag {
            tag.fill(0);
        }
    }
}

/// Starts work; what is verified of it when the completion is waited for is the results that stay on the device.
pub(crate) fn submit<'w, 'd: 'w, 'p: 'w>(
    plan: Plan<'p>,
    judge: Judge<'p>,
    work: Work<'w, 'd>,
) -> Result<Completion<'w>> {
    resident::start(plan, judge, work, Waits::Later).map(resident::Started::completion)
}

/// Why a device was not asked.
fn no_memory(plan: Plan<'_>) -> Error {
    Error::DeviceFailed { device: plan.device.id(), reason: "no memory to verify its results by".into() }
}

/// What became of the work, once it has been looked at: done, to be done again because of an error, or an error.
fn verdict(
    plan: Plan<'_>,
    judge: &Judge<'_>,
    outcome: Result<()>,
    agrees: impl FnOnce() -> Result<bool>,
) -> Result<Option<Error>> {
    match outcome {
        Ok(()) if agrees()? => Ok(None),
        Ok(()) => Ok(Some(Error::WrongResult { device: plan.device.id() })),
        Err(error @ Error::DeviceFailed { .. }) if judge.redoes_failures => Ok(Some(error)),
        Err(error) => Err(error),
    }
}

fn run_pass(plan: Plan<'_>, judge: &Judge<'_>, pass: Pass, segments: &mut [Segment<'_>]) -> Result<()> {
    let Some(size) = segments.first().map(|segment| segment.key.size()) else { return Ok(()) };
    let shape = Shape::of(segments.iter().map(|segment| segment.data.len()));
    let ours = judge.planner.plan(Operation::Pass(pass), size, shape, None)?;
    let Some(originals) = Originals::keep(segments.iter().map(|segment| &segment.data)) else {
        plan.tell(no_memory(plan));
        return ours.run(Task::Pass(pass, segments));
    };
    let states: Zeroizing<Vec<Block>> =
        Zeroizing::new(segments.iter().map(|segment| *segment.state).collect());
    let outcome =
        plan.submit_unverified(Task::Pass(pass, &mut *segments)).and_then(|completion| completion.wait());
    let agrees = || match judge.verify {
        Verify::Full => {
            let all: Vec<usize> = (0..segments.len()).collect();
            whole_pass_agrees(ours, pass, &mut *segments, &originals, &states, &all)
        }
        _ if pass.is_read_only() => {
            let chosen = whole_samples(judge, segments.iter().map(|segment| segment.data.len()));
            whole_pass_agrees(ours, pass, &mut *segments, &originals, &states, &chosen)
        }
        _ => samples_agree(judge, pass, &mut *segments, &originals, &states),
    };
    let again = verdict(plan, judge, outcome, agrees).and_then(|incident| {
        let Some(incident) = incident else { return Ok(()) };
        for (index, segment) in segments.iter_mut().enumerate() {
            originals.restore(index, &mut segment.data);
            *segment.state = states[index];
        }
        ours.run(Task::Pass(pass, &mut *segments))?;
        plan.tell(incident);
        Ok(())
    });
    // What nobody vouches for is no result.
    again.inspect_err(|_| {
        for (segment, state) in segments.iter_mut().zip(states.iter()) {
            output(&mut segment.data).fill(0);
            *segment.state = *state;
        }
    })
}

/// Every [`STRIDE`]th block of all messages together, and one at least; whole blocks only.
fn samples(judge: &Judge<'_>, lengths: impl Iterator<Item = usize> + Clone) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut next = judge.seed % STRIDE;
    for (message, bytes) in lengths.clone().enumerate() {
        let blocks = bytes / 16;
        while next < blocks {
            samples.push(Sample { message, number: next });
            next += STRIDE;
        }
        next -= blocks;
    }
    if samples.is_empty() {
        let longest = lengths.enumerate().filter(|(_, bytes)| *bytes >= 16).max_by_key(|(_, bytes)| *bytes);
        samples.extend(longest.map(|(message, bytes)| Sample { message, number: judge.seed % (bytes / 16) }));
    }
    samples
}

/// Messages that are computed again as a whole: every 256th, unless it is so long that this would take long.
fn whole_samples(judge: &Judge<'_>, lengths: impl ExactSizeIterator<Item = usize> + Clone) -> Vec<usize> {
    const STRIDE: usize = 256;
    let total: usize = lengths.clone().sum();
    let count = lengths.len();
    let first = judge.seed % STRIDE.min(count.max(1));
    let chosen = lengths.enumerate().skip(first).step_by(STRIDE);
    // An empty message counts as a block.
    chosen.filter(|(_, bytes)| 16 * (bytes + 16) <= total + 16 * count).map(|(index, _)| index).collect()
}

/// The chaining state that a block of a message begins with, if the output before it is right.
fn state_of(
    pass: Pass,
    state: &Block,
    number: usize,
    input: impl Fn(usize) -> Block,
    output: impl Fn(usize) -> Block,
) -> Block {
    match pass {
        Pass::EcbEncrypt | Pass::EcbDecrypt | Pass::XtsEncrypt | Pass::XtsDecrypt => *state,
        Pass::Ctr | Pass::Ctr32 => counter_after(pass, state, number as u128),
        _ if number == 0 => *state,
        Pass::CbcDecrypt | Pass::Cfb128Decrypt | Pass::Cfb8Decrypt | Pass::Cfb1Decrypt => input(number - 1),
        Pass::CbcEncrypt | Pass::Cfb128Encrypt | Pass::Cfb8Encrypt | Pass::Cfb1Encrypt => output(number - 1),
        Pass::Ofb | Pass::PcbcEncrypt | Pass::PcbcDecrypt => {
            let (input, output) = (input(number - 1), output(number - 1));
            std::array::from_fn(|i| input[i] ^ output[i])
        }
        Pass::CbcMac | Pass::Ghash => unreachable!("they have no output to take samples of"),
    }
}

/// A block that is computed again: its input, which becomes what it should be, and the chaining state it begins with.
struct Place {
    block: Zeroizing<Block>,
    state: Zeroizing<Block>,
    sample: Sample,
}

fn samples_agree(
    judge: &Judge<'_>,
    pass: Pass,
    segments: &mut [Segment<'_>],
    originals: &Originals,
    states: &[Block],
) -> Result<bool> {
    // Chaining states first: the next piece goes on from them.
    for (index, segment) in segments.iter_mut().enumerate() {
        let bytes = segment.data.len();
        if bytes >= 16 && bytes.is_multiple_of(16) {
            let last = block_at(output(&mut segment.data), bytes / 16 - 1);
            let input = originals.input(index, &segment.data);
            let at = |number| block_at(input, number);
            if *segment.state != state_of(pass, &states[index], bytes / 16, at, |_| last) {
                return Ok(false);
            }
        }
    }
    let mut places = Vec::new();
    for sample in samples(judge, segments.iter().map(|segment| segment.data.len())) {
        let segment = &mut segments[sample.message];
        let before = match sample.number {
            0 => Block::default(),
            number => block_at(output(&mut segment.data), number - 1),
        };
        let input = originals.input(sample.message, &segment.data);
        let at = |number| block_at(input, number);
        let state = state_of(pass, &states[sample.message], sample.number, at, |_| before);
        places.push(Place { block: at(sample.number).into(), state: state.into(), sample });
    }
    blocks_by(judge, pass, &mut places, |sample| {
        let segment = &segments[sample.message];
        let tweak = segment
            .tweak
            .map(|tweak| Tweak { position: tweak.position.wrapping_add(sample.number as u64), ..tweak });
        (segment.key, tweak)
    })?;
    Ok(places.iter().all(|Place { block, sample, .. }| {
        **block == block_at(output(&mut segments[sample.message].data), sample.number)
    }))
}

/// Runs a pass over single blocks with a chaining state each, in place.
fn blocks_by<'k>(
    judge: &Judge<'_>,
    pass: Pass,
    places: &mut [Place],
    key_of: impl Fn(&Sample) -> (&'k lockstep_core::key::Key, Option<Tweak<'k>>),
) -> Result<()> {
    let mut blocks: Vec<Segment<'_>> = places
        .iter_mut()
        .map(|Place { block, state, sample }| {
            let (key, tweak) = key_of(sample);
            Segment { key, tweak, state, data: Data::in_place(&mut **block) }
        })
        .collect();
    let Some(first) = blocks.first() else { return Ok(()) };
    let size = first.key.size();
    judge
        .planner
        .plan(Operation::Pass(pass), size, 16 * blocks.len(), None)?
        .run(Task::Pass(pass, &mut blocks))
}

/// Computes the chosen segments again.
fn whole_pass_agrees(
    ours: Plan<'_>,
    pass: Pass,
    segments: &mut [Segment<'_>],
    originals: &Originals,
    states: &[Block],
    chosen: &[usize],
) -> Result<bool> {
    let mut states = Zeroizing::new(chosen.iter().map(|&index| states[index]).collect::<Vec<_>>());
    let mut copies: Vec<Zeroizing<Vec<u8>>> = chosen
        .iter()
        .map(|&index| Zeroizing::new(originals.input(index, &segments[index].data).to_vec()))
        .collect();
    let mut again: Vec<Segment<'_>> = chosen
        .iter()
        .zip(&mut copies)
        .zip(states.iter_mut())
        .map(|((&index, copy), state)| {
            let data = if pass.is_read_only() { Data::read_only(copy) } else { Data::in_place(copy) };
            Segment { key: segments[index].key, tweak: segments[index].tweak, state, data }
        })
        .collect();
    ours.run(Task::Pass(pass, &mut again))?;
    drop(again);
    Ok(chosen.iter().zip(&copies).zip(states.iter()).all(|((&index, copy), state)| {
        let segment = &mut segments[index];
        *segment.state == *state && (pass.is_read_only() || output(&mut segment.data) == &copy[..])
    }))
}

fn run_fused(
    plan: Plan<'_>,
    judge: &Judge<'_>,
    fused: FusedAead,
    messages: &mut [AeadMessage<'_>],
) -> Result<()> {
    let Some(originals) = Originals::keep(messages.iter().map(|message| &message.data)) else {
        plan.tell(no_memory(plan));
        return gcm::run_checked(judge.planner, fused, messages);
    };
    let outcome =
        plan.submit_unverified(Task::Fused(fused, &mut *messages)).and_then(|completion| completion.wait());
    let agrees = || match judge.verify {
        Verify::Full => {
            let all: Vec<usize> = (0..messages.len()).collect();
            whole_recipe_agrees(judge, fused, &mut *messages, &originals, &all)
        }
        _ => {
            let lengths = messages.iter().map(|message| message.data.len() + message.aad.len());
            let chosen = whole_samples(judge, lengths);
            Ok(message_samples_agree(judge, &mut *messages, &originals)?
                && whole_recipe_agrees(judge, fused, &mut *messages, &originals, &chosen)?)
        }
    };
    let again = verdict(plan, judge, outcome, agrees).and_then(|incident| {
        let Some(incident) = incident else { return Ok(()) };
        for (index, message) in messages.iter_mut().enumerate() {
            originals.restore(index, &mut message.data);
            message.status = Status::Pending;
        }
        gcm::run_checked(judge.planner, fused, &mut *messages)?;
        plan.tell(incident);
        Ok(())
    });
    again.inspect_err(|_| {
        for message in messages.iter_mut() {
            output(&mut message.data).fill(0);
        }
        invalidate(messages);
    })
}

/// GCM's data, sealed or opened, are CTR from the second counter on.
fn message_samples_agree(
    judge: &Judge<'_>,
    messages: &mut [AeadMessage<'_>],
    originals: &Originals,
) -> Result<bool> {
    // What was not opened is zeros.
    let lengths: Vec<usize> = messages
        .iter()
        .map(|message| if message.status == Status::Done { message.data.len() } else { 0 })
        .collect();
    let mut places = Vec::new();
    for sample in samples(judge, lengths.iter().copied()) {
        let message = &messages[sample.message];
        let mut counter = Block::default();
        counter[..12].copy_from_slice(message.nonce);
        counter[12..].copy_from_slice(&2u32.to_be_bytes());
        let input = block_at(originals.input(sample.message, &message.data), sample.number);
        let state = counter_after(Pass::Ctr32, &counter, sample.number as u128).into();
        places.push(Place { block: input.into(), state, sample });
    }
    blocks_by(judge, Pass::Ctr32, &mut places, |sample| (messages[sample.message].key, None))?;
    Ok(places.iter().all(|Place { block, sample, .. }| {
        **block == block_at(output(&mut messages[sample.message].data), sample.number)
    }))
}

/// Computes the chosen messages again.
fn whole_recipe_agrees(
    judge: &Judge<'_>,
    fused: FusedAead,
    messages: &mut [AeadMessage<'_>],
    originals: &Originals,
    chosen: &[usize],
) -> Result<bool> {
    let mut copies: Vec<Zeroizing<Vec<u8>>> = chosen
        .iter()
        .map(|&index| Zeroizing::new(originals.input(index, &messages[index].data).to_vec()))
        .collect();
    let mut tags = vec![Block::default(); chosen.len()];
    let mut again: Vec<AeadMessage<'_>> = chosen
        .iter()
        .map(|&index| &messages[index])
        .zip(&mut copies)
        .zip(&mut tags)
        .map(|((message, copy), tag)| AeadMessage {
            key: message.key,
            nonce: message.nonce,
            aad: message.aad,
            data: Data::in_place(copy),
            tag: match &message.tag {
                Tag::Write(written) => Tag::Write(&mut tag[..written.len()]),
                Tag::Expect(expected) => Tag::Expect(expected),
            },
            status: Status::Pending,
        })
        .collect();
    gcm::run_checked(judge.planner, fused, &mut again)?;
    let statuses: Vec<Status> = again.iter().map(|message| message.status).collect();
    drop(again);
    Ok(chosen.iter().zip(&copies).zip(&tags).zip(statuses).all(|(((&index, copy), tag), status)| {
        let message = &mut messages[index];
        let tag_agrees = match &message.tag {
            Tag::Write(written) => written[..] == tag[..written.len()],
            Tag::Expect(_) => true,
        };
        message.status == status && tag_agrees && output(&mut message.data) == &copy[..]
    }))
}
