//! Wipes memory on the heap that contained secrets.

use std::mem::MaybeUninit;
use std::slice;

use zeroize::Zeroize;

/// Wipes the unused memory of a vector, which has contained values. The padding of a value may contain bytes of the stack on
/// which the value was made. Dropping the value does not wipe its padding.
pub(crate) fn wipe_spare_capacity<T>(vector: &mut Vec<T>) {
    for place in vector.spare_capacity_mut() {
        // SAFETY: `place` is memory for one value, and contains no value.
        let bytes = unsafe {
            slice::from_raw_parts_mut(place.as_mut_ptr().cast::<MaybeUninit<u8>>(), size_of::<T>())
        };
        bytes.zeroize();
    }
}
