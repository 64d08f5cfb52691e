//! Encryption and decryption of a file into another file, in the file format.

use std::ffi::{c_char, c_int, c_void};

use lockstep::aead::Direction;
use lockstep::{FileOptions as RustOptions, Options, Sparse};

use crate::engine::Engine;
use crate::ffi::{self, User};
use crate::file_key::{FileKey, file_key};
use crate::stream::{ProgressFn, Summary, with_options};

/// Options of files. Zeros are the defaults.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FileOptions {
    /// sizeof(lockstep_file_options)
    pub size: usize,
    /// The callback for progress and cancellation, or NULL.
    pub progress: ProgressFn,
    /// The first argument of the progress callback.
    pub progress_user: *mut c_void,
    /// The maximum number of threads for this call. 0 means all threads of the engine.
    pub threads: u32,
    /// Not 0: replace the output if it exists.
    pub force: c_int,
    /// Not 0: the output is on stable storage when the call returns.
    pub sync: c_int,
    /// Not 0: write blocks of zeros to the disk. 0: blocks of 4096 zeros become holes, which take no space.
    pub no_holes: c_int,
    /// For lockstep_decrypt_file, not 0: keep the verified beginning of a damaged or truncated file. The call still fails, and
    /// `plaintext_len` of the summary is the number of bytes that were kept; it is 0 if there is no output. An existing output is
    /// never replaced by an incomplete file.
    pub partial: c_int,
    /// Must be zero.
    pub reserved: u32,
}

// SAFETY: the structure is `repr(C)`, its first member is a `usize`, and zeros are valid.
ffi::impl_options!(FileOptions, "lockstep_file_options": size progress progress_user threads force sync no_holes partial; reserved);

/// Encrypts a file to a file in the file format. The output appears complete or not at all. `options` and `summary` may be
/// NULL.
///
/// Errors: LOCKSTEP_ERROR_FILE, LOCKSTEP_ERROR_EXISTS, LOCKSTEP_ERROR_SAME_FILE, LOCKSTEP_ERROR_INPUT_CHANGED, and those of
/// lockstep_encrypt_stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_encrypt_file(
    engine: *const Engine,
    key: *const FileKey,
    context: *const u8,
    context_len: usize,
    from: *const c_char,
    to: *const c_char,
    options: *const FileOptions,
    summary: *mut Summary,
) -> c_int {
    run(Direction::Encrypt, engine, key, (context, context_len), (from, to), options, summary)
}

/// Decrypts a file to a file. The output appears complete and verified or not at all. The arguments are those of
/// lockstep_encrypt_file.
///
/// Errors: LOCKSTEP_ERROR_AUTHENTICATION, LOCKSTEP_ERROR_WRONG_KEY, LOCKSTEP_ERROR_TRUNCATED, and those of
/// lockstep_encrypt_file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_decrypt_file(
    engine: *const Engine,
    key: *const FileKey,
    context: *const u8,
    context_len: usize,
    from: *const c_char,
    to: *const c_char,
    options: *const FileOptions,
    summary: *mut Summary,
) -> c_int {
    run(Direction::Decrypt, engine, key, (context, context_len), (from, to), options, summary)
}

unsafe fn run(
    direction: Direction,
    engine: *const Engine,
    key: *const FileKey,
    (context, context_len): (*const u8, usize),
    (from, to): (*const c_char, *const c_char),
    options: *const FileOptions,
    summary: *mut Summary,
) -> c_int {
    ffi::call(|call| {
        let summary = call.optional_result(summary)?;
        let context = call.input(context, context_len, "the context")?;
        let (engine, key) = (ffi::object(engine, "the engine")?, file_key(key)?);
        let (from, to) =
            (ffi::path(from, "the path of the input")?, ffi::path(to, "the path of the output")?);
        let options = ffi::options(options)?;
        let (force, sync) = (options.force != 0, options.sync != 0);
        let sparse = if options.no_holes != 0 { Sparse::Never } else { Sparse::Always };
        let FileOptions { progress, progress_user, threads, .. } = options;
        let done = engine.run(|engine| {
            with_options(progress, User(progress_user), threads, |stream| {
                let stream = Options { partial: options.partial != 0, ..stream };
                let options = RustOptions { stream, force, sync, sparse };
                Ok(match direction {
                    Direction::Encrypt => lockstep::encrypt_file(engine, key, context, from, to, options),
                    Direction::Decrypt => lockstep::decrypt_file(engine, key, context, from, to, options),
                })
            })
        })?;
        let result = match &done {
            Ok(done) => Some(Summary::from(*done)),
            Err(lockstep::Error::Partial { verified, .. }) => {
                Some(Summary { plaintext_len: *verified, ciphertext_len: 0 })
            }
            Err(_) => None,
        };
        if let (Some(summary), Some(result)) = (summary, result) {
            summary.write(result);
        }
        done?;
        Ok(())
    })
}
