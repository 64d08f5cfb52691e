//! A machine for tests: the emulator, but a call of a kind fails, and memory is counted.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use super::emulator::Emulator;
use super::{Entry, EventHandle, Fault, Hold, Limits, Machine, Outcome, Shape, StreamHandle};

/// What a test tells the machine, and learns from it.
#[derive(Default)]
pub(crate) struct Control {
    /// Which call fails, and how: each by its number, counted from 0.
    pub(crate) allocation: Mutex<Option<(u64, Fault)>>,
    pub(crate) launch: Mutex<Option<(u64, Fault)>>,
    pub(crate) wait: Mutex<Option<(u64, Fault)>>,
    pub(crate) allocations: AtomicU64,
    pub(crate) launches: AtomicU64,
    pub(crate) waits: AtomicU64,
    /// The copy to the host whose first byte comes out wrong.
    pub(crate) wrong_copy: Mutex<Option<u64>>,
    pub(crate) copies: AtomicU64,
    /// Kernels must be compiled before they run.
    pub(crate) compiles: AtomicBool,
    /// After a sticky error nothing works.
    lost: AtomicBool,
    /// Calls that came after that.
    pub(crate) late: AtomicU64,
    /// Bytes that are allocated, on both sides.
    pub(crate) bytes: AtomicI64,
}

impl Control {
    fn call(&self, plan: &Mutex<Option<(u64, Fault)>>, count: &AtomicU64) -> Outcome<()> {
        self.alive()?;
        let number = count.fetch_add(1, SeqCst);
        match &*plan.lock().unwrap() {
            Some((at, fault)) if *at == number => {
                self.lost.store(matches!(fault, Fault::Lost(_)), SeqCst);
                Err(fault.clone())
            }
            _ => Ok(()),
        }
    }

    fn alive(&self) -> Outcome<()> {
        if self.lost.load(SeqCst) {
            self.late.fetch_add(1, SeqCst);
            return Err(Fault::Lost("gone".into()));
        }
        Ok(())
    }
}

pub(crate) struct Failing {
    pub(crate) emulator: Emulator,
    pub(crate) control: Arc<Control>,
}

// SAFETY: memory is the emulator's.
unsafe impl Machine for Failing {
    fn description(&self) -> String {
        "fails on demand".into()
    }

    fn limits(&self) -> Limits {
        self.emulator.limits()
    }

    fn lacks(&self, entry: Entry) -> bool {
        self.emulator.lacks(entry)
    }

    fn is_at_hand(&self, _entry: Entry) -> bool {
        !self.control.compiles.load(SeqCst)
    }

    fn allocate(&self, len: usize) -> Outcome<u64> {
        self.control.call(&self.control.allocation, &self.control.allocations)?;
        let address = self.emulator.allocate(len)?;
        self.control.bytes.fetch_add(len as i64, SeqCst);
        Ok(address)
    }

    unsafe fn free(&self, address: u64, len: usize) {
        self.control.bytes.fetch_sub(len as i64, SeqCst);
        // SAFETY: the caller's promise.
        unsafe { self.emulator.free(address, len) }
    }

    fn hold(&self, address: u64, len: usize) -> Outcome<Hold> {
        self.control.alive()?;
        self.emulator.hold(address, len)
    }

    fn allocate_pinned(&self, len: usize) -> Outcome<*mut u8> {
        self.control.call(&self.control.allocation, &self.control.allocations)?;
        let address = self.emulator.allocate_pinned(len)?;
        self.control.bytes.fetch_add(len as i64, SeqCst);
        Ok(address)
    }

    unsafe fn free_pinned(&self, address: *mut u8, len: usize) {
        self.control.bytes.fetch_sub(len as i64, SeqCst);
        // SAFETY: the caller's promise.
        unsafe { self.emulator.free_pinned(address, len) }
    }

    unsafe fn copy_in(&self, stream: StreamHandle, from: *const u8, to: u64, len: usize) -> Outcome<()> {
        self.control.alive()?;
        // SAFETY: the caller's promise.
        unsafe { self.emulator.copy_in(stream, from, to, len) }
    }

    unsafe fn copy_out(&self, stream: StreamHandle, from: u64, to: *mut u8, len: usize) -> Outcome<()> {
        self.control.alive()?;
        let number = self.control.copies.fetch_add(1, SeqCst);
        // SAFETY: the caller's promise.
        unsafe { self.emulator.copy_out(stream, from, to, len)? };
        if *self.control.wrong_copy.lock().unwrap() == Some(number) && len > 0 {
            self.emulator.synchronise()?;
            // SAFETY: the copy is over, and the caller has promised a byte at least.
            unsafe { *to ^= 0x40 };
        }
        Ok(())
    }

    unsafe fn zero(&self, stream: StreamHandle, address: u64, len: usize) -> Outcome<()> {
        self.control.alive()?;
        // SAFETY: the caller's promise.
        unsafe { self.emulator.zero(stream, address, len) }
    }

    unsafe fn launch(
        &self,
        stream: StreamHandle,
        entry: Entry,
        shape: Shape,
        parameters: &[u8],
    ) -> Outcome<()> {
        self.control.call(&self.control.launch, &self.control.launches)?;
        // SAFETY: the caller's promise.
        unsafe { self.emulator.launch(stream, entry, shape, parameters) }
    }

    fn new_stream(&self) -> Outcome<StreamHandle> {
        self.control.alive()?;
        self.emulator.new_stream()
    }

    fn free_stream(&self, stream: StreamHandle) {
        self.emulator.free_stream(stream);
    }

    fn synchronise_stream(&self, stream: StreamHandle) -> Outcome<()> {
        self.emulator.synchronise_stream(stream)?;
        self.control.alive()
    }

    fn synchronise(&self) -> Outcome<()> {
        self.emulator.synchronise()?;
        self.control.alive()
    }

    fn record(&self, stream: StreamHandle) -> Outcome<EventHandle> {
        self.control.alive()?;
        self.emulator.record(stream)
    }

    fn is_past(&self, event: EventHandle) -> Outcome<bool> {
        self.control.alive()?;
        self.emulator.is_past(event)
    }

    fn wait(&self, event: EventHandle) -> Outcome<()> {
        // What the emulator has queued ends before anything fails: memory is freed then.
        self.emulator.wait(event)?;
        self.control.call(&self.control.wait, &self.control.waits)
    }

    fn order(&self, stream: StreamHandle, event: EventHandle) -> Outcome<()> {
        self.control.alive()?;
        self.emulator.order(stream, event)
    }

    fn free_event(&self, event: EventHandle) {
        self.emulator.free_event(event);
    }
}
