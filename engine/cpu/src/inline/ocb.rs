//! Incremental OCB3 (RFC 7253).

use lockstep_core::gcm::tags_match;

use super::InlineKernel;
use super::key::InlineKey;
use crate::kernel::boxed;
use crate::kernel::entry::Entry;
use crate::kernel::wiped::Wiped;
use crate::kernel::{Block, Kernel, OcbKey, Span};
use crate::kernels::with_any;
use crate::message::ocb::{OcbKeys, State};

/// Incremental OCB3; keys and state are on the heap, and are zeroed on drop.
///
/// A message is one call of [`start`](InlineOcb::start), any number of [`aad`](InlineOcb::aad) and of
/// [`blocks`](InlineOcb::blocks) in any order, at most one [`last`](InlineOcb::last), and one `finish_seal` or `finish_open`.
/// Decryption returns plaintext before the tag is checked, and the reuse of a nonce is not detected.
pub struct InlineOcb(Box<Parts>);

/// The keys and the state of a message.
struct Parts {
    key: InlineKey,
    masks: OcbKey,
    state: State,
    encrypts: bool,
}

/// Evaluates an expression with the keys and the state of an [`InlineOcb`].
macro_rules! with_state {
    ($ocb:expr, ($key:ident, $state:ident) => $call:expr) => {{
        let Parts { key, masks, state: $state, .. } = &mut *$ocb.0;
        with_any!(key.any(), (kernel, schedule) => {
            let _entry = Entry::of(*kernel);
            let $key = &OcbKeys { kernel: *kernel, schedule, masks };
            $call
        })
    }};
}

impl InlineOcb {
    /// OCB3 with a key of 16, 24 or 32 bytes. `None` if the key has another length, or if memory cannot be allocated.
    pub fn new(kernel: InlineKernel, key: &[u8]) -> Option<InlineOcb> {
        let mut ocb = InlineOcb::blank(InlineKey::new(kernel, key)?)?;
        let Parts { key, masks, .. } = &mut *ocb.0;
        with_any!(key.any(), (kernel, schedule) => {
            let _entry = Entry::of(*kernel);
            let mut star = Wiped::<1>::zero();
            kernel.encrypt_block(schedule, &mut star[0]);
            masks.fill(&star[0]);
        });
        Some(ocb)
    }

    /// OCB3 whose masks are zeros; `None` if memory cannot be allocated.
    fn blank(key: InlineKey) -> Option<InlineOcb> {
        let (masks, state) = (OcbKey::default(), State::default());
        Some(InlineOcb(boxed::try_new(|| Some(Parts { key, masks, state, encrypts: true }))?))
    }

    /// Starts a message with tags of 1 to 16 bytes; the current message ends.
    ///
    /// # Panics
    /// If the nonce does not have 1 to 15 bytes.
    pub fn start(&mut self, encrypts: bool, nonce: &[u8], tag_len: usize) {
        with_state!(self, (key, state) => state.start(key, nonce, tag_len));
        self.0.encrypts = encrypts;
    }

    /// Adds associated data of any length.
    pub fn aad(&mut self, aad: &[u8]) {
        with_state!(self, (key, state) => state.aad(key, aad));
    }

    /// Encrypts or decrypts whole blocks.
    ///
    /// # Panics
    /// If the length is not a multiple of 16 bytes.
    pub fn blocks(&mut self, data: Span<'_>) {
        let encrypts = self.0.encrypts;
        with_state!(self, (key, state) => state.blocks(key, encrypts, data));
    }

    /// Does the same as [`blocks`](InlineOcb::blocks), but calls `ecb` to encrypt or decrypt masked blocks by ECB, up to 4 MiB at
    /// once. If `ecb` returns the blocks, unchanged, this key processes them. Allocates memory for the masks; without memory, this key
    /// processes all blocks.
    ///
    /// # Panics
    /// If the length is not a multiple of 16 bytes.
    pub fn blocks_by(&mut self, data: Span<'_>, ecb: &mut dyn for<'d> FnMut(Span<'d>) -> Option<Span<'d>>) {
        let encrypts = self.0.encrypts;
        with_state!(self, (key, state) => state.blocks_by(key, encrypts, data, ecb));
    }

    /// Encrypts or decrypts the last, partial block of 1 to 15 bytes. Only the tag may follow.
    ///
    /// # Panics
    /// If the length is not 1 to 15 bytes.
    pub fn last(&mut self, data: Span<'_>) {
        assert!((1..=15).contains(&data.len()), "a partial block");
        let encrypts = self.0.encrypts;
        with_state!(self, (key, state) => state.last(key, encrypts, data));
    }

    /// Ends an encryption and returns 16 bytes. The tag is the beginning of these bytes, with the length that was stated at
    /// the start.
    pub fn finish_seal(&mut self) -> Block {
        with_state!(self, (key, state) => {
            let mut computed = Wiped::<1>::zero();
            state.tag(key, &mut computed[0]);
            computed[0]
        })
    }

    /// Ends a decryption. True if `tag` has the right value. The comparison is constant-time.
    pub fn finish_open(&mut self, tag: &[u8]) -> bool {
        with_state!(self, (key, state) => {
            let mut computed = Wiped::<1>::zero();
            state.tag(key, &mut computed[0]);
            tags_match(&computed[0], tag)
        })
    }

    /// An independent copy of the current state; `None` if memory cannot be allocated.
    pub fn duplicate(&self) -> Option<InlineOcb> {
        let Parts { key, masks, state, encrypts } = &*self.0;
        let mut copy = InlineOcb::blank(key.clone())?;
        with_any!(key.any(), (kernel, _) => {
            let _entry = Entry::of(*kernel);
            copy.0.masks.copy_from(masks);
            copy.0.state.copy_from(state);
            copy.0.encrypts = *encrypts;
        });
        Some(copy)
    }
}
