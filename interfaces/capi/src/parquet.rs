//! Encrypted Parquet files: functions that read the plain form of a file at any offset, decrypt a file to another file, and encrypt
//! a file with keys of columns.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::ptr;

use lockstep::OutputOptions;
use lockstep_parquet::{Algorithm, ColumnKey, Error, KeySource, Keys, PlainView, Policy, ReadOptions};
use zeroize::Zeroizing;

use crate::engine::{Engine, free_with_engine};
use crate::error::{Failure, Outcome, ensure};
use crate::ffi::{self, User};
use crate::file::FileOptions;
use crate::reader::{ReadAtFn, Source};

/// All modules are encrypted by GCM.
pub const LOCKSTEP_PARQUET_AES_GCM_V1: c_int = 0;
/// Pages are encrypted by CTR, and changes in them are not detected; all other modules are encrypted by GCM. Readers must
/// permit this by `allow_unauthenticated_pages`.
pub const LOCKSTEP_PARQUET_AES_GCM_CTR_V1: c_int = 1;

/// Bytes of the longest key.
const MAX_KEY: usize = 32;

/// Finds a key of a Parquet file: the footer key if `column` is NULL, otherwise the key of the column with the path `column` (its
/// names from the root, joined by dots). `key_metadata` is the data about the key that the writer has stored in the file, in a form
/// that the writer has chosen; NULL if there is none. The callback writes the key to `key`, which has 32 bytes, and its length of
/// 16, 24 or 32 bytes to `key_len`. A length of 0 means that there is no key. A column without a key cannot be read. Without a
/// footer key, a file can be read only with `allow_unauthenticated_footer`. Returns 0, or another number for an error. Calls run on
/// the calling thread, one after the other.
pub type ParquetKeyFn = Option<
    unsafe extern "C-unwind" fn(
        user: *mut c_void,
        column: *const c_char,
        key_metadata: *const u8,
        key_metadata_len: usize,
        key: *mut u8,
        key_len: *mut usize,
    ) -> c_int,
>;

/// The key of a column.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ParquetColumn {
    /// The path of the column: its names from the root, joined by dots. The name of a group means all columns in the group.
    pub path: *const c_char,
    /// The key.
    pub key: *const u8,
    /// The length of the key in bytes: 16, 24 or 32.
    pub key_len: usize,
    /// Key metadata that the writer stores in the file, so that readers can find the key. Used only in a policy.
    pub key_metadata: *const u8,
    /// The length of the key metadata in bytes; 0 if there are none.
    pub key_metadata_len: usize,
}

/// Keys and options for reading. Either keys or `find_key` is required, except with `allow_unauthenticated_footer`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ParquetReadOptions {
    /// sizeof(lockstep_parquet_read_options)
    pub size: usize,
    /// The footer key.
    pub footer_key: *const u8,
    /// The length of the footer key in bytes: 16, 24 or 32.
    pub footer_key_len: usize,
    /// The keys of columns. A file in which one of these columns is missing, or is not encrypted with a key of its own, is refused.
    pub columns: *const ParquetColumn,
    /// The number of elements of `columns`.
    pub column_count: usize,
    /// A callback that finds keys, if no keys are given; otherwise NULL.
    pub find_key: ParquetKeyFn,
    /// The first argument of `find_key`.
    pub find_key_user: *mut c_void,
    /// The AAD prefix. It is required if the file was written with a prefix, even if the file stores the prefix. A stored prefix must
    /// be equal to this prefix.
    pub aad_prefix: *const u8,
    /// The length of the AAD prefix in bytes; 0 if there is none.
    pub aad_prefix_len: usize,
    /// Not 0: read files whose modules have no associated data, as DuckDB writes them. An exchange of pages of such a file is
    /// not detected.
    pub allow_missing_aad: c_int,
    /// Not 0: read files of LOCKSTEP_PARQUET_AES_GCM_CTR_V1, in whose pages changes are not detected. Nothing authenticates the
    /// algorithm in a file with an encrypted footer. For such a file, this option therefore permits pages without authentication even
    /// if the writer chose LOCKSTEP_PARQUET_AES_GCM_V1.
    pub allow_unauthenticated_pages: c_int,
    /// Not 0: read a file with a plaintext footer if there is no footer key. The signature of the footer is then not checked. Changes
    /// of names, types, other metadata, and columns without a key are not detected, and neither are row groups that are missing or in
    /// another order. For a column of `columns`, the path, the physical type and the bytes of the pages are still authentic, and bound
    /// to each other and to the file. The schema states how the bytes are decoded (repetition, length of a fixed-length type, logical
    /// type), and it is not authenticated. So a change of the schema can change the values that are read. With `find_key`, an attacker
    /// may have replaced every column by a plain column. If there is a footer key, the signature is always checked.
    pub allow_unauthenticated_footer: c_int,
    /// Must be zero.
    pub reserved: u32,
}

