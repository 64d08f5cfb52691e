//! The incremental stream modes CTR, OFB, CFB, CFB8 and CFB1. Data are processed in pieces of any length.

use lockstep_core::Block;
use lockstep_core::chaining::counter_after;
use lockstep_core::data::Span;
use lockstep_core::wiping::wipe;
use lockstep_core::work::Pass;
use zeroize::Zeroizing;

use super::KeyedExecutor;

/// The state of a message of a stream mode, including the unused bytes of the current block. Wiped on drop.
#[derive(Clone)]
pub struct StreamState {
    /// The pass that processes whole blocks.
    pub(super) pass: Pass,
    /// The chaining state. CTR: the counter of the next block. OFB: the last keystream block. CFB: the current block, in which
    /// bytes that have been processed contain ciphertext and all other bytes contain keystream. CFB8 and CFB1: the last 16
    /// bytes of ciphertext.
    state: Block,
    /// The current block of keystream. In CFB, bytes that have been processed contain ciphertext.
    block: Block,
    /// Number of bytes of the current block that have been processed; 0 at a block boundary. Always 0 in CFB8 and CFB1, whose
    /// passes process any number of bytes.
    used: usize,
}

impl StreamState {
    /// Starts a message of a stream mode. The pass is that of the mode and direction ([`Cipher::pass`](crate::Cipher::pass)), or
    /// `Ctr32`. The IV of CTR is the first counter block.
    #[inline]
    pub fn new(pass: Pass, iv: Block) -> StreamState {
        StreamState { pass, state: iv, block: [0; 16], used: 0 }
    }

    /// Returns the chaining state. CTR: the counter of the next block. OFB: the current keystream block. CFB: the current
    /// block, in which bytes that have been processed contain ciphertext and all other bytes contain keystream.
    pub fn state(&self) -> &Block {
        &self.state
    }

    /// Returns the chaining state, for passes that a caller runs on this state. Valid only at a block boundary.
    pub fn state_mut(&mut self) -> &mut Block {
        &mut self.state
    }

    /// Returns the number of bytes of the current block that have been used: 0 to 15. The number is 0 at a block boundary.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Starts another message.
    pub fn restart(&mut self, pass: Pass, iv: Block) {
        (self.pass, self.state) = (pass, iv);
        wipe(&mut self.block);
        self.used = 0;
    }

    /// Continues inside a block whose first `used` bytes (0 to 15) have been used. For CTR, the chaining state must be the
    /// state after this block. For OFB and CFB, it must be the state at this position in the block.
    ///
    /// # Errors
    /// Errors of the executor.
    pub fn resume<E: KeyedExecutor>(&mut self, executor: &mut E, used: usize) -> Result<(), E::Error> {
        // If the executor fails to compute the block, the block is not kept, because its zeros would be used as keystream.
        self.used = 0;
        wipe(&mut self.block);
        if used > 0 {
            let mut block = Zeroizing::new(self.state);
            if matches!(self.pass, Pass::Ctr | Pass::Ctr32) {
                *block = [0; 16];
                // Counters are modulo 2^128, so adding 2^128 - 1 gives the previous counter.
                let mut counter = counter_after(self.pass, &self.state, u128::MAX);
                executor.run(self.pass, &mut counter, Span::in_place(&mut *block))?;
            }
            self.block = *block;
            self.used = used;
        }
        Ok(())
    }

    /// Encrypts or decrypts the next bytes.
    ///
    /// # Errors
    /// Errors of the executor.
    #[inline(always)]
    pub fn apply<E: KeyedExecutor>(&mut self, executor: &mut E, mut data: Span<'_>) -> Result<(), E::Error> {
        // `reborrow` copies the fields of the span separately, in registers. Moving the span could load all fields as one
        // vector, and this load would have to wait for the stores of the fields.
        if self.used == 0 && data.len().is_multiple_of(16) {
            return executor.run(self.pass, &mut self.state, data.reborrow());
        }
        self.apply_parts(executor, data.reborrow())
    }

    fn apply_parts<E: KeyedExecutor>(&mut self, executor: &mut E, data: Span<'_>) -> Result<(), E::Error> {
        use Pass::{Cfb1Decrypt, Cfb1Encrypt, Cfb8Decrypt, Cfb8Encrypt};
        let takes_bytes = matches!(self.pass, Cfb8Encrypt | Cfb8Decrypt | Cfb1Encrypt | Cfb1Decrypt);
        let left = if self.used == 0 { 0 } else { data.len().min(16 - self.used) };
        let (head, rest) = data.split_at(left);
        if left > 0 {
            self.feed(head);
        }
        let whole = if takes_bytes { rest.len() } else { rest.len() & !15 };
        let (blocks, tail) = rest.split_at(whole);
        if whole > 0 {
            executor.run(self.pass, &mut self.state, blocks)?;
        }
        if !tail.is_empty() {
            self.next_block(executor)?;
            self.feed(tail);
        }
        Ok(())
    }

    fn is_cfb128(&self) -> bool {
        matches!(self.pass, Pass::Cfb128Encrypt | Pass::Cfb128Decrypt)
    }

    /// Computes the next block of keystream. If the executor fails, the chaining state of CFB is unchanged.
    fn next_block<E: KeyedExecutor>(&mut self, executor: &mut E) -> Result<(), E::Error> {
        let mut block = Zeroizing::new([0; 16]);
        if self.is_cfb128() {
            *block = self.state;
            executor.run(Pass::EcbEncrypt, &mut [0; 16], Span::in_place(&mut *block))?;
            self.state = *block;
        } else {
            executor.run(self.pass, &mut self.state, Span::in_place(&mut *block))?;
        }
        self.block = *block;
        Ok(())
    }

    /// Processes bytes inside the current block. In CFB, the ciphertext replaces the keystream in this block.
    fn feed(&mut self, data: Span<'_>) {
        let (range, is_cfb128) = (self.used..self.used + data.len(), self.is_cfb128());
        let block = &mut self.block[range.clone()];
        if is_cfb128 {
            let (mut input, mut data) = (Zeroizing::new([0; 16]), data.into_host());
            input[..block.len()].copy_from_slice(data.input());
            data.xor_with(block);
            for (byte, input) in block.iter_mut().zip(&*input) {
                *byte = if self.pass == Pass::Cfb128Encrypt { *byte ^ input } else { *input };
            }
            self.state = self.block;
        } else {
            data.into_host().xor_with(block);
        }
        self.used = range.end % 16;
        if self.used == 0 {
            // At a block boundary the block is wiped, so that it contains no part of the text.
            wipe(&mut self.block);
        }
    }
}

impl Drop for StreamState {
    #[inline(always)]
    fn drop(&mut self) {
        wipe(&mut self.state);
        wipe(&mut self.block);
    }
}
