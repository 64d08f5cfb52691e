//! Verification of results that stay on a device. Sampled input and output are fetched on the stream of the work, and
//! compared when the work is waited for. Results in page-locked memory are verified in the same way if the work is waited
//! for immediately. Their input is read before the work starts, after all other users of that memory have finished.
//!
//! The work is not repeated, because its input may have been overwritten. If the output is wrong, it is zeroed, and the
//! completion fails. The following is never compared:
//! - messages described in device memory ([`Task::Table`]), because their keys never reach the host
//! - chaining states, tags and MACs
//! - calls whose data are in memory of several kinds
//!
//! The last, partial block of a message of OCB3 is compared if everything is compared, but not in samples.

use zeroize::Zeroizing;

use super::pieces::{self, Piece};
use super::{Verifier, Verify, ocb_nonce, pass_of};
use crate::target::Target;
use lockstep_core::backend::{Completion, Fetch, Pending};
use lockstep_core::data::{Data, DeviceSlice, PinnedSlice};
use lockstep_core::error::{Error, Result};
use lockstep_core::messages::Messages;
use lockstep_core::work::{Operation, Pass, Stream, Task, Work};

/// Bytes of a piece if everything is compared. A piece consists of whole blocks and is long enough for the CPU's full speed
/// (docs/measured/2026-11-22-zen4-2vcpu-calibrate.md).
const PIECE: usize = 64 * 1024;

/// Limits the memory that is used if everything is compared. The bytes of a call are then held twice on the host and once
/// more on the device.
const MAX_FULL: usize = 1 << 30;

/// When the work will be waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    Now,
    Later,
}

/// Parts of page-locked memory, which [`Fetch::wait`] reads.
struct Pinned(Vec<PinnedSlice>);

impl Fetch for Pinned {
    fn is_ready(&self) -> bool {
        true
    }

    fn wait(self: Box<Self>) -> Result<Zeroizing<Vec<u8>>> {
        // The vector gets its full capacity at the start, because a vector that grows leaves copies in freed memory.
        let mut all = Zeroizing::new(Vec::with_capacity(self.0.iter().map(PinnedSlice::len).sum()));
        self.0.iter().for_each(|slice| all.extend_from_slice(&slice.buffer().lock()[slice.range()]));
        Ok(all)
    }
}

/// Bytes that have already been read.
struct Fetched(Zeroizing<Vec<u8>>);

impl Fetch for Fetched {
    fn is_ready(&self) -> bool {
        true
    }

    fn wait(self: Box<Self>) -> Result<Zeroizing<Vec<u8>>> {
        Ok(self.0)
    }
}

/// The input and the output of the pieces: all in device memory, or all in page-locked memory.
enum Places {
    Device(Vec<DeviceSlice>, Vec<DeviceSlice>),
    Pinned(Vec<PinnedSlice>, Vec<PinnedSlice>),
}

/// Work that was started.
pub(super) enum Started<'w, 'd> {
    /// Work whose results are not verified.
    Unverified(Completion<'w>),
    Verified(Box<Verified<'w, 'd>>),
}

impl<'w, 'd: 'w> Started<'w, 'd> {
    /// A completion that fails if the results are wrong.
    pub(super) fn completion(self) -> Completion<'w> {
        match self {
            Started::Unverified(completion) => completion,
            Started::Verified(verified) => Completion::Pending(verified),
        }
    }

    /// Waits for the work. Returns the messages whose output is all zeros. This is an error unless these messages were
    /// refused.
    pub(super) fn finish(self) -> Result<Vec<usize>> {
        match self {
            Started::Unverified(completion) => completion.wait().map(|()| Vec::new()),
            Started::Verified(verified) => verified.finish(),
        }
    }
}

/// Starts the work.
pub(super) fn start<'w, 'd: 'w, 'p: 'w>(
    target: Target<'p>,
    verifier: Verifier<'p>,
    work: Work<'w, 'd>,
    waits: Waits,
) -> Result<Started<'w, 'd>> {
    let (stream, operation) = (work.stream, work.task.operation());
    let pass = pass_of(operation)?;
    let opens = matches!(operation, Operation::Fused(fused) if fused.opens());
    let (all, memory) = match (Messages::of(work.task), target.device.memory()) {
        (Ok(all), Some(memory)) if !pass.is_read_only() => (all, memory),
        (Ok(all), _) => return unverified(target, stream, all.into_task(operation)),
        (Err(table), _) => return unverified(target, stream, Task::Table(operation, table)),
    };
    all.check_lengths(operation)?;
    let wanted = wanted(target, &verifier, operation, &all)?;
    let places = places(&all, &wanted);
    let outputs = outputs(&all);
    let task = all.into_task(operation);
    let (input, completion, output): (Box<dyn Fetch>, _, Box<dyn Fetch>) = match places {
        Some(Places::Device(from, to)) => {
            let input = memory.fetch(&from, stream)?;
            let completion = target.submit(Work { stream, task })?;
            match memory.fetch(&to, stream) {
                Ok(output) => (input, completion, output),
                Err(error) => {
                    // The work has started, but its results cannot be verified.
                    let _ = completion.wait();
                    zero(target, outputs);
                    return Err(error);
                }
            }
        }
        Some(Places::Pinned(from, to)) if waits == Waits::Now => {
            let input = Box::new(Fetched(Box::new(Pinned(from)).wait()?));
            (input, target.submit(Work { stream, task })?, Box::new(Pinned(to)))
        }
        _ => return unverified(target, stream, task),
    };
    let pieces = wanted;
    let verified = Verified { target, verifier, pass, opens, pieces, input, completion, output, outputs };
    Ok(Started::Verified(Box::new(verified)))
}

