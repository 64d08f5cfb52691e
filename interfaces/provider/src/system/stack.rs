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

/// Wipes the stack below the caller after a context of type T has been copied there.
pub(crate) fn wipe_copies_of<T>() {
    const KIB: usize = 2;
    /// The copy is made in its memory. The compiler may nevertheless make it on the stack first: a part, the cipher and the context, each
    /// of which is then moved.
    const COPIES: usize = 4;
    const { assert!(COPIES * size_of::<T>() <= KIB << 10) };
    stack::wipe::<KIB>();
}
