//! Encryption and decryption of one message in memory of a device.

use std::ffi::{c_int, c_void};

use lockstep::aead::{self, Aead, Data, Message, Status, Tag};
use lockstep::hazmat::Block;
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::planner::OnStream;

use crate::aead::{Key, parts, strings};
use crate::cipher::{self, CipherKey};
use crate::device::{DeviceRange, handle};
use crate::engine::Engine;
use crate::error::Outcome;
use crate::ffi;

/// Runs a mode without authentication on memory of a device, on a stream of the device (NULL: the default stream), and waits.
/// The direction is LOCKSTEP_ENCRYPT or LOCKSTEP_DECRYPT. `iv` has 16 bytes on the host (NULL in ECB) and is updated. `from`
/// and `to` have the same length, belong to one device, and are the same range or do not overlap.
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
    ffi::call(|call| {
        let (cipher, direction) = (cipher::mode(cipher)?, cipher::direction(direction)?);
        let mut unused = Block::default();
        let iv = if cipher::has_iv(cipher) { call.block(iv, "the IV")? } else { &mut unused };
        let key = &ffi::object(key, "the key")?.key;
        on_stream(engine, (from, to), stream, |executor, data| cipher.one(executor, direction, key, iv, data))
    })
}

/// Encrypts and authenticates a message in memory of a device, on a stream of the device (NULL: the default stream), and
/// waits. Nonce, associated data and tag are on the host. `from` and `to` have the same length, belong to one device, and are
/// the same range or do not overlap.
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
    ffi::call(|call| {
        let message = parts(call, key, (nonce, nonce_len), (aad, aad_len))?;
        let tag = Tag::Write(call.output(tag, tag_len, "the tag")?);
        run(engine, message, (from, to), tag, stream)
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
    ffi::call(|call| {
        let message = parts(call, key, (nonce, nonce_len), (aad, aad_len))?;
        let tag = Tag::Expect(call.input(tag, tag_len, "the tag")?);
        run(engine, message, (from, to), tag, stream)
    })
}

/// Runs an authenticated mode.
unsafe fn run(
    engine: *const Engine,
    (key, nonce, aad): (&aead::Key, &[u8], &[u8]),
    data: (*const DeviceRange, *const DeviceRange),
    tag: Tag<'_>,
    stream: *mut c_void,
) -> Outcome<()> {
    let (mode, aad) = (key.mode(), strings(&aad));
    let run = if matches!(tag, Tag::Write(_)) { Aead::seal } else { Aead::open };
    on_stream(engine, data, stream, |executor, data| {
        let message = Message { key, nonce, aad, data, tag, status: Status::Pending };
        run(mode, executor, &mut [message])
    })
}

/// Runs `work` with an executor that uses this stream of a device, for memory of the device.
unsafe fn on_stream(
    engine: *const Engine,
    (from, to): (*const DeviceRange, *const DeviceRange),
    stream: *mut c_void,
    work: impl FnOnce(&dyn Executor, Data<'_>) -> lockstep::hazmat::Result<()>,
) -> Outcome<()> {
    let from = ffi::object(from, "the input")?.slice("the buffer of the input")?;
    let to = ffi::object(to, "the output")?.slice("the buffer of the output")?;
    let device = from.device();
    let data = Data::on_device(from, to)?;
    ffi::object(engine, "the engine")?
        .run(|engine| Ok(work(&OnStream::new(engine.planner(), device, handle(stream))?, data)?))
}
