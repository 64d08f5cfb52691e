//! Parallel workers with ordered input and output: pieces are read and written in order, and processed in parallel.
//!
//! Each worker has one slot and repeats these steps: read the next piece (exclusively), process it, wait until all
//! earlier pieces are written, write it (exclusively). Therefore the number of workers limits the memory. The output
//! and the error do not depend on the number of workers: the run returns the error of the first piece that fails, and
//! writes all pieces before this piece.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use lockstep_core::share::{at_once, lock};

use super::chunks::Piece;
use super::format::ENCRYPTED_CHUNK;
use super::options::Options;
use crate::engine::Engine;
use crate::error::Result;

/// Maximum number of workers. More workers would only wait, since pieces are written one after the other.
const MAX_WORKERS: usize = 256;
/// Maximum total size of the pieces of all workers in bytes.
const MEMORY: usize = 32 << 20;
/// Number of chunks in a piece, unless the pieces of all workers would exceed [`MEMORY`]. A piece of this size makes
/// the cost of system calls small and still fits in the cache. The CPU backend does not divide a piece of this size
/// among its own threads.
const PIECE_CHUNKS: usize = 32;

/// The workers of a run.
pub(super) struct Workers<'a> {
    count: usize,
    /// Number of chunks in a piece.
    chunks: usize,
    options: Options<'a>,
}

impl<'a> Workers<'a> {
    /// Chooses the number of workers for a message or for a part of a message. `chunks` is the number of chunks, if it is known.
    pub(super) fn new(engine: &Engine, options: Options<'a>, chunks: Option<u64>) -> Workers<'a> {
        let threads = engine.threads();
        let count = options.max_threads.map_or(threads, |most| most.clamp(1, threads)).min(MAX_WORKERS);
        Workers { count, chunks: piece_chunks(count, chunks), options }
    }
}

/// The number of chunks in a piece.
fn piece_chunks(workers: usize, chunks: Option<u64>) -> usize {
    let chunks = chunks.map_or(usize::MAX, |chunks| usize::try_from(chunks).unwrap_or(usize::MAX));
    chunks.min(PIECE_CHUNKS).min(MEMORY / ENCRYPTED_CHUNK / workers).max(1)
}

/// The slot of a worker: a piece, and a value by which one step passes data about the piece to the next steps.
pub(super) type Slot<X> = (Piece, X);

/// Processes all pieces. `read` and `write` are called exclusively and in order, `process` in parallel. `read` returns true for the
/// last piece. The calling thread is one of the workers.
///
/// # Errors
/// Those of the steps, and [`Error::Interrupted`](crate::Error::Interrupted).
pub(super) fn run<X: Default + Send>(
    workers: Workers<'_>,
    mut read: impl FnMut(&mut Slot<X>) -> Result<bool> + Send,
    process: impl Fn(&mut Slot<X>) -> Result<()> + Sync,
    mut write: impl FnMut(&mut Slot<X>) -> Result<()> + Send,
) -> Result<()> {
    let new_slot = || (Piece::new(workers.chunks), X::default());
    let mut read = |slot: &mut Slot<X>| {
        workers.options.check_interrupt()?;
        read(slot)
    };
    // The first piece has the number 0. If it is the only piece, the calling thread processes it without other workers.
    let mut slot = new_slot();
    if read(&mut slot)? {
        process(&mut slot)?;
        return write(&mut slot);
    }
    let shared = Shared {
        process: &process,
        input: Mutex::new(Input { read: &mut read, next: 1, ended: false }),
        output: Mutex::new(Output { write: &mut write, turn: 0, outcome: Ok(()) }),
        turns: (0..workers.count).map(|_| Condvar::new()).collect(),
        stopped: AtomicBool::new(false),
    };
    // The worker that holds piece 0 is the first in the list, so that it runs even if no other thread starts: no worker can write
    // before piece 0 is written.
    let slots = std::iter::once(Some(slot)).chain((1..workers.count).map(|_| None));
    at_once(slots.collect(), |first| match first {
        Some(slot) => shared.worker(slot, Some(0)),
        // If not all threads could be started, one thread runs several workers, one after the other. A worker that starts after the
        // end of the run has no work.
        None if shared.has_ended(&lock(&shared.input)) => {}
        None => shared.worker(new_slot(), None),
    });
    shared.output.into_inner().unwrap_or_else(PoisonError::into_inner).outcome
}

struct Shared<'a, X> {
    process: &'a (dyn Fn(&mut Slot<X>) -> Result<()> + Sync),
    input: Mutex<Input<'a, X>>,
    output: Mutex<Output<'a, X>>,
    /// The worker that waits to write piece `k` waits for the condition variable `k % workers`. At most `workers`
    /// pieces are in flight, so each waiting worker has a variable of its own.
    turns: Vec<Condvar>,
    stopped: AtomicBool,
}

