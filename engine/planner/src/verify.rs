//! Verification: results of devices are compared with results of the processor that runs this program, because GPUs can
//! return wrong results.
//!
//! Work on host memory by any other device is verified before its results are returned: the processor computes a sample
//! of the blocks, or all blocks, again. If the result is wrong, the trusted planner does the work again, and
//! [`crate::Planner::incidents`] reports the error. The same happens if the device failed and the user did not name a
//! device or kernel. To make this possible, input that the work overwrites is copied first. Chaining states are compared
//! as well.
//!
//! A sample of blocks does not verify MACs and tags. Therefore, one in 256 messages is computed again as a whole. For work
//! on device memory and on page-locked memory, samples of blocks are compared too, but tags and MACs are not: see
//! `resident.rs`.
//!
//! Only [`Verify::Full`] detects a wrong MAC of a single long message, and wrong bytes after the last whole block. Wrong
//! results of work on host or page-locked memory are never detected if the work is submitted without [`crate::Plan::run`].

use zeroize::Zeroizing;

mod pieces;
mod resident;

use crate::target::Target;
use lockstep_core::backend::Completion;
use lockstep_core::data::{Data, HostData};
use lockstep_core::error::{Error, Result};
use lockstep_core::key::Block;
use lockstep_core::messages::Messages;
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Pass, Segment, Status, Tag, Task, Work};
use lockstep_modes::{Executor, gcm, ocb, transfer};
use pieces::Piece;
use resident::Waits;

/// How results of devices are verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verify {
    /// No verification.
    Off,
    /// One block in 64 KiB, at places that change from call to call.
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

/// The verification of one call.
#[derive(Clone, Copy)]
pub(crate) struct Verifier<'p> {
    /// An executor over the trusted devices.
    pub(crate) trusted: &'p dyn Executor,
    pub(crate) verify: Verify,
    /// Selects the samples of this call.
    pub(crate) seed: usize,
    /// True if failed work is repeated too; otherwise only work with a wrong result is repeated.
    pub(crate) repeats_failed_work: bool,
}

/// Copies of the input that the work overwrites.
struct Originals(Vec<Option<Zeroizing<Vec<u8>>>>);

impl Originals {
    /// Copies the input that the work overwrites. `None` if there is not enough memory.
    fn keep(messages: &Messages<'_, '_>) -> Option<Originals> {
        let mut copies = Vec::new();
        copies.try_reserve_exact(messages.len()).ok()?;
        for index in 0..messages.len() {
            copies.push(match messages.data(index) {
                Data::Host(HostData::InPlace(data)) => {
                    let mut copy = Vec::new();
                    copy.try_reserve_exact(data.len()).ok()?;
                    copy.extend_from_slice(data);
                    Some(Zeroizing::new(copy))
                }
                _ => None,
            });
        }
        Some(Originals(copies))
    }

    /// The input of a message, even after the work has overwritten it.
    fn input<'a>(&'a self, messages: &'a Messages<'_, '_>, index: usize) -> &'a [u8] {
        match (&self.0[index], messages.data(index)) {
            (Some(copy), _) => copy,
            (None, Data::Host(data)) => data.input(),
            (None, _) => &[],
        }
    }
}

/// True if the data are in host memory and fit the work: read-only data are allowed only if `reads_only` is true. If the
/// result is false, either the device refuses the data, or `resident.rs` verifies the work.
fn is_host(data: &Data<'_>, reads_only: bool) -> bool {
    match data {
        Data::Host(HostData::ReadOnly(_)) => reads_only,
        data => matches!(data, Data::Host(_)),
    }
}

fn output<'a>(messages: &'a mut Messages<'_, '_>, index: usize) -> &'a mut [u8] {
    match messages.data_mut(index) {
        Data::Host(data) => data.output(),
        _ => &mut [],
    }
}

