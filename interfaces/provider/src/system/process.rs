//! Handling of forks: a child process does not use the resources of its parent process.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Once, OnceLock};

/// Number of forks between the process that loaded this module and the current process.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The number of a process, and the number of forks that led to it. Together, they distinguish a process from its parents and
/// children. The process number alone is not sufficient: the first process of a container can have the same number as a process
/// outside of the container.
pub(crate) type Process = (u32, u32);

pub(crate) fn current() -> Process {
    (std::process::id(), FORKS.load(Ordering::Relaxed))
}

/// Registers the handler that counts forks.
pub(crate) fn count_forks() {
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the handler stays in memory, because this module is never unloaded (`-z nodelete`). It only performs
        // an atomic addition. If the registration fails, the process number still distinguishes almost all forks.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// Registers a function that runs when the process ends by `exit`. Only the first call has an effect.
pub(crate) fn at_exit(body: fn()) {
    static BODY: OnceLock<fn()> = OnceLock::new();
    extern "C" fn run() {
        if let Some(body) = BODY.get() {
            // A panic here cannot be reported, because the process is ending.
            let _ = std::panic::catch_unwind(body);
        }
    }
    if BODY.set(body).is_ok() {
        // SAFETY: the handler stays in memory, because this module is never unloaded.
        unsafe { libc::atexit(run) };
    }
}

/// True in set-user-ID programs and programs with capabilities.
pub(crate) fn is_privileged() -> bool {
    // SAFETY: these calls only read attributes of the process.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    // SAFETY: as above.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    return unsafe { libc::getuid() != libc::geteuid() || libc::getgid() != libc::getegid() };
}

/// A value that each process creates for itself on first use.
///
/// The values are in a list that has no locks and to which entries are only added. Each entry contains the process to which it
/// belongs. The list is consistent at any time, so a fork may happen at any time. If a fork happens while a value is being
/// created, the child neither waits for it nor uses it, because the child adds an entry of its own.
pub(crate) struct PerProcess<T> {
    newest: AtomicPtr<Node<T>>,
}

struct Node<T> {
    process: Process,
    value: OnceLock<T>,
    older: *mut Node<T>,
}

// SAFETY: values are accessed by shared reference from any thread, and dropped by the thread that drops the list.
unsafe impl<T: Send + Sync> Send for PerProcess<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for PerProcess<T> {}

impl<T> PerProcess<T> {
    /// Returns the value of this process, if it exists.
    pub(crate) fn get(&self) -> Option<&T> {
        self.find(current())?.value.get()
    }

    /// Returns the value of this process, and creates it if it does not exist. If several threads call this function at the
    /// same time, one of them creates the value, and all others wait.
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        let process = current();
        self.find(process).unwrap_or_else(|| self.add(process)).value.get_or_init(make)
    }

    fn find(&self, process: Process) -> Option<&Node<T>> {
        let mut next = self.newest.load(Ordering::Acquire);
        // SAFETY: nodes are complete when they become reachable, and live until the list is dropped.
        while let Some(node) = unsafe { next.as_ref() } {
            if node.process == process {
                return Some(node);
            }
            next = node.older;
        }
        None
    }

    /// Adds an entry for this process. If another thread has already added one, returns that entry.
    fn add(&self, process: Process) -> &Node<T> {
        let mut new = Box::new(Node { process, value: OnceLock::new(), older: null_mut() });
        loop {
            let newest = self.newest.load(Ordering::Acquire);
            if let Some(node) = self.find(process) {
                return node;
            }
            new.older = newest;
            let node = Box::into_raw(new);
            if self.newest.compare_exchange(newest, node, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                // SAFETY: the node lives until the list is dropped.
                return unsafe { &*node };
            }
            // SAFETY: the exchange has failed, so no other thread has a pointer to the node.
            new = unsafe { Box::from_raw(node) };
        }
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        /// Nodes of parent processes. Their values may refer to threads and devices that do not exist in this process, so these
        /// nodes are never freed. They stay reachable, so that leak checkers do not report them.
        static OF_PARENTS: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
        let mut next = *self.newest.get_mut();
        // SAFETY: each node comes from a box, is in one list only, and is no longer referenced.
        while let Some(node) = unsafe { next.as_mut() } {
            let this = std::mem::replace(&mut next, node.older);
            if node.process == current() {
                // SAFETY: as above.
                drop(unsafe { Box::from_raw(this) });
            } else {
                // The pointer is only stored, and never dereferenced.
                node.older = OF_PARENTS.swap(this.cast(), Ordering::AcqRel).cast();
            }
        }
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        PerProcess { newest: AtomicPtr::new(null_mut()) }
    }
}

#[cfg(test)]
mod tests;
