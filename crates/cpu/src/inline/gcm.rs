//! GCM in pieces: the order of calls and the limits; who works is in `fused` and `composed`.

use subtle::ConstantTimeEq;

use super::composed::{self, Composed, Ctr32};
use super::fused::Fused;
use super::key::is_key_length;
use super::{InlineKernel, with_kernel};
use crate::kernel::{Block, Span};

/// Most bytes of data in a message (SP 800-38D, 5.2.1.1).
const MOST_DATA: u64 = (1 << 36) - 32;

/// Most bytes of an IV or of additional data: their bits must be below 2^64.
const MOST_OTHER: u64 = (1 << 61) - 1;

/// GCM fed in pieces of any split; keys and messages are wiped on drop.
///
/// A message is [`start`](InlineGcm::start), any number of [`aad`](InlineGcm::aad), any number of
/// [`update`](InlineGcm::update) and one finish. A call out of order, or beyond what GCM allows, is refused and changes
/// nothing. Decryption hands out plaintext before the tag is checked, and a nonce used twice is not found out.
pub struct InlineGcm {
    form: Form,
    phase: Phase,
    encrypt: bool,
    /// Bytes so far.
    aad: u64,
    pub(super) data: u64,
}

enum Form {
    Fused(Fused),
    Composed(Box<dyn Composed>),
}

/// What was last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No key: setting one has failed halfway.
    Keyless,
    /// No message.
    Between,
    Aad,
    Data,
}

impl InlineGcm {
    /// The faster one of AWS-LC's fused implementation and that composed of the kernel's CTR and GHASH, as
    /// measured with `examples/inline`. Nothing if the key has not 16, 24 or 32 bytes, or if there is no memory.
    pub fn new(kernel: InlineKernel, key: &[u8]) -> Option<InlineGcm> {
        if !kernel.prefers_fused_gcm() {
            return InlineGcm::composed(kernel, key);
        }
        if !is_key_length(key.len()) {
            return None;
        }
        Some(InlineGcm::of(Form::Fused(Fused::new(key)?)))
    }

    /// Composed of the kernel's CTR and GHASH.
    pub fn composed(kernel: InlineKernel, key: &[u8]) -> Option<InlineGcm> {
        if !is_key_length(key.len()) {
            return None;
        }
        Some(InlineGcm::of(Form::Composed(with_kernel!(kernel.0, kernel => composed::new(kernel, key)?))))
    }

    fn of(form: Form) -> InlineGcm {
        InlineGcm { form, phase: Phase::Between, encrypt: true, aad: 0, data: 0 }
    }

    /// Another key, in the same memory. False if it has not 16, 24 or 32 bytes; then all is as before. False as well if
    /// there is no memory; then there may be no key. A message under way is given up.
    pub fn set_key(&mut self, key: &[u8]) -> bool {
        if !is_key_length(key.len()) {
            return false;
        }
        let done = match &mut self.form {
            Form::Fused(gcm) => gcm.set_key(key),
            Form::Composed(gcm) => gcm.set_key(key),
        };
        self.phase = if done { Phase::Between } else { Phase::Keyless };
        done
    }

    /// A new message under an IV of 1 byte and more. A message under way is given up.
    pub fn start(&mut self, encrypt: bool, iv: &[u8]) -> bool {
        if self.phase == Phase::Keyless || iv.is_empty() || iv.len() as u64 > MOST_OTHER {
            return false;
        }
        let done = match &mut self.form {
            Form::Fused(gcm) => gcm.start(encrypt, iv),
            Form::Composed(gcm) => {
                gcm.start(iv);
                true
            }
        };
        self.phase = if done { Phase::Aad } else { Phase::Between };
        (self.encrypt, self.aad, self.data) = (encrypt, 0, 0);
        done
    }

    /// More additional data, all of which come before the data.
    pub fn aad(&mut self, aad: &[u8]) -> bool {
        if self.phase != Phase::Aad || aad.len() as u64 > MOST_OTHER - self.aad {
            return false;
        }
        self.aad += aad.len() as u64;
        match &mut self.form {
            Form::Fused(gcm) => gcm.aad(aad),
            Form::Composed(gcm) => {
                gcm.aad(aad);
                true
            }
        }
    }

    /// More data, of any length.
    pub fn update(&mut self, data: Span<'_>) -> bool {
        self.update_with(data, None)
    }

    /// As [`update`](InlineGcm::update), with somebody else's CTR (of which the last 32 bits of the counter count) over
    /// whole blocks, if this is not AWS-LC's. It leaves the counter as `ctr32` does.
    pub fn update_by(&mut self, data: Span<'_>, ctr32: &mut dyn FnMut(&mut Block, Span<'_>)) -> bool {
        self.update_with(data, Some(ctr32))
    }

    #[inline(always)]
    fn update_with(&mut self, data: Span<'_>, ctr32: Option<Ctr32<'_>>) -> bool {
        if !matches!(self.phase, Phase::Aad | Phase::Data) || data.len() as u64 > MOST_DATA - self.data {
            return false;
        }
        if data.is_empty() {
            return true;
        }
        let first = std::mem::replace(&mut self.phase, Phase::Data) == Phase::Aad;
        self.data += data.len() as u64;
        match &mut self.form {
            Form::Fused(gcm) => gcm.update(data),
            Form::Composed(gcm) => {
                if first {
                    gcm.pad();
                }
                gcm.update(self.encrypt, data, ctr32);
                true
            }
        }
    }

    /// True once, if a message of this direction is under way.
    fn end(&mut self, encrypt: bool) -> bool {
        let under_way = matches!(self.phase, Phase::Aad | Phase::Data) && self.encrypt == encrypt;
        if under_way {
            self.phase = Phase::Between;
        }
        under_way
    }

    /// The full tag of an encryption.
    pub fn finish_seal(&mut self) -> Option<Block> {
        if !self.end(true) {
            return None;
        }
        match &mut self.form {
            Form::Fused(gcm) => gcm.seal(),
            Form::Composed(gcm) => Some(gcm.tag(self.aad, self.data)),
        }
    }

    /// Whether this is the tag of a decryption, or its first bytes, at least one; compared in constant time.
    pub fn finish_open(&mut self, tag: &[u8]) -> bool {
        if !(1..=16).contains(&tag.len()) || !self.end(false) {
            return false;
        }
        match &mut self.form {
            Form::Fused(gcm) => gcm.open(tag),
            Form::Composed(gcm) => gcm.tag(self.aad, self.data)[..tag.len()].ct_eq(tag).into(),
        }
    }

    /// Another one that goes on from here by itself. Nothing if there is no memory.
    pub fn duplicate(&self) -> Option<InlineGcm> {
        let form = match &self.form {
            Form::Fused(gcm) => Form::Fused(gcm.duplicate()?),
            Form::Composed(gcm) => Form::Composed(gcm.duplicate()?),
        };
        let InlineGcm { phase, encrypt, aad, data, .. } = *self;
        Some(InlineGcm { form, phase, encrypt, aad, data })
    }
}
