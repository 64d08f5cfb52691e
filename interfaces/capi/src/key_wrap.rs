//! Key wrap: RFC 3394, and with padding RFC 5649 (SP 800-38F).

use std::ffi::c_int;

use lockstep::hazmat::mode::Direction;
use lockstep::hazmat::mode::key_wrap::{self, Icv};
use zeroize::Zeroizing;

use crate::cipher::CipherKey;
use crate::engine::Engine;
use crate::ffi;

/// Wraps a key whose length is a multiple of 8 bytes and at least 16 (KW, RFC 3394). The result is 8 bytes longer than the
/// key. `room` is the size of the output in bytes. The call stores the number of bytes that it has written. The wrapping key
/// is of any mode except XTS.
///
/// Errors: LOCKSTEP_ERROR_LENGTH, LOCKSTEP_ERROR_OUTPUT, LOCKSTEP_ERROR_OVERLAP; LOCKSTEP_ERROR_KEY for a key of XTS; errors
/// of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_key_wrap(
    engine: *const Engine,
    key: *const CipherKey,
    input: *const u8,
    len: usize,
    output: *mut u8,
    room: usize,
    output_len: *mut usize,
) -> c_int {
    run(Direction::Encrypt, Icv::KW, engine, key, (input, len), (output, room), output_len)
}

/// Unwraps a key (KW, RFC 3394). The result is 8 bytes shorter than the input.
///
/// Errors: LOCKSTEP_ERROR_AUTHENTICATION, and those of lockstep_key_wrap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_key_unwrap(
    engine: *const Engine,
    key: *const CipherKey,
    input: *const u8,
    len: usize,
    output: *mut u8,
    room: usize,
    output_len: *mut usize,
) -> c_int {
    run(Direction::Decrypt, Icv::KW, engine, key, (input, len), (output, room), output_len)
}

/// Wraps a key of 1 to 2^32 - 1 bytes (KWP, RFC 5649). The length of the result is the length of the key, rounded up to a
/// multiple of 8, plus 8. The arguments and errors are those of lockstep_key_wrap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_key_wrap_padded(
    engine: *const Engine,
    key: *const CipherKey,
    input: *const u8,
    len: usize,
    output: *mut u8,
    room: usize,
    output_len: *mut usize,
) -> c_int {
    run(Direction::Encrypt, Icv::KWP, engine, key, (input, len), (output, room), output_len)
}

/// Unwraps a key (KWP, RFC 5649). The output must have room for the unwrapped key, whose length is at most the length of the
/// input minus 8.
///
/// Errors: LOCKSTEP_ERROR_AUTHENTICATION, and those of lockstep_key_wrap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_key_unwrap_padded(
    engine: *const Engine,
    key: *const CipherKey,
    input: *const u8,
    len: usize,
    output: *mut u8,
    room: usize,
    output_len: *mut usize,
) -> c_int {
    run(Direction::Decrypt, Icv::KWP, engine, key, (input, len), (output, room), output_len)
}

unsafe fn run(
    direction: Direction,
    icv: Icv,
    engine: *const Engine,
    key: *const CipherKey,
    (input, len): (*const u8, usize),
    (output, room): (*mut u8, usize),
    output_len: *mut usize,
) -> c_int {
    ffi::call_with_key(|call| {
        let output_len = call.result(output_len, "the place for the length")?;
        let input = call.copied_input(input, len, output)?;
        let output = call.output(output, room, "the output")?;
        let (engine, key) = (ffi::object(engine, "the engine")?, ffi::object(key, "the key")?.single()?);
        let result = engine.run_mode(|executor| match direction {
            Direction::Encrypt => key_wrap::wrap(executor, key, icv, &input).map(Zeroizing::new),
            Direction::Decrypt => key_wrap::unwrap(executor, key, icv, &input),
        })?;
        ffi::copy_result(&result, output)?;
        output_len.write(result.len());
        Ok(())
    })
}
