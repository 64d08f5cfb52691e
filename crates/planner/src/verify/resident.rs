//! Results that stay on a device: samples of input and output are fetched on the stream of the work, and compared when it is
//! waited for. The same for page-locked memory, if the work is waited for at once: its input is read before the work starts,
//! which waits for whatever else uses it.
//!
//! Nothing is done again, since the input may be overwritten: wrong output is zeroed, and the completion fails. Not compared,
//! whatever was asked for: messages that only the device knows ([`Task::Table`]), because their keys never come to the host;
//! chaining states, tags and MACs; and calls whose data lie in places of several kinds.

use zeroize::Zeroizing;

use super::{Judge, Verify, counter_after, samples, state_of};
use crate::planner::Plan;
use lockstep_core::backend::{Completion, Fetch, Pending};
use lockstep_core::data::{Data, DeviceSlice, PinnedSlice};
use lockstep_core::error::{Error, Result};
use lockstep_core::key::{Block, Key};
use lockstep_core::work::{FusedAead, Operation, Pass, Segment, Task, Tweak, Work};

/// Bytes of a piece where everything is compared.
const PIECE: usize = 64 * 1024;

/// Most bytes of a call where everything is compared: they are on the host twice, and a third time on the device.
const MOST: usize = 1 << 30;

/// Consecutive bytes of a message that are computed again.
struct Piece<'d> {
    /// Index of the message in the call.
    message: usize,
    key: &'d Key,
    tweak: Option<Tweak<'d>>,
    /// The chaining state that the message began with.
    state: Block,
    /// The first block.
    number: usize,
    bytes: usize,
}

/// A message whose data are on the device.
struct Resident<'d> {
    /// Its index in the call.
    message: usize,
    key: &'d Key,
    tweak: Option<Tweak<'d>>,
    state: Block,
    data: Data<'static>,
}

fn resident<'d>(
    message: usize,
    key: &'d Key,
    tweak: Option<Tweak<'d>>,
    state: Block,
    data: &Data<'_>,
) -> Option<Resident<'d>> {
    let data = match data {
        Data::Device { from, to, .. } => Data::on_device(from.clone(), to.clone()).ok()?,
        Data::Pinned { from, to, .. } => Data::pinned(from.clone(), to.clone()).ok()?,
        Data::Host(_) => return None,
    };
    Some(Resident { message, key, tweak, state, data })
}

/// When the work will be waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    Now,
    Later,
}

/// Parts of page-locked memory, read when they are waited for.
struct Pinned(Vec<PinnedSlice>);

impl Fetch for Pinned {
    fn is_ready(&self) -> bool {
        true
    }

    fn wait(self: Box<Self>) -> Result<Zeroizing<Vec<u8>>> {
        // Room for all at once: what grows leaves copies behind.
        let mut all = Zeroizing::new(Vec::with_capacity(self.0.iter().map(PinnedSlice::len).sum()));
        self.0.iter().for_each(|slice| all.extend_from_slice(&slice.buffer().lock()[slice.range()]));
        Ok(all)
    }
}

/// What was read already.
struct Fetched(Zeroizing<Vec<u8>>);

impl Fetch for Fetched {
    fn is_ready(&self) -> bool {
        true
    }

    fn wait(self: Box<Self>) -> Result<Zeroizing<Vec<u8>>> {
        Ok(self.0)
    }
}

/// All messages of a task that have data, with the pass that these go through; none if some are elsewhere, or nothing is
/// written.
fn messages<'d>(task: &Task<'_, 'd>) -> Option<(Pass, Vec<Resident<'d>>)> {
    match task {
        Task::Pass(pass, _) if pass.is_read_only() => None,
        Task::Pass(pass, segments) => {
            let all = segments.iter().enumerate().filter(|(_, segment)| !segment.data.is_empty());
            let all = all.map(|(index, s)| resident(index, s.key, s.tweak, *s.state, &s.data));
            Some((*pass, all.collect::<Option<_>>()?))
        }
        Task::Fused(_, messages) => {
            let all = messages.iter().enumerate().filter(|(_, message)| !message.data.is_empty());
            let all = all.map(|(index, message)| {
                let mut counter = Block::default();
                counter[..12].copy_from_slice(message.nonce);
                counter[15] = 2;
                resident(index, message.key, None, counter, &message.data)
            });
            Some((Pass::Ctr32, all.collect::<Option<_>>()?))
        }
        Task::Table(..) => None,
    }
}

