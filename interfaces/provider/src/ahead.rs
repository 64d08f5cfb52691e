//! Computes CTR keystream ahead of the updates that use it.
//!
//! In CTR mode the keystream does not depend on the data. If a context gets its data in many small consecutive updates
//! (`openssl enc` passes 4096 bytes at a time), a worker thread or the chosen device computes a bounded number of
//! keystream segments in advance, and an update becomes an XOR.
//!
//! The worker and the caller both compute segments. The worker computes segments in advance. If the caller needs a
//! segment that the worker has not finished, the caller computes the next unclaimed segment. So neither waits while
//! there is work. Segments are claimed in order, each is computed exactly once, and unused keystream is wiped.
//!
//! After a fork the child has no worker thread, and locks that were held in the parent may never be released in the
//! child. The child therefore does not use the parent's segments, and starts a new worker and new segments when needed.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use lockstep::hazmat::chaining::counter_after;
use lockstep::hazmat::inline::{Block, Span};
use lockstep::hazmat::stack;
use lockstep::hazmat::work::Pass;
use zeroize::{Zeroize, Zeroizing};

use crate::key::ContextKey;
use crate::resources::Resources;
use crate::system::process::{PerProcess, Process};
use crate::system::thread;
use crate::trace::Way;

/// Bytes of a segment computed by CPUs: enough for several updates, and small enough for the cache.
const CPU_SEGMENT: usize = 16 << 10;

/// Bytes of a segment computed by a device: large enough to justify a kernel launch.
const DEVICE_SEGMENT: usize = 256 << 10;

/// Maximum number of segments of a context, in progress or ready. The worker is woken when half of the segments are
/// used. The maximum is large enough that this happens rarely.
const DEPTH: u64 = 32;

/// Maximum number of contexts that use the worker at once; other contexts compute inline. Together with the constants
/// above, this limit bounds the memory.
const MAX_CONTEXTS: usize = 64;

/// Number of consecutive small updates after which keystream is computed ahead.
const MIN_RUN: u32 = 4;

/// A keystream segment, wiped on drop.
type Keystream = Zeroizing<Vec<u8>>;

/// The keystream worker, for all contexts of an instance.
pub(crate) struct KeystreamPool {
    segment: usize,
    workers: PerProcess<Worker>,
}

/// The worker thread of one process.
struct Worker {
    shared: Arc<Shared>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// State that contexts and worker share.
#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    contexts: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Arc<KeystreamJob>>,
    closed: bool,
}

/// The keystream of one context, starting at a counter value.
struct KeystreamJob {
    key: ContextKey,
    pass: Pass,
    /// The first counter. In GCM it is a secret, if the IV does not have 12 bytes.
    start: Zeroizing<Block>,
    segment: usize,
    state: Mutex<State>,
    made: Condvar,
}

struct State {
    /// The next segment that is not claimed.
    unclaimed: u64,
    /// The next segment that the context needs.
    needed: u64,
    ready: VecDeque<(u64, Keystream)>,
    /// Used segments, whose memory is reused.
    spare: Vec<Keystream>,
    /// True if the job is in the worker's queue.
    queued: bool,
    /// True if no more segments are computed, because the context has moved to another position or a computation has
    /// failed.
    ended: bool,
}

/// Locks a mutex even if it is poisoned: a panic in a critical section never leaves the protected data inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KeystreamPool {
    /// Creates a pool. The worker thread is started on first use. `for_device` selects larger segments.
    pub(crate) fn new(for_device: bool) -> KeystreamPool {
        let segment = if for_device { DEVICE_SEGMENT } else { CPU_SEGMENT };
        KeystreamPool { segment, workers: PerProcess::new() }
    }

    /// The worker of this process; `None` if no thread could be started, or after [`KeystreamPool::close`].
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

    /// Ends the worker of this process. After that, no more contexts can use it.
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
        let jobs = std::mem::take(&mut queue.jobs);
        drop(queue);
        self.shared.wake.notify_all();
        if let Some(worker) = lock(&self.thread).take() {
            let _ = worker.join();
        }
        // The jobs hold keys. A job that no context refers to is freed here, which wipes its key.
        drop(jobs);
    }
}

