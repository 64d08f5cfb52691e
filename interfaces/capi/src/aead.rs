//! Authenticated modes: keys, one message, batches.

use std::ffi::c_int;
use std::slice;

use lockstep::aead::{self, Aead, Data, Direction, Message as AeadMessage, Status, Tag};

use crate::engine::Engine;
use crate::error::{Failure, LOCKSTEP_ERROR_AUTHENTICATION, LOCKSTEP_ERROR_KEY, Outcome};
use crate::ffi::{self, Call, MemoryRange};

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
    pub(crate) key: aead::Key,
}

/// Bytes that are read.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Bytes {
    /// The bytes; NULL if there are none.
    pub data: *const u8,
    /// The number of bytes.
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
    /// The result, which has the length of the data. Its memory is that of the input, or separate memory.
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
    ffi::numbered(&Aead::ALL, 1, number, "an authenticated mode: use a number LOCKSTEP_AEAD_")
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
    ffi::new_object(key, |call| {
        Ok(Key { key: aead::Key::new(mode(aead)?, call.input(bytes, len, "the key")?)? })
    })
}

/// Wipes and frees a key. No call may be using it. NULL is permitted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_key_free(key: *mut Key) {
    ffi::free(key)
}

/// Encrypts and authenticates a message. `output` has `len` bytes and is `input` or separate memory. A nonce must never be
/// used twice with one key. In SIV and GCM-SIV, a repeated nonce only reveals whether messages are equal. In SIV, `aad` is a
/// single string, or no string if `aad_len` is 0. For several strings, use a batch.
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
    ffi::call(|call| {
        let engine = ffi::object(engine, "the engine")?;
        let (key, nonce, aad) = parts(call, key, (nonce, nonce_len), (aad, aad_len))?;
        let data = call.data(input, output, len)?;
        let tag = call.output(tag, tag_len, "the tag")?;
        engine.run(|engine| Ok(key.run(engine, nonce, strings(&aad), data, Tag::Write(tag))?))
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
    ffi::call(|call| {
        let engine = ffi::object(engine, "the engine")?;
        let (key, nonce, aad) = parts(call, key, (nonce, nonce_len), (aad, aad_len))?;
        let data = call.data(input, output, len)?;
        let tag = call.input(tag, tag_len, "the tag")?;
        engine.run(|engine| Ok(key.run(engine, nonce, strings(&aad), data, Tag::Expect(tag))?))
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
    batch(engine, messages, count, Direction::Encrypt)
}

/// Checks and decrypts the messages of a batch, whose keys are of one mode. The output of each message with a wrong tag is
/// zeroed; the other outputs are valid. The call sets `status` of each message to its outcome.
///
/// Errors: LOCKSTEP_ERROR_AUTHENTICATION if any tag was wrong. After any other error, all outputs are invalid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_aead_open_batch(
    engine: *const Engine,
    messages: *mut Message,
    count: usize,
) -> c_int {
    batch(engine, messages, count, Direction::Decrypt)
}

unsafe fn batch(engine: *const Engine, messages: *mut Message, count: usize, direction: Direction) -> c_int {
    let seals = direction == Direction::Encrypt;
    let array = (messages, count, "the array of messages");
    let status: fn(&mut Message) -> &mut c_int = |message| &mut message.status;
    with_statuses(array, status, |list, outcomes| {
        let engine = ffi::object(engine, "the engine")?;
        let mut ranges = vec![MemoryRange::written(messages, count)];
        let mut strings = Vec::with_capacity(count);
        for message in list {
            ffi::check_data(message.input, message.output, message.len)?;
            ranges.push(MemoryRange::written(message.output, message.len));
            ranges.push(MemoryRange::input(message.input, message.output, message.len));
            ranges.push(MemoryRange::read(message.nonce, message.nonce_len));
            ranges.push(MemoryRange::of(message.tag, message.tag_len, seals));
            let aad = ffi::input(message.aad, message.aad_count, "the array of associated data")?;
            ranges.extend(aad.iter().map(|string| MemoryRange::read(string.data, string.len)));
            let aad = aad.iter().map(|string| ffi::input(string.data, string.len, "the associated data"));
            strings.push(aad.collect::<Outcome<Vec<&[u8]>>>()?);
        }
        ffi::check_overlap(&mut ranges)?;
        let converted = list.iter().zip(&strings).map(|(message, aad)| convert(message, aad, seals));
        let mut converted = converted.collect::<Outcome<Vec<_>>>()?;
        check_modes(&converted)?;
        let outcome = engine.run(|engine| Ok(aead::run(engine, direction, &mut converted)?));
        if outcome.as_ref().err().is_none_or(|failure| failure.code == LOCKSTEP_ERROR_AUTHENTICATION) {
            outcomes.extend(converted.iter().map(|message| message.status));
        }
        outcome
    })
}

/// Checks that the keys are of one mode, and that this mode accepts the number of strings of associated data of each message.
fn check_modes(messages: &[AeadMessage<'_>]) -> Outcome<()> {
    let Some(mode) = messages.first().map(|message| message.key.mode()) else { return Ok(()) };
    if mode.row().max_strings == 1 && messages.iter().any(|message| message.aad.len() > 1) {
        let message = format!("{mode} has one string of associated data at most: set `aad_count` to 0 or 1");
        return Err(Failure::argument(message));
    }
    if let Some(other) = messages.iter().map(|message| message.key.mode()).find(|other| *other != mode) {
        let message = format!("the batch has keys of {mode} and {other}: use keys of one mode in a batch");
        return Err(Failure::new(LOCKSTEP_ERROR_KEY, message));
    }
    Ok(())
}

/// Converts associated data to the list of strings that the library takes. An empty string becomes an empty list.
pub(crate) fn strings<'a>(aad: &'a &'a [u8]) -> &'a [&'a [u8]] {
    if aad.is_empty() { &[] } else { slice::from_ref(aad) }
}

/// The key, the nonce and the associated data of a message.
pub(crate) unsafe fn parts<'a>(
    call: &mut Call<'a>,
    key: *const Key,
    (nonce, nonce_len): (*const u8, usize),
    (aad, aad_len): (*const u8, usize),
) -> Outcome<(&'a aead::Key, &'a [u8], &'a [u8])> {
    let key: &'a Key = ffi::object(key, "the key")?;
    let nonce = call.input(nonce, nonce_len, "the nonce")?;
    Ok((&key.key, nonce, call.input(aad, aad_len, "the associated data")?))
}

/// Runs a call on an array of messages; `name` is the name of the array in error messages. First, all statuses are set to
/// LOCKSTEP_STATUS_PENDING, so that a status of an earlier call does not look like an outcome of this call. Then `work` gets a copy
/// of the array, so that what the call writes cannot change the messages, and appends the outcome of each message.
pub(crate) unsafe fn with_statuses<T: Copy>(
    (messages, count, name): (*mut T, usize, &str),
    status: fn(&mut T) -> &mut c_int,
    work: impl FnOnce(&[T], &mut Vec<Status>) -> Outcome<()>,
) -> c_int {
    ffi::call(|_| {
        let array = Call::checked().output(messages, count, name)?;
        array.iter_mut().for_each(|message| *status(message) = LOCKSTEP_STATUS_PENDING);
        let mut outcomes = Vec::new();
        let copy = array.to_vec();
        let outcome = work(&copy, &mut outcomes);
        let array = Call::checked().output(messages, outcomes.len(), name)?;
        array.iter_mut().zip(outcomes).for_each(|(message, outcome)| *status(message) = outcome as c_int);
        outcome
    })
}

/// Converts a message of a batch whose memory was checked by [`ffi::check_overlap`].
unsafe fn convert<'a>(message: &Message, aad: &'a [&'a [u8]], seals: bool) -> Outcome<AeadMessage<'a>> {
    let (key, mut call): (&'a Key, _) = (ffi::object(message.key, "the key")?, Call::checked());
    let tag = match seals {
        true => Tag::Write(call.output(message.tag, message.tag_len, "the tag")?),
        false => Tag::Expect(ffi::input(message.tag.cast_const(), message.tag_len, "the tag")?),
    };
    let nonce = ffi::input(message.nonce, message.nonce_len, "the nonce")?;
    let data = Data::Host(call.data(message.input, message.output, message.len)?);
    Ok(AeadMessage { key: &key.key, nonce, aad, data, tag, status: Status::Pending })
}

impl Key {
    /// The AES key of a GCM key, for GMAC and for modules of Parquet.
    pub(crate) fn of_gcm(&self) -> Outcome<&lockstep::hazmat::Key> {
        let message = "the call takes a key of GCM: make the key with LOCKSTEP_AEAD_GCM";
        let key = self.key.key().filter(|_| self.key.mode() == Aead::Gcm);
        key.ok_or_else(|| Failure::new(LOCKSTEP_ERROR_KEY, message))
    }
}
