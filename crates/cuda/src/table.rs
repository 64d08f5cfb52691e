//! Messages that only the device knows: their segments are made there, from arrays, on the caller's stream.

use std::sync::Arc;

use lockstep_core::backend::{Completion, Pending};
use lockstep_core::data::{Data, DeviceSlice};
use lockstep_core::gcm::MAX_DATA;
use lockstep_core::work::{Stream, Table};
use lockstep_core::{Error, Result};

use crate::chunk::Task;
use crate::gpu::{Event, Gpu, Stream as GpuStream};
use crate::kernel::{GHASH_ROWS, GHASH_TILE_BLOCKS, helper, one_each};
use crate::lane::{Lane, Lanes, Layout};
use crate::launch::{Parameters, Segment};
use crate::machine::{Hold, Limits};
use crate::passes::{Batch, Chain, Extra, Gcm, Hashing, Kind, Level, Tiled, Tweaks, by_messages};

/// Tables that are under way.
struct Flight {
    lanes: Arc<Lanes>,
    /// None once it has been given back.
    lane: Option<Lane>,
    event: Event,
    gpu: Arc<Gpu>,
    stream: GpuStream,
    /// What is zeroed on failure.
    outputs: Vec<DeviceSlice>,
    _holds: Vec<Hold>,
}

