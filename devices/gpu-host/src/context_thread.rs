//! A thread that owns a context: the state of a driver that only one thread may use, such as a context of OpenGL.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use lockstep_core::backend::DeviceId;
use lockstep_core::{Error, Result};

/// Work for the thread. The error means that the work panicked, so the state of the context is unknown.
type Work<C> = Box<dyn FnOnce(&mut C) -> std::thread::Result<()> + Send>;

/// A context and the thread that owns it. Other threads send work, which runs in the order in which it was sent.
pub struct ContextThread<C> {
    device: DeviceId,
    /// The process that started the thread. A child process made by `fork` has a copy of this value, but not the thread.
    process: u32,
    queue: Arc<Queue<C>>,
    thread: Option<JoinHandle<()>>,
}

/// A lock for drivers whose contexts must not be used at the same time.
pub struct Exclusive {
    lock: Mutex<()>,
    /// The process that uses the lock. In a child made by `fork`, the lock may be held by a thread that the child does not have.
    process: OnceLock<u32>,
}

/// The work that the thread has not begun. Neither the queue nor the promises use `std::sync::mpsc`, because it adds 25 KB
/// of code per type.
struct Queue<C> {
    state: Mutex<QueueState<C>>,
    changed: Condvar,
}

struct QueueState<C> {
    work: VecDeque<Work<C>>,
    /// True if the queue accepts no more work.
    is_closed: bool,
}

/// A result that the thread computes.
pub struct Promise<T> {
    device: DeviceId,
    process: u32,
    place: Arc<Place<T>>,
}

/// Where the thread puts a result.
struct Place<T> {
    /// None if the work panicked or was not done, and once the result has been taken.
    result: Mutex<Option<T>>,
    is_done: OnceLock<()>,
}

/// The thread's handle on the place. Dropping the handle, with or without a result, marks the work as done.
struct Delivery<T>(Arc<Place<T>>);

impl Exclusive {
    /// A lock that no context uses.
    #[expect(clippy::new_without_default, reason = "for statics only")]
    pub const fn new() -> Exclusive {
        Exclusive { lock: Mutex::new(()), process: OnceLock::new() }
    }

