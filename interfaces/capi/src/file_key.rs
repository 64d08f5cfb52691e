//! Keys of the file format.

use std::ffi::{c_char, c_int};

use lockstep::{Suite, keyfile};

use crate::error::{Failure, Outcome};
use crate::ffi;

/// A key of the file format. It is wiped when it is freed. All threads may use it at the same time.
pub struct FileKey {
    pub(crate) key: lockstep::FileKey,
}

/// Generates a key by the operating system's random generator. `bits` is 256 (Cobblestone-256) or 128 (Cobblestone-128).
///
/// Errors: LOCKSTEP_ERROR_ARGUMENT, LOCKSTEP_ERROR_RANDOM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_file_key_generate(bits: c_int, key: *mut *mut FileKey) -> c_int {
    ffi::new_object(key, |_| {
        let suite = match bits {
            128 => Suite::Cobblestone128,
            256 => Suite::Cobblestone256,
            _ => return Err(Failure::argument(format!("a key of {bits} bits: use 256 or 128"))),
        };
        Ok(FileKey { key: lockstep::FileKey::generate_for(suite)? })
    })
}

/// Makes a key from its 32 or 16 bytes, which must be uniformly random. They must not be a password or the hash of a
/// password.
///
/// Errors: LOCKSTEP_ERROR_KEY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_file_key_new(
    bytes: *const u8,
    len: usize,
    key: *mut *mut FileKey,
) -> c_int {
    ffi::new_object(key, |call| {
        Ok(FileKey { key: lockstep::FileKey::from_bytes(call.input(bytes, len, "the key")?)? })
    })
}

/// Reads a key file, as `lockstep keygen` writes it.
///
/// Errors: LOCKSTEP_ERROR_FILE, LOCKSTEP_ERROR_KEY_FILE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_file_key_read(path: *const c_char, key: *mut *mut FileKey) -> c_int {
    ffi::new_object(key, |_| Ok(FileKey { key: keyfile::read(ffi::path(path, "the path")?)? }))
}

/// Writes a key to a new key file that only its owner can read. An existing file is never overwritten.
///
/// Errors: LOCKSTEP_ERROR_EXISTS, LOCKSTEP_ERROR_FILE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_file_key_write(path: *const c_char, key: *const FileKey) -> c_int {
    ffi::call_with_key(|_| Ok(keyfile::create(ffi::path(path, "the path")?, file_key(key)?)?))
}

/// Copies the bytes of a key to `output`, which has `room` bytes. Stores the number of copied bytes: 32 or 16. Wipe the copy
/// after its use.
///
/// Errors: LOCKSTEP_ERROR_OUTPUT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_file_key_bytes(
    key: *const FileKey,
    output: *mut u8,
    room: usize,
    output_len: *mut usize,
) -> c_int {
    ffi::call_with_key(|call| {
        let output_len = call.result(output_len, "the place for the length")?;
        let bytes = file_key(key)?.as_bytes();
        ffi::copy_result(bytes, call.output(output, room, "the output")?)?;
        output_len.write(bytes.len());
        Ok(())
    })
}

/// Wipes and frees a key. No call may be using it. NULL is permitted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_file_key_free(key: *mut FileKey) {
    ffi::free(key)
}

/// The key behind a pointer.
pub(crate) unsafe fn file_key<'a>(key: *const FileKey) -> Outcome<&'a lockstep::FileKey> {
    Ok(&ffi::object(key, "the key")?.key)
}