// SAFETY: the structure is `repr(C)`, its first member is a `usize`, and zeros are valid.
ffi::impl_options!(ParquetReadOptions, "lockstep_parquet_read_options": size footer_key footer_key_len columns column_count find_key find_key_user aad_prefix aad_prefix_len allow_missing_aad allow_unauthenticated_pages allow_unauthenticated_footer; reserved);

/// The columns of a file that are encrypted, the keys, and the algorithm. Columns that are named neither in `columns` nor in
/// `plain_columns` are encrypted with the footer key.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ParquetPolicy {
    /// sizeof(lockstep_parquet_policy)
    pub size: usize,
    /// The footer key.
    pub footer_key: *const u8,
    /// The length of the footer key in bytes: 16, 24 or 32.
    pub footer_key_len: usize,
    /// Key metadata that the writer stores in the file, so that readers can find the footer key.
    pub footer_key_metadata: *const u8,
    /// The length of the key metadata in bytes; 0 if there are none.
    pub footer_key_metadata_len: usize,
    /// The keys of columns.
    pub columns: *const ParquetColumn,
    /// The number of elements of `columns`.
    pub column_count: usize,
    /// The paths of columns that are not encrypted. The name of a group means all columns in the group.
    pub plain_columns: *const *const c_char,
    /// The number of elements of `plain_columns`.
    pub plain_column_count: usize,
    /// The AAD prefix, which identifies the file, so that an exchange of the file for another file is detected.
    pub aad_prefix: *const u8,
    /// The length of the AAD prefix in bytes; 0 if there is none.
    pub aad_prefix_len: usize,
    /// LOCKSTEP_PARQUET_AES_GCM_V1 or LOCKSTEP_PARQUET_AES_GCM_CTR_V1.
    pub algorithm: c_int,
    /// Not 0: leave the footer readable, and sign it.
    pub plaintext_footer: c_int,
    /// Not 0: do not store the AAD prefix in the file. Readers must know it.
    pub omit_aad_prefix: c_int,
    /// Must be zero.
    pub reserved: u32,
}

// SAFETY: the structure is `repr(C)`, its first member is a `usize`, and zeros are valid.
ffi::impl_options!(ParquetPolicy, "lockstep_parquet_policy": size footer_key footer_key_len footer_key_metadata footer_key_metadata_len columns column_count plain_columns plain_column_count aad_prefix aad_prefix_len algorithm plaintext_footer omit_aad_prefix; reserved);

/// An encrypted Parquet file in plain form. All threads may use it at the same time.
pub struct ParquetReader {
    view: PlainView<Source>,
    engine: Engine,
}

/// A callback that finds keys.
struct KeyCallback {
    find: ParquetKeyFn,
    user: User,
}

