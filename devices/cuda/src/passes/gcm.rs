//! GCM of many messages at once, in the order of [`compose::gcm_of_chunk`](lockstep_gpu_host::compose::gcm_of_chunk). ECB
//! computes the hash keys and the tag masks. The device computes the tags, and writes or compares them. A message with a wrong
//! tag is never decrypted, and its output is zeroed.

use lockstep_core::Result;
use lockstep_gpu_host::compose::GcmSteps;

use super::aead::zero_refused;
use super::{Batch, ghash};
use crate::kernel::{Part, helper, one_each};
use crate::launch::Parameters;

impl GcmSteps for &Batch<'_> {
    fn encrypt_auxiliary(&mut self) -> Result<()> {
        Batch::encrypt_auxiliary(self)
    }

    fn ctr(&mut self, is_gated: bool) -> Result<()> {
        self.work(Part::Ctr32)?;
        if is_gated { zero_refused(self) } else { Ok(()) }
    }

    fn hash(&mut self) -> Result<()> {
        ghash::hash(self)
    }

    fn tags(&mut self) -> Result<()> {
        let Some(aead) = &self.aead else { return Err(self.undescribed()) };
        let work = &self.work;
        let parameters =
            Parameters::default().long(work.segments).long(aead.extras).long(aead.status).word(work.count);
        self.launch(helper::GCM_TAGS, one_each(work.count.into()), &parameters, 0)
    }
}
