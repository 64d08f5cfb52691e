//! AES on 64-bit ARM: the cryptographic extensions (AESE, AESMC, AESD, AESIMC, PMULL), eight blocks interleaved.
//!
//! The instructions are constant-time.

mod gcm;
mod ghash;
mod passes;
mod schedule;
mod serial;
mod vector;

pub use ghash::HashKey;
pub use schedule::Schedule;

use std::arch::is_aarch64_feature_detected;

use crate::kernel::counter::{Low32, Whole};
use crate::kernel::{Block, GcmCounter, Kernel, Lane, Span};

/// The kernel `cpu/armv8`. A value of this type proves that the processor has the instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Armv8(());

/// Calls a function that needs the cryptographic extensions.
macro_rules! with_extensions {
    ($token:ident, $call:expr) => {{
        let Armv8(()) = $token;
        // SAFETY: only `detect` creates an `Armv8`, and only if this processor has the instructions.
        unsafe { $call }
    }};
}

impl Kernel for Armv8 {
    type Schedule = Schedule;
    type HashKey = HashKey;

    const NAME: &'static str = "cpu/armv8";

    fn detect() -> Option<Self> {
        // On AArch64, the feature "aes" of the standard library includes PMULL.
        (is_aarch64_feature_detected!("neon") && is_aarch64_feature_detected!("aes")).then_some(Armv8(()))
    }

    fn expand(self, key: &[u8]) -> Schedule {
        with_extensions!(self, schedule::expand(key))
    }

    fn ecb_encrypt(self, key: &Schedule, data: Span<'_>) {
        with_extensions!(self, passes::ecb_encrypt(key, data));
    }

    fn ecb_decrypt(self, key: &Schedule, data: Span<'_>) {
        with_extensions!(self, passes::ecb_decrypt(key, data));
    }

    fn ctr(self, key: &Schedule, counter: &mut Block, data: Span<'_>) {
        with_extensions!(self, passes::ctr::<Whole>(key, counter, data));
    }

    fn ctr32(self, key: &Schedule, counter: &mut Block, data: Span<'_>) {
        with_extensions!(self, passes::ctr::<Low32>(key, counter, data));
    }

    fn cbc_decrypt(self, key: &Schedule, iv: &mut Block, data: Span<'_>) {
        with_extensions!(self, passes::cbc_decrypt(key, iv, data));
    }

    fn cfb128_decrypt(self, key: &Schedule, iv: &mut Block, data: Span<'_>) {
        with_extensions!(self, passes::cfb128_decrypt(key, iv, data));
    }

    fn xts_encrypt(self, key: &Schedule, tweak: &mut Block, data: Span<'_>) {
        with_extensions!(self, passes::xts_encrypt(key, tweak, data));
    }

    fn xts_decrypt(self, key: &Schedule, tweak: &mut Block, data: Span<'_>) {
        with_extensions!(self, passes::xts_decrypt(key, tweak, data));
    }

    fn hash_key(self, h: &Block) -> HashKey {
        with_extensions!(self, ghash::prepare(h))
    }

    fn ghash(self, key: &HashKey, state: &mut Block, data: &[u8]) {
        with_extensions!(self, ghash::update(key, state, data));
    }

    fn cbc_encrypt(self, lanes: &mut [Lane<'_, Schedule>]) {
        with_extensions!(self, serial::cbc_encrypt(lanes));
    }

    fn encrypt_each(self, keys: &[&Schedule], blocks: &mut [Block]) {
        with_extensions!(self, serial::encrypt_each(keys, blocks));
    }

    fn decrypt_each(self, keys: &[&Schedule], blocks: &mut [Block]) {
        with_extensions!(self, serial::decrypt_each(keys, blocks));
    }

    const GCM_STEP: usize = gcm::STEP;

    fn gcm(
        self,
        key: &Schedule,
        hash_key: &HashKey,
        encrypts: bool,
        counter: &mut GcmCounter,
        state: &mut Block,
        data: Span<'_>,
    ) {
        let counter = &mut counter.block;
        if encrypts {
            with_extensions!(self, gcm::crypt::<true>(key, hash_key, counter, state, data));
        } else {
            with_extensions!(self, gcm::crypt::<false>(key, hash_key, counter, state, data));
        }
    }

    fn duplicate(self, key: &Schedule) -> Option<Schedule> {
        key.duplicate()
    }

    fn encrypt_block(self, key: &Schedule, block: &mut Block) {
        with_extensions!(self, serial::encrypt_block(key, block));
    }
}
