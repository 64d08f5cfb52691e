//! A pass over segments, or GCM of messages, in host memory, which pass through lanes in chunks.
//!
//! Host memory is written when all has succeeded, if all is under way at once. Larger calls write results on the way,
//! and on failure their outputs are zeroed: nobody finds half a result.

use std::collections::VecDeque;
use std::sync::Arc;

use lockstep_core::backend::{Completion, DeviceId, Pending};
use lockstep_core::data::Data;
use lockstep_core::messages::Messages;
use lockstep_core::register::Register;
use lockstep_core::work::{AeadMessage, Segment};
use lockstep_core::{Block, Error, Result};

use crate::chunk::{Chunk, Task};
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

/// A call under way.
struct Flight<'w, 'd> {
    lanes: Arc<Lanes>,
    task: Task,
    messages: Messages<'w, 'd>,
    chunks: VecDeque<Chunk>,
    /// Registers to be left, by segment; those that the device tells are left when they come.
    registers: Vec<(usize, Block)>,
    id: DeviceId,
    /// Results have been written to borrowed host memory.
    delivered: bool,
}

/// Starts a pass, or a recipe. `chunk` is how much is sent at once.
pub(crate) fn submit<'w, 'd: 'w>(
    lanes: &Arc<Lanes>,
    task: Task,
    messages: Messages<'w, 'd>,
    chunk: usize,
    id: DeviceId,
) -> Result<Completion<'w>> {
    // What cannot be reached is refused before anything is done.
    for index in (0..messages.len()).filter(|&index| !messages.data(index).is_empty()) {
        let what = match messages.data(index) {
            Data::Host(_) => continue,
            Data::Pinned { .. } => "pinned memory".into(),
            Data::Device { from, .. } => format!("memory of {}", from.device()),
        };
        return Err(Error::OutOfReach { device: id, what });
    }
    let mut flight = Flight {
        lanes: Arc::clone(lanes),
        registers: registers(task.plan.register, &messages),
        task,
        messages,
        id,
        chunks: VecDeque::new(),
        delivered: false,
    };
    match flight.start(chunk) {
        Ok(()) => Ok(Completion::Pending(Box::new(flight))),
        Err(error) => {
            flight.fail();
            Err(error)
        }
    }
}

/// The registers behind all segments, as far as the host knows. Input is read, so this comes before anything is
/// written.
fn registers(kind: Register, messages: &Messages<'_, '_>) -> Vec<(usize, Block)> {
    let Messages::Segments(segments) = messages else { return Vec::new() };
    if kind == Register::Told {
        return Vec::new();
    }
    let mut registers = Vec::with_capacity(segments.len());
    for (index, segment) in segments.iter().enumerate() {
        let len = segment.data.len();
        let last = match &segment.data {
            Data::Host(data) if len >= 16 => data.input()[..len / 16 * 16].last_chunk().copied(),
            _ => None,
        };
        registers.push((index, kind.after(*segment.register, len, last)));
    }
    registers
}

impl Flight<'_, '_> {
    fn start(&mut self, chunk: usize) -> Result<()> {
        let count = self.messages.len();
        let most_hashed = HASHED_AT_ONCE.min(chunk.max(16).saturating_mul(HASHED_CHUNKS) / 16 * 16);
        let most = match self.task.plan.kind {
            Kind::Tiles(_) => {
                let whole = |segment| Piece { segment, range: 0..self.messages.data(segment).len() };
                for pieces in cut((0..count).map(whole), chunk, Some(self.task.tile())) {
                    self.queue(pieces)?;
                }
                return Ok(());
            }
            Kind::Gcm { opens } => return self.start_gcm(opens, chunk, most_hashed),
            Kind::Ghash => most_hashed,
            Kind::Chain(_) => CHAINED_AT_ONCE,
        };
        // A part of each message after the other, since each begins with the register behind the one before.
        let longest = (0..count).map(|index| self.messages.data(index).len()).max().unwrap_or(0);
        for start in (0..longest).step_by(most) {
            self.settle()?;
            let part = |segment| {
                let end = self.messages.data(segment).len().min(start + most);
                Piece { segment, range: start..end }
            };
            for pieces in cut((0..count).map(part), chunk, None) {
                self.queue(pieces)?;
            }
        }
        Ok(())
    }

    /// Messages of GCM in chunks, each as a whole; those that are too long for that one after the other, pass by pass.
    fn start_gcm(&mut self, opens: bool, chunk: usize, most: usize) -> Result<()> {
        let bytes = |message: &AeadMessage<'_>| message.aad.len().saturating_add(message.data.len());
        let Messages::Aead(messages) = &mut self.messages else { return Ok(()) };
        for message in messages.iter_mut().filter(|message| bytes(message) > most) {
            self.delivered = true;
            let run = |pass, segment: Segment<'_>| {
                let task = Task { plan: plan(pass), ..self.task.clone() };
                let segments = &mut [segment];
                submit(&self.lanes, task, Messages::Segments(segments), chunk, self.id)?.wait()
            };
            gcm::by_passes(run, opens, message)?;
        }
        let short = messages.iter().enumerate().filter(|(_, message)| bytes(message) <= most);
        let pieces = short.map(|(segment, message)| {
            (Piece { segment, range: 0..message.data.len() }, bytes(message) + 16 * BLOCKS_BESIDE)
        });
        for pieces in gather(pieces.collect::<Vec<_>>(), chunk) {
            self.queue(pieces)?;
        }
        Ok(())
    }

    fn queue(&mut self, pieces: Vec<Piece>) -> Result<()> {
        if self.chunks.len() == LANES {
            self.land()?;
        }
        let lane = self.lanes.take();
        self.chunks.push_back(self.task.queue(lane, pieces, &self.messages)?);
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
        for (index, register) in std::mem::take(&mut self.registers) {
            self.messages.leave(index, register);
        }
        Ok(())
    }

    /// Leaves no half of a result.
    fn fail(&mut self) {
        self.abandon();
        self.messages.disown(self.delivered);
        if self.delivered && !self.task.plan.kind.only_reads() {
            for index in 0..self.messages.len() {
                if let Data::Host(data) = self.messages.data_mut(index) {
                    data.output().fill(0);
                }
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
