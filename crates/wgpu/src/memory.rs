//! Memory of the device that callers may ask for. wgpu gives buffers, not addresses, so addresses are numbers of our own: each
//! allocation has a stretch of them, with a gap behind it.
//!
//! No caller's buffer is bound: what is worked on is copied into a lane's, on the device, and back. So one may be larger than
//! a binding, and is split where it is larger than a buffer may be.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lockstep_core::backend::{DeviceBuffer, DeviceId, DeviceMemory, Fetch};
use lockstep_core::data::{DeviceSlice, PinnedBuffer};
use lockstep_core::work::Stream;
use lockstep_core::{Error, Result};
use wgpu::BufferUsages;
use zeroize::Zeroizing;

use crate::device::WgpuDevice;
use crate::gpu::{Gpu, lock};
use crate::lane::{Lane, Lanes, Room};

/// What copies on the device are multiples of.
pub(crate) const WORD: usize = wgpu::COPY_BUFFER_ALIGNMENT as usize;

/// Bytes that are copied from or to the host at once.
const AT_ONCE: usize = 4 << 20;

/// Addresses between allocations, and what they are multiples of.
const GAP: u64 = 4096;

/// Where the next allocation of any device is: the same adapter may be open more than once under one name, and nobody is to
/// take another's memory for its own.
static NEXT: AtomicU64 = AtomicU64::new(GAP);

/// All that callers have.
#[derive(Default)]
pub(crate) struct Allocations {
    all: Mutex<BTreeMap<u64, Arc<Allocation>>>,
}

/// One of them.
pub(crate) struct Allocation {
    buffers: Vec<wgpu::Buffer>,
    /// Bytes of each but the last.
    each: usize,
    len: usize,
}

/// A range of memory.
#[derive(Clone)]
pub(crate) struct Place {
    allocation: Arc<Allocation>,
    at: usize,
}

impl Place {
    /// The buffers behind some bytes from here on, each with the place there and the length.
    pub(crate) fn stretches(&self, range: Range<usize>) -> impl Iterator<Item = (&wgpu::Buffer, u64, usize)> {
        let each = self.allocation.each;
        let (mut at, end) = (self.at + range.start, self.at + range.end);
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (number, inside) = (at / each, at % each);
            let len = (end - at).min(each - inside);
            at += len;
            Some((&self.allocation.buffers[number], inside as u64, len))
        })
    }

    /// True if copies on the device can begin here.
    pub(crate) fn is_aligned(&self) -> bool {
        self.at.is_multiple_of(WORD)
    }
}

impl Gpu {
    /// Where a slice is. One without bytes may name any address, also one that is free again or none at all.
    ///
    /// # Errors
    /// [`Error::OutOfReach`] if it is not memory of this device.
    pub(crate) fn place(&self, slice: &DeviceSlice) -> Result<Place> {
        let out_of_reach = || Error::OutOfReach {
            device: self.id(),
            what: if slice.device() == self.id() {
                "memory that was not allocated by it".into()
            } else {
                format!("memory of {}", slice.device())
            },
        };
        if slice.is_empty() {
            let allocation = Allocation { buffers: Vec::new(), each: WORD, len: 0 };
            return Ok(Place { allocation: Arc::new(allocation), at: 0 });
        }
        let all = lock(&self.allocations.all);
        let found = all.range(..=slice.address()).next_back();
        let found = found.filter(|_| slice.device() == self.id());
        let (start, allocation) = found.ok_or_else(out_of_reach)?;
        let at = usize::try_from(slice.address() - start).map_err(|_| out_of_reach())?;
        if at.checked_add(slice.len()).is_none_or(|end| end > allocation.len) {
            return Err(out_of_reach());
        }
        Ok(Place { allocation: Arc::clone(allocation), at })
    }

    /// Zeroes memory, after what is queued already.
    pub(crate) fn zero(&self, slice: &DeviceSlice) -> Result<()> {
        let place = self.place(slice)?;
        if !place.is_aligned() || !slice.len().is_multiple_of(WORD) {
            return upload(self, &Lanes::default(), &vec![0; slice.len()], &place);
        }
        self.call(|device, queue| {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            for (buffer, at, len) in place.stretches(0..slice.len()) {
                encoder.clear_buffer(buffer, at, Some(len as u64));
            }
            queue.submit([encoder.finish()]);
        })
    }
}

/// The words around some bytes from a place on: the place they begin at, how many bytes come before, and of all.
fn words(place: &Place, len: usize) -> (Place, usize, usize) {
    let before = place.at % WORD;
    let whole = Place { allocation: Arc::clone(&place.allocation), at: place.at - before };
    (whole, before, (before + len).next_multiple_of(WORD))
}

