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

/// Calls a function that needs the cryptographic extensions, with the direction as its parameter.
macro_rules! directed {
    ($token:ident, $encrypts:expr, $module:ident::$function:ident($($argument:expr),*)) => {
        match $encrypts {
            true => with_extensions!($token, $module::$function::<true>($($argument),*)),
            false => with_extensions!($token, $module::$function::<false>($($argument),*)),
        }
    };
}

impl Kernel for Armv8 {
    type Schedule = Schedule;
    type HashKey = HashKey;

    const NAME: &'static str = "cpu/armv8";

    fn detect() -> Option<Self> {
        // On AArch64, the feature "aes" of the standard library includes PMULL.
        (is_aarch64_feature_detected!("neon") && is_aarch64_feature_detected!("aes")).then_some(Armv8(()))
    }

    fn blank_schedule(self) -> Option<Schedule> {
        Schedule::blank()
    }

    fn blank_hash_key(self) -> Option<HashKey> {
        HashKey::blank()
    }

    fn expand_each(self, keys: &[&[u8]], places: &mut [Schedule]) {
        for (key, place) in keys.iter().zip(places) {
            with_extensions!(self, place.set(key));
        }
    }

    fn hash_keys_into(self, h: &[Block], places: &mut [HashKey]) {
        for (h, place) in h.iter().zip(places) {
            with_extensions!(self, place.set(h));
        }
    }

    fn copy_schedule(self, schedule: &Schedule, place: &mut Schedule) {
        place.copy_from(schedule);
    }

    fn ecb(self, key: &Schedule, encrypts: bool, data: Span<'_>) {
        directed!(self, encrypts, passes::ecb(key, data));
    }

    fn ctr(self, key: &Schedule, counter: &mut Block, data: Span<'_>) {
        with_extensions!(self, passes::ctr::<Whole>(key, counter, data));
    }

    fn ctr32(self, key: &Schedule, counter: &mut Block, data: Span<'_>) {
        with_extensions!(self, passes::ctr::<Low32>(key, counter, data));
    }

    fn cbc_decrypt(self, key: &Schedule, iv: &mut Block, data: Span<'_>) {
        with_extensions!(self, passes::feedback::<false>(key, iv, data));
    }

    fn cfb128_decrypt(self, key: &Schedule, iv: &mut Block, data: Span<'_>) {
        with_extensions!(self, passes::feedback::<true>(key, iv, data));
    }

    fn xts(self, key: &Schedule, encrypts: bool, tweak: &mut Block, data: Span<'_>) {
        directed!(self, encrypts, passes::xts(key, tweak, data));
    }

    fn ghash(self, key: &HashKey, state: &mut Block, data: &[u8]) {
        with_extensions!(self, ghash::update(key, state, data));
    }

    fn cbc_encrypt(self, lanes: &mut [Lane<'_, Schedule>]) {
        with_extensions!(self, serial::cbc_encrypt(lanes));
    }

    fn each(self, keys: &[&Schedule], encrypts: bool, blocks: &mut [Block]) {
        directed!(self, encrypts, serial::each(keys, blocks));
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
        directed!(self, encrypts, gcm::crypt(key, hash_key, &mut counter.block, state, data));
    }

    fn encrypt_block(self, key: &Schedule, block: &mut Block) {
        with_extensions!(self, serial::encrypt_block(key, block));
    }
}
