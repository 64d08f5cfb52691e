//! The stream modes, CTR, OFB, CFB, CFB8 and CFB1, behind one type.

use lockstep_core::Block;
use lockstep_core::data::Span;
use lockstep_core::work::Pass;
use zeroize::Zeroizing;

use super::{Feedback, KeyedExecutor, Keystream};
use crate::message::{Cipher, Direction};

/// The state of a message of a stream mode.
#[derive(Clone)]
pub enum StreamState {
    /// CTR and OFB.
    Keystream(Keystream),
    /// CFB128.
    Feedback(Feedback),
    /// CFB8 and CFB1: the last 16 bytes of ciphertext. The passes of these modes process any number of bytes, so only the
    /// chaining state is needed.
    Shift(Cipher, Zeroizing<Block>),
}

impl StreamState {
    /// Starts a message. `None` for a mode that is not a stream mode.
    pub fn new(cipher: Cipher, iv: Block) -> Option<StreamState> {
        Some(match cipher {
            Cipher::Ctr => StreamState::Keystream(Keystream::new(Pass::Ctr, iv)),
            Cipher::Ofb => StreamState::Keystream(Keystream::new(Pass::Ofb, iv)),
            Cipher::Cfb128 => StreamState::Feedback(Feedback::new(iv)),
            Cipher::Cfb8 | Cipher::Cfb1 => StreamState::Shift(cipher, Zeroizing::new(iv)),
            _ => return None,
        })
    }

    /// The chaining state. CTR: the counter of the next block. OFB: the current keystream block. CFB: the ciphertext of the
    /// current block, with keystream in the bytes that are not processed yet.
    pub fn state(&self) -> &Block {
        match self {
            StreamState::Keystream(keystream) => keystream.state(),
            StreamState::Feedback(feedback) => feedback.state(),
            StreamState::Shift(_, state) => state,
        }
    }

    /// Number of bytes of the current block that are used, below 16; 0 at a block boundary.
    pub fn used(&self) -> usize {
        match self {
            StreamState::Keystream(keystream) => keystream.used(),
            StreamState::Feedback(feedback) => feedback.used(),
            StreamState::Shift(..) => 0,
        }
    }

    /// Starts another message.
    pub fn restart(&mut self, iv: Block) {
        match self {
            StreamState::Keystream(keystream) => keystream.restart(iv),
            StreamState::Feedback(feedback) => feedback.restart(iv),
            StreamState::Shift(_, state) => **state = iv,
        }
    }

    /// Encrypts or decrypts the next bytes.
    ///
    /// # Errors
    /// Errors of the executor.
    #[inline]
    pub fn apply<E: KeyedExecutor>(
        &mut self,
        executor: &mut E,
        direction: Direction,
        data: Span<'_>,
    ) -> Result<(), E::Error> {
        match self {
            StreamState::Keystream(keystream) => keystream.apply(executor, data),
            StreamState::Feedback(feedback) => feedback.apply(executor, direction, data),
            StreamState::Shift(cipher, state) => executor.run(cipher.pass(direction), state, data),
        }
    }
}
