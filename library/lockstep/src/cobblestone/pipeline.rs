//! Parallel workers with ordered input and output: pieces are read and written in order, and processed in parallel.
//!
//! Each worker has one slot and repeats these steps: read the next piece (exclusively), process it, wait until all
//! earlier pieces are written, write it (exclusively). Therefore the number of workers limits the memory. The output
//! and the error do not depend on the number of workers: the run returns the error of the first piece that fails, and
//! writes all pieces before this piece.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

use lockstep_core::share::has_room_for_a_thread;

use crate::error::Result;

/// The steps for a piece.
pub(super) trait Stage: Sync {
    /// The input of pieces.
    type Source: Send;
    /// The buffer of a worker.
    type Slot: Send;
    /// The output of pieces.
    type Sink: Send;

    /// Creates a slot.
    fn slot(&self) -> Self::Slot;
    /// Reads the next piece; called exclusively and in order.
    fn read(&self, source: &mut Self::Source, slot: &mut Self::Slot) -> Result<ReadState>;
    /// Processes a piece; called in parallel.
    fn process(&self, slot: &mut Self::Slot) -> Result<()>;
    /// Writes a piece; called exclusively and in order.
    fn write(&self, sink: &mut Self::Sink, slot: &mut Self::Slot) -> Result<()>;
}

/// Whether more pieces follow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadState {
    More,
    Last,
}

/// Processes all pieces. The calling thread is one of the workers. With one worker, or with one piece, it is the only
/// worker.
pub(super) fn run<S: Stage>(
    stage: &S,
    workers: usize,
    source: &mut S::Source,
    sink: &mut S::Sink,
) -> Result<()> {
    let mut slot = stage.slot();
    loop {
        let state = stage.read(source, &mut slot)?;
        if state == ReadState::More && workers > 1 {
            // The piece in the slot becomes number 0 of the parallel run.
            break;
        }
        stage.process(&mut slot)?;
        stage.write(sink, &mut slot)?;
        if state == ReadState::Last {
            return Ok(());
        }
    }
    let shared = Shared {
        stage,
        input: Mutex::new(Input { source, next: 1, ended: false }),
        output: Mutex::new(Output { sink, turn: 0, outcome: Ok(()) }),
        turns: (0..workers).map(|_| Condvar::new()).collect(),
        stopped: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            let work = || shared.worker(stage.slot(), None);
            // If the system cannot start more threads, the work continues with fewer.
            if !has_room_for_a_thread() || std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        shared.worker(slot, Some(0));
    });
    shared.output.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).outcome
}

struct Shared<'a, S: Stage> {
    stage: &'a S,
    input: Mutex<Input<'a, S>>,
    output: Mutex<Output<'a, S>>,
    /// The worker that waits to write piece `k` waits for the condition variable `k % workers`. At most `workers`
    /// pieces are in flight, so each waiting worker has a variable of its own.
    turns: Vec<Condvar>,
    stopped: AtomicBool,
}

struct Input<'a, S: Stage> {
    source: &'a mut S::Source,
    next: u64,
    ended: bool,
}

struct Output<'a, S: Stage> {
    sink: &'a mut S::Sink,
    /// Number of the next piece to write.
    turn: u64,
    outcome: Result<()>,
}

impl<S: Stage> Shared<'_, S> {
    /// The loop of a worker. `first` is the number of a piece that is already in the slot.
    fn worker(&self, mut slot: S::Slot, first: Option<u64>) {
        let _stop = StopOnPanic(self);
        let mut piece = first.map(|number| (number, Ok(())));
        while let Some((number, state)) = piece.or_else(|| self.read(&mut slot)) {
            let done = state.and_then(|()| self.stage.process(&mut slot));
            if !self.write(number, &mut slot, done) {
                return;
            }
            piece = None;
        }
    }

    /// Reads the next piece and returns its number. A piece that cannot be read is numbered too, so that its error is
    /// reported in order.
    fn read(&self, slot: &mut S::Slot) -> Option<(u64, Result<()>)> {
        let mut input = lock(&self.input);
        if input.ended || self.stopped.load(Ordering::Acquire) {
            return None;
        }
        // The flag remains set if the source panics.
        input.ended = true;
        let state = self.stage.read(input.source, slot);
        input.ended = !matches!(state, Ok(ReadState::More));
        let number = input.next;
        input.next += 1;
        Some((number, state.map(|_| ())))
    }

    /// Waits until all earlier pieces are written, and writes the piece. Returns false if the run has ended.
    fn write(&self, number: u64, slot: &mut S::Slot, done: Result<()>) -> bool {
        let place = |number: u64| &self.turns[(number % self.turns.len() as u64) as usize];
        let mut output = lock(&self.output);
        while output.turn != number {
            if self.stopped.load(Ordering::Acquire) {
                return false;
            }
            output = place(number).wait(output).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        if self.stopped.load(Ordering::Acquire) {
            return false;
        }
        if let Err(error) = done.and_then(|()| self.stage.write(output.sink, slot)) {
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
        // A worker that has read the flag before this store holds the lock until it waits. After the lock has been
        // acquired here, each such worker is waiting and will be notified.
        drop(lock(&self.output));
        self.turns.iter().for_each(Condvar::notify_all);
    }
}

/// Stops the run if a reader, a writer or a callback panics. Otherwise other workers would wait forever.
struct StopOnPanic<'a, 'b, S: Stage>(&'a Shared<'b, S>);

impl<S: Stage> Drop for StopOnPanic<'_, '_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

/// Locks a mutex, even if it is poisoned: the state remains consistent if a thread panics while it holds the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
