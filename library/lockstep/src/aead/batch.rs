//! Batches of messages.

use std::iter;
use std::sync::Mutex;

use lockstep_core::data::{Data, HostData};
use lockstep_core::work::{Status, Tag};
use lockstep_core::{Error, Result, share, stack};
use lockstep_cpu::inline::InlineKernel;
use lockstep_modes::aead::{Aead, AeadKey, Message};
use lockstep_modes::{Direction, Executor};

use super::caller::Caller;
use super::small;

/// The minimum number of bytes for each thread: starting a thread takes as long as processing this number of bytes.
const THREAD: usize = 256 << 10;
/// The number of messages that a thread takes at once.
const TAKE: usize = 32;
/// The number of bytes that are added to the length of each message when the number of threads is chosen. The preparation of the
/// key of a message takes as long as processing this number of bytes.
const PREPARATION: usize = 512;

/// A message for [`run_on_host`]. Its data are in host memory. Its key is a string of bytes, which is not copied.
pub struct HostMessage<'d> {
    /// The bytes of the key.
    pub key: &'d [u8],
    /// The nonce, as in [`Message`].
    pub nonce: &'d [u8],
    /// The associated data.
    pub aad: &'d [u8],
    /// Sealing reads plaintext and writes ciphertext. Opening does the reverse.
    pub data: HostData<'d>,
    /// The tag.
    pub tag: Tag<'d>,
    /// The outcome.
    pub status: Status,
}

/// Encrypts and authenticates each message. All keys are of one mode.
///
/// # Errors
/// Those of [`Aead::seal`] and of [`Caller::engine`].
pub fn seal(caller: &impl Caller, messages: &mut [Message<'_>]) -> Result<()> {
    run(caller, Direction::Encrypt, messages)
}

/// Checks and decrypts each message. The output of a message whose tag is wrong is zeroed; the other outputs are valid. The field
/// `status` of each message contains its result. All keys are of one mode.
///
/// # Errors
/// [`Error::AuthenticationFailed`] if any tag was wrong; otherwise the errors of [`seal`].
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
    caller.run_long(|| mode.run(engine.planner(), direction, messages))
}

/// Does the same as [`run`] for messages in host memory, which are all of the mode `mode`. For many short messages of GCM, each
/// with its own key, this function takes less time than [`run`]: see [`Caller::batch_limit`].
///
/// # Errors
/// Those of [`run`]; [`Error::ModeKey`] for a key of a length that the mode does not have.
pub fn run_on_host(
    caller: &impl Caller,
    mode: Aead,
    direction: Direction,
    messages: &mut [HostMessage<'_>],
) -> Result<()> {
    let (mut bytes, mut are_inline) = (0, mode == Aead::Gcm && caller.batch_limit() > 0);
    // A single loop computes these values, because the messages of a large batch do not fit in a cache, and a second loop would
    // load them again.
    for message in &mut *messages {
        message.status = Status::Pending;
        bytes += message.data.len() + message.aad.len();
        are_inline &= is_inline(message, direction);
    }
    let is_short = bytes <= caller.batch_limit().saturating_mul(messages.len());
    let kernel = if is_short && are_inline { caller.inline_kernel() } else { None };
    let engine = caller.engine()?;
    caller.run_long(|| match kernel {
        Some(kernel) => {
            let threads = engine.threads().min((bytes + PREPARATION * messages.len()) / THREAD);
            let threads = threads.min(messages.len().div_ceil(TAKE)).max(1);
            run_inline(kernel, threads, messages)
        }
        None => run_by_executor(engine.planner(), mode, direction, messages),
    })
}

/// True if [`small::run`] can process the message: GCM allows its lengths, and its data and its tag fit the direction.
#[inline]
fn is_inline(message: &HostMessage<'_>, direction: Direction) -> bool {
    let row = Aead::Gcm.row();
    row.has_keys_of(message.key.len())
        && !matches!(message.data, HostData::ReadOnly(_))
        && matches!(message.tag, Tag::Write(_)) == (direction == Direction::Encrypt)
        && row.nonces.contains(message.nonce.len())
        && row.tags.contains(message.tag.len())
        && message.data.len() as u64 <= row.max_data
}

/// Converts the messages to those of [`Aead::run`], and runs them. Neighbouring messages that refer to the same key share an
/// [`AeadKey`].
fn run_by_executor(
    executor: &dyn Executor,
    mode: Aead,
    direction: Direction,
    messages: &mut [HostMessage<'_>],
) -> Result<()> {
    let of_one_key = || messages.chunk_by(|first, second| std::ptr::eq(first.key, second.key));
    let keys = of_one_key().map(|run| AeadKey::new(mode, run[0].key)).collect::<Result<Vec<_>>>()?;
    let counts: Vec<usize> = of_one_key().map(<[_]>::len).collect();
    let keys = keys.iter().zip(counts).flat_map(|(key, count)| std::iter::repeat_n(key, count));
    let converted = messages.iter_mut().zip(keys).map(|(message, key)| {
        let HostMessage { nonce, aad, data, tag, status, .. } = message;
        let (data, tag) = (Data::Host(data.reborrow()), tag.reborrow());
        Message { key, nonce, aad: std::slice::from_ref(aad), data, tag, status: *status }
    });
    let mut converted: Vec<_> = converted.collect();
    let outcome = mode.run(executor, direction, &mut converted);
    let statuses: Vec<Status> = converted.iter().map(|message| message.status).collect();
    drop(converted);
    messages.iter_mut().zip(statuses).for_each(|(message, status)| message.status = status);
    outcome
}

/// Runs GCM on this number of CPU threads. Each thread that processes messages has one context, and sets the key of each message in it.
fn run_inline(kernel: InlineKernel, threads: usize, messages: &mut [HostMessage<'_>]) -> Result<()> {
    let pieces = Mutex::new(messages.chunks_mut(TAKE));
    let next = || share::lock(&pieces).next();
    let no_memory = || {
        let operation = "a batch, because memory is exhausted".into();
        Error::Unsupported { kernel: "GCM", operation }
    };
    // Processes messages until none is left; returns false if a tag was wrong.
    let run_pieces = || -> Result<bool> {
        let Some(first) = next() else { return Ok(true) };
        let (mut are_done, mut key) = (true, first[0].key);
        let mut gcm = small::new_in_own_frame(kernel, key).ok_or_else(no_memory)?;
        for piece in iter::once(first).chain(iter::from_fn(next)) {
            for message in piece {
                if !std::ptr::eq(message.key, key) {
                    key = message.key;
                    if !gcm.set_key(key) {
                        return Err(no_memory());
                    }
                }
                let HostMessage { nonce, aad, data, tag, .. } = message;
                let status = small::run(&mut gcm, nonce, aad, data.reborrow(), tag);
                message.status = status.ok_or(Error::NotSealed)?;
                are_done &= message.status == Status::Done;
            }
        }
        Ok(are_done)
    };
    let outcome = if threads == 1 {
        let outcome = run_pieces();
        if !kernel.expands_in_place() {
            stack::wipe_below();
        }
        outcome
    } else {
        let outcomes = share::at_once(vec![(); threads], |()| run_pieces());
        outcomes.into_iter().try_fold(true, |all, done| Ok(all & done?))
    };
    // If memory was exhausted, messages with the status `Pending` are unchanged, and all other messages have their results.
    if outcome? { Ok(()) } else { Err(Error::AuthenticationFailed) }
}
