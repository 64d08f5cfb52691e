//! The AES modes of operation, each composed of passes that an [`Executor`] runs.
//!
//! [`Cipher`] implements the modes without authentication, for one message or a batch. [`gcm`] and [`ccm`] implement the
//! authenticated modes. [`cmac`] and [`gcm::gmac`] compute MACs. These functions take whole messages and return when the
//! messages have been processed. [`cbc_cts`] is CBC with ciphertext stealing, and [`key_wrap`] wraps keys. [`stream`] has the incremental forms, which use the engine of [`incremental`].
#![forbid(unsafe_code)]

pub mod cbc_cts;
pub mod ccm;
mod cipher;
pub mod cmac;
pub mod executor;
pub mod gcm;
pub mod incremental;
pub mod key_wrap;
mod message;
pub mod padding;
pub mod stream;
pub mod transfer;
pub mod xts;

use lockstep_core::error::Result;
use lockstep_core::key::KeySize;
use lockstep_core::work::AeadMessage;

pub use executor::Executor;

pub use message::{Cipher, CipherKey, Direction, Message};

/// Calls `run` separately for the messages of each key size, because kernels depend on the key size. Batches rarely mix key
/// sizes, so the common case is a single call.
fn by_key_size(
    messages: &mut [AeadMessage<'_>],
    run: impl Fn(&mut [AeadMessage<'_>]) -> Result<()>,
) -> Result<()> {
    let Some(first) = messages.first().map(|message| message.key.size()) else { return Ok(()) };
    if messages.iter().all(|message| message.key.size() == first) {
        return run(messages);
    }
    for size in KeySize::ALL {
        let of_size = |message: &&mut AeadMessage<'_>| message.key.size() == size;
        let mut same: Vec<_> = messages.iter_mut().filter(of_size).map(AeadMessage::reborrow).collect();
        if same.is_empty() {
            continue;
        }
        let outcome = run(&mut same);
        let statuses: Vec<_> = same.iter().map(|message| message.status).collect();
        for (message, status) in messages.iter_mut().filter(of_size).zip(statuses) {
            message.status = status;
        }
        outcome?;
    }
    Ok(())
}