    /// True if a parent of this process has used the lock.
    fn is_inherited(&self) -> bool {
        *self.process.get_or_init(std::process::id) != std::process::id()
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> Queue<C> {
    fn lock(&self) -> MutexGuard<'_, QueueState<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds work; drops it if the queue is closed.
    fn push(&self, work: Work<C>) {
        let mut state = self.lock();
        if state.is_closed {
            // The lock is released before the work is dropped, because dropping the work may run code of the caller.
            drop(state);
            return drop(work);
        }
        state.work.push_back(work);
        drop(state);
        self.changed.notify_one();
    }

    /// Waits for work and takes it. None if the queue is closed and all work has been taken.
    fn pop(&self) -> Option<Work<C>> {
        let waits = |state: &mut QueueState<C>| state.work.is_empty() && !state.is_closed;
        let state = self.changed.wait_while(self.lock(), waits);
        state.unwrap_or_else(PoisonError::into_inner).work.pop_front()
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Closes the queue and drops the work in it.
    fn abandon(&self) {
        self.close();
        let work = std::mem::take(&mut self.lock().work);
        // The lock has been released here, because dropping work may run code of the caller.
        drop(work);
    }
}

impl<T> Delivery<T> {
    fn new() -> (Delivery<T>, Arc<Place<T>>) {
        let place = Arc::new(Place { result: Mutex::new(None), is_done: OnceLock::new() });
        (Delivery(Arc::clone(&place)), place)
    }

    fn deliver(self, result: T) {
        *self.0.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }
}

impl<T> Drop for Delivery<T> {
    fn drop(&mut self) {
        let _ = self.0.is_done.set(());
    }
}

impl<C: 'static> ContextThread<C> {
    /// Starts a thread that opens a context, and waits until it is open. With `exclusive`, the thread calls the driver only
    /// while it holds this lock, for drivers whose contexts must not be used at the same time.
    ///
    /// # Errors
    /// The errors of `open`; [`Error::DeviceFailed`] if `open` panics, if the system has no thread left, or if the process is
    /// a child, made by `fork`, of a process that has used the lock.
    pub fn start(
        device: DeviceId,
        exclusive: Option<&'static Exclusive>,
        open: impl FnOnce() -> Result<C> + Send + 'static,
    ) -> Result<Self> {
        if exclusive.is_some_and(Exclusive::is_inherited) {
            let reason = "the process that this one was forked from uses its driver: start a new program, or use another device";
            return Err(failed(device, reason));
        }
        let lock = move || exclusive.map(Exclusive::lock);
        let state = QueueState { work: VecDeque::new(), is_closed: false };
        let queue = Arc::new(Queue { state: Mutex::new(state), changed: Condvar::new() });
        let of_thread = Arc::clone(&queue);
        let (opened, place) = Delivery::new();
        let body = move || {
            let context = {
                let _alone = lock();
                catch_unwind(AssertUnwindSafe(open))
                    .unwrap_or_else(|panic| Err(failed(device, &describe(&*panic))))
            };
            let mut context = match context {
                Ok(context) => context,
                Err(error) => return opened.deliver(Err(error)),
            };
            opened.deliver(Ok(()));
            while let Some(work) = of_thread.pop() {
                let outcome = {
                    let _alone = lock();
                    work(&mut context)
                };
                if outcome.is_err() {
                    // The driver may be in any state. Therefore the driver is not called again, not even to close the
                    // context.
                    std::mem::forget(context);
                    return of_thread.abandon();
                }
            }
            let _alone = lock();
            drop(context);
        };
        let thread = std::thread::Builder::new()
            .name(format!("lockstep-{}", device.backend))
            .spawn(body)
            .map_err(|error| failed(device, &format!("no thread for its context: {error}")))?;
        let process = std::process::id();
        Promise { device, process, place }.wait()??;
        Ok(ContextThread { device, process, queue, thread: Some(thread) })
    }

    /// Sends work to the thread, and does not wait for it.
    pub fn send<T: Send + 'static>(&self, work: impl FnOnce(&mut C) -> T + Send + 'static) -> Promise<T> {
        let (delivery, place) = Delivery::new();
        let work: Work<C> = Box::new(move |context| {
            // After a panic, `delivery` is dropped without a result, which `Promise::wait` reports as an error.
            catch_unwind(AssertUnwindSafe(|| work(context))).map(|value| delivery.deliver(value))
        });
        if self.process == std::process::id() {
            // If the thread has ended, the work is dropped, and with it the delivery.
            self.queue.push(work);
        }
        Promise { device: self.device, process: self.process, place }
    }

    /// Runs work on the thread and waits for its result.
    ///
    /// # Errors
    /// The errors of the work and of [`Promise::wait`].
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut C) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.send(work).wait()?
    }
}

impl<C> Drop for ContextThread<C> {
    /// Waits until all work is done and the context is closed.
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.queue.close();
        }
        let Some(thread) = self.thread.take() else { return };
        // The thread is not joined in two cases: a child process made by `fork` does not have the thread, and a thread
        // cannot join itself (work on the thread may drop the last reference to this value).
        if self.process == std::process::id() && thread.thread().id() != std::thread::current().id() {
            let _ = thread.join();
        }
    }
}

impl<T> Promise<T> {
    /// True if [`Promise::wait`] would not block.
    pub fn is_ready(&self) -> bool {
        self.process != std::process::id() || self.place.is_done.get().is_some()
    }

    /// Waits for the result and takes it.
    ///
    /// # Errors
    /// [`Error::DeviceFailed`] if this or earlier work panicked, or if another process opened the context and this
    /// process is a child of it, made by `fork`.
    pub fn wait(self) -> Result<T> {
        let result = self.place()?.take();
        result.ok_or_else(|| self.failed())
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// The errors of [`Promise::wait`].
    pub fn result(&self) -> Result<T>
    where
        T: Clone,
    {
        self.place()?.clone().ok_or_else(|| self.failed())
    }

    /// Waits until the work is done.
    fn place(&self) -> Result<MutexGuard<'_, Option<T>>> {
        if self.process != std::process::id() {
            let reason = "it was opened before the process was forked: open it after the fork";
            return Err(failed(self.device, reason));
        }
        self.place.is_done.wait();
        Ok(self.place.result.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn failed(&self) -> Error {
        failed(self.device, "its driver failed: restart the program")
    }
}

fn failed(device: DeviceId, reason: &str) -> Error {
    Error::DeviceFailed { device, reason: reason.to_owned() }
}

/// The message of a panic.
fn describe(panic: &(dyn Any + Send)) -> String {
    let message = panic.downcast_ref::<&str>().map(|&text| text.to_owned());
    message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "its driver failed".into())
}

#[cfg(test)]
mod tests;