/// Starts a pass over a table; the unit of the pass is that of its lengths.
pub(crate) fn submit<'w>(
    lanes: &Arc<Lanes>,
    task: &Task,
    unit: usize,
    table: &Table,
    stream: Stream,
) -> Result<Completion<'w>> {
    let Some(family) = task.family else { return Ok(Completion::Done) };
    let count = table.messages;
    let keys_each = if task.plan.tweaks { 2 } else { 1 };
    let key_bytes = keys_each * task.size.bytes();
    let shared = table.keys.len() == key_bytes;
    let gcm = matches!(task.plan.kind, Kind::Gcm { .. });
    // No message is longer than all of the data: others are refused.
    let longest_bytes = table.longest.min(table.from.len());
    check(table, key_bytes, shared, gcm)?;
    if gcm && longest_bytes as u64 > MAX_DATA {
        return Err(Error::TooLong { mode: "GCM", what: "data", limit: MAX_DATA });
    }
    if count == 0 {
        return Ok(Completion::Done);
    }
    let too_many = || task.gpu.failed("more messages than one launch takes: give it fewer at once");
    let count32 = i32::try_from(count).map_err(|_| too_many())? as u32;
    let mut holds = Vec::new();
    let arrays = [&table.keys, &table.states, &table.offsets, &table.lengths, &table.from, &table.to];
    for slice in arrays.into_iter().chain([&table.status]).chain(table.tags.as_ref().filter(|_| gcm)) {
        holds.push(task.gpu.hold(slice)?);
    }

    let limits = *task.gpu.limits();
    let tiling = family.tiling(&limits, &task.options, 1, longest_bytes);
    let tiles_each = tiling.tiles(longest_bytes).max(1);
    let tiles = tiles_each.checked_mul(count as u64).ok_or_else(too_many)?;
    let scratch_bytes = match task.plan.kind {
        Kind::Chain(_) => Chain::scratch(count, task.size),
        _ if task.plan.edges => usize::try_from(tiles).ok().and_then(|tiles| tiles.checked_mul(16)),
        _ => Some(0),
    };
    let hashes = task.plan.kind.hashes();
    let keys = if shared { keys_each } else { keys_each * count };
    // Blocks that are encrypted first. Under one key they are one segment, which the host describes; else each message has
    // one of its own.
    let prelude = task.plan.tweaks || hashes;
    let blocks_each = if prelude && gcm && !shared { 2 } else { usize::from(prelude) };
    let (blocks, runs) = match task.plan.kind {
        _ if !prelude => (0, 0),
        Kind::Gcm { .. } if shared => (count + 1, 1),
        Kind::Ghash if shared => (1, 1),
        _ => (blocks_each * count, if shared { 1 } else { count }),
    };
    let longest = (longest_bytes.div_ceil(16) + usize::from(gcm)) as u64;
    let levels =
        if hashes { uniform_levels(&limits, longest, count as u64, keys as u64) } else { Vec::new() };
    let tweak_tiling = family.tiling(&limits, &task.options, runs, 16 * blocks);
    let tweak_tiles_each = if shared { tweak_tiling.tiles(16 * blocks) } else { 1 };

    let mut layout = Layout::default();
    // The one segment over all chaining states comes first: it is copied there.
    let run_segments = layout.section(Segment::SIZE * runs);
    let run_first_tile = layout.section(8 * (runs + 1));
    let described = if runs == 1 { layout.len() } else { 0 };
    let states = layout.section(16 * blocks);
    let segments = layout.section(Segment::SIZE * count);
    let first_tile = layout.section(8 * (count + 1));
    let schedules = layout.section(keys * family.schedule(task.size));
    let scratch = layout.section(scratch_bytes.ok_or_else(too_many)?);
    let extras = layout.section(if gcm { Extra::SIZE * count } else { 0 });
    let rows = layout.section(if levels.is_empty() { 0 } else { GHASH_ROWS * keys });
    let level_places: Vec<_> = levels
        .iter()
        .map(|&each| (layout.section(8 * (count + 1)), layout.section(16 * each as usize * count)))
        .collect();
    let mut lane = lanes.take()?;
    lane.reserve(&task.gpu, described, layout.len())?;
    let at = |place: usize| lane.device.address() + place as u64;
    let stream = task.gpu.callers_stream(stream);
    if runs == 1 {
        let place = at(states);
        let run = Segment {
            from: place,
            to: place,
            bytes: 16 * blocks as u64,
            key: keys_each as u32 - 1,
            ..Segment::default()
        };
        run.write(&mut lane.host[run_segments..run_segments + Segment::SIZE]);
        lane.host[run_first_tile..run_first_tile + 8].fill(0);
        lane.host[run_first_tile + 8..run_first_tile + 16].copy_from_slice(&tweak_tiles_each.to_ne_bytes());
        task.gpu.copy_in(&stream, &mut lane.host, 0..described, &lane.device, 0)?;
    }
    let at = |place: usize| lane.device.address() + place as u64;
    let batch = Batch {
        gpu: &task.gpu,
        stream: &stream,
        family,
        size: task.size,
        work: Tiled { tiling, segments: at(segments), first_tile: at(first_tile), tiles, count: count32 },
        tweaks: prelude.then(|| Tweaks {
            over: Tiled {
                tiling: tweak_tiling,
                segments: at(run_segments),
                first_tile: at(run_first_tile),
                tiles: tweak_tiles_each * runs as u64,
                count: runs as u32,
            },
            states: at(states),
        }),
        schedules: at(schedules),
        scratch: at(scratch),
        hashing: hashes.then(|| Hashing {
            keys: keys as u32,
            stride: 16 * blocks_each.max(1) as u32,
            levels: (levels.iter().zip(&level_places))
                .map(|(&each, &(first_tile, output))| Level {
                    first_tile: at(first_tile),
                    output: at(output),
                    tiles: each * count as u64,
                })
                .collect(),
            rows: at(rows),
        }),
        gcm: gcm.then(|| Gcm { extras: at(extras), status: table.status.address() }),
        // Only the device knows.
        bytes: 0,
    };
    // Those of GCM come later.
    let own_tweaks = !gcm && prelude && !shared;
    // struct Arrays of kernels/helpers.cu.
    let arrays = Parameters::default()
        .long(table.states.address())
        .long(table.offsets.address())
        .long(table.lengths.address())
        .long(table.from.address())
        .long(table.to.address())
        .long(table.from.len() as u64)
        .long(longest_bytes as u64)
        .long(tiles_each)
        .long(at(segments))
        .long(at(first_tile))
        .long(if task.plan.tweaks || own_tweaks { at(states) } else { 0 })
        .long(if own_tweaks { at(run_segments) } else { 0 })
        .long(if own_tweaks { at(run_first_tile) } else { 0 })
        .long(tweak_tiles_each)
        .word(count32)
        .word(keys_each as u32)
        .word(shared.into())
        .word(unit as u32);
    let output = (!task.plan.kind.only_reads()).then(|| table.to.clone());
    let written_tags =
        matches!(task.plan.kind, Kind::Gcm { opens: false }).then(|| table.tags.clone()).flatten();
    let outputs: Vec<DeviceSlice> =
        output.into_iter().chain([table.status.clone()]).chain(written_tags).collect();
    let finished = (|| {
        batch.launch(helper::TABLE_SEGMENTS, one_each(count as u64 + 1), &arrays, 0)?;
        batch.expand(table.keys.address(), keys as u32)?;
        if let Kind::Gcm { opens } = task.plan.kind {
            let tags = table.tags.as_ref().map_or(0, DeviceSlice::address);
            let pairs = |place: usize| if shared { 0 } else { at(place) };
            let messages = Parameters::default()
                .long(at(segments))
                .long(at(extras))
                .long(at(states))
                .long(pairs(run_segments))
                .long(pairs(run_first_tile))
                .long(tags)
                .word(count32)
                .word(opens.into());
            batch.launch(helper::GCM_MESSAGES, one_each(count as u64 + 1), &messages, 0)?;
        } else if hashes {
            // The kernel before put chaining states there, for XTS.
            task.gpu.zero(&stream, &lane.device, states..states + 16 * blocks)?;
        }
        for (&each, &(first_tile, _)) in levels.iter().zip(&level_places) {
            let uniform = Parameters::default().long(at(first_tile)).long(each).word(count32);
            batch.launch(helper::UNIFORM_TILES, one_each(count as u64 + 1), &uniform, 0)?;
        }
        (task.plan.run)(&batch)?;
        if gcm {
            task.gpu.zero(&stream, &lane.device, 0..layout.len())?;
            return task.gpu.record(&stream);
        }
        let results = Parameters::default()
            .long(at(segments))
            .long(table.states.address())
            .long(table.status.address())
            .word(count32)
            .word(task.plan.state as u32);
        batch.launch(helper::TABLE_RESULTS, one_each(count as u64), &results, 0)?;
        task.gpu.zero(&stream, &lane.device, 0..layout.len())?;
        task.gpu.record(&stream)
    })();
    let event = finished.inspect_err(|_| {
        zero(&task.gpu, &stream, &outputs);
    })?;
    lane.host.settle(&stream, &event);
    Ok(Completion::Pending(Box::new(Flight {
        lanes: Arc::clone(lanes),
        lane: Some(lane),
        event,
        gpu: Arc::clone(&task.gpu),
        stream,
        outputs,
        _holds: holds,
    })))
}

