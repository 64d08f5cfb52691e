//! Fallible allocation, for callers that must not abort when memory is exhausted.

use std::alloc::{Layout, alloc};

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
