//! The times of operations, in clocks.
//!
//! No document states these times. They were fitted to the measurements in Table 5.1 (one and 12 QPUs) and Tables 7.1 and 7.2
//! (transfers of vectors) of a thesis about AES on the Raspberry Pi's GPU. The time of loads of long rows is derived from a
//! rate of 690 MB/s, which others measured with 16 rows of 64 bytes on a Raspberry Pi 2.

/// Clocks of an instruction: the 16 elements are processed as four quads.
pub const CLOCKS_PER_INSTRUCTION: u64 = 4;

/// Clocks for which a request occupies its texture unit: one for each element.
pub const TMU_CLOCKS_PER_REQUEST: u64 = 16;

/// Clocks from the end of the time in which a request occupies its unit until its result is in the FIFO.
pub const TMU_LATENCY: u64 = 50;

/// Clocks of a DMA load, without the clocks of its rows.
pub const DMA_LOAD_CLOCKS: u64 = 135;

/// Clocks of a DMA store, without the clocks of its rows. A store of 16 rows of one word was measured to take 157
/// clocks.
pub const DMA_STORE_CLOCKS: u64 = 141;

/// Clocks of a row of a DMA load: 15 for 64 bytes, and at least six. Two loads of 16 rows of one word were measured to take
/// 462 clocks.
pub fn load_row_clocks(words: u64) -> u64 {
    (words * 15).div_ceil(16).max(6)
}

/// Clocks of a row of a DMA store. Only a row of one word has been measured. Longer rows are assumed to take as long as in a
/// load.
pub fn store_row_clocks(words: u64) -> u64 {
    (words * 15).div_ceil(16)
}
