//! XTS of whole blocks, either direction.
//!
//! To keep dependency chains short, the tweaks of each vector are computed from the tweaks of one of the first vectors of
//! the step, or of the previous step, by a multiplication by a power of alpha. The chain from the tweaks of one step to the
//! tweaks of the next step has at most two multiplications, whatever the number of vectors.
//!
//! A multiplication by a power of alpha^8 is a shift by whole bytes, which is reduced by shifts and exclusive ors. Only a
//! multiplication by a power of alpha below alpha^8 needs a carry-less product, which occupies AES units for two cycles on
//! Zen 4. In the widest steps of vectors of four blocks, shifts of bits would delay the rounds on Intel's processors, where one
//! unit executes the shifts and the rounds of these vectors: one carry-less product supplies the reductions of four vectors.

use super::cipher::{Extent, Keys, Pass, drive, extra_rounds, for_each};
use super::schedule::Schedule;
use super::single_stream;
use super::vector::{LOW, Single, Vector};
use crate::kernel::{Block, Span};

/// x^128 modulo the field polynomial.
const MODULUS: u128 = 0x87;

/// Stands for a byte of zeros in an order of bytes.
const NONE: u8 = 0x80;

/// An order of bytes for [`Vector::shuffled`]: these bytes, and zeros.
const fn order(first: &[u8]) -> u128 {
    let (mut order, mut i) = ([NONE; 16], 0);
    while i < first.len() {
        order[i] = first[i];
        i += 1;
    }
    u128::from_le_bytes(order)
}

/// For [`carries`]: spreads the last four bytes of a block.
const SPREAD: u128 = order(&[12, NONE, 13, NONE, 14, NONE, 15]);

/// For [`times_alpha_8`]: the carries that are added if this number of bytes is shifted out.
const CARRIED: [u128; 5] =
    [order(&[]), order(&[13, 14]), order(&[11, 6, 14]), order(&[9, 4, 6, 14]), order(&[0, 2, 4, 6, 14])];

/// The products of the last four bytes of each block, b(0) to b(3), and [`MODULUS`]. Let the product of b(k) be L(k) + x^8 H(k). Bytes 0,
/// 2, 4 and 6 of the result are L(k) + H(k - 1), with H(-1) = 0. Bytes 9, 11 and 13 are L(1), L(2) and L(3), and byte 14 is H(3). The other
/// bytes are not used.
#[inline(always)]
fn carries<V: Vector>(tweaks: V) -> V {
    // The products of the spread bytes do not overlap: L(k) is byte 2k and H(k) is byte 2k + 1. The factor (1 + x^8 + x^56) adds copies of
    // these bytes, which are shifted by one and by seven bytes.
    const COPIES: u128 = MODULUS | MODULUS << 8 | MODULUS << 56;
    // SAFETY: a vector exists only if the processor has its instructions.
    let [spread, copies] = [SPREAD, COPIES].map(|number| unsafe { V::numbers([number; 4]) });
    tweaks.shuffled(spread).clmul::<LOW>(copies)
}

/// Each block times alpha^(8 `bytes`), for at most four bytes: a shift by whole bytes, and the products of the bytes shifted out.
#[inline(always)]
fn times_alpha_8<V: Vector>(tweaks: V, carries: V, bytes: usize) -> V {
    let vacated = (1 << (8 * bytes)) - 1;
    let shifted = 0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100 << (8 * bytes) | order(&[]) & vacated;
    // SAFETY: a vector exists only if the processor has its instructions.
    let [shifted, carried] = [shifted, CARRIED[bytes]].map(|order| unsafe { V::numbers([order; 4]) });
    tweaks.shuffled(shifted).xor(carries.shuffled(carried))
}

struct Xts<V, const ENCRYPTS: bool> {
    keys: Keys,
    /// Tweaks of the next vector.
    tweaks: V,
    /// The tweaks of the next eight vectors, for the widest steps with vectors of four blocks. They are computed between the
    /// rounds of the previous step.
    following: [V; 8],
    /// [`carries`] of the first two vectors of `following`.
    carries: [V; 2],
    modulus: V,
}

