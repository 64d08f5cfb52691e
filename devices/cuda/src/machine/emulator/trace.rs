//! Traces contain the memory accesses that the kernels of the two CUDA papers record with the macro `TRACE`
//! (`kernels/common/platform.cuh`).
//!
//! The addresses depend on keys and data, so traces are for tests and for the reproductions of papers only.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The purpose of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// A read of a table.
    Lookup,
    /// A read of the input.
    Load,
    /// A write of the output.
    Store,
}

/// An access of a CUDA thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The purpose of the access.
    pub kind: AccessKind,
    /// The address of the first byte.
    pub address: u64,
    /// Number of bytes.
    pub bytes: u32,
    /// The number of the thread block in its launch.
    pub block: u32,
    /// The number of the thread in its thread block.
    pub thread: u32,
}

/// The accesses of all launches of a device, launch after launch. Within a launch, the accesses of one thread block follow
/// those of the previous one. The accesses of a thread are in program order, but accesses of different threads of a block may
/// alternate. Clones share the accesses.
#[derive(Clone, Default)]
pub struct Trace(Arc<Mutex<Vec<Access>>>);

/// The function that the emulator calls for each access.
pub(super) type Record = extern "C" fn(*const c_void, u32, u64, u32, u32, u32);

impl Trace {
    /// Removes and returns all accesses.
    pub fn take(&self) -> Vec<Access> {
        std::mem::take(&mut *accesses(&self.0))
    }

    /// Returns the function that adds an access to this trace, and its first argument, which is valid as long as the trace exists.
    pub(super) fn recorder(&self) -> (Option<Record>, *const c_void) {
        (Some(record), Arc::as_ptr(&self.0).cast())
    }
}

fn accesses(of: &Mutex<Vec<Access>>) -> MutexGuard<'_, Vec<Access>> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn record(context: *const c_void, kind: u32, address: u64, bytes: u32, block: u32, thread: u32) {
    // SAFETY: the context is from `Trace::recorder`, and the trace exists until the launch has ended.
    let trace = unsafe { &*context.cast::<Mutex<Vec<Access>>>() };
    // The numbers are those of `Traced` in emulator/block.h.
    let kind = match kind {
        0 => AccessKind::Lookup,
        1 => AccessKind::Load,
        _ => AccessKind::Store,
    };
    accesses(trace).push(Access { kind, address, bytes, block, thread });
}
