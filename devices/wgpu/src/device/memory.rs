//! Device memory that callers allocate.

use std::num::NonZero;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lockstep_core::Result;
use lockstep_core::backend::{DeviceBuffer, DeviceMemory, Fetch};
use lockstep_core::data::{BufferHandle, DeviceSlice, PinnedBuffer, check_lengths};
use lockstep_core::work::Stream;
use wgpu::BufferUsages;
use zeroize::Zeroizing;

use super::WgpuDevice;
use crate::allocation::Allocation;
use crate::calls::lock;
use crate::gpu::Gpu;
use crate::memory::{Download, download, upload, zero};

/// The number of the next allocation. All devices of this process share it, so that handles of different devices
/// differ. The same adapter can be opened twice under one id, and a buffer of one of these devices must not be valid
/// for the other.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Parts of memory that a caller fetches. `None` if all parts are empty.
struct Fetched(Option<Download>);

impl Fetch for Fetched {
    fn is_ready(&self) -> bool {
        self.0.as_ref().is_none_or(Download::is_ready)
    }

    fn wait(self: Box<Self>) -> Result<Zeroizing<Vec<u8>>> {
        let mut all = Zeroizing::default();
        if let Some(download) = self.0 {
            download.read(|bytes| all = Zeroizing::new(bytes.to_vec()))?;
        }
        Ok(all)
    }
}

/// Device memory that a caller has allocated. It is wiped on drop.
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

/// A device has one queue, so all streams refer to this queue.
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

    fn zero(&self, to: &DeviceSlice, _: Stream) -> Result<()> {
        zero(&self.pool()?, to)
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
mod tests;
