//! The memory that holds data: host memory, page-locked host memory, or device memory; in place or not.

use std::ops::{DerefMut, Range};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::error::{Error, Result};
pub use crate::host::{HostData, Span, check_lengths};
use crate::names::DeviceId;

/// The data of one segment or message: input and output of equal length.
///
/// The constructors check that input and output have the same length and are either the same memory or disjoint.
#[derive(Debug)]
pub enum Data<'a> {
    /// Ordinary host memory, borrowed until the completion is waited for.
    Host(HostData<'a>),
    /// Page-locked host memory, which the device reads and writes directly.
    #[non_exhaustive]
    Pinned {
        /// The input.
        from: PinnedSlice,
        /// The output: the range of the input, or a range disjoint from it.
        to: PinnedSlice,
    },
    /// Memory of the device. Work on this memory runs on the stream of the [`crate::work::Work`] that contains it.
    #[non_exhaustive]
    Device {
        /// The input.
        from: DeviceSlice,
        /// The output: the range of the input, or a range disjoint from it.
        to: DeviceSlice,
    },
}

impl<'a> Data<'a> {
    /// Host memory, in place.
    #[inline]
    pub fn in_place(data: &'a mut [u8]) -> Self {
        Data::Host(HostData::InPlace(data))
    }

    /// Host memory, out of place.
    ///
    /// # Errors
    /// [`Error::OutputLength`] if the two differ in length.
    #[inline]
    pub fn copy(from: &'a [u8], to: &'a mut [u8]) -> Result<Self> {
        HostData::copy(from, to).map(Data::Host)
    }

    /// Page-locked memory of one device, in place or out of place.
    ///
    /// # Errors
    /// [`Error::OutputLength`] if the two differ in length, [`Error::OutOfReach`] if they belong to different devices or
    /// overlap in part.
    pub fn pinned(from: PinnedSlice, to: PinnedSlice) -> Result<Self> {
        check_lengths(from.len(), to.len())?;
        let overlaps = from.buffer.is(&to.buffer) && overlap_in_part(&from.range, &to.range);
        if from.buffer.device != to.buffer.device || overlaps {
            let what = "pinned memory that overlaps in part, or of two devices".into();
            return Err(Error::OutOfReach { device: from.buffer.device, what });
        }
        Ok(Data::Pinned { from, to })
    }

    /// Memory of one device, in place or out of place.
    ///
    /// # Errors
    /// [`Error::OutputLength`] if the two differ in length, [`Error::OutOfReach`] if they belong to different devices or
    /// overlap in part.
    pub fn on_device(from: DeviceSlice, to: DeviceSlice) -> Result<Self> {
        check_lengths(from.len, to.len)?;
        if from.device != to.device || from.overlaps_in_part(&to) {
            let what = "device memory that overlaps in part, or of two devices".into();
            return Err(Error::OutOfReach { device: from.device, what });
        }
        Ok(Data::Device { from, to })
    }

