//! The emulator as a machine. Device memory is host memory, and one queue runs the work of all streams in order.
//!
//! The queue runs on its own thread, so that its work is asynchronous, like the work of a GPU. Tests therefore detect
//! accesses that are too early. The thread starts with the first work and ends when the machine is dropped.
#![allow(unsafe_code, reason = "calls of the emulator, which is written in C++")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use zeroize::Zeroize;

use super::{Entry, EventHandle, Fault, Hold, Limits, Machine, Outcome, Shape, StreamHandle};

mod trace;

use trace::Record;
pub use trace::{Access, AccessKind, Trace};

unsafe extern "C" {
    fn lockstep_emu_kernel(index: u32) -> *const c_char;
    #[cfg(test)]
    fn lockstep_emu_constant(name: *const c_char, value: *mut u64) -> i32;
    fn lockstep_emu_launch(
        name: *const c_char,
        grid_x: u32,
        block_x: u32,
        dynamic_shared: u32,
        params: *const c_void,
        params_len: usize,
        record: Option<Record>,
        context: *const c_void,
    ) -> i32;
    fn lockstep_emu_error(error: i32) -> *const c_char;
}

/// Returns the names of all kernels that are linked in.
pub(crate) fn kernels() -> BTreeSet<&'static str> {
    (0..)
        .map_while(|index| {
            // SAFETY: any index is allowed. The names are constants of the program, and null follows the last name.
            unsafe {
                let name = lockstep_emu_kernel(index);
                (!name.is_null()).then(|| CStr::from_ptr(name))
            }
        })
        .filter_map(|name| name.to_str().ok())
        .collect()
}

/// Returns a constant that the kernels export.
#[cfg(test)]
pub(crate) fn constant(name: &str) -> Option<u64> {
    let name = CString::new(name).ok()?;
    let mut value = 0;
    // SAFETY: the name is a terminated string, and `value` is a place for the value.
    let found = unsafe { lockstep_emu_constant(name.as_ptr(), &mut value) };
    (found != 0).then_some(value)
}

/// Runs a kernel to its end, and adds the accesses that it traces to `trace`.
///
/// # Safety
/// All memory that the kernel reads and writes must be allocated.
pub(super) unsafe fn run(
    name: &str,
    shape: Shape,
    parameters: &[u64],
    len: usize,
    trace: Option<&Trace>,
) -> Result<(), String> {
    let name = CString::new(name).map_err(|_| "the name of a kernel contains a zero".to_owned())?;
    let (record, context) = trace.map_or((None, ptr::null()), Trace::recorder);
    // SAFETY: `parameters` holds `len` bytes, aligned for all parameter types; `trace` owns the context until the launch has ended; the
    // caller guarantees that the memory that the kernel accesses is allocated.
    unsafe {
        let error = lockstep_emu_launch(
            name.as_ptr(),
            shape.grid,
            shape.threads,
            shape.shared,
            parameters.as_ptr().cast(),
            len,
            record,
            context,
        );
        if error == 0 {
            return Ok(());
        }
        let words = lockstep_emu_error(error);
        let words = if words.is_null() { c"unknown" } else { CStr::from_ptr(words) };
        Err(format!("the emulator stopped: {}", words.to_string_lossy()))
    }
}

/// Converts parameters to words, for [`run`].
pub(super) fn words_of(parameters: &[u8]) -> Vec<u64> {
    let words = parameters.chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_ne_bytes(word)
    });
    // Two words are added, because kernels with 16-byte alignment read whole units of 16 bytes.
    words.chain([0; 2]).collect()
}

/// Alignment of device memory, as in CUDA.
const ALIGNMENT: usize = 256;

/// Host memory that replaces device memory. It is wiped when its last owner is dropped.
struct Allocation {
    address: *mut u8,
    layout: Layout,
}

// SAFETY: the queue orders the accesses to the memory.
unsafe impl Send for Allocation {}
// SAFETY: the queue orders the accesses to the memory.
unsafe impl Sync for Allocation {}

impl Allocation {
    fn new(len: usize, what: &'static str) -> Outcome<Allocation> {
        let short = Fault::OutOfMemory { bytes: len, what };
        let layout = Layout::from_size_align(len.max(1), ALIGNMENT).map_err(|_| short.clone())?;
        // SAFETY: the size is not zero.
        let address = unsafe { alloc_zeroed(layout) };
        if address.is_null() { Err(short) } else { Ok(Allocation { address, layout }) }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: this is the only owner, and `layout` is the layout with which the memory was allocated.
        unsafe {
            std::slice::from_raw_parts_mut(self.address, self.layout.size()).zeroize();
            dealloc(self.address, self.layout);
        }
    }
}

type Job = Box<dyn FnOnce() -> Result<(), String> + Send>;

