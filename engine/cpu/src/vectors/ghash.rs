//! GHASH and POLYVAL by carry-less multiplication, with one reduction for many blocks.
//!
//! Blocks are byte-reversed, which gives polynomials with their bits in reverse (RFC 8452, appendix A, POLYVAL). A product
//! of two such polynomials lacks one factor x, so the prepared key contains this factor. Reduction works from the low end
//! (Montgomery), with two products by the upper half of the modulus.
//!
//! With precomputed powers H^1, H^2, ..., the products of N vectors are added without reduction and the sum is reduced once.
//! In the loop, each place of a vector holds a separate hash, and all places are multiplied by the same power. The places
//! are added only at the end, where each block of the last vectors is multiplied by its own power.

use std::mem::zeroed;
use std::sync::atomic::{Ordering, compiler_fence};

use super::cipher::{Extent, opaque};
use super::single_stream::load_words;
use super::vector::{HIGH, LOW, RawBlock, Single, Vector};
use crate::kernel::Block;

/// The upper half of x^128 + x^127 + x^126 + x^121 + 1, in both halves.
pub(super) const MODULUS: u128 = 0xc200_0000_0000_0000_c200_0000_0000_0000;

/// The halves of [`Vector::clmul`] for numbers in the order of [`Vector::native`].
const LOWER: i32 = if cfg!(target_arch = "aarch64") { HIGH } else { LOW };
const UPPER: i32 = HIGH ^ LOW ^ LOWER;

/// x^128 modulo x^128 + x^127 + x^126 + x^121 + 1.
const X_TO_128: u128 = 0xc200_0000_0000_0000_0000_0000_0000_0001;

/// Eight vectors of powers of H, zeroed on drop. P is `Vector::Powers`. The vectors are aligned, because a store that crosses
/// a cache line is forwarded slowly to a load.
#[repr(C, align(64))]
pub struct HashKey<P> {
    /// The powers in descending order, so that consecutive blocks match consecutive powers.
    powers: P,
    /// The exclusive or of the two halves of the first power of each vector, in both halves. The loops multiply all places of a vector by
    /// this power. Where each block has a power of its own, the sum is computed: these products are few.
    sums: [RawBlock; 8],
    /// Number of vectors that have been computed, counted from the lowest powers: 0, 1, 2, 4 or 8. The other vectors are zero. The
    /// number is raised before vectors are written: see [`HashKey::raise`].
    pub(super) made: usize,
}

impl<P> HashKey<P> {
    /// Number of powers in a vector.
    const BLOCKS: usize = size_of::<P>() / size_of::<[RawBlock; 8]>();

    /// A key without powers, to be replaced by [`replace_key`].
    #[inline(always)]
    pub(super) fn blank() -> Self {
        // SAFETY: the type P is an array of vectors, and vectors and numbers may be zero.
        unsafe { zeroed() }
    }

    /// True if the key has the powers for a call on this number of blocks.
    #[inline(always)]
    pub(super) fn has_powers(&self, blocks: usize) -> bool {
        self.made == 8 || self.made * Self::BLOCKS >= blocks
    }

    /// The powers from H^power on, in descending order.
    #[inline(always)]
    fn powers_from(&self, power: usize) -> *const RawBlock {
        (&raw const self.powers).cast::<RawBlock>().wrapping_add(8 * Self::BLOCKS - power)
    }

    /// Sets vector `i`, counted from the vector of the lowest powers.
    #[inline(always)]
    fn put<V: Vector<Powers = P>>(&mut self, i: usize, powers: V) {
        assert!(i < 8, "a key has eight vectors");
        debug_assert!(i < self.made, "a vector that is not counted is not erased");
        // SAFETY: the index was checked, so that both places lie inside the key, which is borrowed exclusively. The key is aligned for the
        // widest vectors.
        unsafe {
            (&raw mut self.powers).cast::<V>().add(7 - i).write(powers);
            (&raw mut self.sums[7 - i]).cast::<Single>().write(Factor::of(powers.lowest()).sum);
        }
    }