impl<V: Vector, const ENCRYPTS: bool> Xts<V, ENCRYPTS> {
    /// # Safety
    ///
    /// The same as for [`Vector`].
    #[inline(always)]
    unsafe fn new(schedule: &Schedule, tweaks: V) -> Self {
        // SAFETY: the caller guarantees that the processor has the instructions.
        let modulus = unsafe { V::numbers([MODULUS; 4]) };
        Xts {
            keys: Keys::of::<ENCRYPTS>(schedule),
            tweaks,
            following: [tweaks; 8],
            carries: [tweaks; 2],
            modulus,
        }
    }

    /// Computes the tweaks of the first of the widest steps, if `len` bytes contain such a step.
    #[inline(always)]
    fn ready_for(mut self, len: usize) -> Self {
        if V::BLOCKS == 4 && len >= 8 * V::BYTES {
            self.following[1] = self.tweaks.times_alpha(4, self.modulus);
            for_each!(I < 8 => self.follow(I));
        }
        self
    }

    /// Computes the tweaks of vector i of the widest step from those of vector 0 or 1, and the carries of these vectors.
    #[inline(always)]
    fn follow(&mut self, i: usize) {
        if i < 2 {
            self.carries[i] = carries(self.following[i]);
        } else {
            // Two vectors of four blocks are eight blocks.
            self.following[i] = times_alpha_8(self.following[i % 2], self.carries[i % 2], i / 2);
        }
    }

    /// The tweaks of the vector that is `vectors` vectors ahead. `known` contains the tweaks of the vectors before it.
    #[inline(always)]
    fn tweaks_after(&self, vectors: usize, known: &[V]) -> V {
        // Number of vectors that hold eight blocks: a multiplication by alpha^8 shifts a tweak by one byte.
        let period = 8 / V::BLOCKS;
        let (whole, part) = (vectors / period, vectors % period);
        if whole == 0 {
            self.tweaks.times_alpha(part * V::BLOCKS, self.modulus)
        } else if part < known.len() {
            known[part].times_alpha_8(whole)
        } else {
            self.tweaks.times_alpha(part * V::BLOCKS, self.modulus).times_alpha_8(whole)
        }
    }

    /// A step of eight vectors of four blocks.
    ///
    /// The tweaks of the next step are computed between the rounds, where they use execution units that are idle. If they
    /// were computed before the rounds, they would fill the reorder buffer.
    ///
    /// # Safety
    ///
    /// The same as for [`Pass::step`].
    #[inline(always)]
    unsafe fn widest(&mut self, keys: Keys, src: *const u8, dst: *mut u8) {
        // SAFETY: the caller guarantees that the processor has the instructions, and the memory of eight vectors. The
        // schedule exists.
        unsafe {
            let (first, last): (V, V) = keys.ends();
            let tweaks = self.following;
            let mut x = [first; 8];
            for_each!(I < 8 => x[I] = first.xor(tweaks[I]).xor(V::load(src.add(I * V::BYTES))));
            // The additional rounds come first, so that the other rounds and the code that uses their result form one basic
            // block.
            extra_rounds!(keys.rounds, 1, round => {
                let key = keys.get(round);
                for_each!(I < 8 => x[I] = x[I].round::<ENCRYPTS>(key));
            });
            let keys = keys.without_extra();
            for_each!(ROUND < 8 => {
                let key = keys.get(ROUND + 1);
                for_each!(I < 8 => x[I] = x[I].round::<ENCRYPTS>(key));
                if ROUND < 2 {
                    // Eight vectors of four blocks are 32 blocks.
                    self.following[ROUND] = times_alpha_8(tweaks[ROUND], self.carries[ROUND % 2], 4);
                }
                self.follow(ROUND);
            });
            let key = keys.get(9);
            for_each!(I < 8 => x[I] = x[I].round::<ENCRYPTS>(key));
            for_each!(I < 8 => x[I].last::<ENCRYPTS>(last.xor(tweaks[I])).store(dst.add(I * V::BYTES)));
            self.tweaks = self.following[0];
        }
    }
}

