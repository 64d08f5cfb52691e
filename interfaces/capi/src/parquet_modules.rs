//! Modules of encrypted Parquet files in host or device memory, for programs that have their own Parquet decoder.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};

use lockstep::hazmat::Error as CoreError;
use lockstep::hazmat::data::{BufferHandle, Data, DeviceSlice};
use lockstep::hazmat::planner::OnStream;
use lockstep_parquet::{
    DeviceModule, EncryptedModule, Kind, Module, Protection, ciphertext, decrypt_modules, device_modules,
    module_aad,
};

use crate::aead::{Key, with_statuses};
use crate::device::{DeviceRange, handle};
use crate::engine::Engine;
use crate::error::{Failure, LOCKSTEP_ERROR_LENGTH, Outcome, ensure};
use crate::ffi::{self, Call, MemoryRange};
use crate::parquet::algorithm;

/// The footer of a file.
pub const LOCKSTEP_PARQUET_MODULE_FOOTER: c_int = 0;
/// `ColumnMetaData` of a column chunk.
pub const LOCKSTEP_PARQUET_MODULE_COLUMN_META_DATA: c_int = 1;
/// A data page.
pub const LOCKSTEP_PARQUET_MODULE_DATA_PAGE: c_int = 2;
/// A dictionary page.
pub const LOCKSTEP_PARQUET_MODULE_DICTIONARY_PAGE: c_int = 3;
/// The header of a data page.
pub const LOCKSTEP_PARQUET_MODULE_DATA_PAGE_HEADER: c_int = 4;
/// The header of a dictionary page.
pub const LOCKSTEP_PARQUET_MODULE_DICTIONARY_PAGE_HEADER: c_int = 5;
/// `ColumnIndex` of a column chunk.
pub const LOCKSTEP_PARQUET_MODULE_COLUMN_INDEX: c_int = 6;
/// `OffsetIndex` of a column chunk.
pub const LOCKSTEP_PARQUET_MODULE_OFFSET_INDEX: c_int = 7;
/// The header of a Bloom filter.
pub const LOCKSTEP_PARQUET_MODULE_BLOOM_FILTER_HEADER: c_int = 8;
/// The bits of a Bloom filter.
pub const LOCKSTEP_PARQUET_MODULE_BLOOM_FILTER_BITSET: c_int = 9;

/// The name of the array of modules in error messages.
const ARRAY: &str = "the array of modules";

/// The protection of a module, and the place of the module in its file. They determine the mode and the associated data.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ParquetProtection {
    /// The key of the column, or the footer key: a key of LOCKSTEP_AEAD_GCM, also for CTR.
    pub key: *const Key,
    /// The AAD prefix that the caller expects, not a prefix that the file states. NULL if the file was written without a
    /// prefix.
    pub aad_prefix: *const u8,
    /// The length of the AAD prefix in bytes; 0 if there is none.
    pub aad_prefix_len: usize,
    /// The file's identifier (`aad_file_unique` in its metadata). If the identifier has another length, refuse the file.
    pub aad_file_unique: [u8; 8],
    /// LOCKSTEP_PARQUET_AES_GCM_V1 or LOCKSTEP_PARQUET_AES_GCM_CTR_V1.
    pub algorithm: c_int,
    /// The type of the module: a number LOCKSTEP_PARQUET_MODULE_.
    pub module: c_int,
    /// The ordinal of the row group in the file, from 0 on. Zero for a footer.
    pub row_group: i16,
    /// The ordinal of the column in the row group, from 0 on. Zero for a footer.
    pub column: i16,
    /// The ordinal of the page in the column chunk, from 0 on, without the dictionary page. Zero unless the module is a data page or
    /// the header of a data page.
    pub page: i16,
    /// Must be zero.
    pub reserved: i16,
}

