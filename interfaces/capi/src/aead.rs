//! Authenticated modes: keys, one message, batches.

use std::ffi::c_int;

use lockstep::hazmat::mode::aead::{Aead, AeadKey, Message as AeadMessage};
use lockstep::hazmat::work::{Status, Tag};

use crate::engine::Engine;
use crate::error::{Failure, LOCKSTEP_ERROR_AUTHENTICATION, LOCKSTEP_ERROR_KEY, Outcome};
use crate::ffi::{self, MemoryRange};

/// GCM (SP 800-38D). Keys of 16, 24 or 32 bytes, nonces of at least 1 byte (usually 12), tags of 4, 8 or 12 to 16 bytes.
pub const LOCKSTEP_AEAD_GCM: c_int = 1;
/// GCM-SIV (RFC 8452). Keys of 16 or 32 bytes, nonces of 12, tags of 16 bytes.
pub const LOCKSTEP_AEAD_GCM_SIV: c_int = 2;
/// OCB3 (RFC 7253). Keys of 16, 24 or 32 bytes, nonces of 1 to 15, tags of 1 to 16 bytes.
pub const LOCKSTEP_AEAD_OCB: c_int = 3;
/// SIV (RFC 5297). Keys of 32, 48 or 64 bytes, tags of 16 bytes. The nonce is optional and has any length.
pub const LOCKSTEP_AEAD_SIV: c_int = 4;
/// CCM (SP 800-38C). Keys of 16, 24 or 32 bytes, nonces of 7 to 13, tags of 4, 6, 8, 10, 12, 14 or 16 bytes.
pub const LOCKSTEP_AEAD_CCM: c_int = 5;
/// XAES-256-GCM (C2SP). Keys of 32 bytes, nonces of 24, tags of 16 bytes.
pub const LOCKSTEP_AEAD_XAES_256_GCM: c_int = 6;
/// EAX (Bellare, Rogaway and Wagner, 2004). Keys of 16, 24 or 32 bytes, nonces of any length, tags of 1 to 16 bytes.
pub const LOCKSTEP_AEAD_EAX: c_int = 7;

/// The message was not processed.
pub const LOCKSTEP_STATUS_PENDING: c_int = 0;
/// The message was processed; its tag was right.
pub const LOCKSTEP_STATUS_DONE: c_int = 1;
/// The tag was wrong. The output is zeroed.
pub const LOCKSTEP_STATUS_AUTHENTICATION_FAILED: c_int = 2;

/// A key of an authenticated mode. It is wiped when it is freed. All threads may use it at the same time.
pub struct Key {
    pub(crate) key: AeadKey,
}

/// Bytes that are read.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Bytes {
    /// The bytes; NULL if there are none.
    pub data: *const u8,
    /// Their number.
    pub len: usize,
}

/// A message of a batch.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Message {
    /// The key. Messages may have the same key.
    pub key: *const Key,
    /// The nonce.
    pub nonce: *const u8,
    /// Bytes of the nonce.
    pub nonce_len: usize,
    /// Strings of associated data; NULL if there are none.
    pub aad: *const Bytes,
    /// The number of strings: at most one, except in SIV.
    pub aad_count: usize,
    /// The data.
    pub input: *const u8,
    /// The result, of the same length: the same memory as the input, or separate memory.
    pub output: *mut u8,
    /// Bytes of the data.
    pub len: usize,
    /// The tag: written by sealing, read by opening.
    pub tag: *mut u8,
    /// Bytes of the tag.
    pub tag_len: usize,
    /// The outcome, written by the call: one of the numbers LOCKSTEP_STATUS_. If the call fails with an error other than
    /// LOCKSTEP_ERROR_AUTHENTICATION, the outcome of all messages is LOCKSTEP_STATUS_PENDING.
    pub status: c_int,
}