    /// Host memory that is only read, for passes without output (GHASH, CBC-MAC).
    pub fn read_only(data: &'a [u8]) -> Self {
        Data::Host(HostData::ReadOnly(data))
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Data::Host(data) => data.len(),
            Data::Pinned { from, .. } => from.len(),
            Data::Device { from, .. } => from.len,
        }
    }

    /// True if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The only device that can access the data; `None` for host memory.
    #[inline]
    pub fn device(&self) -> Option<DeviceId> {
        match self {
            Data::Device { from, .. } => Some(from.device),
            Data::Pinned { from, .. } => Some(from.buffer.device),
            Data::Host(_) => None,
        }
    }

    /// The input, read-only.
    pub fn input_only(&self) -> Data<'_> {
        match self {
            Data::Host(data) => Data::Host(HostData::ReadOnly(data.input())),
            Data::Pinned { from, .. } => Data::Pinned { from: from.clone(), to: from.clone() },
            Data::Device { from, .. } => Data::Device { from: from.clone(), to: from.clone() },
        }
    }

    /// The output, read-only.
    pub fn output_only(&mut self) -> Data<'_> {
        match self {
            Data::Host(data) => Data::Host(HostData::ReadOnly(data.output())),
            Data::Pinned { to, .. } => Data::Pinned { from: to.clone(), to: to.clone() },
            Data::Device { to, .. } => Data::Device { from: to.clone(), to: to.clone() },
        }
    }

    /// Returns the host data. For other data, the error names `device`, which can access ordinary host memory only.
    ///
    /// # Errors
    /// [`Error::OutOfReach`] for pinned and device memory.
    pub fn into_host(self, device: DeviceId) -> Result<HostData<'a>> {
        match self {
            Data::Host(data) => Ok(data),
            Data::Pinned { .. } => Err(Error::OutOfReach { device, what: "pinned memory".into() }),
            Data::Device { from, .. } => {
                Err(Error::OutOfReach { device, what: format!("memory of {}", from.device) })
            }
        }
    }

    /// A shorter-lived handle on the same data.
    #[inline]
    pub fn reborrow(&mut self) -> Data<'_> {
        match self {
            Data::Host(data) => Data::Host(data.reborrow()),
            other => other.part(0..other.len()),
        }
    }

    /// A range of page-locked memory or of memory of a device.
    fn part(&self, range: Range<usize>) -> Data<'static> {
        match self {
            Data::Pinned { from, to } => {
                Data::Pinned { from: from.slice(range.clone()), to: to.slice(range) }
            }
            Data::Device { from, to } => {
                Data::Device { from: from.slice(range.clone()), to: to.slice(range) }
            }
            Data::Host(_) => unreachable!("host memory is borrowed"),
        }
    }

    /// Splits the data into the part before `at` and the part from `at` on. `at` must not exceed the length.
    pub fn split_at(self, at: usize) -> (Data<'a>, Data<'a>) {
        match self {
            Data::Host(data) => {
                let (head, tail) = data.split_at(at);
                (Data::Host(head), Data::Host(tail))
            }
            other => (other.part(0..at), other.part(at..other.len())),
        }
    }
}

/// True if two ranges overlap but are not the same.
fn overlap_in_part<T: Ord>(a: &Range<T>, b: &Range<T>) -> bool {
    a != b && a.start < b.end && b.start < a.end
}

/// Identifies a buffer of a device by a number that the device's backend chose. The number does not depend on the location
/// of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BufferHandle(u64);

impl BufferHandle {
    /// All memory of a device that uses addresses, as one buffer. An offset into this buffer is an address.
    pub const ADDRESS_SPACE: BufferHandle = BufferHandle(0);

    /// The handle with this number. A backend never uses a number twice.
    pub const fn new(number: std::num::NonZero<u64>) -> Self {
        BufferHandle(number.get())
    }
}

/// A range of a buffer of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSlice {
    device: DeviceId,
    buffer: BufferHandle,
    /// Bytes from the beginning of the buffer.
    offset: u64,
    len: usize,
}

impl DeviceSlice {
    /// A whole buffer of `len` bytes. The backend of `device` must look up each handle and refuse unknown handles.
    ///
    /// # Panics
    /// If the handle is [`BufferHandle::ADDRESS_SPACE`]. Use [`DeviceSlice::from_raw`] for memory at an address.
    pub fn of_buffer(device: DeviceId, buffer: BufferHandle, len: usize) -> Self {
        assert!(buffer != BufferHandle::ADDRESS_SPACE, "memory at an address is unsafe to name");
        DeviceSlice { device, buffer, offset: 0, len }
    }

