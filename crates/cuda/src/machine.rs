//! What runs kernels: memory, copies, launches, streams and events, as far as the rest of the crate needs them.
//!
//! [`driver`] is a real GPU, [`emulator`] runs thread blocks on the CPU; tests wrap a machine in one that fails on demand. Work is
//! queued on streams and runs in the order of its stream. All functions may be called from any thread. Only the children of this module, and [`crate::gpu`], which makes it safe, contain unsafe code.
#![allow(unsafe_code)]

use std::any::Any;
use std::fmt;

use lockstep_core::backend::HardwareId;

pub(crate) mod driver;
#[cfg(feature = "emulator")]
pub(crate) mod emulator;
#[cfg(all(any(test, debug_assertions), feature = "emulator"))]
pub(crate) mod failing;
pub(crate) mod nvrtc;

/// A failure of a machine, without the name of the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Not enough memory; smaller or later work may succeed.
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
        /// Which memory.
        what: &'static str,
    },
    /// Nothing on this device will succeed any more in this process.
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

/// An execution stream: 0 is the default one; others are handles of the machine or of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamHandle(pub(crate) u64);

/// A point in a stream.
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
    /// Threads of each.
    pub(crate) threads: u32,
    /// Dynamic shared memory of each, in bytes.
    pub(crate) shared: u32,
}

/// Limits of launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Multiprocessors of the device.
    pub(crate) multiprocessors: u32,
    /// Largest dynamic shared memory of a thread block, in bytes.
    pub(crate) shared: u32,
}

/// Keeps device memory allocated.
pub(crate) type Hold = Box<dyn Any + Send + Sync>;

/// Something that runs kernels.
///
/// Copies and launches are queued: host memory that a copy names is in use until an event recorded behind it has
/// been waited for, or its stream or the whole machine has been synchronised. Later calls report failures of queued
/// work.
///
/// # Safety
/// Of the implementation: [`Machine::allocate`] and [`Machine::allocate_pinned`] return addresses of memory that nothing
/// else uses until it is freed.
pub(crate) unsafe trait Machine: Send + Sync {
    /// A description for people.
    fn description(&self) -> String;

    /// The GPU; none of an emulator.
    fn hardware(&self) -> Option<HardwareId> {
        None
    }

    fn limits(&self) -> Limits;

    /// True if the machine does not have this entry point and never will.
    fn lacks(&self, entry: Entry) -> bool;

    /// True if the entry point can run without being compiled before, which may take minutes.
    fn is_at_hand(&self, _entry: Entry) -> bool {
        true
    }

    /// Allocates device memory of undefined content, at a multiple of 256.
    fn allocate(&self, len: usize) -> Outcome<u64>;

    /// Frees device memory.
    ///
    /// # Safety
    /// It was allocated here with this length, and nothing queued uses it.
    unsafe fn free(&self, address: u64, len: usize);

    /// Keeps a range of device memory allocated, as far as the machine can, in case a caller frees it too early; refuses a
    /// range that is not allocated, as far as the machine knows.
    fn hold(&self, address: u64, len: usize) -> Outcome<Hold>;

    /// Allocates page-locked host memory of undefined content, at a multiple of 16.
    fn allocate_pinned(&self, len: usize) -> Outcome<*mut u8>;

    /// Frees page-locked host memory.
    ///
    /// # Safety
    /// It was allocated here with this length, and nothing queued uses it.
    unsafe fn free_pinned(&self, address: *mut u8, len: usize);

    /// Queues a copy to the device.
    ///
    /// # Safety
    /// Both ranges are allocated, and stay so and untouched until the copy has run.
    unsafe fn copy_in(&self, stream: StreamHandle, from: *const u8, to: u64, len: usize) -> Outcome<()>;

    /// Queues a copy from the device.
    ///
    /// # Safety
    /// As [`Machine::copy_in`].
    unsafe fn copy_out(&self, stream: StreamHandle, from: u64, to: *mut u8, len: usize) -> Outcome<()>;

    /// Queues zeroing of device memory.
    ///
    /// # Safety
    /// The range is allocated and stays so until that has run.
    unsafe fn zero(&self, stream: StreamHandle, address: u64, len: usize) -> Outcome<()>;

    /// Queues a launch. The parameters are laid out as in CUDA's parameter buffer; they are copied.
    ///
    /// # Safety
    /// What the kernel reads and writes is allocated and stays so until it has run.
    unsafe fn launch(
        &self,
        stream: StreamHandle,
        entry: Entry,
        shape: Shape,
        parameters: &[u8],
    ) -> Outcome<()>;

    /// A new stream, which does not wait for the default one.
    fn new_stream(&self) -> Outcome<StreamHandle>;

    /// Frees a stream once everything queued on it has run.
    fn free_stream(&self, stream: StreamHandle);

    /// Waits until everything queued on the stream has run.
    fn synchronise_stream(&self, stream: StreamHandle) -> Outcome<()>;

    /// Waits until everything queued on the machine has run.
    fn synchronise(&self) -> Outcome<()>;

    /// Records an event behind everything queued on the stream so far.
    fn record(&self, stream: StreamHandle) -> Outcome<EventHandle>;

    /// True if everything before the event has run.
    fn is_past(&self, event: EventHandle) -> Outcome<bool>;

    /// Waits until everything before the event has run.
    fn wait(&self, event: EventHandle) -> Outcome<()>;

    /// Makes work that is queued on the stream from now on wait for the event.
    fn order(&self, stream: StreamHandle, event: EventHandle) -> Outcome<()>;

    /// Frees an event.
    fn free_event(&self, event: EventHandle);
}
