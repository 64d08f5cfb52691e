//! Device memory that callers allocate.
//!
//! Callers' buffers are never bound to a shader. Data are copied on the device into a staging buffer, and results are copied
//! back. An allocation may therefore be larger than a binding. An allocation that exceeds the limit of a buffer consists of
//! several buffers.

use std::collections::HashMap;
use std::num::NonZero;
use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lockstep_core::backend::{DeviceBuffer, DeviceMemory, Fetch};
use lockstep_core::data::{BufferHandle, DeviceSlice, PinnedBuffer, check_lengths};
use lockstep_core::work::Stream;
use lockstep_core::{Error, Result};
use lockstep_gpu_host::{HostDevice, InFlight};
use wgpu::BufferUsages;
use zeroize::Zeroizing;

use crate::device::WgpuDevice;
use crate::gpu::{Gpu, lock};
use crate::staging::{Pool, Room, Staging};

/// Alignment of copies on the device in bytes.
pub(crate) const WORD: usize = wgpu::COPY_BUFFER_ALIGNMENT as usize;

/// Maximum number of bytes of one copy from or to the host.
const AT_ONCE: usize = 4 << 20;

/// The number of the next allocation. All devices of this process share it. A slice names its device by an id and its buffer
/// by a handle. The same adapter can be opened twice under one id. The handle of a buffer of one of these devices must not be
/// valid for the other.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// All allocations of callers.
pub(crate) type Allocations = Mutex<HashMap<BufferHandle, Arc<Allocation>>>;

/// An allocation.
pub(crate) struct Allocation {
    buffers: Vec<wgpu::Buffer>,
    /// Number of bytes of each buffer but the last.
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
    /// The parts of buffers that hold a range of bytes; the range starts at this place. For each part, returns its buffer,
    /// its offset in the buffer and its length.
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

    /// The place `bytes` bytes after this one.
    fn after(&self, bytes: usize) -> Place {
        Place { allocation: Arc::clone(&self.allocation), at: self.at + bytes }
    }

    /// True if a copy on the device can begin at this place.
    pub(crate) fn is_aligned(&self) -> bool {
        self.at.is_multiple_of(WORD)
    }
}

impl Gpu {
    /// The place of a slice. An empty slice may name any buffer, even one that has been freed.
    ///
    /// # Errors
    /// [`Error::OutOfReach`] if the slice is not memory of this device.
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
        let allocation = lock(&self.allocations).get(&slice.buffer()).cloned();
        let allocation = allocation.filter(|_| slice.device() == self.id()).ok_or_else(out_of_reach)?;
        let at = usize::try_from(slice.offset()).map_err(|_| out_of_reach())?;
        if at.checked_add(slice.len()).is_none_or(|end| end > allocation.len) {
            return Err(out_of_reach());
        }
        Ok(Place { allocation, at })
    }
}

/// Zeroes memory after all work that has already been submitted. Only whole words can be cleared on the device; the bytes
/// before and after them are uploaded.
pub(crate) fn zero(pool: &Arc<Pool>, slice: &DeviceSlice) -> Result<()> {
    let place = pool.device().place(slice)?;
    let begin = (place.at.next_multiple_of(WORD) - place.at).min(slice.len());
    let end = begin + (slice.len() - begin) / WORD * WORD;
    let cleared = pool.device().call(|device, queue| {
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for (buffer, at, len) in place.stretches(begin..end) {
            encoder.clear_buffer(buffer, at, Some(len as u64));
        }
        queue.submit([encoder.finish()]);
    });
    let zeros = [0; WORD];
    let before = upload(pool, &zeros[..begin], &place);
    let after = upload(pool, &zeros[..slice.len() - end], &place.after(end));
    cleared.and(before).and(after)
}

/// The words that contain the `len` bytes at a place. Returns the place of the words, the number of bytes that precede the
/// `len` bytes in the first word, and the length of all words.
fn words(place: &Place, len: usize) -> (Place, usize, usize) {
    let before = place.at % WORD;
    let whole = Place { at: place.at - before, ..place.clone() };
    (whole, before, (before + len).next_multiple_of(WORD))
}

/// Maximum number of bytes of one copy that fits into a staging buffer.
fn at_once(gpu: &Gpu) -> usize {
    AT_ONCE.min(gpu.most_buffer() / 4 / WORD * WORD)
}

