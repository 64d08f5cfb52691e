//! CMAC (SP 800-38B): a CBC-MAC whose last block is masked with a subkey.

use zeroize::Zeroizing;

use crate::executor::Executor;
use lockstep_core::data::Data;
use lockstep_core::error::Result;
use lockstep_core::key::{Block, Key, KeySize};
use lockstep_core::work::{Pass, Segment};

/// Computes the CMAC of each message, in one batch.
///
/// # Errors
/// Errors of devices.
pub fn cmac(executor: &dyn Executor, messages: &mut [CmacMessage<'_>]) -> Result<()> {
    for size in KeySize::ALL {
        let of_size = |message: &&mut CmacMessage<'_>| message.key.size() == size;
        let mut segments = Vec::new();
        for message in messages.iter_mut().filter(of_size) {
            *message.mac = [0; 16];
            let (blocks, _) = split_last(message.data);
            if !blocks.is_empty() {
                let data = Data::read_only(blocks);
                segments.push(Segment { key: message.key, tweak: None, state: message.mac, data });
            }
        }
        executor.run_pass(Pass::CbcMac, &mut segments)?;
        drop(segments);
        let ends = messages.iter_mut().filter(of_size).map(|message| End {
            key: message.key,
            mac: message.mac,
            last: split_last(message.data).1,
        });
        finish(executor, &mut ends.collect::<Vec<_>>())?;
    }
    Ok(())
}

/// One message of a batch.
pub struct CmacMessage<'d> {
    /// The key.
    pub key: &'d Key,
    /// The data to authenticate; any length.
    pub data: &'d [u8],
    /// The place to which the MAC is written.
    pub mac: &'d mut Block,
}

impl std::fmt::Debug for CmacMessage<'_> {
    /// Prints no content of buffers.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CmacMessage")
            .field("key", &self.key)
            .field("len", &self.data.len())
            .finish_non_exhaustive()
    }
}

/// Splits off the last block, which has 1 to 16 bytes, or 0 bytes for an empty message. The first part consists of all
/// blocks before it.
fn split_last(data: &[u8]) -> (&[u8], &[u8]) {
    data.split_at(data.len().saturating_sub(1) & !15)
}

/// The end of a message: its last 0 to 16 bytes, and the CBC-MAC of everything before.
pub(crate) struct End<'d> {
    pub(crate) key: &'d Key,
    pub(crate) mac: &'d mut Block,
    pub(crate) last: &'d [u8],
}

/// Completes the MACs: adds the ends of the messages, masked with the subkeys (SP 800-38B, 6.1 and 6.2). All keys have the
/// same size.
pub(crate) fn finish(executor: &dyn Executor, ends: &mut [End<'_>]) -> Result<()> {
    let mut blocks = Zeroizing::new(vec![[0; 16]; ends.len()]);
    // The encryption of a zero block is its CBC-MAC.
    let zeros = [0; 16];
    let subkeys = ends.iter().zip(&mut *blocks).map(|(end, subkey)| Segment {
        key: end.key,
        tweak: None,
        state: subkey,
        data: Data::read_only(&zeros),
    });
    executor.run_pass(Pass::CbcMac, &mut subkeys.collect::<Vec<_>>())?;
    for (end, block) in ends.iter().zip(&mut *blocks) {
        double(block);
        if end.last.len() < 16 {
            double(block);
            block[end.last.len()] ^= 0x80;
        }
        block.iter_mut().zip(end.last).for_each(|(byte, data)| *byte ^= data);
    }
    let lasts = ends.iter_mut().zip(&*blocks).map(|(end, block)| Segment {
        key: end.key,
        tweak: None,
        state: end.mac,
        data: Data::read_only(block),
    });
    executor.run_pass(Pass::CbcMac, &mut lasts.collect::<Vec<_>>())
}

/// Doubling in GF(2^128), most significant bit first.
pub(crate) fn double(block: &mut Block) {
    let value = u128::from_be_bytes(*block);
    *block = ((value << 1) ^ ((value >> 127) * 0x87)).to_be_bytes();
}
