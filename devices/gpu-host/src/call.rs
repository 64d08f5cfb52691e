//! A call in flight: a window of chunks, their results, and the treatment of failures.
//!
//! If all chunks fit into the window, host memory is written only after all of them have succeeded. Larger calls write
//! results earlier. After a failure, outputs that may have been written are zeroed, so that the caller never finds a partial
//! result. Other outputs are unchanged; for data in place, they still hold the input.

use std::collections::VecDeque;
use std::ops::Range;

use lockstep_core::backend::{Completion, Pending};
use lockstep_core::chaining::ChainingState;
use lockstep_core::data::Data;
use lockstep_core::{Block, Error, Result};
use zeroize::Zeroizing;

use crate::cut::cut;
use crate::messages::{Messages, Piece, Results};
use crate::pipeline::Pipeline;
use crate::staging::{HostDevice, InFlight};

/// The number of chunks in flight at once: one is copied to the device, one is processed, one is copied back, and the host
/// fills or empties one.
pub(crate) const WINDOW: usize = 4;

/// A chunk in flight.
struct Chunk<P: Pipeline> {
    work: InFlight<P::Device>,
    found: P::Found,
    pieces: Vec<Piece>,
    resident: bool,
}

/// A call in flight. The chunks are dropped before the pipeline. Dropping the chunks waits for their work, and dropping the
/// pipeline then releases memory.
struct Call<'w, 'd, P: Pipeline> {
    window: VecDeque<Chunk<P>>,
    pipeline: P,
    messages: Messages<'w, 'd>,
    /// For each segment: the chaining state at the end of the part that has already been divided into chunks, if the host knows this state.
    states: Zeroizing<Vec<Block>>,
    /// For each segment: true if the output may have been written, in any kind of memory.
    begun: Vec<bool>,
    /// True if results have been written to borrowed host memory.
    delivered: bool,
}

/// Starts a call. Chunks beyond the window are launched when earlier chunks end, before this function returns.
///
/// # Errors
/// [`Error::OutOfReach`], [`Error::DeviceFailed`]; the errors of [`lockstep_core::work::FusedAead::check_lengths`].
pub fn submit<'w, 'd: 'w, P: Pipeline + 'w>(
    mut pipeline: P,
    messages: Messages<'w, 'd>,
) -> Result<Completion<'w>> {
    check(&mut pipeline, &messages)?;
    let mut call = Call {
        window: VecDeque::new(),
        pipeline,
        states: messages.states(),
        begun: vec![false; messages.len()],
        messages,
        delivered: false,
    };
    match call.start(true).and_then(|()| call.start(false)) {
        Ok(()) => Ok(Completion::Pending(Box::new(call))),
        Err(error) => {
            call.fail();
            Err(error)
        }
    }
}

/// Checks the lengths of the messages, and that the device can access their data. [`submit`] does this too.
///
/// # Errors
/// [`Error::OutOfReach`]; the errors of [`lockstep_core::work::FusedAead::check_lengths`].
pub fn check<P: Pipeline>(pipeline: &mut P, messages: &Messages<'_, '_>) -> Result<()> {
    let device = pipeline.pool().device().id();
    messages.check_lengths()?;
    for data in (0..messages.len()).map(|index| messages.data(index)).filter(|data| !data.is_empty()) {
        if let Some(other) = data.device().filter(|&other| other != device) {
            let kind = if matches!(data, Data::Pinned { .. }) { "pinned memory" } else { "memory" };
            return Err(Error::OutOfReach { device, what: format!("{kind} of {other}") });
        }
        pipeline.admit(data)?;
    }
    Ok(())
}