impl Shared {
    /// The worker's loop: computes one segment of each queued job in turn.
    fn work(&self) {
        let mut queue = lock(&self.queue);
        loop {
            if queue.closed {
                return;
            }
            let Some(job) = queue.jobs.pop_front() else {
                queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(queue);
            let again = job.compute_next();
            // The counters of GCM may be secret, and passes may leave round keys on the stack.
            stack::wipe_below();
            queue = lock(&self.queue);
            if again && !queue.closed {
                queue.jobs.push_back(job);
            }
        }
    }

    fn enqueue(&self, job: &Arc<KeystreamJob>) {
        let mut queue = lock(&self.queue);
        if !queue.closed && queue.jobs.try_reserve(1).is_ok() {
            queue.jobs.push_back(Arc::clone(job));
            self.wake.notify_one();
        }
    }
}

impl KeystreamJob {
    /// One step of the worker. Returns true if there may be more work. A separate function, so that its stack frame can be wiped.
    #[inline(never)]
    fn compute_next(&self) -> bool {
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
        state.store(number, made);
        self.made.notify_all();
        true
    }

    /// Computes a claimed segment: through the planner if `planned` and large enough, else inline. Returns `None` if an
    /// allocation or the device has failed, and also after a panic, because a thread that waits for the segment must be
    /// notified in every case. The computation changes nothing but the segment, which a panic drops.
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
            let mut counter = Zeroizing::new(counter_after(self.pass, &self.start, blocks));
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

    /// Returns the next segment that the context needs. If this segment is not ready, the caller computes unclaimed
    /// segments, in order, until it is ready. Returns `None` if the computation has failed.
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
                state.store(claimed, made);
            } else {
                state = self.made.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl State {
    /// Claims the next segment for the caller.
    fn claim(&mut self) -> u64 {
        self.unclaimed += 1;
        self.unclaimed - 1
    }

    /// Stores the result of a claimed segment.
    fn store(&mut self, number: u64, made: Option<Keystream>) {
        match made {
            Some(keystream) if !self.ended => self.ready.push_back((number, keystream)),
            Some(_) => {}
            None => self.ended = true,
        }
    }
}

/// The part of a context that uses keystream computed ahead.
pub(crate) struct KeystreamAhead {
    /// CTR with a counter of 128 or of 32 bits.
    pass: Pass,
    /// Number of consecutive small updates.
    run: u32,
    /// The counter at the end of the last update. An update that starts with another counter is not consecutive.
    next: Zeroizing<Block>,
    member: Option<PoolMember>,
}

/// A context that uses the worker.
struct PoolMember {
    process: Process,
    shared: Arc<Shared>,
    /// The job of this context. After a fork, the child process neither uses nor drops the job.
    job: Arc<KeystreamJob>,
    /// The current segment; `used` is the number of its bytes that have been XORed with data.
    current: Option<Keystream>,
    used: usize,
}

impl KeystreamAhead {
    /// The state before any update.
    pub(crate) fn new(pass: Pass) -> KeystreamAhead {
        KeystreamAhead { pass, run: 0, next: Zeroizing::default(), member: None }
    }

    /// True if the context uses the worker.
    #[cfg(test)]
    pub(crate) fn uses_pool(&self) -> bool {
        self.member.is_some()
    }

    #[cfg(test)]
    fn job(&self) -> Option<Arc<KeystreamJob>> {
        self.member.as_ref().map(|member| Arc::clone(&member.job))
    }

    /// Applies CTR to whole blocks: with keystream computed ahead after [`MIN_RUN`] consecutive small updates, inline otherwise.
    /// Copies of the counter may be left on the stack.
    pub(crate) fn apply(
        &mut self,
        keystream_pool: &KeystreamPool,
        resources: &Resources,
        key: &ContextKey,
        counter: &mut Block,
        data: Span<'_>,
    ) {
        if *self.next != *counter {
            // The update belongs to another message, or to another position in the message.
            self.stop();
        }
        let bytes = data.len();
        if self.member.is_none() {
            self.run += 1;
            if self.run > MIN_RUN {
                self.run = 0;
                self.member = PoolMember::new(keystream_pool, resources, key, self.pass, counter);
                // The key of the job was copied and moved, which leaves copies on the stack.
                stack::wipe_below();
            }
        }
        let rest = match &mut self.member {
            Some(member) => member.xor(data),
            None => data,
        };
        let done = bytes - rest.len();
        *counter = counter_after(self.pass, counter, done as u128 / 16);
        if let (1.., Some(trace)) = (done, &resources.trace) {
            trace.count_way(Way::Ahead, done);
        }
        if !rest.is_empty() {
            // There is no worker, a computation has failed, or this is a child process after a fork.
            self.member = None;
            key.run_inline(self.pass, counter, rest);
        }
        *self.next = *counter;
    }

    /// Ends the message: the keystream computed for it is dropped.
    pub(crate) fn stop(&mut self) {
        self.run = 0;
        self.next.zeroize();
        self.member = None;
    }
}

impl PoolMember {
    /// Adds a context to the users of the worker. Returns `None` if there is no worker, if too many contexts use it, or if memory
    /// cannot be allocated. A separate function, so that its stack frame can be wiped.
    #[inline(never)]
    fn new(
        keystream_pool: &KeystreamPool,
        resources: &Resources,
        key: &ContextKey,
        pass: Pass,
        start: &Block,
    ) -> Option<PoolMember> {
        let worker = keystream_pool.worker()?;
        let shared = Arc::clone(&worker.shared);
        if shared.contexts.fetch_add(1, Relaxed) >= MAX_CONTEXTS {
            shared.contexts.fetch_sub(1, Relaxed);
            return None;
        }
        // Reserve the full capacity now, so that later pushes do not allocate.
        let (mut ready, mut spare) = (VecDeque::new(), Vec::new());
        let has_room = ready.try_reserve_exact(DEPTH as usize + 1).is_ok()
            && spare.try_reserve_exact(DEPTH as usize + 1).is_ok();
        let Some(key) = has_room.then(|| key.duplicate().ok()).flatten() else {
            shared.contexts.fetch_sub(1, Relaxed);
            return None;
        };
        let state = State { unclaimed: 0, needed: 0, ready, spare, queued: true, ended: false };
        let segment = if resources.is_large(DEVICE_SEGMENT) { keystream_pool.segment } else { CPU_SEGMENT };
        let job = Arc::new(KeystreamJob {
            key,
            pass,
            start: Zeroizing::new(*start),
            segment,
            state: Mutex::new(state),
            made: Condvar::new(),
        });
        shared.enqueue(&job);
        let process = Process::current();
        Some(PoolMember { process, shared, job, current: None, used: 0 })
    }

    /// XORs data with keystream; returns the rest of the data if no more keystream could be computed.
    fn xor<'d>(&mut self, mut data: Span<'d>) -> Span<'d> {
        while !data.is_empty() {
            if self.current.is_none() && !self.next() {
                return data;
            }
            let Some(keystream) = &self.current else { return data };
            let len = data.len().min(keystream.len() - self.used);
            let (now, later) = data.split_at(len);
            now.into_host().xor_with(&keystream[self.used..self.used + len]);
            data = later;
            self.used += len;
            if self.used == keystream.len()
                && let Some(used_up) = self.current.take()
            {
                self.recycle(used_up);
            }
        }
        data
    }

