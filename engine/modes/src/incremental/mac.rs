//! Incremental CBC-MAC and GHASH. Data are added in pieces of any length.

use lockstep_core::Block;
use lockstep_core::wiping::wipe;
use lockstep_core::work::Pass;

use super::MacExecutor;

/// A MAC that processes whole blocks, with input in pieces of any length. Wiped on drop.
#[derive(Clone)]
pub struct Mac {
    pub(super) pass: Pass,
    pub(super) state: Block,
    pending: Block,
    /// Number of bytes in `pending`.
    len: usize,
}

impl Mac {
    /// Creates a MAC that the pass `Ghash` or `CbcMac` computes.
    #[inline]
    pub fn new(pass: Pass, state: Block) -> Mac {
        Mac { pass, state, pending: [0; 16], len: 0 }
    }

    /// Returns the MAC of the whole blocks that have been processed.
    pub fn state(&self) -> &Block {
        &self.state
    }

    /// The bytes that are held back: a partial block, or with `hold_last` up to a whole block.
    pub fn pending(&self) -> &[u8] {
        &self.pending[..self.len]
    }

    /// Adds bytes, and holds back up to 15 of the last bytes. If `hold_last` is true, 1 to 16 bytes are held back, because CMAC
    /// processes the last block differently.
    ///
    /// # Errors
    /// Errors of the executor.
    pub fn update<E: MacExecutor>(
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

    /// Pads the input with zeros to a whole block, and adds this block to the MAC.
    ///
    /// # Errors
    /// Errors of the executor.
    pub fn pad<E: MacExecutor>(&mut self, executor: &mut E) -> Result<(), E::Error> {
        if self.len > 0 {
            self.pending[self.len..].fill(0);
            self.flush(executor)?;
        }
        Ok(())
    }

    fn flush<E: MacExecutor>(&mut self, executor: &mut E) -> Result<(), E::Error> {
        self.len = 0;
        executor.absorb(self.pass, &mut self.state, &self.pending)
    }
}

impl Drop for Mac {
    #[inline(always)]
    fn drop(&mut self) {
        wipe(&mut self.state);
        wipe(&mut self.pending);
    }
}
