//! Boxes for callers that must not die for want of memory.

use std::alloc::{Layout, alloc};

/// A value on the heap, or nothing if there is no memory.
pub(crate) fn try_new<T>(value: T) -> Option<Box<T>> {
    const { assert!(size_of::<T>() > 0) };
    // SAFETY: the layout has a size; a pointer that is not null is memory for a T, from the allocator of Box.
    unsafe {
        let place = alloc(Layout::new::<T>()).cast::<T>();
        if place.is_null() {
            return None;
        }
        place.write(value);
        Some(Box::from_raw(place))
    }
}
