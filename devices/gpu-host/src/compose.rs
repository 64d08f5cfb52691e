//! The order of the steps of GCM (SP 800-38D, 7.1 and 7.2) for a chunk of whole messages.

use lockstep_core::Result;

/// The steps of GCM. A device queues each of them for all messages of a chunk.
pub trait GcmSteps {
    /// Computes the hash keys, by encryption of blocks of zeros, and the mask of each tag, by encryption of the first counter block of the
    /// message.
    ///
    /// # Errors
    /// [`lockstep_core::Error::DeviceFailed`].
    fn encrypt_auxiliary(&mut self) -> Result<()>;

    /// Encrypts or decrypts the data. If `is_gated` is true, the output of messages whose tags were wrong is zeroed instead.
    ///
    /// # Errors
    /// [`lockstep_core::Error::DeviceFailed`].
    fn ctr(&mut self, is_gated: bool) -> Result<()>;

    /// Hashes the associated data, the ciphertext and the lengths.
    ///
    /// # Errors
    /// [`lockstep_core::Error::DeviceFailed`].
    fn hash(&mut self) -> Result<()>;

    /// Writes the tags, or compares them and sets the statuses.
    ///
    /// # Errors
    /// [`lockstep_core::Error::DeviceFailed`].
    fn tags(&mut self) -> Result<()>;
}

/// Queues the steps of GCM. No message is decrypted before its tag has been compared.
///
/// # Errors
/// Errors of the steps.
pub fn gcm_of_chunk(steps: &mut impl GcmSteps, opens: bool) -> Result<()> {
    steps.encrypt_auxiliary()?;
    if !opens {
        steps.ctr(false)?;
    }
    steps.hash()?;
    steps.tags()?;
    if opens { steps.ctr(true) } else { Ok(()) }
}