/// The mode that a number LOCKSTEP_AEAD_ stands for.
pub(crate) fn mode(number: c_int) -> Outcome<Aead> {
    Ok(match number {
        LOCKSTEP_AEAD_GCM => Aead::Gcm,
        LOCKSTEP_AEAD_GCM_SIV => Aead::GcmSiv,
        LOCKSTEP_AEAD_OCB => Aead::Ocb,
        LOCKSTEP_AEAD_SIV => Aead::Siv,
        LOCKSTEP_AEAD_CCM => Aead::Ccm,
        LOCKSTEP_AEAD_XAES_256_GCM => Aead::Xaes,
        LOCKSTEP_AEAD_EAX => Aead::Eax,
        _ => {
            let message = format!("{number} is not an authenticated mode: use a number LOCKSTEP_AEAD_");
            return Err(Failure::argument(message));
        }
    })
}

/// Makes a key for an authenticated mode (a number LOCKSTEP_AEAD_) from its bytes, which are copied.
///
/// Errors: LOCKSTEP_ERROR_ARGUMENT, LOCKSTEP_ERROR_KEY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_key_new(
    aead: c_int,
    bytes: *const u8,
    len: usize,
    key: *mut *mut Key,
) -> c_int {
    ffi::guarded_key(|| {
        // SAFETY: the pointers are valid, as the header demands.
        unsafe {
            ffi::produce(key, || {
                Ok(Key { key: AeadKey::new(mode(aead)?, ffi::input(bytes, len, "the key")?)? })
            })
        }
    })
}

/// Wipes and frees a key. No call may be using it. NULL is permitted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_key_free(key: *mut Key) {
    // SAFETY: the pointer is null or a key that is not used again, as the header demands.
    unsafe { ffi::free(key) }
}

/// Encrypts and authenticates a message. `output` has `len` bytes and is `input` or separate memory. A nonce must never be
/// used twice with one key. In SIV and GCM-SIV, a repeated nonce only reveals whether messages are equal. In SIV, `aad` is a
/// single string, or no string if `aad_len` is 0; only a batch takes several strings.
///
/// Errors: LOCKSTEP_ERROR_NONCE, LOCKSTEP_ERROR_TAG, LOCKSTEP_ERROR_TOO_LONG, LOCKSTEP_ERROR_OVERLAP; errors of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_aead_seal(
    engine: *const Engine,
    key: *const Key,
    nonce: *const u8,
    nonce_len: usize,
    aad: *const u8,
    aad_len: usize,
    input: *const u8,
    len: usize,
    output: *mut u8,
    tag: *mut u8,
    tag_len: usize,
) -> c_int {
    ffi::guarded(|| {
        ffi::check_data(input, output, len)?;
        let mut ranges = [
            MemoryRange::read(nonce, nonce_len),
            MemoryRange::read(aad, aad_len),
            MemoryRange::input(input, output, len),
            MemoryRange::written(output, len),
            MemoryRange::written(tag, tag_len),
        ];
        ffi::check_overlap(&mut ranges)?;
        // SAFETY: the pointers are valid, as the header demands, and written memory overlaps nothing else.
        let (engine, key, nonce, aad, data, tag) = unsafe {
            (
                ffi::object(engine, "the engine")?,
                &ffi::object(key, "the key")?.key,
                ffi::input(nonce, nonce_len, "the nonce")?,
                ffi::input(aad, aad_len, "the associated data")?,
                ffi::data(input, output, len)?,
                ffi::output(tag, tag_len, "the tag")?,
            )
        };
        let strings = [aad];
        let aad = &strings[..usize::from(aad_len > 0)];
        let message = AeadMessage { key, nonce, aad, data, tag: Tag::Write(tag), status: Status::Pending };
        engine.run_mode(|executor| key.mode().seal(executor, &mut [message]))
    })
}

