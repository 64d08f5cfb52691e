//! Encryption and decryption of streams in the file format. Callbacks read the input, write the output, and report progress.

use std::ffi::{c_int, c_void};
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use lockstep::aead::Direction;
use lockstep::{Options, Summary as StreamSummary};

use crate::engine::Engine;
use crate::error::Outcome;
use crate::ffi::{self, User};
use crate::file_key::{FileKey, file_key};

/// Reads up to `len` bytes to `buffer`. Returns the number of bytes, 0 at the end of the input, or a negative number for an
/// error. The calls of this callback for one stream do not overlap in time, but they may run on any thread.
pub type ReadFn =
    Option<unsafe extern "C-unwind" fn(user: *mut c_void, buffer: *mut u8, len: usize) -> isize>;

/// Writes up to `len` bytes of `buffer`. Returns the number of bytes, which is at least 1, or a negative number for an error.
/// The calls of this callback for one stream do not overlap in time, but they may run on any thread, and at the same time as
/// a call of the callback that reads.
pub type WriteFn =
    Option<unsafe extern "C-unwind" fn(user: *mut c_void, buffer: *const u8, len: usize) -> isize>;

/// Receives the number of plaintext bytes that have been processed so far. A result other than 0 cancels the call before the
/// next piece of the input is processed; if there is no next piece, the call succeeds. The calls do not run at the same time,
/// but they may run on any thread.
pub type ProgressFn = Option<unsafe extern "C-unwind" fn(user: *mut c_void, bytes: u64) -> c_int>;

/// Options of a stream. Zeros are the defaults.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct StreamOptions {
    /// sizeof(lockstep_stream_options)
    pub size: usize,
    /// The callback for progress and cancellation, or NULL.
    pub progress: ProgressFn,
    /// The first argument of the progress callback.
    pub progress_user: *mut c_void,
    /// The maximum number of threads for this call. 0 means all threads of the engine. With 1, all callbacks run on the
    /// calling thread.
    pub threads: u32,
    /// Must be zero.
    pub reserved: u32,
}

// SAFETY: the structure is `repr(C)`, its first member is a `usize`, and zeros are valid.
ffi::impl_options!(StreamOptions, "lockstep_stream_options": size progress progress_user threads; reserved);

/// The result of an encryption or decryption.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Summary {
    /// Bytes of plaintext.
    pub plaintext_len: u64,
    /// Bytes of the encrypted message.
    pub ciphertext_len: u64,
}

impl From<StreamSummary> for Summary {
    fn from(summary: StreamSummary) -> Summary {
        Summary { plaintext_len: summary.plaintext_len, ciphertext_len: summary.ciphertext_len }
    }
}

/// Encrypts a stream in the file format, in bounded memory and on all threads of the engine. `options` and `summary` may be
/// NULL. After an error the bytes that were written are not a complete message.
///
/// Errors: LOCKSTEP_ERROR_READ or LOCKSTEP_ERROR_WRITE if a callback failed, LOCKSTEP_ERROR_CANCELLED, LOCKSTEP_ERROR_RANDOM,
/// LOCKSTEP_ERROR_TOO_LONG; errors of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_encrypt_stream(
    engine: *const Engine,
    key: *const FileKey,
    context: *const u8,
    context_len: usize,
    read: ReadFn,
    read_user: *mut c_void,
    write: WriteFn,
    write_user: *mut c_void,
    options: *const StreamOptions,
    summary: *mut Summary,
) -> c_int {
    let (reader, writer) = (ReadCallback(read, User(read_user)), WriteCallback(write, User(write_user)));
    run(Direction::Encrypt, engine, key, (context, context_len), (reader, writer), options, summary)
}

