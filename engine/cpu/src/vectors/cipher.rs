//! The rounds of N interleaved vectors, and the loop of a pass over its data.

use std::arch::asm;

use super::schedule::Schedule;
use super::vector::{RawBlock, Vector, prefetch};
use crate::kernel::Span;

/// Expands to `$body` for the rounds that AES-192 (two) and AES-256 (four) have in addition to those of AES-128. The rounds
/// are numbered from `$from`.
///
/// One unrolled copy of the rounds serves all key sizes; branches skip the additional rounds. The branches depend only on
/// the key size and are predicted. A copy for each key size is not faster, and takes three times as long to compile.
macro_rules! extra_rounds {
    ($rounds:expr, $from:literal, $round:ident => $body:expr) => {
        if $rounds > 10 {
            for $round in $from..$from + 2 {
                $body
            }
            if $rounds > 12 {
                for $round in $from + 2..$from + 4 {
                    $body
                }
            }
        }
    };
}
pub(super) use extra_rounds;

/// Expands to `$body` for all rounds but the last; `$rounds` is 10, 12 or 14.
macro_rules! middle_rounds {
    ($rounds:expr, $round:ident => $body:expr) => {{
        for $round in 1..10 {
            $body
        }
        $crate::vectors::cipher::extra_rounds!($rounds, 10, $round => $body);
    }};
}
pub(super) use middle_rounds;

/// True if the instructions of a round add a key before the other steps (AESE), not after them (AESENC). A [`round`] then starts with the
/// addition of the key of the round before. As the end of a round, this addition would remain an instruction where a branch follows.
pub(super) const KEY_FIRST: bool = cfg!(target_arch = "aarch64");

/// One round of encryption or decryption, with the key of [`Keys::for_round`].
#[inline(always)]
pub(super) fn round<const ENCRYPTS: bool, V: Vector>(x: V, key: V) -> V {
    if KEY_FIRST { x.xor(key).round::<ENCRYPTS>(key.xor(key)) } else { x.round::<ENCRYPTS>(key) }
}

/// The round keys of one direction, in the order of use.
#[derive(Clone, Copy)]
pub(super) struct Keys {
    first: *const RawBlock,
    /// The number of rounds: 10, 12 or 14. The schedule contains one key more than this number.
    pub(super) rounds: usize,
}

impl Keys {
    /// The keys of the cipher, or of the equivalent inverse cipher.
    #[inline(always)]
    pub(super) fn of<const ENCRYPTS: bool>(schedule: &Schedule) -> Keys {
        let keys = if ENCRYPTS { &schedule.encrypt } else { &schedule.decrypt };
        Keys { first: keys.as_ptr(), rounds: schedule.rounds }
    }

    /// These keys, with their origin hidden from the compiler: see [`opaque`].
    #[inline(always)]
    pub(super) fn opaque(self) -> Keys {
        Keys { first: opaque(self.first), ..self }
    }

    /// The key of a round in every place of a vector; round 0 is the addition of the first key.
    ///
    /// # Safety
    ///
    /// The same as for [`Vector`]. In addition, the schedule exists, and the round is at most `rounds`.
    #[inline(always)]
    pub(super) unsafe fn get<V: Vector>(self, round: usize) -> V {
        // SAFETY: the caller guarantees the conditions of this function.
        unsafe { V::broadcast(self.first.add(round)) }
    }

    /// The first and the last key.
    ///
    /// # Safety
    ///
    /// The same as for [`Vector`]. In addition, the schedule exists.
    #[inline(always)]
    pub(super) unsafe fn ends<V: Vector>(self) -> (V, V) {
        // SAFETY: the caller guarantees the conditions of this function.
        unsafe { (self.get(0), self.get(self.rounds)) }
    }

    /// The last 11 keys, with their origin hidden from the compiler: the keys of AES-128, or those that remain after the
    /// additional rounds.
    ///
    /// # Safety
    ///
    /// The schedule exists.
    #[inline(always)]
    pub(super) unsafe fn without_extra(self) -> Keys {
        // SAFETY: the schedule contains `rounds` + 1 keys.
        Keys { first: opaque(unsafe { self.first.add(self.rounds - 10) }), rounds: 10 }
    }

