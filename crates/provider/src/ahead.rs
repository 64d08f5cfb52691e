//! Keystream made before it is asked for.
//!
//! In CTR the keystream does not depend on the data. A context that gets its data in many small updates, one after the
//! other (`openssl enc` hands over 4096 bytes at a time), therefore has keystream made ahead by a thread of its own or by
//! the device that was chosen, in segments, a bounded number of them, and an update becomes an XOR.
//!
//! Both sides make segments: the worker those ahead, and the caller, when it needs one that the worker is still busy with,
//! the one after it. So neither waits while there is work. All segments are made in order of being claimed, each exactly
//! once, and what is left of them is wiped.
//!
//! A child of a fork has neither the worker nor a lock that can be trusted: whatever it finds of its parent's it leaves
//! alone, and begins anew.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use lockstep::hazmat::chaining::counter_after;
use lockstep::hazmat::inline::{Block, Span};
use lockstep::hazmat::work::Pass;
use zeroize::Zeroizing;

use crate::ffi::process::{PerProcess, Process};
use crate::ffi::{stack, thread};
use crate::instance::Instance;
use crate::key::ContextKey;
use crate::trace::Way;

/// Bytes of a segment if CPUs make them: some updates' worth, and little enough to stay in the cache.
const CPU_SEGMENT: usize = 16 << 10;

/// Bytes of a segment if a device makes them: enough to be worth a launch.
const DEVICE_SEGMENT: usize = 256 << 10;

/// Segments that a context has at most, being made or ready: enough that the worker, which is woken at half of them, is not
/// woken often.
const DEPTH: u64 = 32;

/// Contexts that are served at once; others work inline. With the numbers above they bound the memory.
const MOST_CONTEXTS: usize = 64;

/// Small updates in a row after which keystream is made ahead.
const RUN: u32 = 4;

/// A keystream segment, wiped on drop.
type Keystream = Zeroizing<Vec<u8>>;

/// Where keystream is made ahead, for all contexts of an instance.
pub(crate) struct KeystreamPool {
    segment: usize,
    workers: PerProcess<Worker>,
}

/// The thread that makes keystream in one process.
struct Worker {
    shared: Arc<Shared>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// What contexts and worker share.
#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    contexts: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    orders: VecDeque<Arc<Order>>,
    closed: bool,
}

/// The keystream of one context from some place on.
struct Order {
    key: ContextKey,
    pass: Pass,
    start: Block,
    segment: usize,
    state: Mutex<State>,
    made: Condvar,
}

struct State {
    /// The next segment that nobody has claimed.
    unclaimed: u64,
    /// The segment the context needs next.
    needed: u64,
    ready: VecDeque<(u64, Keystream)>,
    /// Used up, for the next segments.
    spare: Vec<Keystream>,
    /// The worker has it in its queue.
    queued: bool,
    /// The context has gone elsewhere, or making failed: no more segments.
    ended: bool,
}

/// No section that holds a lock leaves its data half changed, whatever happens in it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KeystreamPool {
    /// A pool. No thread is started before there is work. With a device keystream is made in larger segments.
    pub(crate) fn new(for_device: bool) -> KeystreamPool {
        let segment = if for_device { DEVICE_SEGMENT } else { CPU_SEGMENT };
        KeystreamPool { segment, workers: PerProcess::new() }
    }

    /// The worker of this process; none if no thread can be had, or after the end.
    fn worker(&self) -> Option<&Worker> {
        let open = || {
            let shared = Arc::new(Shared::default());
            let theirs = Arc::clone(&shared);
            let thread = thread::spawn_without_signals("lockstep-ahead", move || theirs.work()).ok_or(())?;
            Ok::<Worker, ()>(Worker { shared, thread: Mutex::new(Some(thread)) })
        };
        let worker = self.workers.get_or_make(open, |worker: Worker| worker.close()).ok()?;
        (!lock(&worker.shared.queue).closed).then_some(worker)
    }

    /// Ends the worker of this process; no more contexts are served.
    pub(crate) fn close(&self) {
        if let Some(worker) = self.workers.get() {
            worker.close();
        }
    }
}

impl Worker {
    fn close(&self) {
        let mut queue = lock(&self.shared.queue);
        queue.closed = true;
        let orders = std::mem::take(&mut queue.orders);
        drop(queue);
        self.shared.wake.notify_all();
        if let Some(worker) = lock(&self.thread).take() {
            let _ = worker.join();
        }
        // With their keys, unless a context still has them.
        drop(orders);
    }
}

