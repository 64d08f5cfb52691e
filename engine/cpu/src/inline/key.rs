//! Expanded keys, and all modes except GCM.

use super::{Choice, InlineKernel, SingleStreamKernel};
#[cfg(target_arch = "aarch64")]
use crate::armv8::Armv8;
use crate::kernel::{Block, Kernel, Span};
use crate::soft::Soft;
#[cfg(target_arch = "x86_64")]
use crate::x86::{AesNi, Vaes256, Vaes512};

/// The schedule of a kernel.
type Schedule<K> = <K as Kernel>::Schedule;

/// A key, expanded for one kernel; zeroed on drop.
///
/// The portable kernel and the Arm kernel store the round keys on the heap. The other kernels store the round keys in the
/// value itself, so moving the value leaves a copy of the round keys in the old place. Construct the value in its final
/// place, for example in a box.
pub struct InlineKey(pub(super) Form);

/// A kernel and the key in its format. This is an enum because a predicted branch costs less than a virtual call.
pub(super) enum Form {
    #[cfg(target_arch = "x86_64")]
    Vaes512(Vaes512, Schedule<Vaes512>),
    #[cfg(target_arch = "x86_64")]
    Vaes256(Vaes256, Schedule<Vaes256>),
    #[cfg(target_arch = "x86_64")]
    AesNi(AesNi, Schedule<AesNi>),
    #[cfg(target_arch = "aarch64")]
    Armv8(Armv8, Schedule<Armv8>),
    Soft(Soft, Schedule<Soft>),
}

/// Evaluates an expression with the kernel and the schedule of a key.
macro_rules! with_form {
    ($form:expr, ($kernel:ident, $schedule:ident) => $call:expr) => {
        match $form {
            #[cfg(target_arch = "x86_64")]
            $crate::inline::key::Form::Vaes512($kernel, $schedule) => $call,
            #[cfg(target_arch = "x86_64")]
            $crate::inline::key::Form::Vaes256($kernel, $schedule) => $call,
            #[cfg(target_arch = "x86_64")]
            $crate::inline::key::Form::AesNi($kernel, $schedule) => $call,
            #[cfg(target_arch = "aarch64")]
            $crate::inline::key::Form::Armv8($kernel, $schedule) => $call,
            $crate::inline::key::Form::Soft($kernel, $schedule) => $call,
        }
    };
}
pub(super) use with_form;

/// A [`Form`] with the schedule that `$make` computes with the token `$kernel`.
macro_rules! form {
    ($choice:expr, $kernel:ident => $make:expr) => {
        match $choice {
            #[cfg(target_arch = "x86_64")]
            Choice::Vaes512($kernel) => Form::Vaes512($kernel, $make),
            #[cfg(target_arch = "x86_64")]
            Choice::Vaes256($kernel) => Form::Vaes256($kernel, $make),
            #[cfg(target_arch = "x86_64")]
            Choice::AesNi($kernel) => Form::AesNi($kernel, $make),
            #[cfg(target_arch = "aarch64")]
            Choice::Armv8($kernel) => Form::Armv8($kernel, $make),
            Choice::Soft($kernel) => Form::Soft($kernel, $make),
        }
    };
}

/// True for the lengths of AES keys, in bytes.
pub(super) fn is_key_length(len: usize) -> bool {
    matches!(len, 16 | 24 | 32)
}

