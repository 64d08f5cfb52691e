//! Wiping of the stack after code that leaves secrets there.

use lockstep::hazmat::stack;

/// True if setting or copying a key may leave copies of it on the stack. Kernels for x86-64 leave none, as the analysis of their machine
/// code shows (docs/proof.md); other processors have not been analysed.
pub(crate) const LEAVES_KEYS: bool = !cfg!(target_arch = "x86_64");

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

/// Wipes the stack below the caller after a context has been moved there: 2 KiB, which exceed a context and the frames that move it.
pub(crate) fn wipe_context() {
    stack::wipe::<2>();
}