/// The operation and the messages of a task. Returns the task itself as the error if its messages are described in device
/// memory.
fn messages<'w, 'd>(task: Task<'w, 'd>) -> std::result::Result<(Operation, Messages<'w, 'd>), Task<'w, 'd>> {
    match task {
        Task::Pass(pass, segments) => Ok((Operation::Pass(pass), Messages::Segments(segments))),
        Task::Fused(fused, messages) => Ok((Operation::Fused(fused), Messages::Aead(messages))),
        Task::Table(..) => Err(task),
    }
}

fn task<'w, 'd>(operation: Operation, messages: Messages<'w, 'd>) -> Task<'w, 'd> {
    match (operation, messages) {
        (Operation::Pass(pass), Messages::Segments(segments)) => Task::Pass(pass, segments),
        (Operation::Fused(fused), Messages::Aead(messages)) => Task::Fused(fused, messages),
        _ => unreachable!("passes have segments, and fused AEADs have messages"),
    }
}

/// The pass that processes the data of an operation. For GCM, this is CTR from the second counter on. For OCB3, it is ECB,
/// with offsets before and after.
///
/// # Errors
/// [`Error::Unsupported`] for operations that only trusted devices offer.
fn pass_of(operation: Operation) -> Result<Pass> {
    match operation {
        Operation::Pass(pass) => Ok(pass),
        Operation::Fused(FusedAead::GcmSeal | FusedAead::GcmOpen) => Ok(Pass::Ctr32),
        Operation::Fused(FusedAead::OcbSeal) => Ok(Pass::EcbEncrypt),
        Operation::Fused(FusedAead::OcbOpen) => Ok(Pass::EcbDecrypt),
        Operation::Fused(_) => Err(operation.unsupported_by("the verification of results")),
    }
}

/// The nonce of a message of OCB3, and the length of its tag: the offsets follow from them.
fn ocb_nonce<'d>(operation: Operation, message: Option<&AeadMessage<'d>>) -> Option<(&'d [u8], usize)> {
    let is_ocb = matches!(operation, Operation::Fused(FusedAead::OcbSeal | FusedAead::OcbOpen));
    message.filter(|_| is_ocb).map(|message| (message.nonce, message.tag.len()))
}

/// Checks the lengths of fused AEADs. The chaining states and offsets that the verification computes require valid nonces.
fn check_lengths(operation: Operation, all: &Messages<'_, '_>) -> Result<()> {
    let Operation::Fused(fused) = operation else { return Ok(()) };
    let mut aeads = (0..all.len()).filter_map(|index| all.aead(index));
    aeads.try_for_each(|message| fused.check_lengths(message))
}

/// Runs work and verifies the results.
pub(crate) fn run(target: Target<'_>, verifier: &Verifier<'_>, work: Work<'_, '_>) -> Result<()> {
    let stream = work.stream;
    let (operation, mut all) = match messages(work.task) {
        Ok(found) => found,
        Err(task) => return target.submit(Work { stream, task })?.wait(),
    };
    pass_of(operation)?;
    check_lengths(operation, &all)?;
    let states = Zeroizing::new((0..all.len()).map(|index| all.state(index)).collect::<Vec<Block>>());
    let reads_only = operation.is_read_only();
    let outcome = if (0..all.len()).all(|index| is_host(all.data(index), reads_only)) {
        run_on_host(target, verifier, operation, &mut all, &states)
    } else {
        run_resident(target, verifier, stream, operation, &mut all)
    };
    outcome.inspect_err(|_| {
        all.invalidate(true);
        for (index, state) in states.iter().enumerate() {
            all.set_chaining_state(index, *state);
        }
    })
}

fn run_resident(
    target: Target<'_>,
    verifier: &Verifier<'_>,
    stream: lockstep_core::work::Stream,
    operation: Operation,
    all: &mut Messages<'_, '_>,
) -> Result<()> {
    let work = Work { stream, task: task(operation, all.reborrow()) };
    let zeroed = resident::start(target, *verifier, work, Waits::Now)?.finish()?;
    // Only the output of refused messages may be all zeros.
    let is_refused = |index: &usize| all.aead(*index).is_some_and(|message| message.status != Status::Done);
    if zeroed.iter().all(is_refused) {
        return Ok(());
    }
    for index in 0..all.len() {
        let _ = transfer::zero_output(target.executor, all.data_mut(index));
    }
    Err(Error::WrongResult { device: target.device.id() })
}

