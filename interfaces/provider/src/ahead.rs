//! Computes CTR keystream ahead of the updates that use it.
//!
//! In CTR mode the keystream does not depend on the data. If a context gets its data in many small consecutive updates
//! (`openssl enc` passes 4096 bytes at a time), a worker thread or the chosen device computes a bounded number of
//! keystream segments in advance, and an update becomes an XOR.
//!
//! The worker computes segments in advance. If the caller needs a segment that is not ready, the caller computes the next
//! unclaimed segment itself instead of waiting for the worker. The caller waits only if all segments up to the maximum number
//! are claimed. Segments are claimed in order, each is computed exactly once, and unused keystream is wiped.
//!
//! After a fork the child has no worker thread, and locks that were held in the parent may never be released in the
//! child. The child therefore does not use the parent's segments, and starts a new worker and new segments when needed.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use lockstep::hazmat::chaining::counter_after;
use lockstep::hazmat::inline::{Block, Span};
use lockstep::hazmat::mode::incremental::KeyedExecutor;
use lockstep::hazmat::share::lock;
use lockstep::hazmat::work::Pass;
use zeroize::{Zeroize, Zeroizing};

use crate::key::{ContextKey, Runner};
use crate::resources::Resources;
use crate::system::process::{self, PerProcess, Process};
use crate::system::stack::run_and_wipe;
use crate::system::thread;
use crate::trace::Way;

/// Bytes of a segment computed by CPUs: enough for several updates, and small enough for the cache.
const CPU_SEGMENT: usize = 16 << 10;

/// Bytes of a segment computed by a device: large enough to justify a kernel launch.
const DEVICE_SEGMENT: usize = 256 << 10;

/// Maximum number of segments of a context that are being computed or ready. The worker is woken when half of the segments have
/// been used. Because the maximum is large, the worker is rarely woken.
const DEPTH: u64 = 32;

/// Maximum number of contexts that use the worker at the same time. All other contexts compute their keystream inline. Together
/// with the constants above, this limit bounds the memory for segments.
const MAX_CONTEXTS: usize = 64;

/// Number of consecutive small updates after which keystream is computed ahead.
const MIN_RUN: u32 = 4;

/// A keystream segment, wiped on drop.
type Keystream = Zeroizing<Vec<u8>>;

/// The keystream workers of an instance of the provider. Each process has its own worker, whose thread starts on first use.
#[derive(Default)]
pub(crate) struct KeystreamPool(PerProcess<Arc<Worker>>);

/// The state that contexts and the worker thread share.
#[derive(Default)]
struct Worker {
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Arc<KeystreamJob>>,
    thread: Option<JoinHandle<()>>,
    closed: bool,
}

/// The keystream of one context, starting at a counter value.
struct KeystreamJob {
    /// Not shared with the context: a job may outlive its context, and a forked child process never drops a job of its parent. The key of
    /// the context is wiped when the context is freed.
    key: ContextKey,
    resources: Arc<Resources>,
    pass: Pass,
    /// The first counter. In GCM the first counter is secret if the IV does not have 12 bytes.
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
    /// Segments that have been used. Their memory is reused for new segments.
    spare: Vec<Keystream>,
    /// True if the job is in the worker's queue.
    queued: bool,
    /// True if no more segments are computed, because the context has moved to another position or a computation has
    /// failed.
    ended: bool,
}

impl KeystreamPool {
    /// Returns the worker of this process.
    fn worker(&self) -> &Arc<Worker> {
        self.0.get_or_make(Arc::default)
    }

    /// Ends the worker of this process. No context of this instance exists: see [`Common`](crate::cipher::Common).
    pub(crate) fn close(&self) {
        let worker = self.worker();
        let mut queue = lock(&worker.queue);
        queue.closed = true;
        // The jobs contain keys. If no context refers to a job, the job is freed here, which wipes its key.
        queue.jobs.clear();
        let thread = queue.thread.take();
        drop(queue);
        worker.wake.notify_all();
        let _ = thread.map(JoinHandle::join);
    }
}