impl Shared {
    /// The worker: one segment of one order after another, in turn.
    fn work(&self) {
        let mut queue = lock(&self.queue);
        loop {
            if queue.closed {
                return;
            }
            let Some(order) = queue.orders.pop_front() else {
                queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(queue);
            let again = order.make_one();
            queue = lock(&self.queue);
            if again && !queue.closed {
                queue.orders.push_back(order);
            }
        }
    }

    fn enqueue(&self, order: &Arc<Order>) {
        let mut queue = lock(&self.queue);
        if !queue.closed && queue.orders.try_reserve(1).is_ok() {
            queue.orders.push_back(Arc::clone(order));
            self.wake.notify_one();
        }
    }
}

impl Order {
    /// The worker's turn: true if there may be more to do.
    fn make_one(&self) -> bool {
        let mut state = lock(&self.state);
        if state.ended || state.unclaimed >= state.needed + DEPTH {
            state.queued = false;
            return false;
        }
        let number = state.claim();
        let spare = state.spare.pop();
        drop(state);
        let made = self.make(number, spare, true);
        let mut state = lock(&self.state);
        state.put(number, made);
        self.made.notify_all();
        true
    }

    /// Makes a claimed segment: through the planner if it is large enough for that, or inline. None if there is no memory,
    /// the device failed, or anything went wrong: whoever waits for the segment must be told.
    fn make(&self, number: u64, spare: Option<Keystream>, planned: bool) -> Option<Keystream> {
        catch_unwind(AssertUnwindSafe(|| {
            let mut keystream = match spare {
                Some(spare) => spare,
                None => {
                    let mut new = Vec::new();
                    new.try_reserve_exact(self.segment).ok()?;
                    Zeroizing::new(new)
                }
            };
            keystream.clear();
            keystream.resize(self.segment, 0);
            let blocks = u128::from(number) * (self.segment / 16) as u128;
            let mut counter = counter_after(self.pass, &self.start, blocks);
            let data = Span::in_place(&mut keystream);
            if planned {
                self.key.run(self.pass, &mut counter, data).ok()?;
            } else {
                self.key.run_inline(self.pass, &mut counter, data);
            }
            Some(keystream)
        }))
        .ok()
        .flatten()
    }

