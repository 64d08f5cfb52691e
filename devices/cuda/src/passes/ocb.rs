//! OCB3 of many messages at once (RFC 7253). One kernel encrypts or decrypts the whole blocks with their offsets, and computes
//! the checksums. All other blocks are encrypted by ECB (see `kernels/ocb/ocb.cu`). The device writes or compares the tags, and
//! zeroes the output of messages with wrong tags.

use lockstep_core::Result;

use super::aead::zero_refused;
use super::{Batch, Tiled};
use crate::kernel::{Part, helper, one_each};
use crate::launch::Parameters;

/// The parameters of OCB3 other than the segments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ocb {
    pub(crate) keys: u32,
    /// Address of the masks of the keys, [`crate::kernel::OCB_MASKS`] bytes each.
    pub(crate) masks: u64,
    /// Segments that contain the regions of the messages. A region has a block for each block of associated data, and one
    /// for the partial block of the data.
    pub(crate) regions: Tiled,
}

pub(super) fn run(batch: &Batch<'_>, opens: bool) -> Result<()> {
    let (Some(ocb), Some(aead), Some(auxiliary)) = (&batch.ocb, &batch.aead, &batch.auxiliary) else {
        return Err(batch.undescribed());
    };
    batch.encrypt_auxiliary()?;
    let keys = Parameters::default().long(ocb.masks).long(auxiliary.blocks).word(ocb.keys);
    batch.launch(helper::OCB_KEYS, one_each(ocb.keys.into()), &keys, 0)?;
    let work = &batch.work;
    let messages = Parameters::default()
        .long(work.segments)
        .long(aead.extras)
        .long(ocb.masks)
        .long(work.first_tile)
        .long(batch.scratch)
        .long(aead.status)
        .word(work.count)
        .word(work.tiling.tile as u32);
    let warps = one_each(32 * u64::from(work.count));
    batch.launch(helper::OCB_BEGIN, warps, &messages, 0)?;
    batch.over(&ocb.regions, Part::EcbEncrypt, 0)?;
    let part = if opens { Part::OcbDecrypt } else { Part::OcbEncrypt };
    let shape = work.tiling.shape(batch.gpu.limits(), work.tiles);
    let blocks = batch.parameters(work, work.tiling.option(batch.size)).long(ocb.masks);
    batch.launch(work.tiling.entry(part, batch.size), shape, &blocks, batch.bytes)?;
    batch.launch(helper::OCB_SUM, warps, &messages, 0)?;
    // The tag blocks of the messages now hold the blocks whose encryptions give the tags. The blocks of the keys are encrypted again too.
    // This has no effect, because they are not read any more: the masks have already been computed from them.
    batch.encrypt_auxiliary()?;
    batch.launch(helper::OCB_TAGS, one_each(work.count.into()), &messages, 0)?;
    if opens { zero_refused(batch) } else { Ok(()) }
}
