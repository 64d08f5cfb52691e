//! Incremental GCM: checks the order of calls and the limits on lengths. The keys and the state are in `context`.

use lockstep_core::gcm::{MAX_AAD_OR_IV, MAX_DATA};
use lockstep_core::work::Tag;

use super::InlineKernel;
use super::context::{self, Context};
use super::key::is_key_length;
use crate::kernel::{Block, Span};
use crate::kernels::with_kernel;
use crate::message::gcm::Ctr32;

/// Incremental GCM; keys and state are zeroed on drop.
///
/// A message is one call of [`start`](InlineGcm::start), any number of [`aad`](InlineGcm::aad), any number of
/// [`update`](InlineGcm::update) with pieces of any length, and one `finish_seal` or `finish_open`. A call out of order, or
/// beyond the limits of GCM, is refused and changes nothing. Decryption returns plaintext before the tag is checked, and
/// the reuse of a nonce is not detected.
pub struct InlineGcm {
    gcm: Box<dyn Context>,
    phase: Phase,
    encrypt: bool,
    /// Number of bytes so far: of additional data in `aad`, of data in `data`.
    aad: u64,
    data: u64,
}

/// The state of the current message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No key is set, because the last call of `set_key` failed.
    Keyless,
    /// No message is in progress.
    Between,
    Aad,
    Data,
}

impl InlineGcm {
    /// `None` if the key does not have 16, 24 or 32 bytes, or if memory cannot be allocated.
    pub fn new(kernel: InlineKernel, key: &[u8]) -> Option<InlineGcm> {
        if !is_key_length(key.len()) {
            return None;
        }
        let gcm = with_kernel!(kernel.0, kernel => context::new(kernel, key)?);
        Some(InlineGcm { gcm, phase: Phase::Between, encrypt: true, aad: 0, data: 0 })
    }

    /// Replaces the key and ends the current message; keys of copies do not change. Returns false and changes nothing if the
    /// key does not have 16, 24 or 32 bytes. Also returns false if memory cannot be allocated; then a key must be set before
    /// the next message.
    pub fn set_key(&mut self, key: &[u8]) -> bool {
        if !is_key_length(key.len()) {
            return false;
        }
        let done = self.gcm.set_key(key);
        self.phase = if done { Phase::Between } else { Phase::Keyless };
        done
    }

    /// Starts a message with an IV of at least 1 byte; the current message ends. False if the IV is empty or too long, or if
    /// no key is set.
    pub fn start(&mut self, encrypt: bool, iv: &[u8]) -> bool {
        if self.phase == Phase::Keyless || iv.is_empty() || iv.len() as u64 > MAX_AAD_OR_IV {
            return false;
        }
        self.gcm.start(iv);
        self.phase = Phase::Aad;
        (self.encrypt, self.aad, self.data) = (encrypt, 0, 0);
        true
    }

    /// Adds additional data, which precede the data. False if refused.
    pub fn aad(&mut self, aad: &[u8]) -> bool {
        if self.phase != Phase::Aad || aad.len() as u64 > MAX_AAD_OR_IV - self.aad {
            return false;
        }
        self.aad += aad.len() as u64;
        self.gcm.aad(aad);
        true
    }

    /// Encrypts or decrypts data of any length. False if refused.
    pub fn update(&mut self, data: Span<'_>) -> bool {
        self.update_with(data, None)
    }

    /// Like [`update`](InlineGcm::update), but calls `ctr32` for CTR over whole blocks. `ctr32` must behave like
    /// [`InlineKey::ctr32`](super::InlineKey::ctr32), but may process a part of the blocks and return the rest, which this key then
    /// processes. It is called at most once with the blocks of the data and `true`, and then at most once with one block of zeros and
    /// `false`: that block becomes the keystream of an incomplete block.
    pub fn update_by(
        &mut self,
        data: Span<'_>,
        ctr32: &mut dyn for<'d> FnMut(&mut Block, Span<'d>, bool) -> Option<Span<'d>>,
    ) -> bool {
        self.update_with(data, Some(ctr32))
    }

    #[inline(always)]
    fn update_with(&mut self, data: Span<'_>, ctr32: Option<Ctr32<'_>>) -> bool {
        if !matches!(self.phase, Phase::Aad | Phase::Data) || data.len() as u64 > MAX_DATA - self.data {
            return false;
        }
        if data.is_empty() {
            return true;
        }
        let first = std::mem::replace(&mut self.phase, Phase::Data) == Phase::Aad;
        self.data += data.len() as u64;
        self.gcm.update(first, self.encrypt, data, ctr32);
        true
    }

    /// Ends the current message if it has the given direction. Returns false if no such message is in progress.
    fn end(&mut self, encrypt: bool) -> bool {
        let under_way = matches!(self.phase, Phase::Aad | Phase::Data) && self.encrypt == encrypt;
        if under_way {
            self.phase = Phase::Between;
        }
        under_way
    }

    /// Ends an encryption and returns the full tag. `None` if no encryption is in progress.
    pub fn finish_seal(&mut self) -> Option<Block> {
        self.end(true).then(|| self.gcm.tag(self.aad, self.data))
    }

    /// Ends a decryption. True if `tag` equals the computed tag or its first 1 to 15 bytes. The comparison is constant-time. A
    /// tag of another length is refused, and the message is not ended.
    pub fn finish_open(&mut self, tag: &[u8]) -> bool {
        if !(1..=16).contains(&tag.len()) || !self.end(false) {
            return false;
        }
        self.gcm.verify(self.aad, self.data, tag)
    }

    /// Processes a whole message in one call, which takes less time than the separate calls; the current message ends. Encrypts data and
    /// writes a tag of 1 to 16 bytes, or decrypts data and compares such a tag in constant time. False if the tag is wrong: then the
    /// output is not authentic. `None`, without any change, if a length is not one of GCM, or if no key is set.
    pub fn message(&mut self, iv: &[u8], aad: &[u8], data: Span<'_>, tag: &mut Tag<'_>) -> Option<bool> {
        if !self.accepts(iv, aad, &data, tag) {
            return None;
        }
        self.phase = Phase::Between;
        Some(self.gcm.message(iv, aad, data, tag))
    }

    /// Like [`message`](InlineGcm::message), but does not end the current message, and several threads may call this function at the same
    /// time. Also returns `None`, without any change, if memory cannot be allocated.
    pub fn shared_message(&self, iv: &[u8], aad: &[u8], data: Span<'_>, tag: &mut Tag<'_>) -> Option<bool> {
        self.accepts(iv, aad, &data, tag).then(|| self.gcm.shared_message(iv, aad, data, tag))?
    }

    /// True if a key is set and the lengths of a message are those of GCM.
    fn accepts(&self, iv: &[u8], aad: &[u8], data: &Span<'_>, tag: &Tag<'_>) -> bool {
        self.phase != Phase::Keyless
            && !iv.is_empty()
            && iv.len().max(aad.len()) as u64 <= MAX_AAD_OR_IV
            && data.len() as u64 <= MAX_DATA
            && (1..=16).contains(&tag.len())
    }

    /// An independent copy of the current state; `None` if memory cannot be allocated. Copies share the key, with all powers of
    /// H; the first copy of a context computes them. The key is wiped when no context uses it any more. Several threads may copy
    /// a context at the same time.
    pub fn duplicate(&self) -> Option<InlineGcm> {
        let InlineGcm { phase, encrypt, aad, data, .. } = *self;
        Some(InlineGcm { gcm: self.gcm.duplicate()?, phase, encrypt, aad, data })
    }
}

#[cfg(test)]
mod tests;
