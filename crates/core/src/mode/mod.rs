//! The modes of operation, each a recipe of passes.
//!
//! [`Cipher`] has the modes without authentication, for one message or a batch; [`gcm`] and [`ccm`] the
//! authenticated ones; [`cmac`] and [`gcm::gmac`] the MACs. Everything here is one-shot and waits; the incremental
//! forms are in [`crate::stream`].

pub mod ccm;
pub mod cipher;
pub mod cmac;
pub mod gcm;
pub mod padding;
pub mod xts;

use crate::error::Result;
use crate::key::KeySize;
use crate::work::AeadMessage;

pub use cipher::{Cipher, CipherKey, Direction, Message};

/// Runs `run` over the messages of each key size, since kernels differ by it. Batches seldom mix them, so the common
/// case passes straight through.
fn by_key_size(
    messages: &mut [AeadMessage<'_>],
    run: impl Fn(KeySize, &mut [AeadMessage<'_>]) -> Result<()>,
) -> Result<()> {
    let Some(first) = messages.first().map(|message| message.key.size()) else { return Ok(()) };
    if messages.iter().all(|message| message.key.size() == first) {
        return run(first, messages);
    }
    for size in KeySize::ALL {
        let of_size = |message: &&mut AeadMessage<'_>| message.key.size() == size;
        let mut same: Vec<_> = messages.iter_mut().filter(of_size).map(AeadMessage::reborrow).collect();
        if same.is_empty() {
            continue;
        }
        let outcome = run(size, &mut same);
        let statuses: Vec<_> = same.iter().map(|message| message.status).collect();
        for (message, status) in messages.iter_mut().filter(of_size).zip(statuses) {
            message.status = status;
        }
        outcome?;
    }
    Ok(())
}