/// State that the queue's thread shares with its users.
#[derive(Default)]
struct Progress {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Default)]
struct State {
    queued: u64,
    done: u64,
    /// The first failure; nothing runs after it.
    failure: Option<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The machine.
pub(crate) struct Emulator {
    kernels: BTreeSet<&'static str>,
    memory: Mutex<BTreeMap<u64, Arc<Allocation>>>,
    pinned: Mutex<BTreeMap<u64, Arc<Allocation>>>,
    queue: Mutex<Option<Sender<Job>>>,
    progress: Arc<Progress>,
    streams: Mutex<u64>,
    carry_less: bool,
    /// The accesses of all launches, if they are traced.
    trace: Option<Trace>,
}

/// The process that has started the emulator; 0 before the start.
static STARTED_BY: AtomicU32 = AtomicU32::new(0);

/// Starts the emulator at its first use. As the driver of a GPU, it returns an error in a child process if the parent process
/// has started it.
pub(crate) fn start() -> Outcome<()> {
    let process = std::process::id();
    match STARTED_BY.compare_exchange(0, process, Ordering::Relaxed, Ordering::Relaxed) {
        Err(other) if other != process => {
            let why = "the parent of this process has started the emulator (CUDA_ERROR_NOT_INITIALIZED)";
            Err(Fault::Lost(why.into()))
        }
        _ => Ok(()),
    }
}

impl Emulator {
    /// Makes an emulator that also offers the kernels of GHASH by carry-less multiplication.
    pub(crate) fn with_carry_less() -> Emulator {
        Emulator { carry_less: true, ..Emulator::new() }
    }

    /// Makes an emulator that adds the accesses of its launches to a trace.
    pub(crate) fn with_trace(trace: Trace) -> Emulator {
        Emulator { trace: Some(trace), ..Emulator::new() }
    }

    /// Makes an emulator with all kernels that are linked in.
    pub(crate) fn new() -> Emulator {
        Emulator {
            kernels: kernels(),
            memory: Mutex::default(),
            pinned: Mutex::default(),
            queue: Mutex::default(),
            progress: Arc::default(),
            streams: Mutex::new(0),
            carry_less: false,
            trace: None,
        }
    }

    fn queue(&self, job: Job) -> Outcome<()> {
        start()?;
        let mut queue = lock(&self.queue);
        let sender = match &*queue {
            Some(sender) => sender.clone(),
            None => {
                let (sender, jobs) = channel::<Job>();
                let progress = Arc::clone(&self.progress);
                let work = move || {
                    for job in jobs {
                        let failed = lock(&progress.state).failure.is_some();
                        let outcome = if failed { Ok(()) } else { job() };
                        let mut state = lock(&progress.state);
                        state.done += 1;
                        state.failure = state.failure.take().or(outcome.err());
                        progress.moved.notify_all();
                    }
                };
                let started = thread::Builder::new().name("lockstep-emulator".into()).spawn(work);
                started
                    .map_err(|error| Fault::Failed(format!("cannot start the emulator's thread: {error}")))?;
                queue.insert(sender).clone()
            }
        };
        let mut state = lock(&self.progress.state);
        if let Some(failure) = &state.failure {
            return Err(Fault::Lost(failure.clone()));
        }
        sender.send(job).map_err(|_| Fault::Lost("the emulator's thread has ended".into()))?;
        state.queued += 1;
        Ok(())
    }

    fn wait_for(&self, point: u64) -> Outcome<()> {
        let mut state = lock(&self.progress.state);
        while state.done < point {
            state = self.progress.moved.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        match &state.failure {
            None => Ok(()),
            Some(failure) => Err(Fault::Lost(failure.clone())),
        }
    }

    /// Returns the allocation that contains a range. The memory stays allocated while the caller owns the result.
    fn allocation(&self, address: u64, len: usize) -> Outcome<Arc<Allocation>> {
        let wild = || Fault::Failed(format!("{len} bytes at address {address:#x} are not allocated"));
        allocation_in(&lock(&self.memory), address, len).ok_or_else(wild)
    }
}

/// The allocation among `memory` that contains a range.
fn allocation_in(
    memory: &BTreeMap<u64, Arc<Allocation>>,
    address: u64,
    len: usize,
) -> Option<Arc<Allocation>> {
    let (start, allocation) = memory.range(..=address).next_back()?;
    let end = (address - start).checked_add(len as u64)?;
    (end <= allocation.layout.size() as u64).then(|| Arc::clone(allocation))
}

/// An address that may be sent to the queue's thread.
struct Place(*mut u8);

// SAFETY: callers of the unsafe functions below guarantee that nothing else uses the memory until the job has run.
unsafe impl Send for Place {}

impl Place {
    fn get(&self) -> *mut u8 {
        self.0
    }
}

// SAFETY: memory comes from the allocator and is kept in the maps until it is freed.
unsafe impl Machine for Emulator {
    fn description(&self) -> String {
        "CUDA kernels run by an emulator of thread blocks".into()
    }

