//! The memory of the test device: buffers with handles, which no host pointer can reach.

use std::collections::HashMap;
use std::num::NonZero;

use zeroize::Zeroizing;

use super::*;
use lockstep_core::backend::{DeviceBuffer, Fetch};
use lockstep_core::data::{BufferHandle, DeviceSlice, PinnedBuffer};
use lockstep_core::work::Stream;

pub(super) struct Memory {
    allocations: Arc<Mutex<Allocations>>,
    /// The queue of the device's work, which runs in order.
    queue: Arc<Mutex<Sender<Job>>>,
}

#[derive(Default)]
struct Allocations {
    by_handle: HashMap<BufferHandle, Vec<u8>>,
    /// The number of allocations so far. No handle is used twice, so that tests detect a use after free.
    count: u64,
}

impl Memory {
    pub(super) fn new(queue: &Arc<Mutex<Sender<Job>>>) -> Memory {
        Memory { allocations: Arc::default(), queue: Arc::clone(queue) }
    }

    /// The input of a job, if it is in host memory. For data in pinned or device memory, the result is empty, and the job
    /// reads the data when it runs.
    pub(super) fn read_in(&self, data: &Data<'_>) -> Result<Vec<u8>> {
        match data {
            Data::Host(data) => Ok(match data {
                HostData::InPlace(data) => data.to_vec(),
                HostData::Copy { from, .. } | HostData::ReadOnly(from) => from.to_vec(),
            }),
            Data::Pinned { .. } => Ok(Vec::new()),
            Data::Device { from, .. } if from.device() == MOCK_DEVICE => Ok(Vec::new()),
            Data::Device { from, .. } => {
                Err(Error::OutOfReach { device: MOCK_DEVICE, what: format!("memory of {}", from.device()) })
            }
        }
    }

    pub(super) fn read(&self, from: &DeviceSlice) -> Result<Vec<u8>> {
        with(&self.allocations, from, |bytes| bytes.to_vec())
    }

    pub(super) fn write(&self, to: &DeviceSlice, bytes: &[u8]) -> Result<()> {
        if bytes.len() != to.len() {
            return Err(Error::OutputLength { needed: bytes.len(), got: to.len() });
        }
        with(&self.allocations, to, |place| place.copy_from_slice(bytes))
    }
}

fn with<T>(
    allocations: &Mutex<Allocations>,
    slice: &DeviceSlice,
    work: impl FnOnce(&mut [u8]) -> T,
) -> Result<T> {
    let mut allocations = lock(allocations);
    let what = || format!("{slice:?}, which is not allocated");
    let unknown = || Error::OutOfReach { device: MOCK_DEVICE, what: what() };
    let bytes = allocations.by_handle.get_mut(&slice.buffer()).ok_or_else(unknown)?;
    let at = slice.offset() as usize;
    Ok(work(bytes.get_mut(at..at + slice.len()).ok_or_else(unknown)?))
}

impl DeviceMemory for Memory {
    fn allocate(&self, len: usize) -> Result<Box<dyn DeviceBuffer>> {
        let mut allocations = lock(&self.allocations);
        allocations.count += 1;
        let number = NonZero::new(allocations.count).expect("one at least");
        let handle = BufferHandle::new(number);
        allocations.by_handle.insert(handle, vec![0; len]);
        let slice = DeviceSlice::of_buffer(MOCK_DEVICE, handle, len);
        Ok(Box::new(Buffer { slice, allocations: Arc::clone(&self.allocations) }))
    }

    fn allocate_pinned(&self, len: usize) -> Result<PinnedBuffer> {
        Ok(PinnedBuffer::new(MOCK_DEVICE, Box::new(vec![0; len])))
    }

    fn upload(&self, from: &[u8], to: &DeviceSlice, _stream: Stream) -> Result<()> {
        self.write(to, from)
    }

    fn download(&self, from: &DeviceSlice, to: &mut [u8], _stream: Stream) -> Result<()> {
        to.copy_from_slice(&self.read(from)?);
        Ok(())
    }

    fn fetch(&self, from: &[DeviceSlice], _stream: Stream) -> Result<Box<dyn Fetch>> {
        let (allocations, from) = (Arc::clone(&self.allocations), from.to_vec());
        let (done, parts) = channel();
        let job = move || {
            let parts = from.iter().map(|slice| with(&allocations, slice, |bytes| bytes.to_vec()));
            let _ = done.send(parts.collect::<Result<Vec<_>>>().map(|parts| Zeroizing::new(parts.concat())));
        };
        lock(&self.queue).send(Box::new(job)).expect("the device's thread lives as long as the device");
        Ok(Box::new(Fetched { parts, early: Mutex::new(None) }))
    }
}

type Parts = Result<Zeroizing<Vec<u8>>>;

struct Fetched {
    parts: Receiver<Parts>,
    /// The result, if `is_ready` has received it.
    early: Mutex<Option<Parts>>,
}

impl Fetch for Fetched {
    fn is_ready(&self) -> bool {
        let mut early = lock(&self.early);
        if early.is_none() {
            *early = self.parts.try_recv().ok();
        }
        early.is_some()
    }

    fn wait(self: Box<Self>) -> Parts {
        let early = lock(&self.early).take();
        early.unwrap_or_else(|| self.parts.recv().map_err(|_| failed("its thread is gone"))?)
    }
}

struct Buffer {
    slice: DeviceSlice,
    allocations: Arc<Mutex<Allocations>>,
}

impl DeviceBuffer for Buffer {
    fn slice(&self) -> DeviceSlice {
        self.slice.clone()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        lock(&self.allocations).by_handle.remove(&self.slice.buffer());
    }
}
