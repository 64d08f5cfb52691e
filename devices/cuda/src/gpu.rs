//! A safe interface to a machine: types that own memory, streams and events, functions for copies and launches, and the
//! state of a lost device.
//!
//! Pinned memory records the streams that use it, and every access from the host first waits for these streams. Therefore the
//! device never writes to memory that the host reads, frees or reuses, even if a call returns early or a caller drops a
//! completion.
#![allow(
    unsafe_code,
    reason = "calls of a machine, which gets addresses of memory that the types of this module own"
)]

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use lockstep_core::backend::{Counter, DeviceBuffer, DeviceId, HardwareId};
use lockstep_core::data::{BufferHandle, DeviceSlice, PinnedBuffer, PinnedSlice};
use lockstep_core::{Error, Result, work};
use zeroize::Zeroize;

use crate::kernel::helper;
use crate::machine::{Entry, EventHandle, Fault, Hold, Limits, Machine, Outcome, Shape, StreamHandle};

/// A device: a machine, its name, its counters, and whether it is lost.
pub(crate) struct Gpu {
    machine: Box<dyn Machine>,
    id: DeviceId,
    limits: Limits,
    /// The reason why the device is lost, if it is lost.
    lost: OnceLock<String>,
    counters: Mutex<BTreeMap<&'static str, Counter>>,
    /// Pinned memory of callers, by address.
    pinned: Mutex<BTreeMap<u64, Weak<Uses>>>,
    /// True if the device has passed the known-answer test of the carry-less multiply-add.
    carry_less: OnceLock<bool>,
    /// True if the kernels for the tensor units are loaded.
    tensor_units: OnceLock<bool>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Gpu {
    pub(crate) fn new(id: DeviceId, machine: Box<dyn Machine>) -> Arc<Gpu> {
        let (lost, counters, pinned, carry_less, tensor_units) = Default::default();
        let limits = machine.limits();
        Arc::new(Gpu { machine, id, limits, lost, counters, pinned, carry_less, tensor_units })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn id(&self) -> DeviceId {
        self.id
    }

    pub(crate) fn description(&self) -> String {
        self.machine.description()
    }

    pub(crate) fn hardware(&self) -> Option<HardwareId> {
        self.machine.hardware()
    }

    pub(crate) fn lacks(&self, entry: Entry) -> bool {
        self.machine.lacks(entry)
    }

    pub(crate) fn is_at_hand(&self, entry: Entry) -> bool {
        self.machine.is_at_hand(entry)
    }

    /// True if machine code of an optional module is part of the program.
    pub(crate) fn has_machine_code(&self, module: &'static str) -> bool {
        self.machine.has_machine_code(module)
    }

    /// The result of the known-answer test of the carry-less multiply-add, once it has run.
    pub(crate) fn carry_less_result(&self) -> &OnceLock<bool> {
        &self.carry_less
    }

    /// True if the tensor units can be used. The first call loads their kernels. If loading fails because of insufficient
    /// memory, a later call tries again. All other failures are permanent for this device and process, because no PTX can
    /// replace the code that NVRTC fails to compile.
    pub(crate) fn loads_tensor_kernels(&self) -> bool {
        if let Some(&loads) = self.tensor_units.get() {
            return loads;
        }
        let lasting = self.call(|machine| match machine.load(helper::GHASH_TENSOR_TILES) {
            Err(Fault::OutOfMemory { .. }) => Ok(None),
            Err(Fault::Failed(_)) => Ok(Some(false)),
            loaded => loaded.map(|()| Some(true)),
        });
        lasting.ok().flatten().is_some_and(|loads| *self.tensor_units.get_or_init(|| loads))
    }

    pub(crate) fn notice(&self) -> Option<String> {
        self.machine.notice()
    }

    /// The counters of all launches so far.
    pub(crate) fn counters(&self) -> Vec<Counter> {
        lock(&self.counters).values().cloned().collect()
    }

    pub(crate) fn failed(&self, reason: impl Into<String>) -> Error {
        Error::DeviceFailed { device: self.id, reason: reason.into() }
    }

    /// Calls the machine, unless the device is lost.
    fn call<T>(&self, call: impl FnOnce(&dyn Machine) -> Outcome<T>) -> Result<T> {
        let outcome = match self.lost.get() {
            Some(why) => Err(Fault::Lost(why.clone())),
            None => call(&*self.machine),
        };
        outcome.map_err(|fault| {
            if let Fault::Lost(why) = &fault {
                self.lost.get_or_init(|| why.clone());
            }
            self.failed(fault.to_string())
        })
    }

    /// New device memory, zeroed.
    pub(crate) fn buffer(self: &Arc<Self>, len: usize) -> Result<Buffer> {
        let address = self.call(|machine| machine.allocate(len.max(1)))?;
        let buffer = Buffer { gpu: Arc::clone(self), address, len };
        let stream = StreamHandle(0);
        // SAFETY: the memory was allocated above.
        self.call(|machine| unsafe { machine.zero(stream, address, len.max(1)) })?;
        // Other streams do not wait for the default stream, so this function waits for the default stream.
        self.call(|machine| machine.synchronise_stream(stream))?;
        Ok(buffer)
    }

    /// New page-locked memory, zeroed.
    pub(crate) fn pinned(self: &Arc<Self>, len: usize) -> Result<Pinned> {
        let address = self.call(|machine| machine.allocate_pinned(len.max(1)))?;
        // SAFETY: the memory was allocated above with this length.
        unsafe { address.write_bytes(0, len.max(1)) };
        Ok(Pinned { gpu: Arc::clone(self), address, len, uses: Arc::default() })
    }

    pub(crate) fn stream(self: &Arc<Self>) -> Result<Stream> {
        let handle = self.call(|machine| machine.new_stream())?;
        Ok(Stream(Arc::new(StreamOwner { gpu: Arc::clone(self), handle, owned: true })))
    }

    /// New page-locked memory for a caller, zeroed.
    pub(crate) fn callers_pinned(self: &Arc<Self>, len: usize) -> Result<PinnedBuffer> {
        let pinned = self.pinned(len)?;
        lock(&self.pinned).insert(pinned.address as u64, Arc::downgrade(&pinned.uses));
        Ok(PinnedBuffer::new(self.id, Box::new(pinned)))
    }

    /// Copies host data to device memory that a caller owns, after all work that is queued on the stream, and waits for the copy.
    pub(crate) fn upload(&self, from: &[u8], to: &DeviceSlice, stream: work::Stream) -> Result<()> {
        let _hold = self.hold(to)?;
        if from.is_empty() {
            return Ok(());
        }
        let stream = StreamHandle(stream.number());
        let len = from.len().min(to.len());
        // SAFETY: both ranges have at least this length. The source is borrowed until the stream has been synchronised.
        // If the synchronisation fails, the device executes no further work.
        self.call(|machine| unsafe { machine.copy_in(stream, from.as_ptr(), to.offset(), len) })?;
        self.call(|machine| machine.synchronise_stream(stream))
    }

    /// Copies device memory that a caller owns to the host, after all work that is queued on the stream, and waits for the copy.
    pub(crate) fn download(&self, from: &DeviceSlice, to: &mut [u8], stream: work::Stream) -> Result<()> {
        let _hold = self.hold(from)?;
        if to.is_empty() {
            return Ok(());
        }
        let stream = StreamHandle(stream.number());
        let (address, len) = (to.as_mut_ptr(), to.len().min(from.len()));
        // SAFETY: as in `upload`.
        self.call(|machine| unsafe { machine.copy_out(stream, from.offset(), address, len) })?;
        self.call(|machine| machine.synchronise_stream(stream))
    }

    /// A caller's stream. The caller must keep the stream until all work on it has ended.
    pub(crate) fn callers_stream(self: &Arc<Self>, stream: work::Stream) -> Stream {
        let handle = StreamHandle(stream.number());
        Stream(Arc::new(StreamOwner { gpu: Arc::clone(self), handle, owned: false }))
    }

    /// Queues a copy of `range` of the pinned memory to the buffer.
    pub(crate) fn copy_in(
        &self,
        stream: &Stream,
        from: &mut Pinned,
        range: Range<usize>,
        to: &Buffer,
        at: usize,
    ) -> Result<()> {
        self.inside(from.len, &range)?;
        self.inside(to.len, &(at..at.saturating_add(range.len())))?;
        from.uses.begin(stream);
        // SAFETY: the ranges are inside both memories. The pinned memory is marked as in use, and dropping the buffer
        // waits for the machine.
        self.call(|machine| unsafe {
            machine.copy_in(
                stream.handle(),
                from.address.add(range.start),
                to.address + at as u64,
                range.len(),
            )
        })
    }

    /// Queues a copy from the buffer to `range` of the pinned memory.
    pub(crate) fn copy_out(
        &self,
        stream: &Stream,
        from: &Buffer,
        at: usize,
        to: &mut Pinned,
        range: Range<usize>,
    ) -> Result<()> {
        self.inside(to.len, &range)?;
        self.inside(from.len, &(at..at.saturating_add(range.len())))?;
        to.uses.begin(stream);
        // SAFETY: as in `copy_in`.
        self.call(|machine| unsafe {
            machine.copy_out(
                stream.handle(),
                from.address + at as u64,
                to.address.add(range.start),
                range.len(),
            )
        })
    }

    /// Queues a copy of a caller's pinned memory to the buffer.
    pub(crate) fn copy_in_slice(
        &self,
        stream: &Stream,
        from: &PinnedSlice,
        to: &Buffer,
        at: usize,
    ) -> Result<()> {
        self.inside(to.len, &(at..at.saturating_add(from.len())))?;
        let (uses, address) = self.claim(from)?;
        // This waits until no other thread holds the lock. A thread that locks the buffer after the copy has been
        // queued waits for the copy.
        let _guard = from.buffer().lock();
        uses.begin(stream);
        // SAFETY: a slice is inside its buffer, and the buffer exists until its uses have ended.
        self.call(|machine| unsafe {
            machine.copy_in(stream.handle(), address as *const u8, to.address + at as u64, from.len())
        })
    }

    /// Queues a copy from the buffer to a caller's pinned memory.
    pub(crate) fn copy_out_slice(
        &self,
        stream: &Stream,
        from: &Buffer,
        at: usize,
        to: &PinnedSlice,
    ) -> Result<()> {
        self.inside(from.len, &(at..at.saturating_add(to.len())))?;
        let (uses, address) = self.claim(to)?;
        let _guard = to.buffer().lock();
        uses.begin(stream);
        // SAFETY: as in `copy_in_slice`.
        self.call(|machine| unsafe {
            machine.copy_out(stream.handle(), from.address + at as u64, address as *mut u8, to.len())
        })
    }

    /// Returns the list of uses of a caller's pinned memory, and the address of the slice. Returns an error if the memory does
    /// not belong to this device.
    fn claim(&self, slice: &PinnedSlice) -> Result<(Arc<Uses>, u64)> {
        let uses = lock(&self.pinned).get(&slice.buffer().address()).and_then(Weak::upgrade);
        let foreign =
            || Error::OutOfReach { device: self.id, what: "pinned memory of another device".into() };
        Ok((uses.ok_or_else(foreign)?, slice.buffer().address() + slice.range().start as u64))
    }

    /// The events after which the previous uses of a caller's pinned memory have ended.
    pub(crate) fn uses(&self, slice: &PinnedSlice) -> Result<Vec<Event>> {
        let (uses, _) = self.claim(slice)?;
        let events = lock(&uses.list).iter().filter_map(|(_, event)| event.clone()).collect();
        Ok(events)
    }

    /// Records that the use of the pinned memory on the stream ends with the event.
    pub(crate) fn end_use(&self, slice: &PinnedSlice, stream: &Stream, event: &Event) {
        if let Ok((uses, _)) = self.claim(slice) {
            uses.end(stream, event);
        }
    }

    /// Queues zeroing of a part of the buffer.
    pub(crate) fn zero(&self, stream: &Stream, buffer: &Buffer, range: Range<usize>) -> Result<()> {
        self.inside(buffer.len, &range)?;
        // SAFETY: the range is inside the buffer, and dropping the buffer waits for the machine.
        self.call(|machine| unsafe {
            machine.zero(stream.handle(), buffer.address + range.start as u64, range.len())
        })
    }

    /// Queues zeroing of device memory that a caller owns.
    pub(crate) fn zero_slice(&self, stream: &Stream, slice: &DeviceSlice) -> Result<()> {
        let _hold = self.hold(slice)?;
        // SAFETY: the caller that created the slice guarantees that its memory is allocated.
        self.call(|machine| unsafe { machine.zero(stream.handle(), slice.offset(), slice.len()) })
    }

    /// Zeroes a caller's memory after work on this memory has failed, and waits until it is zeroed. The function has no effect
    /// if the device is lost.
    pub(crate) fn zero_outputs(&self, stream: &Stream, outputs: &[DeviceSlice]) {
        for slice in outputs {
            let _ = self.zero_slice(stream, slice);
        }
        stream.drain();
    }

    /// Keeps a caller's memory allocated: see [`Machine::hold`]. Returns an error if the memory does not belong to this device,
    /// or if the slice does not refer to the memory by its address. The offset of the slice is this address.
    pub(crate) fn hold(&self, slice: &DeviceSlice) -> Result<Hold> {
        if slice.device() != self.id {
            let what = format!("memory of {}", slice.device());
            return Err(Error::OutOfReach { device: self.id, what });
        }
        if slice.buffer() != BufferHandle::ADDRESS_SPACE {
            let what = "memory that is not named by its address".into();
            return Err(Error::OutOfReach { device: self.id, what });
        }
        self.call(|machine| machine.hold(slice.offset(), slice.len()))
    }

    /// Queues a launch that works on `bytes` bytes of data.
    ///
    /// # Safety
    /// The entry point has parameters of these types, in this order. All memory that the kernel accesses is memory of this
    /// device: this concerns addresses in the parameters, and addresses in the memory to which the parameters point. This
    /// memory stays allocated until an event that is recorded on the stream after the launch has passed, or until the machine
    /// has been synchronised, as on drop of a [`Buffer`].
    pub(crate) unsafe fn launch(
        &self,
        stream: &Stream,
        entry: Entry,
        shape: Shape,
        parameters: &[u8],
        bytes: u64,
    ) -> Result<()> {
        // SAFETY: the caller meets the conditions of this function.
        self.call(|machine| unsafe { machine.launch(stream.handle(), entry, shape, parameters) })?;
        let mut counters = lock(&self.counters);
        let counter =
            counters.entry(entry.name).or_insert(Counter { name: entry.name, launches: 0, bytes: 0 });
        counter.launches += 1;
        counter.bytes += bytes;
        Ok(())
    }

    /// Records an event after all work that has been queued on the stream.
    pub(crate) fn record(self: &Arc<Self>, stream: &Stream) -> Result<Event> {
        let handle = self.call(|machine| machine.record(stream.handle()))?;
        Ok(Event(Arc::new(EventOwner { gpu: Arc::clone(self), handle })))
    }

    /// Makes work that is queued on the stream from now on wait for the event.
    pub(crate) fn order(&self, stream: &Stream, event: &Event) -> Result<()> {
        self.call(|machine| machine.order(stream.handle(), event.0.handle))
    }

    fn inside(&self, len: usize, range: &Range<usize>) -> Result<()> {
        let is_inside = range.start <= range.end && range.end <= len;
        if is_inside { Ok(()) } else { Err(self.failed("a copy outside of its buffer: please report this")) }
    }
}

/// A stream that is freed when its last owner is dropped.
#[derive(Clone)]
pub(crate) struct Stream(Arc<StreamOwner>);

struct StreamOwner {
    gpu: Arc<Gpu>,
    handle: StreamHandle,
    owned: bool,
}

impl Stream {
    fn handle(&self) -> StreamHandle {
        self.0.handle
    }

    /// Waits until all work that is queued on the stream has run or failed.
    fn drain(&self) {
        let _ = self.0.gpu.machine.synchronise_stream(self.0.handle);
    }
}

impl Drop for StreamOwner {
    fn drop(&mut self) {
        if self.owned {
            self.gpu.machine.free_stream(self.handle);
        }
    }
}

/// An event in a stream. It is freed when its last owner is dropped.
#[derive(Clone)]
pub(crate) struct Event(Arc<EventOwner>);

struct EventOwner {
    gpu: Arc<Gpu>,
    handle: EventHandle,
}

impl Event {
    /// True if waiting would not block, because all work before the event has run or failed.
    pub(crate) fn is_past(&self) -> bool {
        self.0.gpu.call(|machine| machine.is_past(self.0.handle)).unwrap_or(true)
    }

    pub(crate) fn wait(&self) -> Result<()> {
        self.0.gpu.call(|machine| machine.wait(self.0.handle))
    }
}

impl Drop for EventOwner {
    fn drop(&mut self) {
        self.gpu.machine.free_event(self.handle);
    }
}

/// Device memory. On drop it is wiped and freed, after all work on it has ended.
pub(crate) struct Buffer {
    gpu: Arc<Gpu>,
    address: u64,
    len: usize,
}

impl Buffer {
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let (machine, len) = (&*self.gpu.machine, self.len.max(1));
        // Work on any stream may use the memory. If the synchronisation fails, all work has ended as well.
        let _ = machine.synchronise();
        // SAFETY: the memory was allocated in `Gpu::buffer`, and nothing uses it any more.
        unsafe {
            let _ = machine.zero(StreamHandle(0), self.address, len);
            let _ = machine.synchronise_stream(StreamHandle(0));
            machine.free(self.address, len);
        }
    }
}

impl DeviceBuffer for Buffer {
    fn slice(&self) -> DeviceSlice {
        // SAFETY: the memory is allocated, and it is freed only after all work on it. The owner of the buffer
        // guarantees that nothing else writes to it.
        unsafe { DeviceSlice::from_raw(self.gpu.id, self.address, self.len) }
    }
}

/// The streams that use pinned memory. For each stream, the event after its last use of the memory is stored, once this event
/// has been recorded.
#[derive(Default)]
struct Uses {
    list: Mutex<Vec<(Stream, Option<Event>)>>,
}

impl Uses {
    /// Records that the memory is in use until all work that is queued on the stream has run.
    fn begin(&self, stream: &Stream) {
        self.put(stream, None);
    }

