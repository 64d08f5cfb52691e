//! No panic crosses into C: it becomes an error, or, in updates of a few blocks, ends the process (`FEW` in `cipher`).

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of an entry point; `otherwise` is the answer if it panics.
///
/// The context of a call that panicked may be half changed: that is why the state of contexts is made of plain values,
/// for which any bytes are sound. The panic message goes to standard error ([`super::standard::report_panics`]).
#[inline(always)]
pub(super) fn guarded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}