/// Half of the messages may be done: nobody is to take them for results. All of the output is zeroed, also what belongs to
/// no message.
fn zero(gpu: &Gpu, stream: &GpuStream, outputs: &[DeviceSlice]) {
    for slice in outputs {
        let _ = gpu.zero_slice(stream, slice);
    }
    stream.drain();
}

/// How many tiles each message has at each level of GHASH, by the longest one; none if a thread hashes each.
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

/// Arrays must be as long as there are messages.
fn check(table: &Table, key_bytes: usize, shared: bool, with_tags: bool) -> Result<()> {
    let tags =
        with_tags.then(|| table.tags.clone().ok_or(Error::Order { what: "GCM needs a place for tags" }));
    let tags = tags.transpose()?;
    let keys = if shared { 1 } else { table.messages };
    let arrays = [
        (&table.keys, key_bytes, keys),
        (&table.states, 16, table.messages),
        (&table.offsets, 8, table.messages),
        (&table.lengths, 8, table.messages),
        (&table.status, 1, table.messages),
    ];
    for (slice, size, messages) in
        arrays.into_iter().chain(tags.as_ref().map(|tags| (tags, 16, table.messages)))
    {
        let needed = size.saturating_mul(messages);
        if slice.len() < needed {
            return Err(Error::OutputLength { needed, got: slice.len() });
        }
    }
    // One length, of one device, and the same or disjoint.
    let (from, to): (DeviceSlice, DeviceSlice) = (table.from.clone(), table.to.clone());
    Data::on_device(from, to).map(|_| ())
}

impl Pending for Flight {
    fn is_ready(&self) -> bool {
        self.event.is_past()
    }

    fn wait(mut self: Box<Self>) -> Result<()> {
        self.event.wait().inspect_err(|_| zero(&self.gpu, &self.stream, &self.outputs))?;
        self.lanes.give(self.lane.take().expect("taken only here and on drop"));
        Ok(())
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some(lane) = self.lane.take()
            && self.event.wait().is_ok()
        {
            self.lanes.give(lane);
        }
    }
}
