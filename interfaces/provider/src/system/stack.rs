//! Wipes parts of the stack on which code has left secrets.

use lockstep::hazmat::stack;

/// Runs code in a separate stack frame. If the code may leave secrets in this frame, wipes the frame afterwards. In all other
/// cases the frame is not wiped, because wiping takes longer than a short call.
#[inline(always)]
pub(crate) fn run_and_wipe<T>(leaves_secrets: bool, code: impl FnOnce() -> T) -> T {
    let result = in_own_frame(code);
    if leaves_secrets {
        stack::wipe_below();
    }
    result
}

/// Runs code in a separate stack frame.
#[inline(never)]
pub(crate) fn in_own_frame<T>(code: impl FnOnce() -> T) -> T {
    code()
}

/// Wipes the part of the stack below the caller's frame in which copying a context of type `T` may have left bytes of the
/// context.
pub(crate) fn wipe_copies_of<T>() {
    const KIB: usize = 2;
    /// The number of contexts whose size is wiped. The copy is written directly to its place on the heap. The compiler may
    /// nevertheless build parts of it on the stack first: a field of the cipher, the whole cipher, and the whole context. Each
    /// of these three values is at most as large as the context.
    const COPIES: usize = 4;
    const { assert!(COPIES * size_of::<T>() <= KIB << 10) };
    stack::wipe::<KIB>();
}
