//! The data-parallel passes, generic over the register.
//!
//! A pass processes groups of as many blocks as eight registers hold. The last group may be partial; it is copied to a buffer
//! first.
//!
//! All functions here are `#[inline(always)]` and get the instructions of their registers from the entry functions of
//! `width`. The function that runs the cipher is a parameter ([`Crypt`]), since it has an entry function of its own.

use std::marker::PhantomData;

use zeroize::{Zeroize, Zeroizing};

use super::register::Register;
use super::schedule::Keys;
use crate::kernel::counter::{self, Counting};
use crate::kernel::tweak;
use crate::kernel::wiped::Wiped;
use crate::kernel::{Block, Span, wipe_stack};

/// The largest number of blocks of a group: those of eight registers.
pub(crate) const MOST: usize = 32;

/// Encrypts (true) or decrypts the blocks in registers. The processor must have the instructions of the registers.
pub(crate) type Crypt<R> = unsafe fn(&Keys, bool, &mut [R; 8]);

/// Blocks that a group does not use consist of this byte. They are encrypted with the others, and parts of the result may stay
/// on the stack. An encrypted zero block would be the hash key of GCM.
pub(crate) const SPARE_BYTE: u8 = 0x5a;

/// [`SPARE_BYTE`] in all bytes of a word.
const SPARE: u32 = u32::from_ne_bytes([SPARE_BYTE; 4]);

/// A group of blocks of a pass.
pub(crate) struct Group<'a, R: Register> {
    keys: &'a Keys,
    crypt: Crypt<R>,
    /// Zeroed on drop.
    buffer: [R; 8],
    /// Valid for reads of all blocks of eight registers.
    src: *const u8,
    /// Valid for writes of all blocks of eight registers. It is either equal to `src` or disjoint.
    dst: *mut u8,
    /// Number of blocks that belong to the data. The blocks after them consist of [`SPARE_BYTE`], and their results are not used.
    blocks: usize,
}

impl<R: Register> Group<'_, R> {
    const BYTES: usize = 16 * R::BLOCKS;

    /// Register `i` of the source.
    #[inline(always)]
    unsafe fn load(&self, i: usize) -> R {
        // SAFETY: the source is valid for reads; the caller guarantees that the processor has the instructions.
        unsafe { R::load(self.src.add(Self::BYTES * i)) }
    }

    /// The blocks before those of register `i` of the source; `previous` is before the first.
    #[inline(always)]
    unsafe fn load_previous(&self, i: usize, previous: &Block) -> R {
        // SAFETY: the source is valid for reads; the caller guarantees that the processor has the instructions.
        unsafe {
            if i > 0 {
                return R::load(self.src.add(Self::BYTES * i - 16));
            }
            let mut blocks = [*previous; 4];
            const { assert!(R::BLOCKS <= 4) };
            let bytes = Self::BYTES - 16;
            self.src.copy_to_nonoverlapping(blocks[1..].as_flattened_mut().as_mut_ptr(), bytes);
            R::load(blocks.as_ptr().cast())
        }
    }

    /// Writes register `i` of the destination.
    #[inline(always)]
    unsafe fn store(&mut self, i: usize, register: R) {
        // SAFETY: the destination is valid for writes.
        unsafe { register.store(self.dst.add(Self::BYTES * i)) }
    }
}

impl<R: Register> Drop for Group<'_, R> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: a register has no padding, and its size is a multiple of 16 bytes.
        let words =
            unsafe { std::slice::from_raw_parts_mut(self.buffer.as_mut_ptr().cast::<u64>(), 16 * R::BLOCKS) };
        words.zeroize();
    }
}