/// Bytes of a copy, for which there is room with what belongs to it.
fn at_once(gpu: &Gpu) -> usize {
    AT_ONCE.min(gpu.limits().max_buffer_size as usize / 4 / WORD * WORD)
}

/// Copies to the device; done when it returns.
fn upload(gpu: &Gpu, lanes: &Lanes, from: &[u8], to: &Place) -> Result<()> {
    if from.is_empty() {
        return Ok(());
    }
    let (whole, before, len) = words(to, from.len());
    let mut bytes = Zeroizing::new(Vec::with_capacity(len));
    let has_neighbours = len != from.len();
    let _turn = has_neighbours.then(|| lock(&gpu.parts_of_words));
    if has_neighbours {
        // Neighbours in the same words stay as they are.
        bytes.resize(len, 0);
        download(gpu, lanes, &whole, &mut bytes)?;
        bytes[before..before + from.len()].copy_from_slice(from);
    }
    let bytes: &[u8] = if has_neighbours { &bytes } else { from };
    for (number, part) in bytes.chunks(at_once(gpu)).enumerate() {
        let at = number * at_once(gpu);
        let mut lane = lanes.take();
        lane.reserve(gpu, &Room { given: part.len(), work_in: 0, beside: 0, work: 0, download: 0 })?;
        lane.fill(gpu, part.len(), |view| view.slice(..).copy_from_slice(part))?;
        let submitted = gpu.call(|device, queue| -> Result<_> {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            let mut done = 0;
            for (buffer, target, len) in whole.stretches(at..at + part.len()) {
                lane.copy_part(gpu, &mut encoder, done, (buffer, target), len)?;
                done += len as u64;
            }
            Ok(queue.submit([encoder.finish()]))
        });
        let submission = match submitted.flatten() {
            Ok(submission) => submission,
            Err(error) => {
                lane.discard(gpu);
                return Err(error);
            }
        };
        lane.map(gpu, 0)?;
        gpu.wait(&submission)?;
        lanes.give(gpu, lane);
    }
    Ok(())
}

/// Copies to the host; done when it returns.
pub(crate) fn download(gpu: &Gpu, lanes: &Lanes, from: &Place, to: &mut [u8]) -> Result<()> {
    for (number, part) in to.chunks_mut(at_once(gpu)).enumerate() {
        let at = number * at_once(gpu);
        let place = Place { allocation: Arc::clone(&from.allocation), at: from.at + at };
        let mut fetched = start_fetch(gpu, lanes, &[(place, part.len())])?;
        fetched.read(gpu, |bytes| part.copy_from_slice(bytes))?;
        lanes.give(gpu, fetched.lane);
    }
    Ok(())
}

/// Parts on their way to the host.
struct Fetching {
    lane: Lane,
    submission: wgpu::SubmissionIndex,
    /// Of each part what lies before it among its words, and its length.
    parts: Vec<(usize, usize)>,
    total: usize,
}

fn start_fetch(gpu: &Gpu, lanes: &Lanes, parts: &[(Place, usize)]) -> Result<Fetching> {
    let wanted: Vec<_> = parts.iter().filter(|(_, len)| *len > 0).collect();
    let total = wanted.iter().map(|(place, len)| words(place, *len).2).sum::<usize>();
    let mut lane = lanes.take();
    lane.reserve(gpu, &Room { given: WORD, work_in: 0, beside: 0, work: 0, download: total })?;
    lane.fill(gpu, WORD, |view| view.slice(..).fill(0))?;
    let download = lane.download.get(gpu)?;
    let submission = gpu.call(|device, queue| {
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut done = 0;
        for (place, len) in &wanted {
            let (whole, _, all) = words(place, *len);
            for (buffer, at, len) in whole.stretches(0..all) {
                encoder.copy_buffer_to_buffer(buffer, at, download, done, len as u64);
                done += len as u64;
            }
        }
        queue.submit([encoder.finish()])
    })?;
    lane.map(gpu, total)?;
    let parts = wanted.iter().map(|(place, len)| (place.at % WORD, *len)).collect();
    Ok(Fetching { lane, submission, parts, total })
}

impl Fetching {
    /// The parts, one behind the other.
    fn read(&mut self, gpu: &Gpu, read: impl FnOnce(&[u8])) -> Result<()> {
        gpu.wait(&self.submission)?;
        let parts = &self.parts;
        self.lane.read(gpu, self.total, |bytes| {
            let mut all = Zeroizing::new(Vec::with_capacity(bytes.len()));
            let mut at = 0;
            for (before, len) in parts {
                all.extend_from_slice(&bytes[at + before..at + before + len]);
                at += (before + len).next_multiple_of(WORD);
            }
            read(&all);
        })
    }
}

/// What a caller was promised.
struct Fetched {
    gpu: Arc<Gpu>,
    lanes: Arc<Lanes>,
    /// None once it has been given back.
    fetching: Option<Fetching>,
}

