//! The contract between this library and its callers in C, and the code that relies on it.
//!
//! # Safety
//! The text at the beginning of the header is the contract of every exported function. Every other `unsafe` function of this
//! crate relies on the same contract, which its callers must fulfil:
//!
//! - A pointer is null, or aligned and valid for its length during the call. A string ends with a null byte. A structure of
//!   options has as many bytes as its first member states.
//! - No other thread writes to the memory of a call, or reads what the call writes.
//! - A pointer to an object is null, or was stored by [`new_object`] and has not been freed. A call that frees an object is the last
//!   one that uses it.
//! - A callback takes the argument `user` that was passed with it, and accesses only the memory that it is given.
//!
//! An exported function converts its arguments by [`Call`], calls the library, and stores the result. [`call`] and [`new_object`]
//! convert the outcome to the code and the message of the function, and catch panics.
#![deny(unsafe_op_in_unsafe_fn, reason = "here the contract is used, not passed on")]

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::{ptr, slice};

use lockstep::hazmat::data::{HostData, Span};
use lockstep::hazmat::{Block, Error, stack};
use zeroize::Zeroizing;

use crate::error::{
    Failure, LOCKSTEP_ERROR_INTERNAL, LOCKSTEP_ERROR_LENGTH, LOCKSTEP_ERROR_NULL, LOCKSTEP_ERROR_OVERLAP,
    LOCKSTEP_OK, Outcome, ensure,
};

/// Runs the body of a function of the interface, and returns its code. A panic becomes [`LOCKSTEP_ERROR_INTERNAL`].
///
/// After a panic, the objects of the call are still whole. Calls only have shared references to objects. The only parts of a
/// shared object that change are the list of devices of an engine, and caches inside of the library. These parts are behind locks,
/// and change by single operations on collections. An object that the body makes, and a completion that it consumes, belong to the body,
/// and unwinding drops them. The output of the call may be written in part.
pub(crate) fn call(body: impl for<'a> FnOnce(&mut Call<'a>) -> Outcome<()>) -> c_int {
    match catch_unwind(AssertUnwindSafe(|| body(&mut Call::default()))) {
        Ok(Ok(())) => LOCKSTEP_OK,
        Ok(Err(failure)) => failure.report(),
        Err(_) => Failure::new(
            LOCKSTEP_ERROR_INTERNAL,
            "a defect of this library: discard the output of the call, and report this with the text on standard error",
        )
        .report(),
    }
}

/// Runs the body of a function that handles the bytes of a key, as [`call`] does, and then wipes the part of the stack that the
/// body has used: moving a value leaves copies of it there.
pub(crate) fn call_with_key(body: impl for<'a> FnOnce(&mut Call<'a>) -> Outcome<()>) -> c_int {
    #[inline(never)]
    fn run(body: impl for<'a> FnOnce(&mut Call<'a>) -> Outcome<()>) -> c_int {
        call(body)
    }
    let code = run(body);
    stack::wipe_below();
    code
}

/// Makes an object for C and stores its pointer in `result`; stores a null pointer if this fails. Wipes the stack as
/// [`call_with_key`] does, because most objects have keys.
pub(crate) unsafe fn new_object<T: 'static>(
    result: *mut *mut T,
    make: impl for<'a> FnOnce(&mut Call<'a>) -> Outcome<T>,
) -> c_int {
    call_with_key(|call| {
        // SAFETY: the contract of the module guarantees a valid pointer.
        let result = unsafe { call.result(result, "the place for the new object")? };
        result.write(ptr::null_mut());
        result.write(Box::into_raw(Box::new(make(call)?)));
        Ok(())
    })
}

/// Computes a result and stores it. `name` is the name of the place for the result in error messages.
pub(crate) unsafe fn store<T: 'static>(
    result: *mut T,
    name: &str,
    compute: impl for<'a> FnOnce(&mut Call<'a>) -> Outcome<T>,
) -> c_int {
    call(|call| {
        // SAFETY: the contract of the module guarantees a valid pointer.
        let result = unsafe { call.result(result, name)? };
        result.write(compute(call)?);
        Ok(())
    })
}

