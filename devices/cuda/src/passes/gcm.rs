//! GCM of many messages at once. ECB gives the hash keys and the tag masks. Encryption runs CTR before GHASH, and
//! decryption runs GHASH before CTR. The device makes or compares the tags. A message with a wrong tag is never
//! decrypted, and its output is zeroed.

use lockstep_core::Result;

use super::aead::zero_refused;
use super::{Batch, ghash};
use crate::kernel::{Part, helper, one_each};
use crate::launch::Parameters;

pub(super) fn seal(batch: &Batch<'_>) -> Result<()> {
    batch.encrypt_auxiliary()?;
    batch.work(Part::Ctr32)?;
    ghash::hash(batch)?;
    tags(batch)
}

pub(super) fn open(batch: &Batch<'_>) -> Result<()> {
    batch.encrypt_auxiliary()?;
    ghash::hash(batch)?;
    tags(batch)?;
    batch.work(Part::Ctr32)?;
    zero_refused(batch)
}

fn tags(batch: &Batch<'_>) -> Result<()> {
    let Some(aead) = &batch.aead else { return Err(batch.undescribed()) };
    let work = &batch.work;
    let parameters =
        Parameters::default().long(work.segments).long(aead.extras).long(aead.status).word(work.count);
    batch.launch(helper::GCM_TAGS, one_each(work.count.into()), &parameters, 0)
}
