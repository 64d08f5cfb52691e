//! The authenticated modes that are composed of CTR and a MAC: GCM, CCM, EAX, GCM-SIV and SIV. Each pass processes all messages
//! in one call.

use lockstep_core::gcm::settle;
use lockstep_core::work::{AeadMessage, Pass, Status};
use lockstep_core::{Block, Key, Result};

use crate::absorb::Side;
use crate::executor::Executor;
use crate::message::Direction;
use crate::{invalidate, run_pass, zero_failed};

/// The text that the MAC authenticates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authenticated {
    Plaintext,
    Ciphertext,
}

/// The state of a message in one of these modes.
pub(crate) trait State: Sized {
    /// Returns the key of CTR, the counter of the data, and the tag. The tag is valid after [`State::compute_tags`]. `key` is
    /// the key of the message.
    fn parts<'s>(&'s mut self, key: &'s Key) -> (&'s Key, &'s mut Block, &'s Block);

    /// Computes the tags of all messages. `side` states whether the MAC authenticates the input or the output of the messages.
    ///
    /// # Errors
    /// Errors of devices.
    fn compute_tags(
        executor: &dyn Executor,
        messages: &mut [AeadMessage<'_>],
        states: &mut [Self],
        text: Side,
    ) -> Result<()>;
}

/// Seals or opens messages whose keys have the same size. `ctr` is the pass that encrypts or decrypts the data.
///
/// # Errors
/// Errors of devices.
pub(crate) fn run<S: State>(
    executor: &dyn Executor,
    direction: Direction,
    ctr: Pass,
    authenticated: Authenticated,
    messages: &mut [AeadMessage<'_>],
    mut states: Vec<S>,
) -> Result<()> {
    let states = &mut states[..];
    let has_text = (authenticated == Authenticated::Plaintext) == (direction == Direction::Encrypt);
    let outcome = if has_text {
        // The tags are computed or compared first, so nothing has been written if that fails.
        tags(executor, messages, states, Side::Input)?;
        apply_ctr(executor, ctr, messages, states)
    } else {
        apply_ctr(executor, ctr, messages, states)
            .and_then(|()| tags(executor, messages, states, Side::Output))
    };
    // If plaintext is written before its tag is checked, the plaintext must be zeroed if the check fails or cannot be made.
    outcome.and_then(|()| zero_failed(executor, messages)).inspect_err(|_| invalidate(executor, messages))
}

/// Computes the tags of all messages. When sealing, writes them to the messages. When opening, compares them with the tags of
/// the messages.
fn tags<S: State>(
    executor: &dyn Executor,
    messages: &mut [AeadMessage<'_>],
    states: &mut [S],
    text: Side,
) -> Result<()> {
    S::compute_tags(executor, messages, states, text)?;
    for (message, state) in messages.iter_mut().zip(states) {
        message.status = settle(&mut message.tag, state.parts(message.key).2);
    }
    Ok(())
}

/// Runs CTR over the data of all messages that have not failed.
fn apply_ctr<S: State>(
    executor: &dyn Executor,
    pass: Pass,
    messages: &mut [AeadMessage<'_>],
    states: &mut [S],
) -> Result<()> {
    let good = messages
        .iter_mut()
        .zip(states)
        .filter(|(message, _)| !message.data.is_empty() && message.status != Status::AuthenticationFailed);
    let parts = good.map(|(message, state)| {
        let (key, counter, _) = state.parts(message.key);
        (key, counter, message.data.reborrow())
    });
    run_pass(executor, pass, parts)
}
