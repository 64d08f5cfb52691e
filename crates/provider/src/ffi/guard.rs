//! Panics do not unwind into C: a panic becomes an error, or, in updates of a few blocks, aborts the process
//! (`MAX_UNGUARDED` in `cipher`).

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of an entry point; returns `otherwise` if it panics.
///
/// After a panic the context may be partly changed. This is sound because the state of contexts consists of plain
/// values, for which all bit patterns are valid. The panic message goes to standard error
/// ([`super::standard::report_panics`]).
#[inline(always)]
pub(super) fn guarded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}
