//! GCM of short messages that each have their own key. The set-up of the key, the data and the tag take one call each.
//!
//! The time of such a message is mostly the latency of a dependency chain: round keys, H, the powers of H, the hash. Blocks
//! therefore stay in registers where a load would wait for smaller stores. Few powers are computed, because a product by a
//! new power costs five multiplications, and a reduction costs two.

use super::cipher::{Extent, Pass, drive};
use super::ctr::Ctr;
use super::ghash::{self, HashKey, MODULUS, Sum};
use super::schedule::{self, Schedule};
use super::single_stream;
use super::vector::{Single, Vector};
use crate::kernel::{Block, LARGEST_VECTOR, Powers, Progress, Span};

/// Replaces the round keys and the hash key of a message by those of another key.
///
/// # Safety
///
/// The same as for [`Vector`], both for `V` and for [`Single`].
#[inline(always)]
pub(super) unsafe fn key_into<V: Vector>(
    key: &[u8],
    schedule: &mut Schedule,
    hash_key: &mut HashKey<V::Powers>,
) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        schedule::expand_to_encrypt_into(key, schedule);
        let h = single_stream::encrypted(schedule, Single::number(0));
        ghash::replace_key::<V, true>(h, hash_key);
    }
}

/// The passes of CTR and GHASH over a group of vectors.
struct Group<'k, V: Vector> {
    ctr: Ctr<V, true>,
    hash_key: &'k HashKey<V::Powers>,
    /// The hash of all previous groups in the first place; it is added to the first vector.
    hash: V,
    sum: Sum<V>,
    /// Number of blocks left in the group.
    left: usize,
    encrypts: bool,
}

/// The hash key has the powers for the group.
impl<V: Vector> Pass<V> for Group<'_, V> {
    #[inline(always)]
    unsafe fn step<const N: usize>(&mut self, extent: Extent, src: *const u8, dst: *mut u8) {
        // SAFETY: the caller guarantees the conditions of this function.
        unsafe {
            let (x, last) = self.ctr.next::<N>();
            for i in 0..N {
                let text: V = extent.load(src.add(i * V::BYTES));
                let result = x[i].aesenclast(last.xor(text));
                extent.store(result, dst.add(i * V::BYTES));
                // The unused blocks of a part are multiplied by zero.
                let ciphertext = if self.encrypts { result } else { text };
                let factor = self.hash_key.powers_of(extent, self.left - i * V::BLOCKS);
                self.sum = self.sum.plus(Sum::product(ciphertext.reversed().native().xor(self.hash), factor));
                self.hash = self.hash.xor(self.hash);
            }
            self.left -= (N * V::BLOCKS).min(self.left);
        }
    }
}

/// Encrypts or decrypts 1 to `V::BLOCKS` whole blocks, and writes the ciphertext also to `waiting`. The counter is advanced.
///
/// # Safety
///
/// The same as for [`Vector`], both for `V` and for [`Single`].
#[inline(always)]
pub(super) unsafe fn few<V: Vector>(
    schedule: &Schedule,
    mask: Option<&mut Block>,
    counter: &mut Block,
    encrypts: bool,
    data: Span<'_>,
    waiting: &mut [u8; LARGEST_VECTOR],
) {
    const { assert!(V::BYTES <= LARGEST_VECTOR, "a vector fits") };
    assert!((16..=V::BYTES).contains(&data.len()), "one vector");
    let (blocks, src, dst, waiting) = (data.len() / 16, data.src(), data.dst(), waiting.as_mut_ptr());
    // SAFETY: the caller guarantees that the processor has the instructions. The span has this number of blocks, and a vector fits in
    // `waiting`.
    unsafe {
        let start = start(schedule, mask, counter, blocks);
        if V::BLOCKS == 1 || blocks == 1 {
            let text = Single::load(src);
            let result = single_stream::encrypted(schedule, start.reversed().native()).xor(text);
            result.store(dst);
            return if encrypts { result } else { text }.store(waiting);
        }
        let extent = if blocks < V::BLOCKS { Extent::Blocks(blocks) } else { Extent::Whole };
        let (x, last) = Ctr::<V, true>::new(schedule, start.native()).next::<1>();
        let text: V = extent.load(src);
        let result = x[0].aesenclast(last.xor(text));
        extent.store(result, dst);
        // One store for all blocks, which is forwarded to the load of a vector.
        if encrypts { result } else { text }.store(waiting);
    }
}

