//! CBC-MAC and GHASH of bytes in any split.

use lockstep_core::Block;
use lockstep_core::work::Pass;
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::KeyedExecutor;

/// A MAC over blocks that is fed bytes.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Mac {
    #[zeroize(skip)]
    pass: Pass,
    state: Block,
    pending: Block,
    /// Bytes of `pending`.
    len: usize,
}

impl Mac {
    /// A MAC by `Ghash` or `CbcMac`.
    pub fn new(pass: Pass, state: Block) -> Mac {
        Mac { pass, state, pending: [0; 16], len: 0 }
    }

    /// The MAC of the whole blocks so far.
    pub fn state(&self) -> &Block {
        &self.state
    }

    /// The bytes kept back: the beginning of a block, or with `hold_last` up to a whole one.
    pub fn pending(&self) -> &[u8] {
        &self.pending[..self.len]
    }

    /// Folds in bytes. Keeps back less than 16 of the last, or 1 to 16 if `hold_last`, since CMAC treats the last block in
    /// another way.
    ///
    /// # Errors
    /// Those of the executor.
    pub fn update<E: KeyedExecutor>(
        &mut self,
        executor: &mut E,
        mut bytes: &[u8],
        hold_last: bool,
    ) -> Result<(), E::Error> {
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
            self.flush(executor)?;
        }
        let keep = if hold_last && !bytes.is_empty() { (bytes.len() - 1) % 16 + 1 } else { bytes.len() % 16 };
        let (blocks, tail) = bytes.split_at(bytes.len() - keep);
        if !blocks.is_empty() {
            executor.absorb(self.pass, &mut self.state, blocks)?;
        }
        self.pending[..keep].copy_from_slice(tail);
        self.len = keep;
        Ok(())
    }

    /// Fills up with zeros to a whole block.
    ///
    /// # Errors
    /// Those of the executor.
    pub fn pad<E: KeyedExecutor>(&mut self, executor: &mut E) -> Result<(), E::Error> {
        if self.len > 0 {
            self.pending[self.len..].fill(0);
            self.flush(executor)?;
        }
        Ok(())
    }

    fn flush<E: KeyedExecutor>(&mut self, executor: &mut E) -> Result<(), E::Error> {
        self.len = 0;
        executor.absorb(self.pass, &mut self.state, &self.pending)
    }
}
