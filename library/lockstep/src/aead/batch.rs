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
    let bytes: usize = messages.iter().map(bytes_of).sum();
    let is_short = caller.batch_limit() > 0 && bytes / messages.len() <= caller.batch_limit();
    let kernel = if is_short { caller.inline_kernel() } else { None };
    let kernel = kernel.filter(|_| messages.iter().all(|message| is_inline(message, direction)));
    caller.run_long(|| match kernel {
        Some(kernel) => run_inline(kernel, engine.threads(), messages),
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

/// Runs GCM on threads of the CPU. Each has one context, and sets the key of each message.
fn run_inline(kernel: InlineKernel, threads: usize, messages: &mut [Message<'_>]) -> Result<()> {
    let Some(first) = messages.first().map(|message| message.key) else { return Ok(()) };
    messages.iter_mut().for_each(|message| message.status = Status::Pending);
    let size: usize = messages.iter().map(|message| bytes_of(message) + PREPARATION).sum();
    let threads = threads.min(size / THREAD).max(1);
    let pieces = Mutex::new(messages.chunks_mut(TAKE));
    let next = || pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
    let no_memory = || {
        let operation = "a batch, because memory is exhausted".into();
        Error::Unsupported { kernel: "GCM", operation }
    };
    let run_pieces = || -> Result<()> {
        let mut key = first;
        let mut gcm = small::new_in_own_frame(kernel, secret(key)).ok_or_else(no_memory)?;
        while let Some(piece) = next() {
            for message in piece {
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
            }
        }
        Ok(())
    };
    if threads == 1 {
        let outcome = run_pieces();
        if !kernel.expands_in_place() {
            stack::wipe_below();
        }
        outcome?;
    } else {
        let outcome = Mutex::new(Ok(()));
        share::at_once(vec![(); threads], |()| {
            if let Err(error) = run_pieces() {
                *outcome.lock().unwrap_or_else(PoisonError::into_inner) = Err(error);
            }
        });
        outcome.into_inner().unwrap_or_else(PoisonError::into_inner)?;
    }
    let is_done = messages.iter().all(|message| message.status == Status::Done);
    if is_done { Ok(()) } else { Err(Error::AuthenticationFailed) }
}

/// The bytes of a key of GCM.
fn secret(key: &AeadKey) -> &[u8] {
    key.key().map_or(&[], lockstep_core::Key::bytes)
}
