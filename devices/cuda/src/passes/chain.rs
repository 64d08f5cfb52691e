//! Serial modes. The first launch computes the bit planes of all round keys. In the second launch, each thread processes 32
//! messages: each bit position of its words belongs to one message.

use lockstep_core::{KeySize, Result};
use lockstep_gpu_host::Chain;

use super::Batch;
use crate::kernel::{CHAIN_LANES, CHAIN_MESSAGES, helper};
use crate::machine::Shape;

/// Returns the number of warps for this number of messages.
fn warps(messages: usize) -> usize {
    messages.div_ceil(CHAIN_MESSAGES * CHAIN_LANES)
}

/// Returns the number of bytes for the bit planes of all round keys: 128 words for each round key and for each thread of the warps.
pub(crate) fn scratch(messages: usize, size: KeySize) -> Option<usize> {
    warps(messages).checked_mul((size.rounds() + 1) * 128 * 4 * CHAIN_LANES)
}

pub(super) fn run(batch: &Batch<'_>, chain: Chain) -> Result<()> {
    let grid = u32::try_from(warps(batch.work.count as usize)).ok();
    let shape = grid.map(|grid| Shape { grid, threads: CHAIN_LANES as u32, shared: 0 });
    let option = chain as u32 | (batch.size.rounds() as u32) << 8;
    let parameters = batch.parameters(&batch.work, option);
    let with_keys = parameters.clone().word(batch.family.schedule(batch.size) as u32);
    batch.launch(helper::CHAIN_KEYS, shape, &with_keys, 0)?;
    let entry = if chain.decrypts() { helper::CHAIN_DECRYPT } else { helper::CHAIN_ENCRYPT };
    batch.launch(entry, shape, &parameters, batch.bytes)
}
