//! Messages that only the device knows: their segments are made there, from arrays, on the caller's stream.

use std::sync::Arc;

use lockstep_core::backend::{Completion, Pending};
use lockstep_core::data::{Data, DeviceSlice};
use lockstep_core::work::{Stream, Table};
use lockstep_core::{Error, Result};

use crate::chunk::Task;
use crate::gpu::{Event, Gpu, Stream as GpuStream};
use crate::kernel::{helper, one_each};
use crate::lane::{Lane, Lanes, Layout};
use crate::launch::{Parameters, Segment};
use crate::machine::Hold;
use crate::passes::{Batch, Chain, Hashing, Kind, Tiled, Tweaks};

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
    check(table, key_bytes, shared)?;
    if count == 0 {
        return Ok(Completion::Done);
    }
    let too_many = || task.gpu.failed("more messages than one launch takes: give it fewer at once");
    let count32 = i32::try_from(count).map_err(|_| too_many())? as u32;
    let mut holds = Vec::new();
    let arrays = [&table.keys, &table.registers, &table.offsets, &table.lengths, &table.from, &table.to];
    for slice in arrays.into_iter().chain([&table.status]) {
        holds.push(task.gpu.hold(slice)?);
    }

    let limits = *task.gpu.limits();
    let tiling = family.tiling(&limits, &task.options, 1, table.longest);
    let tiles_each = tiling.tiles(table.longest).max(1);
    let tiles = tiles_each.checked_mul(count as u64).ok_or_else(too_many)?;
    let scratch_bytes = match task.plan.kind {
        Kind::Chain(_) => Chain::scratch(count, task.size),
        _ if task.plan.edges => usize::try_from(tiles).ok().and_then(|tiles| tiles.checked_mul(16)),
        _ => Some(0),
    };
    let hashes = task.plan.kind == Kind::Ghash;
    let keys = if shared { keys_each } else { keys_each * count };
    // Registers under one key are one segment, which the host describes; under several each is one of its own.
    let prelude = task.plan.tweaks || hashes;
    let (tweaked, runs) = match (prelude, shared) {
        (false, _) => (0, 0),
        (true, true) if hashes => (1, 1),
        (true, true) => (count, 1),
        (true, false) => (count, count),
    };
    let tweak_tiling = family.tiling(&limits, &task.options, runs, 16 * tweaked);
    let tweak_tiles_each = if shared { tweak_tiling.tiles(16 * tweaked) } else { 1 };

    let mut layout = Layout::default();
    // The one segment over all registers comes first: it is copied there.
    let run_segments = layout.section(Segment::SIZE * runs);
    let run_first_tile = layout.section(8 * (runs + 1));
    let described = if runs == 1 { layout.len() } else { 0 };
    let registers = layout.section(16 * tweaked);
    let segments = layout.section(Segment::SIZE * count);
    let first_tile = layout.section(8 * (count + 1));
    let schedules = layout.section(keys * family.schedule(task.size));
    let scratch = layout.section(scratch_bytes.ok_or_else(too_many)?);
    let mut lane = lanes.take()?;
    lane.reserve(&task.gpu, described, layout.len())?;
    let at = |place: usize| lane.device.address() + place as u64;
    let stream = task.gpu.callers_stream(stream);
    if runs == 1 {
        let place = at(registers);
        let run = Segment {
            from: place,
            to: place,
            bytes: 16 * tweaked as u64,
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
            registers: at(registers),
        }),
        schedules: at(schedules),
        scratch: at(scratch),
        // Only the device knows how long messages are: a thread each.
        hashing: hashes.then(|| Hashing {
            keys: keys as u32,
            levels: None,
            first_tiles: Vec::new(),
            outputs: Vec::new(),
            rows: 0,
        }),
        // Only the device knows.
        bytes: 0,
    };
    let own_tweaks = runs > 1;
    // struct Arrays of kernels/helpers.cu.
    let arrays = Parameters::default()
        .long(table.registers.address())
        .long(table.offsets.address())
        .long(table.lengths.address())
        .long(table.from.address())
        .long(table.to.address())
        .long(table.from.len() as u64)
        .long(table.longest as u64)
        .long(tiles_each)
        .long(at(segments))
        .long(at(first_tile))
        .long(if task.plan.tweaks || own_tweaks { at(registers) } else { 0 })
        .long(if own_tweaks { at(run_segments) } else { 0 })
        .long(if own_tweaks { at(run_first_tile) } else { 0 })
        .long(tweak_tiles_each)
        .word(count32)
        .word(keys_each as u32)
        .word(shared.into())
        .word(unit as u32);
    let output = (!task.plan.kind.only_reads()).then(|| table.to.clone());
    let outputs: Vec<DeviceSlice> = output.into_iter().chain([table.status.clone()]).collect();
    let finished = (|| {
        batch.launch(helper::TABLE_SEGMENTS, one_each(count as u64 + 1), &arrays, 0)?;
        batch.expand(table.keys.address(), keys as u32)?;
        if hashes {
            // The kernel before put registers there, for XTS.
            task.gpu.zero(&stream, &lane.device, registers..registers + 16 * tweaked)?;
        }
        (task.plan.run)(&batch)?;
        let results = Parameters::default()
            .long(at(segments))
            .long(table.registers.address())
            .long(table.status.address())
            .word(count32)
            .word(task.plan.register as u32);
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

/// Arrays must be as long as there are messages.
fn check(table: &Table, key_bytes: usize, shared: bool) -> Result<()> {
    let keys = if shared { 1 } else { table.messages };
    for (slice, size, messages) in [
        (&table.keys, key_bytes, keys),
        (&table.registers, 16, table.messages),
        (&table.offsets, 8, table.messages),
        (&table.lengths, 8, table.messages),
        (&table.status, 1, table.messages),
    ] {
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
