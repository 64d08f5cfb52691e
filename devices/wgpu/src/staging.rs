//! Staging buffers: the buffers on the host and on the device that a chunk passes through.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use lockstep_core::Result;
use lockstep_core::backend::DeviceId;
use lockstep_gpu_host::{HostDevice, StagingPool};
use wgpu::BufferUsages;

use crate::calls::lock;
use crate::gpu::Gpu;

/// The smallest size of a buffer in bytes. It is large enough for small calls.
const SMALLEST: usize = 16 * 1024;

/// The largest size in bytes of a buffer that is kept while idle. It has room for a chunk, its parameters and its results.
const LARGEST_IDLE: usize = 128 << 20;

/// A request to map a buffer, and its result.
#[derive(Clone, Default)]
struct Mapping(Arc<(Mutex<Option<bool>>, Condvar)>);

impl Mapping {
    /// Requests the mapping. The result arrives when the device has finished using the buffer.
    fn begin(buffer: &wgpu::Buffer, mode: wgpu::MapMode, len: usize) -> Mapping {
        let mapping = Mapping::default();
        let state = Arc::clone(&mapping.0);
        buffer.map_async(mode, ..len as u64, move |result| {
            *lock(&state.0) = Some(result.is_ok());
            state.1.notify_all();
        });
        mapping
    }

    fn is_past(&self) -> bool {
        lock(&self.0.0).is_some()
    }

    /// Waits for the result. If another thread polls the device when the submission ends, that thread reports the result.
    fn wait(&self, gpu: &Gpu) -> Result<()> {
        let mut state = lock(&self.0.0);
        loop {
            match *state {
                Some(true) => return Ok(()),
                Some(false) => {
                    gpu.check()?;
                    return Err(gpu.failed("the driver does not map the results"));
                }
                None => {}
            }
            let waited = self.0.1.wait_timeout(state, Duration::from_millis(1));
            state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
            if state.is_none() {
                drop(state);
                gpu.check()?;
                gpu.poll_once();
                state = lock(&self.0.0);
            }
        }
    }
}

/// The staging buffers of a device.
pub(crate) type Pool = StagingPool<Gpu>;

/// Buffers of one chunk. While the buffers are idle, `upload` is mapped.
pub(crate) struct Staging {
    upload: GrowingBuffer,
    pub(crate) parameters: GrowingBuffer,
    pub(crate) work: GrowingBuffer,
    pub(crate) download: GrowingBuffer,
    /// Bytes of `upload` that must be wiped.
    used: usize,
    /// Bytes of `download` that must be wiped.
    returned: usize,
    uploaded: Mapping,
    downloaded: Mapping,
}

/// A buffer that is replaced by a larger one when it is too small.
#[derive(Default)]
pub(crate) struct GrowingBuffer {
    buffer: Option<wgpu::Buffer>,
    len: usize,
}

impl GrowingBuffer {
    /// Makes room for new content. Returns true if the buffer is new.
    fn reserve(&mut self, gpu: &Gpu, len: usize, usage: BufferUsages, mapped: bool) -> Result<bool> {
        if self.buffer.is_some() && self.len >= len {
            return Ok(false);
        }
        let len = len.max(SMALLEST).next_power_of_two();
        let most = gpu.most_buffer();
        if len > most {
            return Err(gpu.failed(format!(
                "a buffer of {len} bytes exceeds the limit of {most}: submit less at once"
            )));
        }
        let descriptor =
            wgpu::BufferDescriptor { label: None, size: len as u64, usage, mapped_at_creation: mapped };
        self.buffer = None;
        self.buffer = Some(gpu.call(|device, _| device.create_buffer(&descriptor))?);
        self.len = len;
        Ok(true)
    }

    pub(crate) fn get(&self, gpu: &Gpu) -> Result<&wgpu::Buffer> {
        self.buffer.as_ref().ok_or_else(|| gpu.failed("a buffer was not created: please report this"))
    }
}

/// Number of bytes that are needed in each buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Bytes for parameters. The host copies parameters to the buffer that programs only read.
    pub(crate) parameters: usize,
    /// Bytes for content that the host copies to the first part of `work`.
    pub(crate) work_in: usize,
    /// Bytes for content that the host copies to other places.
    pub(crate) extra: usize,
    pub(crate) work: usize,
    pub(crate) download: usize,
}

impl Staging {
    fn new() -> Staging {
        let empty = GrowingBuffer::default;
        Staging {
            upload: empty(),
            parameters: empty(),
            work: empty(),
            download: empty(),
            used: 0,
            returned: 0,
            uploaded: Mapping::default(),
            downloaded: Mapping::default(),
        }
    }

    /// Makes room for new content.
    pub(crate) fn reserve(&mut self, gpu: &Gpu, room: &Room) -> Result<()> {
        let storage = BufferUsages::STORAGE | BufferUsages::COPY_DST | BufferUsages::COPY_SRC;
        let upload = room.parameters + room.work_in + room.extra;
        if self.upload.reserve(gpu, upload, BufferUsages::MAP_WRITE | BufferUsages::COPY_SRC, true)? {
            self.used = 0;
        }
        self.parameters.reserve(gpu, room.parameters, storage, false)?;
        self.work.reserve(gpu, room.work, storage, false)?;
        self.download.reserve(gpu, room.download, BufferUsages::MAP_READ | BufferUsages::COPY_DST, false)?;
        self.used = self.used.max(upload);
        Ok(())
    }

