//! Values in memory of their own, which is zeroed before it is freed, except after a panic in a drop.

use std::alloc::{Layout, alloc};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use crate::reason::{Outcome, Reason};

/// A value whose memory is zeroed when the value is dropped. The address of an `Object` is the address of its value.
#[repr(transparent)]
pub(crate) struct Object<T>(pub(crate) ManuallyDrop<T>);

/// Allocates memory for a value, and stores the result of `make` there. The size of the value must not be 0.
///
/// # Errors
/// [`Reason::OutOfMemory`]
#[inline(always)]
pub(crate) fn allocate<T>(make: impl FnOnce() -> T) -> Outcome<Box<Object<T>>> {
    const { assert!(size_of::<T>() > 0) };
    // SAFETY: the layout is that of the value, whose size is not 0; the new memory is large enough and aligned for it, and comes
    // from the allocator that `Box` uses.
    unsafe {
        let memory = NonNull::new(alloc(Layout::new::<T>()).cast::<T>()).ok_or(Reason::OutOfMemory)?;
        memory.write(make());
        Ok(Box::from_raw(memory.cast().as_ptr()))
    }
}

/// Drops, wipes and frees a value; does nothing for a null pointer.
///
/// # Safety
/// The pointer is null or comes from an object of [`allocate`] with the same type, and it is freed once.
pub(crate) unsafe fn free<T>(pointer: *mut c_void) {
    if !pointer.is_null() {
        // SAFETY: guaranteed by the caller.
        drop(unsafe { Box::from_raw(pointer.cast::<Object<T>>()) });
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        // SAFETY: the value is dropped once, and not used again.
        unsafe { ManuallyDrop::drop(&mut self.0) };
        // The fields of the value have wiped themselves. Bytes that belong to no field, for example the unused bytes of the smaller
        // variants of an enum, may still hold old contents of the stack from which the value was moved here.
        // SAFETY: the memory has the size of the value.
        unsafe { (&raw mut self.0).write_bytes(0, 1) };
        // The compiler should assume that this call reads the memory, and therefore keep the writes.
        std::hint::black_box(self);
    }
}