impl KeySource for KeyCallback {
    fn key(
        &self,
        column: Option<&str>,
        metadata: Option<&[u8]>,
    ) -> lockstep_parquet::Result<Option<Zeroizing<Vec<u8>>>> {
        let failed = |what: String| Error::KeySource(io::Error::other(what));
        let Some(find) = self.find else { return Ok(None) };
        let column = column.map(CString::new).transpose();
        let column = column.map_err(|_| failed("the path of a column has a null byte".into()))?;
        let name = column.as_ref().map_or(ptr::null(), |name| name.as_ptr());
        let (metadata, metadata_len) = metadata.map_or((ptr::null(), 0), |it| (it.as_ptr(), it.len()));
        let mut key = Zeroizing::new(vec![0; MAX_KEY]);
        let mut len = 0;
        // SAFETY: the callback takes its own argument, and writes at most 32 bytes and a length: the contract of `ffi`.
        let code = unsafe { find(self.user.0, name, metadata, metadata_len, key.as_mut_ptr(), &mut len) };
        if code != 0 {
            return Err(failed(format!("the key callback returned {code}")));
        }
        if len > MAX_KEY {
            let what = format!("the key callback returned a key of {len} bytes: use 16, 24 or 32 bytes");
            return Err(failed(what));
        }
        key.truncate(len);
        Ok((len > 0).then_some(key))
    }
}

/// Converts the keys and options for reading to the types of the Rust library.
unsafe fn read_options<'a>(
    options: *const ParquetReadOptions,
) -> Outcome<(Box<dyn KeySource>, ReadOptions<'a>)> {
    ffi::check_pointer(options, "the options")?;
    let given = ffi::options(options)?;
    let footer_key = optional(given.footer_key, given.footer_key_len, "the footer key")?;
    let columns = ffi::input(given.columns, given.column_count, "the array of columns")?;
    let options = ReadOptions {
        aad_prefix: optional(given.aad_prefix, given.aad_prefix_len, "the AAD prefix")?,
        allows_missing_aad: given.allow_missing_aad != 0,
        allows_unauthenticated_pages: given.allow_unauthenticated_pages != 0,
        allows_unauthenticated_footer: given.allow_unauthenticated_footer != 0,
    };
    let has_keys = footer_key.is_some() || !columns.is_empty();
    let message = "the options must have either keys or `find_key`: set the footer key, or the callback";
    let keys: Box<dyn KeySource> = match given.find_key {
        Some(_) if !has_keys => {
            Box::new(KeyCallback { find: given.find_key, user: User(given.find_key_user) })
        }
        None if has_keys || options.allows_unauthenticated_footer => {
            let mut keys = footer_key.into_iter().fold(Keys::new(), Keys::footer);
            for column in columns {
                keys = keys.column(path(column.path)?, ffi::input(column.key, column.key_len, "the key")?);
            }
            Box::new(keys)
        }
        _ => return Err(Failure::argument(message)),
    };
    Ok((keys, options))
}

/// Converts bytes that are optional: `None` if their length is 0.
unsafe fn optional<'a>(pointer: *const u8, len: usize, name: &str) -> Outcome<Option<&'a [u8]>> {
    Ok(Some(ffi::input(pointer, len, name)?).filter(|bytes| !bytes.is_empty()))
}

/// The path of a column.
unsafe fn path<'a>(text: *const c_char) -> Outcome<&'a str> {
    ffi::check_pointer(text, "the path of a column")?;
    Ok(ffi::text(text, "the path of a column")?.unwrap_or_default())
}

