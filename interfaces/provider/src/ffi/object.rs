//! Allocates and frees the objects to which OpenSSL has pointers.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;

use crate::reason::{Outcome, Reason};

/// Allocates memory for a value, and stores the result of `make` there. The size of the value must not be 0.
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
            // The fields of the value have wiped themselves. Bytes that belong to no field, for example the unused bytes of the
            // smaller variants of an enum, may still hold old contents of the stack from which the value was moved here.
            pointer.cast::<u8>().write_bytes(0, size_of::<T>());
            // This call makes the compiler assume that the memory is read, so the compiler keeps the writes.
            std::hint::black_box(pointer);
            dealloc(pointer.cast(), Layout::new::<T>());
        }
    }
}
