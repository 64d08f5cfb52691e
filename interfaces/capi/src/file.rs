//! The file format from file to file.

use std::ffi::{c_char, c_int, c_void};

use lockstep::{FileOptions as RustOptions, Sparse, Summary as StreamSummary};

use crate::engine::Engine;
use crate::ffi;
use crate::file_key::{FileKey, file_key};
use crate::stream::{Control, ProgressFn, Summary};

/// Options of files. Zeros are the defaults.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FileOptions {
    /// sizeof(lockstep_file_options)
    pub size: usize,
    /// Progress and cancellation, or NULL.
    pub progress: ProgressFn,
    /// The first argument of the progress callback.
    pub progress_user: *mut c_void,
    /// The maximum number of threads for this call; 0: the number of the engine.
    pub threads: u32,
    /// Not 0: replace the output if it exists.
    pub force: c_int,
    /// Not 0: the output is on stable storage when the call returns.
    pub sync: c_int,
    /// Not 0: write blocks of zeros to the disk. 0: blocks of 4096 zeros become holes, which take no space.
    pub no_holes: c_int,
    /// For lockstep_decrypt_file, not 0: keep the verified beginning of a damaged or truncated file. The call still fails, and
    /// `plaintext_len` of the summary is the number of bytes, 0 if there is no output. A part never replaces an existing file.
    pub partial: c_int,
    /// Zero.
    pub reserved: u32,
}

// SAFETY: the structure is `repr(C)`, its first member is a `usize`, and zeros are valid.
unsafe impl ffi::Options for FileOptions {
    const NAME: &'static str = "lockstep_file_options";
    const ENDS: &'static [usize] = ffi::member_ends!(FileOptions: size progress progress_user threads force sync no_holes partial reserved);
    const RESERVED: fn(&Self) -> u32 = |options| options.reserved;
}

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
    run(engine, key, (context, context_len), (from, to), options, summary, lockstep::encrypt_file)
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
    run(engine, key, (context, context_len), (from, to), options, summary, lockstep::decrypt_file)
}

/// A function of the Rust library that processes a file.
type Process = fn(
    &lockstep::Engine,
    &lockstep::FileKey,
    &[u8],
    &std::path::Path,
    &std::path::Path,
    RustOptions<'_>,
) -> lockstep::Result<lockstep::Summary>;

unsafe fn run(
    engine: *const Engine,
    key: *const FileKey,
    (context, context_len): (*const u8, usize),
    (from, to): (*const c_char, *const c_char),
    options: *const FileOptions,
    summary: *mut Summary,
    process: Process,
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
        let control = Control::new(options.progress, options.progress_user, options.threads);
        let done = engine.run(|engine| {
            control.run(|stream| {
                let stream = stream.partial(options.partial != 0);
                Ok(process(engine, key, context, from, to, RustOptions { stream, force, sync, sparse }))
            })
        })?;
        let result = match &done {
            Ok(done) => Some(*done),
            Err(lockstep::Error::Partial { verified, .. }) => {
                Some(StreamSummary { plaintext_len: *verified, ciphertext_len: 0 })
            }
            Err(_) => None,
        };
        if let (Some(summary), Some(result)) = (summary, result) {
            summary.write(result.into());
        }
        done?;
        Ok(())
    })
}
