//! Encryption and decryption of buffers in the file format.

use std::ffi::c_int;

use crate::engine::Engine;
use crate::ffi;
use crate::file_key::{FileKey, file_key};

/// The name of the place for a length in error messages.
const LENGTH: &str = "the place for the length";

/// Stores the length of the encrypted message for a plaintext of `len` bytes.
///
/// Errors: LOCKSTEP_ERROR_TOO_LONG.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_sealed_len(len: u64, sealed_len: *mut u64) -> c_int {
    ffi::store(sealed_len, LENGTH, |_| Ok(lockstep::ciphertext_len(len)?))
}

/// Stores the length of the plaintext of an encrypted message of `sealed_len` bytes.
///
/// Errors: LOCKSTEP_ERROR_TRUNCATED if no message has this length, LOCKSTEP_ERROR_TOO_LONG.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_opened_len(sealed_len: u64, len: *mut u64) -> c_int {
    ffi::store(len, LENGTH, |_| Ok(lockstep::plaintext_len(sealed_len)?))
}

/// Encrypts a buffer in the file format (C2SP chunked encryption, "Cobblestone"). The salt is random, so the caller passes no
/// nonce. The context is data about the message that both sides know; it may be empty. `room` is the size of the output in
/// bytes: at least the length that lockstep_sealed_len stores. `output_len` receives the number of bytes that were written.
/// The output must not overlap the input. After an error each byte of the output is zeroed or unchanged.
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
    let memory = ((context, context_len), (input, len), (output, room), output_len);
    run(engine, key, memory, lockstep::seal_into)
}

/// Decrypts a message of the file format. `room` is the size of the output in bytes: at least the length that
/// lockstep_opened_len stores. `output_len` receives the number of bytes that were written. The output must not overlap the
/// input. After an error the output contains no plaintext: each byte is zeroed or unchanged.
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
    let memory = ((context, context_len), (input, len), (output, room), output_len);
    run(engine, key, memory, lockstep::open_into)
}

/// A function of the Rust library that processes a buffer.
type Process = fn(&lockstep::Engine, &lockstep::FileKey, &[u8], &[u8], &mut [u8]) -> lockstep::Result<usize>;

/// The arguments that both directions share: the context, the input, and the output with its length.
type Memory = ((*const u8, usize), (*const u8, usize), (*mut u8, usize), *mut usize);

unsafe fn run(
    engine: *const Engine,
    key: *const FileKey,
    (context, input, output, output_len): Memory,
    process: Process,
) -> c_int {
    ffi::store(output_len, LENGTH, |call| {
        let context = call.input(context.0, context.1, "the context")?;
        let input = call.input(input.0, input.1, "the input")?;
        let output = call.output(output.0, output.1, "the output")?;
        let (engine, key) = (ffi::object(engine, "the engine")?, file_key(key)?);
        engine.run(|engine| Ok(process(engine, key, context, input, output)?))
    })
}
