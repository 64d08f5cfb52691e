//! Verification: results of devices are compared with results of the processor that runs this program, because GPUs can
//! return wrong results.
//!
//! Work on host memory by any other device is verified before its results are returned: the processor computes a sample
//! of the blocks, or all blocks, again. If the result is wrong, the trusted planner does the work again, and
//! [`crate::Planner::incidents`] reports the error. The same happens if the device failed and the user did not name a
//! device or kernel. To make this possible, input that the work overwrites is copied first. Chaining states are compared
//! as well.
//!
//! A sample of blocks does not verify MACs and tags. Therefore, one in 256 messages is computed again as a whole. A message
//! that has more than a 16th of the bytes of its call, such as a single message, is not sampled: if the work is a MAC, the
//! processor always computes it again, which takes as long as the MAC on the processor alone. If the work is a fused AEAD,
//! the processor does all work on the message again in the first call of the operation and then in one of 256 of its calls.
//!
//! For work on device memory and on page-locked memory, samples of blocks are compared too, but tags and MACs are not: see
//! `resident.rs`.
//!
//! Only [`Verify::Full`] detects wrong bytes after the last whole block. Wrong results of work on host or page-locked memory
//! are never detected if the work is submitted without [`crate::Plan::run`].

use zeroize::Zeroizing;

mod pieces;
mod resident;

use lockstep_core::backend::{Completion, Device, KernelId};
use lockstep_core::data::{Data, HostData};
use lockstep_core::work::{
    AeadMessage, FusedAead, Operation, Pass, Segment, Status, Stream, Tag, Task, Work,
};
use lockstep_core::{Block, Error, Result};
use lockstep_modes::{Direction, Executor, gcm, gcm_siv, ocb, transfer};
use pieces::Piece;
use resident::Waits;

/// How results of devices are verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Verify {
    /// No verification.
    Off,
    /// Compares one block in 64 KiB, at places that change from call to call. Also compares all whole blocks of each message whose
    /// whole blocks have at most 256 bytes together, up to 64 KiB in a call, and one in 256 of the MACs and tags. A message that has
    /// more than a 16th of the bytes of its call is not sampled: its MAC is always compared, and its tag in a fused AEAD is compared
    /// in the first call of the operation and then in one of 256 calls of the operation.
    #[default]
    Sample,
    /// Everything is computed again.
    Full,
}

impl Verify {
    /// The name of this kind of verification in options and settings.
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

/// The settings for the verification of one call of a kernel.
#[derive(Clone, Copy)]
pub(crate) struct Verifier<'p> {
    /// The device that is verified.
    pub(crate) device: &'p dyn Device,
    pub(crate) kernel: KernelId,
    /// Gives access to the memory of the device.
    pub(crate) executor: &'p dyn Executor,
    /// An executor over the trusted devices.
    pub(crate) trusted: &'p dyn Executor,
    pub(crate) verify: Verify,
    /// Selects the samples of this call.
    pub(crate) seed: usize,
    /// True if failed work is repeated too; otherwise only work with a wrong result is repeated.
    pub(crate) repeats_failed_work: bool,
}

impl Verifier<'_> {
    fn wrong_result(&self) -> Error {
        Error::WrongResult { device: self.device.id() }
    }
}

/// The reason why the trusted planner did the work.
pub(crate) struct Incident {
    pub(crate) error: Error,
    /// True for a failure or a wrong result of the device, false if the host lacked the memory to verify the results.
    pub(crate) is_failure: bool,
}

/// A copy of data. `None` if there is not enough memory.
fn copy_of(data: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let mut copy = Zeroizing::new(Vec::new());
    copy.try_reserve_exact(data.len()).ok()?;
    copy.extend_from_slice(data);
    Some(copy)
}

/// Copies of the input that the work overwrites.
struct Originals(Vec<Option<Zeroizing<Vec<u8>>>>);

impl Originals {
    /// Copies the input that the work overwrites. `None` if there is not enough memory.
    fn keep(messages: &Task<'_, '_>) -> Option<Originals> {
        let mut copies = Vec::new();
        copies.try_reserve_exact(messages.len()).ok()?;
        for index in 0..messages.len() {
            copies.push(match messages.data(index) {
                Data::Host(HostData::InPlace(data)) => Some(copy_of(data)?),
                _ => None,
            });
        }
        Some(Originals(copies))
    }