fn unverified<'w, 'd: 'w, 'p: 'w>(
    target: Target<'p>,
    stream: Stream,
    task: Task<'w, 'd>,
) -> Result<Started<'w, 'd>> {
    target.submit(Work { stream, task }).map(Started::Unverified)
}

/// The pieces to compare.
fn wanted<'d>(
    target: Target<'_>,
    verifier: &Verifier<'_>,
    operation: Operation,
    all: &Messages<'_, 'd>,
) -> Result<Vec<Piece<'d>>> {
    let len = |index| match (all.data(index).len(), ocb_nonce(operation, all.aead(index))) {
        (len, None) => len,
        // A partial block of OCB3 is a piece of its own.
        (len, Some(_)) => len & !15,
    };
    let lengths: Vec<usize> = (0..all.len()).map(len).collect();
    let piece = |message, number, bytes| {
        let (key, tweak, state) = (all.key(message), all.tweak(message), all.state(message));
        let ocb_nonce = ocb_nonce(operation, all.aead(message));
        Piece { message, key, tweak, state, ocb_nonce, number, bytes }
    };
    if verifier.verify != Verify::Full {
        let samples = pieces::sampled_blocks(verifier, &lengths);
        return Ok(samples.into_iter().map(|(message, number)| piece(message, number, 16)).collect());
    }
    if lengths.iter().copied().fold(0, usize::saturating_add) > MAX_FULL {
        let reason =
            "more than 1 GiB at once is too much to compare: give it less, or compare samples".into();
        return Err(Error::DeviceFailed { device: target.device.id(), reason });
    }
    let mut pieces = Vec::new();
    for (message, &bytes) in lengths.iter().enumerate() {
        pieces.extend((0..bytes).step_by(PIECE).map(|at| piece(message, at / 16, PIECE.min(bytes - at))));
        let rest = all.data(message).len() - bytes;
        pieces.extend((rest > 0).then(|| piece(message, bytes / 16, rest)));
    }
    Ok(pieces)
}

/// The memory of the pieces. `None` if there are no pieces, or if some data are in host memory, or if the data are in memory
/// of both kinds.
fn places(all: &Messages<'_, '_>, wanted: &[Piece<'_>]) -> Option<Places> {
    let (mut device, mut pinned) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    let is_host = |index| matches!(all.data(index), Data::Host(data) if !data.is_empty());
    if (0..all.len()).any(is_host) {
        return None;
    }
    for piece in wanted {
        let range = piece.range();
        match all.data(piece.message) {
            Data::Device { from, to, .. } => {
                device.0.push(from.slice(range.clone()));
                device.1.push(to.slice(range));
            }
            Data::Pinned { from, to, .. } => {
                pinned.0.push(from.slice(range.clone()));
                pinned.1.push(to.slice(range));
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

/// Handles on the output of the messages. The handles remain valid after the borrow of the messages has ended.
fn outputs(all: &Messages<'_, '_>) -> Vec<Data<'static>> {
    let handle = |index| match all.data(index) {
        Data::Device { to, .. } => Data::on_device(to.clone(), to.clone()).ok(),
        Data::Pinned { to, .. } => Data::pinned(to.clone(), to.clone()).ok(),
        Data::Host(_) => None,
    };
    (0..all.len()).filter_map(handle).collect()
}

/// Zeroes the output, so that wrong or unverified results are not taken for correct results.
fn zero(target: Target<'_>, outputs: Vec<Data<'static>>) {
    for mut data in outputs {
        let _ = lockstep_modes::transfer::zero_output(target.executor, &mut data);
    }
}

/// Work in progress, and the data that its verification needs.
pub(super) struct Verified<'w, 'd> {
    target: Target<'w>,
    verifier: Verifier<'w>,
    pass: Pass,
    /// True if the work opens messages of an AEAD. Such work zeroes the output of messages that it refuses.
    opens: bool,
    pieces: Vec<Piece<'d>>,
    input: Box<dyn Fetch + 'w>,
    completion: Completion<'w>,
    output: Box<dyn Fetch + 'w>,
    outputs: Vec<Data<'static>>,
}

impl Pending for Verified<'_, '_> {
    fn is_ready(&self) -> bool {
        self.completion.is_ready() && self.input.is_ready() && self.output.is_ready()
    }

    fn wait(self: Box<Self>) -> Result<()> {
        // The statuses are borrowed elsewhere, so it is not known here which messages were refused.
        self.finish().map(|_| ())
    }
}

impl Verified<'_, '_> {
    /// Waits for the work and compares the results. Returns the messages whose output is all zeros.
    fn finish(self) -> Result<Vec<usize>> {
        let Verified { target, verifier, pass, opens, pieces, input, completion, output, outputs } = self;
        completion.wait()?;
        let different = input
            .wait()
            .and_then(|input| Ok((input, output.wait()?)))
            .and_then(|(input, output)| pieces::compare(&verifier, pass, &pieces, &input, &output));
        let error = match different {
            Ok(all) if all.iter().all(|&(_, is_zero)| opens && is_zero) => {
                return Ok(all.into_iter().map(|(message, _)| message).collect());
            }
            Ok(_) => Error::WrongResult { device: target.device.id() },
            Err(error) => error,
        };
        zero(target, outputs);
        Err(error)
    }
}
