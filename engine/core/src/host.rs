//! Host memory for work in place or out of place, as slices or as the pair of pointers that kernels and the incremental
//! modes use.
#![allow(unsafe_code, reason = "raw pointers stand for borrowed slices, in place or not")]

use std::marker::PhantomData;

use crate::error::{Error, Result};

/// Host memory for work in place, for work out of place, or for reading only.
///
/// Devices require that both parts of [`HostData::Copy`] have the same length. Other crates therefore cannot construct this
/// variant directly:
///
/// ```compile_fail
/// use lockstep_core::data::HostData;
/// let unequal = HostData::Copy { from: &[0; 64], to: &mut [0; 16] };
/// ```
pub enum HostData<'a> {
    /// Input and output are the same memory.
    InPlace(&'a mut [u8]),
    /// Input and output are disjoint; made by [`HostData::copy`], which checks the lengths.
    #[non_exhaustive]
    Copy {
        /// The input.
        from: &'a [u8],
        /// The output.
        to: &'a mut [u8],
    },
    /// Read-only, for passes without output (GHASH, CBC-MAC).
    ReadOnly(&'a [u8]),
}

impl<'a> HostData<'a> {
    /// Out of place.
    ///
    /// # Errors
    /// [`Error::OutputLength`] if input and output differ in length.
    #[inline]
    pub fn copy(from: &'a [u8], to: &'a mut [u8]) -> Result<Self> {
        check_lengths(from.len(), to.len())?;
        Ok(HostData::Copy { from, to })
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.input().len()
    }

    /// True if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The input. For data in place, this is the result after the work is done.
    #[inline]
    pub fn input(&self) -> &[u8] {
        match self {
            HostData::InPlace(data) => data,
            HostData::Copy { from, .. } | HostData::ReadOnly(from) => from,
        }
    }

    /// The output; empty if the data are read-only.
    #[inline]
    pub fn output(&mut self) -> &mut [u8] {
        match self {
            HostData::InPlace(data) => data,
            HostData::Copy { to, .. } => to,
            HostData::ReadOnly(_) => &mut [],
        }
    }

    /// A shorter-lived handle on the same data.
    #[inline]
    pub fn reborrow(&mut self) -> HostData<'_> {
        match self {
            HostData::InPlace(data) => HostData::InPlace(data),
            HostData::Copy { from, to } => HostData::Copy { from, to },
            HostData::ReadOnly(from) => HostData::ReadOnly(from),
        }
    }

    /// Splits the data into the part before `at` and the part from `at` on. `at` must not exceed the length.
    pub fn split_at(self, at: usize) -> (HostData<'a>, HostData<'a>) {
        match self {
            HostData::ReadOnly(from) => {
                let (head, tail) = from.split_at(at);
                (HostData::ReadOnly(head), HostData::ReadOnly(tail))
            }
            written => {
                let (head, tail) = written.into_span().split_at(at);
                (head.into_host(), tail.into_host())
            }
        }
    }

    /// This memory as a pair of pointers.
    ///
    /// # Panics
    /// If the data are read-only.
    #[inline]
    pub fn into_span(self) -> Span<'a> {
        match self {
            HostData::InPlace(data) => Span::in_place(data),
            HostData::Copy { from, to } => Span::copy(from, to),
            HostData::ReadOnly(_) => panic!("a span is written to"),
        }
    }

    /// Writes the input XOR `mask`, which has at least the length of the data, to the output.
    ///
    /// # Panics
    /// Panics if the data are read-only or the mask is shorter.
    pub fn xor_with(&mut self, mask: &[u8]) {
        let mask = &mask[..self.len()];
        match self {
            HostData::InPlace(data) => data.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask),
            HostData::Copy { from, to } => {
                let input = from.iter().zip(mask);
                to.iter_mut().zip(input).for_each(|(to, (from, mask))| *to = from ^ mask);
            }
            HostData::ReadOnly(_) => panic!("read-only data have no output"),
        }
    }
}

impl std::fmt::Debug for HostData<'_> {
    /// Prints the kind and the length, not the content.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self {
            HostData::InPlace(_) => "InPlace",
            HostData::Copy { .. } => "Copy",
            HostData::ReadOnly(_) => "ReadOnly",
        };
        write!(f, "{kind}({} bytes)", self.len())
    }
}

