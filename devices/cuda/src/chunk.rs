//! Execution of a call as chunks. Each chunk is a launch sequence on one stream: it copies descriptions, keys and data
//! to the device, runs the kernels, copies the results back, and wipes the device memory that it used.
#![allow(unsafe_code, reason = "launches: the kernels get addresses of device memory")]

use std::ops::Range;
use std::sync::Arc;

use lockstep_core::chaining::ChainingState;
use lockstep_core::data::{Data, DeviceSlice, PinnedBuffer, PinnedSlice};
use lockstep_core::work::{Operation, Stream};
use lockstep_core::{KeySize, Result};
use lockstep_gpu_host::{Kind, Limits, Messages, Piece, Pipeline, Results};

use crate::carry_less;
use crate::describe::{Description, Work};
use crate::gpu::{Event, Gpu};
use crate::kernel::{FAMILIES, Family, LaunchOptions, Products};
use crate::launch;
use crate::machine::Hold;
use crate::passes::by_matrices;
use crate::staging::{Pool, Staging};

/// Bytes of a chunk. A chunk is large enough to fill the device and to outweigh the cost of its launches, and small
/// enough that the chunks of a call overlap.
pub(crate) const CHUNK: usize = 4 << 20;

/// Maximum number of pieces of a chunk. The limit keeps their descriptions smaller than the chunk.
const MOST_PIECES: usize = 32 * 1024;

/// One call.
pub(crate) struct Task {
    pub(crate) pool: Arc<Pool>,
    /// The kernels. `None` if an overhead is measured: the data are copied, and no kernel runs.
    pub(crate) family: Option<&'static Family>,
    pub(crate) operation: Operation,
    pub(crate) size: KeySize,
    pub(crate) options: LaunchOptions,
    /// The caller's stream, for data in device memory.
    pub(crate) stream: Stream,
    /// Handles that keep the caller's device memory allocated.
    holds: Vec<Hold>,
    /// Pinned buffers of the caller, each with the events after which the earlier uses of the buffer have ended.
    earlier_uses: Vec<(PinnedBuffer, Vec<Event>)>,
}

/// Where the results of a chunk are in its staging buffer.
pub(crate) struct Found {
    /// For each piece whose data are in borrowed host memory: its index, and the place of its output.
    outputs: Vec<(usize, usize)>,
    /// The place of the segments' descriptions, if the device writes chaining states to them.
    segments: Option<usize>,
    /// The places of the tags and the statuses, for fused AEADs.
    tags: Option<(usize, usize)>,
}

impl Task {
    pub(crate) fn new(
        pool: &Arc<Pool>,
        family: Option<&'static Family>,
        operation: Operation,
        size: KeySize,
        options: LaunchOptions,
        stream: Stream,
    ) -> Task {
        let (pool, holds, earlier_uses) = (Arc::clone(pool), Vec::new(), Vec::new());
        Task { pool, family, operation, size, options, stream, holds, earlier_uses }
    }

    pub(crate) fn gpu(&self) -> &Arc<Gpu> {
        self.pool.device()
    }

    pub(crate) fn kind(&self) -> Kind {
        Kind::of(self.operation)
    }

    pub(crate) fn chaining(&self) -> ChainingState {
        ChainingState::of_operation(self.operation)
    }

    /// True if GHASH and POLYVAL multiply by the carry-less multiply-add.
    pub(crate) fn is_carry_less(&self) -> bool {
        self.options.products == Products::CarryLess && carry_less::is_used(self.gpu())
    }

    /// True if this many tiles of level 0 of GHASH are hashed by matrices.
    pub(crate) fn is_by_matrices(&self, tiles: u64, keys: u64) -> bool {
        self.options.products >= Products::TensorUnits
            && !self.is_carry_less()
            && by_matrices(self.gpu().limits(), tiles, keys)
    }

    /// True if the final chaining state of each piece is copied back from the device, because the host cannot compute it.
    fn device_knows_states(&self, resident: bool) -> bool {
        self.family.is_some()
            && match self.chaining() {
                ChainingState::DeviceComputed => true,
                ChainingState::LastCiphertext => resident,
                _ => false,
            }
    }

    /// Queues the kernels.
    ///
    /// # Safety
    /// The requirements of [`Description::batch`].
    unsafe fn run(&self, description: &Description, stream: &crate::gpu::Stream) -> Result<()> {
        let Some(family) = self.family else { return Ok(()) };
        // SAFETY: guaranteed by the caller.
        let batch = unsafe { description.batch(self, family, stream) };
        if self.kind() != Kind::Polyval {
            batch.expand()?;
        }
        batch.run(self.kind())
    }
}

impl Pipeline for Task {
    type Device = Gpu;
    type Staged = Description;
    type Found = Found;

    fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    fn operation(&self) -> Operation {
        self.operation
    }

    /// The limits of a chunk. Work on data in device memory is a single chunk of any size.
    fn limits(&self, resident: bool) -> Limits {
        let all = usize::MAX;
        if resident {
            return Limits {
                bytes: all,
                pieces: all,
                least_room: 0,
                tile: all,
                serial: all,
                aead_overhead: 0,
            };
        }
        let tile = |family: &Family| family.tiling(self.gpu().limits(), &self.options, 1, usize::MAX).tile;
        Limits {
            bytes: CHUNK,
            pieces: MOST_PIECES,
            least_room: CHUNK / 4,
            tile: self.family.map_or(16, tile),
            serial: all,
            aead_overhead: 0,
        }
    }

