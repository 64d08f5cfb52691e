//! Forks: what one process has opened is not its children's.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Once, OnceLock};

/// Forks on the way from the process that loaded this module to the present one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// A process, told from its parents and children. Its number alone would not do: the first process of a container has the
/// same one as that of the container around it may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Process {
    number: u32,
    forks: u32,
}

impl Process {
    /// The present one.
    pub(crate) fn current() -> Process {
        Process { number: std::process::id(), forks: FORKS.load(Ordering::Relaxed) }
    }
}

/// Has forks counted from now on.
pub(super) fn count_forks() {
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the handler stays in memory, as this module is never unloaded (`-z nodelete`), and does nothing but an
        // atomic addition. Should it not be registered, numbers of processes still tell almost all forks.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// Has something done when the process ends in the ordinary way; once, however often it is asked for.
pub(crate) fn at_exit(body: fn()) {
    static BODY: OnceLock<fn()> = OnceLock::new();
    extern "C" fn run() {
        if let Some(body) = BODY.get() {
            // A panic at the end of the process has nobody to be told to.
            let _ = std::panic::catch_unwind(body);
        }
    }
    static REGISTERED: Once = Once::new();
    let _ = BODY.set(body);
    REGISTERED.call_once(|| {
        // SAFETY: the handler stays in memory, as this module is never unloaded.
        unsafe { libc::atexit(run) };
    });
}

/// True in set-uid programs and their like.
pub(super) fn has_more_rights_than_its_user() -> bool {
    // SAFETY: these read what the kernel keeps of the process itself.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    // SAFETY: as above.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    return unsafe { libc::getuid() != libc::geteuid() || libc::getgid() != libc::getegid() };
}

/// Something that each process makes for itself when it needs it.
///
/// A list that only grows, for processes are told apart by what they find in it, and without any lock: a fork in the midst
/// of anything finds it whole. (A `OnceLock` would do but for the moment in which it is being set.)
pub(crate) struct PerProcess<T> {
    newest: AtomicPtr<Node<T>>,
}

struct Node<T> {
    process: Process,
    value: T,
    older: *mut Node<T>,
}

// SAFETY: values are reached by shared reference from any thread, and dropped by whichever drops the list.
unsafe impl<T: Send + Sync> Send for PerProcess<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for PerProcess<T> {}

impl<T> PerProcess<T> {
    pub(crate) fn new() -> Self {
        PerProcess { newest: AtomicPtr::new(null_mut()) }
    }

    /// The one of this process, if it has been made.
    pub(crate) fn get(&self) -> Option<&T> {
        let current = Process::current();
        let mut next = self.newest.load(Ordering::Acquire);
        // SAFETY: nodes are whole when they become reachable, and live until the list is dropped.
        while let Some(node) = unsafe { next.as_ref() } {
            if node.process == current {
                return Some(&node.value);
            }
            next = node.older;
        }
        None
    }

    /// The one of this process, made if it has not been. If two threads make one at a time, `spare` gets the second.
    pub(crate) fn get_or_make<E>(
        &self,
        make: impl FnOnce() -> Result<T, E>,
        spare: impl FnOnce(T),
    ) -> Result<&T, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let process = Process::current();
        let node = Box::into_raw(Box::new(Node { process, value: make()?, older: null_mut() }));
        loop {
            let newest = self.newest.load(Ordering::Acquire);
            if let Some(value) = self.get() {
                // SAFETY: the node is ours alone still.
                spare(unsafe { Box::from_raw(node) }.value);
                return Ok(value);
            }
            // SAFETY: as above; it becomes everybody's by the exchange, if nothing came between.
            unsafe { (*node).older = newest };
            if self.newest.compare_exchange(newest, node, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                // SAFETY: it lives until the list is dropped.
                return Ok(unsafe { &(*node).value });
            }
        }
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let mut next = *self.newest.get_mut();
        while !next.is_null() {
            // SAFETY: nodes come from boxes, are in one list, and nobody refers to them any more.
            let node = unsafe { Box::from_raw(next) };
            next = node.older;
            if node.process != Process::current() {
                leave(node.value);
            }
        }
    }
}

/// What a parent has left in our memory.
struct Left<T> {
    _older: *mut c_void,
    _value: T,
}

/// Leaves alone what belongs to a parent: threads and devices that this process does not have. It stays reachable, so
/// that nobody takes it for a leak.
fn leave<T>(value: T) {
    static NEWEST: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let mut older = NEWEST.load(Ordering::Acquire);
    let left = Box::into_raw(Box::new(Left { _older: older, _value: value }));
    while let Err(newest) = NEWEST.compare_exchange(older, left.cast(), Ordering::AcqRel, Ordering::Acquire) {
        older = newest;
        // SAFETY: it is ours alone until it is in the list.
        unsafe { (*left)._older = older };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_its_own() {
        count_forks();
        let list = PerProcess::new();
        assert_eq!(list.get(), None);
        assert_eq!(list.get_or_make(|| Ok::<_, ()>(1), |_| ()), Ok(&1));
        assert_eq!(list.get_or_make(|| Ok::<_, ()>(2), |_| ()), Ok(&1));
        // What a fork does.
        FORKS.fetch_add(1, Ordering::Relaxed);
        assert_eq!(list.get(), None);
        assert_eq!(list.get_or_make(|| Err(3), |_| ()), Err(3));
        assert_eq!(list.get_or_make(|| Ok::<_, ()>(4), |_| ()), Ok(&4));
        FORKS.fetch_sub(1, Ordering::Relaxed);
        assert_eq!(list.get(), Some(&1));
    }

    #[test]
    fn threads_agree_on_one() {
        let list = PerProcess::new();
        let spares = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let got: Vec<_> = (0..8)
                .map(|i| {
                    let (list, spares) = (&list, &spares);
                    scope.spawn(move || {
                        let spare = |_| _ = spares.fetch_add(1, Ordering::Relaxed);
                        *list.get_or_make(|| Ok::<_, ()>(i), spare).unwrap()
                    })
                })
                .collect();
            let got: Vec<i32> = got.into_iter().map(|thread| thread.join().unwrap()).collect();
            assert!(got.iter().all(|value| *value == got[0]));
        });
    }
}
