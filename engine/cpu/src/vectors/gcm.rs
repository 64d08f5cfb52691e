//! GCM's CTR and GHASH in one loop, since they use different execution units. The same loop opens messages of GCM-SIV, with
//! its counter and POLYVAL, and encrypts one message of GCM-SIV while it hashes the next.
//!
//! A step is N vectors: eight with 32 registers, six with 16 registers, so that no value is copied to the stack. The
//! products of the hash are computed between the rounds of CTR, one vector after each round. If the output is hashed (GCM
//! encryption and GCM-SIV decryption), they use the output of the previous step. If the input is hashed (GCM decryption),
//! they use the input of the current step. As in [`super::ghash`], each place of a vector holds a separate hash, and all
//! places are multiplied by the same power of H. The blocks of the last step are multiplied by different powers.

use super::cipher::{KEY_FIRST, Keys, extra_rounds, for_each, in_memory, opaque, opaque_number, round};
use super::ghash::{HashKey, MODULUS, Sum, ordered};
use super::schedule::Schedule;
use super::vector::{Single, Vector, prefetch};
use crate::kernel::counter::{Counting, Low32};
use crate::kernel::{Block, GcmCounter, Span};

/// The number of bytes by which input is prefetched if it is hashed. The vectors of a step are hashed from the last to the
/// first, and the prefetchers of the processor do not recognise this order: without the instructions, opening 4 MiB out of
/// place takes 2.6 times as long on Zen 5.
const AHEAD: usize = 4096;

/// True if all loads of the end of a step come before its stores: 64-bit Arm loads and stores pairs of vectors in one instruction.
const STORES_LAST: bool = cfg!(target_arch = "aarch64");

/// The last byte of each counter block of an aligned step. The step starts with block 2 of a group of 32 blocks, and its
/// last two blocks are blocks 0 and 1 of the next group.
#[repr(align(64))]
struct Offsets([Block; 32]);

static OFFSETS: Offsets = {
    let mut offsets = [[0; 16]; 32];
    let mut i = 0;
    while i < 32 {
        offsets[i][15] = (i as u8 + 2) % 32;
        i += 1;
    }
    Offsets(offsets)
};

/// True if the steps of [`crypt`] may be aligned: 32 blocks, of which the first has a counter that is 2 more than a multiple of
/// 32, as at the start of a message with a nonce of 12 bytes. Each vector of counters is then one exclusive or.
#[inline(always)]
pub(super) fn is_aligned<V: Vector, const N: usize>(counter: &GcmCounter) -> bool {
    V::REGISTERS == 32 && V::BLOCKS * N == 32 && counter.is_public && counter.block[0][15] % 32 == 2
}

/// GHASH is set for GCM. Otherwise, the loop is that of GCM-SIV: the counter is little-endian, and the bytes of hashed blocks
/// are not reversed.
struct Gcm<V: Vector, const N: usize, const ALIGNED: bool, const GHASH: bool> {
    keys: Keys,
    hash_key: *const HashKey<V::Powers>,
    /// The output of the previous step. Read only if [`Gcm::KEEPS_TEXT`] is set.
    output: [V; N],
    /// The counters of the next vector. `stride` is the number of blocks in a vector. Both are little-endian numbers, for GCM in the
    /// order of [`Vector::native`]. For an aligned step with the first counter 32 m + 2, `base` belongs to 32 m. Each place of `counters` has 32 (m + 1), which the
    /// last two blocks of the step use, and `stride` is 32.
    counters: V,
    stride: V,
    /// For an aligned step: the first round key XORed with the counter block that is the multiple of 32 below the step.
    base: V,
    modulus: V,
    /// The hashes so far, one for each place of a vector.
    hash: V,
}

impl<V: Vector, const N: usize, const ALIGNED: bool, const GHASH: bool> Gcm<V, N, ALIGNED, GHASH> {
    /// True if text is hashed from the registers in which it was encrypted, or from which it will be decrypted. With vectors of four
    /// blocks, most loads cross a cache line, and such a load of output waits for the store. Without a second load, a step of 512 bytes
    /// takes 82 cycles in place of 88 to seal, and 6 cycles less to open (Sapphire Rapids). Sealing of GCM-SIV is an exception: it
    /// hashes the text of another message, by loads.
    const KEEPS_TEXT: bool = V::BLOCKS == 4;

    /// The state of a step. With 16 registers, and for steps that are not aligned and keep their text ([`Gcm::KEEPS_TEXT`]), the state stays in
    /// memory, where [`crypt`] wipes it. Without this function, the compiler would copy some of it to the stack.
    #[inline(always)]
    fn in_place(&mut self) -> &mut Self {
        if V::REGISTERS == 32 && (ALIGNED || !GHASH || V::BLOCKS < 4) { self } else { in_memory(self) }
    }

