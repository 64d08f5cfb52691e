//! Tasks of the backend interface on the calling thread: a pass or a fused AEAD over several messages.

use std::slice;

use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Segment, Status, Tag, Task, Tweak};
use lockstep_core::{Error, Key};
use lockstep_cpu::inline::{Block, InlineKernel};

use crate::bytes;

/// A message of a task. `tweak_key` is null except for XTS. `src` equals `dst` if the message is processed in place.
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
    (key, tweak_key): &'a (Key, Option<Key>),
) -> Result<Segment<'a>, Error> {
    let tweak = tweak_key.as_ref().map(|key| Tweak { key, position: 0 });
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    let (state, data) = unsafe { (&mut *message.state, data(message, pass.is_read_only())?) };
    Ok(Segment { key, tweak, state, data })
}

/// The keys of a message.
///
/// # Safety
/// As for [`data`].
unsafe fn keys(message: &Message) -> Result<(Key, Option<Key>), Error> {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    unsafe {
        let key = |place: *const u8| Key::new(bytes(place, message.key_len));
        Ok((
            key(message.key)?,
            if message.tweak_key.is_null() { None } else { Some(key(message.tweak_key)?) },
        ))
    }
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
        let keys = messages.iter().map(|message| unsafe { keys(message) }).collect::<Result<Vec<_>, _>>()?;
        // SAFETY: the caller guarantees the conditions of `# Safety`.
        let segments =
            messages.iter().zip(&keys).map(|(message, keys)| unsafe { segment(pass, message, keys) });
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
        let keys = messages.iter().map(|message| unsafe { keys(message) }).collect::<Result<Vec<_>, _>>()?;
        let mut work = Vec::with_capacity(count);
        for (message, (key, _)) in messages.iter().zip(&keys) {
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