/// Where pieces are read from and written to: all on the device, or all page-locked.
enum Places {
    Device(Vec<DeviceSlice>, Vec<DeviceSlice>),
    Pinned(Vec<PinnedSlice>, Vec<PinnedSlice>),
}

/// Work that was started.
pub(super) enum Started<'w, 'd> {
    /// Nobody will look at its results.
    Unverified(Completion<'w>),
    Verified(Box<Verified<'w, 'd>>),
}

impl<'w, 'd: 'w> Started<'w, 'd> {
    /// Its completion brings the verdict.
    pub(super) fn completion(self) -> Completion<'w> {
        match self {
            Started::Unverified(completion) => completion,
            Started::Verified(verified) => Completion::Pending(verified),
        }
    }

    /// Waits for it; messages whose output is zeros that it should not be, unless they were refused.
    pub(super) fn finish(self) -> Result<Vec<usize>> {
        match self {
            Started::Unverified(completion) => completion.wait().map(|()| Vec::new()),
            Started::Verified(verified) => verified.finish(),
        }
    }
}

/// Starts the work.
pub(super) fn start<'w, 'd: 'w, 'p: 'w>(
    plan: Plan<'p>,
    judge: Judge<'p>,
    work: Work<'w, 'd>,
    waits: Waits,
) -> Result<Started<'w, 'd>> {
    let unverified = |work| plan.submit_unverified(work).map(Started::Unverified);
    let (Some((pass, messages)), Some(memory)) = (messages(&work.task), plan.device.memory()) else {
        return unverified(work);
    };
    let refused_are_zeros = matches!(work.task, Task::Fused(FusedAead::GcmOpen, _));
    let mut wanted = Vec::new();
    if judge.verify == Verify::Full {
        if messages.iter().map(|message| message.data.len()).fold(0, usize::saturating_add) > MOST {
            let reason =
                "more than 1 GiB at once is too much to compare: give it less, or compare samples".into();
            return Err(Error::DeviceFailed { device: plan.device.id(), reason });
        }
        for (index, message) in messages.iter().enumerate() {
            let bytes = message.data.len();
            wanted.extend((0..bytes).step_by(PIECE).map(|at| (index, at / 16, PIECE.min(bytes - at))));
        }
    } else {
        let samples = samples(&judge, messages.iter().map(|message| message.data.len()));
        wanted.extend(samples.iter().map(|sample| (sample.message, sample.number, 16)));
    }
    let Some(places) = places(&messages, &wanted) else { return unverified(work) };
    let pieces = wanted
        .iter()
        .map(|&(index, number, bytes)| {
            let &Resident { message, key, tweak, state, .. } = &messages[index];
            Piece { message, key, tweak, state, number, bytes }
        })
        .collect();
    let stream = work.stream;
    let (input, work, output): (Box<dyn Fetch>, _, Box<dyn Fetch>) = match places {
        Places::Device(from, to) => {
            let input = memory.fetch(&from, stream)?;
            let work = plan.submit_unverified(work)?;
            match memory.fetch(&to, stream) {
                Ok(output) => (input, work, output),
                Err(error) => {
                    // It is under way, and nobody will know what it did.
                    let _ = work.wait();
                    zero(plan, messages.into_iter().map(|message| message.data));
                    return Err(error);
                }
            }
        }
        Places::Pinned(from, to) if waits == Waits::Now => {
            let input = Box::new(Fetched(Box::new(Pinned(from)).wait()?));
            (input, plan.submit_unverified(work)?, Box::new(Pinned(to)))
        }
        Places::Pinned(..) => return unverified(work),
    };
    let messages = messages.into_iter().map(|message| message.data).collect();
    Ok(Started::Verified(Box::new(Verified {
        plan,
        judge,
        pass,
        refused_are_zeros,
        pieces,
        input,
        work,
        output,
        messages,
    })))
}

/// Where the wanted pieces (message, first block, bytes) are, each with the block before it, of which chaining states are made.
/// None if there are no pieces, or of both kinds.
fn places(messages: &[Resident<'_>], wanted: &[(usize, usize, usize)]) -> Option<Places> {
    let (mut device, mut pinned) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    for &(index, number, bytes) in wanted {
        let range = 16 * number.saturating_sub(1)..16 * number + bytes;
        match &messages[index].data {
            Data::Device { from, to, .. } => {
                device.0.push(from.slice(range.clone()));
                device.1.push(to.slice(range));
            }
            Data::Pinned { from, to, .. } => {
                let part = |slice: &PinnedSlice| {
                    let start = slice.range().start;
                    slice.buffer().slice(start + range.start..start + range.end)
                };
                pinned.0.push(part(from));
                pinned.1.push(part(to));
            }
            Data::Host(_) => return None,
        }
    }
    match (device.0.is_empty(), pinned.0.is_empty()) {
        (false, true) => Some(Places::Device(device.0, device.1)),
        (true, false) => Some(Places::Pinned(pinned.0, pinned.1)),
        _ => None,
    }
}

/// What nobody vouches for is no result.
fn zero<'d>(plan: Plan<'_>, messages: impl Iterator<Item = Data<'d>>) {
    for mut data in messages {
        let _ = lockstep_modes::transfer::zero_output(plan.planner(), &mut data);
    }
}