    /// The counter blocks of the next step, XORed with the first round key.
    ///
    /// # Safety
    ///
    /// The same as for [`Vector`].
    #[inline(always)]
    unsafe fn next_blocks(&mut self, first: V) -> [V; N] {
        let mut x = [first; N];
        if ALIGNED {
            let next = first.xor(self.counters.reversed());
            self.counters = self.counters.add32(self.stride);
            for_each!(I < N => {
                let base = if I + 1 < N { self.base } else { self.base.with_upper_half(next) };
                // SAFETY: the caller guarantees that the processor has the instructions. There are offsets for N vectors.
                let offset: V = unsafe { V::load(OFFSETS.0.as_ptr().add(I * V::BLOCKS).cast()) };
                x[I] = base.xor(offset);
            });
            self.base = next;
        } else {
            let mut counters = self.counters;
            for_each!(I < N => {
                x[I] = first.xor(if GHASH { counters.reversed().native() } else { counters });
                counters = counters.add32(self.stride).pinned();
            });
            self.counters = counters;
        }
        x
    }

    /// Encrypts or decrypts a step, and adds the step of text at `hashed` to the hash. With INPUT, this is the source of the step (GCM) or
    /// text of another message (GCM-SIV); without INPUT, it is the output of the previous step. Whether `hashed` is `None` is known at
    /// compile time.
    ///
    /// # Safety
    ///
    /// The same as for [`Vector`]. In addition, the three pointers are valid for a step, there are `rounds` + 1 keys, and the
    /// hash key has the powers for a step.
    #[inline(always)]
    unsafe fn step<const INPUT: bool>(&mut self, src: *const u8, dst: *mut u8, hashed: Option<*const u8>) {
        let this = self.in_place();
        // SAFETY: the caller guarantees the conditions of this function.
        unsafe {
            let keys = this.keys.opaque();
            let zero = this.modulus.xor(this.modulus);
            let first: V = if KEY_FIRST { zero } else { keys.get(0) };
            let keeps_input = Self::KEEPS_TEXT && INPUT && GHASH;
            let mut input = [zero; N];
            if let (true, Some(hashed)) = (keeps_input, hashed) {
                for_each!(I < N => input[I] = V::load(hashed.add(I * V::BYTES)).pinned());
            }
            let mut x = this.next_blocks(first);
            let mut sum = Sum::zero(zero);
            // The additional rounds come first, so that the other rounds and the code that uses their result form one basic
            // block.
            extra_rounds!(keys.rounds, 1, number => {
                let key = keys.for_round(number);
                for_each!(I < N => x[I] = round::<true, V>(x[I], key));
            });
            let keys = keys.without_extra();
            // The powers of H stay in memory, like the round keys: there are not enough registers for them, and copies on the
            // stack would not be wiped.
            let hash_key = opaque(this.hash_key);
            macro_rules! round {
                ($number:expr) => {{
                    let key = keys.for_round($number);
                    for_each!(I < N => x[I] = round::<true, V>(x[I], key));
                }};
            }
            // A vector of text. The first vector is hashed last, because its input depends on the hash of the previous step.
            macro_rules! text {
                ($hashed:expr, $vector:expr) => {{
                    let text = if keeps_input {
                        input[$vector]
                    } else if Self::KEEPS_TEXT && !INPUT {
                        this.output[$vector]
                    } else {
                        V::load($hashed.add($vector * V::BYTES))
                    };
                    let text = ordered::<V, GHASH>(text);
                    if $vector == 0 { text.xor(this.hash) } else { text }
                }};
            }
            // Each round is followed by the product of one vector of text, or two rounds by those of two vectors.
            if V::REGISTERS == 32 {
                const { assert!(V::REGISTERS < 32 || N.is_multiple_of(2), "pairs of vectors") };
                for_each!(I < N / 2 => {
                    round!(2 * I + 1);
                    round!(2 * I + 2);
                    for_each!(I < N => x[I] = x[I].pinned());
                    if let Some(hashed) = hashed {
                        let texts = [text!(hashed, N - 1 - 2 * I), text!(hashed, N - 2 - 2 * I)];
                        let power = |i: usize| (*hash_key).power(i + 1);
                        sum = sum.plus(Sum::products(texts, [power(2 * I), power(2 * I + 1)])).pinned();
                    }
                });
            } else {
                // This loop is not unrolled, because the compiler would then move loads forward, and there are not enough
                // registers for them.
                let mut vector = opaque_number(N - 1);
                macro_rules! round_and_product {
                    ($vector:expr) => {{
                        let number = N - $vector;
                        round!(number);
                        if let Some(hashed) = hashed {
                            let power = (*hash_key).power(number);
                            sum = sum.plus(Sum::product(text!(hashed, $vector), power));
                        }
                    }};
                }
                while vector > 0 {
                    round_and_product!(vector);
                    vector -= 1;
                }
                round_and_product!(0);
            }
            for_each!(I < 10 - N - 1 => {
                round!(N + 1 + I);
            });
            if hashed.is_some() {
                this.hash = sum.reduced(this.modulus);
            }
            let last: V = keys.opaque().get(10);
            let before: V = if KEY_FIRST { keys.get(9) } else { zero };
            for_each!(I < N => {
                let text = if keeps_input && hashed.is_some() { input[I] } else { V::load(src.add(I * V::BYTES)) };
                x[I] = x[I].xor(before).aesenclast(last.xor(text)).pinned();
                if Self::KEEPS_TEXT && !INPUT {
                    this.output[I] = x[I];
                }
                if !STORES_LAST {
                    x[I].store(dst.add(I * V::BYTES));
                }
            });
            if STORES_LAST {
                for_each!(I < N => x[I].store(dst.add(I * V::BYTES)));
            }
        }
    }