unsafe fn policy(policy: *const ParquetPolicy) -> Outcome<Policy> {
    ffi::check_pointer(policy, "the policy")?;
    let given = ffi::options(policy)?;
    let copied = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
    let columns =
        ffi::input(given.columns, given.column_count, "the array of columns")?.iter().map(|column| {
            let metadata = optional(column.key_metadata, column.key_metadata_len, "the key metadata")?;
            Ok(ColumnKey {
                path: path(column.path)?.into(),
                key: Zeroizing::new(ffi::input(column.key, column.key_len, "the key")?.to_vec()),
                key_metadata: copied(metadata),
            })
        });
    let columns = columns.collect::<Outcome<_>>()?;
    let plain = ffi::input(given.plain_columns, given.plain_column_count, "the array of plain columns")?;
    let footer_key = ffi::input(given.footer_key, given.footer_key_len, "the footer key")?;
    let metadata = optional(given.footer_key_metadata, given.footer_key_metadata_len, "the key metadata")?;
    Ok(Policy {
        algorithm: algorithm(given.algorithm)?,
        footer_key_metadata: copied(metadata),
        columns,
        plain_columns: plain.iter().map(|&name| Ok(path(name)?.to_owned())).collect::<Outcome<_>>()?,
        plaintext_footer: given.plaintext_footer != 0,
        aad_prefix: copied(optional(given.aad_prefix, given.aad_prefix_len, "the AAD prefix")?),
        stores_aad_prefix: given.omit_aad_prefix == 0,
        ..Policy::uniform(footer_key)
    })
}

/// The algorithm that a number LOCKSTEP_PARQUET_ stands for.
pub(crate) fn algorithm(number: c_int) -> Outcome<Algorithm> {
    let algorithms = [Algorithm::GcmV1, Algorithm::GcmCtrV1];
    let expected =
        "an algorithm of Parquet: use LOCKSTEP_PARQUET_AES_GCM_V1 or LOCKSTEP_PARQUET_AES_GCM_CTR_V1";
    ffi::numbered(&algorithms, 0, number, expected)
}

/// Opens an encrypted Parquet file: checks its footer and finds the keys of its columns. The bytes of the reader are a plain
/// Parquet file with the same table, which any reader of Parquet can read. Data are decrypted and checked when they are read.
///
/// Errors: LOCKSTEP_ERROR_FILE, LOCKSTEP_ERROR_AUTHENTICATION, LOCKSTEP_ERROR_PARQUET, LOCKSTEP_ERROR_PROTECTION,
/// LOCKSTEP_ERROR_MISSING_KEY, LOCKSTEP_ERROR_KEY, LOCKSTEP_ERROR_ARGUMENT, LOCKSTEP_ERROR_READ; errors of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_parquet_open_file(
    engine: *const Engine,
    options: *const ParquetReadOptions,
    path: *const c_char,
    reader: *mut *mut ParquetReader,
) -> c_int {
    open(engine, options, reader, || Source::open(path))
}

/// Opens an encrypted Parquet file of `size` bytes, which a callback reads. The callback and its argument are used until the reader
/// is freed.
///
/// Errors: those of lockstep_parquet_open_file, except LOCKSTEP_ERROR_FILE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_parquet_open(
    engine: *const Engine,
    options: *const ParquetReadOptions,
    read_at: ReadAtFn,
    user: *mut c_void,
    size: u64,
    reader: *mut *mut ParquetReader,
) -> c_int {
    open(engine, options, reader, || Source::callback(read_at, user, size))
}

unsafe fn open(
    engine: *const Engine,
    options: *const ParquetReadOptions,
    reader: *mut *mut ParquetReader,
    source: impl FnOnce() -> Outcome<Source>,
) -> c_int {
    ffi::new_object(reader, |_| {
        let engine = ffi::object(engine, "the engine")?;
        let (keys, options) = read_options(options)?;
        let source = source()?;
        let view = engine.run(|inner| Ok(PlainView::open(inner, source, &*keys, options)?))?;
        Ok(ParquetReader { view, engine: engine.clone() })
    })
}

/// Returns the length of the plain form in bytes; 0 if the reader is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_parquet_len(reader: *const ParquetReader) -> u64 {
    reader.as_ref().map_or(0, |reader| reader.view.len())
}

