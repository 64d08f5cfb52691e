//! AES on any processor, in constant time: bitsliced, without tables and without AES instructions.
//!
//! Blocks are transposed to bit planes (`planes`), the S-box is a circuit of ANDs and XORs ([`lockstep_core::sbox`]), and GHASH multiplies
//! integers in which zero bits absorb the carries (`ghash`). No branch and no address depends on secrets.

mod ghash;
mod passes;
mod planes;
mod rounds;
mod schedule;
mod serial;
mod vector;

pub use ghash::HashKey;
pub use schedule::Schedule;

use crate::counter::{Low32, Whole};
use crate::inline::SingleStreamKernel;
use crate::kernel::{Block, Kernel, Lane, Span};
use passes::Direction::{Decrypt, Encrypt};

/// The portable kernel `cpu/soft`, which runs on every processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Soft(());

impl Kernel for Soft {
    type Schedule = Schedule;
    type HashKey = HashKey;

    const NAME: &'static str = "cpu/soft";

    fn detect() -> Option<Self> {
        Some(Soft(()))
    }

    fn expand(self, key: &[u8]) -> Schedule {
        Schedule::new(key)
    }

    fn ecb_encrypt(self, key: &Schedule, data: Span<'_>) {
        passes::ecb(key, Encrypt, data);
    }

    fn ecb_decrypt(self, key: &Schedule, data: Span<'_>) {
        passes::ecb(key, Decrypt, data);
    }

    fn ctr(self, key: &Schedule, counter: &mut Block, data: Span<'_>) {
        passes::ctr::<Whole>(key, counter, data);
    }

    fn ctr32(self, key: &Schedule, counter: &mut Block, data: Span<'_>) {
        passes::ctr::<Low32>(key, counter, data);
    }

    fn cbc_decrypt(self, key: &Schedule, iv: &mut Block, data: Span<'_>) {
        passes::cbc_decrypt(key, iv, data);
    }

    fn cfb128_decrypt(self, key: &Schedule, iv: &mut Block, data: Span<'_>) {
        passes::cfb128_decrypt(key, iv, data);
    }

    fn xts_encrypt(self, key: &Schedule, tweak: &mut Block, data: Span<'_>) {
        passes::xts(key, Encrypt, tweak, data);
    }

    fn xts_decrypt(self, key: &Schedule, tweak: &mut Block, data: Span<'_>) {
        passes::xts(key, Decrypt, tweak, data);
    }

    fn hash_key(self, h: &Block) -> HashKey {
        HashKey::new(h)
    }

    fn ghash(self, key: &HashKey, state: &mut Block, data: &[u8]) {
        ghash::update(key, state, data);
    }

    fn cbc_encrypt(self, lanes: &mut [Lane<'_, Schedule>]) {
        serial::cbc_encrypt(lanes);
    }

    fn encrypt_each(self, keys: &[&Schedule], blocks: &mut [Block]) {
        serial::each(keys, Encrypt, blocks);
    }

    fn decrypt_each(self, keys: &[&Schedule], blocks: &mut [Block]) {
        serial::each(keys, Decrypt, blocks);
    }
}

impl SingleStreamKernel for Soft {
    fn try_expand(self, key: &[u8]) -> Option<Schedule> {
        Schedule::try_new(key)
    }

    fn duplicate(key: &Schedule) -> Option<Schedule> {
        key.duplicate()
    }

    fn try_hash_key(self, h: &Block) -> Option<HashKey> {
        HashKey::try_new(h)
    }

    fn duplicate_hash_key(key: &HashKey) -> Option<HashKey> {
        key.duplicate()
    }

    fn encrypt_block(self, key: &Schedule, block: &mut Block) {
        serial::one(key, block);
    }
}
