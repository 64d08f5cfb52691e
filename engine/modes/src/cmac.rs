//! CMAC (SP 800-38B): a CBC-MAC whose last block is masked with a subkey.

use zeroize::Zeroizing;

use crate::absorb::Side;
use crate::composed::Pair;
use crate::executor::Executor;
use crate::{run_pass, transfer};
use lockstep_core::data::Data;
use lockstep_core::ocb::double;
use lockstep_core::work::Pass;
use lockstep_core::{Block, Key, KeySize, Result};

/// Computes the CMAC of each message, in one batch.
///
/// # Errors
/// [`lockstep_core::Error::Unsupported`] if the user has named a device that does not support CBC-MAC; errors of devices.
pub fn cmac(executor: &dyn Executor, messages: &mut [CmacMessage<'_>]) -> Result<()> {
    for size in KeySize::ALL {
        if messages.iter().any(|message| message.key.size() == size) {
            executor.check_mac(Pass::CbcMac, size)?;
        }
    }
    for size in KeySize::ALL {
        let of_size = messages.iter_mut().filter(|message| message.key.size() == size);
        let of_size = of_size.map(|m| CmacMessage { key: m.key, data: m.data, mac: &mut *m.mac });
        let mut of_size: Vec<_> = of_size.collect();
        if !of_size.is_empty() {
            of_size.iter_mut().for_each(|message| *message.mac = [0; 16]);
            finish(executor, &mut of_size)?;
        }
    }
    Ok(())
}

/// One message of a batch.
pub struct CmacMessage<'d> {
    /// The key.
    pub key: &'d Key,
    /// The data to authenticate. Any length is allowed.
    pub data: &'d [u8],
    /// The MAC is written here.
    pub mac: &'d mut Block,
}

impl std::fmt::Debug for CmacMessage<'_> {
    /// Prints no contents of buffers.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CmacMessage").field("key", &self.key).finish_non_exhaustive()
    }
}

impl<'d> CmacMessage<'d> {
    /// Splits the data into all blocks before the last block, and the last block. The last block has 1 to 16 bytes, or 0 bytes
    /// if the message is empty.
    fn split_last(&self) -> (&'d [u8], &'d [u8]) {
        self.data.split_at(self.data.len().saturating_sub(1) & !15)
    }
}

/// Completes the MACs: adds the data, which are the ends of the messages, with the last blocks masked with the subkeys
/// (SP 800-38B, 6.1 and 6.2). Each `mac` is the CBC-MAC of the blocks before these data, or zero. All keys have the same size. The
/// CPU may compute the MACs for a device that lacks CBC-MAC.
pub(crate) fn finish(executor: &dyn Executor, ends: &mut [CmacMessage<'_>]) -> Result<()> {
    let long = ends.iter_mut().filter(|end| end.data.len() > 16);
    let blocks = long.map(|end| {
        let blocks = end.split_last().0;
        (end.key, &mut *end.mac, Data::read_only(blocks))
    });
    run_pass(executor, Pass::CbcMac, blocks)?;
    let mut lasts = Zeroizing::new(vec![[0; 16]; ends.len()]);
    // The CBC-MAC of a zero block is its encryption, from which the subkeys are derived.
    let subkeys =
        ends.iter().zip(&mut *lasts).map(|(end, subkey)| (end.key, subkey, Data::read_only(&[0; 16])));
    run_pass(executor, Pass::CbcMac, subkeys)?;
    for (end, block) in ends.iter().zip(&mut *lasts) {
        let last = end.split_last().1;
        *block = double(block);
        if last.len() < 16 {
            *block = double(block);
            block[last.len()] ^= 0x80;
        }
        block.iter_mut().zip(last).for_each(|(byte, data)| *byte ^= data);
    }
    let lasts =
        ends.iter_mut().zip(&*lasts).map(|(end, block)| (end.key, &mut *end.mac, Data::read_only(block)));
    run_pass(executor, Pass::CbcMac, lasts)
}

/// Continues MACs by the data of messages, which `side` selects, and completes them. `change` gets the state of a message, a copy of
/// the end of its data in the first bytes of two blocks, and the length of the end: that of the data if they have less than 16 bytes,
/// otherwise 16 to 31. It may change and lengthen the end, and returns its length. All keys have the same size.
pub(crate) fn of_data<S>(
    executor: &dyn Executor,
    side: Side,
    pairs: &mut [Pair<'_, '_, S>],
    macs: &mut [Block],
    change: impl Fn(&mut S, &mut [u8; 32], usize) -> usize,
) -> Result<()> {
    let mut ends = Zeroizing::new(vec![[0; 32]; pairs.len()]);
    let end_of = |len: usize| if len < 16 { len } else { 16 + len % 16 };
    for (Pair { message, .. }, end) in pairs.iter_mut().zip(&mut *ends) {
        let (len, end_len) = (message.data.len(), end_of(message.data.len()));
        let data = side.of(&mut message.data);
        transfer::fetch_input(executor, &data, len - end_len, &mut end[..end_len])?;
    }
    let long = pairs.iter_mut().zip(&mut *macs).filter(|(pair, _)| pair.message.data.len() >= 32);
    let blocks = long.map(|(Pair { message, .. }, mac)| {
        let before = (message.data.len() - 16) & !15;
        (message.key, mac, side.of(&mut message.data).split_at(before).0)
    });
    run_pass(executor, Pass::CbcMac, blocks)?;
    let ends = pairs.iter_mut().zip(macs).zip(&mut *ends).map(|((Pair { message, state }, mac), end)| {
        let len = change(state, end, end_of(message.data.len()));
        CmacMessage { key: message.key, mac, data: &end[..len] }
    });
    finish(executor, &mut ends.collect::<Vec<_>>())
}