    /// The input of a message, even after the work has overwritten it.
    fn input<'a>(&'a self, messages: &'a Task<'_, '_>, index: usize) -> &'a [u8] {
        match (&self.0[index], messages.data(index)) {
            (Some(copy), _) => copy,
            (None, Data::Host(data)) => data.input(),
            (None, _) => &[],
        }
    }
}

/// True for a message of an AEAD that was refused. Its output is all zeros.
fn is_refused(all: &Task<'_, '_>, index: usize) -> bool {
    all.aead(index).is_some_and(|message| message.status != Status::Done)
}

fn output<'a>(messages: &'a mut Task<'_, '_>, index: usize) -> &'a mut [u8] {
    match messages.data_mut(index) {
        Data::Host(data) => data.output(),
        _ => &mut [],
    }
}

/// The pass that processes the data of an operation. For GCM, this is CTR from the second counter on. For OCB3, it is ECB;
/// the offsets are XORed to the data before and after the pass.
///
/// # Errors
/// [`Error::Unsupported`] for operations that only trusted devices offer.
fn pass_of(operation: Operation) -> Result<Pass> {
    match operation {
        Operation::Pass(pass) => Ok(pass),
        Operation::Fused(FusedAead::GcmSeal | FusedAead::GcmOpen) => Ok(Pass::Ctr32),
        Operation::Fused(FusedAead::OcbSeal) => Ok(Pass::EcbEncrypt),
        Operation::Fused(FusedAead::OcbOpen) => Ok(Pass::EcbDecrypt),
        Operation::Fused(FusedAead::GcmSivSeal | FusedAead::GcmSivOpen) => {
            Err(operation.unsupported_by("the verification of results"))
        }
    }
}

/// The nonce of a message of OCB3 and the length of its tag. The offsets are computed from these two values.
fn ocb_nonce<'d>(all: &Task<'_, 'd>, index: usize) -> Option<(&'d [u8], usize)> {
    let Task::Fused(FusedAead::OcbSeal | FusedAead::OcbOpen, messages) = all else { return None };
    Some((messages[index].nonce, messages[index].tag.len()))
}

/// Runs work and verifies the results. Returns the reason if the trusted planner did the work.
pub(crate) fn run(verifier: Verifier<'_>, work: Work<'_, '_>) -> Result<Option<Incident>> {
    let mut messages = work.task;
    // The chaining states and offsets that the verification computes require valid nonces.
    messages.check_lengths()?;
    let (operation, states) = (messages.operation(), messages.states());
    let call = Call { verifier, operation, pass: pass_of(operation)?, states: &states };
    // If an operation writes to its data, the device refuses read-only data.
    let is_host = |index| match messages.data(index) {
        Data::Host(HostData::ReadOnly(_)) => operation.is_read_only(),
        data => matches!(data, Data::Host(_)),
    };
    let outcome = if (0..messages.len()).all(is_host) {
        call.run_on_host(&mut messages)
    } else {
        call.run_resident(work.stream, &mut messages).map(|()| None)
    };
    outcome.inspect_err(|_| call.reset(&mut messages))
}

/// Starts work. Results that stay on the device are verified when the completion is waited for.
pub(crate) fn submit<'w, 'd: 'w, 'p: 'w>(
    verifier: Verifier<'p>,
    work: Work<'w, 'd>,
) -> Result<Completion<'w>> {
    work.task.check_lengths()?;
    resident::start(verifier, work.stream, work.task, Waits::Later)
        .map(|started| Completion::Pending(Box::new(started)))
}

/// A call whose results are verified.
struct Call<'a> {
    verifier: Verifier<'a>,
    operation: Operation,
    pass: Pass,
    /// The chaining states before the work.
    states: &'a [Block],
}