    /// The key for [`round`].
    ///
    /// # Safety
    ///
    /// The same as for [`Keys::get`].
    #[inline(always)]
    pub(super) unsafe fn for_round<V: Vector>(self, round: usize) -> V {
        // SAFETY: the caller guarantees the conditions of this function.
        unsafe { self.get(round - usize::from(KEY_FIRST)) }
    }

    /// All rounds but the last, for N vectors to which the first round key has already been added.
    ///
    /// The pass adds the first key and does the last round. A mode can therefore combine its own input with these two keys,
    /// outside of the dependency chain of the rounds.
    ///
    /// # Safety
    ///
    /// The same as for [`Vector`]. In addition, the schedule exists.
    #[inline(always)]
    pub(super) unsafe fn middle<const ENCRYPTS: bool, V: Vector, const N: usize>(self, state: &mut [V; N]) {
        // SAFETY: the caller guarantees the conditions of this function.
        let get = |round| unsafe { self.get::<V>(round) };
        if KEY_FIRST {
            // The pass has added the first key, and the first round adds it again: the compiler removes all but one addition.
            let key = get(0);
            state.iter_mut().for_each(|x| *x = x.xor(key));
        }
        middle_rounds!(self.rounds, number => {
            // SAFETY: the caller guarantees the conditions of this function.
            let key = unsafe { self.for_round(number) };
            for x in state.iter_mut() {
                *x = round::<ENCRYPTS, V>(*x, key);
            }
        });
        if KEY_FIRST {
            let key = get(self.rounds - 1);
            state.iter_mut().for_each(|x| *x = x.xor(key));
        }
    }
}

/// Evaluates an expression in which the direction is a compile-time constant.
macro_rules! directed {
    ($encrypts:expr, $direction:ident => $call:expr) => {
        if $encrypts {
            const $direction: bool = true;
            $call
        } else {
            const $direction: bool = false;
            $call
        }
    };
}
pub(super) use directed;

/// Returns the same pointer, with its origin hidden from the compiler.
///
/// Without this function, the compiler would load all round keys before the loop. They do not fit in 16 registers, so the
/// compiler would copy them to the stack, where they are not zeroed. A broadcast from the schedule in each round costs no
/// time, because it serves N vectors.
#[inline(always)]
#[allow(clippy::pointers_in_nomem_asm_block)] // Nothing is read through the pointer.
pub(super) fn opaque<T>(keys: *const T) -> *const T {
    let mut out = keys;
    // SAFETY: the assembly contains no instruction.
    unsafe { asm!("/* {0} */", inout(reg) out, options(nomem, nostack, preserves_flags)) };
    out
}

/// Returns the same number, hidden from the compiler.
#[inline(always)]
pub(super) fn opaque_number(number: usize) -> usize {
    opaque(std::ptr::without_provenance::<u8>(number)).addr()
}

/// Returns the same reference, with its origin hidden from the compiler, so that the value stays in memory.
#[inline(always)]
pub(super) fn in_memory<T>(value: &mut T) -> &mut T {
    let mut out: *mut T = value;
    // SAFETY: the assembly contains no instruction.
    unsafe { asm!("/* {0} */", inout(reg) out, options(nostack, preserves_flags)) };
    // SAFETY: the pointer comes from the exclusive borrow.
    unsafe { &mut *out }
}

/// The part of a vector that a step processes. At the end of the data, it may be less than the whole vector. The variant is known
/// when a step is compiled.
#[derive(Clone, Copy)]
pub(super) enum Extent {
    /// Whole vectors.
    Whole,
    /// A number of blocks that is less than a vector.
    Blocks(usize),
    /// A number of bytes that is less than a vector.
    Bytes(usize),
}

impl Extent {
    /// # Safety
    ///
    /// The same as for [`Vector`]. In addition, `ptr` is valid for reads of the bytes in the extent.
    #[inline(always)]
    pub(super) unsafe fn load<V: Vector>(self, ptr: *const u8) -> V {
        // SAFETY: the caller guarantees the conditions of this function.
        unsafe {
            match self {
                Extent::Whole => V::load(ptr),
                Extent::Blocks(blocks) => V::load_blocks(ptr, blocks),
                Extent::Bytes(bytes) => V::load_bytes(ptr, bytes),
            }
        }
    }

