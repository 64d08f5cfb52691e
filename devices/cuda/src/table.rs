//! Tables: messages that are described by arrays in device memory. Kernels make the segments of the messages in device
//! memory, on the caller's stream.
#![allow(unsafe_code, reason = "launches: the kernels get addresses of device memory")]

use lockstep_core::Result;
use lockstep_core::backend::{Completion, Pending};
use lockstep_core::data::DeviceSlice;
use lockstep_core::work::Table;
use lockstep_gpu_host::table::Arrays;
use lockstep_gpu_host::{InFlight, Kind};

use crate::gpu::{Event, Gpu, Stream};
use crate::kernel::{Family, GHASH_MATRICES_BYTES, GHASH_ROWS, GHASH_TILE_BLOCKS, Tiling, helper, one_each};
use crate::launch::{Parameters, Segment};
use crate::machine::{Hold, Limits};
use crate::passes::{
    Aead, AuxiliaryBlocks, Batch, Extra, Hashing, Level, Parts, Tiled, by_messages, chain_scratch,
};
use crate::staging::{Layout, Staging};
use crate::task::Task;

/// A table in flight.
struct Flight {
    work: InFlight<Gpu>,
    stream: Stream,
    /// The memory that is zeroed on failure.
    outputs: Vec<DeviceSlice>,
    _holds: Vec<Hold>,
}

/// The division of the work on a table. All messages are divided alike, as if each had the length of the longest message.
struct Shape<'t> {
    task: &'t Task,
    family: &'static Family,
    table: &'t Table,
    arrays: Arrays<'t>,
    count: u32,
    gcm: bool,
    hashes: bool,
    tiling: Tiling,
    tiles_each: u64,
    tiles: u64,
    /// The total number of keys.
    keys: usize,
    /// The number of blocks that are encrypted before the pass, and the number of segments (`runs`) that contain these
    /// blocks. If all messages share a key, there is one segment, which the host describes. Otherwise there is one
    /// segment for each message.
    blocks: usize,
    blocks_each: usize,
    runs: usize,
    run_tiling: Tiling,
    run_tiles_each: u64,
    /// Tiles of each message at each level of GHASH.
    levels: Vec<u64>,
}

/// Places in a staging buffer, in bytes. The segments of the blocks that are encrypted before the pass come first, because the host writes
/// these segments if there is only one of them.
struct Places {
    run_segments: usize,
    run_first_tile: usize,
    /// The end of the part that is copied to the device.
    described: usize,
    states: usize,
    segments: usize,
    first_tile: usize,
    schedules: usize,
    scratch: usize,
    extras: usize,
    rows: usize,
    matrices: usize,
    /// The places of the first tiles and of the results of each level.
    levels: Vec<(usize, usize)>,
    len: usize,
}

/// Starts an operation on a table.
pub(crate) fn submit<'w>(task: &Task, table: &Table) -> Result<Completion<'w>> {
    let Some(family) = task.family else { return Ok(Completion::Done) };
    let arrays = Arrays::of(task.operation, table)?;
    if table.messages == 0 {
        return Ok(Completion::Done);
    }
    let gpu = task.gpu();
    let slices = [&table.keys, &table.states, &table.offsets, &table.lengths, &table.from, &table.to];
    let slices = slices.into_iter().chain([&table.status]).chain(arrays.tags);
    let holds = slices.map(|slice| gpu.hold(slice)).collect::<Result<_>>()?;
    let shape = Shape::of(task, family, table, arrays)?;
    let places = shape.places()?;
    let mut staging = task.pool.take()?;
    staging.reserve(gpu, places.described, places.len)?;
    let stream = gpu.callers_stream(task.stream);
    shape.describe(&mut staging, &places, &stream)?;
    let output = (!task.operation.is_read_only()).then_some(&table.to);
    let seals = matches!(task.kind, Kind::Gcm { opens: false });
    let outputs = output.into_iter().chain([&table.status]).chain(arrays.tags.filter(|_| seals));
    let outputs: Vec<DeviceSlice> = outputs.cloned().collect();
    // After a failure, some messages may be complete. All outputs are zeroed nevertheless, including bytes that belong to no
    // message.
    // SAFETY: the staging buffer has been described, and its copy has been queued. The staging buffer is used again only after the
    // event, and its drop waits for the machine. The memory of the table is held until the event has passed or its outputs have been
    // zeroed.
    let launched = unsafe { shape.launch(&staging, &places, &stream) };
    let event = launched.inspect_err(|_| gpu.zero_outputs(&stream, &outputs))?;
    staging.host.end_use(&stream, &event);
    let work = InFlight::new(&task.pool, staging, event);
    Ok(Completion::Pending(Box::new(Flight { work, stream, outputs, _holds: holds })))
}

