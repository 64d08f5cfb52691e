//! Expanded keys, and all modes except GCM and OCB3, including CCM.

use lockstep_core::work::Pass;

use super::InlineKernel;
use crate::kernel::boxed::Shared;
use crate::kernel::entry::Entry;
use crate::kernel::wiped::Wiped;
use crate::kernel::{Block, Kernel, Span};
use crate::kernels::{Any, Member, Schedules, with_any, with_kernel};

/// A key, expanded for one kernel. The key and the round keys are on the heap, so that a move leaves no copy of them. Clones share
/// them; they are zeroed when the last clone is dropped.
#[derive(Clone)]
pub struct InlineKey(Shared<Expanded>);

/// A key in the format of a kernel, and its bytes.
struct Expanded {
    key: Any<Schedules>,
    bytes: Wiped<2>,
    len: usize,
    /// True if the round keys of decryption have been expanded.
    decrypts: bool,
}

/// True for the lengths of AES keys, in bytes.
pub(super) fn is_key_length(len: usize) -> bool {
    matches!(len, 16 | 24 | 32)
}

macro_rules! modes {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) $(if $inverse:expr)? => $call:ident($($value:expr),*);)*) => {
        $(
            $(#[$doc])*
            #[inline]
            pub fn $name(&self, $($arg: $type),*) {
                $(assert!(!$inverse || self.0.decrypts, "the key must be expanded for decryption");)?
                with_any!(self.any(), (kernel, schedule) => {
                    let _entry = Entry::of(*kernel);
                    kernel.$call(schedule, $($value),*);
                })
            }
        )*
    };
}

/// Data are whole blocks unless stated otherwise. Chaining registers and counters are updated, so that the next call
/// continues the message. Decryption by ECB, CBC, PCBC and XTS panics if the key has been expanded for encryption only.
impl InlineKey {
    /// Expands a key of 16, 24 or 32 bytes. `None` if the key has another length, or if memory cannot be allocated.
    pub fn new(kernel: InlineKernel, key: &[u8]) -> Option<InlineKey> {
        InlineKey::for_directions(kernel, key, true)
    }

    /// Does the same as [`InlineKey::new`]. If `decrypts` is false, the key is not expanded for decryption by ECB, CBC, PCBC and XTS,
    /// which takes less time.
    pub fn for_directions(kernel: InlineKernel, key: &[u8], decrypts: bool) -> Option<InlineKey> {
        let mut new = InlineKey::blank(kernel)?;
        new.set(key, decrypts).then_some(new)
    }

    /// Expands the key for decryption by ECB, CBC, PCBC and XTS, if it has not been: in its place if there are no clones. False if
    /// memory cannot be allocated; the key is not changed then.
    pub fn ensure_decryption(&mut self) -> bool {
        if self.0.decrypts {
            return true;
        }
        let Some(Expanded { key, bytes, len, decrypts }) = self.0.get_mut() else {
            let shared = self.clone();
            return self.set(shared.bytes(), true);
        };
        with_any!(key, (kernel, schedule) => {
            let _entry = Entry::of(*kernel);
            kernel.expand_into(&bytes.as_flattened()[..*len], schedule);
        });
        *decrypts = true;
        true
    }

    /// Replaces the key, in its place if there are no clones; keys of clones do not change. False if the key does not have 16, 24 or 32
    /// bytes, or if memory cannot be allocated; the key is not changed then. If `decrypts` is false, the key may be expanded for
    /// encryption only: see [`InlineKey::for_directions`].
    pub fn set(&mut self, key: &[u8], decrypts: bool) -> bool {
        if !is_key_length(key.len()) {
            return false;
        }
        let Some(Expanded { key: any, bytes, len, decrypts: both }) = self.0.get_mut() else {
            // The new key has no clones, so it is set in its place.
            return InlineKey::for_directions(self.kernel(), key, decrypts).map(|new| *self = new).is_some();
        };
        with_any!(any, (kernel, schedule) => {
            let _entry = Entry::of(*kernel);
            // A shorter key leaves nothing of a longer one.
            **bytes = [[0; 16]; 2];
            *len = key.len();
            // Two copies of a constant length: a copy of a variable length is a call.
            for at in [0, key.len() - 16] {
                bytes.as_flattened_mut()[at..at + 16].copy_from_slice(&key[at..at + 16]);
            }
            // Round keys of decryption that belong to the old key are replaced, even if they are no longer needed.
            *both |= decrypts;
            if *both {
                kernel.expand_into(key, schedule);
            } else {
                kernel.expand_to_encrypt_into(key, schedule);
            }
        });
        true
    }

