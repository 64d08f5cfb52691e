//! HCTR2: a wide-block mode, in which each bit of the ciphertext depends on each bit of the plaintext.

use std::ffi::c_int;

use lockstep::hazmat::data::Data;
use lockstep::hazmat::mode::Direction;
use lockstep::hazmat::mode::hctr2;

use crate::cipher::CipherKey;
use crate::engine::Engine;
use crate::ffi;

/// A key of HCTR2. It is wiped when it is freed. All threads may use it at the same time.
pub struct Hctr2Key {
    key: hctr2::Hctr2Key,
}

/// Makes a key for HCTR2 from a key of any mode except XTS.
///
/// Errors: LOCKSTEP_ERROR_KEY for a key of XTS; errors of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_hctr2_key_new(
    engine: *const Engine,
    key: *const CipherKey,
    hctr2_key: *mut *mut Hctr2Key,
) -> c_int {
    ffi::new_object(hctr2_key, |_| {
        let key = ffi::object(key, "the key")?.single()?;
        let engine = ffi::object(engine, "the engine")?;
        engine.run_mode(|executor| Ok(Hctr2Key { key: hctr2::Hctr2Key::new(executor, key.clone())? }))
    })
}

/// Wipes and frees a key. No call may be using it. NULL is permitted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_hctr2_key_free(key: *mut Hctr2Key) {
    ffi::free(key)
}

/// Encrypts a message of at least 16 bytes by HCTR2, without authentication. The tweak has any length. `output` has `len`
/// bytes and is `input` or separate memory.
///
/// Errors: LOCKSTEP_ERROR_LENGTH, LOCKSTEP_ERROR_OVERLAP; errors of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_hctr2_encrypt(
    engine: *const Engine,
    key: *const Hctr2Key,
    tweak: *const u8,
    tweak_len: usize,
    input: *const u8,
    len: usize,
    output: *mut u8,
) -> c_int {
    run(Direction::Encrypt, engine, key, (tweak, tweak_len), (input, output, len))
}

/// Decrypts a message. The arguments and errors are those of lockstep_hctr2_encrypt.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_hctr2_decrypt(
    engine: *const Engine,
    key: *const Hctr2Key,
    tweak: *const u8,
    tweak_len: usize,
    input: *const u8,
    len: usize,
    output: *mut u8,
) -> c_int {
    run(Direction::Decrypt, engine, key, (tweak, tweak_len), (input, output, len))
}

unsafe fn run(
    direction: Direction,
    engine: *const Engine,
    key: *const Hctr2Key,
    (tweak, tweak_len): (*const u8, usize),
    (input, output, len): (*const u8, *mut u8, usize),
) -> c_int {
    ffi::call(|call| {
        let (engine, key) = (ffi::object(engine, "the engine")?, &ffi::object(key, "the key")?.key);
        let tweak = call.input(tweak, tweak_len, "the tweak")?;
        let data = Data::Host(call.data(input, output, len)?);
        engine.run_mode(|executor| hctr2::run(executor, direction, key, tweak, data))
    })
}
