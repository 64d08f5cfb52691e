//! A pass over segments, or GCM of messages, which pass through lanes in chunks, from the host or from memory of the device.
//!
//! Host memory is written when all has succeeded, if all is under way at once. Larger calls write results on the way,
//! and on failure their outputs are zeroed: nobody finds half a result.

use std::collections::VecDeque;
use std::sync::Arc;

use lockstep_core::backend::{Completion, Pending};
use lockstep_core::chaining::ChainingState;
use lockstep_core::data::Data;
use lockstep_core::messages::Messages;
use lockstep_core::work::{AeadMessage, Segment};
use lockstep_core::{Block, Error, Result};

use crate::chunk::{Chunk, Task, with_input, with_output};
use crate::cut::{Piece, cut, gather};
use crate::gcm;
use crate::lane::Lanes;
use crate::passes::{Kind, plan};

/// Chunks of a call that are under way at once: one on its way there, one at work, one on its way back, and one that
/// the host fills or empties.
const LANES: usize = 4;

/// Bytes of a message that are hashed in one go, at most and in chunks: 2^21 blocks, of the 2^24 that GHASH has levels
/// for.
const HASHED_AT_ONCE: usize = 32 << 20;
const HASHED_CHUNKS: usize = 8;

/// Blocks that a message of GCM takes beside its data.
const BLOCKS_BESIDE: usize = 6;

/// Bytes of a message that a chain works on in one go: not too many launches.
const CHAINED_AT_ONCE: usize = 32 << 10;

/// Bytes that are sent to the device at once, by where they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunks {
    pub(crate) host: usize,
    pub(crate) device: usize,
}

/// A call under way.
struct Flight<'w, 'd> {
    lanes: Arc<Lanes>,
    task: Task,
    messages: Messages<'w, 'd>,
    chunks: VecDeque<Chunk>,
    /// Chaining states to be left, by segment; those that the device tells are left when they come.
    states: Vec<(usize, Block)>,
    /// Messages whose output may have been written to, or will be.
    begun: Vec<bool>,
    /// Results have been written to borrowed host memory.
    delivered: bool,
}

/// Starts a pass, or a fused AEAD.
pub(crate) fn submit<'w, 'd: 'w>(
    lanes: &Arc<Lanes>,
    task: Task,
    messages: Messages<'w, 'd>,
    chunks: Chunks,
) -> Result<Completion<'w>> {
    // What cannot be reached is refused before anything is done.
    for index in (0..messages.len()).filter(|&index| !messages.data(index).is_empty()) {
        match messages.data(index) {
            Data::Host(_) => {}
            Data::Pinned { .. } => {
                let device = messages.data(index).device().filter(|&device| device != task.gpu.id());
                if let Some(device) = device {
                    let what = format!("pinned memory of {device}");
                    return Err(Error::OutOfReach { device: task.gpu.id(), what });
                }
            }
            Data::Device { from, to, .. } => {
                if !task.gpu.place(from)?.is_aligned() || !task.gpu.place(to)?.is_aligned() {
                    let what = "its memory from a place on that is not a multiple of 4".into();
                    return Err(Error::OutOfReach { device: task.gpu.id(), what });
                }
            }
        }
    }
    let mut flight = Flight {
        lanes: Arc::clone(lanes),
        states: states(task.plan.state, &messages),
        task,
        begun: vec![false; messages.len()],
        messages,
        chunks: VecDeque::new(),
        delivered: false,
    };
    match flight.start(chunks) {
        Ok(()) => Ok(Completion::Pending(Box::new(flight))),
        Err(error) => {
            flight.fail();
            Err(error)
        }
    }
}

/// The chaining states behind all segments, as far as the host knows. Input is read, so this comes before anything is
/// written.
fn states(kind: ChainingState, messages: &Messages<'_, '_>) -> Vec<(usize, Block)> {
    let Messages::Segments(segments) = messages else { return Vec::new() };
    if kind == ChainingState::DeviceComputed {
        return Vec::new();
    }
    let mut states = Vec::with_capacity(segments.len());
    for (index, segment) in segments.iter().enumerate() {
        let len = segment.data.len();
        let mut last = None;
        if kind == ChainingState::LastCiphertext && len >= 16 {
            if let Data::Device { .. } = segment.data {
                // It comes back with the results.
                continue;
            }
            with_input(&segment.data, |input| last = input[..len / 16 * 16].last_chunk().copied());
        }
        states.push((index, kind.after(*segment.state, len, last)));
    }
    states
}

impl Flight<'_, '_> {
    fn start(&mut self, chunks: Chunks) -> Result<()> {
        for (on_device, chunk) in [(true, chunks.device), (false, chunks.host)] {
            let is_there =
                |index: &usize| matches!(self.messages.data(*index), Data::Device { .. }) == on_device;
            let these: Vec<usize> = (0..self.messages.len()).filter(is_there).collect();
            self.start_with(&these, chunk, chunks, on_device)?;
        }
        Ok(())
    }

