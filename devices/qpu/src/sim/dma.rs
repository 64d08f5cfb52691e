//! The two DMA engines, which copy blocks of words between the VPM and the memory (Broadcom's guide, tables 34 to
//! 36).
//!
//! The effect of vertical loads was derived from programs that ran on hardware: a row of memory becomes a part of a column, and
//! the next row of memory begins `vpitch` rows lower. The simulator rejects widths of 8 and 16 bits, and vertical stores of
//! more than one column.

use super::FaultKind;
use super::memory::Memory;
use super::timing::{DMA_LOAD_CLOCKS, DMA_STORE_CLOCKS, load_row_clocks, store_row_clocks};
use super::vpm::Vpm;

/// A block of words in the VPM.
#[derive(Debug, Clone, Copy)]
struct Block {
    rows: u32,
    words: u32,
    is_horizontal: bool,
    /// The row and column of the first word.
    row: u32,
    column: u32,
    /// Number of rows of the VPM from one row of memory to the next.
    pitch: u32,
}

impl Block {
    /// Returns the row and the column in the VPM for a word of a row of memory.
    fn place(&self, row: u32, word: u32) -> (usize, usize) {
        let start = self.row + row * self.pitch;
        let (row, column) = match self.is_horizontal {
            true => (start, self.column + word),
            false => (start + word, self.column),
        };
        (row as usize, column as usize)
    }

    /// The clocks of all rows. `of_row` returns the clocks of one row.
    fn clocks(&self, of_row: fn(u64) -> u64) -> u64 {
        u64::from(self.rows) * of_row(self.words.into())
    }
}

/// The setup of an engine by a QPU, and its last transfer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Engine {
    block: Option<Block>,
    /// For a load: the number of bytes from one row of memory to the next. For a store: the number of bytes between rows.
    stride: u32,
    /// For a load: the stride that is used if the setup selects the extended stride.
    extended_stride: u32,
    /// The clock at which the QPU's transfer ends.
    pub(super) done_at: u64,
}

impl Engine {
    pub(super) const fn new() -> Engine {
        Engine { block: None, stride: 0, extended_stride: 0, done_at: 0 }
    }

    /// Returns a fault if the last transfer of the QPU has not ended.
    fn check_idle(&self, now: u64) -> Result<(), FaultKind> {
        if self.done_at > now { Err(FaultKind::DmaBusy) } else { Ok(()) }
    }

    /// Processes a word that sets up a load or the stride of loads.
    pub(super) fn set_up_load(&mut self, word: u32, now: u64) -> Result<(), FaultKind> {
        self.check_idle(now)?;
        if word >> 28 == 9 {
            self.extended_stride = word & 0x1fff;
            return Ok(());
        }
        if word >> 28 != 8 {
            return Err(FaultKind::Setup(word));
        }
        let or_16 = |value: u32| if value == 0 { 16 } else { value };
        self.stride = match word >> 24 & 0xf {
            0 => self.extended_stride,
            power => 8 << power,
        };
        self.block = Some(Block {
            rows: or_16(word >> 16 & 0xf),
            words: or_16(word >> 20 & 0xf),
            is_horizontal: word >> 11 & 1 == 0,
            row: word >> 4 & 0x7f,
            column: word & 0xf,
            pitch: or_16(word >> 12 & 0xf),
        });
        Ok(())
    }

    /// Processes a word that sets up a store or the stride of stores.
    pub(super) fn set_up_store(&mut self, word: u32, now: u64) -> Result<(), FaultKind> {
        self.check_idle(now)?;
        if word >> 30 == 3 {
            // In block mode, the rows follow each other without a gap.
            let is_block_mode = word >> 16 & 1 == 1;
            if is_block_mode && word & 0xffff != 0 {
                return Err(FaultKind::Setup(word));
            }
            self.stride = word & 0xffff;
            return Ok(());
        }
        let or_128 = |value: u32| if value == 0 { 128 } else { value };
        let block = Block {
            rows: or_128(word >> 23 & 0x7f),
            words: or_128(word >> 16 & 0x7f),
            is_horizontal: word >> 14 & 1 == 1,
            row: word >> 7 & 0x7f,
            column: word >> 3 & 0xf,
            pitch: 1,
        };
        let is_known = block.is_horizontal || block.rows == 1;
        if word >> 30 != 2 || word & 7 != 0 || !is_known {
            return Err(FaultKind::Setup(word));
        }
        self.block = Some(block);
        Ok(())
    }

    /// Starts a transfer. The transfer must end before the QPU sets up or starts another transfer.
    fn start(
        &mut self,
        now: u64,
        free_at: &mut u64,
        clocks: u64,
        of_row: fn(u64) -> u64,
    ) -> Result<Block, FaultKind> {
        self.check_idle(now)?;
        let block = self.block.ok_or(FaultKind::NoSetup)?;
        *free_at = now.max(*free_at) + clocks + block.clocks(of_row);
        self.done_at = *free_at;
        Ok(block)
    }

    /// Starts a load from an address. `free_at` is the clock at which the engine ends the transfers of other QPUs.
    pub(super) fn load(
        &mut self,
        address: u32,
        now: u64,
        free_at: &mut u64,
        memory: &Memory<'_>,
        vpm: &mut Vpm,
    ) -> Result<(), FaultKind> {
        let block = self.start(now, free_at, DMA_LOAD_CLOCKS, load_row_clocks)?;
        for row in 0..block.rows {
            let start = address.wrapping_add(row * self.stride);
            for word in 0..block.words {
                let (row, column) = block.place(row, word);
                vpm.load(row, column, memory.load(start.wrapping_add(4 * word))?, now, self.done_at)?;
            }
        }
        Ok(())
    }

    /// Starts a store to an address.
    pub(super) fn store(
        &mut self,
        address: u32,
        now: u64,
        free_at: &mut u64,
        memory: &mut Memory<'_>,
        vpm: &mut Vpm,
    ) -> Result<(), FaultKind> {
        let block = self.start(now, free_at, DMA_STORE_CLOCKS, store_row_clocks)?;
        for row in 0..block.rows {
            let start = address.wrapping_add(row * (4 * block.words + self.stride));
            for word in 0..block.words {
                let (row, column) = block.place(row, word);
                memory.store(start.wrapping_add(4 * word), vpm.store(row, column, now, self.done_at)?)?;
            }
        }
        Ok(())
    }
}
