//! The file format in buffers.

use std::ffi::c_int;

use lockstep::hazmat::Error;

use crate::engine::Engine;
use crate::error::Outcome;
use crate::ffi::{self, MemoryRange};
use crate::file_key::{FileKey, file_key};

/// Stores the length of the encrypted message for a plaintext of `len` bytes.
///
/// Errors: LOCKSTEP_ERROR_TOO_LONG.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_sealed_len(len: u64, sealed_len: *mut u64) -> c_int {
    // SAFETY: the pointer is valid, as the header demands.
    ffi::guarded(|| unsafe {
        ffi::store(sealed_len, lockstep::ciphertext_len(len)?, "the place for the length")
    })
}

/// Stores the length of the plaintext of an encrypted message of `sealed_len` bytes.
///
/// Errors: LOCKSTEP_ERROR_TRUNCATED if no message has this length, LOCKSTEP_ERROR_TOO_LONG.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_opened_len(sealed_len: u64, len: *mut u64) -> c_int {
    // SAFETY: the pointer is valid, as the header demands.
    ffi::guarded(|| unsafe {
        ffi::store(len, lockstep::plaintext_len(sealed_len)?, "the place for the length")
    })
}

/// Encrypts a buffer in the file format (C2SP chunked encryption, "Cobblestone"). The salt is random, so the caller passes no
/// nonce. The context is data about the message that both sides know; it may be empty. `room` is the size of the output, which
/// needs lockstep_sealed_len bytes; the number of bytes written is stored. The output must not overlap the input. After an
/// error each byte of the output is zeroed or unchanged.
///
/// Errors: LOCKSTEP_ERROR_OUTPUT, LOCKSTEP_ERROR_OVERLAP, LOCKSTEP_ERROR_RANDOM, LOCKSTEP_ERROR_TOO_LONG; errors of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_seal(
    engine: *const Engine,
    key: *const FileKey,
    context: *const u8,
    context_len: usize,
    input: *const u8,
    len: usize,
    output: *mut u8,
    room: usize,
    output_len: *mut usize,
) -> c_int {
    ffi::guarded(|| {
        let call = Call { engine, key, context, context_len, input, len, output, room, output_len };
        // SAFETY: the pointers are valid, as the header demands.
        unsafe { call.run(lockstep::ciphertext_len(len as u64)?, lockstep::seal_into) }
    })
}

/// Decrypts a message of the file format. `room` is the size of the output, which needs lockstep_opened_len bytes; the number
/// of bytes written is stored. The output must not overlap the input. After an error the output has no plaintext: each byte is
/// zeroed or unchanged.
///
/// Errors: LOCKSTEP_ERROR_AUTHENTICATION, LOCKSTEP_ERROR_WRONG_KEY, LOCKSTEP_ERROR_TRUNCATED, LOCKSTEP_ERROR_OUTPUT,
/// LOCKSTEP_ERROR_OVERLAP; errors of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_open(
    engine: *const Engine,
    key: *const FileKey,
    context: *const u8,
    context_len: usize,
    input: *const u8,
    len: usize,
    output: *mut u8,
    room: usize,
    output_len: *mut usize,
) -> c_int {
    ffi::guarded(|| {
        let call = Call { engine, key, context, context_len, input, len, output, room, output_len };
        // SAFETY: the pointers are valid, as the header demands.
        unsafe { call.run(lockstep::plaintext_len(len as u64)?, lockstep::open_into) }
    })
}

/// A function of the Rust library that processes a buffer.
type Process = fn(&lockstep::Engine, &lockstep::FileKey, &[u8], &[u8], &mut [u8]) -> lockstep::Result<usize>;

/// The arguments of a call.
struct Call {
    engine: *const Engine,
    key: *const FileKey,
    context: *const u8,
    context_len: usize,
    input: *const u8,
    len: usize,
    output: *mut u8,
    room: usize,
    output_len: *mut usize,
}

impl Call {
    /// # Safety
    /// The pointers are valid, as the header demands.
    unsafe fn run(&self, needed: u64, process: Process) -> Outcome<()> {
        ffi::check_pointer(self.output_len, "the place for the length")?;
        let mut ranges = [
            MemoryRange::read(self.context, self.context_len),
            MemoryRange::read(self.input, self.len),
            MemoryRange::written(self.output, self.room),
            MemoryRange::written(self.output_len, 1),
        ];
        ffi::check_overlap(&mut ranges)?;
        if needed > self.room as u64 {
            // The size of the output is checked before the work, because the length of the result is known.
            let needed = usize::try_from(needed).unwrap_or(usize::MAX);
            return Err(Error::OutputLength { needed, got: self.room }.into());
        }
        // SAFETY: the caller guarantees that the pointers are valid, and that written memory overlaps nothing else.
        unsafe {
            let (engine, key) = (ffi::object(self.engine, "the engine")?, file_key(self.key)?);
            let context = ffi::input(self.context, self.context_len, "the context")?;
            let input = ffi::input(self.input, self.len, "the input")?;
            let output = ffi::output(self.output, self.room, "the output")?;
            let len = engine.run(|engine| Ok(process(engine, key, context, input, output)?))?;
            ffi::store(self.output_len, len, "the place for the length")
        }
    }
}