    /// A range of memory that starts at `address`. The memory of `device` must be identified by addresses.
    ///
    /// # Safety
    /// The range must stay allocated on that device until all work that was given this slice has completed. Until then,
    /// nothing else may write to the range or read the parts that the work writes.
    #[allow(unsafe_code, reason = "only the caller knows whether memory at an address is allocated")]
    pub unsafe fn from_raw(device: DeviceId, address: u64, len: usize) -> Self {
        DeviceSlice { device, buffer: BufferHandle::ADDRESS_SPACE, offset: address, len }
    }

    /// The device that owns the memory.
    pub fn device(&self) -> DeviceId {
        self.device
    }

    /// The buffer that contains the range.
    pub fn buffer(&self) -> BufferHandle {
        self.buffer
    }

    /// The start of the range, in bytes from the beginning of the buffer. For [`BufferHandle::ADDRESS_SPACE`], this is the
    /// address.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A part of the range.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn slice(&self, range: Range<usize>) -> DeviceSlice {
        assert!(range.start <= range.end && range.end <= self.len, "range outside of the device slice");
        DeviceSlice { offset: self.offset + range.start as u64, len: range.len(), ..*self }
    }

    /// True if the two ranges share bytes but are not the same range.
    fn overlaps_in_part(&self, other: &DeviceSlice) -> bool {
        let bytes = |slice: &DeviceSlice| slice.offset..slice.offset + slice.len as u64;
        self.buffer == other.buffer && overlap_in_part(&bytes(self), &bytes(other))
    }
}

/// Owner of page-locked memory; each backend has its own type.
pub trait PinnedStorage: DerefMut<Target = [u8]> + Send {}

impl<T: DerefMut<Target = [u8]> + Send> PinnedStorage for T {}

/// Page-locked host memory, made by [`crate::backend::DeviceMemory::allocate_pinned`].
///
/// The buffer is reference-counted. A device that uses the buffer keeps it alive, and [`PinnedBuffer::lock`] waits until the
/// device has finished.
#[derive(Clone)]
pub struct PinnedBuffer {
    device: DeviceId,
    storage: Arc<Mutex<Box<dyn PinnedStorage>>>,
    address: u64,
    len: usize,
}

impl PinnedBuffer {
    /// Wraps the storage of a device.
    pub fn new(device: DeviceId, storage: Box<dyn PinnedStorage>) -> Self {
        let (address, len) = (storage.as_ptr() as u64, storage.len());
        PinnedBuffer { device, storage: Arc::new(Mutex::new(storage)), address, len }
    }

    /// The address of the memory. A device uses the address to recognize the buffers that it has allocated.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Gives access from the host. Waits while a device uses the memory.
    pub fn lock(&self) -> MutexGuard<'_, Box<dyn PinnedStorage>> {
        // The lock is used even if another thread panicked while holding it, because bytes are valid with any value.
        self.storage.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A range of the buffer, for a segment.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn slice(&self, range: Range<usize>) -> PinnedSlice {
        assert!(range.start <= range.end && range.end <= self.len, "range outside of the pinned buffer");
        PinnedSlice { buffer: self.clone(), range }
    }

    /// True if both handles refer to the same memory.
    pub fn is(&self, other: &PinnedBuffer) -> bool {
        Arc::ptr_eq(&self.storage, &other.storage)
    }
}

impl std::fmt::Debug for PinnedBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PinnedBuffer({} bytes)", self.len)
    }
}

/// A range of a [`PinnedBuffer`].
#[derive(Debug, Clone)]
pub struct PinnedSlice {
    buffer: PinnedBuffer,
    /// The range within the buffer.
    range: Range<usize>,
}

impl PinnedSlice {
    /// The buffer that contains the range.
    pub fn buffer(&self) -> &PinnedBuffer {
        &self.buffer
    }

    /// The range within the buffer.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// True if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// A part of the range.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn slice(&self, range: Range<usize>) -> PinnedSlice {
        assert!(range.start <= range.end && range.end <= self.len(), "range outside of the pinned slice");
        let start = self.range.start;
        PinnedSlice { buffer: self.buffer.clone(), range: start + range.start..start + range.end }
    }
}