    /// Counts vectors that the caller is about to write. If another thread forks the process while they are written, the child process
    /// erases all counted vectors when it replaces or drops the key.
    #[inline(always)]
    fn raise(&mut self, made: usize) {
        self.made = made;
        // The compiler does not move the writes before the count.
        compiler_fence(Ordering::SeqCst);
    }

    /// A vector with H^(`vectors` * BLOCKS) in each of its places.
    ///
    /// # Safety
    ///
    /// The same as for [`Vector`]. In addition, `vectors` is at least 1 and at most 8.
    #[inline(always)]
    pub(super) unsafe fn power<V: Vector<Powers = P>>(&self, vectors: usize) -> Factor<V> {
        // SAFETY: the caller guarantees the conditions of this function.
        unsafe {
            Factor {
                whole: V::broadcast(self.powers_from(vectors * V::BLOCKS)),
                sum: V::broadcast(self.sums.as_ptr().add(8 - vectors)),
            }
        }
    }

    /// The powers for the blocks of an extent: H^power and the next lower powers. The places of blocks outside of the
    /// extent are zero.
    ///
    /// # Safety
    ///
    /// The same as for [`Vector`]. In addition, `power` is at most the number of powers and at least the number of blocks in
    /// the extent.
    #[inline(always)]
    pub(super) unsafe fn powers_of<V: Vector>(&self, extent: Extent, power: usize) -> Factor<V> {
        // SAFETY: the caller guarantees the conditions of this function.
        unsafe { Factor::of(extent.load(self.powers_from(power).cast())) }
    }

    /// A vector of H^power and the next lower powers.
    ///
    /// # Safety
    ///
    /// The same as for [`Vector`]. In addition, `power` is at most the number of powers and at least the number of blocks in a
    /// vector.
    #[inline(always)]
    pub(super) unsafe fn powers<V: Vector>(&self, power: usize) -> Factor<V> {
        // SAFETY: the caller guarantees the conditions of this function.
        unsafe { self.powers_of(Extent::Whole, power) }
    }
}

impl<P> Drop for HashKey<P> {
    fn drop(&mut self) {
        let powers = (&raw mut self.powers).cast::<RawBlock>();
        for vector in 8 - self.made..8 {
            // SAFETY: the powers of the vector, and the sum, lie inside the key. Vectors may be zero.
            unsafe {
                for block in 0..Self::BLOCKS {
                    powers.add(vector * Self::BLOCKS + block).write_volatile(zeroed());
                }
                (&raw mut self.sums[vector]).write_volatile(zeroed());
            }
        }
        compiler_fence(Ordering::SeqCst);
    }
}

/// A second factor: a power of H, and the exclusive or of its halves, in both halves.
pub(super) struct Factor<V> {
    pub(super) whole: V,
    pub(super) sum: V,
}

impl<V: Vector> Factor<V> {
    #[inline(always)]
    fn of(whole: V) -> Self {
        Factor { whole, sum: whole.xor(whole.swapped()) }
    }
}

/// A sum of unreduced products. Karatsuba's method needs three multiplications instead of four. A carry-less multiplication
/// of any width occupies its unit for two cycles (Zen 4).
#[derive(Clone, Copy)]
pub(super) struct Sum<V> {
    /// The coefficient of x^0.
    low: V,
    /// The coefficient of x^64, plus `low` and `high`.
    middle: V,
    /// The coefficient of x^128.
    high: V,
}

impl<V: Vector> Sum<V> {
    /// A sum without products. The value of `any` does not matter.
    #[inline(always)]
    pub(super) fn zero(any: V) -> Self {
        let zero = any.xor(any);
        Sum { low: zero, middle: zero, high: zero }
    }

    /// The sum of all places.
    #[inline(always)]
    pub(super) fn folded(self) -> Sum<Single> {
        Sum { low: self.low.folded(), middle: self.middle.folded(), high: self.high.folded() }
    }

