//! Many workers, one order: pieces are taken and put one after the other, and worked on side by side.
//!
//! Each worker has one slot and goes round: take the next piece, alone; work on it; wait for its turn; put it, alone.
//! So memory is bounded by the number of workers, and what is put, and which error is reported, is the same for any
//! number of them: the error of the first piece that fails, after all pieces before it have been put.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

use lockstep_core::share::has_room_for_a_thread;

use crate::error::Result;

/// What is done with a piece.
pub(super) trait Stage: Sync {
    /// Where pieces come from.
    type Source: Send;
    /// What a worker holds a piece in.
    type Slot: Send;
    /// Where pieces go.
    type Sink: Send;

    /// A new slot.
    fn slot(&self) -> Self::Slot;
    /// Takes the next piece; alone and in order.
    fn take(&self, source: &mut Self::Source, slot: &mut Self::Slot) -> Result<Taken>;
    /// Works on it; beside others.
    fn work(&self, slot: &mut Self::Slot) -> Result<()>;
    /// Puts it; alone and in order.
    fn put(&self, sink: &mut Self::Sink, slot: &mut Self::Slot) -> Result<()>;
}

/// Whether pieces follow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    More,
    Last,
}

/// Runs all pieces through. The calling thread is one of the workers; with one worker, or one piece, it is the only one.
pub(super) fn run<S: Stage>(
    stage: &S,
    workers: usize,
    source: &mut S::Source,
    sink: &mut S::Sink,
) -> Result<()> {
    let mut slot = stage.slot();
    loop {
        let taken = stage.take(source, &mut slot)?;
        if taken == Taken::More && workers > 1 {
            // The piece in the slot is number 0 of the parallel run.
            break;
        }
        stage.work(&mut slot)?;
        stage.put(sink, &mut slot)?;
        if taken == Taken::Last {
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
            // Too many threads for this system: fewer do it as well.
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
    /// Who waits to put piece `k` waits here at `k % workers`: no more than that many are under way.
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
    /// The piece that is put next.
    turn: u64,
    outcome: Result<()>,
}

impl<S: Stage> Shared<'_, S> {
    /// Goes round until there is no more to do. `begun` is the number of a piece that is in the slot already.
    fn worker(&self, mut slot: S::Slot, begun: Option<u64>) {
        let _stop = StopOnPanic(self);
        let mut piece = begun.map(|number| (number, Ok(())));
        while let Some((number, taken)) = piece.or_else(|| self.take(&mut slot)) {
            let done = taken.and_then(|()| self.stage.work(&mut slot));
            if !self.put(number, &mut slot, done) {
                return;
            }
            piece = None;
        }
    }

    /// The next piece, by its number. One that could not be read is a piece too: its error waits for its turn.
    fn take(&self, slot: &mut S::Slot) -> Option<(u64, Result<()>)> {
        let mut input = lock(&self.input);
        if input.ended || self.stopped.load(Ordering::Acquire) {
            return None;
        }
        // Stays if the source panics.
        input.ended = true;
        let taken = self.stage.take(input.source, slot);
        input.ended = !matches!(taken, Ok(Taken::More));
        let number = input.next;
        input.next += 1;
        Some((number, taken.map(|_| ())))
    }

    /// Waits for the piece's turn and puts it. False if all is over.
    fn put(&self, number: u64, slot: &mut S::Slot, done: Result<()>) -> bool {
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
        if let Err(error) = done.and_then(|()| self.stage.put(output.sink, slot)) {
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
        // Whoever looked before this is waiting by now, or holds the lock until it does.
        drop(lock(&self.output));
        self.turns.iter().for_each(Condvar::notify_all);
    }
}

/// A panic in a reader, a writer or a callback must not leave others waiting for their turn.
struct StopOnPanic<'a, 'b, S: Stage>(&'a Shared<'b, S>);

impl<S: Stage> Drop for StopOnPanic<'_, '_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

/// The states behind the locks stay meaningful if a holder panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
