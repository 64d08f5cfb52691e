//! Lanes: buffers through which work passes, on both sides. Several lanes overlap copies and kernels.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use lockstep_core::Result;
use wgpu::BufferUsages;

use crate::gpu::{Gpu, lock};

/// No buffer is smaller: small calls then find lanes that fit.
const SMALLEST: usize = 16 * 1024;

/// More idle lanes than these are given back: four for each of two callers.
const MOST_IDLE: usize = 8;

/// Larger ones too: room for a chunk, its results and what belongs to it.
const LARGEST_IDLE: usize = 128 << 20;

/// A request for a buffer's bytes, and how it ended.
#[derive(Clone, Default)]
struct Mapping(Arc<(Mutex<Option<bool>>, Condvar)>);

impl Mapping {
    /// Asks for the buffer's bytes once the device is done with them.
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

    /// Waits for the answer, which another thread may be about to bring: the one that saw the submission end.
    fn wait(&self, gpu: &Gpu) -> Result<()> {
        let mut state = lock(&self.0.0);
        loop {
            match *state {
                Some(true) => return Ok(()),
                Some(false) => {
                    gpu.check()?;
                    return Err(gpu.failed("the driver does not give results back"));
                }
                None => {}
            }
            let waited = self.0.1.wait_timeout(state, Duration::from_millis(1));
            state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
            if state.is_none() {
                drop(state);
                gpu.check()?;
                gpu.look();
                state = lock(&self.0.0);
            }
        }
    }
}

/// Buffers of one piece of work. While a lane is idle `upload` is mapped.
pub(crate) struct Lane {
    upload: Place,
    pub(crate) given: Place,
    pub(crate) work: Place,
    pub(crate) download: Place,
    /// Bytes of `upload` that must be wiped.
    used: usize,
    /// Bytes of `download` that must be.
    returned: usize,
    uploaded: Mapping,
    downloaded: Mapping,
}

/// A buffer, if there is one, and its size.
#[derive(Default)]
pub(crate) struct Place {
    buffer: Option<wgpu::Buffer>,
    len: usize,
}

impl Place {
    /// Makes room, for new content. Says whether the buffer is new.
    fn reserve(&mut self, gpu: &Gpu, len: usize, usage: BufferUsages, mapped: bool) -> Result<bool> {
        if self.buffer.is_some() && self.len >= len {
            return Ok(false);
        }
        let len = len.max(SMALLEST).next_power_of_two();
        let most = gpu.limits().max_buffer_size as usize;
        if len > most {
            return Err(
                gpu.failed(format!("a buffer of {len} bytes where {most} are allowed: give it less at once"))
            );
        }
        let descriptor =
            wgpu::BufferDescriptor { label: None, size: len as u64, usage, mapped_at_creation: mapped };
        self.buffer = None;
        self.buffer = Some(gpu.call(|device, _| device.create_buffer(&descriptor))?);
        self.len = len;
        Ok(true)
    }

    /// The buffer.
    pub(crate) fn get(&self, gpu: &Gpu) -> Result<&wgpu::Buffer> {
        self.buffer.as_ref().ok_or_else(|| gpu.failed("a buffer that was never made: report this"))
    }
}

/// How many bytes of each buffer are needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Copied from the host and only read.
    pub(crate) given: usize,
    /// Copied from the host and worked on: the first part of `work`.
    pub(crate) work_in: usize,
    /// Copied from the host to anywhere else.
    pub(crate) beside: usize,
    pub(crate) work: usize,
    pub(crate) download: usize,
}

impl Lane {
    fn new() -> Lane {
        let place = Place::default;
        Lane {
            upload: place(),
            given: place(),
            work: place(),
            download: place(),
            used: 0,
            returned: 0,
            uploaded: Mapping::default(),
            downloaded: Mapping::default(),
        }
    }

    /// Makes room, for new content.
    pub(crate) fn reserve(&mut self, gpu: &Gpu, room: &Room) -> Result<()> {
        let storage = BufferUsages::STORAGE | BufferUsages::COPY_DST | BufferUsages::COPY_SRC;
        let upload = room.given + room.work_in + room.beside;
        if self.upload.reserve(gpu, upload, BufferUsages::MAP_WRITE | BufferUsages::COPY_SRC, true)? {
            self.used = 0;
        }
        self.given.reserve(gpu, room.given, storage, false)?;
        self.work.reserve(gpu, room.work, storage, false)?;
        self.download.reserve(gpu, room.download, BufferUsages::MAP_READ | BufferUsages::COPY_DST, false)?;
        self.used = self.used.max(upload);
        Ok(())
    }

