//! CBC with ciphertext stealing (SP 800-38A, addendum).

use std::ffi::c_int;

use lockstep::hazmat::Error;
use lockstep::hazmat::data::HostData;
use lockstep::hazmat::mode::Direction;
use lockstep::hazmat::mode::cbc_cts::{self, Variant};
use zeroize::Zeroize;

use crate::cipher::CipherKey;
use crate::engine::Engine;
use crate::error::Outcome;
use crate::ffi;

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
    run(Direction::Encrypt, engine, variant, key, iv, (input, output, len))
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
    run(Direction::Decrypt, engine, variant, key, iv, (input, output, len))
}

/// The variant that a number LOCKSTEP_CTS_ stands for.
pub(crate) fn variant(number: c_int) -> Outcome<Variant> {
    ffi::numbered(&Variant::ALL, 1, number, "a variant: use a number LOCKSTEP_CTS_")
}

unsafe fn run(
    direction: Direction,
    engine: *const Engine,
    variant: c_int,
    key: *const CipherKey,
    iv: *mut u8,
    (input, output, len): (*const u8, *mut u8, usize),
) -> c_int {
    ffi::call(|call| {
        let variant = self::variant(variant)?;
        let mut data = call.data(input, output, len)?;
        let iv = call.block(iv, "the IV")?;
        if len < 16 {
            // This check precedes the copy below, because a refused call must not change the output.
            return Err(Error::DataLength { mode: "CBC-CTS", expected: "at least 16 bytes", got: len }.into());
        }
        let (engine, key) = (ffi::object(engine, "the engine")?, ffi::object(key, "the key")?.single()?);
        engine.run_mode(|executor| {
            // The mode works in place, so the input is copied to the output. All arguments have been checked before, because
            // a refused call must not change the output.
            if let HostData::Copy { from, to, .. } = &mut data {
                to.copy_from_slice(from);
            }
            let data = data.output();
            // After an error the output is zeroed, because the copy of the input must not look like a result.
            cbc_cts::run_in_place(executor, direction, key, variant, iv, data).inspect_err(|_| data.zeroize())
        })
    })
}
