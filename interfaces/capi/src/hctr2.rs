//! HCTR2: a wide-block mode, in which each bit of the ciphertext depends on each bit of the plaintext.

use std::ffi::c_int;

use lockstep::hazmat::mode::Direction;
use lockstep::hazmat::mode::hctr2;

use crate::cipher::CipherKey;
use crate::engine::Engine;
use crate::error::Outcome;
use crate::ffi::{self, MemoryRange};

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
    ffi::guarded_key(|| {
        // SAFETY: the pointers are valid, as the header demands.
        unsafe {
            ffi::produce(hctr2_key, || {
                let key = ffi::object(key, "the key")?.single()?;
                let engine = ffi::object(engine, "the engine")?;
                engine.run_mode(|executor| Ok(Hctr2Key { key: hctr2::Hctr2Key::new(executor, key.clone())? }))
            })
        }
    })
}

/// Wipes and frees a key. No call may be using it. NULL is permitted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_hctr2_key_free(key: *mut Hctr2Key) {
    // SAFETY: the pointer is null or a key that is not used again, as the header demands.
    unsafe { ffi::free(key) }
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
    // SAFETY: the pointers are valid, as the header demands.
    ffi::guarded(|| unsafe { run(Direction::Encrypt, engine, key, (tweak, tweak_len), input, len, output) })
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
    // SAFETY: the pointers are valid, as the header demands.
    ffi::guarded(|| unsafe { run(Direction::Decrypt, engine, key, (tweak, tweak_len), input, len, output) })
}

/// # Safety
/// The pointers are valid, as the header demands.
unsafe fn run(
    direction: Direction,
    engine: *const Engine,
    key: *const Hctr2Key,
    (tweak, tweak_len): (*const u8, usize),
    input: *const u8,
    len: usize,
    output: *mut u8,
) -> Outcome<()> {
    ffi::check_data(input, output, len)?;
    let mut ranges = [
        MemoryRange::read(tweak, tweak_len),
        MemoryRange::input(input, output, len),
        MemoryRange::written(output, len),
    ];
    ffi::check_overlap(&mut ranges)?;
    // SAFETY: the caller guarantees that the pointers are valid, and that written memory overlaps nothing else.
    let (engine, key, tweak, data) = unsafe {
        (
            ffi::object(engine, "the engine")?,
            &ffi::object(key, "the key")?.key,
            ffi::input(tweak, tweak_len, "the tweak")?,
            ffi::data(input, output, len)?,
        )
    };
    engine.run_mode(|executor| hctr2::run(executor, direction, key, tweak, data))
}
