//! A machine for tests: the emulator, with calls that fail on demand and a count of allocated memory.
//!
//! The tests of this crate choose each call that fails. For a whole program (`make soak`) an environment variable
//! chooses the calls: see [`Every`]. This module is compiled only with the feature `faults`, which no release has.
#![allow(unsafe_code, reason = "the calls of the machine, which are passed on to the emulator")]

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use super::emulator::Emulator;
use super::{Entry, EventHandle, Fault, Hold, Limits, Machine, Outcome, Shape, StreamHandle};

/// The environment variable that sets [`Every`]. Its name is part of the message of each fault.
const VARIABLE: &str = "LOCKSTEP_TEST_FAULTS";

/// Faults of a whole program, such as `launch:50,wait:70,allocation:90,copy:23,lost:400`: each 50th launch, 70th wait and
/// 90th allocation fails, each 23rd copy to the host has a wrong byte, and at the 400th launch the device is lost.
/// 0 means never.
#[derive(Default)]
struct Every {
    allocation: u64,
    launch: u64,
    wait: u64,
    copy: u64,
    lost: u64,
}

impl Every {
    fn parse(text: &str) -> Option<Every> {
        let mut every = Every::default();
        for part in text.split(',') {
            let (kind, number) = part.split_once(':')?;
            let place = match kind {
                "allocation" => &mut every.allocation,
                "launch" => &mut every.launch,
                "wait" => &mut every.wait,
                "copy" => &mut every.copy,
                "lost" => &mut every.lost,
                _ => return None,
            };
            *place = number.parse().ok()?;
        }
        Some(every)
    }
}

/// True if a fault is due at the call with this number. Every `every`-th call has a fault, and numbers start at 0.
fn is_due(every: u64, number: u64) -> bool {
    every > 0 && (number + 1).is_multiple_of(every)
}

/// The settings and the counters of a test.
#[derive(Default)]
pub(crate) struct Control {
    every: Every,
    /// For each type of call, the number of the call that fails, counted from 0, and its fault.
    pub(crate) allocation: Mutex<Option<(u64, Fault)>>,
    pub(crate) launch: Mutex<Option<(u64, Fault)>>,
    pub(crate) wait: Mutex<Option<(u64, Fault)>>,
    pub(crate) allocations: AtomicU64,
    pub(crate) launches: AtomicU64,
    pub(crate) waits: AtomicU64,
    /// The number of the copy to the host whose first byte is wrong.
    pub(crate) wrong_copy: Mutex<Option<u64>>,
    pub(crate) copies: AtomicU64,
    /// True if kernels must be compiled before they run.
    pub(crate) compiles: AtomicBool,
    /// True after a sticky error, when nothing works any more.
    lost: AtomicBool,
    /// The number of calls after the sticky error.
    pub(crate) late: AtomicU64,
    /// Allocated bytes of host and device memory.
    pub(crate) bytes: AtomicI64,
}

