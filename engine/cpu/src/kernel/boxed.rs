//! Fallible allocation, for callers that must not abort when memory is exhausted.

use std::alloc::{Layout, alloc, dealloc};
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

/// Makes a value on the heap; `None` if the allocation fails, or if `make` returns `None`. The memory is allocated before the value is made, so
/// that a constant is written to its place, and not to the stack first.
#[inline(always)]
pub(crate) fn try_new<T>(make: impl FnOnce() -> Option<T>) -> Option<Box<T>> {
    const { assert!(size_of::<T>() > 0) };
    // SAFETY: the layout has a non-zero size; a non-null pointer is memory for a T from the allocator that Box uses. `write` has
    // initialised the value when `assume_init` is called.
    unsafe {
        // The compiler would replace an allocation whose memory is zeroed by `calloc`, which takes longer: before version 2.41 of the
        // GNU C library, `calloc` does not use the caches of threads.
        let place = black_box(alloc(Layout::new::<T>())).cast::<MaybeUninit<T>>();
        if place.is_null() {
            return None;
        }
        let mut place = Box::from_raw(place);
        place.write(make()?);
        Some(place.assume_init())
    }
}

/// A value on the heap, with any alignment. `malloc` is faster than functions that align a block, so the block has room to align the value.
pub(crate) struct Aligned<T> {
    value: NonNull<T>,
    block: NonNull<u8>,
}

/// The alignment of all blocks of the allocator on 64-bit processors.
const MIN_ALIGN: usize = 16;

// SAFETY: the value is owned, as in a Box.
unsafe impl<T: Send> Send for Aligned<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Aligned<T> {}

impl<T> Aligned<T> {
    const LAYOUT: Layout = match Layout::from_size_align(
        size_of::<T>() + align_of::<T>().saturating_sub(MIN_ALIGN),
        MIN_ALIGN,
    ) {
        Ok(layout) => layout,
        Err(_) => panic!("the value is too large"),
    };

    /// The offset of the value in a block at this address.
    #[inline(always)]
    fn offset(block: usize) -> usize {
        block.wrapping_neg() % align_of::<T>()
    }

    /// See [`try_new`].
    #[inline(always)]
    pub(crate) fn try_new(make: impl FnOnce() -> Option<T>) -> Option<Aligned<T>> {
        const { assert!(size_of::<T>() > 0) };
        // SAFETY: the layout has a non-zero size. The value lies inside the block, which exceeds it by at least the offset: the block
        // has an alignment of at least MIN_ALIGN.
        unsafe {
            // See `try_new`.
            let block = NonNull::new(black_box(alloc(Self::LAYOUT)))?;
            let value = block.add(Self::offset(block.addr().get())).cast::<T>();
            let Some(made) = make() else {
                dealloc(block.as_ptr(), Self::LAYOUT);
                return None;
            };
            value.write(made);
            Some(Aligned { value, block })
        }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the value exists as long as `self`, and is borrowed with it.
        unsafe { self.value.as_ref() }
    }
}

impl<T> DerefMut for Aligned<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { self.value.as_mut() }
    }
}

impl<T> Drop for Aligned<T> {
    fn drop(&mut self) {
        // SAFETY: the value exists until here. The block was allocated with this layout.
        unsafe {
            self.value.drop_in_place();
            dealloc(self.block.as_ptr(), Self::LAYOUT);
        }
    }
}

/// A value with a reference count: an `Arc` without weak references, whose allocation may fail. (`Arc::try_new` is not
/// stable.) The last reference drops the value.
pub(crate) struct Shared<T>(NonNull<Counted<T>>);

struct Counted<T> {
    references: AtomicUsize,
    value: T,
}

/// Maximum number of references. Only a program that leaks references can exceed it.
const MAX_REFERENCES: usize = isize::MAX as usize;

// SAFETY: references on several threads access the value as `&T`, and the thread of the last reference drops it.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as above. In addition, a thread that has a reference to a `Shared` can clone it, and then owns a `Shared`.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Makes a value on the heap, with one reference: see [`try_new`].
    #[inline(always)]
    pub(crate) fn try_new(make: impl FnOnce() -> Option<T>) -> Option<Shared<T>> {
        let counted = try_new(|| Some(Counted { references: AtomicUsize::new(1), value: make()? }))?;
        Some(Shared(NonNull::from(Box::leak(counted))))
    }

    /// The value, if this is the only reference.
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        // The accesses of references that have been dropped come before those of the caller.
        if self.counted().references.load(Ordering::Acquire) != 1 {
            return None;
        }
        // SAFETY: only `self` refers to the value, and it is borrowed exclusively, so that nobody can clone it.
        Some(unsafe { &mut self.0.as_mut().value })
    }

    fn counted(&self) -> &Counted<T> {
        // SAFETY: the memory is freed with the last reference, and this is a reference. A `&mut` borrows the only
        // reference exclusively.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.counted().value
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        // This reference keeps the value alive, so the order of other memory accesses does not matter.
        if self.counted().references.fetch_add(1, Ordering::Relaxed) > MAX_REFERENCES {
            // An overflow of the count would free the value while it is used.
            std::process::abort();
        }
        Shared(self.0)
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // Accesses by this reference come before the decrement; the fence orders all decrements before the drop.
        if self.counted().references.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            // SAFETY: this was the last reference. The memory comes from a Box.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

#[cfg(test)]
mod tests;