    /// # Safety
    ///
    /// `ptr` is valid for writes of the bytes in the extent.
    #[inline(always)]
    pub(super) unsafe fn store<V: Vector>(self, vector: V, ptr: *mut u8) {
        // SAFETY: the caller guarantees the conditions of this function.
        unsafe {
            match self {
                Extent::Whole => vector.store(ptr),
                Extent::Blocks(blocks) => vector.store_blocks(ptr, blocks),
                Extent::Bytes(bytes) => vector.store_bytes(ptr, bytes),
            }
        }
    }
}

/// A data-parallel pass over the blocks of a span, in order.
pub(super) trait Pass<V: Vector> {
    /// Number of vectors in the widest step, 8 or 6.
    const WIDEST: usize = 8;

    /// True if the data may end within a block.
    const BYTES: bool = false;

    /// Processes N vectors (one, unless the extent is [`Extent::Whole`]). All loads come before the first store, so that the same
    /// code works in place.
    ///
    /// # Safety
    ///
    /// The same as for [`Vector`]. In addition, `src` and `dst` are valid for N vectors or, if the extent is not [`Extent::Whole`],
    /// for its bytes.
    unsafe fn step<const N: usize>(&mut self, extent: Extent, src: *const u8, dst: *mut u8);
}

/// Data of fewer bytes than this are processed in vectors of one block. Wide vectors are not faster for them, and a wide or partial
/// load often cannot be forwarded from the stores of the previous call.
pub(super) const SHORT: usize = 128;

/// Distance of prefetches in bytes: two of the widest steps of vectors of four blocks. Such a step fills a large part of the reorder
/// buffer, so the processor does not reach the next loads early enough. Out of place, with 1 MiB of input, ECB and CTR reach
/// 0.99 to 1.00 of the limit of the AES units with prefetches, and 0.82 to 0.95 without (docs/benchmarks.md).
const AHEAD: usize = 1024;

/// Runs a pass over data: the widest steps, then steps of 4, 2 and 1 vectors, then a partial vector. There are no widest steps if
/// FEW is set.
///
/// Narrow steps are independent of each other, so the processor overlaps them.
///
/// # Safety
///
/// The same as for [`Vector`]. Data are whole blocks, unless [`Pass::BYTES`] is set. If FEW is set, they have less than eight
/// vectors.
#[inline(always)]
pub(super) unsafe fn drive<V: Vector, P: Pass<V>, const FEW: bool>(mut pass: P, data: Span<'_>) -> P {
    let (mut src, mut dst, mut left) = (data.src(), data.dst(), data.len());
    debug_assert!(!FEW || left < 8 * V::BYTES, "few vectors");
    macro_rules! steps {
        ($n:literal, $again:tt) => {
            $again left >= $n * V::BYTES {
                // SAFETY: N vectors are left in the span; the caller guarantees that the processor has the instructions. A prefetch
                // never faults, so every address is allowed.
                unsafe {
                    if $n == 8 && V::BLOCKS == 4 {
                        for i in 0..$n {
                            prefetch(src.wrapping_add(AHEAD + i * V::BYTES));
                        }
                    }
                    pass.step::<$n>(Extent::Whole, src, dst);
                    (src, dst) = (src.add($n * V::BYTES), dst.add($n * V::BYTES));
                }
                left -= $n * V::BYTES;
            }
        };
    }
    if FEW {
    } else if P::WIDEST == 8 {
        steps!(8, while);
    } else {
        steps!(6, while);
    }
    steps!(4, if);
    steps!(2, if);
    steps!(1, if);
    // SAFETY: less than a vector is left in the span; the caller guarantees that the processor has the instructions.
    unsafe {
        if V::BLOCKS > 1 && left >= 16 && left % 16 == 0 {
            pass.step::<1>(Extent::Blocks(left / 16), src, dst);
        } else if P::BYTES && left > 0 {
            pass.step::<1>(Extent::Bytes(left), src, dst);
        }
    }
    pass
}

/// Expands to `$body` for the numbers below `$n`, which is at most eight, with the number as a constant. An array that is
/// indexed only by constants stays in registers.
macro_rules! for_each {
    ($i:ident < $n:expr => $body:expr) => {
        for_each!(@ $i, $n, $body, 0 1 2 3 4 5 6 7)
    };
    (@ $i:ident, $n:expr, $body:expr, $($number:literal)*) => {{
        $({
            const $i: usize = $number;
            if $i < $n {
                $body
            }
        })*
    }};
}
pub(super) use for_each;