/// A module in host memory. A module of GCM consists of a length field of 4 bytes, a nonce of 12 bytes, ciphertext, and a tag
/// of 16 bytes; a page of LOCKSTEP_PARQUET_AES_GCM_CTR_V1 has no tag.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ParquetModule {
    /// The protection of the module.
    pub protection: ParquetProtection,
    /// The module, from its length field on.
    pub input: *const u8,
    /// The length of the module with its length field, in bytes.
    pub len: usize,
    /// The plaintext: separate memory, or `input + 16`, the place of the ciphertext.
    pub output: *mut u8,
    /// The length of the plaintext in bytes: `len - 32`, or `len - 16` for a module without a tag.
    pub output_len: usize,
    /// The outcome, written by the call: one of the numbers LOCKSTEP_STATUS_. LOCKSTEP_STATUS_AUTHENTICATION_FAILED means that the
    /// tag or the length field was wrong, and that the output is zeroed.
    pub status: c_int,
}

/// A module in memory of a device.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ParquetDeviceModule {
    /// The protection of the module. Its key is on the host.
    pub protection: ParquetProtection,
    /// The module, from its length field on.
    pub input: DeviceRange,
    /// The plaintext, of `input.len - 32` bytes, or `input.len - 16` for a module without a tag: separate memory of the device, or
    /// the place of the ciphertext, 16 bytes after the start of the input.
    pub output: DeviceRange,
    /// The outcome, as in lockstep_parquet_module.
    pub status: c_int,
}

/// Decrypts and checks modules in host memory, on all threads of the engine: the pages and page headers of column chunks, or any
/// other modules. Each module may have its own key and belong to a different file. The output of each module that is not
/// authentic is zeroed; the other outputs are valid. The call sets `status` of each module to its outcome. Pages of
/// LOCKSTEP_PARQUET_AES_GCM_CTR_V1 have no tag, so changes in them are not detected.
///
/// Errors: LOCKSTEP_ERROR_AUTHENTICATION if any module was not authentic. After any other error all outputs are invalid, and all
/// statuses are LOCKSTEP_STATUS_PENDING: LOCKSTEP_ERROR_KEY, LOCKSTEP_ERROR_ARGUMENT, LOCKSTEP_ERROR_LENGTH for an input that
/// is too short, LOCKSTEP_ERROR_OUTPUT for an output of another length, LOCKSTEP_ERROR_OVERLAP; errors of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_parquet_decrypt_modules(
    engine: *const Engine,
    modules: *mut ParquetModule,
    count: usize,
) -> c_int {
    let status: fn(&mut ParquetModule) -> &mut c_int = |module| &mut module.status;
    with_statuses((modules, count, ARRAY), status, |list, outcomes| {
        let engine = ffi::object(engine, "the engine")?;
        let (mut ranges, mut checked) = (vec![MemoryRange::written(modules, count)], Vec::new());
        for module in list {
            let protection = check(&module.protection)?;
            ffi::check_memory(module.input, module.len, "the module")?;
            ffi::check_memory(module.output.cast_const(), module.output_len, "the output")?;
            let body = body(protection.kind, module.len, module.output_len)?;
            let (start, end) = (module.input.wrapping_add(body.start), module.input.wrapping_add(body.end));
            ranges.push(MemoryRange::read(module.protection.aad_prefix, module.protection.aad_prefix_len));
            ranges.push(MemoryRange::read(module.input, body.start));
            ranges.push(MemoryRange::input(start, module.output, body.len()));
            ranges.push(MemoryRange::read(end, module.len - body.end));
            ranges.push(MemoryRange::written(module.output, module.output_len));
            checked.push((module, protection, body, (start, end)));
        }
        ffi::check_overlap(&mut ranges)?;
        let converted = checked.into_iter().map(|(module, protection, body, (start, end))| {
            let head = ffi::input(module.input, body.start, "the module")?;
            let tag = ffi::input(end, module.len - body.end, "the module")?;
            let data = Data::Host(Call::checked().data(start, module.output, body.len())?);
            Ok(EncryptedModule::new(protection, head, tag, data))
        });
        let mut converted = converted.collect::<Outcome<Vec<_>>>()?;
        let outcome = engine.run(|engine| Ok(decrypt_modules(engine.planner(), &mut converted)?));
        outcomes.extend(converted.iter().map(EncryptedModule::status));
        outcome
    })
}

