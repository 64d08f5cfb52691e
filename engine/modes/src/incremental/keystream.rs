//! CTR and OFB: keystream that is XORed with data in pieces of any length.

use lockstep_core::Block;
use lockstep_core::data::Span;
use lockstep_core::work::Pass;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::KeyedExecutor;

/// A keystream, including the unused rest of the current block.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Keystream {
    #[zeroize(skip)]
    pass: Pass,
    /// CTR: the counter of the next block. OFB: the last keystream block.
    state: Block,
    /// The current keystream block.
    block: Block,
    /// Number of bytes of `block` that are used; 0 at a block boundary.
    used: usize,
}

impl Keystream {
    /// The keystream of `Ctr`, `Ctr32` or `Ofb`, starting with a chaining state.
    pub fn new(pass: Pass, state: Block) -> Keystream {
        Keystream { pass, state, block: [0; 16], used: 0 }
    }

    /// The chaining state: for CTR the counter of the next whole block, for OFB the current keystream block.
    pub fn state(&self) -> &Block {
        &self.state
    }

    /// Number of bytes of the current block that are used, below 16; 0 at a block boundary.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Continues with another chaining state, at a block boundary.
    pub fn restart(&mut self, state: Block) {
        self.state = state;
        self.block.zeroize();
        self.used = 0;
    }

    /// Continues inside a block after its first `used` bytes, below 16. The current chaining state must be the state after
    /// that block.
    ///
    /// # Errors
    /// Errors of the executor.
    pub fn resume<E: KeyedExecutor>(&mut self, executor: &mut E, used: usize) -> Result<(), E::Error> {
        // A block that the executor failed to compute is not kept, because its zeros would be used as keystream.
        self.used = 0;
        if used > 0 {
            let mut block = Zeroizing::new(self.state);
            if self.pass != Pass::Ofb {
                *block = [0; 16];
                let mut counter = u128::from_be_bytes(self.state).wrapping_sub(1).to_be_bytes();
                executor.run(self.pass, &mut counter, Span::in_place(&mut *block))?;
            }
            self.block = *block;
            self.used = used;
        }
        Ok(())
    }

    /// Discards this number of bytes of keystream, below 16, at a block boundary.
    ///
    /// # Errors
    /// Errors of the executor.
    pub fn skip<E: KeyedExecutor>(&mut self, executor: &mut E, bytes: usize) -> Result<(), E::Error> {
        if bytes > 0 {
            self.next_block(executor)?;
            self.used = bytes;
        }
        Ok(())
    }

    /// XORs the next bytes of keystream.
    ///
    /// # Errors
    /// Errors of the executor.
    #[inline(always)]
    pub fn apply<E: KeyedExecutor>(&mut self, executor: &mut E, data: Span<'_>) -> Result<(), E::Error> {
        if self.used == 0 && data.len().is_multiple_of(16) {
            return executor.run(self.pass, &mut self.state, data);
        }
        self.apply_parts(executor, data)
    }

    fn apply_parts<E: KeyedExecutor>(&mut self, executor: &mut E, data: Span<'_>) -> Result<(), E::Error> {
        let left = if self.used == 0 { 0 } else { data.len().min(16 - self.used) };
        let (head, rest) = data.split_at(left);
        head.into_host().xor_with(&self.block[self.used..self.used + left]);
        self.used = (self.used + left) % 16;
        let whole = rest.len() & !15;
        let (blocks, tail) = rest.split_at(whole);
        if whole > 0 {
            executor.run(self.pass, &mut self.state, blocks)?;
        }
        if !tail.is_empty() {
            self.next_block(executor)?;
            self.used = tail.len();
            tail.into_host().xor_with(&self.block[..self.used]);
        }
        Ok(())
    }

    fn next_block<E: KeyedExecutor>(&mut self, executor: &mut E) -> Result<(), E::Error> {
        let mut block = Zeroizing::new([0; 16]);
        executor.run(self.pass, &mut self.state, Span::in_place(&mut *block))?;
        self.block = *block;
        Ok(())
    }
}