impl Worker {
    /// The worker's loop: computes one segment of each queued job in turn.
    fn work(&self) {
        let mut queue = lock(&self.queue);
        while !queue.closed {
            let Some(job) = queue.jobs.pop_front() else {
                queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(queue);
            // The stack is wiped, because the counters of GCM may be secret, and because passes may leave round keys on the
            // stack.
            let again = run_and_wipe(true, || job.compute_next());
            queue = lock(&self.queue);
            if again && !queue.closed {
                queue.jobs.push_back(job);
            }
        }
    }

    /// Adds a job to the queue. Returns false if no thread can be started, or if memory cannot be allocated.
    fn enqueue(self: &Arc<Worker>, job: &Arc<KeystreamJob>) -> bool {
        let mut queue = lock(&self.queue);
        if queue.jobs.try_reserve(1).is_err() {
            return false;
        }
        if queue.thread.is_none() {
            let worker = Arc::clone(self);
            queue.thread = thread::spawn_without_signals("lockstep-ahead", move || worker.work());
        }
        if queue.thread.is_some() {
            queue.jobs.push_back(Arc::clone(job));
            self.wake.notify_one();
        }
        queue.thread.is_some()
    }
}

impl KeystreamJob {
    /// One step of the worker. Returns true if there may be more work.
    fn compute_next(&self) -> bool {
        let mut state = lock(&self.state);
        if state.ended || state.unclaimed >= state.needed + DEPTH {
            state.queued = false;
            return false;
        }
        drop(self.compute_claimed(state, true));
        self.made.notify_all();
        true
    }

    /// Claims and computes the next segment. The state is not locked during the computation.
    fn compute_claimed<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        planned: bool,
    ) -> MutexGuard<'s, State> {
        let number = state.unclaimed;
        state.unclaimed += 1;
        let spare = state.spare.pop();
        drop(state);
        let made = self.make(number, spare, planned);
        let mut state = lock(&self.state);
        match made {
            Some(keystream) if !state.ended => state.ready.push_back((number, keystream)),
            Some(_) => {}
            None => state.ended = true,
        }
        state
    }

    /// Computes a segment: through the planner if `planned` is true and the segment is large enough, otherwise inline. Returns
    /// `None` if an allocation or the device fails. Also returns `None` after a panic, because a thread that waits for the
    /// segment must be notified in every case. The computation changes only the segment, which a panic drops.
    fn make(&self, number: u64, spare: Option<Keystream>, planned: bool) -> Option<Keystream> {
        let compute = || {
            let mut keystream = spare.unwrap_or_default();
            keystream.clear();
            keystream.try_reserve_exact(self.segment).ok()?;
            keystream.resize(self.segment, 0);
            let blocks = u128::from(number) * (self.segment / 16) as u128;
            let mut counter = Zeroizing::new(counter_after(self.pass, &self.start, blocks));
            let data = Span::in_place(&mut keystream);
            if planned {
                self.key.with(&self.resources).run(self.pass, &mut counter, data).ok()?;
            } else {
                self.key.run_inline(self.pass, &mut counter, data);
            }
            Some(keystream)
        };
        catch_unwind(AssertUnwindSafe(compute)).ok()?
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
            state = match state.unclaimed < number + DEPTH {
                true => self.compute_claimed(state, false),
                false => self.made.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

/// The part of a context that uses keystream computed ahead.
pub(crate) struct KeystreamAhead {
    /// The pass of CTR: its counter has 128 or 32 bits.
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
    worker: Arc<Worker>,
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

    /// Applies CTR to whole blocks with keystream computed ahead, if more than [`MIN_RUN`] consecutive small updates have been
    /// made. Returns the part of the data that was not processed; the caller processes it inline, starting at `counter`. Copies
    /// of the counter may be left on the stack.
    pub(crate) fn apply<'d>(
        &mut self,
        keystream_pool: &KeystreamPool,
        key: Runner<'_>,
        counter: &mut Block,
        data: Span<'d>,
    ) -> Option<Span<'d>> {
        if *self.next != *counter {
            // The update belongs to another message, or to another position in the message.
            self.stop();
        }
        let bytes = data.len();
        *self.next = counter_after(self.pass, counter, bytes as u128 / 16);
        if self.member.is_none() {
            self.run += 1;
            if self.run > MIN_RUN {
                self.run = 0;
                // Creating the job copies the key, which may leave parts of the key on the stack.
                self.member = run_and_wipe(key.resources.leaves_keys(), || {
                    PoolMember::new(keystream_pool, key, self.pass, counter)
                });
            }
        }
        let Some(member) = &mut self.member else { return Some(data) };
        let rest = member.xor(data);
        let done = bytes - rest.len();
        *counter = counter_after(self.pass, counter, done as u128 / 16);
        if let (1.., Some(trace)) = (done, &key.resources.trace) {
            trace.count_way(Way::Ahead, done);
        }
        if rest.is_empty() {
            return None;
        }
        // A computation has failed, or this is a child process after a fork.
        self.member = None;
        Some(rest)
    }

    /// Ends the message: the keystream computed for it is dropped.
    pub(crate) fn stop(&mut self) {
        self.run = 0;
        self.next.zeroize();
        self.member = None;
    }
}

