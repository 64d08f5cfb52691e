//! Host memory of one piece of data as a pair of pointers: the form that kernels and the incremental modes work on.
#![allow(unsafe_code, reason = "raw pointers stand for borrowed slices, in place or not")]

use std::marker::PhantomData;

use crate::data::HostData;

/// Data of one segment: read from one place, written to the same place or to a disjoint one of equal length.
///
/// It is the pointer form of a `&mut [u8]` (in place) or of a `(&[u8], &mut [u8])` pair, so that kernels and the incremental
/// modes have one loop for both. Only its constructors create one. They guarantee that `src` is valid for reads of `len`
/// bytes and `dst` for writes, and that the two are equal or do not overlap.
pub struct Span<'a> {
    src: *const u8,
    dst: *mut u8,
    len: usize,
    owner: PhantomData<&'a mut [u8]>,
}

// SAFETY: a Span stands for the exclusive (dst) and shared (src) borrows it was made from, which are Send.
unsafe impl Send for Span<'_> {}

impl<'a> Span<'a> {
    /// In place.
    pub fn in_place(data: &'a mut [u8]) -> Self {
        let dst = data.as_mut_ptr();
        Span { src: dst, dst, len: data.len(), owner: PhantomData }
    }

    /// Out of place; `src` and `dst` must have the same length.
    pub fn copy(src: &'a [u8], dst: &'a mut [u8]) -> Self {
        assert_eq!(src.len(), dst.len(), "source and destination differ in length");
        Span { src: src.as_ptr(), dst: dst.as_mut_ptr(), len: src.len(), owner: PhantomData }
    }

    /// From pointers of another language's caller.
    ///
    /// # Safety
    ///
    /// For as long as the span lives, `src` is valid for reads of `len` bytes and `dst` for writes, they are equal or do
    /// not overlap, and nothing else writes to either or reads `dst`. Pointers to nothing may be anything.
    pub unsafe fn from_raw(src: *const u8, dst: *mut u8, len: usize) -> Self {
        Span { src, dst, len, owner: PhantomData }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where to read; valid for `len` bytes.
    pub fn src(&self) -> *const u8 {
        self.src
    }

    /// Where to write; valid for `len` bytes.
    pub fn dst(&self) -> *mut u8 {
        self.dst
    }

    /// As the data of a segment.
    pub fn into_host(self) -> HostData<'a> {
        if self.len == 0 {
            return HostData::InPlace(&mut []);
        }
        // SAFETY: what the span stands for: `dst` is borrowed exclusively for 'a, and `src` either is `dst` or is apart
        // from it and borrowed for as long. It cannot be used otherwise any more.
        unsafe {
            let to = std::slice::from_raw_parts_mut(self.dst, self.len);
            if std::ptr::eq(self.src, self.dst) {
                return HostData::InPlace(to);
            }
            let from = std::slice::from_raw_parts(self.src, self.len);
            HostData::copy(from, to).expect("they have one length")
        }
    }

    /// Copies the input; `into` has the same length.
    pub fn read(&self, into: &mut [u8]) {
        assert_eq!(into.len(), self.len, "another length");
        if self.len > 0 {
            // SAFETY: both are valid for `len` bytes, and `into` is borrowed, so it is other memory.
            unsafe { std::ptr::copy_nonoverlapping(self.src, into.as_mut_ptr(), self.len) }
        }
    }

    /// Writes the output; `from` has the same length.
    pub fn write(&mut self, from: &[u8]) {
        assert_eq!(from.len(), self.len, "another length");
        if self.len > 0 {
            // SAFETY: both are valid for `len` bytes, and `from` is borrowed, so it is other memory.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), self.dst, self.len) }
        }
    }

    /// XORs a mask of the same length.
    pub fn xor(&mut self, mask: &[u8]) {
        assert_eq!(mask.len(), self.len, "another length");
        for (i, mask) in mask.iter().enumerate() {
            // SAFETY: i is below `len`, for which both are valid. They are equal or apart, so the compiler may have to ask
            // which, but the order of bytes does not matter.
            unsafe { *self.dst.add(i) = *self.src.add(i) ^ mask }
        }
    }

    /// The parts before and from `at`, which must not exceed the length.
    pub fn split_at(self, at: usize) -> (Span<'a>, Span<'a>) {
        assert!(at <= self.len, "split beyond the end");
        // SAFETY: at <= len, so both parts stay inside the borrowed ranges, and they do not overlap.
        let (src, dst) = unsafe { (self.src.add(at), self.dst.add(at)) };
        (
            Span { src: self.src, dst: self.dst, len: at, owner: PhantomData },
            Span { src, dst, len: self.len - at, owner: PhantomData },
        )
    }

    /// A shorter-lived copy of this span.
    pub fn reborrow(&mut self) -> Span<'_> {
        Span { src: self.src, dst: self.dst, len: self.len, owner: PhantomData }
    }
}