    /// Those of the messages that are all with the host, or all on the device.
    fn start_with(&mut self, these: &[usize], chunk: usize, chunks: Chunks, on_device: bool) -> Result<()> {
        let most_hashed = HASHED_AT_ONCE.min(chunk.max(16).saturating_mul(HASHED_CHUNKS) / 16 * 16);
        let most = match self.task.plan.kind {
            Kind::Tiles(part) => {
                let whole = |&segment| Piece { segment, range: 0..self.messages.data(segment).len() };
                let mut all = cut(these.iter().map(whole), chunk, Some(self.task.tile()));
                if on_device && part.looks_back() {
                    // A chunk needs the block before it, which that chunk overwrites if it works in place.
                    all.reverse();
                }
                for pieces in all {
                    self.queue(pieces)?;
                }
                return Ok(());
            }
            Kind::Gcm { opens } => return self.start_gcm(these, opens, chunk, chunks, most_hashed),
            Kind::Ghash => most_hashed,
            Kind::Chain(_) => CHAINED_AT_ONCE,
        };
        // A part of each message after the other, since each begins with the chaining state behind the one before.
        let longest = these.iter().map(|&index| self.messages.data(index).len()).max().unwrap_or(0);
        for start in (0..longest).step_by(most) {
            self.settle()?;
            let part = |&segment| {
                let end = self.messages.data(segment).len().min(start + most);
                Piece { segment, range: start..end }
            };
            for pieces in cut(these.iter().map(part), chunk, None) {
                self.queue(pieces)?;
            }
        }
        Ok(())
    }

    /// Messages of GCM in chunks, each as a whole; those that are too long for that one after the other, pass by pass.
    fn start_gcm(
        &mut self,
        these: &[usize],
        opens: bool,
        chunk: usize,
        chunks: Chunks,
        most: usize,
    ) -> Result<()> {
        let bytes = |message: &AeadMessage<'_>| message.aad.len().saturating_add(message.data.len());
        let Messages::Aead(messages) = &mut self.messages else { return Ok(()) };
        let (mut long, mut short) = (Vec::new(), Vec::new());
        for &segment in these {
            let (message, len) = (bytes(&messages[segment]), messages[segment].data.len());
            if message > most {
                long.push(segment);
            } else {
                short.push((Piece { segment, range: 0..len }, message + 16 * BLOCKS_BESIDE));
            }
        }
        for segment in long {
            self.delivered = true;
            let run = |pass, segment: Segment<'_>| {
                let task = Task { plan: plan(pass), ..self.task.clone() };
                let segments = &mut [segment];
                submit(&self.lanes, task, Messages::Segments(segments), chunks)?.wait()
            };
            let (message, begun) = (&mut messages[segment], &mut self.begun[segment]);
            gcm::by_passes(run, &self.task.gpu, &self.lanes, opens, message, begun)?;
        }
        for pieces in gather(short, chunk) {
            self.queue(pieces)?;
        }
        Ok(())
    }

    fn queue(&mut self, pieces: Vec<Piece>) -> Result<()> {
        if self.chunks.len() == LANES {
            self.land()?;
        }
        let lane = self.lanes.take();
        let mut chunk = self.task.queue(lane, pieces, &self.messages)?;
        for index in chunk.messages() {
            self.begun[index] = true;
        }
        chunk.map(&self.task.gpu)?;
        self.chunks.push_back(chunk);
        Ok(())
    }

    /// Waits for the oldest chunk, and brings its results.
    fn land(&mut self) -> Result<()> {
        let Some(mut chunk) = self.chunks.pop_front() else { return Ok(()) };
        self.task.gpu.wait(&chunk.submission)?;
        self.delivered = true;
        chunk.deliver(&self.task.gpu, &mut self.messages)?;
        self.lanes.give(&self.task.gpu, chunk.lane);
        Ok(())
    }

    /// Waits for all chunks.
    fn settle(&mut self) -> Result<()> {
        while !self.chunks.is_empty() {
            self.land()?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        // Nothing is written before all of what is under way has succeeded.
        if let Some(last) = self.chunks.back() {
            self.task.gpu.wait(&last.submission)?;
        }
        self.settle()?;
        for (index, state) in std::mem::take(&mut self.states) {
            self.messages.set_chaining_state(index, state);
        }
        Ok(())
    }

    /// Leaves no half of a result. What was not begun stays: it may be the input.
    fn fail(&mut self) {
        self.abandon();
        self.messages.invalidate(self.delivered);
        if self.task.plan.kind.only_reads() {
            return;
        }
        for index in (0..self.messages.len()).filter(|&index| self.begun[index]) {
            match self.messages.data_mut(index) {
                // Of a device that is lost nobody can read it any more.
                Data::Device { to, .. } => drop(self.task.gpu.zero(to)),
                data if self.delivered => with_output(data, |output| output.fill(0)),
                _ => {}
            }
        }
    }

    /// The device is waited for, and the lanes are wiped.
    fn abandon(&mut self) {
        for chunk in self.chunks.drain(..) {
            if self.task.gpu.wait(&chunk.submission).is_ok() {
                self.lanes.give(&self.task.gpu, chunk.lane);
            }
        }
    }
}

impl Pending for Flight<'_, '_> {
    fn is_ready(&self) -> bool {
        self.task.gpu.look();
        self.task.gpu.check().is_err() || self.chunks.iter().all(|chunk| chunk.lane.is_past())
    }

    fn wait(mut self: Box<Self>) -> Result<()> {
        self.finish().inspect_err(|_| self.fail())
    }
}

impl Drop for Flight<'_, '_> {
    fn drop(&mut self) {
        self.abandon();
    }
}
