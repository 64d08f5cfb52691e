//! Fallible allocation, for callers that must not abort when memory is exhausted.

use std::alloc::{Layout, alloc};

/// Copies the bytes of a value to a new place on the heap, and to no other place; `None` if the allocation fails.
///
/// # Safety
///
/// The bytes of a `T` are an independent value: it owns no memory and no other resource.
pub(crate) unsafe fn try_copy<T>(value: &T) -> Option<Box<T>> {
    const { assert!(size_of::<T>() > 0) };
    // SAFETY: the layout has a non-zero size; a non-null pointer is memory for a T from the allocator that Box uses. The caller
    // guarantees that the bytes are a value of their own.
    unsafe {
        let place = alloc(Layout::new::<T>()).cast::<T>();
        if place.is_null() {
            return None;
        }
        place.copy_from_nonoverlapping(value, 1);
        Some(Box::from_raw(place))
    }
}

/// Moves a value to the heap; `None` if the allocation fails.
pub(crate) fn try_new<T>(value: T) -> Option<Box<T>> {
    const { assert!(size_of::<T>() > 0) };
    // SAFETY: the layout has a non-zero size; a non-null pointer is memory for a T from the allocator that Box uses.
    unsafe {
        let place = alloc(Layout::new::<T>()).cast::<T>();
        if place.is_null() {
            return None;
        }
        place.write(value);
        Some(Box::from_raw(place))
    }
}
