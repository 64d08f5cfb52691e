//! XTS with ciphertext stealing (IEEE 1619, 5.3 and 5.4). The first pass processes whole blocks. If a message ends with a
//! partial block, ciphertext stealing requires a second pass over one block of the message, and decryption a third pass over
//! one block.

use zeroize::Zeroizing;

use crate::executor::Executor;
use crate::message::{Cipher, Direction, Message};
use crate::transfer::{fetch_input, store_output};
use lockstep_core::data::Data;
use lockstep_core::lengths::check_limit;
use lockstep_core::work::Segment;
use lockstep_core::{Block, KeySize, Result};

/// The maximum length of a data unit in bytes: 2^20 blocks (SP 800-38E, section 4; IEEE 1619, 5.1).
pub const MAX_DATA_UNIT: u64 = 1 << 24;

/// Checks that a data unit of `len` bytes is valid.
pub(crate) fn check_unit(len: u64) -> Result<()> {
    check_limit("XTS", "data", len, MAX_DATA_UNIT)
}

/// Processes data units from block `start` on. Their lengths and keys must have been checked.
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
        let of_size = messages.iter_mut().filter(|message| message.key.data().size() == size);
        let mut of_size: Vec<_> = of_size.map(|message| Unit::new(direction, start, message)).collect();
        executor.run_pass(pass, &mut of_size.iter_mut().map(Unit::whole_blocks).collect::<Vec<_>>())?;
        of_size.retain(Unit::steals);
        for unit in &mut of_size {
            unit.load(executor)?;
        }
        executor.run_pass(pass, &mut of_size.iter_mut().map(Unit::apart).collect::<Vec<_>>())?;
        if direction == Direction::Decrypt {
            for unit in &mut of_size {
                unit.swap_tail(executor)?;
                unit.position -= 1;
            }
            executor.run_pass(pass, &mut of_size.iter_mut().map(Unit::apart).collect::<Vec<_>>())?;
        }
        for unit in &mut of_size {
            store_output(executor, &mut unit.message.data, 16 * (unit.blocks - 1), &*unit.scratch)?;
        }
    }
    Ok(())
}

/// A data unit of n whole blocks, with or without a partial block at its end.
///
/// Encryption first encrypts blocks 0 to n-1 normally. Then the partial block is completed with the last bytes of ciphertext
/// block n-1, and the result is encrypted as block n and stored in the place of ciphertext block n-1. The first bytes of the
/// replaced ciphertext block become the partial ciphertext block. Decryption reverses these steps, so it processes block n
/// before block n-1.
struct Unit<'m, 'd> {
    direction: Direction,
    message: &'m mut Message<'d>,
    /// Number of whole blocks.
    blocks: usize,
    /// Number of blocks of the data unit before `message.data`.
    start: u64,
    /// The block that is processed separately.
    scratch: Zeroizing<Block>,
    /// The position of the scratch block in the data unit.
    position: u64,
}

impl<'m, 'd> Unit<'m, 'd> {
    fn new(direction: Direction, start: u64, message: &'m mut Message<'d>) -> Self {
        let blocks = message.data.len() / 16;
        let position = start + blocks as u64;
        Unit { direction, message, blocks, start, scratch: Zeroizing::default(), position }
    }

    /// True if the data unit ends with a partial block.
    fn steals(&self) -> bool {
        !self.message.data.len().is_multiple_of(16)
    }

    /// Returns the segment with the blocks that are processed normally.
    fn whole_blocks(&mut self) -> Segment<'_> {
        let apart = usize::from(self.steals() && self.direction == Direction::Decrypt);
        let segment = self.message.segment(self.start);
        Segment { data: segment.data.split_at(16 * (self.blocks - apart)).0, ..segment }
    }

    /// The scratch block.
    fn apart(&mut self) -> Segment<'_> {
        let data = Data::in_place(&mut *self.scratch);
        Segment { data, ..self.message.segment(self.position) }
    }

    /// Fills the scratch block for its first pass.
    fn load(&mut self, executor: &dyn Executor) -> Result<()> {
        let (data, last) = (&mut self.message.data, 16 * (self.blocks - 1));
        match self.direction {
            Direction::Encrypt => {
                fetch_input(executor, &data.output_only(), last, &mut *self.scratch)?;
                self.swap_tail(executor)
            }
            Direction::Decrypt => fetch_input(executor, data, last, &mut *self.scratch),
        }
    }

    /// Writes the first bytes of the scratch block to the partial block at the end of the output, and replaces these bytes by
    /// the partial block of the input.
    fn swap_tail(&mut self, executor: &dyn Executor) -> Result<()> {
        let (data, start) = (&mut self.message.data, 16 * self.blocks);
        let scratch = &mut self.scratch[..data.len() - start];
        let mut input = Zeroizing::new([0; 16]);
        let input = &mut input[..scratch.len()];
        fetch_input(executor, data, start, input)?;
        store_output(executor, data, start, scratch)?;
        scratch.copy_from_slice(input);
        Ok(())
    }
}