    /// The segment the context needs next: taken if it is ready, made if nobody does, waited for while making others
    /// otherwise. None if making failed.
    fn take(&self) -> Option<Keystream> {
        let mut state = lock(&self.state);
        let number = state.needed;
        loop {
            if let Some(at) = state.ready.iter().position(|(ready, _)| *ready == number) {
                let (_, keystream) = state.ready.remove(at)?;
                state.needed += 1;
                return Some(keystream);
            }
            if state.ended {
                return None;
            }
            if state.unclaimed < number + DEPTH {
                let claimed = state.claim();
                let spare = state.spare.pop();
                drop(state);
                let made = self.make(claimed, spare, false);
                state = lock(&self.state);
                state.put(claimed, made);
            } else {
                state = self.made.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl State {
    /// The next segment is the caller's to make.
    fn claim(&mut self) -> u64 {
        self.unclaimed += 1;
        self.unclaimed - 1
    }

    /// What came of a claimed segment.
    fn put(&mut self, number: u64, made: Option<Keystream>) {
        match made {
            Some(keystream) if !self.ended => self.ready.push_back((number, keystream)),
            Some(_) => {}
            None => self.ended = true,
        }
    }
}

/// The side of a context.
pub(crate) struct Ahead {
    /// CTR with a counter of 128 or of 32 bits.
    pass: Pass,
    /// Small updates in a row.
    run: u32,
    /// The counter that an update in a row begins with.
    next: Block,
    served: Option<Served>,
}

/// A context that is served.
struct Served {
    process: Process,
    shared: Arc<Shared>,
    /// Left alone, not dropped, in a child of the process it was made in.
    order: Arc<Order>,
    /// The segment under way, and how much of it is used.
    current: Option<Keystream>,
    used: usize,
}

impl Ahead {
    /// Before any update.
    pub(crate) fn new(pass: Pass) -> Ahead {
        Ahead { pass, run: 0, next: [0; 16], served: None }
    }

    /// True if keystream is being made for this context.
    #[cfg(test)]
    pub(crate) fn is_served(&self) -> bool {
        self.served.is_some()
    }

    #[cfg(test)]
    fn order(&self) -> Option<Arc<Order>> {
        self.served.as_ref().map(|served| Arc::clone(&served.order))
    }

    /// CTR over whole blocks, by keystream made ahead if this goes on for a while, inline otherwise.
    pub(crate) fn apply(
        &mut self,
        keystream_pool: &KeystreamPool,
        instance: &Arc<Instance>,
        key: &ContextKey,
        counter: &mut Block,
        data: Span<'_>,
    ) {
        if self.next != *counter {
            // Another message, or another place of it.
            self.stop();
        }
        let bytes = data.len();
        if self.served.is_none() {
            self.run += 1;
            if self.run > RUN {
                self.run = 0;
                self.served = Served::new(keystream_pool, instance, key, self.pass, counter);
            }
        }
        let rest = match &mut self.served {
            Some(served) => served.xor(data),
            None => data,
        };
        let served = bytes - rest.len();
        *counter = counter_after(self.pass, counter, served as u128 / 16);
        if let (1.., Some(trace)) = (served, &instance.trace) {
            trace.count_way(Way::Ahead, served);
        }
        if !rest.is_empty() {
            // Not served, or making failed, or this is a child of a fork.
            self.served = None;
            key.run_inline(self.pass, counter, rest);
        }
        self.next = *counter;
    }

    /// The message has ended: what was made for it is let go.
    pub(crate) fn stop(&mut self) {
        self.run = 0;
        self.served = None;
    }
}

impl Served {
    fn new(
        keystream_pool: &KeystreamPool,
        instance: &Arc<Instance>,
        key: &ContextKey,
        pass: Pass,
        start: &Block,
    ) -> Option<Served> {
        let worker = keystream_pool.worker()?;
        let shared = Arc::clone(&worker.shared);
        let key = key.duplicate().ok()?;
        if shared.contexts.fetch_add(1, Relaxed) >= MOST_CONTEXTS {
            shared.contexts.fetch_sub(1, Relaxed);
            return None;
        }
        // All that will ever be in them, so that nothing needs memory later.
        let (mut ready, mut spare) = (VecDeque::new(), Vec::new());
        if ready.try_reserve_exact(DEPTH as usize + 1).is_err()
            || spare.try_reserve_exact(DEPTH as usize + 1).is_err()
        {
            shared.contexts.fetch_sub(1, Relaxed);
            return None;
        }
        let state = State { unclaimed: 0, needed: 0, ready, spare, queued: true, ended: false };
        let segment = if instance.is_large(DEVICE_SEGMENT) { keystream_pool.segment } else { CPU_SEGMENT };
        let order = Arc::new(Order {
            key,
            pass,
            start: *start,
            segment,
            state: Mutex::new(state),
            made: Condvar::new(),
        });
        shared.enqueue(&order);
        // The key was moved here.
        stack::wipe_below();
        let process = Process::current();
        Some(Served { process, shared, order, current: None, used: 0 })
    }

    /// XORs keystream; what could not be is left.
    fn xor<'d>(&mut self, mut data: Span<'d>) -> Span<'d> {
        while !data.is_empty() {
            if self.current.is_none() && !self.next() {
                return data;
            }
            let Some(keystream) = &self.current else { return data };
            let len = data.len().min(keystream.len() - self.used);
            let (mut now, later) = data.split_at(len);
            now.xor(&keystream[self.used..self.used + len]);
            data = later;
            self.used += len;
            if self.used == keystream.len()
                && let Some(used_up) = self.current.take()
            {
                self.give_back(used_up);
            }
        }
        data
    }

    /// Gets the next segment.
    fn next(&mut self) -> bool {
        if self.process != Process::current() {
            return false;
        }
        self.current = self.order.take();
        self.used = 0;
        self.current.is_some()
    }

    fn give_back(&self, keystream: Keystream) {
        if self.process != Process::current() {
            return;
        }
        let mut state = lock(&self.order.state);
        state.spare.push(keystream);
        // To wake the worker for each segment would cost more than the segment.
        let idle = !state.queued && !state.ended && state.unclaimed <= state.needed + DEPTH / 2;
        state.queued |= idle;
        drop(state);
        if idle {
            self.shared.enqueue(&self.order);
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if self.process != Process::current() {
            // A lock may be held by a thread that this process does not have; then what is behind it stays as it is.
            if let Ok(mut state) = self.order.state.try_lock() {
                state.ready.clear();
                state.spare.clear();
            }
            std::mem::forget(Arc::clone(&self.order));
            return;
        }
        self.shared.contexts.fetch_sub(1, Relaxed);
        let mut state = lock(&self.order.state);
        state.ended = true;
        // Now, not when the worker comes by.
        state.ready.clear();
        state.spare.clear();
    }
}

#[cfg(test)]
mod tests;
