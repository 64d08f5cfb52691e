//! Execution of a call as chunks. Each chunk is a launch sequence on one stream: it copies descriptions, keys and data
//! to the device, runs the kernels, copies the results back, and wipes the device memory that it used.
#![allow(unsafe_code, reason = "launches: the kernels get addresses of device memory")]

use std::ops::Range;
use std::sync::Arc;

use lockstep_core::Result;
use lockstep_core::data::{Data, DeviceSlice};
use lockstep_core::work::Operation;
use lockstep_gpu_host::{Kind, Limits, Messages, Piece, Pipeline, Results};

use crate::describe::{Description, Work};
use crate::gpu::{Event, Gpu};
use crate::kernel::{FAMILIES, Family};
use crate::launch;
use crate::staging::{Pool, Staging};
use crate::task::Task;

/// Bytes of a chunk. A chunk is large enough to occupy the device and to make the cost of its launches negligible. It is small
/// enough that the chunks of a call overlap.
pub(crate) const CHUNK: usize = 4 << 20;

/// Maximum number of pieces of a chunk. The limit keeps their descriptions smaller than the chunk.
const MOST_PIECES: usize = 32 * 1024;

/// The offsets of the results of a chunk in its staging buffer.
pub(crate) struct Found {
    /// For each piece whose data are in borrowed host memory: the index of the piece, and the offset of its output.
    outputs: Vec<(usize, usize)>,
    /// The place of the segments' descriptions, if the device writes chaining states to them.
    segments: Option<usize>,
    /// The places of the tags and the statuses, for fused AEADs.
    tags: Option<(usize, usize)>,
}

/// Queues the kernels of a chunk.
///
/// # Safety
/// The requirements of [`Description::batch`].
unsafe fn run(task: &Task, description: &Description, stream: &crate::gpu::Stream) -> Result<()> {
    let Some(family) = task.family else { return Ok(()) };
    // SAFETY: the caller meets the conditions of this function.
    let batch = unsafe { description.batch(task, family, stream) };
    if task.kind != Kind::Polyval {
        batch.expand()?;
    }
    batch.run(task.kind)
}

impl Pipeline for Task {
    type Device = Gpu;
    type Staged = Description;
    type Found = Found;

    fn pool(&self) -> &Arc<Pool> {
        &self.pool
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
                    // Neighbouring slices often belong to the same buffer, so only the last buffer is compared.
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
        if let Kind::Chain(_) = self.kind {
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
                Data::Pinned { from, to, .. } => {
                    Some((from.slice(piece.range.clone()), to.slice(piece.range.clone()), at))
                }
                _ => None,
            })
            .collect();
        for (from, _, at) in &pinned {
            gpu.copy_in_slice(&stream, from, device, *at)?;
        }

        // SAFETY: the staging buffer has been copied above. It is used again only after the event that is recorded below, and its
        // drop waits for the machine. The caller's device memory is held by this task, and its pinned memory records
        // the stream.
        unsafe { run(self, &staged, &stream)? };

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
        let has_states = self.device_computes_states(resident);
        if has_states {
            copy_back(places.segments..places.segments + launch::Segment::SIZE * pieces.len())?;
        }
        gpu.zero(&stream, device, 0..places.len)?;
        let event = gpu.record(&stream)?;
        host.end_use(&stream, &event);
        for slice in pinned.iter().flat_map(|(from, to, _)| [from, to]) {
            gpu.end_use(slice, &stream, &event);
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
