//! What the streams share: keystreams and MACs that are fed in any split.

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::executor::Executor;
use lockstep_core::data::Data;
use lockstep_core::error::Result;
use lockstep_core::key::{Block, Key};
use lockstep_core::work::{Pass, Segment};

/// A keystream (CTR or OFB) of which part of a block may be left over from the last call.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct Keystream {
    #[zeroize(skip)]
    pass: Pass,
    state: Block,
    block: Block,
    /// Bytes of `block` that have been used.
    used: usize,
}

impl Keystream {
    /// `pass` is `Ctr`, `Ctr32` or `Ofb`.
    pub(super) fn new(pass: Pass, state: Block) -> Self {
        Keystream { pass, state, block: [0; 16], used: 16 }
    }

    /// The chaining state, and bytes used of the block before it.
    pub(super) fn state(&self) -> (Block, usize) {
        (self.state, self.used % 16)
    }

    /// XORs the next bytes of the keystream.
    pub(super) fn apply(&mut self, executor: &dyn Executor, key: &Key, data: Data<'_>) -> Result<()> {
        let left = data.len().min(16 - self.used);
        let (head, rest) = data.split_at(left);
        self.xor(head);
        if rest.is_empty() {
            return Ok(());
        }
        let whole = rest.len() & !15;
        let (blocks, tail) = rest.split_at(whole);
        self.run(executor, key, blocks)?;
        if !tail.is_empty() {
            self.refill(executor, key)?;
            self.xor(tail);
        }
        Ok(())
    }

    /// Makes the next block of keystream and uses none of it.
    fn refill(&mut self, executor: &dyn Executor, key: &Key) -> Result<()> {
        let mut block = [0; 16];
        self.run(executor, key, Data::in_place(&mut block))?;
        self.block = block;
        self.used = 0;
        block.zeroize();
        Ok(())
    }

    /// Throws away keystream, less than a block.
    pub(super) fn skip(&mut self, executor: &dyn Executor, key: &Key, bytes: usize) -> Result<()> {
        if bytes > 0 {
            self.refill(executor, key)?;
            self.used = bytes;
        }
        Ok(())
    }

    fn run(&mut self, executor: &dyn Executor, key: &Key, data: Data<'_>) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let state = &mut self.state;
        executor.run_pass(self.pass, &mut [Segment { key, tweak: None, state, data }])
    }

    fn xor(&mut self, data: Data<'_>) {
        let Data::Host(mut data) = data else { unreachable!("streams take host memory") };
        for i in 0..data.len() {
            let byte = data.input()[i] ^ self.block[self.used];
            data.output()[i] = byte;
            self.used += 1;
        }
    }
}

/// A MAC over blocks (GHASH or CBC-MAC) that is fed bytes.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct Absorber {
    #[zeroize(skip)]
    pass: Pass,
    pub(super) state: Block,
    pending: Block,
    /// Bytes of `pending`.
    len: usize,
}

impl Absorber {
    /// `pass` is `Ghash` or `CbcMac`.
    pub(super) fn new(pass: Pass, state: Block) -> Self {
        Absorber { pass, state, pending: [0; 16], len: 0 }
    }

    /// Folds in bytes; up to 16 of the last are kept back if `hold_last`, else less than 16.
    pub(super) fn absorb(
        &mut self,
        executor: &dyn Executor,
        key: &Key,
        mut bytes: &[u8],
        hold_last: bool,
    ) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.len > 0 {
            let take = bytes.len().min(16 - self.len);
            self.pending[self.len..self.len + take].copy_from_slice(&bytes[..take]);
            self.len += take;
            bytes = &bytes[take..];
            if self.len < 16 || (hold_last && bytes.is_empty()) {
                return Ok(());
            }
            self.flush(executor, key)?;
        }
        let keep = if hold_last && !bytes.is_empty() { (bytes.len() - 1) % 16 + 1 } else { bytes.len() % 16 };
        let (blocks, tail) = bytes.split_at(bytes.len() - keep);
        self.run(executor, key, blocks)?;
        self.pending[..keep].copy_from_slice(tail);
        self.len = keep;
        Ok(())
    }

    /// Fills up with zeros to a whole block.
    pub(super) fn pad(&mut self, executor: &dyn Executor, key: &Key) -> Result<()> {
        if self.len > 0 {
            self.pending[self.len..].fill(0);
            self.flush(executor, key)?;
        }
        Ok(())
    }

    /// What is kept back.
    pub(super) fn pending(&self) -> &[u8] {
        &self.pending[..self.len]
    }

    fn flush(&mut self, executor: &dyn Executor, key: &Key) -> Result<()> {
        let block = self.pending;
        self.len = 0;
        self.run(executor, key, &block)
    }

    fn run(&mut self, executor: &dyn Executor, key: &Key, blocks: &[u8]) -> Result<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        let data = Data::read_only(blocks);
        let state = &mut self.state;
        executor.run_pass(self.pass, &mut [Segment { key, tweak: None, state, data }])
    }
}
