//! Calls the functions of the C interface with arbitrary numbers, lengths and pointers. All pointers refer to one
//! piece of memory, so that the buffers of a call often overlap. No call may panic or access memory out of bounds, a
//! refused call must not change anything, and sealed messages are opened again.
#![no_main]

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::LazyLock;

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use lockstep_c::aead::{Bytes, Key, Message, lockstep_aead_open, lockstep_aead_seal, lockstep_aead_seal_batch};
use lockstep_c::aead::{lockstep_aead_open_batch, lockstep_key_free, lockstep_key_new};
use lockstep_c::buffer::{lockstep_open, lockstep_seal};
use lockstep_c::cbc_cts::lockstep_cbc_cts_encrypt;
use lockstep_c::cipher::{CipherKey, CipherMessage, lockstep_cipher_encrypt, lockstep_cipher_encrypt_batch};
use lockstep_c::cipher::{lockstep_cipher_decrypt, lockstep_cipher_key_free, lockstep_cipher_key_new};
use lockstep_c::engine::{Engine, EngineOptions, lockstep_engine_new};
use lockstep_c::error::{
    LOCKSTEP_ERROR_AUTHENTICATION, LOCKSTEP_ERROR_INTERNAL, LOCKSTEP_ERROR_MISSING_KEY, LOCKSTEP_OK,
};
use lockstep_c::file_key::{FileKey, lockstep_file_key_free, lockstep_file_key_new};
use lockstep_c::key_wrap::{lockstep_key_unwrap_padded, lockstep_key_wrap_padded};
use lockstep_c::mac::{lockstep_cmac, lockstep_gmac};
use lockstep_c::parquet_modules::{ParquetModule, ParquetProtection, lockstep_parquet_decrypt_modules};
use lockstep_c::reader::{lockstep_reader_free, lockstep_reader_open, lockstep_reader_read};

/// The size, in bytes, of the memory to which all pointers refer.
const MEMORY: usize = 400;

struct Shared(*mut Engine);

// SAFETY: threads may share an engine.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

static ENGINE: LazyLock<Shared> = LazyLock::new(|| {
    let options = EngineOptions {
        size: size_of::<EngineOptions>(),
        device: c"cpu".as_ptr(),
        kernel: null(),
        threads: 1,
        verify: 0,
    };
    let mut engine = null_mut();
    // SAFETY: the pointers are valid.
    assert_eq!(unsafe { lockstep_engine_new(&options, &mut engine) }, LOCKSTEP_OK);
    Shared(engine)
});

fuzz_target!(|input: &[u8]| {
    let _ = run(&mut Unstructured::new(input));
});

/// A pointer into the memory, or sometimes a null pointer, and the length of a range that ends within the memory.
fn part(u: &mut Unstructured<'_>, memory: &mut [u8]) -> Result<(*mut u8, usize)> {
    let at = u.int_in_range(0..=memory.len())?;
    let len = u.int_in_range(0..=(memory.len() - at).min(80))?;
    let is_null = u.ratio(1u8, 16u8)?;
    Ok((if is_null { null_mut() } else { memory.as_mut_ptr().wrapping_add(at) }, len))
}

/// A pointer to `len` bytes of the memory.
fn place(u: &mut Unstructured<'_>, memory: &mut [u8], len: usize) -> Result<*mut u8> {
    let at = u.int_in_range(0..=memory.len() - len)?;
    Ok(memory.as_mut_ptr().wrapping_add(at))
}

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let engine: *const Engine = if u.ratio(1u8, 64u8)? { null() } else { ENGINE.0 };
    let mut memory: Box<[u8]> = (0..MEMORY).map(|i| i as u8).collect();
    let mut key_bytes = [0; 64];
    u.fill_buffer(&mut key_bytes)?;
    let mut key: *mut Key = null_mut();
    let mut cipher_key: *mut CipherKey = null_mut();
    let mut file_key: *mut FileKey = null_mut();
    let mode: c_int = u.int_in_range(-1..=7)?;
    let cipher: c_int = u.int_in_range(-1..=10)?;
    let key_len = *u.choose(&[16usize, 24, 32, 48, 64, 0, 17])?;
    // SAFETY: the pointers are valid for these lengths. If a key could not be made, its pointer is null, which later calls reject.
    unsafe {
        check(lockstep_key_new(mode, key_bytes.as_ptr(), key_len, &mut key));
        check(lockstep_cipher_key_new(cipher, key_bytes.as_ptr(), key_len, &mut cipher_key));
        check(lockstep_file_key_new(key_bytes.as_ptr(), key_len, &mut file_key));
    }
    let outcome = (|| {
        for _ in 0..6 {
            let before = memory.clone();
            let code = match u.int_in_range(0..=6u8)? {
                0 => aead(u, engine, key, &mut memory)?,
                1 => batch(u, engine, key, &mut memory)?,
                2 => ciphers(u, engine, cipher, cipher_key, &mut memory)?,
                3 => others(u, engine, key, cipher_key, &mut memory)?,
                4 => format(u, engine, file_key, &mut memory)?,
                5 => parquet(u, engine, key, &mut memory)?,
                _ => reader(u, engine, file_key, &mut memory)?,
            };
            check(code);
            if code != LOCKSTEP_OK && code != LOCKSTEP_ERROR_AUTHENTICATION {
                assert!(memory == before, "a refused call changed memory: {code}");
            }
        }
        Ok(())
    })();
    // SAFETY: the keys are null or were made above, and are not used any more.
    unsafe {
        lockstep_key_free(key);
        lockstep_cipher_key_free(cipher_key);
        lockstep_file_key_free(file_key);
    }
    outcome
}