    fn admit(&mut self, data: &Data<'_>) -> Result<()> {
        match data {
            Data::Host(_) => {}
            Data::Device { from, to, .. } => {
                self.holds.push(self.gpu().hold(from)?);
                self.holds.push(self.gpu().hold(to)?);
            }
            Data::Pinned { from, to, .. } => {
                for slice in [from, to] {
                    // Consecutive slices often belong to the same buffer.
                    if self.earlier_uses.last().is_none_or(|(last, _)| !last.is(slice.buffer())) {
                        self.earlier_uses.push((slice.buffer().clone(), self.gpu().uses(slice)?));
                    }
                }
            }
        }
        Ok(())
    }

    fn take_staging(&self) -> Result<Staging> {
        let staging = self.pool.take()?;
        for event in self.earlier_uses.iter().flat_map(|(_, events)| events) {
            self.gpu().order(&staging.stream, event)?;
        }
        Ok(staging)
    }

    fn stage(
        &self,
        staging: &mut Staging,
        pieces: &mut [Piece],
        messages: &Messages<'_, '_>,
    ) -> Result<Description> {
        if let Kind::Chain(_) = self.kind() {
            // A thread runs as long as its longest message, so messages of similar length are grouped.
            pieces.sort_by_key(|piece| std::cmp::Reverse(piece.range.len()));
        }
        let family = self.family.unwrap_or(&FAMILIES[0]);
        Work::new(self, family, pieces, messages).describe(staging)
    }

    fn launch(
        &self,
        staging: &mut Staging,
        staged: Description,
        pieces: &[Piece],
        messages: &Messages<'_, '_>,
    ) -> Result<(Event, Found)> {
        let (gpu, places) = (self.gpu(), &staged.places);
        let resident = matches!(messages.data(pieces[0].segment), Data::Device { .. });
        let stream = if resident { gpu.callers_stream(self.stream) } else { staging.stream.clone() };
        let (host, device) = (&mut staging.host, &staging.device);
        gpu.copy_in(&stream, host, 0..places.host_len, device, 0)?;
        let pinned: Vec<_> = (pieces.iter().zip(&places.data))
            .filter_map(|(piece, &at)| match messages.data(piece.segment) {
                Data::Pinned { from, to, .. } => Some((part(from, &piece.range), part(to, &piece.range), at)),
                _ => None,
            })
            .collect();
        for (from, _, at) in &pinned {
            gpu.copy_in_slice(&stream, from, device, *at)?;
        }

        // SAFETY: the staging buffer has been copied above. It is used again only after the event that is recorded below, and its
        // drop waits for the machine. The caller's device memory is held by this task, and its pinned memory records
        // the stream.
        unsafe { self.run(&staged, &stream)? };

        let mut copy_back =
            |range: Range<usize>| gpu.copy_out(&stream, device, range.start, host, range.clone());
        let writes = !self.operation.is_read_only();
        if !places.host_data.is_empty() && writes {
            copy_back(places.host_data.clone())?;
        }
        for (_, to, at) in pinned.iter().filter(|_| writes) {
            gpu.copy_out_slice(&stream, device, *at, to)?;
        }
        let has_tags = matches!(self.operation, Operation::Fused(_)) && self.family.is_some();
        if has_tags {
            copy_back(places.tags..places.statuses + pieces.len())?;
        }
        let has_states = self.device_knows_states(resident);
        if has_states {
            copy_back(places.segments..places.segments + launch::Segment::SIZE * pieces.len())?;
        }
        gpu.zero(&stream, device, 0..places.len)?;
        let event = gpu.record(&stream)?;
        host.settle(&stream, &event);
        for slice in pinned.iter().flat_map(|(from, to, _)| [from, to]) {
            gpu.settle(slice, &stream, &event);
        }
        let host = pieces.iter().map(|piece| matches!(messages.data(piece.segment), Data::Host(_)));
        let outputs = host.enumerate().filter(|(_, is_host)| *is_host && writes);
        let found = Found {
            outputs: outputs.map(|(index, _)| (index, places.data[index])).collect(),
            segments: has_states.then_some(places.segments),
            tags: has_tags.then_some((places.tags, places.statuses)),
        };
        Ok((event, found))
    }

    fn read_back(
        &self,
        staging: &mut Staging,
        found: &Found,
        pieces: &[Piece],
        results: &mut Results<'_, '_, '_>,
    ) -> Result<()> {
        if found.outputs.is_empty() && found.segments.is_none() && found.tags.is_none() {
            return Ok(());
        }
        let host: &[u8] = &staging.host;
        for &(index, at) in &found.outputs {
            results.set_output(&pieces[index], &host[at..]);
        }
        for (index, piece) in pieces.iter().enumerate() {
            if let Some(segments) = found.segments {
                let described = &host[segments + launch::Segment::SIZE * index..][..launch::Segment::SIZE];
                results.set_chaining_state(piece.segment, launch::Segment::next(described));
            }
            if let Some((tags, statuses)) = found.tags {
                let tag = &host[tags + 16 * index..][..16];
                results.set_status(piece.segment, host[statuses + index], tag);
            }
        }
        Ok(())
    }

    fn zero(&self, outputs: &[DeviceSlice]) {
        self.gpu().zero_outputs(&self.gpu().callers_stream(self.stream), outputs);
    }
}

/// A part of a pinned slice.
fn part(slice: &PinnedSlice, range: &Range<usize>) -> PinnedSlice {
    let start = slice.range().start;
    slice.buffer().slice(start + range.start..start + range.end)
}
