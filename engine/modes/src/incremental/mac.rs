//! Incremental CBC-MAC and GHASH. Data are added in pieces of any length.

use lockstep_core::Block;
use lockstep_core::wiping::wipe;
use lockstep_core::work::Pass;

use super::MacExecutor;

/// A MAC that processes whole blocks, with input in pieces of any length. Wiped on drop.
#[derive(Clone)]
pub struct Mac {
    pub(super) pass: Pass,
    /// The MAC of the blocks that have been processed, XORed with the bytes of the current block.
    pub(crate) state: Block,
    /// Number of bytes of the current block: 0 to 16; 16 if the block is complete and has not been processed.
    pub(crate) len: usize,
}

impl Mac {
    /// Creates a MAC that the pass `Ghash` or `CbcMac` computes.
    #[inline]
    pub fn new(pass: Pass, state: Block) -> Mac {
        Mac { pass, state, len: 0 }
    }

    /// Adds bytes. In CBC-MAC, the last block is not processed even if it is complete, because CMAC processes it differently, and CCM
    /// processes the last block before the data together with the data.
    ///
    /// # Errors
    /// Errors of the executor.
    #[inline]
    pub fn update<E: MacExecutor>(&mut self, executor: &mut E, mut bytes: &[u8]) -> Result<(), E::Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        let holds_last = self.pass == Pass::CbcMac;
        if self.len > 0 {
            let (head, rest) = bytes.split_at(bytes.len().min(16 - self.len));
            self.add(head);
            bytes = rest;
            if self.len < 16 || (holds_last && bytes.is_empty()) {
                return Ok(());
            }
            self.flush(executor)?;
        }
        let keep =
            if holds_last && !bytes.is_empty() { (bytes.len() - 1) % 16 + 1 } else { bytes.len() % 16 };
        let (blocks, tail) = bytes.split_at(bytes.len() - keep);
        if !blocks.is_empty() {
            executor.absorb(self.pass, &mut self.state, blocks)?;
        }
        self.add(tail);
        Ok(())
    }

    /// Adds bytes of the current block.
    fn add(&mut self, bytes: &[u8]) {
        self.len += bytes.len();
        let added = number(bytes).unbounded_shl(8 * (16 - self.len as u32));
        self.state = (u128::from_be_bytes(self.state) ^ added).to_be_bytes();
    }

    /// Ends a string: pads the current block with zeros.
    #[inline]
    pub fn pad(&mut self) {
        self.len = self.len.next_multiple_of(16);
    }

    /// Processes the current block, if it is not empty.
    ///
    /// # Errors
    /// Errors of the executor.
    pub fn flush<E: MacExecutor>(&mut self, executor: &mut E) -> Result<(), E::Error> {
        match std::mem::take(&mut self.len) {
            0 => Ok(()),
            _ => executor.absorb(self.pass, &mut self.state, &[0; 16]),
        }
    }
}

/// At most 16 bytes as a big-endian number. The bytes are loaded as words: a load of a block would have to wait for the stores of its
/// parts.
#[inline]
pub(super) fn number(bytes: &[u8]) -> u128 {
    let (words, rest) = bytes.as_chunks();
    let number = words.iter().fold(0, |number, word| number << 32 | u128::from(u32::from_be_bytes(*word)));
    rest.iter().fold(number, |number, byte| number << 8 | u128::from(*byte))
}

impl Drop for Mac {
    #[inline(always)]
    fn drop(&mut self) {
        wipe(&mut self.state);
    }
}