/// Starts work. Results that stay on the device are verified when the completion is waited for.
pub(crate) fn submit<'w, 'd: 'w, 'p: 'w>(
    target: Target<'p>,
    verifier: Verifier<'p>,
    work: Work<'w, 'd>,
) -> Result<Completion<'w>> {
    resident::start(target, verifier, work, Waits::Later).map(resident::Started::completion)
}

fn run_on_host(
    target: Target<'_>,
    verifier: &Verifier<'_>,
    operation: Operation,
    all: &mut Messages<'_, '_>,
    states: &[Block],
) -> Result<()> {
    let Some(originals) = Originals::keep(all) else {
        let reason = "no memory to verify its results by".into();
        target.incidents.record_incident(Error::DeviceFailed { device: target.device.id(), reason });
        return run_trusted(verifier, operation, all.reborrow());
    };
    let outcome = target
        .submit(task(operation, all.reborrow()))
        .and_then(Completion::wait)
        .and_then(|()| agrees(verifier, operation, all, &originals, states));
    let incident = match outcome {
        Ok(true) => return Ok(()),
        Ok(false) => Ok(Error::WrongResult { device: target.device.id() }),
        Err(error @ Error::DeviceFailed { .. }) if verifier.repeats_failed_work => Ok(error),
        Err(error) => Err(error),
    };
    let repeated = incident.and_then(|incident| {
        all.invalidate(true);
        for (index, state) in states.iter().enumerate() {
            if let Some(original) = &originals.0[index] {
                output(all, index).copy_from_slice(original);
            }
            all.set_chaining_state(index, *state);
        }
        run_trusted(verifier, operation, all.reborrow())?;
        target.incidents.record_incident(incident);
        Ok(())
    });
    repeated.inspect_err(|_| (0..all.len()).for_each(|index| output(all, index).fill(0)))
}

/// Does the work with the trusted devices.
fn run_trusted(verifier: &Verifier<'_>, operation: Operation, all: Messages<'_, '_>) -> Result<()> {
    match (operation, all) {
        (Operation::Pass(pass), Messages::Segments(segments)) => verifier.trusted.run_pass(pass, segments),
        (Operation::Fused(fused), Messages::Aead(messages)) if fused.is_gcm() => {
            gcm::seal_or_open(verifier.trusted, fused, messages)
        }
        (Operation::Fused(fused), Messages::Aead(messages)) => {
            ocb::seal_or_open(verifier.trusted, fused, messages)
        }
        _ => unreachable!("passes have segments, and fused AEADs have messages"),
    }
}

/// True if the results are right, as far as they are verified.
fn agrees(
    verifier: &Verifier<'_>,
    operation: Operation,
    all: &mut Messages<'_, '_>,
    originals: &Originals,
    states: &[Block],
) -> Result<bool> {
    let lengths: Vec<usize> = (0..all.len())
        .map(|index| all.data(index).len() + all.aead(index).map_or(0, |message| message.aad.len()))
        .collect();
    let some = || pieces::sampled_messages(verifier, &lengths);
    Ok(match operation {
        _ if verifier.verify == Verify::Full => {
            let every: Vec<usize> = (0..all.len()).collect();
            whole_messages_agree(verifier, operation, all, originals, states, &every)?
        }
        Operation::Pass(pass) if pass.is_read_only() => {
            whole_messages_agree(verifier, operation, all, originals, states, &some())?
        }
        Operation::Pass(pass) => {
            chaining_states_agree(pass, all, originals, states)
                && samples_agree(verifier, operation, all, originals, states)?
        }
        Operation::Fused(_) => {
            samples_agree(verifier, operation, all, originals, states)?
                && whole_messages_agree(verifier, operation, all, originals, states, &some())?
        }
    })
}

