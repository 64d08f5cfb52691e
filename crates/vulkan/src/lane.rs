//! Lanes: buffers through which work passes, on both sides. Several lanes overlap copies and kernels.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use lockstep_core::Result;
use wgpu::BufferUsages;

use crate::gpu::{Gpu, lock};

/// No buffer is smaller: small calls then find lanes that fit.
const SMALLEST: usize = 16 * 1024;

/// More idle lanes than these are given back: four for each of two callers.
const MOST_IDLE: usize = 8;

/// Larger ones too: room for a chunk and what belongs to it.
const LARGEST_IDLE: usize = 16 << 20;

/// How a mapping ended.
#[derive(Clone, Default)]
pub(crate) struct Mapping(Arc<AtomicU8>);

impl Mapping {
    const PENDING: u8 = 0;
    const DONE: u8 = 1;
    const FAILED: u8 = 2;

    /// Asks for the buffer's bytes once the device is done with them.
    fn begin(buffer: &wgpu::Buffer, mode: wgpu::MapMode, len: usize) -> Mapping {
        let mapping = Mapping::default();
        let state = Arc::clone(&mapping.0);
        buffer.map_async(mode, ..len as u64, move |result| {
            state.store(if result.is_ok() { Mapping::DONE } else { Mapping::FAILED }, Ordering::Release);
        });
        mapping
    }

    pub(crate) fn is_past(&self) -> bool {
        self.0.load(Ordering::Acquire) != Mapping::PENDING
    }

    fn is_done(&self) -> bool {
        self.0.load(Ordering::Acquire) == Mapping::DONE
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
            return Err(gpu.failed(format!("a buffer of {len} bytes where {most} are allowed: give it less at once")));
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
            uploaded: Mapping::default(),
            downloaded: Mapping::default(),
        }
    }

    /// Makes room, for new content.
    pub(crate) fn reserve(&mut self, gpu: &Gpu, room: &Room) -> Result<()> {
        let storage = BufferUsages::STORAGE | BufferUsages::COPY_DST | BufferUsages::COPY_SRC;
        let upload = room.given + room.work_in;
        if self.upload.reserve(gpu, upload, BufferUsages::MAP_WRITE | BufferUsages::COPY_SRC, true)? {
            self.used = 0;
        }
        self.given.reserve(gpu, room.given, storage | BufferUsages::UNIFORM, false)?;
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

    /// Asks for the results, and for the upload buffer back. Comes after the submission.
    pub(crate) fn map(&mut self, gpu: &Gpu, download: usize) -> Result<()> {
        let (down, up) = (self.download.get(gpu)?, self.upload.get(gpu)?);
        let len = self.upload.len;
        (self.downloaded, self.uploaded) = gpu.call(|_, _| {
            (Mapping::begin(down, wgpu::MapMode::Read, download), Mapping::begin(up, wgpu::MapMode::Write, len))
        })?;
        Ok(())
    }

    /// True if nothing is waited for any more.
    pub(crate) fn is_past(&self) -> bool {
        self.downloaded.is_past() && self.uploaded.is_past()
    }

    /// Shows the first bytes of what came back; after the submission has been waited for.
    pub(crate) fn read(&mut self, gpu: &Gpu, len: usize, read: impl FnOnce(&[u8])) -> Result<()> {
        let lost = || gpu.failed("the driver does not give results back");
        if !self.downloaded.is_done() || !self.uploaded.is_done() {
            return Err(lost());
        }
        let download = self.download.get(gpu)?;
        let view = gpu.call(|_, _| download.get_mapped_range(..len as u64))?;
        let view = view.map_err(|error| gpu.failed(error.to_string()))?;
        read(&view);
        drop(view);
        download.unmap();
        self.downloaded = Mapping::default();
        Ok(())
    }

    /// Leaves nothing of keys and data on either side, as far as the device still answers. The buffers of the device
    /// itself have been wiped with the work.
    fn wipe(&mut self, gpu: &Gpu) -> Result<()> {
        let upload = self.upload.get(gpu)?;
        if self.downloaded.is_done() {
            self.download.get(gpu)?.unmap();
        }
        let zeros = [0; 16 * 1024];
        let used = std::mem::take(&mut self.used);
        let view = gpu.call(|_, _| upload.get_mapped_range_mut(..used as u64))?;
        let mut view = view.map_err(|error| gpu.failed(error.to_string()))?;
        for at in (0..used).step_by(zeros.len()) {
            let end = used.min(at + zeros.len());
            view.slice(at..end).copy_from_slice(&zeros[..end - at]);
        }
        drop(view);
        let download = self.download.get(gpu)?;
        gpu.call(|device, queue| {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.clear_buffer(download, 0, None);
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