/// Encrypts J0 into the mask if a mask is given, advances the counter, and returns the first counter as a number.
///
/// # Safety
///
/// The same as for [`Vector`], for [`Single`].
#[inline(always)]
unsafe fn start(schedule: &Schedule, mask: Option<&mut Block>, counter: &mut Block, blocks: usize) -> Single {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        // The counter may be secret. It stays in a vector, since the compiler would copy general registers to the stack.
        let block = single_stream::load_words(counter);
        let mut start = block.reversed().native();
        if let Some(mask) = mask {
            single_stream::encrypted(schedule, block).store(mask.as_mut_ptr());
            start = start.add32(Single::number(1).native());
        }
        start.add32(Single::number(blocks as u128).native()).reversed().native().store(counter.as_mut_ptr());
        start
    }
}

/// Encrypts or decrypts whole blocks and adds the ciphertext to the hash. The counter is advanced.
///
/// # Safety
///
/// The same as for [`Vector`], both for `V` and for [`Single`].
#[inline(always)]
pub(super) unsafe fn crypt<V: Vector>(
    schedule: &Schedule,
    powers: &mut Powers<'_, HashKey<V::Powers>>,
    progress: Progress<'_>,
    encrypts: bool,
    data: Span<'_>,
) {
    let Progress { mask, counter, hash: state, before } = progress;
    let blocks = data.len() / 16;
    // SAFETY: the caller guarantees that the processor has the instructions. Each group lies in the span.
    unsafe {
        let mut start = start(schedule, mask, counter, blocks);
        // The blocks are hashed in two groups, because two groups that need half as many powers of H take less time than one
        // group that needs all of them. A key always has at least one vector of powers.
        let hash_key = powers.with(|key| {
            if blocks > 2 * V::BLOCKS || before.len() > V::BYTES {
                let vectors = blocks.div_ceil(V::BLOCKS);
                ghash::ensure_powers::<V>(
                    key,
                    (V::BLOCKS * vectors.div_ceil(2).min(4)).max(before.len() / 16),
                );
            }
        });
        let mut hash = Single::load(state.as_ptr()).reversed().native();
        if !before.is_empty() {
            hash = ghash::hash_few::<Single, _>(hash_key, hash, before, None);
        }
        let zero = V::numbers([0; 4]);
        let modulus = Single::numbers([MODULUS; 4]);
        let most = hash_key.made.min(4) * V::BLOCKS;
        let mut rest = data;
        while rest.len() >= 16 {
            let left = (rest.len() / 16).min(most);
            let (now, later) = rest.split_at(16 * left);
            // A group is made for each round: the compiler would copy the padding of a group that is carried from round to round.
            let ctr = Ctr::new(schedule, start.native());
            let group =
                Group::<V> { ctr, hash_key, hash: V::widen(hash), sum: Sum::zero(zero), left, encrypts };
            hash = drive::<_, _, true>(group, now).sum.folded().reduced(modulus);
            start = start.add32(Single::number(left as u128).native());
            rest = later;
        }
        hash.reversed().native().store(state.as_mut_ptr());
    }
}

/// Sets `tag` to the tag. Before the call, `tag` holds the mask, the encrypted J0. The function adds the hash of the state,
/// of the blocks of `before` (at most seven), and of the lengths in bits. The powers for them have been computed.
///
/// # Safety
///
/// The same as for [`Vector`], both for `V` and for [`Single`].
#[inline(always)]
pub(super) unsafe fn tag<V: Vector>(
    hash_key: &HashKey<V::Powers>,
    state: &Block,
    before: &[u8],
    lengths: [u64; 2],
    tag: &mut Block,
) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        let hash = Single::load(state.as_ptr()).reversed().native();
        let lengths = Single::words(lengths[1], lengths[0]).native();
        let hash = ghash::hash_few::<V, _>(hash_key, hash, before, Some(lengths));
        let place = tag.as_mut_ptr();
        hash.reversed().native().xor(Single::load(place)).store(place);
    }
}
