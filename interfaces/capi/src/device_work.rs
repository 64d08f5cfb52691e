//! Modes on memory of a device.

use std::ffi::{c_int, c_void};

use lockstep::hazmat::Block;
use lockstep::hazmat::data::Data;
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::mode::aead::Message as AeadMessage;
use lockstep::hazmat::planner::OnStream;
use lockstep::hazmat::work::{Status, Tag};

use crate::aead::Key;
use crate::cipher::{self, CipherKey};
use crate::device::{DeviceRange, handle};
use crate::engine::Engine;
use crate::error::Outcome;
use crate::ffi::{self, MemoryRange};

/// Runs a mode without authentication on memory of a device, on a stream of the device (NULL: the default stream), and waits.
/// The direction is LOCKSTEP_ENCRYPT or LOCKSTEP_DECRYPT. `iv` has 16 bytes on the host (NULL in ECB) and is updated. `from`
/// and `to` have the same length, belong to one device, and are the same part or separate.
///
/// Errors: LOCKSTEP_ERROR_OUTPUT, LOCKSTEP_ERROR_OUT_OF_REACH, LOCKSTEP_ERROR_UNSUPPORTED, and those of
/// lockstep_cipher_encrypt. After LOCKSTEP_ERROR_WRONG_RESULT the output is zeroed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_device_cipher(
    engine: *const Engine,
    cipher: c_int,
    direction: c_int,
    key: *const CipherKey,
    iv: *mut u8,
    from: *const DeviceRange,
    to: *const DeviceRange,
    stream: *mut c_void,
) -> c_int {
    ffi::guarded(|| {
        let (cipher, direction) = (cipher::mode(cipher)?, cipher::direction(direction)?);
        let mut unused = Block::default();
        // SAFETY: the pointers are valid, as the header demands.
        let (engine, key, iv, data) = unsafe {
            let iv = if cipher::has_iv(cipher) { ffi::block(iv, "the IV")? } else { &mut unused };
            let key = &ffi::object(key, "the key")?.key;
            (ffi::object(engine, "the engine")?, key, iv, data(from, to)?)
        };
        on_stream(engine, data, stream, |executor, data| cipher.one(executor, direction, key, iv, data))
    })
}

/// Encrypts and authenticates a message in memory of a device, on a stream of the device (NULL: the default stream), and
/// waits. Nonce, associated data and tag are on the host. `from` and `to` have the same length, belong to one device, and are
/// the same part or separate.
///
/// Errors: LOCKSTEP_ERROR_OUTPUT, LOCKSTEP_ERROR_OUT_OF_REACH, LOCKSTEP_ERROR_UNSUPPORTED, and those of lockstep_aead_seal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_device_seal(
    engine: *const Engine,
    key: *const Key,
    nonce: *const u8,
    nonce_len: usize,
    aad: *const u8,
    aad_len: usize,
    from: *const DeviceRange,
    to: *const DeviceRange,
    tag: *mut u8,
    tag_len: usize,
    stream: *mut c_void,
) -> c_int {
    ffi::guarded(|| {
        let mut ranges = [
            MemoryRange::read(nonce, nonce_len),
            MemoryRange::read(aad, aad_len),
            MemoryRange::written(tag, tag_len),
        ];
        ffi::check_overlap(&mut ranges)?;
        // SAFETY: the pointers are valid, as the header demands, and written memory overlaps nothing else.
        unsafe {
            let tag = Tag::Write(ffi::output(tag, tag_len, "the tag")?);
            run_aead(engine, key, (nonce, nonce_len), (aad, aad_len), from, to, tag, stream)
        }
    })
}

/// Checks and decrypts a message in memory of a device. If the tag is wrong, the output is zeroed. The arguments are those of
/// lockstep_device_seal.
///
/// Errors: LOCKSTEP_ERROR_AUTHENTICATION, and those of lockstep_device_seal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_device_open(
    engine: *const Engine,
    key: *const Key,
    nonce: *const u8,
    nonce_len: usize,
    aad: *const u8,
    aad_len: usize,
    from: *const DeviceRange,
    to: *const DeviceRange,
    tag: *const u8,
    tag_len: usize,
    stream: *mut c_void,
) -> c_int {
    ffi::guarded(|| {
        // SAFETY: the pointers are valid, as the header demands.
        unsafe {
            let tag = Tag::Expect(ffi::input(tag, tag_len, "the tag")?);
            run_aead(engine, key, (nonce, nonce_len), (aad, aad_len), from, to, tag, stream)
        }
    })
}

/// # Safety
/// The pointers are valid, as the header demands, and memory that is written overlaps nothing else.
unsafe fn run_aead(
    engine: *const Engine,
    key: *const Key,
    nonce: (*const u8, usize),
    aad: (*const u8, usize),
    from: *const DeviceRange,
    to: *const DeviceRange,
    tag: Tag<'_>,
    stream: *mut c_void,
) -> Outcome<()> {
    // SAFETY: the caller guarantees that the pointers are valid, and that written memory overlaps nothing else.
    let (engine, key, nonce, aad, data) = unsafe {
        (
            ffi::object(engine, "the engine")?,
            &ffi::object(key, "the key")?.key,
            ffi::input(nonce.0, nonce.1, "the nonce")?,
            ffi::input(aad.0, aad.1, "the associated data")?,
            data(from, to)?,
        )
    };
    let strings = [aad];
    let aad = &strings[..usize::from(!aad.is_empty())];
    let seals = matches!(tag, Tag::Write(_));
    on_stream(engine, data, stream, |executor, data| {
        let mut messages = [AeadMessage { key, nonce, aad, data, tag, status: Status::Pending }];
        match seals {
            true => key.mode().seal(executor, &mut messages),
            false => key.mode().open(executor, &mut messages),
        }
    })
}

/// # Safety
/// The pointers are null or valid.
unsafe fn data<'a>(from: *const DeviceRange, to: *const DeviceRange) -> Outcome<Data<'a>> {
    // SAFETY: the caller guarantees that the pointers are null or valid.
    unsafe {
        let from = ffi::object(from, "the input")?.slice("the buffer of the input")?;
        let to = ffi::object(to, "the output")?.slice("the buffer of the output")?;
        Ok(Data::on_device(from, to)?)
    }
}

fn on_stream(
    engine: &Engine,
    data: Data<'_>,
    stream: *mut c_void,
    work: impl FnOnce(&dyn Executor, Data<'_>) -> lockstep::hazmat::Result<()>,
) -> Outcome<()> {
    engine.run(|engine| {
        let Some(device) = data.device() else { unreachable!("the data are in device memory") };
        Ok(work(&OnStream::new(engine.planner(), device, handle(stream))?, data)?)
    })
}