/// Reads the plain form from an offset to a buffer until the buffer is full or the file ends, and stores the number of bytes. All
/// modules from which bytes are read are checked. After an error the buffer is zeroed, or unchanged if nothing was read.
///
/// Errors: LOCKSTEP_ERROR_AUTHENTICATION, LOCKSTEP_ERROR_PARQUET, LOCKSTEP_ERROR_READ; LOCKSTEP_ERROR_MISSING_KEY for a
/// read that starts at a column without a key; errors of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_parquet_read(
    reader: *const ParquetReader,
    offset: u64,
    buffer: *mut u8,
    len: usize,
    read: *mut usize,
) -> c_int {
    ffi::read((buffer, len), read, |buffer| {
        let reader = ffi::object(reader, "the reader")?;
        reader.engine.run(|_| Ok(reader.view.read_at(offset, buffer)?))
    })
}

/// Frees a reader of Parquet. No call may be using it. NULL is permitted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_parquet_free(reader: *mut ParquetReader) {
    free_with_engine(reader, |reader| &reader.engine)
}

/// Writes the plain form of an encrypted Parquet file to a file, which only the owner can read. The output appears complete and
/// verified or not at all. The output does not contain the plaintext of a column without a key. `output_options` may be NULL; of
/// its members only `force` and `sync` are supported.
///
/// Errors: LOCKSTEP_ERROR_EXISTS, LOCKSTEP_ERROR_SAME_FILE, LOCKSTEP_ERROR_WRITE, and those of lockstep_parquet_open_file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_parquet_decrypt_file(
    engine: *const Engine,
    options: *const ParquetReadOptions,
    from: *const c_char,
    to: *const c_char,
    output_options: *const FileOptions,
) -> c_int {
    ffi::call_with_key(|_| {
        let (engine, output) = (ffi::object(engine, "the engine")?, file_options(output_options)?);
        let (keys, options) = read_options(options)?;
        let (from, to) =
            (ffi::path(from, "the path of the input")?, ffi::path(to, "the path of the output")?);
        engine.run(|engine| Ok(lockstep_parquet::decrypt_file(engine, from, to, &*keys, options, output)?))
    })
}

/// Encrypts a plain Parquet file to a file by a policy. Pages are not decompressed. The output appears complete or not at all.
/// `output_options` may be NULL; of its members only `force` and `sync` are supported.
///
/// Errors: LOCKSTEP_ERROR_ARGUMENT for a policy that names a column that the file does not have, or that contradicts itself;
/// LOCKSTEP_ERROR_KEY, LOCKSTEP_ERROR_PARQUET; LOCKSTEP_ERROR_PROTECTION if the file is encrypted; LOCKSTEP_ERROR_FILE,
/// LOCKSTEP_ERROR_EXISTS, LOCKSTEP_ERROR_SAME_FILE, LOCKSTEP_ERROR_READ, LOCKSTEP_ERROR_WRITE, LOCKSTEP_ERROR_RANDOM; errors of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_parquet_encrypt_file(
    engine: *const Engine,
    policy: *const ParquetPolicy,
    from: *const c_char,
    to: *const c_char,
    output_options: *const FileOptions,
) -> c_int {
    ffi::call_with_key(|_| {
        let (engine, output) = (ffi::object(engine, "the engine")?, file_options(output_options)?);
        let policy = self::policy(policy)?;
        let (from, to) =
            (ffi::path(from, "the path of the input")?, ffi::path(to, "the path of the output")?);
        engine.run(|engine| Ok(lockstep_parquet::encrypt_file(engine, from, to, &policy, output)?))
    })
}

unsafe fn file_options(options: *const FileOptions) -> Outcome<OutputOptions> {
    let options = ffi::options(options)?;
    let message =
        "files of Parquet have neither progress nor a number of threads: set only `force` and `sync`";
    ensure(options.progress.is_none() && options.threads == 0, || Failure::argument(message))?;
    let (force, sync) = (options.force != 0, options.sync != 0);
    Ok(OutputOptions { force, sync, ..OutputOptions::default() })
}