/// Calls `work`, which reads data into a buffer of C, and stores the number of bytes that it returns.
pub(crate) unsafe fn read(
    (buffer, len): (*mut u8, usize),
    read: *mut usize,
    work: impl FnOnce(&mut [u8]) -> Outcome<usize>,
) -> c_int {
    // SAFETY: the contract of the module guarantees a valid pointer.
    let read_to = |call: &mut Call<'_>| work(unsafe { call.output(buffer, len, "the buffer")? });
    // SAFETY: as above.
    unsafe { store(read, "the place for the number of bytes", read_to) }
}

/// Drops an object that C frees. Does nothing if the pointer is null. If the drop panics, the parts that have not been dropped
/// are leaked, and the panic is not reported.
pub(crate) unsafe fn free<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: by the contract of the module, `new_object` got the pointer from `Box::into_raw`, and the pointer is not
        // used after this call.
        let object = unsafe { Box::from_raw(object) };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(object)));
    }
}

/// Converts the arguments of a call that takes the time `'a`. The parameter `name` of a method is the name of the argument in error
/// messages.
///
/// Each piece of memory is compared with the pieces before it: what the call writes must not overlap other memory of the call. So
/// the references that the methods return do not alias.
#[derive(Default)]
pub(crate) struct Call<'a> {
    /// The pieces of memory of the arguments that were converted so far.
    ranges: [MemoryRange; MAX_RANGES],
    count: usize,
    /// True if the memory was checked by [`check_overlap`]. Then it is not compared again.
    is_checked: bool,
    time: PhantomData<&'a mut [u8]>,
}

/// Maximum number of pieces of memory of a call. A batch has more pieces, and checks them by [`check_overlap`].
const MAX_RANGES: usize = 8;

impl<'a> Call<'a> {
    /// Converts the arguments of the messages of a batch. The caller checks by [`check_overlap`] that their memory overlaps
    /// no other memory.
    pub(crate) fn checked() -> Call<'a> {
        Call { is_checked: true, ..Call::default() }
    }

    fn add(&mut self, range: MemoryRange) -> Outcome<()> {
        if self.is_checked {
            return Ok(());
        }
        ensure(!self.ranges[..self.count].iter().any(|other| other.collides(&range)), overlap)?;
        self.ranges[self.count] = range;
        self.count += 1;
        Ok(())
    }

    /// Elements that are read. The pointer may be null if there are none.
    pub(crate) unsafe fn input<T>(&mut self, start: *const T, len: usize, name: &str) -> Outcome<&'a [T]> {
        check_memory(start, len, name)?;
        self.add(MemoryRange::read(start, len))?;
        // SAFETY: the contract of the module guarantees a valid pointer. The call writes to no part of the memory.
        unsafe { input(start, len, name) }
    }

    /// Elements that are read and written. The pointer may be null if there are none.
    pub(crate) unsafe fn output<T>(&mut self, start: *mut T, len: usize, name: &str) -> Outcome<&'a mut [T]> {
        check_memory(start, len, name)?;
        self.add(MemoryRange::written(start, len))?;
        if len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: the contract of the module guarantees a valid pointer. The memory overlaps no other memory of the call.
        Ok(unsafe { slice::from_raw_parts_mut(start, len) })
    }

    /// The place for a result.
    pub(crate) unsafe fn result<T>(&mut self, place: *mut T, name: &str) -> Outcome<&'a mut MaybeUninit<T>> {
        self.add(MemoryRange::written(place, 1))?;
        // SAFETY: the contract of the module guarantees a valid pointer. The memory overlaps no other memory of the call, and
        // may be uninitialised.
        unsafe { place.cast::<MaybeUninit<T>>().as_mut() }.ok_or_else(|| null(name))
    }

    /// The place for a result; `None` if the pointer is null, because the caller does not need the result.
    pub(crate) unsafe fn optional_result<T>(
        &mut self,
        pointer: *mut T,
    ) -> Outcome<Option<&'a mut MaybeUninit<T>>> {
        // SAFETY: the contract of the module guarantees a valid pointer.
        if pointer.is_null() { Ok(None) } else { unsafe { self.result(pointer, "the result") }.map(Some) }
    }

    /// A block that is read and written.
    pub(crate) unsafe fn block(&mut self, pointer: *mut u8, name: &str) -> Outcome<&'a mut Block> {
        self.add(MemoryRange::written(pointer, size_of::<Block>()))?;
        // SAFETY: the contract of the module guarantees a valid pointer. The memory overlaps no other memory of the call.
        // Bytes need no alignment.
        unsafe { pointer.cast::<Block>().as_mut() }.ok_or_else(|| null(name))
    }

    /// The data of a message: in place if `from` and `to` are the same memory.
    pub(crate) unsafe fn data(&mut self, from: *const u8, to: *mut u8, len: usize) -> Outcome<HostData<'a>> {
        check_data(from, to, len)?;
        self.add(MemoryRange::input(from, to, len))?;
        self.add(MemoryRange::written(to, len))?;
        // SAFETY: the contract of the module guarantees a valid pointer. `from` and `to` are the same memory or disjoint.
        Ok(unsafe { Span::from_raw(from, to, len) }.into_host())
    }

    /// A copy of an input that may have the same address as the output. The copy is wiped on drop.
    pub(crate) unsafe fn copied_input(
        &mut self,
        from: *const u8,
        len: usize,
        to: *mut u8,
    ) -> Outcome<Zeroizing<Vec<u8>>> {
        check_memory(from, len, "the input")?;
        self.add(MemoryRange::input(from, to, len))?;
        // SAFETY: the contract of the module guarantees a valid pointer. The call writes to no part of the memory before it
        // is copied.
        let bytes = unsafe { input(from, len, "the input")? };
        Ok(Zeroizing::new(bytes.to_vec()))
    }
}