impl Control {
    /// Reads the faults that the environment requests, if any.
    ///
    /// # Panics
    /// Panics if the variable is malformed, because a run without the requested faults would prove nothing.
    pub(crate) fn from_environment() -> Option<Control> {
        let text = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty())?;
        let every = Every::parse(&text).unwrap_or_else(|| panic!("{VARIABLE} is `{text}`: see failing.rs"));
        Some(Control { every, ..Control::default() })
    }

    fn call(
        &self,
        plan: &Mutex<Option<(u64, Fault)>>,
        every: u64,
        count: &AtomicU64,
        what: &'static str,
    ) -> Outcome<()> {
        self.alive()?;
        let number = count.fetch_add(1, SeqCst);
        if is_due(every, number) {
            return Err(Fault::Failed(format!("{what} {number} failed ({VARIABLE})")));
        }
        match &*plan.lock().unwrap() {
            Some((at, fault)) if *at == number => {
                self.lost.store(matches!(fault, Fault::Lost(_)), SeqCst);
                Err(fault.clone())
            }
            _ => Ok(()),
        }
    }

    fn allocate(&self) -> Outcome<()> {
        self.call(&self.allocation, self.every.allocation, &self.allocations, "allocation")
    }

    fn launch(&self) -> Outcome<()> {
        if self.every.lost > 0 && self.launches.load(SeqCst) + 1 >= self.every.lost {
            self.lost.store(true, SeqCst);
        }
        self.call(&self.launch, self.every.launch, &self.launches, "launch")
    }

    fn wait(&self) -> Outcome<()> {
        self.call(&self.wait, self.every.wait, &self.waits, "wait")
    }

    fn is_wrong_copy(&self, number: u64) -> bool {
        is_due(self.every.copy, number) || *self.wrong_copy.lock().unwrap() == Some(number)
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

// SAFETY: memory comes from the emulator.
unsafe impl Machine for Failing {
    fn description(&self) -> String {
        "fails on demand".into()
    }

    fn limits(&self) -> Limits {
        self.emulator.limits()
    }

    fn has_machine_code(&self, module: &'static str) -> bool {
        self.emulator.has_machine_code(module)
    }

    fn lacks(&self, entry: Entry) -> bool {
        self.emulator.lacks(entry)
    }

    fn is_at_hand(&self, _entry: Entry) -> bool {
        !self.control.compiles.load(SeqCst)
    }

    fn allocate(&self, len: usize) -> Outcome<u64> {
        self.control.allocate()?;
        let address = self.emulator.allocate(len)?;
        self.control.bytes.fetch_add(len as i64, SeqCst);
        Ok(address)
    }

    unsafe fn free(&self, address: u64, len: usize) {
        self.control.bytes.fetch_sub(len as i64, SeqCst);
        // SAFETY: the caller guarantees the requirements of this function.
        unsafe { self.emulator.free(address, len) }
    }

    fn hold(&self, address: u64, len: usize) -> Outcome<Hold> {
        self.control.alive()?;
        self.emulator.hold(address, len)
    }

    fn allocate_pinned(&self, len: usize) -> Outcome<*mut u8> {
        self.control.allocate()?;
        let address = self.emulator.allocate_pinned(len)?;
        self.control.bytes.fetch_add(len as i64, SeqCst);
        Ok(address)
    }

    unsafe fn free_pinned(&self, address: *mut u8, len: usize) {
        self.control.bytes.fetch_sub(len as i64, SeqCst);
        // SAFETY: the caller guarantees the requirements of this function.
        unsafe { self.emulator.free_pinned(address, len) }
    }

    unsafe fn copy_in(&self, stream: StreamHandle, from: *const u8, to: u64, len: usize) -> Outcome<()> {
        self.control.alive()?;
        // SAFETY: the caller guarantees the requirements of this function.
        unsafe { self.emulator.copy_in(stream, from, to, len) }
    }

    unsafe fn copy_out(&self, stream: StreamHandle, from: u64, to: *mut u8, len: usize) -> Outcome<()> {
        self.control.alive()?;
        let number = self.control.copies.fetch_add(1, SeqCst);
        // SAFETY: the caller guarantees the requirements of this function.
        unsafe { self.emulator.copy_out(stream, from, to, len)? };
        if self.control.is_wrong_copy(number) && len > 0 {
            self.emulator.synchronise()?;
            // SAFETY: the copy has ended, and the caller guarantees at least one byte.
            unsafe { *to ^= 0x40 };
        }
        Ok(())
    }

    unsafe fn zero(&self, stream: StreamHandle, address: u64, len: usize) -> Outcome<()> {
        self.control.alive()?;
        // SAFETY: the caller guarantees the requirements of this function.
        unsafe { self.emulator.zero(stream, address, len) }
    }

    unsafe fn launch(
        &self,
        stream: StreamHandle,
        entry: Entry,
        shape: Shape,
        parameters: &[u8],
    ) -> Outcome<()> {
        self.control.launch()?;
        // SAFETY: the caller guarantees the requirements of this function.
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
        // The emulator's work must end before the call fails, because the caller then frees memory.
        self.emulator.wait(event)?;
        self.control.wait()
    }

    fn order(&self, stream: StreamHandle, event: EventHandle) -> Outcome<()> {
        self.control.alive()?;
        self.emulator.order(stream, event)
    }

    fn free_event(&self, event: EventHandle) {
        self.emulator.free_event(event);
    }
}

#[cfg(test)]
mod tests;
