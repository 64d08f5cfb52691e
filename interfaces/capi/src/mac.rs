//! CMAC and GMAC, and the comparison of MACs.

use std::ffi::c_int;

use lockstep::hazmat::mode::cmac::{CmacMessage, cmac};
use lockstep::hazmat::mode::gcm;
use subtle::ConstantTimeEq;

use crate::aead::Key;
use crate::cipher::CipherKey;
use crate::engine::Engine;
use crate::error::Outcome;
use crate::ffi::{self, Call, MemoryRange};

/// A message for CMAC.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct MacMessage {
    /// The key, of any mode except XTS.
    pub key: *const CipherKey,
    /// The data.
    pub input: *const u8,
    /// Bytes of the data.
    pub len: usize,
    /// The MAC, of 16 bytes, written by the call.
    pub mac: *mut u8,
}

/// Computes the CMAC (SP 800-38B) of data. The CMAC has 16 bytes. The key is of any mode except XTS. Compare a MAC by
/// lockstep_is_equal.
///
/// Errors: LOCKSTEP_ERROR_KEY for a key of XTS; LOCKSTEP_ERROR_OVERLAP; LOCKSTEP_ERROR_UNSUPPORTED if the device that the engine
/// names lacks CBC-MAC; errors of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_cmac(
    engine: *const Engine,
    key: *const CipherKey,
    input: *const u8,
    len: usize,
    mac: *mut u8,
) -> c_int {
    ffi::call(|_| run(engine, &[MacMessage { key, input, len, mac }]))
}

/// Computes CMAC of the messages of a batch. A batch is much faster than single calls.
///
/// Errors: those of lockstep_cmac.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_cmac_batch(
    engine: *const Engine,
    messages: *const MacMessage,
    count: usize,
) -> c_int {
    ffi::call(|_| run(engine, ffi::input(messages, count, "the array of messages")?))
}

unsafe fn run(engine: *const Engine, messages: &[MacMessage]) -> Outcome<()> {
    let engine = ffi::object(engine, "the engine")?;
    let mut ranges = vec![MemoryRange::read(messages.as_ptr(), messages.len())];
    for message in messages {
        ranges.push(MemoryRange::read(message.input, message.len));
        ranges.push(MemoryRange::written(message.mac, 16));
    }
    ffi::check_overlap(&mut ranges)?;
    let converted = messages.iter().map(|message| {
        Ok(CmacMessage {
            key: ffi::object(message.key, "the key")?.single()?,
            data: ffi::input(message.input, message.len, "the data")?,
            mac: Call::checked().block(message.mac, "the MAC")?,
        })
    });
    let mut converted = converted.collect::<Outcome<Vec<_>>>()?;
    engine.run_mode(|executor| cmac(executor, &mut converted))
}

/// Computes GMAC (SP 800-38D) of data under a key of LOCKSTEP_AEAD_GCM. A nonce must never be used twice with one key.
///
/// Errors: LOCKSTEP_ERROR_NONCE, LOCKSTEP_ERROR_TAG, LOCKSTEP_ERROR_OVERLAP; LOCKSTEP_ERROR_KEY for a key of another mode;
/// LOCKSTEP_ERROR_UNSUPPORTED if the device that the engine names lacks GHASH; errors of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_gmac(
    engine: *const Engine,
    key: *const Key,
    nonce: *const u8,
    nonce_len: usize,
    input: *const u8,
    len: usize,
    tag: *mut u8,
    tag_len: usize,
) -> c_int {
    ffi::call(|call| {
        let (engine, key) = (ffi::object(engine, "the engine")?, ffi::object(key, "the key")?.of_gcm()?);
        let nonce = call.input(nonce, nonce_len, "the nonce")?;
        let data = call.input(input, len, "the data")?;
        let tag = call.output(tag, tag_len, "the tag")?;
        engine.run_mode(|executor| gcm::gmac(executor, key, nonce, data, tag))
    })
}

/// Compares secrets, such as MACs, in a time that does not depend on their content. Returns 1 if they are equal, otherwise 0.
/// Returns 0 if a pointer is NULL and `len` is not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_is_equal(a: *const u8, b: *const u8, len: usize) -> c_int {
    let mut is_equal = 0;
    // If the call fails, the result remains 0: the values do not count as equal.
    let _ = ffi::call(|call| {
        let (a, b) = (call.input(a, len, "the first value")?, call.input(b, len, "the second value")?);
        is_equal = c_int::from(a.ct_eq(b).unwrap_u8());
        Ok(())
    });
    is_equal
}
