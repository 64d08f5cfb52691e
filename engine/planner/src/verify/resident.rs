//! Verification of results that stay on a device. Samples of the input and output are fetched on the stream of the work, and
//! compared when the caller waits for the work. Results in page-locked memory are verified in the same way if the work is
//! waited for immediately. The samples of the input are then read before the work starts, after all other users of that
//! memory have finished.
//!
//! The work is not repeated, because its input may have been overwritten. If the output is wrong, it is zeroed, and the
//! completion fails. The following is never compared:
//! - messages that arrays in device memory describe
//!   ([`Device::submit_table`](lockstep_core::backend::Device::submit_table)), because their keys never reach the host
//! - chaining states, tags and MACs
//! - calls whose data are in memory of several kinds
//!
//! The last, partial block of a message of OCB3 is compared if everything is compared, but not in samples.

use zeroize::Zeroizing;

use super::pieces::{self, Piece};
use super::{Verifier, Verify, ocb_nonce, pass_of};
use lockstep_core::backend::{Completion, Fetch, Pending};
use lockstep_core::data::{Data, PinnedSlice};
use lockstep_core::error::{Error, Result};
use lockstep_core::work::{Operation, Pass, Stream, Task, Work};
use lockstep_modes::transfer::zero_output;

/// Bytes of a piece if everything is compared. A piece consists of whole blocks and is long enough for the CPU's full speed
/// (docs/measured/2026-11-22-zen4-2vcpu-calibrate.md).
const PIECE: usize = 64 * 1024;

/// Limits the memory that is used if everything is compared. The bytes of a call are then held twice on the host and once
/// more on the device.
const MAX_FULL: usize = 1 << 30;

/// Whether the caller waits for the work immediately or later.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    Now,
    Later,
}

/// Reads parts of page-locked memory.
fn read(slices: &[PinnedSlice]) -> Box<dyn Fetch> {
    // The vector gets its full capacity at the start, because a vector that grows leaves copies in freed memory.
    let mut all = Zeroizing::new(Vec::with_capacity(slices.iter().map(PinnedSlice::len).sum()));
    slices.iter().for_each(|slice| all.extend_from_slice(&slice.buffer().lock()[slice.range()]));
    Box::new(all)
}

/// Work that was started, and the samples by which its results are verified.
pub(super) struct Started<'w, 'd> {
    verifier: Verifier<'w>,
    completion: Completion<'w>,
    /// `None` if the results are not verified.
    samples: Option<Samples<'w, 'd>>,
}

/// The data that the verification needs.
struct Samples<'w, 'd> {
    pass: Pass,
    /// True if the work opens messages of an AEAD. For a message that it refuses, such work sets the output to zeros.
    opens: bool,
    pieces: Vec<Piece<'d>>,
    input: Box<dyn Fetch + 'w>,
    output: Box<dyn Fetch + 'w>,
    handles: Vec<Data<'static>>,
}

/// Starts the work.
pub(super) fn start<'w, 'd: 'w, 'p: 'w>(
    verifier: Verifier<'p>,
    stream: Stream,
    all: Task<'w, 'd>,
    waits: Waits,
) -> Result<Started<'w, 'd>> {
    let operation = all.operation();
    let pass = pass_of(operation)?;
    let opens = matches!(operation, Operation::Fused(fused) if fused.opens());
    let submit = |task| verifier.device.submit(verifier.kernel, Work { stream, task });
    let memory = verifier.device.memory().filter(|_| !pass.is_read_only());
    let handles = handles(&all).unwrap_or_default();
    let pieces = match memory.is_some() && !handles.is_empty() {
        true => wanted(&verifier, &all)?,
        false => Vec::new(),
    };
    // The inputs and the outputs of the pieces in each kind of memory.
    let (mut device, mut pinned) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    for piece in &pieces {
        let range = piece.range();
        match &handles[piece.message] {
            Data::Device { from, to, .. } => {
                device.0.push(from.slice(range.clone()));
                device.1.push(to.slice(range));
            }
            Data::Pinned { from, to, .. } => {
                pinned.0.push(from.slice(range.clone()));
                pinned.1.push(to.slice(range));
            }
            Data::Host(_) => unreachable!("only empty data are in host memory"),
        }
    }
    let (input, completion, output) = match memory {
        Some(memory) if !device.0.is_empty() && pinned.0.is_empty() => {
            let input = memory.fetch(&device.0, stream)?;
            let completion = submit(all)?;
            match memory.fetch(&device.1, stream) {
                Ok(output) => (input, completion, output),
                Err(error) => {
                    // The work has started, but its results cannot be verified.
                    let _ = completion.wait();
                    zero(&verifier, handles);
                    return Err(error);
                }
            }
        }
        Some(_) if device.0.is_empty() && !pinned.0.is_empty() && waits == Waits::Now => {
            let input = read(&pinned.0);
            submit(all)?.wait()?;
            (input, Completion::Done, read(&pinned.1))
        }
        _ => return Ok(Started { verifier, completion: submit(all)?, samples: None }),
    };
    let samples = Samples { pass, opens, pieces, input, output, handles };
    Ok(Started { verifier, completion, samples: Some(samples) })
}

