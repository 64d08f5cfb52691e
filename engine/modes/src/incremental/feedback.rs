//! CFB with segments of 128 bits, for input in pieces of any length.

use lockstep_core::Block;
use lockstep_core::data::Span;
use lockstep_core::work::Pass;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::KeyedExecutor;
use crate::message::Direction;

/// The state of CFB128.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Feedback {
    /// The ciphertext of the current block. Bytes that have not been processed yet hold keystream. At a block boundary, this
    /// is the last ciphertext block.
    state: Block,
    /// Number of bytes of the current block that have been processed; 0 at a block boundary.
    used: usize,
}

impl Feedback {
    /// Starts with an IV.
    pub fn new(iv: Block) -> Feedback {
        Feedback { state: iv, used: 0 }
    }

    /// The chaining state: the ciphertext of the current block, with keystream in the bytes that have not been processed
    /// yet.
    pub fn state(&self) -> &Block {
        &self.state
    }

    /// Number of bytes of the current block that have been processed, below 16; 0 at a block boundary.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Continues with another chaining state, at a block boundary.
    pub fn restart(&mut self, state: Block) {
        self.state = state;
        self.used = 0;
    }

    /// Continues inside a block after its first `used` bytes, below 16. The chaining state must be the state at this point
    /// of the block.
    pub fn resume(&mut self, used: usize) {
        self.used = used;
    }

    /// Encrypts or decrypts the next bytes.
    ///
    /// # Errors
    /// Errors of the executor.
    pub fn apply<E: KeyedExecutor>(
        &mut self,
        executor: &mut E,
        direction: Direction,
        data: Span<'_>,
    ) -> Result<(), E::Error> {
        let left = if self.used == 0 { 0 } else { data.len().min(16 - self.used) };
        let (head, rest) = data.split_at(left);
        self.feed(direction, head);
        let whole = rest.len() & !15;
        let (blocks, tail) = rest.split_at(whole);
        if whole > 0 {
            let pass = match direction {
                Direction::Encrypt => Pass::Cfb128Encrypt,
                Direction::Decrypt => Pass::Cfb128Decrypt,
            };
            executor.run(pass, &mut self.state, blocks)?;
        }
        if !tail.is_empty() {
            // The keystream is computed in a copy, so that a failure of the executor does not change the chaining state. The
            // ECB pass itself has no chaining state.
            let mut keystream = Zeroizing::new(self.state);
            executor.run(Pass::EcbEncrypt, &mut [0; 16], Span::in_place(&mut *keystream))?;
            self.state = *keystream;
            self.feed(direction, tail);
        }
        Ok(())
    }

    /// Processes bytes inside the current block: the ciphertext replaces the keystream.
    fn feed(&mut self, direction: Direction, mut data: Span<'_>) {
        let mut bytes = [0; 16];
        let bytes = &mut bytes[..data.len()];
        data.read(bytes);
        for byte in &mut *bytes {
            let input = *byte;
            *byte ^= self.state[self.used];
            self.state[self.used] = if direction == Direction::Encrypt { *byte } else { input };
            self.used = (self.used + 1) % 16;
        }
        data.write(bytes);
        bytes.zeroize();
    }
}
