//! Tasks of the backend interface on the calling thread: a pass or a fused AEAD over several messages.

use std::slice;

use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Segment, Status, Tag, Task, Tweak};
use lockstep_core::{Error, Key};
use lockstep_cpu::inline::{Block, InlineKernel};

use crate::bytes;

/// A message of a task. `tweak_key` is null except for XTS. `src` equals `dst` if the message is processed in place. Consecutive messages with
/// the same pointer `key` share the key and the tweak key: `key_len` and `tweak_key` of the later messages are not read.
#[repr(C)]
pub struct Message {
    key: *const u8,
    key_len: usize,
    tweak_key: *const u8,
    state: *mut Block,
    src: *const u8,
    dst: *mut u8,
    len: usize,
    aad: *const u8,
    aad_len: usize,
    /// For XTS: the number of blocks before the data in the data unit.
    position: u64,
}

/// The data of a message.
///
/// # Safety
/// The pointers are valid for the stated length, and are equal or do not overlap.
unsafe fn data<'a>(message: &Message, reads_only: bool) -> Result<Data<'a>, Error> {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    unsafe {
        if reads_only {
            return Ok(Data::read_only(bytes(message.src, message.len)));
        }
        let output = slice::from_raw_parts_mut(message.dst, message.len);
        if message.src == message.dst.cast_const() {
            return Ok(Data::in_place(output));
        }
        Data::copy(bytes(message.src, message.len), output)
    }
}

/// Makes the segment of a message, with the keys of the message.
///
/// # Safety
/// As for [`data`].
unsafe fn segment<'a>(
    pass: Pass,
    message: &Message,
    (key, tweak_key): &'a Keys,
) -> Result<Segment<'a>, Error> {
    let tweak = tweak_key.as_ref().map(|key| Tweak { key, position: message.position });
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    let (state, data) = unsafe { (&mut *message.state, data(message, pass.is_read_only())?) };
    Ok(Segment { key, tweak, state, data })
}

/// The key and the tweak key of messages.
type Keys = (Key, Option<Key>);

/// The keys of messages, and for each message the index of its keys.
///
/// # Safety
/// As for [`data`].
unsafe fn keys(messages: &[Message]) -> Result<(Vec<Keys>, Vec<usize>), Error> {
    let mut keys = Vec::with_capacity(messages.len());
    let mut indices = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        if index == 0 || message.key != messages[index - 1].key {
            // SAFETY: the caller guarantees the conditions of `# Safety`.
            let key = |place: *const u8| unsafe { Key::new(bytes(place, message.key_len)) };
            let tweak_key = (!message.tweak_key.is_null()).then(|| key(message.tweak_key)).transpose()?;
            keys.push((key(message.key)?, tweak_key));
        }
        indices.push(keys.len() - 1);
    }
    Ok((keys, indices))
}

/// Runs the pass of this index in `Pass::ALL`. Returns false on an error.
///
/// # Safety
/// The pointers of the messages are valid for the stated lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_pass(
    kernel: &InlineKernel,
    pass: usize,
    messages: *const Message,
    count: usize,
) -> bool {
    let pass = Pass::ALL[pass];
    let run = || {
        // SAFETY: the caller guarantees the conditions of `# Safety`.
        let messages = unsafe { slice::from_raw_parts(messages, count) };
        // SAFETY: the caller guarantees the conditions of `# Safety`.
        let (keys, indices) = unsafe { keys(messages)? };
        let segments = messages.iter().zip(indices).map(|(message, index)| {
            // SAFETY: the caller guarantees the conditions of `# Safety`.
            unsafe { segment(pass, message, &keys[index]) }
        });
        kernel.run(Task::Pass(pass, &mut segments.collect::<Result<Vec<_>, _>>()?))
    };
    run().is_ok()
}

/// Seals or opens messages with nonces of 12 bytes by the AEAD of this index in `FusedAead::ALL`. The `state` of a message points to
/// two blocks: the first 12 bytes are the nonce, and the second block is the tag. Returns false on an error or a wrong tag.
///
/// # Safety
/// The pointers of the messages are valid for the stated lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_fused(
    kernel: &InlineKernel,
    fused: usize,
    messages: *const Message,
    count: usize,
) -> bool {
    let fused = FusedAead::ALL[fused];
    let run = || {
        // SAFETY: the caller guarantees the conditions of `# Safety`.
        let messages = unsafe { slice::from_raw_parts(messages, count) };
        // SAFETY: the caller guarantees the conditions of `# Safety`.
        let (keys, indices) = unsafe { keys(messages)? };
        let mut work = Vec::with_capacity(count);
        for (message, index) in messages.iter().zip(indices) {
            let (key, _) = &keys[index];
            // SAFETY: the caller guarantees that `state` points to two blocks: the nonce, and the tag.
            let (nonce, tag) = unsafe { (bytes(message.state.cast(), 12), &mut *message.state.add(1)) };
            // SAFETY: the caller guarantees the conditions of `# Safety`.
            let (aad, data) = unsafe { (bytes(message.aad, message.aad_len), data(message, false)?) };
            let tag = if !fused.opens() { Tag::Write(tag) } else { Tag::Expect(tag) };
            work.push(AeadMessage { key, nonce, aad, data, tag, status: Status::Pending });
        }
        kernel.run(Task::Fused(fused, &mut work))?;
        Ok::<_, Error>(work.iter().all(|message| message.status == Status::Done))
    };
    run() == Ok(true)
}
