//! AES on any processor, in constant time: bitsliced, without tables and without AES instructions.
//!
//! Blocks are transposed to bit planes (`planes`), and the S-box is a circuit of ANDs and XORs ([`lockstep_core::sbox`]). GHASH
//! multiplies integers in which zero bits absorb the carries (`ghash`), or looks nibbles up in registers by byte permutations
//! (`lookup`). No branch and no address depends on secrets.
//!
//! # Widths
//!
//! The passes are written once, generic over a register, and compiled for each [`Width`]. The width is chosen when the kernel is
//! detected. Round keys and hash keys have the same format for all widths.
//!
//! | width | blocks of a group | GHASH |
//! |---|---|---|
//! | `Portable` (compiled only without `Simd128`) | 8 | integers |
//! | `Ssse3`, `Neon`, `Simd128` | 8 | lookups in 16 bytes |
//! | `Avx2` | 16 | lookups in twice 16 bytes |
//! | `Avx512` | 32 | lookups in twice 16 bytes |
//!
//! A group of blocks is in 8 registers. One block of each of several messages with keys of their own is encrypted with registers of
//! 128 bits in all widths. With `Simd128`, CTR on 64 blocks or more processes groups of 32 blocks (`rows`).
//!
//! | file | content |
//! |---|---|
//! | `width` | the widths and their entry functions |
//! | `register` | the trait for a register of blocks |
//! | `vector`, `x86`, `neon`, `simd128` | registers: of every processor, of x86-64, of AArch64, of WebAssembly |
//! | `planes`, `rounds` | transposition to bit planes; the rounds of AES |
//! | `rows` | CTR in groups of 32 blocks, for WebAssembly |
//! | `schedule` | key expansion |
//! | `passes`, `serial` | the data-parallel passes; serial modes of several messages |
//! | `ghash`, `lookup` | GHASH: keys and integer multiplication; lookups in registers |

// On other processors, only the portable width is in use.
#![cfg_attr(
    not(any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little"),
        all(target_arch = "wasm32", target_feature = "simd128")
    )),
    allow(dead_code)
)]

mod ghash;
mod lookup;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod passes;
mod planes;
mod register;
mod rounds;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod rows;
mod schedule;
mod serial;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;
mod vector;
mod width;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::atomic::{AtomicUsize, Ordering};

pub use ghash::HashKey;
pub use schedule::Schedule;
pub use width::Width;

use crate::kernel::counter::{Low32, Whole};
#[cfg(target_arch = "x86_64")]
use crate::kernel::registers;
use crate::kernel::{Block, Kernel, Lane, Span, wipe_stack};
use passes::{Ctr, Ecb, Feedback, Xts};
use width::on_width;

/// The portable kernel `cpu/soft`, which runs on every processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Soft {
    /// A width whose instructions the processor has.
    width: Width,
}

/// The index in [`Width::ALL`] of the widest registers that [`Soft::detect`] may choose.
static WIDEST: AtomicUsize = AtomicUsize::new(usize::MAX);

impl Soft {
    /// The kernel with registers of this width; `None` if the processor lacks their instructions.
    pub fn of_width(width: Width) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        registers::detect();
        width.is_available().then_some(Soft { width })
    }

    /// The width of the registers.
    pub fn width(self) -> Width {
        self.width
    }

    /// For tests: limits the width that [`Soft::detect`] chooses in this process from now on.
    #[doc(hidden)]
    pub fn limit(widest: Width) {
        let index = Width::ALL.iter().position(|width| *width == widest);
        WIDEST.store(index.expect("ALL has every width"), Ordering::Relaxed);
    }
}

/// Calls a function of the kernel's width.
macro_rules! call {
    ($kernel:ident.$function:ident($($argument:expr),*)) => {
        // SAFETY: the processor has the instructions of the kernel's width.
        unsafe { on_width!($kernel.width, $function($($argument),*)) }
    };
}

impl Kernel for Soft {
    type Schedule = Schedule;
    type HashKey = HashKey;

    const NAME: &'static str = "cpu/soft";

    fn detect() -> Option<Self> {
        let most = Width::ALL.len().min(WIDEST.load(Ordering::Relaxed).saturating_add(1));
        Width::ALL[..most].iter().rev().find_map(|width| Soft::of_width(*width))
    }

    fn clear_registers(self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has the instructions of the kernel's width.
        unsafe {
            match self.width {
                Width::Portable | Width::Ssse3 => registers::clear_xmm(),
                Width::Avx2 => registers::clear_ymm(),
                Width::Avx512 => registers::clear_zmm(),
            }
        }
    }

    fn blank_schedule(self) -> Option<Schedule> {
        Schedule::blank()
    }

    fn blank_hash_key(self) -> Option<HashKey> {
        HashKey::blank()
    }

    fn expand_each(self, keys: &[&[u8]], places: &mut [Schedule]) {
        keys.iter().zip(places).for_each(|(key, place)| place.set(key));
        wipe_stack::<1024>();
    }

    fn hash_keys_into(self, h: &[Block], places: &mut [HashKey]) {
        h.iter().zip(places).for_each(|(h, place)| place.set(h));
    }

    fn copy_schedule(self, schedule: &Schedule, place: &mut Schedule) {
        place.copy_from(schedule);
    }

    fn ensure_powers(self, key: &mut HashKey, blocks: usize) {
        if blocks >= ghash::LOOKUPS_FROM && self.width.has_lookups() {
            key.ensure_tables();
            wipe_stack::<2048>();
        }
    }

    fn ecb(self, key: &Schedule, encrypts: bool, data: Span<'_>) {
        call!(self.run(key.keys(), data, Ecb { encrypts }));
    }

    fn ctr(self, key: &Schedule, counter: &mut Block, data: Span<'_>) {
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        let data = rows::ctr::<Whole>(key.keys(), counter, data);
        Ctr::<Whole>::over(counter, data, |pass, data| call!(self.run(key.keys(), data, pass)));
    }

    fn ctr32(self, key: &Schedule, counter: &mut Block, data: Span<'_>) {
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        let data = rows::ctr::<Low32>(key.keys(), counter, data);
        Ctr::<Low32>::over(counter, data, |pass, data| call!(self.run(key.keys(), data, pass)));
    }

    fn cbc_decrypt(self, key: &Schedule, iv: &mut Block, data: Span<'_>) {
        call!(self.run(key.keys(), data, Feedback { cfb: false, register: iv }));
    }

    fn cfb128_decrypt(self, key: &Schedule, iv: &mut Block, data: Span<'_>) {
        call!(self.run(key.keys(), data, Feedback { cfb: true, register: iv }));
    }

    fn xts(self, key: &Schedule, encrypts: bool, tweak: &mut Block, data: Span<'_>) {
        call!(self.run(key.keys(), data, Xts { encrypts, tweak }));
    }

    fn ghash(self, key: &HashKey, state: &mut Block, data: &[u8]) {
        call!(self.ghash(key, state, data));
        if data.len() >= 16 * ghash::LOOKUPS_FROM {
            wipe_stack::<2048>();
        }
    }

    fn cbc_encrypt(self, lanes: &mut [Lane<'_, Schedule>]) {
        serial::cbc_encrypt(self.width, lanes);
    }

    fn each(self, keys: &[&Schedule], encrypts: bool, blocks: &mut [Block]) {
        serial::each(self.width, keys, encrypts, blocks);
    }

    fn encrypt_block(self, key: &Schedule, block: &mut Block) {
        serial::one(self.width, key, block);
    }
}