/// Work under way, and what it is compared by.
pub(super) struct Verified<'w, 'd> {
    plan: Plan<'w>,
    judge: Judge<'w>,
    pass: Pass,
    /// Of GCM, the output of a message whose tag was wrong.
    refused_are_zeros: bool,
    pieces: Vec<Piece<'d>>,
    input: Box<dyn Fetch + 'w>,
    work: Completion<'w>,
    output: Box<dyn Fetch + 'w>,
    messages: Vec<Data<'static>>,
}

impl Pending for Verified<'_, '_> {
    fn is_ready(&self) -> bool {
        self.work.is_ready() && self.input.is_ready() && self.output.is_ready()
    }

    fn wait(self: Box<Self>) -> Result<()> {
        // Which messages were refused is not known here.
        self.finish().map(|_| ())
    }
}

impl Verified<'_, '_> {
    /// Messages whose output is zeros that it should not be: those that were refused.
    fn finish(self) -> Result<Vec<usize>> {
        let Verified { plan, judge, pass, refused_are_zeros, pieces, input, work, output, messages } = self;
        work.wait()?;
        let agrees = input
            .wait()
            .and_then(|input| Ok((input, output.wait()?)))
            .and_then(|(input, output)| agree(&judge, pass, refused_are_zeros, &pieces, &input, &output));
        let error = match agrees {
            Ok(Some(zeros)) => return Ok(zeros),
            Ok(None) => Error::WrongResult { device: plan.device.id() },
            Err(error) => error,
        };
        zero(plan, messages.into_iter());
        Err(error)
    }
}

/// Input and output have each piece with the block before it, if there is one, one behind the other. None if they do not agree;
/// else the messages that are zeros, where these may be.
fn agree(
    judge: &Judge<'_>,
    pass: Pass,
    refused_are_zeros: bool,
    pieces: &[Piece<'_>],
    mut input: &[u8],
    mut output: &[u8],
) -> Result<Option<Vec<usize>>> {
    let bytes = input.len();
    let mut again: Vec<Zeroizing<Vec<u8>>> = Vec::new();
    let mut states: Zeroizing<Vec<Block>> = Zeroizing::new(Vec::new());
    let mut found = Vec::new();
    for piece in pieces {
        let before = 16 * usize::from(piece.number > 0);
        let (read, rest) = input.split_at(before + piece.bytes);
        input = rest;
        let (written, rest) = output.split_at(before + piece.bytes);
        output = rest;
        let block = |bytes: &[u8]| bytes[..16].try_into().expect("16 bytes");
        states.push(match pass {
            Pass::Ctr | Pass::Ctr32 => counter_after(pass, &piece.state, piece.number as u128),
            _ => state_of(pass, &piece.state, piece.number, |_| block(read), |_| block(written)),
        });
        again.push(Zeroizing::new(read[before..].to_vec()));
        found.push(&written[before..]);
    }
    let mut segments: Vec<Segment<'_>> = pieces
        .iter()
        .zip(&mut again)
        .zip(states.iter_mut())
        .map(|((piece, data), state)| {
            let at = piece.number as u64;
            let tweak = piece.tweak.map(|tweak| Tweak { position: tweak.position.wrapping_add(at), ..tweak });
            Segment { key: piece.key, tweak, state, data: Data::in_place(data) }
        })
        .collect();
    let Some(first) = segments.first() else { return Ok(Some(Vec::new())) };
    let size = first.key.size();
    judge.planner.plan(Operation::Pass(pass), size, bytes, None)?.run(Task::Pass(pass, &mut segments))?;
    drop(segments);
    let mut zeros = Vec::new();
    for ((again, found), piece) in again.iter().zip(found).zip(pieces) {
        if again[..] != *found {
            if !refused_are_zeros || found.iter().any(|&byte| byte != 0) {
                return Ok(None);
            }
            zeros.push(piece.message);
        }
    }
    Ok(Some(zeros))
}
