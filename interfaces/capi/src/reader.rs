//! Random access to a message of the file format.

use std::ffi::{c_char, c_int, c_void};
use std::fs::File;
use std::io;

use lockstep::{ReadAt, file};

use crate::engine::{Engine, free_with_engine};
use crate::error::Outcome;
use crate::ffi::{self, User};
use crate::file_key::{FileKey, file_key};

/// Fills a buffer with `len` bytes of the encrypted message or file from an offset. Returns 0, or another number for an error.
/// Calls may run on any thread, and several calls may run at the same time.
pub type ReadAtFn =
    Option<unsafe extern "C-unwind" fn(user: *mut c_void, offset: u64, buffer: *mut u8, len: usize) -> c_int>;

/// A message of the file format with random access. All threads may use it at the same time.
pub struct Reader {
    engine: Engine,
    inner: lockstep::Reader<Source>,
}

/// The encrypted message or file.
pub(crate) enum Source {
    File(File),
    /// A callback, its argument, and the length of the message in bytes.
    Callback(ReadAtFn, User, u64),
}

impl Source {
    pub(crate) unsafe fn open(path: *const c_char) -> Outcome<Source> {
        Ok(Source::File(file::open_input(ffi::path(path, "the path")?)?))
    }

    pub(crate) fn callback(read_at: ReadAtFn, user: *mut c_void, size: u64) -> Outcome<Source> {
        read_at.ok_or_else(|| ffi::null("the read callback"))?;
        Ok(Source::Callback(read_at, User(user), size))
    }
}

impl ReadAt for Source {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let (read_at, user) = match self {
            Source::File(file) => return ReadAt::read_exact_at(file, buffer, offset),
            Source::Callback(.., size) if offset.saturating_add(buffer.len() as u64) > *size => {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Source::Callback(read_at, user, _) => (*read_at, user.0),
        };
        let Some(read_at) = read_at.filter(|_| !buffer.is_empty()) else { return Ok(()) };
        // SAFETY: by the contract of `ffi`, the callback takes its own argument, and writes at most as many bytes as the
        // buffer has.
        match unsafe { read_at(user, offset, buffer.as_mut_ptr(), buffer.len()) } {
            0 => Ok(()),
            code => Err(io::Error::other(format!("the read callback returned {code}"))),
        }
    }

    fn size(&self) -> io::Result<u64> {
        match self {
            Source::File(file) => file.size(),
            Source::Callback(.., size) => Ok(*size),
        }
    }
}

/// Opens an encrypted file for random access: checks its header and its end. The file may be in use by other readers, but
/// nothing may write to it.
///
/// Errors: LOCKSTEP_ERROR_FILE, LOCKSTEP_ERROR_WRONG_KEY, LOCKSTEP_ERROR_TRUNCATED, LOCKSTEP_ERROR_AUTHENTICATION,
/// LOCKSTEP_ERROR_READ; errors of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_reader_open_file(
    engine: *const Engine,
    key: *const FileKey,
    context: *const u8,
    context_len: usize,
    path: *const c_char,
    reader: *mut *mut Reader,
) -> c_int {
    open(engine, key, (context, context_len), reader, || Source::open(path))
}

/// Opens an encrypted message of `size` bytes, which a callback reads, for random access. The callback and its argument are
/// used until the reader is freed.
///
/// Errors: those of lockstep_reader_open_file, except LOCKSTEP_ERROR_FILE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_reader_open(
    engine: *const Engine,
    key: *const FileKey,
    context: *const u8,
    context_len: usize,
    read_at: ReadAtFn,
    user: *mut c_void,
    size: u64,
    reader: *mut *mut Reader,
) -> c_int {
    open(engine, key, (context, context_len), reader, || Source::callback(read_at, user, size))
}

unsafe fn open(
    engine: *const Engine,
    key: *const FileKey,
    (context, context_len): (*const u8, usize),
    reader: *mut *mut Reader,
    source: impl FnOnce() -> Outcome<Source>,
) -> c_int {
    ffi::new_object(reader, |call| {
        let context = call.input(context, context_len, "the context")?;
        let (engine, key) = (ffi::object(engine, "the engine")?, file_key(key)?);
        let source = source()?;
        let inner = engine.run(|engine| Ok(lockstep::Reader::open(engine, key, context, source)?))?;
        Ok(Reader { engine: engine.clone(), inner })
    })
}

/// Returns the length of the plaintext in bytes; 0 if the reader is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_reader_len(reader: *const Reader) -> u64 {
    reader.as_ref().map_or(0, |reader| reader.inner.len())
}

/// Reads plaintext from an offset to a buffer until the buffer is full or the message ends, and stores the number of bytes.
/// Each byte is verified. After an error the buffer is zeroed, or unchanged if nothing was read.
///
/// Errors: LOCKSTEP_ERROR_AUTHENTICATION, LOCKSTEP_ERROR_READ; errors of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_reader_read(
    reader: *const Reader,
    offset: u64,
    buffer: *mut u8,
    len: usize,
    read: *mut usize,
) -> c_int {
    ffi::read((buffer, len), read, |buffer| {
        let reader = ffi::object(reader, "the reader")?;
        reader.engine.run(|_| Ok(reader.inner.read_at(offset, buffer)?))
    })
}

/// Frees a reader. No call may be using it. NULL is permitted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_reader_free(reader: *mut Reader) {
    free_with_engine(reader, |reader| &reader.engine)
}
