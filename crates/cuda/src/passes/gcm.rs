//! GCM of many messages at once. ECB gives the hash keys and the tag masks. Encryption runs CTR before GHASH, and
//! decryption runs GHASH before CTR. The device makes or compares the tags. A message with a wrong tag is never
//! decrypted, and its output is zeroed.

use lockstep_core::Result;

use super::{Batch, ghash};
use crate::kernel::{Part, helper, one_each};
use crate::launch::Parameters;
use crate::machine::Shape;

/// Addresses of the inputs and outputs of GCM other than the data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gcm {
    /// One [`Extra`] for each message.
    pub(crate) extras: u64,
    /// One status byte for each message.
    pub(crate) status: u64,
}

/// `struct Extra` of `kernels/ghash/ghash.cu`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extra {
    /// Address and length of the associated data.
    pub(crate) aad: (u64, u64),
    /// Address and length of the tag.
    pub(crate) tag: (u64, u32),
    /// Address of the encrypted J0.
    pub(crate) mask: u64,
    pub(crate) opens: bool,
    /// Address of the ciphertext.
    pub(crate) ciphertext: u64,
}

impl Extra {
    pub(crate) const SIZE: usize = 48;

    pub(crate) fn bytes(&self) -> [u8; Extra::SIZE] {
        let mut bytes = [0; Extra::SIZE];
        for (at, value) in [(0, self.aad.0), (8, self.aad.1), (16, self.tag.0), (24, self.mask)] {
            bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        bytes[32..36].copy_from_slice(&self.tag.1.to_ne_bytes());
        bytes[36..40].copy_from_slice(&u32::from(self.opens).to_ne_bytes());
        bytes[40..48].copy_from_slice(&self.ciphertext.to_ne_bytes());
        bytes
    }
}

pub(super) fn seal(batch: &Batch<'_>) -> Result<()> {
    batch.prelude()?;
    batch.work(Part::Ctr32)?;
    ghash::hash(batch)?;
    tags(batch)
}

pub(super) fn open(batch: &Batch<'_>) -> Result<()> {
    batch.prelude()?;
    ghash::hash(batch)?;
    tags(batch)?;
    batch.work(Part::Ctr32)?;
    zero_refused(batch)
}

fn tags(batch: &Batch<'_>) -> Result<()> {
    let Some(gcm) = &batch.gcm else { return Ok(()) };
    let work = &batch.work;
    let parameters =
        Parameters::default().long(work.segments).long(gcm.extras).long(gcm.status).word(work.count);
    batch.launch(helper::GCM_TAGS, one_each(work.count.into()), &parameters, 0)
}

fn zero_refused(batch: &Batch<'_>) -> Result<()> {
    let work = &batch.work;
    let parameters = Parameters::default()
        .long(work.segments)
        .long(work.first_tile)
        .long(work.tiles)
        .long(work.tiling.tile as u64)
        .word(work.count);
    let grid = i32::try_from(work.tiles).ok();
    let shape = grid.map(|grid| Shape { grid: grid as u32, threads: 128, shared: 0 });
    batch.launch(helper::GCM_ZERO, shape, &parameters, 0)
}
