//! Incremental GCM: checks the order of calls and the limits on lengths. The keys are in `context`.

use lockstep_core::gcm::{MAX_AAD_OR_IV, MAX_DATA, tags_match};
use lockstep_core::work::{Status, Tag};

use super::InlineKernel;
use super::context::{GcmKeys, Keys, message_key};
use super::key::is_key_length;
use crate::kernel::boxed;
use crate::kernel::entry::Entry;
use crate::kernel::wiped::Wiped;
use crate::kernel::{Block, Span};
use crate::kernels::{Any, Member, with_any, with_kernel};
use crate::message::gcm::{Ctr32, State};

/// Incremental GCM; keys and state are on the heap, and are zeroed on drop.
///
/// A message is one call of [`start`](InlineGcm::start), any number of [`aad`](InlineGcm::aad), any number of
/// [`update`](InlineGcm::update) with pieces of any length, and one `finish_seal`, `finish_seal_into` or `finish_open`. A call out of order, or
/// beyond the limits of GCM, is refused and changes nothing. Decryption returns plaintext before the tag is checked, and
/// the reuse of a nonce is not detected.
pub struct InlineGcm(Box<Parts>);

/// The keys and the state of a message.
struct Parts {
    keys: Any<GcmKeys>,
    state: State,
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

/// Evaluates an expression with the key and the state of an [`InlineGcm`].
macro_rules! with_state {
    ($gcm:expr, ($key:ident, $state:ident) => $call:expr) => {{
        let Parts { keys, state: $state, .. } = &mut *$gcm.0;
        with_any!(keys, keys => {
            let _entry = Entry::of(keys.kernel);
            let $key = &mut message_key(keys);
            $call
        })
    }};
}

impl InlineGcm {
    /// `None` if the key does not have 16, 24 or 32 bytes, or if memory cannot be allocated.
    pub fn new(kernel: InlineKernel, key: &[u8]) -> Option<InlineGcm> {
        if !is_key_length(key.len()) {
            return None;
        }
        let keys = with_kernel!(kernel.0, kernel => {
            let _entry = Entry::of(kernel);
            kernel.wrap(Keys::new(kernel, key)?)
        });
        InlineGcm::idle(keys)
    }

    /// A context between two messages; `None` if memory cannot be allocated.
    #[inline(always)]
    fn idle(keys: Any<GcmKeys>) -> Option<InlineGcm> {
        let parts = || {
            Some(Parts { keys, state: State::idle(), phase: Phase::Between, encrypt: true, aad: 0, data: 0 })
        };
        boxed::try_new(parts).map(InlineGcm)
    }

    /// Replaces the key and ends the current message; keys of copies do not change. Returns false and changes nothing if the
    /// key does not have 16, 24 or 32 bytes. Also returns false if memory cannot be allocated; then a key must be set before
    /// the next message.
    pub fn set_key(&mut self, key: &[u8]) -> bool {
        if !is_key_length(key.len()) {
            return false;
        }
        let done = with_any!(&mut self.0.keys, keys => {
            let _entry = Entry::of(keys.kernel);
            Keys::replace(keys, key)
        });
        self.0.phase = if done { Phase::Between } else { Phase::Keyless };
        done
    }

    /// Starts a message with an IV of at least 1 byte; the current message ends. False if the IV is empty or too long, or if
    /// no key is set.
    #[inline]
    pub fn start(&mut self, encrypt: bool, iv: &[u8]) -> bool {
        if self.0.phase == Phase::Keyless || iv.is_empty() || iv.len() as u64 > MAX_AAD_OR_IV {
            return false;
        }
        match iv.try_into() {
            Ok(nonce) => self.0.state.start_nonce(nonce),
            Err(_) => self.start_hashed(iv),
        }
        let parts = &mut *self.0;
        (parts.phase, parts.encrypt, parts.aad, parts.data) = (Phase::Aad, encrypt, 0, 0);
        true
    }

    /// Starts a message with an IV that does not have 12 bytes. A function of its own, so that the other start saves no registers.
    #[cold]
    fn start_hashed(&mut self, iv: &[u8]) {
        with_state!(self, (key, state) => state.start(key, iv));
    }

    /// Adds additional data, which precede the data. False if refused.
    pub fn aad(&mut self, aad: &[u8]) -> bool {
        if self.0.phase != Phase::Aad || aad.len() as u64 > MAX_AAD_OR_IV - self.0.aad {
            return false;
        }
        self.0.aad += aad.len() as u64;
        with_state!(self, (key, state) => state.aad(key, aad));
        true
    }

    /// Encrypts or decrypts data of any length. False if refused.
    // A function of its own, because it contains the code of all kernels.
    #[inline(never)]
    pub fn update(&mut self, data: Span<'_>) -> bool {
        if !self.accept_data(data.len()) {
            return false;
        }
        if !data.is_empty() {
            let encrypt = self.0.encrypt;
            with_state!(self, (key, state) => state.update(key, encrypt, data));
        }
        true
    }

    /// Like [`update`](InlineGcm::update), but calls `ctr32` for CTR over whole blocks. `ctr32` must behave like
    /// [`InlineKey::ctr32`](super::InlineKey::ctr32), but may process a part of the blocks and return the rest, which this key then
    /// processes. It is called at most once with the blocks of the data and `true`, and then at most once with one block of zeros and
    /// `false`: that block becomes the keystream of an incomplete block.
    // A function of its own, because it contains the code of all kernels.
    #[inline(never)]
    pub fn update_by(&mut self, data: Span<'_>, ctr32: Ctr32<'_>) -> bool {
        if !self.accept_data(data.len()) {
            return false;
        }
        if !data.is_empty() {
            let encrypt = self.0.encrypt;
            with_state!(self, (key, state) => state.update_by(key, encrypt, data, ctr32));
        }
        true
    }