macro_rules! modes {
    ($($(#[$doc:meta])* $name:ident => $call:ident($($arg:ident: $type:ty),*);)*) => {
        $(
            $(#[$doc])*
            #[inline]
            pub fn $name(&self, $($arg: $type),*) {
                with_form!(&self.0, (kernel, schedule) => kernel.$call(schedule, $($arg),*))
            }
        )*
    };
}

/// Data are whole blocks unless stated otherwise. Chaining registers and counters are updated, so that the next call
/// continues the message.
impl InlineKey {
    /// Expands a key of 16, 24 or 32 bytes. `None` if the key has another length, or if memory cannot be allocated.
    pub fn new(kernel: InlineKernel, key: &[u8]) -> Option<InlineKey> {
        if !is_key_length(key.len()) {
            return None;
        }
        Some(InlineKey(form!(kernel.0, kernel => kernel.try_expand(key)?)))
    }

    /// The kernel of this key.
    pub fn kernel(&self) -> InlineKernel {
        InlineKernel(match &self.0 {
            #[cfg(target_arch = "x86_64")]
            Form::Vaes512(kernel, _) => Choice::Vaes512(*kernel),
            #[cfg(target_arch = "x86_64")]
            Form::Vaes256(kernel, _) => Choice::Vaes256(*kernel),
            #[cfg(target_arch = "x86_64")]
            Form::AesNi(kernel, _) => Choice::AesNi(*kernel),
            #[cfg(target_arch = "aarch64")]
            Form::Armv8(kernel, _) => Choice::Armv8(*kernel),
            Form::Soft(kernel, _) => Choice::Soft(*kernel),
        })
    }

    /// A copy of this key; `None` if memory cannot be allocated.
    pub fn duplicate(&self) -> Option<InlineKey> {
        fn copy<K: SingleStreamKernel>(_: K, schedule: &K::Schedule) -> Option<K::Schedule> {
            K::duplicate(schedule)
        }
        Some(InlineKey(match &self.0 {
            #[cfg(target_arch = "x86_64")]
            Form::Vaes512(kernel, schedule) => Form::Vaes512(*kernel, copy(*kernel, schedule)?),
            #[cfg(target_arch = "x86_64")]
            Form::Vaes256(kernel, schedule) => Form::Vaes256(*kernel, copy(*kernel, schedule)?),
            #[cfg(target_arch = "x86_64")]
            Form::AesNi(kernel, schedule) => Form::AesNi(*kernel, copy(*kernel, schedule)?),
            #[cfg(target_arch = "aarch64")]
            Form::Armv8(kernel, schedule) => Form::Armv8(*kernel, copy(*kernel, schedule)?),
            Form::Soft(kernel, schedule) => Form::Soft(*kernel, copy(*kernel, schedule)?),
        }))
    }

    /// XTS of the whole blocks of a data unit, from the start of the unit. `self` is the data key. Both keys have the same
    /// size and kernel. `number` is the number of the unit; `after` is set to the tweak of the block that follows the data.
    ///
    /// # Panics
    ///
    /// If the keys belong to different kernels.
    #[inline]
    pub fn xts_unit(
        &self,
        tweak_key: &InlineKey,
        encrypts: bool,
        number: &Block,
        after: Option<&mut Block>,
        data: Span<'_>,
    ) {
        macro_rules! unit {
            ($($(#[$cfg:meta])* $form:ident),*) => {
                match (&self.0, &tweak_key.0) {
                    $($(#[$cfg])* (Form::$form(kernel, key), Form::$form(_, tweak_key)) => {
                        kernel.xts_unit(key, tweak_key, encrypts, number, after, data);
                    })*
                    #[allow(unreachable_patterns)]
                    _ => panic!("the keys belong to different kernels"),
                }
            };
        }
        unit!(
            #[cfg(target_arch = "x86_64")]
            Vaes512,
            #[cfg(target_arch = "x86_64")]
            Vaes256,
            #[cfg(target_arch = "x86_64")]
            AesNi,
            #[cfg(target_arch = "aarch64")]
            Armv8,
            Soft
        );
    }

    modes! {
        /// Encrypts one block.
        encrypt_block => encrypt_block(block: &mut Block);
        /// ECB encryption.
        ecb_encrypt => ecb_encrypt(data: Span<'_>);
        /// ECB decryption.
        ecb_decrypt => ecb_decrypt(data: Span<'_>);
        /// CBC encryption.
        cbc_encrypt => cbc_encrypt_single(iv: &mut Block, data: Span<'_>);
        /// CBC decryption.
        cbc_decrypt => cbc_decrypt(iv: &mut Block, data: Span<'_>);
        /// CFB128 encryption.
        cfb128_encrypt => cfb128_encrypt(iv: &mut Block, data: Span<'_>);
        /// CFB128 decryption.
        cfb128_decrypt => cfb128_decrypt(iv: &mut Block, data: Span<'_>);
        /// CFB8 encryption; any length.
        cfb8_encrypt => cfb8_encrypt(iv: &mut Block, data: Span<'_>);
        /// CFB8 decryption; any length.
        cfb8_decrypt => cfb8_decrypt(iv: &mut Block, data: Span<'_>);
        /// CFB1 encryption of the first `bits` bits. The most significant bit of each byte is the first. Later bits of the
        /// output are not changed.
        cfb1_encrypt => cfb1_encrypt(register: &mut Block, data: Span<'_>, bits: usize);
        /// CFB1 decryption of the first `bits` bits.
        cfb1_decrypt => cfb1_decrypt(register: &mut Block, data: Span<'_>, bits: usize);
        /// OFB.
        ofb => ofb(iv: &mut Block, data: Span<'_>);
        /// CTR with a 128-bit counter that wraps; any length. The counter is increased by the number of blocks,
        /// including a partial one.
        ctr => ctr(counter: &mut Block, data: Span<'_>);
        /// CTR that increments only the last 32 bits of the counter; any length.
        ctr32 => ctr32(counter: &mut Block, data: Span<'_>);
        /// XTS encryption under the data key. `tweak` is the encrypted tweak of the first block.
        xts_encrypt => xts_encrypt(tweak: &mut Block, data: Span<'_>);
        /// XTS decryption under the data key. `tweak` is the encrypted tweak of the first block.
        xts_decrypt => xts_decrypt(tweak: &mut Block, data: Span<'_>);
        /// Folds blocks into a CBC-MAC.
        cbc_mac => cbc_mac(state: &mut Block, data: &[u8]);
    }
}