    /// Records that the last use on the stream ends with the event.
    fn end(&self, stream: &Stream, event: &Event) {
        self.put(stream, Some(event.clone()));
    }

    fn put(&self, stream: &Stream, event: Option<Event>) {
        let mut list = lock(&self.list);
        match list.iter_mut().find(|(other, _)| other.handle() == stream.handle()) {
            Some((_, end)) => *end = event,
            None => list.push((stream.clone(), event)),
        }
    }

    /// Waits until nothing uses the memory. If waiting fails, the work has ended too, so the error is ignored.
    fn wait(&self) {
        let list = std::mem::take(&mut *lock(&self.list));
        for (stream, event) in list {
            // This calls the machine directly, because work may still run on a device that is marked as lost.
            let machine = &*stream.0.gpu.machine;
            let _ = match event {
                Some(event) => machine.wait(event.0.handle),
                None => machine.synchronise_stream(stream.handle()),
            };
        }
    }
}

/// Page-locked host memory. Each access from the host waits until no copy uses the memory. The memory is wiped and
/// freed on drop.
pub(crate) struct Pinned {
    gpu: Arc<Gpu>,
    address: *mut u8,
    len: usize,
    uses: Arc<Uses>,
}

// SAFETY: the memory has one owner, and each access waits for the accesses of the device.
unsafe impl Send for Pinned {}

impl Pinned {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Records that the use on the stream ends with the event.
    pub(crate) fn end_use(&mut self, stream: &Stream, event: &Event) {
        self.uses.end(stream, event);
    }
}

impl Deref for Pinned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.uses.wait();
        // SAFETY: the memory was allocated with this length. All copies have ended, and a new copy needs `&mut self` or
        // the lock around a caller's buffer.
        unsafe { std::slice::from_raw_parts(self.address, self.len) }
    }
}

impl DerefMut for Pinned {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.uses.wait();
        // SAFETY: the memory was allocated with this length. All copies have ended, and a new copy needs `&mut self` or
        // the lock around a caller's buffer.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.len) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        lock(&self.gpu.pinned).remove(&(self.address as u64));
        (**self).zeroize();
        // SAFETY: the memory was allocated in `Gpu::pinned`, and nothing uses it any more.
        unsafe { self.gpu.machine.free_pinned(self.address, self.len.max(1)) };
    }
}
