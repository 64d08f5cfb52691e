//! CBC with ciphertext stealing (SP 800-38A, addendum).

use std::ffi::c_int;

use lockstep::hazmat::Error;
use lockstep::hazmat::mode::Direction;
use lockstep::hazmat::mode::cbc_cts::{self, Variant};

use zeroize::Zeroize;

use crate::cipher::CipherKey;
use crate::engine::Engine;
use crate::error::{Failure, Outcome};
use crate::ffi::{self, MemoryRange};

/// CBC-CS1: the partial block comes before the last whole block.
pub const LOCKSTEP_CTS_CS1: c_int = 1;
/// CBC-CS2: the last two blocks are exchanged if the last one is partial.
pub const LOCKSTEP_CTS_CS2: c_int = 2;
/// CBC-CS3: the last two blocks are always exchanged (Kerberos 5).
pub const LOCKSTEP_CTS_CS3: c_int = 3;

/// Encrypts a message of at least 16 bytes by CBC with ciphertext stealing. `variant` is a number LOCKSTEP_CTS_. `iv` has 16
/// bytes and is updated. `output` has `len` bytes and is `input` or separate memory. The key is of any mode except XTS.
///
/// Errors: LOCKSTEP_ERROR_ARGUMENT, LOCKSTEP_ERROR_LENGTH, LOCKSTEP_ERROR_OVERLAP; LOCKSTEP_ERROR_KEY for a key of XTS;
/// errors of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_cbc_cts_encrypt(
    engine: *const Engine,
    variant: c_int,
    key: *const CipherKey,
    iv: *mut u8,
    input: *const u8,
    len: usize,
    output: *mut u8,
) -> c_int {
    // SAFETY: the pointers are valid, as the header demands.
    ffi::guarded(|| unsafe { run(Direction::Encrypt, engine, variant, key, iv, input, len, output) })
}

/// Decrypts a message. The arguments and errors are those of lockstep_cbc_cts_encrypt.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_cbc_cts_decrypt(
    engine: *const Engine,
    variant: c_int,
    key: *const CipherKey,
    iv: *mut u8,
    input: *const u8,
    len: usize,
    output: *mut u8,
) -> c_int {
    // SAFETY: the pointers are valid, as the header demands.
    ffi::guarded(|| unsafe { run(Direction::Decrypt, engine, variant, key, iv, input, len, output) })
}

/// # Safety
/// The pointers are valid, as the header demands.
unsafe fn run(
    direction: Direction,
    engine: *const Engine,
    variant: c_int,
    key: *const CipherKey,
    iv: *mut u8,
    input: *const u8,
    len: usize,
    output: *mut u8,
) -> Outcome<()> {
    let variant = match variant {
        LOCKSTEP_CTS_CS1 => Variant::Cs1,
        LOCKSTEP_CTS_CS2 => Variant::Cs2,
        LOCKSTEP_CTS_CS3 => Variant::Cs3,
        _ => {
            return Err(Failure::argument(format!("{variant} is not a variant: use a number LOCKSTEP_CTS_")));
        }
    };
    let mut ranges = [
        MemoryRange::input(input, output, len),
        MemoryRange::written(output, len),
        MemoryRange::written(iv, 16),
    ];
    ffi::check_overlap(&mut ranges)?;
    ffi::check_data(input, output, len)?;
    if len < 16 {
        // A refused call does not change the output.
        return Err(Error::DataLength { mode: "CBC-CTS", expected: "at least 16 bytes", got: len }.into());
    }
    // SAFETY: the caller guarantees that the pointers are valid, and that written memory overlaps nothing else.
    let (engine, key, iv) = unsafe {
        let (engine, key) = (ffi::object(engine, "the engine")?, ffi::object(key, "the key")?.single()?);
        (engine, key, ffi::block(iv, "the IV")?)
    };
    engine.run_mode(|executor| {
        // SAFETY: both pointers are valid for this length, and are the same or separate memory. The input is copied, because
        // the mode works in place. The engine has been checked: a refused call does not change the output.
        let data = unsafe {
            std::ptr::copy(input, output, len);
            std::slice::from_raw_parts_mut(output, len)
        };
        let outcome = match direction {
            Direction::Encrypt => cbc_cts::encrypt(executor, key, variant, iv, data),
            Direction::Decrypt => cbc_cts::decrypt(executor, key, variant, iv, data),
        };
        if outcome.is_err() {
            // A copy of the input must not look like a result.
            data.zeroize();
        }
        outcome
    })
}