impl Fetch for Fetched {
    fn is_ready(&self) -> bool {
        self.gpu.look();
        self.gpu.check().is_err() || self.fetching.as_ref().is_none_or(|fetching| fetching.lane.is_past())
    }

    fn wait(mut self: Box<Self>) -> Result<Zeroizing<Vec<u8>>> {
        let Some(mut fetching) = self.fetching.take() else { return Ok(Zeroizing::default()) };
        let mut all = Zeroizing::default();
        fetching.read(&self.gpu, |bytes| all = Zeroizing::new(bytes.to_vec()))?;
        self.lanes.give(&self.gpu, fetching.lane);
        Ok(all)
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        if let Some(fetching) = self.fetching.take()
            && self.gpu.wait(&fetching.submission).is_ok()
        {
            self.lanes.give(&self.gpu, fetching.lane);
        }
    }
}

/// A caller's allocation.
struct Owned {
    gpu: Arc<Gpu>,
    device: DeviceId,
    address: u64,
    len: usize,
}

impl DeviceBuffer for Owned {
    fn slice(&self) -> DeviceSlice {
        // SAFETY: the memory is allocated until this is dropped; that it is not used in two ways at once is up to the caller,
        // as with every slice.
        #[allow(unsafe_code, reason = "the address is one of this device's own")]
        unsafe {
            DeviceSlice::from_raw(self.device, self.address, self.len)
        }
    }
}

impl Drop for Owned {
    /// Wiped in the order of the queue, so after all work on it; work that is under way keeps the buffers.
    fn drop(&mut self) {
        let Some(allocation) = lock(&self.gpu.allocations.all).remove(&self.address) else { return };
        let _ = self.gpu.call(|device, queue| {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            for buffer in &allocation.buffers {
                encoder.clear_buffer(buffer, 0, None);
            }
            queue.submit([encoder.finish()]);
        });
    }
}

/// Memory of the host: wgpu has no other that stays mapped while the device uses it.
struct Pinned(Zeroizing<Vec<u8>>);

impl Deref for Pinned {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Pinned {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

fn same(needed: usize, got: usize) -> Result<()> {
    if needed == got { Ok(()) } else { Err(Error::OutputLength { needed, got }) }
}

/// All work of a device is in one queue, so streams are one.
impl DeviceMemory for WgpuDevice {
    fn allocate(&self, len: usize) -> Result<Box<dyn DeviceBuffer>> {
        let gpu = self.gpu()?;
        let each = gpu.limits().max_buffer_size as usize / 256 * 256;
        let rounded =
            len.max(1).checked_next_multiple_of(16).ok_or_else(|| gpu.failed("not so much memory"))?;
        let usage = BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
        let mut buffers = Vec::new();
        for at in (0..rounded).step_by(each) {
            let size = (rounded - at).min(each) as u64;
            let descriptor = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
            buffers.push(gpu.call(|device, _| device.create_buffer(&descriptor))?);
        }
        let stretch = (rounded as u64).next_multiple_of(GAP) + GAP;
        let address = NEXT.fetch_add(stretch, Ordering::Relaxed);
        lock(&gpu.allocations.all).insert(address, Arc::new(Allocation { buffers, each, len }));
        Ok(Box::new(Owned { device: gpu.id(), gpu, address, len }))
    }

    fn allocate_pinned(&self, len: usize) -> Result<PinnedBuffer> {
        let gpu = self.gpu()?;
        let mut bytes = Zeroizing::new(Vec::new());
        bytes.try_reserve_exact(len).map_err(|_| gpu.failed(format!("no {len} bytes of memory")))?;
        bytes.resize(len, 0);
        Ok(PinnedBuffer::new(gpu.id(), Box::new(Pinned(bytes))))
    }

    fn upload(&self, from: &[u8], to: &DeviceSlice, _: Stream) -> Result<()> {
        same(from.len(), to.len())?;
        let gpu = self.gpu()?;
        upload(&gpu, self.lanes(), from, &gpu.place(to)?)
    }

    fn download(&self, from: &DeviceSlice, to: &mut [u8], _: Stream) -> Result<()> {
        same(from.len(), to.len())?;
        let gpu = self.gpu()?;
        download(&gpu, self.lanes(), &gpu.place(from)?, to)
    }

    fn fetch(&self, from: &[DeviceSlice], _: Stream) -> Result<Box<dyn Fetch>> {
        let gpu = self.gpu()?;
        let parts = from.iter().map(|slice| Ok((gpu.place(slice)?, slice.len())));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let fetching = if parts.iter().all(|(_, len)| *len == 0) {
            None
        } else {
            Some(start_fetch(&gpu, self.lanes(), &parts)?)
        };
        Ok(Box::new(Fetched { gpu, lanes: Arc::clone(self.lanes()), fetching }))
    }
}
