//! CMAC (SP 800-38B): a CBC-MAC whose last block is masked with a subkey.

use zeroize::Zeroize;

use crate::data::Data;
use crate::error::Result;
use crate::key::{Block, Key, KeySize};
use crate::mode::ccm::cbc_mac;
use crate::mode::cipher::run_segments;
use crate::planner::Planner;
use crate::work::{Pass, Segment};

/// The CMAC of each message, in one batch.
///
/// # Errors
/// Those of devices.
pub fn cmac(planner: &Planner, messages: &mut [CmacMessage<'_>]) -> Result<()> {
    for size in KeySize::ALL {
        let mut segments = Vec::new();
        for message in messages.iter_mut().filter(|message| message.key.size() == size) {
            *message.mac = [0; 16];
            let (blocks, _) = split_last(message.data);
            if !blocks.is_empty() {
                let data = Data::read_only(blocks);
                segments.push(Segment { key: message.key, tweak: None, register: message.mac, data });
            }
        }
        run_segments(planner, Pass::CbcMac, &mut segments)?;
    }
    for message in messages {
        finish(planner, message.key, message.mac, split_last(message.data).1)?;
    }
    Ok(())
}

/// One message of a batch.
#[derive(Debug)]
pub struct CmacMessage<'d> {
    /// The key.
    pub key: &'d Key,
    /// What to authenticate; any length.
    pub data: &'d [u8],
    /// The MAC, written.
    pub mac: &'d mut Block,
}

/// All whole blocks but the last block, and the last block: 1 to 16 bytes, or none of an empty message.
fn split_last(data: &[u8]) -> (&[u8], &[u8]) {
    data.split_at(data.len().saturating_sub(1) & !15)
}

/// Folds in the last 0 to 16 bytes with their subkey (SP 800-38B, 6.1 and 6.2).
pub(crate) fn finish(planner: &Planner, key: &Key, mac: &mut Block, last: &[u8]) -> Result<()> {
    let mut subkey = [0; 16];
    cbc_mac(planner, key, &mut subkey, &[0; 16])?;
    double(&mut subkey);
    let mut block = [0; 16];
    block[..last.len()].copy_from_slice(last);
    if last.len() < 16 {
        double(&mut subkey);
        block[last.len()] = 0x80;
    }
    block.iter_mut().zip(&subkey).for_each(|(byte, mask)| *byte ^= mask);
    let outcome = cbc_mac(planner, key, mac, &block);
    subkey.zeroize();
    block.zeroize();
    outcome
}

/// Doubling in GF(2^128), most significant bit first.
fn double(block: &mut Block) {
    let value = u128::from_be_bytes(*block);
    *block = ((value << 1) ^ ((value >> 127) * 0x87)).to_be_bytes();
}