impl Call<'_> {
    fn run_resident(&self, stream: Stream, all: &mut Task<'_, '_>) -> Result<()> {
        let verifier = self.verifier;
        let zeroed = resident::start(verifier, stream, all.reborrow(), Waits::Now)?.finish()?;
        // Only the output of refused messages may be all zeros.
        if zeroed.iter().all(|&index| is_refused(all, index)) {
            return Ok(());
        }
        for index in 0..all.len() {
            let _ = transfer::zero_output(verifier.executor, all.data_mut(index));
        }
        Err(verifier.wrong_result())
    }

    /// Returns the reason if the trusted planner did the work.
    fn run_on_host(&self, all: &mut Task<'_, '_>) -> Result<Option<Incident>> {
        let verifier = &self.verifier;
        let no_memory = || {
            let reason = "no memory to verify its results by".into();
            let error = Error::DeviceFailed { device: verifier.device.id(), reason };
            Incident { error, is_failure: false }
        };
        let failure = |error| Incident { error, is_failure: true };
        let Some(originals) = Originals::keep(all) else {
            return self.run_trusted(all.reborrow()).map(|()| Some(no_memory()));
        };
        let outcome = verifier
            .device
            .submit(verifier.kernel, all.reborrow().into())
            .and_then(Completion::wait)
            .and_then(|()| self.agrees(&originals, all));
        let incident = match outcome {
            Ok(Some(true)) => return Ok(None),
            Ok(Some(false)) => Ok(failure(verifier.wrong_result())),
            Ok(None) => Ok(no_memory()),
            Err(error @ Error::DeviceFailed { .. }) if verifier.repeats_failed_work => Ok(failure(error)),
            Err(error) => Err(error),
        };
        let repeated = incident.and_then(|incident| {
            self.reset(all);
            for (index, original) in originals.0.iter().enumerate() {
                if let Some(original) = original {
                    output(all, index).copy_from_slice(original);
                }
            }
            self.run_trusted(all.reborrow()).map(|()| Some(incident))
        });
        repeated.inspect_err(|_| all.zero_host_output())
    }

    /// Marks all messages as not processed, and restores the chaining states.
    fn reset(&self, all: &mut Task<'_, '_>) {
        all.invalidate(true);
        for (index, state) in self.states.iter().enumerate() {
            all.set_chaining_state(index, *state);
        }
    }

    /// Does the work with the trusted devices.
    fn run_trusted(&self, all: Task<'_, '_>) -> Result<()> {
        let trusted = self.verifier.trusted;
        match all {
            Task::Pass(pass, segments) => trusted.run_pass(pass, segments),
            Task::Fused(fused, messages) => {
                let direction = if fused.opens() { Direction::Decrypt } else { Direction::Encrypt };
                let run = match fused {
                    FusedAead::GcmSeal | FusedAead::GcmOpen => gcm::run,
                    FusedAead::OcbSeal | FusedAead::OcbOpen => ocb::run,
                    FusedAead::GcmSivSeal | FusedAead::GcmSivOpen => gcm_siv::run,
                };
                run(trusted, direction, messages)
            }
        }
    }

    /// True if the results are right, as far as they are verified. `None` if there is not enough memory.
    fn agrees(&self, originals: &Originals, all: &mut Task<'_, '_>) -> Result<Option<bool>> {
        let count = all.len();
        if self.verifier.verify == Verify::Full {
            return self.whole_messages_agree(originals, all, &(0..count).collect::<Vec<_>>());
        }
        let len = |index| all.data(index).len() + all.aead(index).map_or(0, |message| message.aad.len());
        let lengths: Vec<usize> = (0..count).map(len).collect();
        let reads_only = self.operation.is_read_only();
        let some = pieces::sampled_messages(&self.verifier, &lengths, reads_only);
        let samples_agree = reads_only || self.samples_agree(originals, all)?;
        match self.operation {
            Operation::Pass(_) if !reads_only => {
                Ok(Some(samples_agree && self.chaining_states_agree(originals, all)))
            }
            _ if samples_agree => self.whole_messages_agree(originals, all, &some),
            _ => Ok(Some(false)),
        }
    }

    /// Compares the chaining states after whole blocks with the states that follow from input and output.
    fn chaining_states_agree(&self, originals: &Originals, all: &mut Task<'_, '_>) -> bool {
        (0..all.len()).all(|index| {
            let bytes = all.data(index).len();
            if bytes < 16 || !bytes.is_multiple_of(16) {
                return true;
            }
            let last: Block = *output(all, index).last_chunk().expect("16 bytes at least");
            let input: Block = *originals.input(all, index).last_chunk().expect("16 bytes at least");
            all.state(index) == pieces::state_of(self.pass, &self.states[index], bytes / 16, &input, &last)
        })
    }

    /// Computes sampled blocks again.
    fn samples_agree(&self, originals: &Originals, all: &mut Task<'_, '_>) -> Result<bool> {
        // The output of a refused message is all zeros.
        let lengths: Vec<usize> =
            (0..all.len()).map(|i| if is_refused(all, i) { 0 } else { all.data(i).len() }).collect();
        let mut pieces = Vec::new();
        let sampled = pieces::sampled_pieces(&self.verifier, lengths);
        // The vectors get their full capacity at the start, because a vector that grows leaves a copy of plaintext in freed
        // memory that is not wiped. The capacity includes one more block for each piece, because a piece may need the
        // preceding block.
        let room: usize = sampled.iter().map(|(_, bytes)| bytes + 16).sum();
        let [mut input, mut found] = [0; 2].map(|_| Zeroizing::new(Vec::with_capacity(room)));
        for (place, bytes) in sampled {
            let piece = Piece::of(all, self.states[place.0], place, bytes);
            input.extend_from_slice(&originals.input(all, place.0)[piece.range()]);
            found.extend_from_slice(&output(all, place.0)[piece.range()]);
            pieces.push(piece);
        }
        Ok(pieces::compare(&self.verifier, self.pass, &pieces, &input, &found)?.is_empty())
    }

    /// Computes the chosen messages again, each as a whole, with their chaining states, tags and statuses. `None` if there is not
    /// enough memory.
    fn whole_messages_agree(
        &self,
        originals: &Originals,
        all: &mut Task<'_, '_>,
        chosen: &[usize],
    ) -> Result<Option<bool>> {
        let reads_only = self.operation.is_read_only();
        // Input that is only read is not copied.
        let copy = |&index| copy_of(if reads_only { &[] } else { originals.input(all, index) });
        let copies: Option<Vec<_>> = chosen.iter().map(copy).collect();
        let Some(mut copies) = copies else { return Ok(None) };
        // These blocks are the chaining states of segments, or they receive the tags of messages.
        let mut blocks =
            Zeroizing::new(chosen.iter().map(|&index| self.states[index]).collect::<Vec<Block>>());
        let again = chosen.iter().zip(&mut copies).zip(blocks.iter_mut());
        let mut statuses = Vec::new();
        match &*all {
            Task::Pass(pass, segments) => {
                let mut again: Vec<Segment<'_>> = again
                    .map(|((&index, copy), state)| {
                        let data = match reads_only {
                            true => Data::read_only(originals.input(all, index)),
                            false => Data::in_place(copy),
                        };
                        Segment { key: segments[index].key, tweak: segments[index].tweak, state, data }
                    })
                    .collect();
                self.run_trusted(Task::Pass(*pass, &mut again))?;
            }
            Task::Fused(fused, messages) => {
                let mut again: Vec<AeadMessage<'_>> = again
                    .map(|((&index, copy), block)| {
                        let AeadMessage { key, nonce, aad, ref tag, .. } = messages[index];
                        let tag = match tag {
                            Tag::Write(written) => Tag::Write(&mut block[..written.len()]),
                            Tag::Expect(expected) => Tag::Expect(expected),
                        };
                        let (data, status) = (Data::in_place(copy), Status::Pending);
                        AeadMessage { key, nonce, aad, data, tag, status }
                    })
                    .collect();
                self.run_trusted(Task::Fused(*fused, &mut again))?;
                statuses.extend(again.iter().map(|message| message.status));
            }
        }
        let mut computed = chosen.iter().zip(&copies).zip(blocks.iter()).enumerate();
        Ok(Some(computed.all(|(i, ((&index, copy), block))| {
            let block_agrees = match all.aead(index) {
                None => all.state(index) == *block,
                Some(message) => {
                    let tag_agrees = match &message.tag {
                        Tag::Write(written) => written[..] == block[..written.len()],
                        Tag::Expect(_) => true,
                    };
                    tag_agrees && message.status == statuses[i]
                }
            };
            block_agrees && (reads_only || output(all, index) == &copy[..])
        })))
    }
}