impl PoolMember {
    /// Creates a member for a context. Returns `None` if there is no worker, if too many contexts use it, or if memory cannot
    /// be allocated.
    fn new(keystream_pool: &KeystreamPool, key: Runner<'_>, pass: Pass, start: &Block) -> Option<PoolMember> {
        let worker = Arc::clone(keystream_pool.worker());
        // The pool, the worker's thread and each member own one reference.
        if Arc::strong_count(&worker) > MAX_CONTEXTS + 2 {
            return None;
        }
        // Reserve the full capacity now, so that later pushes do not allocate.
        let (mut ready, mut spare) = (VecDeque::new(), Vec::new());
        ready.try_reserve_exact(DEPTH as usize + 1).ok()?;
        spare.try_reserve_exact(DEPTH as usize + 1).ok()?;
        let state = State { unclaimed: 0, needed: 0, ready, spare, queued: true, ended: false };
        let is_for_device = key.resources.device_is_named && key.key.is_large(DEVICE_SEGMENT);
        let job = Arc::new(KeystreamJob {
            key: key.key.separate()?,
            resources: Arc::clone(key.resources),
            pass,
            start: Zeroizing::new(*start),
            segment: if is_for_device { DEVICE_SEGMENT } else { CPU_SEGMENT },
            state: Mutex::new(state),
            made: Condvar::new(),
        });
        let member = PoolMember { process: process::current(), worker, job, current: None, used: 0 };
        member.worker.enqueue(&member.job).then_some(member)
    }

    /// XORs data with keystream. If a segment cannot be computed, returns the part of the data that has not been processed.
    fn xor<'d>(&mut self, mut data: Span<'d>) -> Span<'d> {
        while !data.is_empty() {
            if self.current.is_none() && self.process == process::current() {
                (self.current, self.used) = (self.job.take(), 0);
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

    fn recycle(&self, keystream: Keystream) {
        if self.process != process::current() {
            return;
        }
        let mut state = lock(&self.job.state);
        state.spare.push(keystream);
        // The worker is woken only once per `DEPTH / 2` segments, because waking it takes longer than computing a segment.
        let idle = !state.queued && !state.ended && state.unclaimed <= state.needed + DEPTH / 2;
        state.queued |= idle;
        drop(state);
        if idle {
            self.worker.enqueue(&self.job);
        }
    }
}

impl Drop for PoolMember {
    fn drop(&mut self) {
        let state = if self.process == process::current() {
            Some(lock(&self.job.state))
        } else {
            std::mem::forget(Arc::clone(&self.job));
            // After a fork, a thread that does not exist in this process may hold the lock. Then the segments are not freed.
            self.job.state.try_lock().ok()
        };
        if let Some(mut state) = state {
            state.ended = true;
            // Free the segments now. The worker may reach the job much later.
            state.ready.clear();
            state.spare.clear();
        }
    }
}

#[cfg(test)]
mod tests;
