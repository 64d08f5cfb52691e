//! XTS with ciphertext stealing (IEEE 1619, 5.3 and 5.4). The first pass processes whole blocks. If there is a partial
//! block, ciphertext stealing takes a second pass over one block of each message. For decryption, it also takes a third pass
//! over one block of each message.

use zeroize::Zeroize;

use crate::executor::Executor;
use crate::message::{Cipher, Direction, Message};
use crate::transfer;
use lockstep_core::data::Data;
use lockstep_core::error::{Error, Result};
use lockstep_core::key::{Block, KeySize};
use lockstep_core::work::{Segment, Tweak};

/// Maximum data unit: 2^20 blocks (SP 800-38E, section 4; IEEE 1619, 5.1).
pub const MAX_DATA_UNIT: u64 = 1 << 24;

/// Checks that a data unit of `len` bytes is valid.
pub(crate) fn check_unit(len: u64) -> Result<()> {
    if len > MAX_DATA_UNIT {
        return Err(Error::TooLong { mode: "XTS", what: "data", limit: MAX_DATA_UNIT });
    }
    Ok(())
}

/// Processes data units from block `start` on. Their lengths and keys have been checked.
pub(crate) fn run(
    executor: &dyn Executor,
    direction: Direction,
    start: u64,
    messages: &mut [Message<'_>],
) -> Result<()> {
    let pass = Cipher::Xts.pass(direction);
    if let [message] = messages
        && message.data.len() % 16 == 0
    {
        return executor.run_pass(pass, &mut [message.segment(start)]);
    }
    for size in KeySize::ALL {
        let mut units = Vec::new();
        let mut all_stealing = Vec::new();
        for message in messages.iter_mut().filter(|message| message.key.data().size() == size) {
            if message.data.len() % 16 == 0 {
                units.push(message.segment(start));
            } else {
                all_stealing.push(Stealing::new(direction, start, message));
            }
        }
        units.extend(all_stealing.iter_mut().map(Stealing::whole_blocks));
        executor.run_pass(pass, &mut units)?;
        drop(units);
        for stealing in &mut all_stealing {
            stealing.load(executor)?;
        }
        executor.run_pass(pass, &mut all_stealing.iter_mut().map(Stealing::apart).collect::<Vec<_>>())?;
        if direction == Direction::Decrypt {
            for stealing in &mut all_stealing {
                stealing.swap_tail(executor)?;
                stealing.position -= 1;
            }
            executor.run_pass(pass, &mut all_stealing.iter_mut().map(Stealing::apart).collect::<Vec<_>>())?;
        }
        for stealing in &mut all_stealing {
            stealing.store(executor)?;
        }
    }
    Ok(())
}

/// A data unit of n whole blocks and a partial one.
///
/// Encryption: blocks 0 to n-1 are encrypted normally. Then the partial block is completed with bytes of the last ciphertext
/// block, encrypted as block n, and stored in place of the last ciphertext block. The first bytes of the replaced block
/// become the partial ciphertext. Decryption reverses this, so block n is processed before block n-1.
struct Stealing<'m> {
    direction: Direction,
    key: &'m crate::CipherKey,
    data: Data<'m>,
    /// Number of whole blocks of `data`.
    blocks: usize,
    /// Number of blocks of the data unit before `data`.
    start: u64,
    /// The block that is processed separately.
    scratch: Block,
    /// The position of this block in the data unit.
    position: u64,
    /// A copy of the tweak of the data unit, for the passes.
    tweak: Block,
}

impl<'m> Stealing<'m> {
    fn new(direction: Direction, start: u64, message: &'m mut Message<'_>) -> Self {
        let blocks = message.data.len() / 16;
        Stealing {
            direction,
            key: message.key,
            data: message.data.reborrow(),
            blocks,
            start,
            scratch: [0; 16],
            position: start + blocks as u64,
            tweak: *message.iv,
        }
    }

    fn segment<'s>(
        key: &'s crate::CipherKey,
        tweak: &'s mut Block,
        position: u64,
        data: Data<'s>,
    ) -> Segment<'s> {
        let place = key.tweak().map(|key| Tweak { key, position });
        Segment { key: key.data(), tweak: place, state: tweak, data }
    }

    /// The blocks that are processed normally.
    fn whole_blocks(&mut self) -> Segment<'_> {
        let whole = if self.direction == Direction::Encrypt { self.blocks } else { self.blocks - 1 };
        Self::segment(self.key, &mut self.tweak, self.start, self.data.reborrow().split_at(16 * whole).0)
    }

    /// The scratch block.
    fn apart(&mut self) -> Segment<'_> {
        Self::segment(self.key, &mut self.tweak, self.position, Data::in_place(&mut self.scratch))
    }

    /// Fills the scratch block for its first pass.
    fn load(&mut self, executor: &dyn Executor) -> Result<()> {
        let last = 16 * (self.blocks - 1);
        match self.direction {
            Direction::Encrypt => {
                transfer::fetch_output(executor, &mut self.data, last, &mut self.scratch)?;
                self.swap_tail(executor)
            }
            Direction::Decrypt => transfer::fetch_input(executor, &self.data, last, &mut self.scratch),
        }
    }

    /// Writes the start of the scratch block to the partial block at the end of the output, and replaces this start by the
    /// partial block of the input.
    fn swap_tail(&mut self, executor: &dyn Executor) -> Result<()> {
        let start = 16 * self.blocks;
        let tail = self.data.len() - start;
        let mut input = [0; 16];
        transfer::fetch_input(executor, &self.data, start, &mut input[..tail])?;
        transfer::store_output(executor, &mut self.data, start, &self.scratch[..tail])?;
        self.scratch[..tail].copy_from_slice(&input[..tail]);
        input.zeroize();
        Ok(())
    }

    /// Writes the scratch block as the last whole block of the result.
    fn store(&mut self, executor: &dyn Executor) -> Result<()> {
        transfer::store_output(executor, &mut self.data, 16 * (self.blocks - 1), &self.scratch)
    }
}

impl Drop for Stealing<'_> {
    fn drop(&mut self) {
        self.scratch.zeroize();
    }
}