fn check(code: c_int) {
    assert!(
        (LOCKSTEP_OK..=LOCKSTEP_ERROR_MISSING_KEY).contains(&code) && code != LOCKSTEP_ERROR_INTERNAL,
        "{code}"
    );
}

fn aead(u: &mut Unstructured<'_>, engine: *const Engine, key: *const Key, memory: &mut [u8]) -> Result<c_int> {
    let ((nonce, nonce_len), (aad, aad_len)) = (part(u, memory)?, part(u, memory)?);
    let (input, len) = part(u, memory)?;
    let output = if u.arbitrary()? { input } else { place(u, memory, len)? };
    let (tag, tag_len) = part(u, memory)?;
    let copy = memory.to_vec();
    // SAFETY: each pointer is null or refers to the stated number of bytes of the memory.
    unsafe {
        if u.arbitrary()? {
            return Ok(lockstep_aead_open(
                engine, key, nonce, nonce_len, aad, aad_len, input, len, tag, tag_len, output,
            ));
        }
        let code =
            lockstep_aead_seal(engine, key, nonce, nonce_len, aad, aad_len, input, len, output, tag, tag_len);
        if code == LOCKSTEP_OK {
            let plain = if len > 0 {
                let at = input.offset_from_unsigned(memory.as_ptr());
                copy[at..at + len].to_vec()
            } else {
                Vec::new()
            };
            let opened = lockstep_aead_open(
                engine, key, nonce, nonce_len, aad, aad_len, output, len, tag, tag_len, output,
            );
            assert_eq!(opened, LOCKSTEP_OK);
            assert!(len == 0 || std::slice::from_raw_parts(output, len) == plain, "the round trip failed");
        }
        Ok(code)
    }
}

fn batch(u: &mut Unstructured<'_>, engine: *const Engine, key: *const Key, memory: &mut [u8]) -> Result<c_int> {
    let count = u.int_in_range(0..=3usize)?;
    let (mut strings, mut messages) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (data, len) = part(u, memory)?;
        strings.push([Bytes { data, len }, Bytes { data: null(), len: 0 }]);
    }
    for aad in &strings {
        let ((nonce, nonce_len), (input, len), (tag, tag_len)) =
            (part(u, memory)?, part(u, memory)?, part(u, memory)?);
        let output = if u.arbitrary()? { input } else { place(u, memory, len)? };
        let aad_count = u.int_in_range(0..=2)?;
        let aad = aad.as_ptr();
        messages.push(Message {
            key, nonce, nonce_len, aad, aad_count, input, output, len, tag, tag_len, status: 9,
        });
    }
    // SAFETY: each pointer is null or refers to the stated number of bytes of the memory.
    Ok(unsafe {
        match u.arbitrary()? {
            true => lockstep_aead_seal_batch(engine, messages.as_mut_ptr(), count),
            false => lockstep_aead_open_batch(engine, messages.as_mut_ptr(), count),
        }
    })
}

fn ciphers(
    u: &mut Unstructured<'_>,
    engine: *const Engine,
    cipher: c_int,
    key: *const CipherKey,
    memory: &mut [u8],
) -> Result<c_int> {
    let (input, len) = part(u, memory)?;
    let output = if u.arbitrary()? { input } else { place(u, memory, len)? };
    let iv = if u.ratio(1u8, 8u8)? { null_mut() } else { place(u, memory, 16)? };
    let cipher = if u.ratio(1u8, 8u8)? { u.int_in_range(0..=10)? } else { cipher };
    // SAFETY: each pointer is null or refers to the stated number of bytes of the memory.
    Ok(unsafe {
        match u.int_in_range(0..=3u8)? {
            0 => lockstep_cipher_encrypt(engine, cipher, key, iv, input, len, output),
            1 => lockstep_cipher_decrypt(engine, cipher, key, iv, input, len, output),
            2 => lockstep_cbc_cts_encrypt(engine, u.int_in_range(0..=4)?, key, iv, input, len, output),
            _ => {
                let message = CipherMessage { key, iv, input, output, len };
                lockstep_cipher_encrypt_batch(engine, cipher, [message, message].as_ptr(), 2)
            }
        }
    })
}

