//! Objects that OpenSSL refers to by a pointer.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;

use crate::reason::{Outcome, Reason};

/// Makes a value, whose size is not 0, in memory of its own.
///
/// # Errors
/// [`Reason::OutOfMemory`]
#[inline(always)]
pub(super) fn allocate<T>(make: impl FnOnce() -> T) -> Outcome<*mut T> {
    const { assert!(size_of::<T>() > 0) };
    // SAFETY: the layout is that of the value, whose size is not 0; the new memory is large enough and aligned for it.
    unsafe {
        let memory = alloc(Layout::new::<T>()).cast::<T>();
        if memory.is_null() {
            return Err(Reason::OutOfMemory);
        }
        memory.write(make());
        Ok(memory)
    }
}

/// Drops, wipes and frees a value; does nothing for a null pointer.
///
/// # Safety
/// The pointer is null or was returned by [`allocate`] with the same type, and it is freed once.
pub(super) unsafe fn free<T>(pointer: *mut c_void) {
    let value = pointer.cast::<T>();
    if !value.is_null() {
        // SAFETY: guaranteed by the caller.
        unsafe {
            value.drop_in_place();
            // The parts of the value have wiped themselves. Bytes that belong to no part, such as those of the larger variants of an enum,
            // can hold what was on the stack when the value was moved here.
            pointer.cast::<u8>().write_bytes(0, size_of::<T>());
            // The compiler assumes that this call reads the memory, so it keeps the writes.
            std::hint::black_box(pointer);
            dealloc(pointer.cast(), Layout::new::<T>());
        }
    }
}