    /// The bytes of the key. Copies of them must be wiped.
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes.as_flattened()[..self.0.len]
    }

    /// The kernel of this key.
    pub fn kernel(&self) -> InlineKernel {
        InlineKernel(with_any!(&self.0.key, (kernel, _) => kernel.any()))
    }

    /// The key in the format of its kernel.
    pub(super) fn any(&self) -> &Any<Schedules> {
        &self.0.key
    }

    /// A key whose round keys are zero; `None` if memory cannot be allocated.
    fn blank(kernel: InlineKernel) -> Option<InlineKey> {
        let new = with_kernel!(kernel.0, kernel => {
            Shared::try_new(|| {
                let key = kernel.wrap((kernel, kernel.blank_schedule()?));
                Some(Expanded { key, bytes: Wiped::zero(), len: 0, decrypts: false })
            })?
        });
        Some(InlineKey(new))
    }

    /// XTS of the whole blocks of a data unit, from the start of the unit. `self` is the data key. Both keys have the same
    /// size and kernel. `number` is the number of the unit; `after` is set to the tweak of the block that follows the data.
    ///
    /// # Panics
    ///
    /// If the keys belong to different kernels, or if the data key is not expanded for the direction.
    #[inline]
    pub fn xts_unit(
        &self,
        tweak_key: &InlineKey,
        encrypts: bool,
        number: &Block,
        after: Option<&mut Block>,
        data: Span<'_>,
    ) {
        assert!(encrypts || self.0.decrypts, "the key must be expanded for decryption");
        with_any!(self.any(), (kernel, key) => {
            let _entry = Entry::of(*kernel);
            let (_, tweak_key) = kernel.value_of(tweak_key.any()).expect("the keys belong to the same kernel");
            kernel.xts_unit(key, tweak_key, encrypts, number, after, data);
        });
    }

    modes! {
        /// Encrypts one block.
        encrypt_block(block: &mut Block) => encrypt_block(block);
        /// ECB encryption.
        ecb_encrypt(data: Span<'_>) => ecb(true, data);
        /// ECB decryption.
        ecb_decrypt(data: Span<'_>) if true => ecb(false, data);
        /// CBC encryption.
        cbc_encrypt(iv: &mut Block, data: Span<'_>) => serial(Pass::CbcEncrypt, iv, 8 * data.len() as u64, data);
        /// CBC decryption.
        cbc_decrypt(iv: &mut Block, data: Span<'_>) if true => cbc_decrypt(iv, data);
        /// CFB128 decryption.
        cfb128_decrypt(iv: &mut Block, data: Span<'_>) => cfb128_decrypt(iv, data);
        /// Encryption by CBC or CFB128, encryption or decryption by CFB8, CFB1 or PCBC, or OFB, as `pass` states. CFB8 and CFB1 take
        /// any length. CFB1 processes the first `bits` bits: the most significant bit of each byte is the first, and later bits of
        /// the output are not changed. In other modes, `bits` is the length of the data.
        ///
        /// # Panics
        /// If the pass is not serial, such as decryption by CBC or CFB128, or if it is decryption by PCBC and the key is not
        /// expanded for decryption.
        serial(pass: Pass, register: &mut Block, bits: usize, data: Span<'_>) if pass == Pass::PcbcDecrypt => serial(pass, register, bits as u64, data);
        /// CTR with a 128-bit counter that wraps; any length. The counter is increased by the number of blocks,
        /// including a partial one.
        ctr(counter: &mut Block, data: Span<'_>) => ctr(counter, data);
        /// CTR that increments only the last 32 bits of the counter; any length.
        ctr32(counter: &mut Block, data: Span<'_>) => ctr32(counter, data);
        /// XTS encryption under the data key. `tweak` is the encrypted tweak of the first block.
        xts_encrypt(tweak: &mut Block, data: Span<'_>) => xts(true, tweak, data);
        /// XTS decryption under the data key. `tweak` is the encrypted tweak of the first block.
        xts_decrypt(tweak: &mut Block, data: Span<'_>) if true => xts(false, tweak, data);
        /// CTR and CBC-MAC of all data of a message of CCM; any length. [`Kernel::ccm`] defines `mac` and `first`.
        ccm(encrypts: bool, mac: &mut Block, first: &Block, data: Span<'_>) => ccm(encrypts, mac, first, data);
        /// Folds blocks into a CBC-MAC.
        cbc_mac(state: &mut Block, data: &[u8]) => cbc_mac(state, data);
    }
}

#[cfg(test)]
mod tests;
