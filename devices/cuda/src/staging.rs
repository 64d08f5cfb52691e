//! Staging buffers. Each consists of a stream, pinned memory on the host, and memory on the device.

use std::sync::Arc;

use lockstep_core::Result;
use lockstep_core::backend::DeviceId;
use lockstep_gpu_host::{HostDevice, StagingPool};
use zeroize::Zeroize;

use crate::gpu::{Buffer, Event, Gpu, Pinned, Stream};

/// The smallest size of the memory of a staging buffer, in bytes. It is large enough for small calls.
const SMALLEST: usize = 64 * 1024;

/// The largest size, in bytes, of a staging buffer that is kept when it is idle. It is large enough for a chunk and its
/// descriptions.
const LARGEST_IDLE: usize = 32 << 20;

/// The staging buffers of a GPU.
pub(crate) type Pool = StagingPool<Gpu>;

/// A stream and its memory. The stream is idle when the staging buffer is taken from the pool and when it is returned.
pub(crate) struct Staging {
    pub(crate) stream: Stream,
    pub(crate) host: Pinned,
    pub(crate) device: Buffer,
    /// Bytes of `host` that must be wiped.
    used: usize,
}

/// The layout of a staging buffer as consecutive sections.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Layout {
    end: usize,
}

impl Layout {
    /// Appends a section and returns its offset, which is a multiple of 256, like the address of an allocation.
    pub(crate) fn section(&mut self, len: usize) -> usize {
        let at = self.end.next_multiple_of(256);
        self.end = at + len;
        at
    }

    /// Appends a section and returns its offset, which is a multiple of 16. This alignment is for many small sections.
    pub(crate) fn packed(&mut self, len: usize) -> usize {
        let at = self.end.next_multiple_of(16);
        self.end = at + len;
        at
    }

    pub(crate) fn len(&self) -> usize {
        self.end
    }
}

impl Staging {
    /// Makes room for new content with these lengths in bytes.
    pub(crate) fn reserve(&mut self, gpu: &Arc<Gpu>, host: usize, device: usize) -> Result<()> {
        if self.host.len() < host {
            self.host = gpu.pinned(room(gpu, host)?)?;
            self.used = 0;
        }
        if self.device.len() < device {
            self.device = gpu.buffer(room(gpu, device)?)?;
        }
        self.used = self.used.max(host);
        Ok(())
    }
}

/// Rounds `len` up, so that a buffer rarely needs to grow.
fn room(gpu: &Gpu, len: usize) -> Result<usize> {
    let rounded = if len > LARGEST_IDLE {
        len.checked_next_multiple_of(1 << 20)
    } else {
        Some(len.next_power_of_two())
    };
    rounded.ok_or_else(|| gpu.failed("the work is too large for one launch: submit less at once"))
}

impl HostDevice for Gpu {
    type Staging = Staging;
    type Event = Event;
    /// Two callers use at most eight staging buffers for work and four for fetching samples.
    const MOST_IDLE: usize = 12;
    const WIPES_EACH_CHUNK: bool = false;

    fn id(&self) -> DeviceId {
        Gpu::id(self)
    }

    fn allocate_staging(self: &Arc<Self>) -> Result<Staging> {
        let stream = self.stream()?;
        let (host, device) = (self.pinned(SMALLEST)?, self.buffer(SMALLEST)?);
        Ok(Staging { stream, host, device, used: 0 })
    }

    /// Wipes the used host memory. The device memory was already wiped at the end of the work.
    fn wipe(&self, staging: &mut Staging) -> bool {
        let used = std::mem::take(&mut staging.used);
        staging.host[..used].zeroize();
        staging.host.len().max(staging.device.len()) <= LARGEST_IDLE
    }

    fn is_past(&self, _: &Staging, event: &Event) -> bool {
        event.is_past()
    }

    fn wait(&self, event: &Event) -> Result<()> {
        event.wait()
    }
}