struct Input<'a, X> {
    read: &'a mut (dyn FnMut(&mut Slot<X>) -> Result<bool> + Send),
    next: u64,
    ended: bool,
}

struct Output<'a, X> {
    write: &'a mut (dyn FnMut(&mut Slot<X>) -> Result<()> + Send),
    /// Number of the next piece to write.
    turn: u64,
    outcome: Result<()>,
}

impl<X> Shared<'_, X> {
    /// The loop of a worker. `first` is the number of a piece that is already in the slot.
    fn worker(&self, mut slot: Slot<X>, first: Option<u64>) {
        let _stop = StopOnPanic(self);
        let mut piece = first.map(|number| (number, Ok(())));
        while let Some((number, state)) = piece.take().or_else(|| self.read(&mut slot)) {
            let done = state.and_then(|()| (self.process)(&mut slot));
            if !self.write(number, &mut slot, done) {
                return;
            }
        }
    }

    /// True if no more pieces are read.
    fn has_ended(&self, input: &Input<'_, X>) -> bool {
        input.ended || self.stopped.load(Ordering::Acquire)
    }

    /// Reads the next piece and returns its number. A piece that cannot be read is numbered too, so that its error is
    /// reported in order.
    fn read(&self, slot: &mut Slot<X>) -> Option<(u64, Result<()>)> {
        let mut input = lock(&self.input);
        if self.has_ended(&input) {
            return None;
        }
        // The flag is set before the call, so that it remains set if `read` panics.
        input.ended = true;
        let state = (input.read)(slot);
        input.ended = !matches!(state, Ok(false));
        let number = input.next;
        input.next += 1;
        Some((number, state.map(|_| ())))
    }

    /// Waits until all earlier pieces are written, and writes the piece. Returns false if the run has ended.
    fn write(&self, number: u64, slot: &mut Slot<X>, done: Result<()>) -> bool {
        let place = |number: u64| &self.turns[(number % self.turns.len() as u64) as usize];
        let is_stopped = || self.stopped.load(Ordering::Acquire);
        let waits = |output: &mut Output<'_, X>| output.turn != number && !is_stopped();
        let output = place(number).wait_while(lock(&self.output), waits);
        let mut output = output.unwrap_or_else(PoisonError::into_inner);
        // A poisoned lock ends the wait early.
        if is_stopped() || output.turn != number {
            return false;
        }
        if let Err(error) = done.and_then(|()| (output.write)(slot)) {
            output.outcome = Err(error);
            drop(output);
            self.stop();
            return false;
        }
        output.turn += 1;
        let next = output.turn;
        drop(output);
        place(next).notify_one();
        true
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        // A worker that has read `stopped` before this store keeps the lock of the output until it waits. After this thread has
        // acquired the lock, each of these workers is waiting, so the notification reaches it.
        drop(lock(&self.output));
        self.turns.iter().for_each(Condvar::notify_all);
    }
}

/// Stops the run if a step panics. Otherwise other workers would wait forever.
struct StopOnPanic<'a, 'b, X>(&'a Shared<'b, X>);

impl<X> Drop for StopOnPanic<'_, '_, X> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

#[cfg(test)]
mod tests;