    /// Counts data of an update, which end the additional data. False if the update is refused.
    #[inline(always)]
    fn accept_data(&mut self, len: usize) -> bool {
        if !matches!(self.0.phase, Phase::Aad | Phase::Data) || len as u64 > MAX_DATA - self.0.data {
            return false;
        }
        if len > 0 && std::mem::replace(&mut self.0.phase, Phase::Data) == Phase::Aad {
            self.0.state.end_aad();
        }
        self.0.data += len as u64;
        true
    }

    /// Ends the current message if it has the given direction. Returns false if no such message is in progress.
    fn end(&mut self, encrypt: bool) -> bool {
        let under_way = matches!(self.0.phase, Phase::Aad | Phase::Data) && self.0.encrypt == encrypt;
        if under_way {
            self.0.phase = Phase::Between;
        }
        under_way
    }

    /// Ends an encryption and returns the full tag. `None` if no encryption is in progress.
    pub fn finish_seal(&mut self) -> Option<Block> {
        let mut tag = [0; 16];
        self.finish_seal_into(&mut tag).then_some(tag)
    }

    /// Does the same as [`finish_seal`](InlineGcm::finish_seal), and writes the tag to its place. False if no encryption is in progress;
    /// nothing is written then. During the call, the place holds a secret, so it must not be memory that another process can read.
    pub fn finish_seal_into(&mut self, tag: &mut Block) -> bool {
        let (ends, lengths) = (self.end(true), (self.0.aad, self.0.data));
        if ends {
            with_state!(self, (key, state) => state.tag(key, lengths, tag));
        }
        ends
    }

    /// Ends a decryption. True if `tag` equals the computed tag or its first 1 to 15 bytes. The comparison is constant-time. A
    /// tag of another length is refused, and the message is not ended.
    pub fn finish_open(&mut self, tag: &[u8]) -> bool {
        if !(1..=16).contains(&tag.len()) || !self.end(false) {
            return false;
        }
        let lengths = (self.0.aad, self.0.data);
        with_state!(self, (key, state) => {
            // The right tag of a forged message is a secret.
            let mut computed = Wiped::<1>::zero();
            state.tag(key, lengths, &mut computed[0]);
            tags_match(&computed[0], tag)
        })
    }

    /// Processes a whole message in one call, which takes less time than the separate calls; the current message ends. Encrypts data and
    /// writes a tag of 1 to 16 bytes, or decrypts data and compares such a tag in constant time. False if the tag is wrong: then the
    /// output is not authentic. `None`, without any change, if a length is not one of GCM, or if no key is set.
    pub fn message(&mut self, iv: &[u8], aad: &[u8], data: Span<'_>, tag: &mut Tag<'_>) -> Option<bool> {
        if !self.accepts(iv, aad, &data, tag) {
            return None;
        }
        self.0.phase = Phase::Between;
        Some(with_state!(self, (key, state) => {
            state.start(key, iv);
            state.whole(key, None, aad, data, tag) == Status::Done
        }))
    }

    /// Like [`message`](InlineGcm::message), but does not end the current message, and several threads may call this function at the same
    /// time. Also returns `None`, without any change, if memory cannot be allocated. The state of the message is on the stack, and is wiped.
    ///
    /// The first call computes all powers of H. While another thread computes them, a call allocates memory for a copy of the key, and
    /// computes the powers of the copy. In a process that was forked during the computation, every call does so, until a function that
    /// borrows this context exclusively uses or replaces the key.
    pub fn shared_message(&self, iv: &[u8], aad: &[u8], data: Span<'_>, tag: &mut Tag<'_>) -> Option<bool> {
        if !self.accepts(iv, aad, &data, tag) {
            return None;
        }
        with_any!(&self.0.keys, keys => {
            let _entry = Entry::of(keys.kernel);
            let separate = if keys.complete() { None } else { Some(keys.separate()?) };
            let (key, mut state) = (&mut separate.as_ref().unwrap_or(keys).complete_key()?, State::idle());
            state.start(key, iv);
            Some(state.whole(key, None, aad, data, tag) == Status::Done)
        })
    }

    /// True if a key is set and the lengths of a message are those of GCM.
    fn accepts(&self, iv: &[u8], aad: &[u8], data: &Span<'_>, tag: &Tag<'_>) -> bool {
        self.0.phase != Phase::Keyless
            && !iv.is_empty()
            && iv.len().max(aad.len()) as u64 <= MAX_AAD_OR_IV
            && data.len() as u64 <= MAX_DATA
            && (1..=16).contains(&tag.len())
    }

    /// Computes all powers of H, as the first copy does, so that later messages use the loops for many blocks.
    pub fn compute_all_powers(&self) {
        with_any!(&self.0.keys, keys => {
            let _entry = Entry::of(keys.kernel);
            keys.complete();
        });
    }

    /// An independent copy of the current state; `None` if memory cannot be allocated. Copies share the key, with all powers of
    /// H; the first copy of a context computes them. The key is wiped when no context uses it any more. Several threads may copy
    /// a context at the same time.
    pub fn duplicate(&self) -> Option<InlineGcm> {
        with_any!(&self.0.keys, keys => {
            let kernel = keys.kernel;
            let _entry = Entry::of(kernel);
            let mut copy = InlineGcm::idle(kernel.wrap(Keys::share(keys)?))?;
            // The state is copied from heap to heap, without a copy on the stack.
            copy.0.state.copy_from(&self.0.state);
            Parts { phase: copy.0.phase, encrypt: copy.0.encrypt, aad: copy.0.aad, data: copy.0.data, .. } = *self.0;
            Some(copy)
        })
    }
}

#[cfg(test)]
mod tests;
