//! Panics do not unwind into C: a panic becomes an error, or, in updates of a few blocks, aborts the process
//! (`MAX_UNGUARDED` in `cipher`).

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of an entry point; returns `otherwise` if it panics. The panic message goes to standard error
/// ([`crate::system::standard::report_panics`]).
///
/// A panic can leave what the body has changed in the middle of a step. Nothing uses that state afterwards:
///
/// - A call marks its context as broken before it runs the body, and removes the mark only if the body returns (`call` in
///   `cipher`). All calls on a broken context fail, except the call that frees it. Freeing only drops the values of the
///   context. That is sound, because unwinding leaves each of them valid: it has dropped what it took out of them.
/// - A body that makes an object (a context, a copy, a key, a provider) owns what it has made, and unwinding drops it. The
///   original of a copy is only read.
/// - If a drop panics while an object is freed, the rest of its memory is leaked, and the pointer is not used again.
/// - Contexts share keys and settings, which do not change, counters, which are atomic, and the queues of `ahead` and of the
///   planner, whose locks protect single operations on collections.
#[inline(always)]
pub(super) fn guarded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}
