//! The interface to a machine that runs kernels: the memory, copies, launches, streams and events that this crate
//! needs.
//!
//! [`driver`] is a real GPU, and [`emulator`] runs thread blocks on the CPU. Tests wrap the emulator in a machine that
//! fails on demand. Work is queued on streams, and each stream runs its work in order. All functions may be called from
//! any thread. [`crate::gpu`] is the safe interface to a machine.
#![allow(
    unsafe_code,
    reason = "a machine gets addresses, and only its callers know whether the memory is allocated"
)]

use std::any::Any;
use std::fmt;

use lockstep_core::backend::HardwareId;

pub(crate) mod driver;
#[cfg(feature = "emulator")]
pub(crate) mod emulator;
#[cfg(feature = "faults")]
pub(crate) mod failing;

/// A failure of a machine. It does not contain the name of the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// There is not enough memory. A smaller request, or a later one, may succeed.
    OutOfMemory {
        /// Requested bytes.
        bytes: usize,
        /// The memory that is exhausted.
        what: &'static str,
    },
    /// No call to this device will succeed any more in this process.
    Lost(String),
    /// This call failed.
    Failed(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::OutOfMemory { bytes, what } => {
                write!(
                    f,
                    "out of {what}: no {bytes} bytes are free; submit less at once, or end other programs that use it"
                )
            }
            Fault::Lost(why) => write!(f, "{why}; the device is lost to this process: restart the program"),
            Fault::Failed(why) => f.write_str(why),
        }
    }
}

/// The result of a call to a machine.
pub(crate) type Outcome<T> = Result<T, Fault>;

/// The handle of an execution stream. 0 is the default stream; other handles come from the machine or from a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamHandle(pub(crate) u64);

/// The handle of an event, which marks a point in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventHandle(pub(crate) u64);

/// An entry point of a kernel: a function in the machine code of one source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// The source file, without directory and extension.
    pub(crate) module: &'static str,
    /// The function.
    pub(crate) name: &'static str,
}

/// The shape of a launch, in one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Thread blocks.
    pub(crate) grid: u32,
    /// Threads of each thread block.
    pub(crate) threads: u32,
    /// Dynamic shared memory of each thread block, in bytes.
    pub(crate) shared: u32,
}

/// Limits of launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Multiprocessors of the device.
    pub(crate) multiprocessors: u32,
    /// Largest dynamic shared memory of a thread block, in bytes.
    pub(crate) shared: u32,
    /// Largest number of threads of a thread block.
    pub(crate) threads: u32,
    /// True if the tensor units multiply matrices of bits (`kernels/common/tensor.cuh`).
    pub(crate) tensor_bits: bool,
}

/// Keeps device memory allocated.
pub(crate) type Hold = Box<dyn Any + Send + Sync>;

/// A machine that runs kernels.
///
/// Copies and launches are queued. The host memory of a copy is in use until the host has waited for an event recorded
/// after the copy, or has synchronised the stream or the whole machine. Later calls report failures of queued work.
///
/// # Safety
/// In every implementation, [`Machine::allocate`] and [`Machine::allocate_pinned`] must return addresses of memory that
/// nothing else uses until the memory is freed.
pub(crate) unsafe trait Machine: Send + Sync {
    /// A human-readable description.
    fn description(&self) -> String;

    /// Returns the identity of the GPU, or `None` for an emulator.
    fn hardware(&self) -> Option<HardwareId> {
        None
    }

    fn limits(&self) -> Limits;

    /// Returns a notice about the device for users in one line, or `None` if there is no notice.
    fn notice(&self) -> Option<String> {
        None
    }

    /// True if machine code of an optional module is part of the program, not only its PTX or its source.
    fn has_machine_code(&self, module: &'static str) -> bool;

    /// True if the machine does not have this entry point and never will.
    fn lacks(&self, entry: Entry) -> bool;

    /// True if the entry point can run without a compilation. A compilation may take minutes.
    fn is_at_hand(&self, _entry: Entry) -> bool {
        true
    }

    /// Prepares the entry point for launches. A launch does this itself if it has not been done.
    fn load(&self, _entry: Entry) -> Outcome<()> {
        Ok(())
    }

    /// Allocates device memory with undefined content. Its address is a multiple of 256.
    fn allocate(&self, len: usize) -> Outcome<u64>;

    /// Frees device memory.
    ///
    /// # Safety
    /// This machine must have allocated the memory with this length, and no queued work may use the memory.
    unsafe fn free(&self, address: u64, len: usize);

    /// Returns a value that keeps a range of device memory allocated while the value exists, even if a caller frees the
    /// memory. A machine that cannot do this returns a value without effect. Returns an error if the machine detects
    /// that the range is not allocated.
    fn hold(&self, address: u64, len: usize) -> Outcome<Hold>;

    /// Allocates page-locked host memory with undefined content. Its address is a multiple of 16.
    fn allocate_pinned(&self, len: usize) -> Outcome<*mut u8>;

    /// Frees page-locked host memory.
    ///
    /// # Safety
    /// This machine must have allocated the memory with this length, and no queued work may use the memory.
    unsafe fn free_pinned(&self, address: *mut u8, len: usize);

    /// Queues a copy to the device.
    ///
    /// # Safety
    /// Both ranges must be allocated. Until the copy has run, nothing else may use or free them.
    unsafe fn copy_in(&self, stream: StreamHandle, from: *const u8, to: u64, len: usize) -> Outcome<()>;

    /// Queues a copy from the device.
    ///
    /// # Safety
    /// The same as for [`Machine::copy_in`].
    unsafe fn copy_out(&self, stream: StreamHandle, from: u64, to: *mut u8, len: usize) -> Outcome<()>;

    /// Queues zeroing of device memory.
    ///
    /// # Safety
    /// The range must stay allocated until the zeroing has run.
    unsafe fn zero(&self, stream: StreamHandle, address: u64, len: usize) -> Outcome<()>;

    /// Queues a launch. The parameters have the layout of CUDA's parameter buffer. The call copies them.
    ///
    /// # Safety
    /// All memory that the kernel reads and writes must stay allocated until the kernel has run.
    unsafe fn launch(
        &self,
        stream: StreamHandle,
        entry: Entry,
        shape: Shape,
        parameters: &[u8],
    ) -> Outcome<()>;

    /// Makes a new stream. It does not wait for the default stream.
    fn new_stream(&self) -> Outcome<StreamHandle>;

    /// Frees a stream after all work that is queued on it has run.
    fn free_stream(&self, stream: StreamHandle);

    /// Waits until all work that is queued on the stream has run.
    fn synchronise_stream(&self, stream: StreamHandle) -> Outcome<()>;

    /// Waits until all work that is queued on the machine has run.
    fn synchronise(&self) -> Outcome<()>;

    /// Records an event after all work that has been queued on the stream.
    fn record(&self, stream: StreamHandle) -> Outcome<EventHandle>;

    /// True if all work before the event has run.
    fn is_past(&self, event: EventHandle) -> Outcome<bool>;

    /// Waits until all work before the event has run.
    fn wait(&self, event: EventHandle) -> Outcome<()>;

    /// Makes work that is queued on the stream from now on wait for the event.
    fn order(&self, stream: StreamHandle, event: EventHandle) -> Outcome<()>;

    fn free_event(&self, event: EventHandle);
}