/// Copies to the device, and waits.
pub(crate) fn upload(pool: &Arc<Pool>, from: &[u8], to: &Place) -> Result<()> {
    if from.is_empty() {
        return Ok(());
    }
    let gpu = &**pool.device();
    let (whole, before, len) = words(to, from.len());
    let after = len - before - from.len();
    let mut neighbours = Zeroizing::new([0; 2 * WORD]);
    let _guard = (before + after > 0).then(|| lock(&gpu.parts_of_words));
    if before + after > 0 {
        // The other bytes of the first and of the last word must not change, so they are read first.
        let parts = [(whole.clone(), before), (to.after(from.len()), after)];
        Download::start(pool, &parts)?.read(|bytes| neighbours[..bytes.len()].copy_from_slice(bytes))?;
    }
    let parts = [
        (0, &neighbours[..before]),
        (before, from),
        (before + from.len(), &neighbours[before..before + after]),
    ];
    for at in (0..len).step_by(at_once(gpu)) {
        let range = at..len.min(at + at_once(gpu));
        let mut staging = pool.take()?;
        staging
            .reserve(gpu, &Room { parameters: range.len(), work_in: 0, extra: 0, work: 0, download: 0 })?;
        staging.fill(gpu, range.len(), |view| {
            for (first, bytes) in parts {
                let (begin, end) = (first.max(range.start), (first + bytes.len()).min(range.end));
                if begin < end {
                    let place = begin - range.start..end - range.start;
                    view.slice(place).copy_from_slice(&bytes[begin - first..end - first]);
                }
            }
        })?;
        let submitted = gpu.call(|device, queue| -> Result<_> {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            let mut done = 0;
            for (buffer, target, len) in whole.stretches(range) {
                staging.copy_part(gpu, &mut encoder, done, (buffer, target), len)?;
                done += len as u64;
            }
            Ok(queue.submit([encoder.finish()]))
        });
        let work = in_flight(pool, staging, submitted.flatten(), 0)?;
        work.wait()?;
        work.finish();
    }
    Ok(())
}

/// A staging buffer whose work has been submitted, and a request to map the first `download` bytes of the results. If the
/// submission or the request failed, the staging buffer is wiped.
fn in_flight(
    pool: &Arc<Pool>,
    mut staging: Staging,
    submitted: Result<wgpu::SubmissionIndex>,
    download: usize,
) -> Result<InFlight<Gpu>> {
    let gpu = pool.device();
    match submitted.and_then(|submission| staging.map(gpu, download).map(|()| submission)) {
        Ok(submission) => Ok(InFlight::new(pool, staging, submission)),
        Err(error) => {
            gpu.discard(staging);
            Err(error)
        }
    }
}

/// Copies to the host, and waits.
pub(crate) fn download(pool: &Arc<Pool>, from: &Place, to: &mut [u8]) -> Result<()> {
    let size = at_once(pool.device());
    for (number, part) in to.chunks_mut(size).enumerate() {
        let parts = [(from.after(number * size), part.len())];
        Download::start(pool, &parts)?.read(|bytes| part.copy_from_slice(bytes))?;
    }
    Ok(())
}

/// Parts of device memory that are being copied to the host.
struct Download {
    work: InFlight<Gpu>,
    /// For each part, the number of bytes that precede it in its first word, and its length.
    parts: Vec<(usize, usize)>,
    total: usize,
}

impl Download {
    fn start(pool: &Arc<Pool>, parts: &[(Place, usize)]) -> Result<Download> {
        let gpu = &**pool.device();
        let wanted: Vec<_> = parts.iter().filter(|(_, len)| *len > 0).collect();
        let total = wanted.iter().map(|(place, len)| words(place, *len).2).sum::<usize>();
        let mut staging = pool.take()?;
        staging.reserve(gpu, &Room { parameters: WORD, work_in: 0, extra: 0, work: 0, download: total })?;
        staging.fill(gpu, WORD, |view| view.slice(..).fill(0))?;
        let download = staging.download.get(gpu)?;
        let submitted = gpu.call(|device, queue| {
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
        });
        let parts = wanted.iter().map(|(place, len)| (place.at % WORD, *len)).collect();
        Ok(Download { work: in_flight(pool, staging, submitted, total)?, parts, total })
    }

    /// Waits, and passes the concatenated parts to `show`.
    fn read(mut self, show: impl FnOnce(&[u8])) -> Result<()> {
        self.work.wait()?;
        let gpu = Arc::clone(self.work.device());
        self.work.staging().read(&gpu, self.total, |bytes| {
            let mut all = Zeroizing::new(Vec::with_capacity(bytes.len()));
            let mut at = 0;
            for (before, len) in &self.parts {
                all.extend_from_slice(&bytes[at + before..at + before + len]);
                at += (before + len).next_multiple_of(WORD);
            }
            show(&all);
        })?;
        self.work.finish();
        Ok(())
    }
}

/// Parts that a caller fetches. None if all parts are empty.
struct Fetched(Option<Download>);

impl Fetch for Fetched {
    fn is_ready(&self) -> bool {
        self.0.as_ref().is_none_or(|download| download.work.is_past())
    }

    fn wait(self: Box<Self>) -> Result<Zeroizing<Vec<u8>>> {
        let mut all = Zeroizing::default();
        if let Some(download) = self.0 {
            download.read(|bytes| all = Zeroizing::new(bytes.to_vec()))?;
        }
        Ok(all)
    }
}

