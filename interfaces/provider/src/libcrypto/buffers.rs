//! The input and the output of one call. These two ranges of memory may be identical, separate or overlapping.
//!
//! OpenSSL's documentation forbids partial overlap. The ciphers of OpenSSL's default provider nevertheless handle many cases of
//! partial overlap, and programs may depend on this behaviour. In this provider, overlap is never an error: where necessary,
//! the input is first moved to the position of the output.

use std::marker::PhantomData;
use std::ptr;
use std::slice;

use lockstep::hazmat::inline::{Block, Span};
use lockstep::hazmat::mode::incremental::BlockIo;
use zeroize::Zeroize;

use crate::reason::{Outcome, Reason};

/// Input and output space of one call.
pub(crate) struct Buffers<'a> {
    input: *const u8,
    len: usize,
    output: *mut u8,
    room: usize,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> Buffers<'a> {
    /// Uses the same memory as input and output.
    pub(crate) fn in_place_of(data: &'a mut [u8]) -> Self {
        let output = data.as_mut_ptr();
        let len = data.len();
        Buffers { input: output, len, output, room: len, memory: PhantomData }
    }

    /// Creates the buffers of a call from C.
    ///
    /// # Safety
    /// `input` is null or valid for reads of `len` bytes. `output` is null or valid for writes of `room` bytes. Nothing
    /// else accesses this memory during the call.
    ///
    /// # Errors
    /// [`Reason::NullBuffer`] if a pointer is null and `len` is not 0, [`Reason::Length`] if `len` is too large.
    #[inline(always)]
    pub(crate) unsafe fn new(input: *const u8, len: usize, output: *mut u8, room: usize) -> Outcome<Self> {
        if (input.is_null() || output.is_null()) && len != 0 {
            return Err(Reason::NullBuffer);
        }
        if len > isize::MAX as usize / 8 {
            return Err(Reason::Length);
        }
        // Some callers pass an unrealistically large size. No buffer is larger than `isize::MAX` bytes.
        let room = room.min(isize::MAX as usize);
        Ok(Buffers { input, len, output, room, memory: PhantomData })
    }

    /// True if the input pointer is null. This is not the same as an empty input, whose pointer may be valid.
    pub(crate) fn has_no_input(&self) -> bool {
        self.input.is_null()
    }

    /// Returns the block at offset `at` of the output, which must have been written.
    pub(crate) fn output_block(&self, at: usize) -> &Block {
        assert!(self.room >= 16 && at <= self.room - 16, "reading beyond the output");
        // SAFETY: the range is inside the output, as just checked, and is borrowed as long as the reference lives.
        unsafe { &*self.output.add(at).cast() }
    }

    /// Returns the whole input and an output of the same length. Both begin at offset 0.
    ///
    /// # Errors
    /// [`Reason::OutputTooSmall`]
    #[inline(always)]
    pub(crate) fn whole(&mut self) -> Outcome<Span<'_>> {
        if self.room < self.len {
            return Err(Reason::OutputTooSmall);
        }
        Ok(self.part(0, 0, self.len))
    }

    /// Copies `len` bytes of the input at offset `from` to the output at offset `to`, and returns `room` bytes of the output
    /// at `to`. The output may overlap other parts of the input, so all other input must have been read before.
    ///
    /// # Errors
    /// [`Reason::OutputTooSmall`]
    pub(crate) fn copy_input(
        &mut self,
        from: usize,
        to: usize,
        len: usize,
        room: usize,
    ) -> Outcome<&mut [u8]> {
        assert!(from <= self.len && len <= self.len - from && len <= room, "reading beyond the input");
        if to > self.room || room > self.room - to {
            return Err(Reason::OutputTooSmall);
        }
        if room == 0 {
            return Ok(&mut []);
        }
        // SAFETY: both ranges are inside the input and the output, as just checked, and `copy` allows overlap. The output
        // belongs to C code, so it counts as initialised; it is borrowed as long as the slice lives.
        unsafe {
            ptr::copy(self.input.add(from), self.output.add(to), len);
            Ok(slice::from_raw_parts_mut(self.output.add(to), room))
        }
    }

    /// Zeroes the first `len` bytes of the output, but not more bytes than the input has.
    pub(crate) fn zero_output(&mut self, len: usize) {
        self.part(0, 0, len.min(self.len)).into_host().output().zeroize();
    }

    /// Returns the first `len` bytes of the memory of a call that works in place. These bytes start with the input. If `len`
    /// exceeds the length of the input, the output space after the input is included.
    ///
    /// # Errors
    /// [`Reason::NotInPlace`] if input and output are at different addresses, [`Reason::OutputTooSmall`] if there is
    /// less space than `len`.
    pub(crate) fn as_in_place(&mut self, len: usize) -> Outcome<&mut [u8]> {
        if !ptr::eq(self.input, self.output) || self.output.is_null() {
            return Err(Reason::NotInPlace);
        }
        if self.room < len {
            return Err(Reason::OutputTooSmall);
        }
        // SAFETY: input and output are the same memory, of which `room` bytes may be written.
        Ok(unsafe { slice::from_raw_parts_mut(self.output, len) })
    }
}

impl BlockIo for Buffers<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn room(&self) -> usize {
        self.room
    }

    fn read(&self, at: usize, into: &mut [u8]) {
        assert!(at <= self.len && into.len() <= self.len - at, "reading beyond the input");
        // SAFETY: the range is inside the input, as just checked. `into` is a mutable borrow, so it does not overlap the input. A
        // null pointer is valid for 0 bytes.
        unsafe { ptr::copy_nonoverlapping(self.input.add(at), into.as_mut_ptr(), into.len()) }
    }

    #[inline(always)]
    fn part(&mut self, from: usize, to: usize, len: usize) -> Span<'_> {
        assert!(from <= self.len && len <= self.len - from, "reading beyond the input");
        assert!(to <= self.room && len <= self.room - to, "writing beyond the output");
        if len == 0 {
            return Span::in_place(&mut []);
        }
        // SAFETY: the offsets are inside both ranges, as just checked.
        let (mut input, output) = unsafe { (self.input.add(from), self.output.add(to)) };
        let apart = (input as usize).abs_diff(output as usize) >= len;
        if !apart && !ptr::eq(input, output) {
            // SAFETY: both pointers are valid for `len` bytes, and `copy` allows overlap.
            unsafe { ptr::copy(input, output, len) };
            input = output;
        }
        // SAFETY: both pointers are valid for `len` bytes as long as `self` is borrowed. The two ranges are now equal
        // or do not overlap.
        unsafe { Span::from_raw(input, output, len) }
    }

    fn write(&mut self, at: usize, from: &[u8]) {
        assert!(at <= self.room && from.len() <= self.room - at, "writing beyond the output");
        // SAFETY: the range is inside the output, as just checked. `from` is borrowed, so it does not overlap the output. A null
        // pointer is valid for 0 bytes.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), self.output.add(at), from.len()) }
    }
}

#[cfg(test)]
mod tests;
