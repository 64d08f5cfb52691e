//! Wiping of the stack after code that leaves secrets there.

use lockstep::hazmat::stack;

/// Runs code in a stack frame of its own. Wipes this frame afterwards if the code may leave secrets there, because wiping takes longer
/// than a short call.
#[inline(always)]
pub(crate) fn run_and_wipe<T>(leaves_secrets: bool, code: impl FnOnce() -> T) -> T {
    let result = in_own_frame(code);
    if leaves_secrets {
        stack::wipe_below();
    }
    result
}

/// Runs code in a stack frame of its own.
#[inline(never)]
pub(crate) fn in_own_frame<T>(code: impl FnOnce() -> T) -> T {
    code()
}