    /// Gets the next segment.
    fn next(&mut self) -> bool {
        if self.process != Process::current() {
            return false;
        }
        self.current = self.job.take();
        self.used = 0;
        self.current.is_some()
    }

    fn recycle(&self, keystream: Keystream) {
        if self.process != Process::current() {
            return;
        }
        let mut state = lock(&self.job.state);
        state.spare.push(keystream);
        // Waking the worker for each segment would take longer than computing the segment.
        let idle = !state.queued && !state.ended && state.unclaimed <= state.needed + DEPTH / 2;
        state.queued |= idle;
        drop(state);
        if idle {
            self.shared.enqueue(&self.job);
        }
    }
}

impl Drop for PoolMember {
    fn drop(&mut self) {
        if self.process != Process::current() {
            // After a fork, a thread that does not exist in this process may hold the lock. Then the segments are not
            // freed.
            if let Ok(mut state) = self.job.state.try_lock() {
                state.ready.clear();
                state.spare.clear();
            }
            std::mem::forget(Arc::clone(&self.job));
            return;
        }
        self.shared.contexts.fetch_sub(1, Relaxed);
        let mut state = lock(&self.job.state);
        state.ended = true;
        // Free the segments now. The worker may reach the job much later.
        state.ready.clear();
        state.spare.clear();
    }
}

#[cfg(test)]
mod tests;