    /// Lets the host write `len` bytes: those of `given`, and behind them those of `work`.
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
        encoder.copy_buffer_to_buffer(upload, 0, self.given.get(gpu)?, 0, room.given as u64);
        if room.work_in > 0 {
            let from = room.given as u64;
            encoder.copy_buffer_to_buffer(upload, from, self.work.get(gpu)?, 0, room.work_in as u64);
        }
        Ok(())
    }

    /// Records a copy of a part of what the host wrote.
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

    /// Asks for the results, and for the upload buffer back. Comes after the submission.
    pub(crate) fn map(&mut self, gpu: &Gpu, download: usize) -> Result<()> {
        let (down, up) = (self.download.get(gpu)?, self.upload.get(gpu)?);
        let len = self.upload.len;
        // Nothing cannot be asked for.
        let download = download.max(SMALLEST);
        self.returned = download;
        (self.downloaded, self.uploaded) = gpu.call(|_, _| {
            (
                Mapping::begin(down, wgpu::MapMode::Read, download),
                Mapping::begin(up, wgpu::MapMode::Write, len),
            )
        })?;
        Ok(())
    }

    /// True if nothing is waited for any more.
    pub(crate) fn is_past(&self) -> bool {
        self.downloaded.is_past() && self.uploaded.is_past()
    }

    /// Shows the first bytes of what came back; after the submission has been waited for.
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

    /// Wipes a lane that was filled for a submission which then was refused, and drops it.
    pub(crate) fn discard(mut self, gpu: &Gpu) {
        let _ = self.map(gpu, 0).and_then(|()| self.wipe(gpu));
    }

    /// Leaves nothing of keys and data on either side, as far as the device still answers. The buffers of the device
    /// itself have been wiped with the work.
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

/// Lanes that nobody uses.
#[derive(Default)]
pub(crate) struct Lanes {
    idle: Mutex<Vec<Lane>>,
}

impl Lanes {
    /// A lane.
    pub(crate) fn take(&self) -> Lane {
        lock(&self.idle).pop().unwrap_or_else(Lane::new)
    }

    /// Takes a lane back whose work has ended. One that cannot be wiped is of a device that is lost.
    pub(crate) fn give(&self, gpu: &Gpu, mut lane: Lane) {
        let is_large = lane.upload.len.max(lane.work.len) > LARGEST_IDLE;
        if lane.wipe(gpu).is_err() || is_large {
            return;
        }
        let mut idle = lock(&self.idle);
        if idle.len() < MOST_IDLE {
            idle.push(lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::software;

    /// A lane that was filled and not submitted is wiped all the same.
    #[test]
    fn what_was_filled_is_wiped() {
        let Some(device) = software::device() else { return };
        let gpu = device.gpu().unwrap();
        let mut lane = Lane::new();
        let len = 40_000;
        lane.reserve(&gpu, &Room { given: len, work_in: 0, beside: 0, work: 0, download: 0 }).unwrap();
        lane.fill(&gpu, len, |view| view.slice(..).fill(7)).unwrap();
        let upload = lane.upload.buffer.clone().unwrap();
        lane.discard(&gpu);
        // It is mapped for writing only, so the device reads it.
        let (size, usage) = (len as u64, BufferUsages::MAP_READ | BufferUsages::COPY_DST);
        let descriptor = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        upload.unmap();
        let (seen, submission) = gpu
            .call(|device, queue| {
                let seen = device.create_buffer(&descriptor);
                let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                encoder.copy_buffer_to_buffer(&upload, 0, &seen, 0, size);
                (seen, queue.submit([encoder.finish()]))
            })
            .unwrap();
        let mapping = gpu.call(|_, _| Mapping::begin(&seen, wgpu::MapMode::Read, len)).unwrap();
        gpu.wait(&submission).unwrap();
        mapping.wait(&gpu).unwrap();
        assert!(seen.get_mapped_range(..size).unwrap().iter().all(|&byte| byte == 0));
    }
}
