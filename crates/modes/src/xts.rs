//! XTS with ciphertext stealing (IEEE 1619, 5.3 and 5.4): whole blocks are one pass; the last block and a partial
//! one swap places in a second (and, decrypting, a third) pass of one block a message.

use zeroize::Zeroize;

use crate::executor::Executor;
use crate::message::{Cipher, Direction, Message};
use crate::transfer;
use lockstep_core::data::Data;
use lockstep_core::error::{Error, Result};
use lockstep_core::key::{Block, KeySize};
use lockstep_core::work::{Segment, Tweak};

/// Longest data unit: 2^20 blocks (SP 800-38E, section 4; IEEE 1619, 5.1).
pub const MAX_DATA_UNIT: u64 = 1 << 24;

/// A data unit of `len` bytes is one that XTS takes.
pub(crate) fn check_unit(len: u64) -> Result<()> {
    if len > MAX_DATA_UNIT {
        return Err(Error::TooLong { mode: "XTS", what: "data", limit: MAX_DATA_UNIT });
    }
    Ok(())
}

/// Runs data units, or their ends from block `start` on, whose lengths and keys have been checked.
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
        let mut thefts = Vec::new();
        for message in messages.iter_mut().filter(|message| message.key.data().size() == size) {
            if message.data.len() % 16 == 0 {
                units.push(message.segment(start));
            } else {
                thefts.push(Theft::new(direction, start, message));
            }
        }
        units.extend(thefts.iter_mut().map(Theft::whole_blocks));
        executor.run_pass(pass, &mut units)?;
        drop(units);
        for theft in &mut thefts {
            theft.load(executor)?;
        }
        executor.run_pass(pass, &mut thefts.iter_mut().map(Theft::apart).collect::<Vec<_>>())?;
        if direction == Direction::Decrypt {
            for theft in &mut thefts {
                theft.swap_tail(executor)?;
                theft.position -= 1;
            }
            executor.run_pass(pass, &mut thefts.iter_mut().map(Theft::apart).collect::<Vec<_>>())?;
        }
        for theft in &mut thefts {
            theft.store(executor)?;
        }
    }
    Ok(())
}

/// A data unit of n whole blocks and a partial one.
///
/// Encrypting: blocks 0 to n-1 as they are; then the partial block, filled up from the last ciphertext block, is
/// encrypted as block n and takes the place of that one, whose beginning becomes the partial ciphertext.
/// Decrypting undoes it, so block n comes before block n-1.
struct Theft<'m> {
    direction: Direction,
    key: &'m crate::CipherKey,
    data: Data<'m>,
    /// Whole blocks of the data, and blocks of the unit before them.
    blocks: usize,
    start: u64,
    /// The block being worked on apart, and its place in the unit.
    scratch: Block,
    position: u64,
    /// The tweak of the unit, for each of the passes.
    tweak: Block,
}

impl<'m> Theft<'m> {
    fn new(direction: Direction, start: u64, message: &'m mut Message<'_>) -> Self {
        let blocks = message.data.len() / 16;
        Theft {
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

    /// The blocks that are as in any other unit.
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

    /// The beginning of the scratch block goes out as the partial block, whose input takes its place.
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

    /// The scratch block is the last whole block of the result.
    fn store(&mut self, executor: &dyn Executor) -> Result<()> {
        transfer::store_output(executor, &mut self.data, 16 * (self.blocks - 1), &self.scratch)
    }
}

impl Drop for Theft<'_> {
    fn drop(&mut self) {
        self.scratch.zeroize();
    }
}