/// The failure for a null pointer.
pub(crate) fn null(name: &str) -> Failure {
    Failure::new(LOCKSTEP_ERROR_NULL, format!("{name} is a null pointer: pass a valid pointer"))
}

fn overlap() -> Failure {
    let message = "memory that the call writes overlaps other memory of the call: pass separate memory, or the same \
                   pointer as input and output";
    Failure::new(LOCKSTEP_ERROR_OVERLAP, message)
}

/// Fails if a pointer is null.
pub(crate) fn check_pointer<T: ?Sized>(pointer: *const T, name: &str) -> Outcome<()> {
    ensure(!pointer.is_null(), || null(name))
}

/// Fails if a pointer is null and the number of elements is not zero, or if no memory has that many elements.
pub(crate) fn check_memory<T>(pointer: *const T, count: usize, name: &str) -> Outcome<()> {
    if count == 0 {
        return Ok(());
    }
    check_pointer(pointer, name)?;
    let bytes = count.checked_mul(size_of::<T>()).filter(|bytes| *bytes <= isize::MAX as usize);
    let end = bytes.and_then(|bytes| (pointer as usize).checked_add(bytes));
    let message =
        || format!("{name} has {count} elements, which is more than memory can have: pass the right length");
    ensure(end.is_some(), || Failure::new(LOCKSTEP_ERROR_LENGTH, message()))
}

/// Fails if the input or the output is null and the length is not 0.
pub(crate) fn check_data(from: *const u8, to: *mut u8, len: usize) -> Outcome<()> {
    check_memory(from, len, "the input")?;
    check_memory(to.cast_const(), len, "the output")
}

/// The object behind a pointer.
pub(crate) unsafe fn object<'a, T>(pointer: *const T, name: &str) -> Outcome<&'a T> {
    // SAFETY: the contract of the module guarantees a valid pointer.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name))
}

/// Elements that are read. The pointer may be null if there are none. The call must not write to these elements.
pub(crate) unsafe fn input<'a, T>(pointer: *const T, count: usize, name: &str) -> Outcome<&'a [T]> {
    check_memory(pointer, count, name)?;
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: the contract of the module guarantees a valid pointer.
    Ok(unsafe { slice::from_raw_parts(pointer, count) })
}

pub(crate) unsafe fn path<'a>(text: *const c_char, name: &str) -> Outcome<&'a Path> {
    check_pointer(text, name)?;
    // SAFETY: the contract of the module guarantees a valid pointer.
    Ok(Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(text) }.to_bytes())))
}