fn others(
    u: &mut Unstructured<'_>,
    engine: *const Engine,
    key: *const Key,
    cipher_key: *const CipherKey,
    memory: &mut [u8],
) -> Result<c_int> {
    let ((input, len), (output, room)) = (part(u, memory)?, part(u, memory)?);
    let (nonce, nonce_len) = part(u, memory)?;
    let mac = place(u, memory, 16)?;
    let mut written = 0;
    // SAFETY: each pointer is null or refers to the stated number of bytes of the memory.
    let code = unsafe {
        match u.int_in_range(0..=3u8)? {
            0 => lockstep_cmac(engine, cipher_key, input, len, mac),
            1 => lockstep_gmac(engine, key, nonce, nonce_len, input, len, output, room),
            2 => lockstep_key_wrap_padded(engine, cipher_key, input, len, output, room, &mut written),
            _ => lockstep_key_unwrap_padded(engine, cipher_key, input, len, output, room, &mut written),
        }
    };
    assert!(written <= room, "more bytes than there is room for");
    Ok(code)
}

fn format(
    u: &mut Unstructured<'_>,
    engine: *const Engine,
    key: *const FileKey,
    memory: &mut [u8],
) -> Result<c_int> {
    let ((context, context_len), (input, len), (output, mut room)) =
        (part(u, memory)?, part(u, memory)?, part(u, memory)?);
    if u.arbitrary()? && !output.is_null() {
        // SAFETY: both pointers point into `memory`.
        room = MEMORY - unsafe { output.offset_from_unsigned(memory.as_ptr()) };
    }
    let mut written = 0;
    // SAFETY: each pointer is null or refers to the stated number of bytes of the memory.
    unsafe {
        if u.arbitrary()? {
            return Ok(lockstep_open(engine, key, context, context_len, input, len, output, room, &mut written));
        }
        let code = lockstep_seal(engine, key, context, context_len, input, len, output, room, &mut written);
        if code == LOCKSTEP_OK {
            let mut opened = vec![0; len];
            let mut back = 0;
            let sealed = lockstep_open(
                engine, key, context, context_len, output, written, opened.as_mut_ptr(), len, &mut back,
            );
            assert_eq!((sealed, back), (LOCKSTEP_OK, len));
            assert!(len == 0 || std::slice::from_raw_parts(input, len) == opened, "the round trip failed");
        }
        Ok(code)
    }
}

/// Decrypts modules of Parquet with arbitrary lengths. The output length often matches the input.
fn parquet(u: &mut Unstructured<'_>, engine: *const Engine, key: *const Key, memory: &mut [u8]) -> Result<c_int> {
    let mut modules = Vec::new();
    for _ in 0..u.int_in_range(0..=3usize)? {
        let ((aad_prefix, aad_prefix_len), (input, len)) = (part(u, memory)?, part(u, memory)?);
        let overhead = if u.arbitrary()? { 32 } else { 16 };
        let output_len = if u.ratio(1u8, 8u8)? { 7 } else { len.saturating_sub(overhead) };
        let output = if u.arbitrary()? { input.wrapping_add(16) } else { place(u, memory, output_len)? };
        let protection = ParquetProtection {
            key, aad_prefix, aad_prefix_len,
            aad_file_unique: u.arbitrary()?,
            algorithm: u.int_in_range(-1..=2)?,
            module: u.int_in_range(-1..=10)?,
            row_group: u.arbitrary()?, column: u.arbitrary()?, page: u.arbitrary()?, reserved: 0,
        };
        modules.push(ParquetModule { protection, input, len, output, output_len, status: 9 });
    }
    // SAFETY: each pointer is null or points into the memory. The library accesses data only if it accepts their length, and no accepted
    // length exceeds the data.
    Ok(unsafe { lockstep_parquet_decrypt_modules(engine, modules.as_mut_ptr(), modules.len()) })
}

/// Opens a reader over arbitrary bytes and reads from it.
fn reader(
    u: &mut Unstructured<'_>,
    engine: *const Engine,
    key: *const FileKey,
    memory: &mut [u8],
) -> Result<c_int> {
    unsafe extern "C-unwind" fn read_at(user: *mut c_void, offset: u64, buffer: *mut u8, len: usize) -> c_int {
        if user.is_null() {
            return 3;
        }
        // SAFETY: the library requests only ranges within the size that it received, and `buffer` has room for `len` bytes.
        unsafe { user.cast::<u8>().add(offset as usize).copy_to_nonoverlapping(buffer, len) };
        0
    }
    let (source, size) = part(u, memory)?;
    let mut reader = null_mut();
    // SAFETY: `source` points to `size` bytes, or is null, in which case the callback returns an error.
    unsafe {
        let code = lockstep_reader_open(
            engine, key, null(), 0, Some(read_at), source.cast(), size as u64, &mut reader,
        );
        if code == LOCKSTEP_OK {
            let (mut buffer, mut got) = ([0; 40], 0);
            check(lockstep_reader_read(reader, u.arbitrary()?, buffer.as_mut_ptr(), 40, &mut got));
        }
        lockstep_reader_free(reader);
        Ok(code)
    }
}
