//! Prevents panics from unwinding into C. A panic becomes an error, except in short calls, in which it aborts the process
//! (`Guard::ShortCallsUnguarded` in `cipher`).

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of an entry point; returns `otherwise` if it panics. The panic message goes to standard error
/// ([`crate::system::standard::report_panics`]).
///
/// A panic can interrupt the body in the middle of a step, so that the values that the body was changing are incomplete. No
/// code uses these values afterwards:
///
/// - A call marks its context as broken before it runs the body, and removes the mark only if the body returns (`call` in
///   `cipher`). All calls on a broken context fail, except the call that frees it. Freeing only drops the values of the
///   context. That is sound, because each of these values is still a valid Rust value after unwinding.
/// - A body that makes an object (a context, a copy, a key, a provider) owns this object, and unwinding drops it. If the object
///   is a copy, the body only reads the original.
/// - If a drop panics while an object is freed, unwinding frees the memory of the object without zeroing it, and the pointer is
///   not used again.
/// - Contexts share three kinds of data: keys and settings, which do not change; counters, which are atomic; and the queues of
///   `ahead` and of the planner, whose locks protect single operations on collections.
#[inline(always)]
pub(super) fn guarded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}