impl<'t> Shape<'t> {
    fn of(
        task: &'t Task,
        family: &'static Family,
        table: &'t Table,
        arrays: Arrays<'t>,
    ) -> Result<Shape<'t>> {
        let (gpu, count) = (task.gpu(), table.messages);
        let too_many = || gpu.failed("too many messages for one launch: submit fewer at once");
        let count32 = i32::try_from(count).map_err(|_| too_many())? as u32;
        let (limits, options) = (gpu.limits(), &task.options);
        let tiling = family.tiling(limits, options, 1, arrays.longest);
        let tiles_each = tiling.tiles(arrays.longest).max(1);
        let tiles = tiles_each.checked_mul(count as u64).ok_or_else(too_many)?;
        let gcm = matches!(task.kind, Kind::Gcm { .. });
        let hashes = task.kind.hashes();
        let keys = if arrays.shared { arrays.keys_each } else { arrays.keys_each * count };
        let has_auxiliary = task.kind.tweaks() || (hashes && task.kind != Kind::Polyval);
        let blocks_each = if has_auxiliary && gcm && !arrays.shared { 2 } else { usize::from(has_auxiliary) };
        let (blocks, runs) = match task.kind {
            _ if !has_auxiliary => (0, 0),
            Kind::Gcm { .. } if arrays.shared => (count + 1, 1),
            Kind::Ghash if arrays.shared => (1, 1),
            _ => (blocks_each * count, if arrays.shared { 1 } else { count }),
        };
        let longest = (arrays.longest.div_ceil(16) + usize::from(gcm)) as u64;
        let run_tiling = family.tiling(limits, options, runs, 16 * blocks);
        Ok(Shape {
            task,
            family,
            table,
            count: count32,
            gcm,
            hashes,
            tiling,
            tiles_each,
            tiles,
            keys,
            blocks,
            blocks_each,
            runs,
            run_tiling,
            run_tiles_each: if arrays.shared { run_tiling.tiles(16 * blocks) } else { 1 },
            levels: if hashes {
                uniform_levels(limits, longest, count as u64, keys as u64)
            } else {
                Vec::new()
            },
            arrays,
        })
    }

    /// True if the tiles of level 0 of GHASH are hashed by matrices.
    fn by_matrices(&self) -> bool {
        let tiles = self.levels.first().map_or(0, |each| each * u64::from(self.count));
        self.task.is_by_matrices(tiles, self.keys as u64)
    }

    fn places(&self) -> Result<Places> {
        let (count, gpu) = (self.count as usize, self.task.gpu());
        let scratch = match self.task.kind {
            Kind::Chain(_) => chain_scratch(count, self.task.size),
            _ if self.task.kind.looks_back() => {
                usize::try_from(self.tiles).ok().and_then(|tiles| tiles.checked_mul(16))
            }
            _ => Some(0),
        };
        let too_many = || gpu.failed("too many messages for one launch: submit fewer at once");
        let scratch = scratch.ok_or_else(too_many)?;
        let mut layout = Layout::default();
        Ok(Places {
            run_segments: layout.section(Segment::SIZE * self.runs),
            run_first_tile: layout.section(8 * (self.runs + 1)),
            described: if self.runs == 1 { layout.len() } else { 0 },
            states: layout.section(16 * self.blocks),
            segments: layout.section(Segment::SIZE * count),
            first_tile: layout.section(8 * (count + 1)),
            schedules: layout.section(self.keys * self.family.schedule(self.task.size)),
            scratch: layout.section(scratch),
            extras: layout.section(if self.gcm { Extra::SIZE * count } else { 0 }),
            rows: layout.section(if self.levels.is_empty() { 0 } else { GHASH_ROWS * self.keys }),
            matrices: layout.section(if self.by_matrices() { GHASH_MATRICES_BYTES * self.keys } else { 0 }),
            levels: (self.levels.iter())
                .map(|&each| (layout.section(8 * (count + 1)), layout.section(16 * each as usize * count)))
                .collect(),
            len: layout.len(),
        })
    }

    /// Describes the segment of the blocks that are encrypted before the pass, if there is only one.
    fn describe(&self, staging: &mut Staging, places: &Places, stream: &Stream) -> Result<()> {
        if self.runs != 1 {
            return Ok(());
        }
        let place = staging.device.address() + places.states as u64;
        let (bytes, key) = (16 * self.blocks as u64, self.arrays.keys_each as u32 - 1);
        let run = Segment { from: place, to: place, bytes, key, ..Segment::default() };
        let host = &mut *staging.host;
        run.write(&mut host[places.run_segments..]);
        let first_tile = places.run_first_tile;
        host[first_tile..first_tile + 8].fill(0);
        host[first_tile + 8..first_tile + 16].copy_from_slice(&self.run_tiles_each.to_ne_bytes());
        self.task.gpu().copy_in(stream, &mut staging.host, 0..places.described, &staging.device, 0)
    }

    /// # Safety
    /// The staging buffer is large enough for `places`. Its described part is copied to the device on the same stream before
    /// the launches, and the kernel with the parameters [`Shape::segments`] is launched first. The staging buffer and the
    /// table's memory stay allocated until an event that is recorded after the launches has passed, or until the machine has
    /// been synchronised.
    unsafe fn batch<'a>(
        &'a self,
        hashing: Option<&'a Hashing>,
        places: &Places,
        base: u64,
        stream: &'a Stream,
    ) -> Batch<'a> {
        let at = |place: usize| base + place as u64;
        let parts = Parts {
            gpu: self.task.gpu(),
            stream,
            family: self.family,
            size: self.task.size,
            work: Tiled {
                tiling: self.tiling,
                segments: at(places.segments),
                first_tile: at(places.first_tile),
                tiles: self.tiles,
                count: self.count,
            },
            auxiliary: (self.runs > 0).then(|| AuxiliaryBlocks {
                over: Tiled {
                    tiling: self.run_tiling,
                    segments: at(places.run_segments),
                    first_tile: at(places.run_first_tile),
                    tiles: self.run_tiles_each * self.runs as u64,
                    count: self.runs as u32,
                },
                blocks: at(places.states),
            }),
            keys: (self.table.keys.offset(), self.keys as u32),
            schedules: at(places.schedules),
            scratch: at(places.scratch),
            hashing,
            aead: self.gcm.then(|| Aead { extras: at(places.extras), status: self.table.status.offset() }),
            ocb: None,
            // The number of bytes is only available on the device.
            bytes: 0,
        };
        // SAFETY: the addresses refer to the table, and to places that `places` makes large enough for its messages. The kernels that write
        // the descriptions check each message against the length of the data. The caller guarantees the other requirements of `Batch::new`.
        unsafe { Batch::new(parts) }
    }

    /// Queues all launches, and the wiping of the staging buffer's device memory.
    ///
    /// # Safety
    /// The requirements of [`Shape::batch`].
    unsafe fn launch(&self, staging: &Staging, places: &Places, stream: &Stream) -> Result<Event> {
        let (gpu, table) = (self.task.gpu(), self.table);
        let base = staging.device.address();
        let at = |place: usize| base + place as u64;
        let level = |(&each, &(first_tile, output)): (&u64, &(usize, usize))| Level {
            first_tile: at(first_tile),
            output: at(output),
            tiles: each * u64::from(self.count),
        };
        let is_polyval = self.task.kind == Kind::Polyval;
        let hashing = self.hashes.then(|| Hashing {
            keys: self.keys as u32,
            hash_keys: if is_polyval { table.keys.offset() } else { at(places.states) },
            stride: 16 * self.blocks_each.max(1) as u32,
            levels: self.levels.iter().zip(&places.levels).map(level).collect(),
            rows: at(places.rows),
            matrices: self.by_matrices().then(|| at(places.matrices)),
            polyval: is_polyval,
            carry_less: self.task.is_carry_less(),
        });
        // SAFETY: the caller meets the conditions of this function.
        let batch = unsafe { self.batch(hashing.as_ref(), places, base, stream) };
        let launch = |entry, threads, parameters: &Parameters| {
            // SAFETY: the addresses in the parameters below refer to the table and to places of the staging buffer. Both are
            // large enough for the number of messages in the parameters. The caller guarantees that this memory stays
            // allocated.
            unsafe { batch.launch_with(entry, one_each(threads), parameters, 0) }
        };
        launch(helper::TABLE_SEGMENTS, u64::from(self.count) + 1, &self.segments(places, base))?;
        if !is_polyval {
            batch.expand()?;
        }
        if let Kind::Gcm { opens } = self.task.kind {
            let pairs = |place: usize| if self.arrays.shared { 0 } else { at(place) };
            let messages = Parameters::default()
                .long(at(places.segments))
                .long(at(places.extras))
                .long(at(places.states))
                .long(pairs(places.run_segments))
                .long(pairs(places.run_first_tile))
                .long(self.arrays.tags.map_or(0, DeviceSlice::offset))
                .word(self.count)
                .word(opens.into());
            launch(helper::GCM_MESSAGES, u64::from(self.count) + 1, &messages)?;
        } else if self.hashes && !is_polyval {
            // GHASH needs zero blocks here. The previous kernel may have written chaining states, which GHASH does not need.
            gpu.zero(stream, &staging.device, places.states..places.states + 16 * self.blocks)?;
        }
        for (&each, &(first_tile, _)) in self.levels.iter().zip(&places.levels) {
            let uniform = Parameters::default().long(at(first_tile)).long(each).word(self.count);
            launch(helper::UNIFORM_TILES, u64::from(self.count) + 1, &uniform)?;
        }
        batch.run(self.task.kind)?;
        if !self.gcm {
            let results = Parameters::default()
                .long(at(places.segments))
                .long(table.states.offset())
                .long(table.status.offset())
                .word(self.count)
                .word(self.task.chaining() as u32);
            launch(helper::TABLE_RESULTS, self.count.into(), &results)?;
        }
        gpu.zero(stream, &staging.device, 0..places.len)?;
        gpu.record(stream)
    }

    /// `struct Arrays` of `kernels/helpers.cu`.
    fn segments(&self, places: &Places, base: u64) -> Parameters {
        let (table, arrays) = (self.table, &self.arrays);
        let at_if = |is_there: bool, place: usize| if is_there { base + place as u64 } else { 0 };
        // For GCM, a separate kernel makes these segments.
        let own_runs = !self.gcm && self.runs > 0 && !arrays.shared;
        Parameters::default()
            .long(table.states.offset())
            .long(table.offsets.offset())
            .long(table.lengths.offset())
            .long(table.from.offset())
            .long(table.to.offset())
            .long(table.from.len() as u64)
            .long(arrays.longest as u64)
            .long(self.tiles_each)
            .long(at_if(true, places.segments))
            .long(at_if(true, places.first_tile))
            .long(at_if(self.task.kind.tweaks() || own_runs, places.states))
            .long(at_if(own_runs, places.run_segments))
            .long(at_if(own_runs, places.run_first_tile))
            .long(self.run_tiles_each)
            .word(self.count)
            .word(arrays.keys_each as u32)
            .word(arrays.shared.into())
            .word(arrays.unit as u32)
    }
}

/// Returns the number of tiles of each message at each level of GHASH, computed from the longest message. The list is empty if one thread
/// hashes each message.
fn uniform_levels(limits: &Limits, longest: u64, messages: u64, keys: u64) -> Vec<u64> {
    let mut tiles = longest.div_ceil(GHASH_TILE_BLOCKS).max(1);
    if by_messages(limits, longest, messages, tiles.saturating_mul(messages), keys) {
        return Vec::new();
    }
    let mut levels = vec![tiles];
    while tiles > 1 {
        tiles = tiles.div_ceil(GHASH_TILE_BLOCKS);
        levels.push(tiles);
    }
    levels
}

impl Pending for Flight {
    fn is_ready(&self) -> bool {
        self.work.is_past()
    }

    fn wait(self: Box<Self>) -> Result<()> {
        let gpu = self.work.device();
        self.work.wait().inspect_err(|_| gpu.zero_outputs(&self.stream, &self.outputs))?;
        self.work.finish();
        Ok(())
    }
}
