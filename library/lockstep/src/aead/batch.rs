//! Batches of messages.

use std::sync::{Mutex, PoisonError};

use lockstep_core::data::{Data, HostData};
use lockstep_core::work::{Status, Tag};
use lockstep_core::{Error, Result, share, stack};
use lockstep_cpu::inline::InlineKernel;
use lockstep_modes::Direction;
use lockstep_modes::aead::{Aead, AeadKey, Message};

use super::caller::Caller;
use super::small;

/// Work of fewer bytes is done by one thread, because starting another thread takes as long as the work.
const THREAD: usize = 256 << 10;
/// The number of messages that a thread takes at once.
const TAKE: usize = 32;
/// The number of bytes that a message counts in addition to its data, for the preparation of its key.
const PREPARATION: usize = 512;

/// Encrypts and authenticates each message. All keys are of one mode.
///
/// # Errors
/// Those of [`Aead::seal`] and of [`Caller::engine`].
pub fn seal(caller: &impl Caller, messages: &mut [Message<'_>]) -> Result<()> {
    run(caller, Direction::Encrypt, messages)
}

/// Checks and decrypts each message. The output of a message whose tag is wrong is zeroed; the other outputs are valid. The
/// field `status` of each message has its result. All keys are of one mode.
///
/// # Errors
/// [`Error::AuthenticationFailed`] if any tag was wrong; otherwise those of [`seal`].
pub fn open(caller: &impl Caller, messages: &mut [Message<'_>]) -> Result<()> {
    run(caller, Direction::Decrypt, messages)
}

/// [`seal`] or [`open`].
///
/// # Errors
/// The errors of these functions.
pub fn run(caller: &impl Caller, direction: Direction, messages: &mut [Message<'_>]) -> Result<()> {
    let Some(mode) = messages.first().map(|message| message.key.mode()) else { return Ok(()) };
    let engine = caller.engine()?;
    // One loop over all messages, because those of a large batch do not fit in a cache.
    let (mut bytes, mut are_inline) = (0, true);
    for message in &mut *messages {
        message.status = Status::Pending;
        bytes += bytes_of(message);
        are_inline &= is_inline(message, direction);
    }
    let is_short = caller.batch_limit() > 0 && bytes / messages.len() <= caller.batch_limit();
    let kernel = if is_short && are_inline { caller.inline_kernel() } else { None };
    caller.run_long(|| match kernel {
        Some(kernel) => {
            let threads = engine.threads().min((bytes + PREPARATION * messages.len()) / THREAD);
            let threads = threads.min(messages.len().div_ceil(TAKE)).max(1);
            run_inline(kernel, threads, messages)
        }
        None => mode.run(engine.planner(), direction, messages),
    })
}

/// The bytes of data and associated data of a message.
fn bytes_of(message: &Message<'_>) -> usize {
    message.data.len() + message.aad.iter().map(|aad| aad.len()).sum::<usize>()
}

/// True for a message that [`small::run`] processes: its lengths are those of GCM.
fn is_inline(message: &Message<'_>, direction: Direction) -> bool {
    let row = Aead::Gcm.row();
    message.key.mode() == Aead::Gcm
        && message.aad.len() <= 1
        && matches!(&message.data, Data::Host(HostData::InPlace(_) | HostData::Copy { .. }))
        && matches!(message.tag, Tag::Write(_)) == (direction == Direction::Encrypt)
        && row.nonces.contains(message.nonce.len())
        && row.tags.contains(message.tag.len())
        && message.data.len() as u64 <= row.max_data
}

/// Runs GCM on this number of threads of the CPU. Each has one context, and sets the key of each message.
fn run_inline(kernel: InlineKernel, threads: usize, messages: &mut [Message<'_>]) -> Result<()> {
    let pieces = Mutex::new(messages.chunks_mut(TAKE));
    let next = || pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
    let no_memory = || {
        let operation = "a batch, because memory is exhausted".into();
        Error::Unsupported { kernel: "GCM", operation }
    };
    // Returns false if a tag was wrong.
    let run_pieces = || -> Result<bool> {
        let Some(mut piece) = next() else { return Ok(true) };
        let (mut are_done, mut key) = (true, piece[0].key);
        let mut gcm = small::new_in_own_frame(kernel, secret(key)).ok_or_else(no_memory)?;
        loop {
            for message in &mut *piece {
                if !std::ptr::eq(message.key, key) {
                    key = message.key;
                    if !gcm.set_key(secret(key)) {
                        return Err(no_memory());
                    }
                }
                let aad = message.aad.first().copied().unwrap_or_default();
                let Data::Host(data) = &mut message.data else { return Err(Error::NotSealed) };
                let status = small::run(&mut gcm, message.nonce, aad, data.reborrow(), &mut message.tag);
                message.status = status.ok_or(Error::NotSealed)?;
                are_done &= message.status == Status::Done;
            }
            match next() {
                Some(following) => piece = following,
                None => return Ok(are_done),
            }
        }
    };
    let outcome = if threads == 1 {
        let outcome = run_pieces();
        if !kernel.expands_in_place() {
            stack::wipe_below();
        }
        outcome
    } else {
        let outcome = Mutex::new(Ok(true));
        share::at_once(vec![(); threads], |()| {
            let done = run_pieces();
            let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
            match (done, &mut *outcome) {
                (Ok(are_done), Ok(all)) => *all &= are_done,
                (Ok(_), Err(_)) => {}
                (Err(error), outcome) => *outcome = Err(error),
            }
        });
        outcome.into_inner().unwrap_or_else(PoisonError::into_inner)
    };
    // If memory was exhausted, messages with the status `Pending` are unchanged, and the others have their results.
    if outcome? { Ok(()) } else { Err(Error::AuthenticationFailed) }
}

/// The bytes of a key of GCM.
fn secret(key: &AeadKey) -> &[u8] {
    key.key().map_or(&[], lockstep_core::Key::bytes)
}