/// A text in UTF-8; `None` if the pointer is null.
pub(crate) unsafe fn text<'a>(text: *const c_char, name: &str) -> Outcome<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the contract of the module guarantees a valid pointer.
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    text.map(Some).map_err(|_| Failure::argument(format!("{name} is not UTF-8: pass a text in UTF-8")))
}

/// The first argument of a callback.
#[derive(Clone, Copy)]
pub(crate) struct User(pub(crate) *mut c_void);

// SAFETY: the pointer is only passed to its callback. The header states on which threads and at which times callbacks run.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

/// Returns the value of a list that a number of C stands for. The numbers of the values begin at `first`. `expected` is for
/// the error message.
pub(crate) fn numbered<T: Copy>(values: &[T], first: c_int, number: c_int, expected: &str) -> Outcome<T> {
    let index = number.checked_sub(first).and_then(|index| usize::try_from(index).ok());
    let value = index.and_then(|index| values.get(index).copied());
    value.ok_or_else(|| Failure::argument(format!("{number} is not {expected}")))
}

/// Copies a result to the beginning of an output.
pub(crate) fn copy_result(result: &[u8], output: &mut [u8]) -> Outcome<()> {
    let got = output.len();
    let start = output.get_mut(..result.len());
    start.ok_or(Error::OutputLength { needed: result.len(), got })?.copy_from_slice(result);
    Ok(())
}

/// Options of C: a structure whose first member `size` is the size that the caller was compiled with. Zeros are the
/// defaults.
///
/// # Safety
/// The type is a `repr(C)` structure whose first member is a `usize`, and for which zero bytes are valid. Any bytes are valid for its
/// members, except that a member that is a callback is null or a function of its type.
pub(crate) unsafe trait Options: Copy {
    /// The name of the structure in error messages.
    const NAME: &'static str;

    /// The offset at which each member ends.
    const ENDS: &'static [usize];

    /// The member that fills the end of the structure, if there is one. It must be zero, so that a later version can give it
    /// a meaning.
    const RESERVED: fn(&Self) -> u32 = |_| 0;
}

/// Implements [`Options`], whose conditions the structure must fulfil. The arguments are the type of the structure, its name in C, and
/// all of its members in order; a reserved member follows a semicolon. The list does not compile if a member is missing, or if there is
/// padding.
macro_rules! impl_options {
    ($options:ty, $name:literal: $($member:ident)* $(; $reserved:ident)?) => {
        // SAFETY: every use of the macro states why the structure fulfils the conditions.
        unsafe impl $crate::ffi::Options for $options {
            const NAME: &'static str = $name;
            const ENDS: &'static [usize] = {
                const fn end<S, M>(start: usize, _member: fn(&S) -> &M) -> usize {
                    start + size_of::<M>()
                }
                let starts = [$(std::mem::offset_of!($options, $member),)* $(std::mem::offset_of!($options, $reserved))?];
                let ends = [
                    $(end(std::mem::offset_of!($options, $member), |options: &$options| &options.$member),)*
                    $(end(std::mem::offset_of!($options, $reserved), |options: &$options| &options.$reserved))?
                ];
                let mut i = 0;
                while i < ends.len() {
                    let next = if i + 1 < ends.len() { starts[i + 1] } else { size_of::<$options>() };
                    assert!(ends[i] == next, "a member is missing, or there is padding");
                    i += 1;
                }
                &{ ends }
            };
            $(const RESERVED: fn(&Self) -> u32 = |options| options.$reserved;)?
        }
    };
}
pub(crate) use impl_options;

/// True if a structure may have this size. A structure of an older header ends where a member ends: if a pointer, a number or
/// a callback were cut in two, the zeros that complete the structure would change its value. The size of each structure is a
/// multiple of its alignment.
fn is_size_of_options<T: Options>(size: usize) -> bool {
    match size {
        0..=MAX_OPTIONS if size < size_of::<T>() => T::ENDS.contains(&size),
        0..=MAX_OPTIONS => size.is_multiple_of(align_of::<T>()),
        _ => false,
    }
}