/// A pass over whole blocks, generic over the register.
pub(crate) trait Pass {
    /// Processes a group. The processor must have the instructions of the registers.
    unsafe fn group<R: Register>(&mut self, group: &mut Group<'_, R>);
}

/// Runs a pass on all blocks.
///
/// # Safety
///
/// The processor must have the instructions of the registers.
#[inline(always)]
pub(crate) unsafe fn run<R: Register>(keys: &Keys, crypt: Crypt<R>, data: Span<'_>, mut pass: impl Pass) {
    const { assert!(8 * R::BLOCKS <= MOST) };
    let most = 8 * R::BLOCKS;
    let blocks = data.len() / 16;
    let whole = blocks / most * most;
    let (src, dst) = (data.src(), data.dst());
    // SAFETY: each group lies within the span, whose pointers are valid for its length, or is the array `last`; the caller
    // guarantees that the processor has the instructions.
    unsafe {
        let mut group = Group::<R> { keys, crypt, buffer: [R::splat(SPARE); 8], src, dst, blocks: most };
        for first in (0..whole).step_by(most) {
            group.src = src.add(16 * first);
            group.dst = dst.add(16 * first);
            pass.group(&mut group);
        }
        if whole < blocks {
            let mut last = Wiped::<MOST>::zero();
            last.fill([SPARE_BYTE; 16]);
            let bytes = 16 * (blocks - whole);
            src.add(16 * whole).copy_to_nonoverlapping(last.as_mut_ptr().cast(), bytes);
            group.dst = last.as_mut_ptr().cast();
            group.src = group.dst;
            group.blocks = blocks - whole;
            pass.group(&mut group);
            dst.add(16 * whole).copy_from_nonoverlapping(last.as_ptr().cast(), bytes);
        }
    }
    // The circuits of `crypt` have more values than a processor has registers.
    wipe_stack::<704>();
}

/// ECB in a direction.
pub(crate) struct Ecb {
    pub(crate) encrypts: bool,
}

impl Pass for Ecb {
    #[inline(always)]
    unsafe fn group<R: Register>(&mut self, group: &mut Group<'_, R>) {
        // SAFETY: the caller guarantees that the processor has the instructions.
        unsafe {
            for i in 0..8 {
                group.buffer[i] = group.load(i);
            }
            (group.crypt)(group.keys, self.encrypts, &mut group.buffer);
            for i in 0..8 {
                group.store(i, group.buffer[i]);
            }
        }
    }
}

/// CTR; the counter is advanced.
pub(crate) struct Ctr<'a, C> {
    counter: &'a mut Block,
    counting: PhantomData<C>,
}

impl<'a, C: Counting> Ctr<'a, C> {
    /// Runs CTR on data of any length. `run` runs it on whole blocks.
    pub(crate) fn over(counter: &'a mut Block, data: Span<'_>, run: impl Fn(Ctr<'_, C>, Span<'_>)) {
        let counting = PhantomData;
        let whole = data.len() / 16 * 16;
        let (data, tail) = data.split_at(whole);
        run(Ctr { counter, counting }, data);
        if !tail.is_empty() {
            let mut keystream = Zeroizing::new([0; 16]);
            run(Ctr { counter, counting }, Span::in_place(&mut *keystream));
            tail.into_host().xor_with(&*keystream);
        }
    }
}

impl<C: Counting> Pass for Ctr<'_, C> {
    #[inline(always)]
    unsafe fn group<R: Register>(&mut self, group: &mut Group<'_, R>) {
        // SAFETY: the caller guarantees that the processor has the instructions.
        unsafe {
            R::counters::<C>(self.counter, group.blocks, &mut group.buffer);
            (group.crypt)(group.keys, true, &mut group.buffer);
            for i in 0..8 {
                group.store(i, group.load(i) ^ group.buffer[i]);
            }
        }
        counter::take::<C>(self.counter, group.blocks, |_, _| ());
    }
}

/// Decryption of CBC, or of CFB128; the register is set to the last ciphertext block.
pub(crate) struct Feedback<'a> {
    pub(crate) cfb: bool,
    pub(crate) register: &'a mut Block,
}

impl Pass for Feedback<'_> {
    #[inline(always)]
    unsafe fn group<R: Register>(&mut self, group: &mut Group<'_, R>) {
        // SAFETY: the caller guarantees that the processor has the instructions. The group has at least one block of data, and a
        // Block has alignment 1.
        unsafe {
            let last = group.src.cast::<Block>().add(group.blocks - 1).read();
            for i in 0..8 {
                let previous = group.load_previous(i, self.register);
                group.buffer[i] = if self.cfb { previous } else { group.load(i) };
            }
            (group.crypt)(group.keys, self.cfb, &mut group.buffer);
            // The loop starts with the last register, so that ciphertext in place is overwritten after its last use.
            for i in (0..8).rev() {
                let previous = group.load_previous(i, self.register);
                let other = if self.cfb { group.load(i) } else { previous };
                group.store(i, group.buffer[i] ^ other);
            }
            *self.register = last;
        }
    }
}

/// XTS in a direction; the tweak is advanced.
pub(crate) struct Xts<'a> {
    pub(crate) encrypts: bool,
    pub(crate) tweak: &'a mut Block,
}

impl Pass for Xts<'_> {
    #[inline(always)]
    unsafe fn group<R: Register>(&mut self, group: &mut Group<'_, R>) {
        let mut tweaks = Wiped::<MOST>::zero();
        tweak::take(self.tweak, group.blocks, |i, tweak| tweaks[i] = tweak);
        let step = R::BLOCKS;
        // SAFETY: the caller guarantees that the processor has the instructions; `tweaks` has as many blocks as eight registers
        // or more.
        unsafe {
            for i in 0..8 {
                let tweak = R::load(tweaks.as_ptr().add(step * i).cast());
                group.buffer[i] = group.load(i) ^ tweak;
            }
            (group.crypt)(group.keys, self.encrypts, &mut group.buffer);
            for i in 0..8 {
                let tweak = R::load(tweaks.as_ptr().add(step * i).cast());
                group.store(i, group.buffer[i] ^ tweak);
            }
        }
    }
}
