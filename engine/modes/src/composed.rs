//! The authenticated modes that are composed of CTR and a MAC: GCM, CCM, EAX, GCM-SIV and SIV. Each pass processes all messages
//! in one call.

use lockstep_core::gcm::settle;
use lockstep_core::work::{AeadMessage, Pass, Status};
use lockstep_core::{Block, Key, Result};

use crate::absorb::Side;
use crate::executor::Executor;
use crate::message::Direction;
use crate::{invalidate, run_pass, zero_failed};

/// The state of a message.
pub(crate) trait State: Sized {
    /// Returns the key of CTR, the counter of the data, and the tag. The tag is valid after [`State::compute_tags`]. `key` is
    /// the key of the message.
    fn parts<'s>(&'s mut self, key: &'s Key) -> (&'s Key, &'s mut Block, &'s Block);

    /// Computes the tags of all messages. `side` states whether the MAC authenticates the input or the output of the messages.
    ///
    /// # Errors
    /// Errors of devices.
    fn compute_tags(executor: &dyn Executor, pairs: &mut [Pair<'_, '_, Self>], text: Side) -> Result<()>;
}

/// A message and its state.
pub(crate) struct Pair<'m, 'd, S> {
    pub(crate) message: &'m mut AeadMessage<'d>,
    pub(crate) state: &'m mut S,
}

/// Seals or opens messages whose keys have the same size. `ctr` is the pass over the data. `text` is the side of the data
/// that the MAC authenticates when a message is sealed.
///
/// # Errors
/// Errors of devices.
pub(crate) fn run<S: State>(
    executor: &dyn Executor,
    direction: Direction,
    ctr: Pass,
    text: Side,
    messages: &mut [AeadMessage<'_>],
    mut states: Vec<S>,
) -> Result<()> {
    let pairs = messages.iter_mut().zip(&mut states).map(|(message, state)| Pair { message, state });
    let pairs = &mut pairs.collect::<Vec<_>>()[..];
    let has_text = (text == Side::Input) == (direction == Direction::Encrypt);
    let outcome = if has_text {
        // Nothing is written before the tags have been computed or compared.
        tags(executor, pairs, Side::Input)?;
        apply_ctr(executor, ctr, pairs)
    } else {
        apply_ctr(executor, ctr, pairs).and_then(|()| tags(executor, pairs, Side::Output))
    };
    // If plaintext is written before its tag is checked, the plaintext must be zeroed if the check fails or cannot be made.
    outcome.and_then(|()| zero_failed(executor, messages)).inspect_err(|_| invalidate(executor, messages))
}

/// Computes the tags, and writes or compares them.
fn tags<S: State>(executor: &dyn Executor, pairs: &mut [Pair<'_, '_, S>], text: Side) -> Result<()> {
    S::compute_tags(executor, pairs, text)?;
    for Pair { message, state } in pairs {
        message.status = settle(&mut message.tag, state.parts(message.key).2);
    }
    Ok(())
}

/// CTR over the data of all messages that have not failed.
fn apply_ctr<S: State>(executor: &dyn Executor, pass: Pass, pairs: &mut [Pair<'_, '_, S>]) -> Result<()> {
    let good = pairs.iter_mut().filter(|Pair { message, .. }| {
        !message.data.is_empty() && message.status != Status::AuthenticationFailed
    });
    let parts = good.map(|Pair { message, state }| {
        let (key, counter, _) = state.parts(message.key);
        (key, counter, message.data.reborrow())
    });
    run_pass(executor, pass, parts)
}