/// Reads options. A null pointer means the defaults. A shorter structure, of an older header, is completed with zeros. In a
/// longer structure, of a newer header, the bytes that this library does not know must be zero, and so must the reserved
/// member. Structures of options have no padding. If a later version put a member in the place of padding, the size of the
/// structure would not change, and older programs would leave the member uninitialised.
pub(crate) unsafe fn options<T: Options>(pointer: *const T) -> Outcome<T> {
    let mut known = MaybeUninit::<T>::zeroed();
    if pointer.is_null() {
        // SAFETY: zero bytes are valid for the type.
        return Ok(unsafe { known.assume_init() });
    }
    // SAFETY: the contract of the module guarantees a valid pointer, and the first member is the size.
    let size = unsafe { pointer.cast::<usize>().read_unaligned() };
    let name = T::NAME;
    let message = || format!("the member `size` of {name} is {size}: set it to sizeof({name})");
    ensure(is_size_of_options::<T>(size), || Failure::argument(message()))?;
    let shared = size.min(size_of::<T>());
    // SAFETY: the source has `size` bytes by the contract of the module, and the target has `size_of::<T>()` bytes. Neither
    // is less than `shared`.
    unsafe { ptr::copy_nonoverlapping(pointer.cast::<u8>(), known.as_mut_ptr().cast(), shared) };
    // SAFETY: the source has `size` bytes.
    let unknown = unsafe { slice::from_raw_parts(pointer.cast::<u8>().add(shared), size - shared) };
    let has_unknown = unknown.iter().any(|byte| *byte != 0);
    // SAFETY: `known` contains complete members of the caller's structure, and zeros in all other members. Both are valid for
    // the type.
    let known = unsafe { known.assume_init() };
    ensure(!has_unknown && T::RESERVED(&known) == 0, || {
        Failure::argument(format!(
            "{name} has options that this library does not know: set unused members to zero, or use a newer library"
        ))
    })?;
    Ok(known)
}

/// Maximum size of a structure of options. A larger value is probably that of an uninitialised member.
const MAX_OPTIONS: usize = 4096;

/// A range of memory of a call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MemoryRange {
    start: usize,
    end: usize,
    is_written: bool,
}

impl MemoryRange {
    /// Memory that the call reads or writes.
    pub(crate) fn of<T>(pointer: *const T, count: usize, is_written: bool) -> MemoryRange {
        // For a null pointer the range is empty. The conversion of the pointer reports it.
        let count = if pointer.is_null() { 0 } else { count };
        MemoryRange::at(pointer as usize, count.saturating_mul(size_of::<T>()), is_written)
    }

    /// Memory that the call reads.
    pub(crate) fn read<T>(pointer: *const T, count: usize) -> MemoryRange {
        MemoryRange::of(pointer, count, false)
    }

    /// Memory that the call writes.
    pub(crate) fn written<T>(pointer: *mut T, count: usize) -> MemoryRange {
        MemoryRange::of(pointer, count, true)
    }

    /// The input of a call whose output is at `to`. The range is empty if both are the same memory.
    pub(crate) fn input(from: *const u8, to: *mut u8, len: usize) -> MemoryRange {
        MemoryRange::read(from, if ptr::eq(from, to) { 0 } else { len })
    }

    /// A range of a buffer of a device.
    pub(crate) fn at(start: usize, len: usize, is_written: bool) -> MemoryRange {
        MemoryRange { start, end: start.saturating_add(len), is_written }
    }

    /// True if the ranges overlap, and the call writes at least one of them.
    fn collides(&self, other: &MemoryRange) -> bool {
        (self.is_written || other.is_written) && self.start.max(other.start) < self.end.min(other.end)
    }
}

/// Fails if memory that a call writes overlaps other memory of the call. Reorders the ranges.
pub(crate) fn check_overlap(ranges: &mut [MemoryRange]) -> Outcome<()> {
    ranges.sort_unstable_by_key(|range| range.start);
    let (mut end, mut end_of_written) = (0, 0);
    for range in ranges.iter().filter(|range| range.start < range.end) {
        ensure(range.start >= if range.is_written { end } else { end_of_written }, overlap)?;
        end = range.end.max(end);
        if range.is_written {
            end_of_written = range.end.max(end_of_written);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
