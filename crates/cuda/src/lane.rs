//! Lanes: a stream with memory on both sides, pinned here and plain there. Work passes through a lane, and several
//! lanes overlap copies and kernels.

use std::sync::{Arc, Mutex};

use lockstep_core::Result;
use zeroize::Zeroize;

use crate::gpu::{Buffer, Gpu, Pinned, Stream};

/// No lane is smaller: small calls then find lanes that fit.
const SMALLEST: usize = 64 * 1024;

/// More idle lanes than these are given back: four for each of two callers, and two of each to fetch samples by.
const MOST_IDLE: usize = 12;

/// Larger ones too: room for a chunk and what belongs to it.
const LARGEST_IDLE: usize = 32 << 20;

/// A stream and its memory; idle when it is taken and when it is given back.
pub(crate) struct Lane {
    pub(crate) stream: Stream,
    pub(crate) host: Pinned,
    pub(crate) device: Buffer,
    /// Bytes of `host` that must be wiped.
    used: usize,
}

/// The part of a lane that work takes, section by section, from the beginning.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Layout {
    end: usize,
}

impl Layout {
    /// The next section, at a multiple of 256 as allocations are.
    pub(crate) fn section(&mut self, len: usize) -> usize {
        let at = self.end.next_multiple_of(256);
        self.end = at + len;
        at
    }

    /// A section behind the last one, at a multiple of 16: for many small ones.
    pub(crate) fn packed(&mut self, len: usize) -> usize {
        let at = self.end.next_multiple_of(16);
        self.end = at + len;
        at
    }

    pub(crate) fn len(&self) -> usize {
        self.end
    }
}

impl Lane {
    /// Makes room, for new content.
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

/// A little more than is asked for, so that lanes need not grow often.
fn room(gpu: &Gpu, len: usize) -> Result<usize> {
    let rounded = if len > LARGEST_IDLE {
        len.checked_next_multiple_of(1 << 20)
    } else {
        Some(len.next_power_of_two())
    };
    rounded.ok_or_else(|| gpu.failed("too much for one launch: give it less at once"))
}

/// Lanes that nobody uses.
pub(crate) struct Lanes {
    gpu: Arc<Gpu>,
    idle: Mutex<Vec<Lane>>,
}

impl Lanes {
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Lanes {
        Lanes { gpu: Arc::clone(gpu), idle: Mutex::default() }
    }

    /// A lane.
    pub(crate) fn take(&self) -> Result<Lane> {
        let idle = self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop();
        if let Some(lane) = idle {
            return Ok(lane);
        }
        let stream = self.gpu.stream()?;
        let (host, device) = (self.gpu.pinned(SMALLEST)?, self.gpu.buffer(SMALLEST)?);
        Ok(Lane { stream, host, device, used: 0 })
    }

    /// Takes a lane back whose work has ended well, and whose device memory has been wiped with it. Others are dropped,
    /// which wipes both sides.
    pub(crate) fn give(&self, mut lane: Lane) {
        let used = std::mem::take(&mut lane.used);
        lane.host[..used].zeroize();
        if lane.host.len().max(lane.device.len()) > LARGEST_IDLE {
            return;
        }
        let mut idle = self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if idle.len() < MOST_IDLE {
            idle.push(lane);
        }
    }
}
