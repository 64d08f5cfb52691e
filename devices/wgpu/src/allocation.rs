//! The buffers of an allocation, and places in an allocation.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use lockstep_core::data::BufferHandle;

/// Alignment of copies on the device in bytes.
pub(crate) const WORD: usize = wgpu::COPY_BUFFER_ALIGNMENT as usize;

/// The allocations of all callers, by their handles.
pub(crate) type Allocations = Mutex<HashMap<BufferHandle, Arc<Allocation>>>;

pub(crate) struct Allocation {
    pub(crate) buffers: Vec<wgpu::Buffer>,
    /// Number of bytes of each buffer of the allocation, except the last buffer.
    pub(crate) each: usize,
    pub(crate) len: usize,
}

/// A range of bytes in an allocation.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) allocation: Arc<Allocation>,
    pub(crate) at: usize,
}

impl Place {
    /// The parts of buffers that hold a range of bytes, which is counted from this place. For each part, returns its buffer, its offset in
    /// the buffer and its length.
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
    pub(crate) fn after(&self, bytes: usize) -> Place {
        Place { allocation: Arc::clone(&self.allocation), at: self.at + bytes }
    }

    /// True if a copy on the device can begin at this place.
    pub(crate) fn is_aligned(&self) -> bool {
        self.at.is_multiple_of(WORD)
    }
}