impl<P: Pipeline> Call<'_, '_, P> {
    /// Launches all messages whose data are in device memory if `resident` is true, otherwise all other messages.
    fn start(&mut self, resident: bool) -> Result<()> {
        let chaining = ChainingState::of_operation(self.messages.operation());
        let limits = self.pipeline.limits(resident);
        let mut left = Vec::new();
        for index in 0..self.messages.len() {
            let data = self.messages.data(index);
            let is_empty = data.is_empty() && self.messages.aead(index).is_none();
            if matches!(data, Data::Device { .. }) == resident && !is_empty {
                left.push((index, 0..data.len()));
            }
        }
        let at_once = if chaining == ChainingState::DeviceComputed { limits.serial } else { usize::MAX };
        while !left.is_empty() {
            let mut parts = Vec::new();
            left.retain_mut(|(index, range): &mut (usize, Range<usize>)| {
                let end = range.end.min(range.start.saturating_add(at_once));
                parts.push((*index, range.start..end));
                range.start = end;
                range.start < range.end
            });
            let mut chunks = cut(&limits, &self.messages, &mut self.states, parts);
            if resident && chaining == ChainingState::LastCiphertext {
                // The chunks run in reverse order: a chunk reads the last input block of the chunk before it in the message,
                // and if the data are in place, that chunk overwrites this block.
                chunks.reverse();
            }
            for pieces in chunks {
                self.launch(pieces, resident)?;
            }
            if !left.is_empty() {
                // The next parts of the segments start with the chaining states that these chunks return.
                self.deliver_all()?;
            }
        }
        Ok(())
    }

    fn launch(&mut self, mut pieces: Vec<Piece>, resident: bool) -> Result<()> {
        let same = |chunk: &Chunk<P>| chunk.resident == resident;
        let mut staging = if self.window.iter().filter(|chunk| same(chunk)).count() < WINDOW {
            self.pipeline.take_staging()?
        } else {
            // This waits for the oldest chunk with the same value of `resident`. Chunks with the other value are not
            // waited for: a chunk whose data are in device memory may itself be waiting for earlier work of the
            // caller.
            let oldest = self.window.iter().position(same).and_then(|oldest| self.window.remove(oldest));
            let chunk = oldest.expect("a full window");
            chunk.work.wait()?;
            self.deliver(chunk)?.reuse()?
        };
        let pool = self.pipeline.pool();
        let started = self.pipeline.stage(&mut staging, &mut pieces, &self.messages).and_then(|staged| {
            pieces.iter().for_each(|piece| self.begun[piece.segment] = true);
            self.pipeline.launch(&mut staging, staged, &pieces, &self.messages)
        });
        match started {
            Ok((event, found)) => {
                let work = InFlight::new(pool, staging, event);
                self.window.push_back(Chunk { work, found, pieces, resident });
                Ok(())
            }
            Err(error) => {
                pool.device().discard(staging);
                Err(error)
            }
        }
    }

    /// Copies the results of a completed chunk to the caller's memory. Its staging buffer is then free.
    fn deliver(&mut self, chunk: Chunk<P>) -> Result<InFlight<P::Device>> {
        let Chunk { mut work, found, pieces, .. } = chunk;
        self.delivered = true;
        let mut results = Results { messages: &mut self.messages, states: &mut self.states };
        self.pipeline.read_back(work.staging(), &found, &pieces, &mut results)?;
        Ok(work)
    }

    /// Waits for all chunks, and delivers results only if all have succeeded.
    fn deliver_all(&mut self) -> Result<()> {
        for chunk in &self.window {
            chunk.work.wait()?;
        }
        while let Some(chunk) = self.window.pop_front() {
            self.deliver(chunk)?.finish();
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.deliver_all()?;
        for (index, &state) in self.states.iter().enumerate() {
            self.messages.set_chaining_state(index, state);
        }
        Ok(())
    }

    /// Zeroes outputs that may hold partial results. The memory of a lost device can neither be zeroed nor read.
    fn fail(&mut self) {
        self.window.clear();
        self.messages.invalidate(self.delivered);
        if self.messages.operation().is_read_only() {
            return;
        }
        let mut resident = Vec::new();
        for index in (0..self.messages.len()).filter(|&index| self.begun[index]) {
            match self.messages.data_mut(index) {
                Data::Host(data) if self.delivered => data.output().fill(0),
                Data::Host(_) => {}
                Data::Pinned { to, .. } => to.buffer().lock()[to.range()].fill(0),
                Data::Device { to, .. } if to.is_empty() => {}
                Data::Device { to, .. } => resident.push(to.clone()),
            }
        }
        if !resident.is_empty() {
            self.pipeline.zero(&resident);
        }
    }
}

impl<P: Pipeline> Pending for Call<'_, '_, P> {
    fn is_ready(&self) -> bool {
        self.window.iter().all(|chunk| chunk.work.is_past())
    }

    fn wait(mut self: Box<Self>) -> Result<()> {
        self.finish().inspect_err(|_| self.fail())
    }
}
