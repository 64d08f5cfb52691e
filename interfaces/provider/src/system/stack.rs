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
    /// A part of the copy is made, is moved into the cipher, with it into the context, and with this to the function that allocates it.
    const COPIES: usize = 4;
    const { assert!(COPIES * size_of::<T>() <= KIB << 10) };
    stack::wipe::<KIB>();
}