/// Decrypts a stream of the file format. Bytes that are written are verified, but after an error they are only a part of the
/// plaintext: discard them. The arguments are those of lockstep_encrypt_stream.
///
/// Errors: LOCKSTEP_ERROR_AUTHENTICATION, LOCKSTEP_ERROR_WRONG_KEY, LOCKSTEP_ERROR_TRUNCATED, and those of
/// lockstep_encrypt_stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_decrypt_stream(
    engine: *const Engine,
    key: *const FileKey,
    context: *const u8,
    context_len: usize,
    read: ReadFn,
    read_user: *mut c_void,
    write: WriteFn,
    write_user: *mut c_void,
    options: *const StreamOptions,
    summary: *mut Summary,
) -> c_int {
    let (reader, writer) = (ReadCallback(read, User(read_user)), WriteCallback(write, User(write_user)));
    run(Direction::Decrypt, engine, key, (context, context_len), (reader, writer), options, summary)
}

unsafe fn run(
    direction: Direction,
    engine: *const Engine,
    key: *const FileKey,
    (context, context_len): (*const u8, usize),
    (reader, writer): (ReadCallback, WriteCallback),
    options: *const StreamOptions,
    summary: *mut Summary,
) -> c_int {
    ffi::call(|call| {
        reader.0.ok_or_else(|| ffi::null("the read callback"))?;
        writer.0.ok_or_else(|| ffi::null("the write callback"))?;
        let summary = call.optional_result(summary)?;
        let context = call.input(context, context_len, "the context")?;
        let (engine, key) = (ffi::object(engine, "the engine")?, file_key(key)?);
        let StreamOptions { progress, progress_user, threads, .. } = ffi::options(options)?;
        let done = engine.run(|engine| {
            with_options(progress, User(progress_user), threads, |options| match direction {
                Direction::Encrypt => lockstep::encrypt(engine, key, context, reader, writer, options),
                Direction::Decrypt => lockstep::decrypt(engine, key, context, reader, writer, options),
            })
        })?;
        if let Some(summary) = summary {
            summary.write(done.into());
        }
        Ok(())
    })
}

/// Calls `work` with options of the Rust library, which contain the progress callback, the flag for cancellation and the
/// number of threads.
pub(crate) fn with_options<T>(
    progress: ProgressFn,
    user: User,
    threads: u32,
    work: impl FnOnce(Options<'_>) -> lockstep::Result<T>,
) -> Outcome<T> {
    let is_cancelled = AtomicBool::new(false);
    let report = |bytes| {
        let user = &user;
        // SAFETY: the callback takes its own argument: the contract of `ffi`.
        if progress.is_some_and(|callback| unsafe { callback(user.0, bytes) } != 0) {
            is_cancelled.store(true, Ordering::Relaxed);
        }
    };
    Ok(work(Options {
        progress: progress.is_some().then_some(&report),
        interrupt: Some(&is_cancelled),
        max_threads: (threads != 0).then_some(threads as usize),
        partial: false,
    })?)
}

/// A callback that reads, with its argument.
struct ReadCallback(ReadFn, User);

impl Read for ReadCallback {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(read) = self.0.filter(|_| !buffer.is_empty()) else { return Ok(0) };
        // SAFETY: the callback takes its own argument and writes at most as many bytes as the buffer has.
        let got = unsafe { read(self.1.0, buffer.as_mut_ptr(), buffer.len()) };
        check_count("read", got, buffer.len())
    }
}

/// A callback that writes, with its argument.
struct WriteCallback(WriteFn, User);

impl Write for WriteCallback {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let Some(write) = self.0.filter(|_| !buffer.is_empty()) else { return Ok(0) };
        // SAFETY: the callback takes its own argument and reads at most as many bytes as the buffer has.
        let got = unsafe { write(self.1.0, buffer.as_ptr(), buffer.len()) };
        check_count("write", got, buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn check_count(name: &str, got: isize, most: usize) -> io::Result<usize> {
    match usize::try_from(got) {
        Ok(count) if count <= most => Ok(count),
        Ok(_) => Err(io::Error::other(format!(
            "the {name} callback returned {got}, but the buffer has {most} bytes"
        ))),
        Err(_) => Err(io::Error::other(format!("the {name} callback returned {got}"))),
    }
}
