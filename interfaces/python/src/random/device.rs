//! Random bytes in memory of a device.

use std::sync::{Arc, Mutex};

use lockstep::Engine;
use lockstep::hazmat::backend::{DeviceBuffer, DeviceId};
use lockstep::hazmat::data::{Data, DeviceSlice};
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::timing::Shape;
use lockstep::hazmat::work::{Operation, Pass, Segment, Task, Work};
use lockstep::hazmat::{Block, Key, Result as CoreResult};
use pyo3::prelude::*;

use super::blocks;
use crate::engine;
use crate::tensor::{Imported, start_in_background};

/// Bytes of zeros on a device, whose encryption is the keystream. They stay in the cache of a GPU.
const ZEROS: usize = 4 << 20;

/// The zeros of the device that was used last.
static CURRENT: Mutex<Option<Arc<Zeros>>> = Mutex::new(None);

struct Zeros {
    engine: Engine,
    slice: DeviceSlice,
    /// Held until it is dropped.
    _owner: Mutex<Box<dyn DeviceBuffer>>,
}

impl Zeros {
    fn of(engine: &Engine, device: DeviceId) -> CoreResult<Arc<Zeros>> {
        // A thread that did not survive a fork may hold the lock.
        let known = CURRENT.try_lock().ok().and_then(|current| current.clone());
        let known = known.filter(|zeros| {
            zeros.slice.device() == device && Arc::ptr_eq(zeros.engine.planner(), engine.planner())
        });
        if let Some(zeros) = known {
            return Ok(zeros);
        }
        let owner = engine.planner().memory(device)?.allocate(ZEROS)?;
        let (engine, slice) = (engine.clone(), owner.slice());
        let zeros = Arc::new(Zeros { engine, slice, _owner: Mutex::new(owner) });
        if let Ok(mut current) = CURRENT.try_lock() {
            *current = Some(Arc::clone(&zeros));
        }
        Ok(zeros)
    }
}

/// Writes the keystream from a block on to memory of a device, and returns when the work is queued on the stream of the array.
///
/// # Errors
/// Those of the device.
pub(super) fn random_bytes(
    py: Python<'_>,
    key: Key,
    block: u128,
    to: DeviceSlice,
    array: Imported,
) -> PyResult<()> {
    if to.is_empty() {
        return Ok(());
    }
    let engine = engine::current(py)?;
    let stream = array.stream;
    start_in_background(py, vec![array.into_keep()], move |submitted| {
        let zeros = Zeros::of(&engine, to.device())?;
        let starts: Vec<usize> = (0..to.len()).step_by(ZEROS).collect();
        let state = |&start: &usize| block.wrapping_add(blocks(start)).to_be_bytes();
        let mut states: Vec<Block> = starts.iter().map(state).collect();
        let segments = states.iter_mut().zip(&starts).map(|(state, &start)| {
            let piece = to.slice(start..to.len().min(start + ZEROS));
            let data = Data::on_device(zeros.slice.slice(0..piece.len()), piece)?;
            Ok(Segment { key: &key, tweak: None, state, data })
        });
        let mut segments = segments.collect::<CoreResult<Vec<_>>>()?;
        let shape = Shape::of(segments.iter().map(|segment| segment.data.len()));
        let plan = engine.planner().plan(Operation::Pass(Pass::Ctr), key.size(), shape, Some(to.device()))?;
        let completion = plan.submit(Work { stream, task: Task::Pass(Pass::Ctr, &mut segments) })?;
        submitted();
        completion.wait()
    })
}

/// Runs in the child of a fork, which must not use memory of the parent's device.
pub(crate) fn after_fork_in_child() {
    if let Ok(mut current) = CURRENT.try_lock() {
        std::mem::forget(current.take());
    }
}
