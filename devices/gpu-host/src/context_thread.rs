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
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::thread::ThreadId;

    use lockstep_core::backend::Unit;

    use super::*;

    const DEVICE: DeviceId = DeviceId { backend: "test", unit: Unit::Only };

    /// A context that checks that only its own thread uses it, and that records when it is closed.
    struct Context {
        owner: ThreadId,
        calls: usize,
        closed: Arc<AtomicBool>,
    }

    impl Context {
        fn call(&mut self) -> usize {
            assert_eq!(std::thread::current().id(), self.owner);
            self.calls += 1;
            self.calls
        }
    }

    impl Drop for Context {
        fn drop(&mut self) {
            assert_eq!(std::thread::current().id(), self.owner);
            self.closed.store(true, Ordering::Release);
        }
    }

    fn start() -> (ContextThread<Context>, Arc<AtomicBool>) {
        let closed = Arc::new(AtomicBool::new(false));
        let for_context = Arc::clone(&closed);
        let open = || Ok(Context { owner: std::thread::current().id(), calls: 0, closed: for_context });
        (ContextThread::start(DEVICE, None, open).unwrap(), closed)
    }

    #[test]
    fn one_thread_does_the_work_of_all() {
        let (thread, closed) = start();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    (0..100).for_each(|_| assert!(thread.run(|context| Ok(context.call())).unwrap() > 0))
                });
            }
        });
        assert_eq!(thread.run(|context| Ok(context.call())).unwrap(), 801);
        drop(thread);
        assert!(closed.load(Ordering::Acquire), "the context is closed by its thread");
    }

    #[test]
    fn contexts_with_a_lock_are_used_one_at_a_time() {
        static LOCK: Exclusive = Exclusive::new();
        static IN_USE: AtomicBool = AtomicBool::new(false);
        // Errors are counted. A panic would not be noticed, because the threads of contexts may end after this test.
        static AT_ONCE: AtomicUsize = AtomicUsize::new(0);
        let use_it = || {
            if IN_USE.swap(true, Ordering::AcqRel) {
                AT_ONCE.fetch_add(1, Ordering::AcqRel);
            }
            std::thread::yield_now();
            IN_USE.store(false, Ordering::Release);
        };
        struct Checked<F: Fn()>(F);
        impl<F: Fn()> Drop for Checked<F> {
            fn drop(&mut self) {
                (self.0)();
            }
        }
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let open = move || {
                        use_it();
                        Ok(Checked(use_it))
                    };
                    let thread = ContextThread::start(DEVICE, Some(&LOCK), open).unwrap();
                    let promises: Vec<_> = (0..1000).map(|_| thread.send(|context| (context.0)())).collect();
                    promises.into_iter().for_each(|promise| promise.wait().unwrap());
                });
            }
        });
        assert_eq!(AT_ONCE.load(Ordering::Acquire), 0, "two contexts were in use");
    }

    #[test]
    fn a_lock_of_a_parent_process_is_not_waited_for() {
        static LOCK: Exclusive = Exclusive::new();
        // This is the state that a child process finds: another process has used the lock, and a thread that does not exist
        // holds it.
        LOCK.process.set(std::process::id().wrapping_add(1)).unwrap();
        let _held = LOCK.lock();
        let opened = ContextThread::<()>::start(DEVICE, Some(&LOCK), || Ok(()));
        assert!(opened.is_err_and(|error| error.to_string().contains("forked from")));
    }

    #[test]
    fn work_that_is_not_done_may_use_the_thread_when_it_is_dropped() {
        struct Sends(Arc<ContextThread<Context>>);
        impl Drop for Sends {
            fn drop(&mut self) {
                assert!(self.0.run(|context| Ok(context.call())).is_err());
            }
        }
        let (thread, _) = start();
        let thread = Arc::new(thread);
        let (go, gate) = channel::<()>();
        let panics = thread.send(move |_| -> usize {
            gate.recv().unwrap();
            panic!("the driver")
        });
        let sends = Sends(Arc::clone(&thread));
        let not_done = thread.send(move |_| drop(sends));
        go.send(()).unwrap();
        assert!(panics.wait().is_err() && not_done.wait().is_err());
    }

    #[test]
    fn work_is_done_in_order_and_results_arrive_later() {
        let (thread, _) = start();
        let (go, gate) = channel::<()>();
        let first = thread.send(move |context| {
            gate.recv().unwrap();
            context.call()
        });
        let second = thread.send(|context| context.call());
        assert!(!first.is_ready() && !second.is_ready());
        go.send(()).unwrap();
        assert_eq!(second.wait().unwrap(), 2);
        assert!(first.is_ready() && first.is_ready());
        assert_eq!(first.wait().unwrap(), 1);
    }

    #[test]
    fn work_that_was_sent_is_done_before_the_end() {
        let (thread, closed) = start();
        let promises: Vec<_> = (0..100).map(|_| thread.send(|context| context.call())).collect();
        drop(thread);
        assert!(closed.load(Ordering::Acquire));
        let numbers: Vec<usize> = promises.into_iter().map(|promise| promise.wait().unwrap()).collect();
        assert_eq!(numbers, (1..=100).collect::<Vec<_>>());
    }

    #[test]
    fn a_failure_to_open_is_an_error() {
        let error = failed(DEVICE, "on demand");
        let result = error.clone();
        assert_eq!(ContextThread::<()>::start(DEVICE, None, || Err(result)).err(), Some(error));
        let error = ContextThread::<()>::start(DEVICE, None, || panic!("no driver")).err();
        assert_eq!(error, Some(failed(DEVICE, "no driver")));
    }

    #[test]
    fn after_a_panic_all_work_fails_and_the_driver_is_not_called() {
        let (thread, closed) = start();
        assert_eq!(thread.run(|context| Ok(context.call())).unwrap(), 1);
        let panics = thread.send(|_| -> usize { panic!("the driver") });
        let after = thread.send(|context| context.call());
        assert!(matches!(panics.wait(), Err(Error::DeviceFailed { .. })));
        assert!(matches!(after.wait(), Err(Error::DeviceFailed { .. })));
        assert!(matches!(thread.run(|context| Ok(context.call())), Err(Error::DeviceFailed { .. })));
        drop(thread);
        assert!(!closed.load(Ordering::Acquire));
    }
}
