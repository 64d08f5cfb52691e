//! Wipes memory on the heap that contained secrets.

use std::mem::MaybeUninit;
use std::slice;

use zeroize::Zeroize;

/// Wipes the memory of a vector that holds no value. The padding of values may contain bytes of the stack on which they were
/// made, which the values do not wipe when they are dropped.
pub(crate) fn wipe_spare_capacity<T>(vector: &mut Vec<T>) {
    for place in vector.spare_capacity_mut() {
        // SAFETY: the place is memory for a value, and holds none.
        let bytes = unsafe {
            slice::from_raw_parts_mut(place.as_mut_ptr().cast::<MaybeUninit<u8>>(), size_of::<T>())
        };
        bytes.zeroize();
    }
}