    /// Calls `write` to fill the first `len` bytes of the upload buffer: parameters, then the content of the first part of
    /// `work`, then the content of other parts of `work`.
    pub(crate) fn fill(
        &mut self,
        gpu: &Gpu,
        len: usize,
        write: impl FnOnce(&mut wgpu::BufferViewMut),
    ) -> Result<()> {
        let upload = self.upload.get(gpu)?;
        let view = gpu.call(|_, _| upload.get_mapped_range_mut(..len as u64))?;
        let mut view = view.map_err(|error| gpu.failed(error.to_string()))?;
        write(&mut view);
        drop(view);
        upload.unmap();
        Ok(())
    }

    /// Records the copies to the device.
    pub(crate) fn copy_in(&self, gpu: &Gpu, encoder: &mut wgpu::CommandEncoder, room: &Room) -> Result<()> {
        let upload = self.upload.get(gpu)?;
        encoder.copy_buffer_to_buffer(upload, 0, self.parameters.get(gpu)?, 0, room.parameters as u64);
        if room.work_in > 0 {
            let from = room.parameters as u64;
            encoder.copy_buffer_to_buffer(upload, from, self.work.get(gpu)?, 0, room.work_in as u64);
        }
        Ok(())
    }

    /// Records a copy of a part of the upload buffer.
    pub(crate) fn copy_part(
        &self,
        gpu: &Gpu,
        encoder: &mut wgpu::CommandEncoder,
        from: u64,
        (to, at): (&wgpu::Buffer, u64),
        len: usize,
    ) -> Result<()> {
        encoder.copy_buffer_to_buffer(self.upload.get(gpu)?, from, to, at, len as u64);
        Ok(())
    }

    /// Requests the mapping of results and of the upload buffer, after the submission.
    pub(crate) fn map(&mut self, gpu: &Gpu, download: usize) -> Result<()> {
        let (down, up) = (self.download.get(gpu)?, self.upload.get(gpu)?);
        let len = self.upload.len;
        // An empty range cannot be mapped.
        let download = download.max(SMALLEST);
        self.returned = self.returned.max(download);
        (self.downloaded, self.uploaded) = gpu.call(|_, _| {
            (
                Mapping::begin(down, wgpu::MapMode::Read, download),
                Mapping::begin(up, wgpu::MapMode::Write, len),
            )
        })?;
        Ok(())
    }

    /// Passes the first `len` bytes of the download buffer to `read`. The submission must have ended.
    pub(crate) fn read(&mut self, gpu: &Gpu, len: usize, read: impl FnOnce(&[u8])) -> Result<()> {
        self.downloaded.wait(gpu)?;
        self.uploaded.wait(gpu)?;
        let download = self.download.get(gpu)?;
        let view = gpu.call(|_, _| download.get_mapped_range(..len as u64))?;
        let view = view.map_err(|error| gpu.failed(error.to_string()))?;
        read(&view);
        drop(view);
        Ok(())
    }

    /// Wipes keys and data in the upload and download buffers, if the device still responds. The buffers that only the
    /// device can access were wiped by the submission itself.
    fn wipe(&mut self, gpu: &Gpu) -> Result<()> {
        self.downloaded.wait(gpu)?;
        self.uploaded.wait(gpu)?;
        let (upload, download) = (self.upload.get(gpu)?, self.download.get(gpu)?);
        download.unmap();
        let zeros = [0; 16 * 1024];
        let used = std::mem::take(&mut self.used);
        let view = gpu.call(|_, _| upload.get_mapped_range_mut(..used as u64))?;
        let mut view = view.map_err(|error| gpu.failed(error.to_string()))?;
        for at in (0..used).step_by(zeros.len()) {
            let end = used.min(at + zeros.len());
            view.slice(at..end).copy_from_slice(&zeros[..end - at]);
        }
        drop(view);
        let len = std::mem::take(&mut self.returned) as u64;
        gpu.call(|device, queue| {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.clear_buffer(download, 0, Some(len));
            queue.submit([encoder.finish()]);
        })
    }
}

impl HostDevice for Gpu {
    type Staging = Staging;
    type Event = wgpu::SubmissionIndex;
    /// Two callers use at most four sets of staging buffers each.
    const MOST_IDLE: usize = 8;
    /// Wiping also unmaps the download buffer, so that the next chunk can use it.
    const WIPES_EACH_CHUNK: bool = true;

    fn id(&self) -> DeviceId {
        Gpu::id(self)
    }

    fn allocate_staging(self: &Arc<Self>) -> Result<Staging> {
        Ok(Staging::new())
    }

    fn wipe(&self, staging: &mut Staging) -> bool {
        let is_large = staging.upload.len.max(staging.work.len) > LARGEST_IDLE;
        staging.wipe(self).is_ok() && !is_large
    }

    fn discard(&self, mut staging: Staging) {
        let _ = staging.map(self, 0).and_then(|()| staging.wipe(self));
    }

    fn is_past(&self, staging: &Staging, _: &wgpu::SubmissionIndex) -> bool {
        self.poll_once();
        self.check().is_err() || staging.downloaded.is_past() && staging.uploaded.is_past()
    }

    fn wait(&self, event: &wgpu::SubmissionIndex) -> Result<()> {
        Gpu::wait(self, event)
    }
}

#[cfg(test)]
mod tests;