    #[inline(always)]
    pub(super) fn product(a: V, b: Factor<V>) -> Self {
        Sum::product_of(a, a.swapped(), b)
    }

    /// The product, from a factor and the same factor with its high halves in the low halves.
    #[inline(always)]
    fn product_of(a: V, swapped: V, b: Factor<V>) -> Self {
        Sum {
            low: a.clmul::<LOWER>(b.whole),
            middle: a.xor(swapped).clmul::<LOW>(b.sum),
            high: a.clmul::<UPPER>(b.whole),
        }
    }

    /// The sum of two products. The halves of both first factors are added in one vector.
    #[inline(always)]
    pub(super) fn products(a: [V; 2], b: [Factor<V>; 2]) -> Self {
        let folded = a[0].low_halves(a[1]).xor(a[0].high_halves(a[1])).pinned();
        Sum {
            low: a[0].clmul::<LOWER>(b[0].whole).xor(a[1].clmul::<LOWER>(b[1].whole)),
            middle: folded.clmul::<LOW>(b[0].sum).xor(folded.clmul::<HIGH>(b[1].sum.pinned())),
            high: a[0].clmul::<UPPER>(b[0].whole).xor(a[1].clmul::<UPPER>(b[1].whole)),
        }
    }

    #[inline(always)]
    pub(super) fn plus(self, other: Self) -> Self {
        Sum {
            low: self.low.xor(other.low),
            middle: self.middle.xor(other.middle),
            high: self.high.xor(other.high),
        }
    }

    /// See [`Vector::pinned`].
    #[inline(always)]
    pub(super) fn pinned(self) -> Self {
        Sum { low: self.low.pinned(), middle: self.middle.pinned(), high: self.high.pinned() }
    }

    /// Folds the low 64 bits into the bits above them, twice.
    #[inline(always)]
    pub(super) fn reduced(self, modulus: V) -> V {
        let middle = self.middle.xor(self.low).xor(self.high);
        let middle = middle.xor(self.low.swapped()).xor(self.low.clmul::<LOW>(modulus)).pinned();
        self.high.xor(middle.swapped()).native().xor(middle.clmul::<LOW>(modulus).native())
    }
}

/// The lowest powers of H, one for each block of a vector. `h` is the key of GHASH or, if GHASH is not set, the key of POLYVAL.
///
/// # Safety
///
/// The same as for [`Vector`], both for `V` and for [`Single`].
#[inline(always)]
unsafe fn lowest_powers<V: Vector, const GHASH: bool>(h: Single) -> V {
    let h = if GHASH { h.reversed() } else { h };
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        // The key of GHASH times x is that of POLYVAL (RFC 8452, appendix A, mulX_POLYVAL).
        let carry = h.top_everywhere().and(Single::number(X_TO_128));
        let first = if GHASH { h.doubled().xor(carry) } else { h };
        let zero = first.xor(first);
        // The sum of two vectors: the compiler would store a vector of single blocks as several blocks, and several stores are not forwarded
        // to one load.
        let (a, b, known) = match V::BLOCKS {
            1 => return V::splat(first.native()),
            2 => ([first, zero, zero, zero], [first, zero, zero, zero], [zero, first, zero, zero]),
            _ => {
                let square = Sum::product(first, Factor::of(first)).reduced(Single::numbers([MODULUS; 4]));
                ([square, first, zero, zero], [square, square, zero, zero], [zero, zero, square, first])
            }
        };
        let product = Sum::product(V::join(a), Factor::of(V::join(b)));
        product.reduced(V::numbers([MODULUS; 4])).xor(V::join(known))
    }
}

/// The next vector of powers: a known vector times the highest known power.
///
/// # Safety
///
/// The same as for [`Vector`].
#[inline(always)]
unsafe fn next_powers<V: Vector>(known: V, last_known: V) -> V {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        let highest = V::splat(last_known.lowest());
        Sum::product(known, Factor::of(highest)).reduced(V::numbers([MODULUS; 4]))
    }
}