/// Compares the chaining states after whole blocks with the states that follow from input and output.
fn chaining_states_agree(
    pass: Pass,
    all: &mut Messages<'_, '_>,
    originals: &Originals,
    states: &[Block],
) -> bool {
    (0..all.len()).all(|index| {
        let bytes = all.data(index).len();
        if bytes < 16 || !bytes.is_multiple_of(16) {
            return true;
        }
        let last: Block = *output(all, index).last_chunk().expect("16 bytes at least");
        let input: Block = *originals.input(all, index).last_chunk().expect("16 bytes at least");
        all.state(index) == pieces::state_of(pass, &states[index], bytes / 16, &input, &last)
    })
}

/// Computes sampled blocks again.
fn samples_agree(
    verifier: &Verifier<'_>,
    operation: Operation,
    all: &mut Messages<'_, '_>,
    originals: &Originals,
    states: &[Block],
) -> Result<bool> {
    // The output of a refused message is all zeros.
    let is_refused = |index| all.aead(index).is_some_and(|message| message.status != Status::Done);
    let lengths: Vec<usize> =
        (0..all.len()).map(|i| if is_refused(i) { 0 } else { all.data(i).len() }).collect();
    let mut pieces = Vec::new();
    let sampled = pieces::sampled_blocks(verifier, &lengths);
    // Vectors that grow would leave copies of plaintext behind, which are not wiped.
    let room = || Zeroizing::new(Vec::with_capacity(16 * sampled.len()));
    let (mut input, mut found) = (room(), room());
    for (message, number) in sampled.iter().copied() {
        let (key, tweak, state) = (all.key(message), all.tweak(message), states[message]);
        let ocb_nonce = ocb_nonce(operation, all.aead(message));
        let piece = Piece { message, key, tweak, state, ocb_nonce, number, bytes: 16 };
        input.extend_from_slice(&originals.input(all, message)[piece.range()]);
        found.extend_from_slice(&output(all, message)[piece.range()]);
        pieces.push(piece);
    }
    Ok(pieces::compare(verifier, pass_of(operation)?, &pieces, &input, &found)?.is_empty())
}

/// Computes the chosen messages again, each as a whole, with their chaining states, tags and statuses.
fn whole_messages_agree(
    verifier: &Verifier<'_>,
    operation: Operation,
    all: &mut Messages<'_, '_>,
    originals: &Originals,
    states: &[Block],
    chosen: &[usize],
) -> Result<bool> {
    let mut copies: Vec<Zeroizing<Vec<u8>>> =
        chosen.iter().map(|&index| Zeroizing::new(originals.input(all, index).to_vec())).collect();
    // The chaining states of segments, or the tags of messages.
    let mut blocks = Zeroizing::new(chosen.iter().map(|&index| states[index]).collect::<Vec<Block>>());
    let again = chosen.iter().zip(&mut copies).zip(blocks.iter_mut());
    let mut statuses = Vec::new();
    match all {
        Messages::Segments(segments) => {
            let reads_only = operation.is_read_only();
            let mut again: Vec<Segment<'_>> = again
                .map(|((&index, copy), state)| {
                    let data = if reads_only { Data::read_only(copy) } else { Data::in_place(copy) };
                    Segment { key: segments[index].key, tweak: segments[index].tweak, state, data }
                })
                .collect();
            run_trusted(verifier, operation, Messages::Segments(&mut again))?;
        }
        Messages::Aead(messages) => {
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
            run_trusted(verifier, operation, Messages::Aead(&mut again))?;
            statuses.extend(again.iter().map(|message| message.status));
        }
    }
    Ok(chosen.iter().zip(&copies).zip(blocks.iter()).enumerate().all(|(i, ((&index, copy), block))| {
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
        block_agrees && (operation.is_read_only() || output(all, index) == &copy[..])
    }))
}
