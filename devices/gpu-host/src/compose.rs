//! GCM (SP 800-38D, 7.1 and 7.2): the steps of a chunk of whole messages, and one message that is too long for a chunk,
//! composed of passes.

use lockstep_core::data::{Data, DeviceSlice};
use lockstep_core::gcm::{counter_block, lengths_block, settle};
use lockstep_core::work::{AeadMessage, Pass, Segment, Status};
use lockstep_core::{Block, Key, Result};
use zeroize::Zeroizing;

use crate::messages::{with_input, with_output};

/// The steps of GCM. A device queues each of them for all messages of a chunk.
pub trait GcmSteps {
    /// Encrypts the blocks of zeros to the hash keys, and the first counter block of each message to the mask of its tag.
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

/// A device that does one pass at a time and waits for it.
pub trait PassRunner {
    /// Does a pass over a segment. After an error, the output holds no partial result.
    ///
    /// # Errors
    /// [`lockstep_core::Error::DeviceFailed`].
    fn run(&self, pass: Pass, segment: Segment<'_>) -> Result<()>;

    /// Copies device memory to the host.
    ///
    /// # Errors
    /// [`lockstep_core::Error::DeviceFailed`].
    fn download(&self, from: &DeviceSlice, to: &mut [u8]) -> Result<()>;

    /// Zeroes device memory.
    ///
    /// # Errors
    /// [`lockstep_core::Error::DeviceFailed`].
    fn zero(&self, slice: &DeviceSlice) -> Result<()>;
}

/// Seals or opens a message. Sets `begun` when the output has been written. If this returns an error and `begun` is true,
/// the output is invalid.
///
/// # Errors
/// Errors of the device.
pub fn gcm(
    device: &impl PassRunner,
    opens: bool,
    message: &mut AeadMessage<'_>,
    begun: &mut bool,
) -> Result<()> {
    let (key, nonce) = (message.key, message.nonce);
    let mut hash = Zeroizing::new(Block::default());
    if !opens {
        apply_ctr(device, key, counter_block(nonce, 2), message.data.reborrow())?;
        *begun = true;
    }
    let len = message.data.len();
    let (whole, mut last) = (len / 16 * 16, Block::default());
    hash_bytes(device, key, &mut hash, message.aad)?;
    let ciphertext = if opens { message.data.input_only() } else { message.data.output_only() };
    match &ciphertext {
        Data::Device { from, .. } => device.download(&from.slice(whole..len), &mut last[..len - whole])?,
        data => with_input(data, |input| last[..len - whole].copy_from_slice(&input[whole..])),
    }
    let data = ciphertext.split_at(whole).0;
    device.run(Pass::Ghash, Segment { key, tweak: None, state: &mut hash, data })?;
    hash_bytes(device, key, &mut hash, &last[..len - whole])?;
    hash_bytes(device, key, &mut hash, &lengths_block(message.aad.len() as u64, len as u64))?;
    apply_ctr(device, key, counter_block(nonce, 1), Data::in_place(&mut hash[..]))?;
    message.status = settle(&mut message.tag, &hash);
    if message.status == Status::Done {
        if opens {
            apply_ctr(device, key, counter_block(nonce, 2), message.data.reborrow())?;
            *begun = true;
        }
        return Ok(());
    }
    *begun = true;
    match &mut message.data {
        Data::Device { to, .. } => device.zero(to),
        data => {
            with_output(data, |output| output.fill(0));
            Ok(())
        }
    }
}

fn apply_ctr(device: &impl PassRunner, key: &Key, mut state: Block, data: Data<'_>) -> Result<()> {
    device.run(Pass::Ctr32, Segment { key, tweak: None, state: &mut state, data })
}

/// Hashes bytes, padded with zeros to whole blocks.
fn hash_bytes(device: &impl PassRunner, key: &Key, hash: &mut Block, bytes: &[u8]) -> Result<()> {
    let (whole, rest) = bytes.split_at(bytes.len() / 16 * 16);
    let mut last = Block::default();
    last[..rest.len()].copy_from_slice(rest);
    for blocks in [whole, if rest.is_empty() { &[] } else { &last }] {
        device.run(Pass::Ghash, Segment { key, tweak: None, state: hash, data: Data::read_only(blocks) })?;
    }
    Ok(())
}