/// Replaces a key of GHASH or POLYVAL: computes the lowest powers of H; [`ensure_powers`] computes the others.
///
/// # Safety
///
/// The same as for [`Vector`], both for `V` and for [`Single`].
#[inline(always)]
pub(super) unsafe fn replace_key<V: Vector, const GHASH: bool>(h: Single, place: &mut HashKey<V::Powers>) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    let lowest = unsafe { lowest_powers::<V, GHASH>(h) };
    place.raise(place.made.max(1));
    place.put(0, lowest);
    // The powers of the previous key are erased.
    for i in 1..place.made {
        place.put(i, lowest.xor(lowest));
    }
    compiler_fence(Ordering::SeqCst);
    place.made = 1;
}

/// Computes the missing powers that [`hash`] of `blocks` blocks needs.
///
/// # Safety
///
/// The same as for [`Vector`].
#[inline(always)]
pub(super) unsafe fn ensure_powers<V: Vector>(key: &mut HashKey<V::Powers>, blocks: usize) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        while !key.has_powers(blocks) {
            let known = key.made;
            let last = key.powers::<V>(known * V::BLOCKS).whole;
            key.raise(2 * known);
            for i in 0..known {
                key.put(known + i, next_powers(key.powers::<V>((i + 1) * V::BLOCKS).whole, last));
            }
        }
    }
}

/// The bytes of each block in reverse for GHASH, unchanged for POLYVAL, in the order of [`Vector::native`].
#[inline(always)]
pub(super) fn ordered<V: Vector, const GHASH: bool>(blocks: V) -> V {
    if GHASH { blocks.reversed().native() } else { blocks.native() }
}

/// Adds whole blocks, and a last block if it is given, to a GHASH state or to a POLYVAL state. The caller must have computed the powers
/// for them with [`ensure_powers`].
///
/// # Safety
///
/// The same as for [`Vector`].
#[inline(always)]
pub(super) unsafe fn hash<V: Vector, const GHASH: bool>(
    key: &HashKey<V::Powers>,
    state: &mut Block,
    data: &[u8],
    last: Option<&Block>,
) {
    /// Number of vectors for each reduction. It is one less than the number of vectors of powers, since the end of the data
    /// may need one more vector of powers.
    const N: usize = 7;
    let (mut ptr, mut left) = (data.as_ptr(), data.len() / 16);
    // At most one block follows the data, so the blocks that the loop leaves need at most eight vectors of powers.
    let after = usize::from(last.is_some());
    if left + after == 0 {
        return;
    }
    // SAFETY: the caller guarantees that the processor has the instructions. Each access lies inside the `left` blocks at
    // `ptr`, the powers of the key or the state.
    unsafe {
        let modulus = V::numbers([MODULUS; 4]);
        let mut hash = V::widen(ordered::<_, GHASH>(Single::load(state.as_ptr())));
        // The loop leaves at least one vector, so that the hash in each place can be added to a block in the same place.
        while left >= (N + 1) * V::BLOCKS {
            // With 16 registers, the powers are loaded in each round. Otherwise the compiler would copy them to the stack, where
            // they are not zeroed.
            let key = if V::REGISTERS < 32 { &*opaque(key) } else { key };
            let mut x: V = ordered::<V, GHASH>(V::load(ptr)).xor(hash);
            let mut sum = Sum::product(x, key.power(N));
            for i in 1..N {
                let ptr = ptr.add(i * V::BYTES);
                x = ordered::<V, GHASH>(V::load(ptr));
                // Intel's processors have one execution unit for both shuffles and products of 512 bits, so a second load is used
                // in place of a shuffle (measured on Sapphire Rapids, not on Zen). The load ends in the vector that the loop leaves.
                let swapped = if !GHASH && V::BLOCKS == 4 { V::load(ptr.add(8)) } else { x.swapped() };
                sum = sum.plus(Sum::product_of(x, swapped, key.power(N - i)));
            }
            hash = sum.reduced(modulus);
            ptr = ptr.add(N * V::BYTES);
            left -= N * V::BLOCKS;
        }
        // Each block is multiplied by its own power. The hashes so far are added to the first blocks.
        let zero = hash.xor(hash);
        let mut sum = Sum::zero(hash);
        // In GCM-SIV, a few blocks have just been stored one by one, and several stores are not forwarded to one load. Vectors are faster
        // from six blocks on (measured on Sapphire Rapids).
        while left >= V::BLOCKS && (GHASH || data.len() > 5 * 16) {
            let x = ordered::<V, GHASH>(V::load(ptr)).xor(hash);
            sum = sum.plus(Sum::product(x, key.powers(left + after)));
            hash = zero;
            ptr = ptr.add(V::BYTES);
            left -= V::BLOCKS;
        }
        let mut sum = sum.folded();
        let mut hash = hash.lowest();
        while left > 0 {
            let x = ordered::<Single, GHASH>(Single::load(ptr)).xor(hash);
            sum = sum.plus(Sum::product(x, key.powers(left + after)));
            hash = hash.xor(hash);
            ptr = ptr.add(16);
            left -= 1;
        }
        if let Some(last) = last {
            let x = ordered::<_, GHASH>(load_words(last)).xor(hash);
            sum = sum.plus(Sum::product(x, key.powers(1)));
        }
        let hash = sum.reduced(Single::numbers([MODULUS; 4]));
        ordered::<_, GHASH>(hash).store(state.as_mut_ptr());
    }
}