    fn limits(&self) -> Limits {
        // There are few multiprocessors, so that kernels that fill tables run in few thread blocks. The limit of shared memory is the limit
        // of sm_90.
        Limits { multiprocessors: 2, shared: 227 * 1024, threads: 1024, tensor_bits: true }
    }

    fn has_machine_code(&self, _module: &'static str) -> bool {
        // GHASH by carry-less multiplication is the only optional module.
        self.carry_less
    }

    fn lacks(&self, entry: Entry) -> bool {
        !self.kernels.contains(entry.name)
    }

    fn allocate(&self, len: usize) -> Outcome<u64> {
        start()?;
        let allocation = Allocation::new(len, "memory of the emulator")?;
        let address = allocation.address as u64;
        lock(&self.memory).insert(address, Arc::new(allocation));
        Ok(address)
    }

    unsafe fn free(&self, address: u64, _len: usize) {
        lock(&self.memory).remove(&address);
    }

    fn hold(&self, address: u64, len: usize) -> Outcome<Hold> {
        if len == 0 {
            return Ok(Box::new(()));
        }
        // Kernels read page-locked memory at its address, as with unified addressing.
        let pinned = allocation_in(&lock(&self.pinned), address, len);
        let allocation = pinned.map_or_else(|| self.allocation(address, len), Ok);
        allocation.map(|allocation| Box::new(allocation) as Hold)
    }

    fn allocate_pinned(&self, len: usize) -> Outcome<*mut u8> {
        start()?;
        let allocation = Allocation::new(len, "pinned host memory")?;
        let address = allocation.address;
        lock(&self.pinned).insert(address as u64, Arc::new(allocation));
        Ok(address)
    }

    unsafe fn free_pinned(&self, address: *mut u8, _len: usize) {
        lock(&self.pinned).remove(&(address as u64));
    }

    unsafe fn copy_in(&self, _stream: StreamHandle, from: *const u8, to: u64, len: usize) -> Outcome<()> {
        let allocation = self.allocation(to, len)?;
        let (from, to) = (Place(from.cast_mut()), Place(to as *mut u8));
        self.queue(Box::new(move || {
            let _held = allocation;
            // SAFETY: `_held` keeps the target allocated; the caller guarantees the source.
            unsafe { std::ptr::copy(from.get().cast_const(), to.get(), len) };
            Ok(())
        }))
    }

    unsafe fn copy_out(&self, _stream: StreamHandle, from: u64, to: *mut u8, len: usize) -> Outcome<()> {
        let allocation = self.allocation(from, len)?;
        let (from, to) = (Place(from as *mut u8), Place(to));
        self.queue(Box::new(move || {
            let _held = allocation;
            // SAFETY: `_held` keeps the source allocated; the caller guarantees the target.
            unsafe { std::ptr::copy(from.get().cast_const(), to.get(), len) };
            Ok(())
        }))
    }

    unsafe fn zero(&self, _stream: StreamHandle, address: u64, len: usize) -> Outcome<()> {
        let allocation = self.allocation(address, len)?;
        let place = Place(address as *mut u8);
        self.queue(Box::new(move || {
            let _held = allocation;
            // SAFETY: `_held` keeps the range allocated.
            unsafe { place.get().write_bytes(0, len) };
            Ok(())
        }))
    }

    unsafe fn launch(
        &self,
        _stream: StreamHandle,
        entry: Entry,
        shape: Shape,
        parameters: &[u8],
    ) -> Outcome<()> {
        let (words, len, trace) = (words_of(parameters), parameters.len(), self.trace.clone());
        // SAFETY: the caller guarantees the requirements of this function.
        self.queue(Box::new(move || unsafe { run(entry.name, shape, &words, len, trace.as_ref()) }))
    }

    fn new_stream(&self) -> Outcome<StreamHandle> {
        let mut streams = lock(&self.streams);
        *streams += 1;
        Ok(StreamHandle(*streams))
    }

    fn free_stream(&self, _stream: StreamHandle) {}

    fn synchronise_stream(&self, _stream: StreamHandle) -> Outcome<()> {
        self.synchronise()
    }

    fn synchronise(&self) -> Outcome<()> {
        let queued = lock(&self.progress.state).queued;
        self.wait_for(queued)
    }

    fn record(&self, _stream: StreamHandle) -> Outcome<EventHandle> {
        Ok(EventHandle(lock(&self.progress.state).queued))
    }

    fn is_past(&self, event: EventHandle) -> Outcome<bool> {
        let state = lock(&self.progress.state);
        match &state.failure {
            Some(failure) => Err(Fault::Lost(failure.clone())),
            None => Ok(state.done >= event.0),
        }
    }

    fn wait(&self, event: EventHandle) -> Outcome<()> {
        self.wait_for(event.0)
    }

    fn order(&self, _stream: StreamHandle, _event: EventHandle) -> Outcome<()> {
        // There is only one queue, so the work of all streams already runs in order.
        Ok(())
    }

    fn free_event(&self, _event: EventHandle) {}
}

#[cfg(test)]
mod tests;