/// Checks and decrypts a message. `output` has `len` bytes and is `input` or separate memory. If the tag is wrong, the output
/// is zeroed.
///
/// Errors: LOCKSTEP_ERROR_AUTHENTICATION, and those of lockstep_aead_seal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_aead_open(
    engine: *const Engine,
    key: *const Key,
    nonce: *const u8,
    nonce_len: usize,
    aad: *const u8,
    aad_len: usize,
    input: *const u8,
    len: usize,
    tag: *const u8,
    tag_len: usize,
    output: *mut u8,
) -> c_int {
    ffi::guarded(|| {
        ffi::check_data(input, output, len)?;
        let mut ranges = [
            MemoryRange::read(nonce, nonce_len),
            MemoryRange::read(aad, aad_len),
            MemoryRange::input(input, output, len),
            MemoryRange::written(output, len),
            MemoryRange::read(tag, tag_len),
        ];
        ffi::check_overlap(&mut ranges)?;
        // SAFETY: the pointers are valid, as the header demands, and written memory overlaps nothing else.
        let (engine, key, nonce, aad, data, tag) = unsafe {
            (
                ffi::object(engine, "the engine")?,
                &ffi::object(key, "the key")?.key,
                ffi::input(nonce, nonce_len, "the nonce")?,
                ffi::input(aad, aad_len, "the associated data")?,
                ffi::data(input, output, len)?,
                ffi::input(tag, tag_len, "the tag")?,
            )
        };
        let strings = [aad];
        let aad = &strings[..usize::from(aad_len > 0)];
        let message = AeadMessage { key, nonce, aad, data, tag: Tag::Expect(tag), status: Status::Pending };
        engine.run_mode(|executor| key.mode().open(executor, &mut [message]))
    })
}

/// Encrypts and authenticates the messages of a batch, whose keys are of one mode. A batch is much faster than single calls.
///
/// Errors: those of lockstep_aead_seal; LOCKSTEP_ERROR_KEY for keys of several modes, LOCKSTEP_ERROR_ARGUMENT for
/// several strings of associated data in a mode other than SIV. After an error, all outputs are invalid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_aead_seal_batch(
    engine: *const Engine,
    messages: *mut Message,
    count: usize,
) -> c_int {
    // SAFETY: the pointers are valid, as the header demands.
    ffi::guarded(|| unsafe { batch(engine, messages, count, true) })
}

/// Checks and decrypts the messages of a batch, whose keys are of one mode. The output of each message with a wrong tag is
/// zeroed; the other outputs are valid. `status` of each message has its outcome.
///
/// Errors: LOCKSTEP_ERROR_AUTHENTICATION if any tag was wrong. After any other error, all outputs are invalid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_aead_open_batch(
    engine: *const Engine,
    messages: *mut Message,
    count: usize,
) -> c_int {
    // SAFETY: the pointers are valid, as the header demands.
    ffi::guarded(|| unsafe { batch(engine, messages, count, false) })
}