/// The pieces to compare.
fn wanted<'d>(verifier: &Verifier<'_>, all: &Task<'_, 'd>) -> Result<Vec<Piece<'d>>> {
    let len = |index| match (all.data(index).len(), ocb_nonce(all, index)) {
        (len, None) => len,
        // A partial block of OCB3 is a piece of its own.
        (len, Some(_)) => len & !15,
    };
    let lengths: Vec<usize> = (0..all.len()).map(len).collect();
    let piece = |message, number, bytes| Piece::of(all, all.state(message), (message, number), bytes);
    if verifier.verify != Verify::Full {
        let samples = pieces::sparse_blocks(verifier, &lengths);
        return Ok(samples.into_iter().map(|(message, number)| piece(message, number, 16)).collect());
    }
    if lengths.iter().copied().fold(0, usize::saturating_add) > MAX_FULL {
        let reason =
            "more than 1 GiB at once is too much to compare: give it less, or compare samples".into();
        return Err(Error::DeviceFailed { device: verifier.device.id(), reason });
    }
    let mut pieces = Vec::new();
    for (message, &bytes) in lengths.iter().enumerate() {
        pieces.extend((0..bytes).step_by(PIECE).map(|at| piece(message, at / 16, PIECE.min(bytes - at))));
        let rest = all.data(message).len() - bytes;
        pieces.extend((rest > 0).then(|| piece(message, bytes / 16, rest)));
    }
    Ok(pieces)
}

/// Handles on the data of the messages, which remain valid after the borrow of the messages has ended. `None` if some data are in
/// host memory.
fn handles(all: &Task<'_, '_>) -> Option<Vec<Data<'static>>> {
    let handle = |index| match all.data(index) {
        Data::Device { from, to, .. } => Data::on_device(from.clone(), to.clone()).ok(),
        Data::Pinned { from, to, .. } => Data::pinned(from.clone(), to.clone()).ok(),
        Data::Host(data) => data.is_empty().then(|| Data::in_place(&mut [])),
    };
    (0..all.len()).map(handle).collect()
}

/// Zeroes the output, so that wrong or unverified results are not taken for correct results.
fn zero(verifier: &Verifier<'_>, handles: Vec<Data<'static>>) {
    for mut data in handles {
        let _ = zero_output(verifier.executor, &mut data);
    }
}

impl Pending for Started<'_, '_> {
    fn is_ready(&self) -> bool {
        let is_fetched = |samples: &Samples<'_, '_>| samples.input.is_ready() && samples.output.is_ready();
        self.completion.is_ready() && self.samples.as_ref().is_none_or(is_fetched)
    }

    fn wait(self: Box<Self>) -> Result<()> {
        // The statuses are borrowed elsewhere, so it is not known here which messages were refused.
        self.finish().map(|_| ())
    }
}

impl Started<'_, '_> {
    /// Waits for the work and compares the results. Returns the messages whose output is all zeros. This is an error unless these
    /// messages were refused.
    pub(super) fn finish(self) -> Result<Vec<usize>> {
        let Started { verifier, completion, samples } = self;
        completion.wait()?;
        let Some(Samples { pass, opens, pieces, input, output, handles }) = samples else {
            return Ok(Vec::new());
        };
        let different = input
            .wait()
            .and_then(|input| Ok((input, output.wait()?)))
            .and_then(|(input, output)| pieces::compare(&verifier, pass, &pieces, &input, &output));
        let error = match different {
            Ok(all) if all.iter().all(|&(_, is_zero)| opens && is_zero) => {
                return Ok(all.into_iter().map(|(message, _)| message).collect());
            }
            Ok(_) => verifier.wrong_result(),
            Err(error) => error,
        };
        zero(&verifier, handles);
        Err(error)
    }
}
