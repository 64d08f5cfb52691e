//! CFB with segments of 128 bits, in any split.

use lockstep_core::Block;
use lockstep_core::data::Span;
use lockstep_core::work::Pass;
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::KeyedExecutor;
use crate::message::Direction;

/// The state of CFB128.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Feedback {
    /// The ciphertext of the block under way, with keystream in the place of the bytes that have not come yet; between blocks
    /// the last block of ciphertext.
    state: Block,
    /// Bytes of the block under way that have come; 0 if none is under way.
    used: usize,
}

impl Feedback {
    /// From an IV on.
    pub fn new(iv: Block) -> Feedback {
        Feedback { state: iv, used: 0 }
    }

    /// The chaining state, as the field has it.
    pub fn state(&self) -> &Block {
        &self.state
    }

    /// Bytes of the block under way that have come, below 16; 0 if none is.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Continues from another chaining state, at the beginning of a block.
    pub fn restart(&mut self, state: Block) {
        self.state = state;
        self.used = 0;
    }

    /// Continues inside a block of which so many bytes, below 16, have come; the chaining state is that of inside it.
    pub fn resume(&mut self, used: usize) {
        self.used = used;
    }

    /// Encrypts or decrypts the next bytes.
    ///
    /// # Errors
    /// Those of the executor.
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
            // The state of ECB is of no meaning.
            executor.run(Pass::EcbEncrypt, &mut [0; 16], Span::in_place(&mut self.state))?;
            self.feed(direction, tail);
        }
        Ok(())
    }

    /// Bytes inside the block under way: ciphertext takes the place of the keystream.
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
