//! Adds data to hashes and MACs with the passes that only read their data: GHASH, POLYVAL and CBC-MAC.

use lockstep_core::data::Data;
use lockstep_core::work::{Pass, Segment};
use lockstep_core::{Block, Key, Result};
use zeroize::Zeroizing;

use crate::executor::Executor;
use crate::{run_pass, transfer};

/// Adds bytes of host memory, padded with zeros to whole blocks.
pub(crate) fn bytes(
    executor: &dyn Executor,
    pass: Pass,
    key: &Key,
    state: &mut Block,
    bytes: &[u8],
) -> Result<()> {
    let (whole, tail) = bytes.split_at(bytes.len() & !15);
    let mut last = Zeroizing::new([0; 16]);
    last[..tail.len()].copy_from_slice(tail);
    for blocks in [whole, &last[..tail.len().next_multiple_of(16)]] {
        if !blocks.is_empty() {
            let data = Data::read_only(blocks);
            executor.run_pass(pass, &mut [Segment { key, tweak: None, state, data }])?;
        }
    }
    Ok(())
}

/// The input or the output of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Input,
    Output,
}

impl Side {
    /// Returns the input or the output of the data, read-only.
    pub(crate) fn of<'s>(self, data: &'s mut Data<'_>) -> Data<'s> {
        match self {
            Side::Input => data.input_only(),
            Side::Output => data.output_only(),
        }
    }
}

/// A message to add: its key, its hash or MAC, the data to add, and an optional last block, which is added after the data.
pub(crate) type Absorbed<'a, 'd> = (&'a Key, &'a mut Block, &'a mut Data<'d>, Option<Block>);

/// Adds the data of all messages, padded with zeros to whole blocks. After the data of a message, adds its last block, if there
/// is one.
pub(crate) fn data<'a, 'd: 'a>(
    executor: &dyn Executor,
    pass: Pass,
    side: Side,
    messages: impl Iterator<Item = Absorbed<'a, 'd>>,
) -> Result<()> {
    let mut messages: Vec<_> = messages.collect();
    // For each message, the partial block at the end of its data, and the last block.
    let mut ends = Zeroizing::new(vec![[0; 32]; messages.len()]);
    for ((.., data, _), end) in messages.iter_mut().zip(&mut *ends) {
        let (len, tail) = (data.len(), data.len() % 16);
        transfer::fetch_input(executor, &side.of(data), len - tail, &mut end[..tail])?;
    }
    let with_blocks = messages.iter_mut().filter(|(_, _, data, _)| data.len() >= 16);
    let blocks = with_blocks.map(|(key, state, data, _)| {
        let whole = data.len() & !15;
        (*key, &mut **state, side.of(data).split_at(whole).0)
    });
    run_pass(executor, pass, blocks)?;
    let ends = messages.iter_mut().zip(&mut *ends).map(|((key, state, data, last), end)| {
        let mut len = (data.len() % 16).next_multiple_of(16);
        if let Some(last) = last {
            end[len..len + 16].copy_from_slice(last);
            len += 16;
        }
        (*key, &mut **state, Data::read_only(&end[..len]))
    });
    run_pass(executor, pass, ends.filter(|(.., end)| !end.is_empty()))
}
