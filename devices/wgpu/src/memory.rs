//! Copies from and to device memory that callers allocate.
//!
//! Callers' buffers are never bound to a shader. Data are copied on the device into a staging buffer, and results are copied
//! back. An allocation may therefore be larger than a binding. An allocation that exceeds the limit of a buffer consists of
//! several buffers.

use std::sync::Arc;

use lockstep_core::data::DeviceSlice;
use lockstep_core::{Error, Result};
use lockstep_gpu_host::{HostDevice, InFlight};
use zeroize::Zeroizing;

use crate::allocation::{Allocation, Place, WORD};
use crate::calls::lock;
use crate::gpu::Gpu;
use crate::staging::{Pool, Room, Staging};

/// Maximum number of bytes of one copy from or to the host.
const AT_ONCE: usize = 4 << 20;

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

/// Copies bytes to device memory, and waits until the copy has ended.
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

/// Wraps a staging buffer whose work has been submitted, and requests the mapping of the first `download` bytes of the results. If the
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

/// Copies bytes from device memory to the host, and waits until the copy has ended.
pub(crate) fn download(pool: &Arc<Pool>, from: &Place, to: &mut [u8]) -> Result<()> {
    let size = at_once(pool.device());
    for (number, part) in to.chunks_mut(size).enumerate() {
        let parts = [(from.after(number * size), part.len())];
        Download::start(pool, &parts)?.read(|bytes| part.copy_from_slice(bytes))?;
    }
    Ok(())
}

/// Parts of device memory that are being copied to the host.
pub(crate) struct Download {
    work: InFlight<Gpu>,
    /// For each part: the number of bytes before the part in the first word, and the number of bytes of the part.
    parts: Vec<(usize, usize)>,
    total: usize,
}

impl Download {
    pub(crate) fn start(pool: &Arc<Pool>, parts: &[(Place, usize)]) -> Result<Download> {
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

    /// True if [`Download::read`] would not block.
    pub(crate) fn is_ready(&self) -> bool {
        self.work.is_past()
    }

    /// Waits until the copies have ended, and passes the concatenated parts to `show`.
    pub(crate) fn read(mut self, show: impl FnOnce(&[u8])) -> Result<()> {
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
