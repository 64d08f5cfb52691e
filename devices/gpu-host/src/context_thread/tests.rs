use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread::ThreadId;

use lockstep_core::backend::Unit;

use super::*;

const DEVICE: DeviceId = DeviceId { backend: "test", unit: Unit::Only };

/// A context for tests. It checks that only its owner thread calls it, and records when it is closed.
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
    // The test counts errors and does not panic at once: a panic in the thread of a context could come after the end of the test and would
    // then not be noticed.
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
    // A child process finds the lock in this state: it belongs to another process, and a thread that does not exist holds it.
    LOCK.process.set(std::process::id().wrapping_add(1)).unwrap();
    let _held = share::lock(&LOCK.lock);
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
