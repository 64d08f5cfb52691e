//! A thread that owns a context: the state of a driver that only one thread may use, such as a context of OpenGL.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::JoinHandle;

use lockstep_core::backend::DeviceId;
use lockstep_core::share;
use lockstep_core::{Error, Result};

/// Work for the thread. The error means that the work panicked, so the state of the context is unknown.
type Work<C> = Box<dyn FnOnce(&mut C) -> std::thread::Result<()> + Send>;

/// A context and the thread that owns it. Other threads send work, which runs in the order in which it was sent.
pub struct ContextThread<C> {
    device: DeviceId,
    /// The process that started the thread. A child process made by `fork` has a copy of this value, but not the thread.
    process: u32,
    /// The queue of the work, and the thread. `None` while the value is dropped.
    thread: Option<(Sender<Work<C>>, JoinHandle<()>)>,
}

/// A lock for drivers whose contexts must not be used at the same time.
pub struct Exclusive {
    lock: Mutex<()>,
    /// The process that uses the lock. In a child made by `fork`, the lock may be held by a thread that the child does not have.
    process: OnceLock<u32>,
}

/// A result that the thread computes.
pub struct Promise<T> {
    device: DeviceId,
    process: u32,
    place: Arc<Place<T>>,
}

/// The place of a result, which the thread fills. It contains `None` if the work panicked or was not done, and after the result has been
/// taken. Promises do not use `std::sync::mpsc`, because it adds 25 KB of code per type.
type Place<T> = OnceLock<Mutex<Option<T>>>;

/// The thread's handle on the place. Dropping the handle, with or without a result, marks the work as done.
struct Delivery<T>(Arc<Place<T>>);

impl Exclusive {
    /// A lock that no context uses yet.
    #[expect(clippy::new_without_default, reason = "for statics only")]
    pub const fn new() -> Exclusive {
        Exclusive { lock: Mutex::new(()), process: OnceLock::new() }
    }

    /// True if a parent of this process has used the lock.
    fn is_inherited(&self) -> bool {
        *self.process.get_or_init(std::process::id) != std::process::id()
    }
}

impl<T> Delivery<T> {
    fn new() -> (Delivery<T>, Arc<Place<T>>) {
        let place = Arc::new(Place::new());
        (Delivery(Arc::clone(&place)), place)
    }

    fn deliver(self, result: T) {
        let _ = self.0.set(Mutex::new(Some(result)));
    }
}

impl<T> Drop for Delivery<T> {
    fn drop(&mut self) {
        self.0.get_or_init(Mutex::default);
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
        let lock = move || exclusive.map(|exclusive| share::lock(&exclusive.lock));
        let (queue, work) = channel::<Work<C>>();
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
            for work in work {
                let outcome = {
                    let _alone = lock();
                    work(&mut context)
                };
                if outcome.is_err() {
                    // The driver may be in any state. Therefore the driver is not called again, not even to close the
                    // context. The work that is left in the queue is dropped with the queue.
                    return std::mem::forget(context);
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
        Ok(ContextThread { device, process, thread: Some((queue, thread)) })
    }

    /// Sends work to the thread, and does not wait for it.
    pub fn send<T: Send + 'static>(&self, work: impl FnOnce(&mut C) -> T + Send + 'static) -> Promise<T> {
        let (delivery, place) = Delivery::new();
        let work: Work<C> = Box::new(move |context| {
            // After a panic, `delivery` is dropped without a result, which `Promise::wait` reports as an error.
            catch_unwind(AssertUnwindSafe(|| work(context))).map(|value| delivery.deliver(value))
        });
        if let Some((queue, _)) = self.thread.as_ref().filter(|_| self.process == std::process::id()) {
            // If the thread has ended, the queue refuses the work. The work is dropped, and with it the delivery.
            let _ = queue.send(work);
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
        let Some((queue, thread)) = self.thread.take() else { return };
        if self.process != std::process::id() {
            // A child process made by `fork` does not have the thread, and a lock of the queue may be held for ever.
            return std::mem::forget(queue);
        }
        drop(queue);
        // A thread cannot join itself (work on the thread may drop the last reference to this value).
        if thread.thread().id() != std::thread::current().id() {
            let _ = thread.join();
        }
    }
}

impl<T> Promise<T> {
    /// True if [`Promise::wait`] would not block.
    pub fn is_ready(&self) -> bool {
        self.process != std::process::id() || self.place.get().is_some()
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
        Ok(share::lock(self.place.wait()))
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
