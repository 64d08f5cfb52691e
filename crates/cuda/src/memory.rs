//! What callers may ask for of the device's memory.

use std::sync::Arc;

use lockstep_core::backend::{DeviceBuffer, DeviceMemory, Fetch};
use lockstep_core::data::{DeviceSlice, PinnedBuffer};
use lockstep_core::work::Stream;
use lockstep_core::{Error, Result};
use zeroize::Zeroizing;

use crate::gpu::{Event, Gpu};
use crate::kernel::{helper, one_each};
use crate::lane::{Lane, Lanes, Layout};
use crate::launch::Parameters;
use crate::machine::Hold;

#[derive(Clone)]
pub(crate) struct Memory {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) lanes: Arc<Lanes>,
}

fn same(needed: usize, got: usize) -> Result<()> {
    if needed == got { Ok(()) } else { Err(Error::OutputLength { needed, got }) }
}

impl DeviceMemory for Memory {
    fn allocate(&self, len: usize) -> Result<Box<dyn DeviceBuffer>> {
        Ok(Box::new(self.gpu.buffer(len)?))
    }

    fn allocate_pinned(&self, len: usize) -> Result<PinnedBuffer> {
        self.gpu.callers_pinned(len)
    }

    fn upload(&self, from: &[u8], to: &DeviceSlice, stream: Stream) -> Result<()> {
        same(from.len(), to.len())?;
        self.gpu.upload(from, to, stream)
    }

    fn download(&self, from: &DeviceSlice, to: &mut [u8], stream: Stream) -> Result<()> {
        same(from.len(), to.len())?;
        self.gpu.download(from, to, stream)
    }

    fn fetch(&self, from: &[DeviceSlice], stream: Stream) -> Result<Box<dyn Fetch>> {
        let holds = from.iter().map(|slice| self.gpu.hold(slice)).collect::<Result<Vec<_>>>()?;
        let mut layout = Layout::default();
        let [places, lengths, targets] = [(); 3].map(|()| layout.section(8 * from.len()));
        let told = layout.len();
        let total = from.iter().map(DeviceSlice::len).sum();
        let parts = layout.section(total);
        let mut lane = self.lanes.take()?;
        lane.reserve(&self.gpu, layout.len(), layout.len())?;
        let mut target = 0u64;
        for (index, slice) in from.iter().enumerate() {
            let entries = [(places, slice.address()), (lengths, slice.len() as u64), (targets, target)];
            for (at, value) in entries {
                lane.host[at + 8 * index..][..8].copy_from_slice(&value.to_ne_bytes());
            }
            target += slice.len() as u64;
        }
        let stream = self.gpu.callers_stream(stream);
        self.gpu.copy_in(&stream, &mut lane.host, 0..told, &lane.device, 0)?;
        let at = |place: usize| lane.device.address() + place as u64;
        let parameters =
            Parameters::default().long(at(places)).long(at(lengths)).long(at(targets)).long(at(parts)).word(
                u32::try_from(from.len()).map_err(|_| self.gpu.failed("too many parts to fetch at once"))?,
            );
        let shape = one_each(32 * from.len() as u64);
        let shape = shape.ok_or_else(|| self.gpu.failed("too many parts to fetch at once"))?;
        if shape.grid > 0 {
            self.gpu.launch(&stream, helper::GATHER, shape, parameters.bytes(), total as u64)?;
        }
        if total > 0 {
            self.gpu.copy_out(&stream, &lane.device, parts, &mut lane.host, parts..parts + total)?;
        }
        self.gpu.zero(&stream, &lane.device, 0..layout.len())?;
        let event = self.gpu.record(&stream)?;
        lane.host.settle(&stream, &event);
        let lanes = Arc::clone(&self.lanes);
        Ok(Box::new(Fetched { lanes, lane: Some(lane), event, parts: parts..parts + total, _holds: holds }))
    }
}

/// Parts under way.
struct Fetched {
    lanes: Arc<Lanes>,
    /// None once it has been given back.
    lane: Option<Lane>,
    event: Event,
    /// Where they will be in the lane.
    parts: std::ops::Range<usize>,
    _holds: Vec<Hold>,
}

impl Fetch for Fetched {
    fn is_ready(&self) -> bool {
        self.event.is_past()
    }

    fn wait(mut self: Box<Self>) -> Result<Zeroizing<Vec<u8>>> {
        self.event.wait()?;
        let lane = self.lane.take().expect("taken only here and on drop");
        let parts = Zeroizing::new(lane.host[self.parts.clone()].to_vec());
        self.lanes.give(lane);
        Ok(parts)
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        if let Some(lane) = self.lane.take()
            && self.event.wait().is_ok()
        {
            self.lanes.give(lane);
        }
    }
}