    /// Adds the last step of text to the hash, each block with its own power, and returns the state of the hash.
    ///
    /// # Safety
    ///
    /// The same as for [`Gcm::step`].
    #[inline(always)]
    unsafe fn last(&mut self, hashed: *const u8) -> Single {
        let this = self.in_place();
        // SAFETY: the caller guarantees the conditions of this function.
        unsafe {
            let mut sum = Sum::zero(this.hash);
            let mut vector = 0;
            while vector < opaque_number(N) {
                let text = ordered::<V, GHASH>(V::load(hashed.add(vector * V::BYTES))).xor(this.hash);
                this.hash = text.xor(text);
                sum = sum.plus(Sum::product(text, (*this.hash_key).powers((N - vector) * V::BLOCKS)));
                vector += 1;
            }
            sum.folded().reduced(Single::numbers([MODULUS; 4]))
        }
    }
}

/// Encrypts or decrypts one or more whole steps, and adds the output (if OUTPUT is set) or the text at `hashed` to the state of
/// the hash. The function also advances the counter.
///
/// # Safety
///
/// The same as for [`Vector`]. In addition, the hash key has the powers for N vectors, which are at most eight. If ALIGNED is
/// set, [`is_aligned`] is true and GHASH is set. If OUTPUT is not set, `hashed` is valid for reads of the length of the data.
/// With GHASH, it is then the source of the data; otherwise, the data are not written to it.
#[inline(always)]
pub(super) unsafe fn crypt<
    V: Vector,
    const N: usize,
    const OUTPUT: bool,
    const ALIGNED: bool,
    const GHASH: bool,
>(
    schedule: &Schedule,
    hash_key: &HashKey<V::Powers>,
    counter: &mut Block,
    state: &mut Block,
    data: Span<'_>,
    hashed: *const u8,
) {
    let step = N * V::BYTES;
    let steps = data.len() / step;
    assert!(data.len().is_multiple_of(step) && steps > 0, "whole steps");
    let start = if GHASH { u128::from_be_bytes(*counter) } else { u128::from_le_bytes(*counter) };
    let after = Low32::advance(start, data.len() as u128 / 16);
    *counter = if GHASH { after.to_be_bytes() } else { after.to_le_bytes() };
    let (src, dst) = (data.src(), data.dst());
    // SAFETY: the caller guarantees that the processor has the instructions. Each step lies in the span. Output is hashed
    // after it is written. Input is hashed before it is overwritten.
    unsafe {
        let stride = if ALIGNED { 32 } else { V::BLOCKS as u128 };
        let stride = V::numbers([stride; 4]);
        let stride = if GHASH { stride.native() } else { stride };
        let counter = V::splat(Single::words(start as u64, (start >> 64) as u64));
        let (counters, base) = if ALIGNED {
            let multiple = V::splat(Single::number(start - 2));
            (multiple.add32(stride), V::broadcast(schedule.encrypt.as_ptr()).xor(multiple.reversed()))
        } else {
            let counters = counter.add32(V::numbers([0, 1, 2, 3]));
            (if GHASH { counters.native() } else { counters }, counter)
        };
        let mut gcm = Gcm::<V, N, ALIGNED, GHASH> {
            keys: Keys::of::<true>(schedule),
            hash_key,
            // Any value: it is not read before the first step has written it.
            output: [stride; N],
            counters,
            stride,
            base,
            modulus: V::numbers([MODULUS; 4]),
            hash: V::widen(ordered::<_, GHASH>(Single::load(state.as_ptr()))),
        };
        let last = step * (steps - 1);
        let hash = if OUTPUT {
            gcm.step::<false>(src, dst, None);
            for at in (step..data.len()).step_by(step) {
                gcm.step::<false>(src.add(at), dst.add(at), Some(dst.add(at - step).cast_const()));
            }
            gcm.last(dst.add(last).cast_const())
        } else {
            for at in (0..last).step_by(step) {
                // The prefetches end with the data: opening 16 KiB takes 2 % longer if they reach the next page (Sapphire Rapids).
                for_each!(I < N => prefetch(hashed.add((at + AHEAD).min(last) + I * V::BYTES)));
                gcm.step::<true>(src.add(at), dst.add(at), Some(hashed.add(at)));
            }
            let hash = gcm.last(hashed.add(last));
            gcm.step::<false>(src.add(last), dst.add(last), None);
            hash
        };
        ordered::<_, GHASH>(hash).store(state.as_mut_ptr());
        let this = gcm.in_place();
        (this.hash, this.counters, this.base, this.output) = (stride, stride, stride, [stride; N]);
        this.in_place();
    }
}
