//! Common parts of GCM and OCB3: descriptions of inputs and outputs other than the data, and the zeroing of messages with
//! wrong tags.

use lockstep_core::Result;

use super::Batch;
use crate::kernel::helper;
use crate::launch::Parameters;
use crate::machine::Shape;

/// Addresses of the inputs and outputs of an AEAD other than the data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Aead {
    /// One [`Extra`] for each message.
    pub(crate) extras: u64,
    /// One status byte for each message.
    pub(crate) status: u64,
}

/// `struct Extra` of `kernels/common/aead.cuh`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extra {
    /// Address and length of the associated data.
    pub(crate) aad: (u64, u64),
    /// Address and length of the tag.
    pub(crate) tag: (u64, u32),
    /// Address of the block that is encrypted before the pass. GCM: J0. OCB3: the nonce block, and after the pass the block whose
    /// encryption gives the tag.
    pub(crate) tag_block: u64,
    /// GCM: the address of the ciphertext. OCB3: the address of the region of the message.
    pub(crate) place: u64,
    pub(crate) opens: bool,
    /// OCB3: the number of bits by which the encrypted nonce block is shifted.
    pub(crate) bottom: u32,
}

impl Extra {
    pub(crate) const SIZE: usize = 64;

    pub(crate) fn bytes(&self) -> [u8; Extra::SIZE] {
        let mut bytes = [0; Extra::SIZE];
        let longs = [self.aad.0, self.aad.1, self.tag.0, self.tag_block, self.place];
        let words = [self.tag.1, self.opens.into(), self.bottom];
        for (place, value) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(longs) {
            *place = value.to_ne_bytes();
        }
        for (place, value) in bytes[40..].as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *place = value.to_ne_bytes();
        }
        bytes
    }
}

/// Zeroes the output of messages whose tags were wrong.
pub(super) fn zero_refused(batch: &Batch<'_>) -> Result<()> {
    let work = &batch.work;
    let parameters = Parameters::default()
        .long(work.segments)
        .long(work.first_tile)
        .long(work.tiles)
        .long(work.tiling.tile as u64)
        .word(work.count);
    let grid = i32::try_from(work.tiles).ok();
    let shape = grid.map(|grid| Shape { grid: grid as u32, threads: 128, shared: 0 });
    batch.launch(helper::ZERO_REFUSED, shape, &parameters, 0)
}
