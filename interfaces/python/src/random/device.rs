//! Random bytes in memory of a device.

use std::sync::{Arc, Mutex};

use lockstep::Engine;
use lockstep::hazmat::backend::DeviceId;
use lockstep::hazmat::data::{Data, DeviceSlice};
use lockstep::hazmat::timing::Shape;
use lockstep::hazmat::work::{Operation, Pass, Segment, Task, Work};
use lockstep::hazmat::{Block, Key, Result as CoreResult};
use pyo3::prelude::*;

use super::blocks;
use crate::engine;
use crate::tensor::{Allocation, Imported, start_in_background};

/// Number of zero bytes on a device. Their encryption is the keystream. This number of bytes stays in the cache of a GPU.
const ZEROS: usize = 4 << 20;

/// The zeros of the device that was used last.
static CURRENT: Mutex<Option<Arc<Allocation>>> = Mutex::new(None);

fn zeros(engine: &Engine, device: DeviceId) -> CoreResult<Arc<Allocation>> {
    // After a fork, a thread of the parent that does not exist here may hold the lock. So this function does not wait for the lock.
    let known = CURRENT.try_lock().ok().and_then(|current| current.clone());
    if let Some(zeros) = known.filter(|zeros| zeros.is_of(engine, device)) {
        return Ok(zeros);
    }
    let zeros = Arc::new(Allocation::new(engine.clone(), device, ZEROS)?);
    if let Ok(mut current) = CURRENT.try_lock() {
        *current = Some(Arc::clone(&zeros));
    }
    Ok(zeros)
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
    start_in_background(py, vec![array.keep], move |submitted| {
        let zeros = zeros(&engine, to.device())?;
        let starts: Vec<usize> = (0..to.len()).step_by(ZEROS).collect();
        let state = |&start: &usize| block.wrapping_add(blocks(start)).to_be_bytes();
        let mut states: Vec<Block> = starts.iter().map(state).collect();
        let segments = states.iter_mut().zip(&starts).map(|(state, &start)| {
            let piece = to.slice(start..to.len().min(start + ZEROS));
            let data = Data::on_device(zeros.slice().slice(0..piece.len()), piece)?;
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