/// Adds at most seven blocks, and a last block if it is given, to a hash. All blocks but those in `data` are byte-reversed
/// and in the order of [`Vector::native`]. The caller must have computed the powers for them. The blocks in `data` are loaded
/// as words, because they may have been stored as words. If `data` has four blocks or more, and `V` is wider than a block, the last
/// blocks are loaded as vectors: in most messages of this length, one vector was stored (see [`short_gcm::few`](super::short_gcm::few)).
///
/// # Safety
///
/// The same as for [`Vector`], both for `V` and for [`Single`].
#[inline(always)]
pub(super) unsafe fn hash_few<V: Vector, P>(
    key: &HashKey<P>,
    mut hash: Single,
    data: &[u8],
    last: Option<Single>,
) -> Single {
    let mut left = data.len() / 16 + usize::from(last.is_some());
    debug_assert!(data.len() < 8 * 16 && key.has_powers(left), "few blocks, and their powers");
    let mut ptr = data.as_ptr();
    // SAFETY: the caller guarantees that the processor has the instructions. Each access lies inside the data or the powers.
    unsafe {
        let mut sum = Sum::zero(hash);
        let blocks = data.len() / 16;
        let end = ptr.add(16 * blocks);
        let in_vectors = if V::BLOCKS > 1 && blocks >= 4 { blocks - blocks % V::BLOCKS } else { 0 };
        let vectors = end.sub(16 * in_vectors);
        while ptr < vectors {
            let [low, high] = ptr.cast::<[u64; 2]>().read_unaligned();
            let x = Single::words(low, high).reversed().native().xor(hash);
            sum = sum.plus(Sum::product(x, key.powers(left)));
            hash = hash.xor(hash);
            ptr = ptr.add(16);
            left -= 1;
        }
        if in_vectors > 0 {
            let mut wide = V::widen(hash);
            let mut products = Sum::zero(wide);
            // Constant bounds: seven blocks have one vector of four blocks, or three of two.
            for _ in 0..7 / V::BLOCKS {
                let x = V::load(ptr).reversed().native().xor(wide);
                products = products.plus(Sum::product(x, key.powers(left)));
                wide = wide.xor(wide);
                ptr = ptr.add(V::BYTES);
                left -= V::BLOCKS;
                if ptr == end {
                    break;
                }
            }
            sum = sum.plus(products.folded());
            hash = hash.xor(hash);
        }
        if let Some(last) = last {
            sum = sum.plus(Sum::product(last.xor(hash), key.powers(1)));
        }
        sum.reduced(Single::numbers([MODULUS; 4]))
    }
}

#[cfg(test)]
mod tests;