/// # Safety
/// The pointers are valid, as the header demands.
unsafe fn batch(engine: *const Engine, messages: *mut Message, count: usize, seals: bool) -> Outcome<()> {
    // SAFETY: the caller guarantees that the pointers are valid. The copies of the structures are not affected by writes of the
    // call.
    let (engine, list) = unsafe {
        ffi::check_memory(messages, count, "the array of messages")?;
        // A status of an earlier call must not look like an outcome of this call.
        set_statuses(messages, (0..count).map(|_| Status::Pending));
        (ffi::object(engine, "the engine")?, ffi::input(messages, count, "the array of messages")?.to_vec())
    };
    let mut ranges = Vec::with_capacity(5 * count + 1);
    ranges.push(MemoryRange::written(messages, count));
    for message in &list {
        ffi::check_data(message.input, message.output, message.len)?;
        ranges.push(MemoryRange::written(message.output, message.len));
        ranges.push(MemoryRange::input(message.input, message.output, message.len));
        ranges.push(MemoryRange::read(message.nonce, message.nonce_len));
        ranges.push(match seals {
            true => MemoryRange::written(message.tag, message.tag_len),
            false => MemoryRange::read(message.tag, message.tag_len),
        });
    }
    // SAFETY: the caller guarantees that the pointers are valid.
    let strings = list.iter().map(|message| unsafe { strings(message) }).collect::<Outcome<Vec<_>>>()?;
    let of_aad = strings.iter().flatten().map(|string| MemoryRange::read(string.as_ptr(), string.len()));
    ranges.extend(of_aad);
    ffi::check_overlap(&mut ranges)?;
    // SAFETY: the caller guarantees that the pointers are valid, and that written memory overlaps nothing else.
    let converted = list.iter().zip(&strings).map(|(message, aad)| unsafe { convert(message, aad, seals) });
    let mut converted = converted.collect::<Outcome<Vec<_>>>()?;
    let Some(mode) = converted.first().map(|message| message.key.mode()) else { return Ok(()) };
    if mode != Aead::Siv && converted.iter().any(|message| message.aad.len() > 1) {
        let message = format!("{mode} has one string of associated data at most: set `aad_count` to 0 or 1");
        return Err(Failure::argument(message));
    }
    if let Some(other) = converted.iter().map(|message| message.key.mode()).find(|other| *other != mode) {
        let message = format!("the batch has keys of {mode} and {other}: use keys of one mode in a batch");
        return Err(Failure::new(LOCKSTEP_ERROR_KEY, message));
    }
    let outcome = engine.run_mode(|executor| match seals {
        true => mode.seal(executor, &mut converted),
        false => mode.open(executor, &mut converted),
    });
    let are_known =
        outcome.as_ref().err().is_none_or(|failure| failure.code() == LOCKSTEP_ERROR_AUTHENTICATION);
    if are_known {
        // SAFETY: the array is valid for writes and overlaps nothing else.
        unsafe { set_statuses(messages, converted.iter().map(|message| message.status)) };
    }
    outcome
}

/// # Safety
/// The pointer is valid for writes of as many messages as there are statuses.
unsafe fn set_statuses(messages: *mut Message, statuses: impl Iterator<Item = Status>) {
    for (index, status) in statuses.enumerate() {
        // SAFETY: the caller guarantees that the index is inside the array.
        unsafe { (*messages.add(index)).status = status as c_int };
    }
}

/// # Safety
/// The pointers of the message are valid, as the header demands.
unsafe fn strings<'a>(message: &Message) -> Outcome<Vec<&'a [u8]>> {
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe {
        let strings = ffi::input(message.aad, message.aad_count, "the array of associated data")?;
        strings.iter().map(|bytes| ffi::input(bytes.data, bytes.len, "the associated data")).collect()
    }
}

/// # Safety
/// The pointers of the message are valid, as the header demands, and memory that is written overlaps nothing else.
unsafe fn convert<'a>(message: &Message, aad: &'a [&'a [u8]], seals: bool) -> Outcome<AeadMessage<'a>> {
    // SAFETY: the conditions are those of the caller.
    unsafe {
        let key: &'a AeadKey = &ffi::object(message.key, "the key")?.key;
        let tag = match seals {
            true => Tag::Write(ffi::output(message.tag, message.tag_len, "the tag")?),
            false => Tag::Expect(ffi::input(message.tag.cast_const(), message.tag_len, "the tag")?),
        };
        Ok(AeadMessage {
            key,
            nonce: ffi::input(message.nonce, message.nonce_len, "the nonce")?,
            aad,
            data: ffi::data(message.input, message.output, message.len)?,
            tag,
            status: Status::Pending,
        })
    }
}

impl Key {
    /// The AES key of a GCM key, for GMAC and for modules of Parquet.
    pub(crate) fn of_gcm(&self) -> Outcome<&lockstep::hazmat::Key> {
        self.key.key().filter(|_| self.key.mode() == Aead::Gcm).ok_or_else(|| {
            Failure::new(
                LOCKSTEP_ERROR_KEY,
                "the call takes a key of GCM: make the key with LOCKSTEP_AEAD_GCM",
            )
        })
    }
}