/// Checks that an output of `to` bytes is as long as the input of `from` bytes.
///
/// # Errors
/// [`Error::OutputLength`] if the lengths differ.
#[inline]
pub fn check_lengths(from: usize, to: usize) -> Result<()> {
    if from == to { Ok(()) } else { Err(Error::OutputLength { needed: from, got: to }) }
}

/// Input and output of one segment: the same memory (in place), or disjoint memory of equal length.
///
/// A span is the pointer form of a `&mut [u8]` or of a `(&[u8], &mut [u8])` pair. Kernels and the incremental modes can thus
/// use one loop for both. Invariant, ensured by the constructors: `src` is valid for reads of `len` bytes, `dst` is valid
/// for writes of `len` bytes, and the two ranges are equal or do not overlap.
pub struct Span<'a> {
    src: *const u8,
    dst: *mut u8,
    len: usize,
    owner: PhantomData<&'a mut [u8]>,
}

// SAFETY: a Span represents the exclusive (dst) and shared (src) borrows that it was made from, which are Send.
unsafe impl Send for Span<'_> {}

impl<'a> Span<'a> {
    /// In place.
    #[inline]
    pub fn in_place(data: &'a mut [u8]) -> Self {
        let dst = data.as_mut_ptr();
        Span { src: dst, dst, len: data.len(), owner: PhantomData }
    }

    /// Out of place; `src` and `dst` must have the same length.
    #[inline]
    pub fn copy(src: &'a [u8], dst: &'a mut [u8]) -> Self {
        assert_eq!(src.len(), dst.len(), "source and destination differ in length");
        Span { src: src.as_ptr(), dst: dst.as_mut_ptr(), len: src.len(), owner: PhantomData }
    }

    /// Makes a span from raw pointers, for callers in other languages.
    ///
    /// # Safety
    ///
    /// As long as the span lives, `src` must be valid for reads of `len` bytes, and `dst` for writes of `len` bytes. The two
    /// ranges must be equal or must not overlap. Nothing else may write to either range or read `dst`. With a length of 0,
    /// any pointers are valid.
    #[inline]
    pub unsafe fn from_raw(src: *const u8, dst: *mut u8, len: usize) -> Self {
        Span { src, dst, len, owner: PhantomData }
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if the length is 0.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Pointer to the input; valid for reads of `len` bytes.
    #[inline]
    pub fn src(&self) -> *const u8 {
        self.src
    }

    /// Pointer to the output; valid for writes of `len` bytes.
    #[inline]
    pub fn dst(&self) -> *mut u8 {
        self.dst
    }

    /// Converts to the data of a segment.
    #[inline]
    pub fn into_host(self) -> HostData<'a> {
        if self.len == 0 {
            return HostData::InPlace(&mut []);
        }
        // SAFETY: by the invariant, `dst` is borrowed exclusively for 'a, and `src` either equals `dst` or is borrowed
        // for 'a and disjoint from it. The span is consumed, so no other access through it follows.
        unsafe {
            let to = std::slice::from_raw_parts_mut(self.dst, self.len);
            if std::ptr::eq(self.src, self.dst) {
                return HostData::InPlace(to);
            }
            let from = std::slice::from_raw_parts(self.src, self.len);
            HostData::copy(from, to).expect("both have the same length")
        }
    }

    /// Splits the span into the bytes before `at` and the bytes from `at` on. `at` must not exceed the length.
    #[inline]
    pub fn split_at(self, at: usize) -> (Span<'a>, Span<'a>) {
        assert!(at <= self.len, "split beyond the end");
        // SAFETY: at <= len, so both parts stay inside the borrowed ranges, and they do not overlap.
        let (src, dst) = unsafe { (self.src.add(at), self.dst.add(at)) };
        (
            Span { src: self.src, dst: self.dst, len: at, owner: PhantomData },
            Span { src, dst, len: self.len - at, owner: PhantomData },
        )
    }

    /// This span with a shorter lifetime.
    #[inline]
    pub fn reborrow(&mut self) -> Span<'_> {
        Span { src: self.src, dst: self.dst, len: self.len, owner: PhantomData }
    }
}
