//! A pass over segments, or GCM of messages, wherever they are: what is on the device stays there, on the caller's stream; what is with the
//! host passes through lanes in chunks.
//!
//! Host memory is written when all has succeeded, if all is under way at once. Larger calls write results on the way,
//! and on failure their outputs are zeroed: nobody finds half a result.

use std::collections::VecDeque;
use std::sync::Arc;

use lockstep_core::backend::{Completion, Pending};
use lockstep_core::data::{Data, PinnedSlice};
use lockstep_core::messages::Messages;
use lockstep_core::work::Stream;
use lockstep_core::{Block, Result};

use crate::chunk::{Chunk, Task};
use crate::cut::{Piece, cut};
use crate::gpu::Event;
use crate::kernel::Family;
use crate::lane::Lanes;
use crate::machine::Hold;

/// Chunks of a call that are under way at once: one on its way there, one at work, one on its way back, and one that
/// the host fills or empties.
const LANES: usize = 4;

/// A call under way.
struct Flight<'w, 'd> {
    lanes: Arc<Lanes>,
    task: Task,
    messages: Messages<'w, 'd>,
    chunks: VecDeque<Chunk>,
    /// Chaining states to be left, by segment.
    states: Vec<(usize, Block)>,
    stream: Stream,
    /// Results have been written to borrowed host memory.
    delivered: bool,
    /// Outputs in pinned or device memory may have been written to.
    started: bool,
    _holds: Vec<Hold>,
}

/// Starts a pass, or a fused AEAD.
pub(crate) fn submit<'w, 'd: 'w>(
    lanes: &Arc<Lanes>,
    task: Task,
    messages: Messages<'w, 'd>,
    stream: Stream,
) -> Result<Completion<'w>> {
    // What cannot be reached is refused before anything is done.
    let mut holds = Vec::new();
    let mut before = Vec::new();
    for index in (0..messages.len()).filter(|&index| !messages.data(index).is_empty()) {
        match messages.data(index) {
            Data::Host(_) => {}
            Data::Device { from, to, .. } => {
                holds.push(task.gpu.hold(from)?);
                holds.push(task.gpu.hold(to)?);
            }
            Data::Pinned { from, to, .. } => {
                uses(&task, from, &mut before)?;
                uses(&task, to, &mut before)?;
            }
        }
    }
    let mut flight = Flight {
        lanes: Arc::clone(lanes),
        task,
        messages,
        chunks: VecDeque::new(),
        states: Vec::new(),
        stream,
        delivered: false,
        started: false,
        _holds: holds,
    };
    match flight.start(&before) {
        Ok(()) => Ok(Completion::Pending(Box::new(flight))),
        Err(error) => {
            flight.fail();
            Err(error)
        }
    }
}

/// Events behind what uses a pinned buffer so far; of each buffer once where neighbours share it.
fn uses(task: &Task, slice: &PinnedSlice, before: &mut Vec<(PinnedSlice, Vec<Event>)>) -> Result<()> {
    if before.last().is_none_or(|(last, _)| !last.buffer().is(slice.buffer())) {
        before.push((slice.clone(), task.gpu.uses(slice)?));
    }
    Ok(())
}

impl Flight<'_, '_> {
    fn start(&mut self, before: &[(PinnedSlice, Vec<Event>)]) -> Result<()> {
        self.start_on_device()?;
        let whole =
            |family: &Family| family.tiling(self.task.gpu.limits(), &self.task.options, 1, usize::MAX).tile;
        let tile = self.task.family.map_or(16, whole);
        let (chunks, states) =
            cut(self.task.plan, tile, &self.messages, |data| !matches!(data, Data::Device { .. }));
        self.states.extend(states);
        let gpu = Arc::clone(&self.task.gpu);
        let resident = self.chunks.len();
        for pieces in chunks {
            let lane = if self.chunks.len() - resident < LANES {
                let lane = self.lanes.take()?;
                for event in before.iter().flat_map(|(_, events)| events) {
                    gpu.order(&lane.stream, event)?;
                }
                lane
            } else {
                // The oldest one with the host; that on the device stays in front.
                let chunk = self.chunks.remove(resident).expect("there are some");
                chunk.event.wait()?;
                self.delivered = true;
                chunk.deliver(&mut self.messages, &mut self.states);
                chunk.lane
            };
            self.started = true;
            let stream = lane.stream.clone();
            self.chunks.push_back(self.task.queue(lane, &stream, pieces, &self.messages)?);
        }
        Ok(())
    }

    /// All that is on the device, in one launch sequence.
    fn start_on_device(&mut self) -> Result<()> {
        let mut pieces = Vec::new();
        for index in 0..self.messages.len() {
            let Data::Device { from, .. } = self.messages.data(index) else { continue };
            let len = from.len();
            if len == 0 && !self.task.plan.kind.minds_empty() {
                continue;
            }
            let position = self.messages.tweak(index).map_or(0, |tweak| tweak.position);
            let state = self.messages.state(index);
            pieces.push(Piece { segment: index, range: 0..len, state, position });
            // The last block of a ciphertext that is on the device comes back with the results.
            self.states.push((index, self.task.plan.state.after(state, len, None)));
        }
        if pieces.is_empty() {
            return Ok(());
        }
        let lane = self.lanes.take()?;
        self.started = true;
        let stream = self.task.gpu.callers_stream(self.stream);
        self.chunks.push_back(self.task.queue(lane, &stream, pieces, &self.messages)?);
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        for chunk in &self.chunks {
            chunk.event.wait()?;
        }
        for chunk in std::mem::take(&mut self.chunks) {
            chunk.deliver(&mut self.messages, &mut self.states);
            self.lanes.give(chunk.lane);
        }
        for (index, state) in std::mem::take(&mut self.states) {
            self.messages.set_chaining_state(index, state);
        }
        Ok(())
    }

    /// Leaves no half of a result. Memory that cannot be reached any more cannot be zeroed, nor read by anybody.
    fn fail(&mut self) {
        // Dropping a lane waits for what it was used for, and wipes it.
        self.chunks.clear();
        self.messages.invalidate(self.delivered);
        if self.task.plan.kind.only_reads() {
            return;
        }
        let stream = self.task.gpu.callers_stream(self.stream);
        let mut on_device = false;
        for index in 0..self.messages.len() {
            match self.messages.data_mut(index) {
                Data::Host(data) if self.delivered => data.output().fill(0),
                Data::Pinned { to, .. } if self.started => to.buffer().lock()[to.range()].fill(0),
                Data::Device { to, .. } if self.started && !to.is_empty() => {
                    let _ = self.task.gpu.zero_slice(&stream, to);
                    on_device = true;
                }
                _ => {}
            }
        }
        if on_device {
            stream.drain();
        }
    }
}

impl Pending for Flight<'_, '_> {
    fn is_ready(&self) -> bool {
        self.chunks.iter().all(|chunk| chunk.event.is_past())
    }

    fn wait(mut self: Box<Self>) -> Result<()> {
        self.finish().inspect_err(|_| self.fail())
    }
}

impl Drop for Flight<'_, '_> {
    /// Abandoned: the device is waited for, since memory of both sides is in use.
    fn drop(&mut self) {
        for chunk in self.chunks.drain(..) {
            if chunk.event.wait().is_ok() {
                self.lanes.give(chunk.lane);
            }
        }
    }
}