/// Decrypts and checks modules in memory of one device, on a stream of the device (NULL: the default stream), and waits. The lengths,
/// nonces and tags are copied to the host; the data stay on the device.
///
/// Errors: those of lockstep_parquet_decrypt_modules; LOCKSTEP_ERROR_OUT_OF_REACH if the memory belongs to several devices, or if
/// an output overlaps other memory in part.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_parquet_device_decrypt_modules(
    engine: *const Engine,
    modules: *mut ParquetDeviceModule,
    count: usize,
    stream: *mut c_void,
) -> c_int {
    let status: fn(&mut ParquetDeviceModule) -> &mut c_int = |module| &mut module.status;
    with_statuses((modules, count, ARRAY), status, |list, outcomes| {
        let engine = ffi::object(engine, "the engine")?;
        let described = list.iter().map(|module| {
            let protection = check(&module.protection)?;
            body(protection.kind, module.input.len, module.output.len)?;
            let input = module.input.slice("the buffer of the module")?;
            let output = module.output.slice("the buffer of the output")?;
            Ok(DeviceModule { protection, module: input, output })
        });
        let described = described.collect::<Outcome<Vec<_>>>()?;
        let Some(device) = described.first().map(|module| module.module.device()) else { return Ok(()) };
        check_device_overlap(&described)?;
        let mut converted = Vec::new();
        let outcome = engine.run(|engine| {
            let executor = OnStream::new(engine.planner(), device, handle(stream))?;
            if let Some(other) = described.iter().find(|module| module.module.device() != device) {
                let other = other.module.device();
                let what = format!("memory of {other}, since the first module is on {device}");
                return Err(CoreError::OutOfReach { device, what }.into());
            }
            converted = device_modules(executor.device_memory(), handle(stream), &described)?;
            Ok(decrypt_modules(&executor, &mut converted)?)
        });
        outcomes.extend(converted.iter().map(EncryptedModule::status));
        outcome
    })
}

/// Fails if an output overlaps another range of a buffer, except that it may be the ciphertext of its own module.
fn check_device_overlap(modules: &[DeviceModule<'_>]) -> Outcome<()> {
    let mut by_buffer: HashMap<BufferHandle, Vec<MemoryRange>> = HashMap::new();
    let mut add = |slice: &DeviceSlice, is_written| {
        let range = MemoryRange::at(slice.offset() as usize, slice.len(), is_written);
        by_buffer.entry(slice.buffer()).or_default().push(range);
    };
    for DeviceModule { protection, module, output } in modules {
        let body = ciphertext(protection.kind, module.len()).map_err(too_short)?;
        add(&module.slice(0..body.start), false);
        add(&module.slice(body.end..module.len()), false);
        let body = module.slice(body);
        if body != *output {
            add(&body, false);
        }
        add(output, true);
    }
    by_buffer.values_mut().try_for_each(|ranges| ffi::check_overlap(ranges))
}

fn too_short(error: lockstep_parquet::Error) -> Failure {
    Failure::new(LOCKSTEP_ERROR_LENGTH, error.to_string())
}

/// The range of the ciphertext, which must have the length of the output.
fn body(kind: Kind, len: usize, output_len: usize) -> Outcome<std::ops::Range<usize>> {
    let body = ciphertext(kind, len).map_err(too_short)?;
    let needed = body.len();
    ensure(needed == output_len, || CoreError::OutputLength { needed, got: output_len }.into())?;
    Ok(body)
}

/// Checks a protection, and converts it to the type of the Rust library.
unsafe fn check<'a>(protection: &ParquetProtection) -> Outcome<Protection<'a>> {
    let ParquetProtection { aad_prefix, aad_prefix_len, aad_file_unique, .. } = *protection;
    let ParquetProtection { row_group, column, page, .. } = *protection;
    let key = ffi::object(protection.key, "the key")?;
    let aad_prefix = ffi::input(aad_prefix, aad_prefix_len, "the AAD prefix")?;
    let expected = "a type of modules: use a number LOCKSTEP_PARQUET_MODULE_";
    let module = ffi::numbered(&Module::all(), 0, protection.module, expected)?;
    let message = "the member `reserved` of lockstep_parquet_protection must be zero";
    ensure(protection.reserved == 0, || Failure::argument(message))?;
    Ok(Protection {
        key: key.of_gcm()?,
        kind: Kind::of(algorithm(protection.algorithm)?, module),
        aad: module_aad(aad_prefix, &aad_file_unique, module, row_group, column, page)?,
    })
}