impl<V: Vector, const ENCRYPTS: bool> Pass<V> for Xts<V, ENCRYPTS> {
    /// Tweaks need registers too: 16 registers hold 6 vectors and their tweaks.
    const WIDEST: usize = if V::BLOCKS == 4 { 8 } else { 6 };

    #[inline(always)]
    unsafe fn step<const N: usize>(&mut self, extent: Extent, src: *const u8, dst: *mut u8) {
        let keys = self.keys.opaque();
        if N == 8 && V::BLOCKS == 4 {
            // SAFETY: the caller guarantees the conditions of this function.
            return unsafe { self.widest(keys, src, dst) };
        }
        // SAFETY: the caller guarantees that the processor has the instructions, and the memory of N vectors. The schedule
        // exists.
        unsafe {
            let (first, last): (V, V) = keys.ends();
            let mut x = [first; N];
            let mut tweaks = [self.tweaks; N];
            for i in 0..N {
                tweaks[i] = self.tweaks_after(i, &tweaks).pinned();
                x[i] = first.xor(tweaks[i]).xor(extent.load(src.add(i * V::BYTES)));
            }
            if matches!(extent, Extent::Whole) {
                self.tweaks = self.tweaks_after(N, &tweaks).pinned();
            }
            keys.middle::<ENCRYPTS, V, N>(&mut x);
            for i in 0..N {
                extent.store(x[i].last::<ENCRYPTS>(last.xor(tweaks[i])), dst.add(i * V::BYTES));
            }
        }
    }
}

/// XTS under the data key, starting from an encrypted tweak. Returns the tweak of the block that follows the data.
///
/// # Safety
///
/// The same as for [`drive`], and for [`Vector`] with [`Single`] as the vector.
#[inline(always)]
unsafe fn from_tweak<const ENCRYPTS: bool, V: Vector, const FEW: bool>(
    schedule: &Schedule,
    tweak: Single,
    data: Span<'_>,
) -> Single {
    let blocks = data.len() / 16;
    // SAFETY: the caller guarantees the conditions of this function.
    unsafe {
        let modulus = Single::numbers([MODULUS; 4]);
        let times_alpha = |power| tweak.times_alpha(power, modulus);
        let first = V::join([tweak, times_alpha(1), times_alpha(2), times_alpha(3)]);
        let pass = Xts::<V, ENCRYPTS>::new(schedule, first).ready_for(data.len());
        let tweaks = drive::<V, _, FEW>(pass, data).tweaks;
        // After a partial vector, `tweaks` still holds the tweaks of that vector.
        tweaks.lowest().times_alpha(blocks % V::BLOCKS, modulus)
    }
}

/// XTS under the data key, starting from an encrypted tweak, which is replaced by the tweak of the block that follows the data.
///
/// # Safety
///
/// The same as for [`drive`], and for [`Vector`] with [`Single`] as the vector.
#[inline(always)]
pub(super) unsafe fn xts<const ENCRYPTS: bool, V: Vector, const FEW: bool>(
    schedule: &Schedule,
    register: &mut Block,
    data: Span<'_>,
) {
    // SAFETY: the caller guarantees the conditions of this function.
    unsafe {
        let next = from_tweak::<ENCRYPTS, V, FEW>(schedule, Single::load(register.as_ptr()), data);
        next.store(register.as_mut_ptr());
    }
}

/// XTS of the whole blocks of a data unit, from the start of the unit. `number` is the number of the unit; `after` is set to the tweak of
/// the block that follows the data.
///
/// # Safety
///
/// The same as for [`drive`], and for [`Vector`] with [`Single`] as the vector.
#[inline(always)]
pub(super) unsafe fn unit<const ENCRYPTS: bool, V: Vector, const FEW: bool>(
    schedule: &Schedule,
    tweak_schedule: &Schedule,
    number: &Block,
    after: Option<&mut Block>,
    data: Span<'_>,
) {
    // SAFETY: the caller guarantees the conditions of this function.
    unsafe {
        let tweak = single_stream::encrypted(tweak_schedule, single_stream::load_words(number));
        let next = from_tweak::<ENCRYPTS, V, FEW>(schedule, tweak, data);
        if let Some(after) = after {
            next.store(after.as_mut_ptr());
        }
    }
}