/// A caller's allocation.
struct Owned {
    gpu: Arc<Gpu>,
    slice: DeviceSlice,
}

impl DeviceBuffer for Owned {
    fn slice(&self) -> DeviceSlice {
        self.slice.clone()
    }
}

impl Drop for Owned {
    /// Wipes the memory. The queue keeps the order of submissions, so the wipe follows all earlier work on the memory. Work
    /// in flight keeps the buffers alive.
    fn drop(&mut self) {
        let Some(allocation) = lock(&self.gpu.allocations).remove(&self.slice.buffer()) else { return };
        let _ = self.gpu.call(|device, queue| {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            for buffer in &allocation.buffers {
                encoder.clear_buffer(buffer, 0, None);
            }
            queue.submit([encoder.finish()]);
        });
    }
}

/// Ordinary host memory, because wgpu has no memory that stays mapped while the device uses it.
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

/// A device has one queue, so all streams are the same.
impl DeviceMemory for WgpuDevice {
    fn allocate(&self, len: usize) -> Result<Box<dyn DeviceBuffer>> {
        let gpu = self.gpu()?;
        let each = gpu.most_buffer() / 256 * 256;
        let rounded =
            len.max(1).checked_next_multiple_of(16).ok_or_else(|| gpu.failed("not enough memory"))?;
        let usage = BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
        let mut buffers = Vec::new();
        for at in (0..rounded).step_by(each) {
            let size = (rounded - at).min(each) as u64;
            let descriptor = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
            buffers.push(gpu.call(|device, _| device.create_buffer(&descriptor))?);
        }
        let number = NonZero::new(NEXT.fetch_add(1, Ordering::Relaxed)).expect("fewer than 2^64 allocations");
        let handle = BufferHandle::new(number);
        lock(&gpu.allocations).insert(handle, Arc::new(Allocation { buffers, each, len }));
        Ok(Box::new(Owned { slice: DeviceSlice::of_buffer(gpu.id(), handle, len), gpu }))
    }

    fn allocate_pinned(&self, len: usize) -> Result<PinnedBuffer> {
        let gpu = self.gpu()?;
        let mut bytes = Zeroizing::new(Vec::new());
        bytes.try_reserve_exact(len).map_err(|_| gpu.failed(format!("no {len} bytes of memory")))?;
        bytes.resize(len, 0);
        Ok(PinnedBuffer::new(gpu.id(), Box::new(Pinned(bytes))))
    }

    fn upload(&self, from: &[u8], to: &DeviceSlice, _: Stream) -> Result<()> {
        check_lengths(from.len(), to.len())?;
        let pool = self.pool()?;
        upload(&pool, from, &pool.device().place(to)?)
    }

    fn download(&self, from: &DeviceSlice, to: &mut [u8], _: Stream) -> Result<()> {
        check_lengths(from.len(), to.len())?;
        let pool = self.pool()?;
        download(&pool, &pool.device().place(from)?, to)
    }

    fn fetch(&self, from: &[DeviceSlice], _: Stream) -> Result<Box<dyn Fetch>> {
        let pool = self.pool()?;
        let parts = from.iter().map(|slice| Ok((pool.device().place(slice)?, slice.len())));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let is_empty = parts.iter().all(|(_, len)| *len == 0);
        let download = if is_empty { None } else { Some(Download::start(&pool, &parts)?) };
        Ok(Box::new(Fetched(download)))
    }
}

#[cfg(test)]
mod tests {
    use lockstep_testkit::suite::noise;

    use super::*;
    use crate::{LaunchOptions, software};

    /// Zeroes and overwrites ranges that begin and end within words. The last range extends over several buffers and is
    /// copied in several parts.
    #[test]
    fn ragged_ranges_do_not_change_their_neighbours() {
        let Some(device) = software::device() else { return };
        let device =
            device.with_launches(LaunchOptions { buffer: Some(64 << 10), ..LaunchOptions::default() });
        let (pool, stream) = (device.pool().unwrap(), Stream::default());
        for at in 0..4 {
            for len in (0..=9).chain([66_001]) {
                let mut expected = noise(at as u64, at + len + 7);
                let memory = device.allocate(expected.len()).unwrap();
                let slice = memory.slice().slice(at..at + len);
                let holds = |expected: &[u8]| {
                    let mut found = vec![0; expected.len()];
                    device.download(&memory.slice(), &mut found, stream).unwrap();
                    found == expected
                };
                device.upload(&expected, &memory.slice(), stream).unwrap();
                zero(&pool, &slice).unwrap();
                expected[at..at + len].fill(0);
                assert!(holds(&expected), "{len} bytes at {at} are zeroed");
                let new = noise(9, len);
                device.upload(&new, &slice, stream).unwrap();
                expected[at..at + len].copy_from_slice(&new);
                assert!(holds(&expected), "{len} bytes at {at} are overwritten");
            }
        }
    }
}
