//! The data-parallel passes, generic over the register.
//!
//! A pass processes groups of as many blocks as a layout of planes holds. The last group may be partial; it is copied to a
//! buffer first.
//!
//! All functions here are `#[inline(always)]` and get the instructions of their registers from the entry functions of
//! `width`. The function that runs the cipher is a parameter ([`Crypt`]), since it has an entry function of its own.

use std::borrow::Borrow;
use std::marker::PhantomData;

use zeroize::{Zeroize, Zeroizing};

use super::planes::{MOST, Narrow, Plane};
use super::register::Register;
use super::schedule::{Keys, Schedule};
use super::vector::Vector;
use crate::kernel::counter::{self, Counting};
use crate::kernel::tweak;
use crate::kernel::{Block, Span};

/// Encrypts (true) or decrypts the blocks in registers. The processor must have the instructions of the registers.
pub(crate) type Crypt<S, R> = unsafe fn(&Keys<S>, bool, &mut [R; MOST]);

/// The functions that run the cipher on many and on few blocks.
#[derive(Clone, Copy)]
pub(crate) struct Ciphers<R: Register> {
    pub(crate) large: Crypt<<R::Large as Plane>::Stored, <R::Large as Plane>::Register>,
    pub(crate) small: Crypt<Vector, R>,
}

/// Blocks that a group does not use consist of this byte. They are encrypted with the others, and parts of the result may stay
/// on the stack. An encrypted zero block would be the hash key of GCM.
pub(crate) const SPARE_BYTE: u8 = 0x5a;

/// [`SPARE_BYTE`] in all bytes of a word.
const SPARE: u32 = u32::from_ne_bytes([SPARE_BYTE; 4]);

/// Buffer for the registers of a layout; zeroed on drop.
pub(crate) struct Buffer<P: Plane>(pub(crate) [P::Register; MOST]);

impl<P: Plane> Buffer<P> {
    /// # Safety
    ///
    /// The processor must have the instructions of the registers.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        // SAFETY: the caller guarantees that the processor has the instructions.
        Buffer([unsafe { P::Register::splat(SPARE) }; MOST])
    }
}

impl<P: Plane> Drop for Buffer<P> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the words are the first registers of the array. A register has no padding, and its size is a multiple of
        // 16 bytes.
        let words =
            unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast::<u64>(), 2 * P::BLOCKS) };
        words.zeroize();
    }
}

/// A group of blocks of a pass.
pub(crate) struct Group<'a, P: Plane> {
    keys: &'a Keys<P::Stored>,
    crypt: Crypt<P::Stored, P::Register>,
    buffer: Buffer<P>,
    /// Valid for reads of all blocks of the layout.
    src: *const u8,
    /// Valid for writes of all blocks of the layout. It is either equal to `src` or disjoint.
    dst: *mut u8,
    /// Number of blocks that belong to the data; the others do not matter.
    blocks: usize,
}

impl<P: Plane> Group<'_, P> {
    const BYTES: usize = 16 * P::Register::BLOCKS;

    /// Encrypts or decrypts the buffer.
    #[inline(always)]
    unsafe fn run(&mut self, encrypts: bool) {
        // SAFETY: the caller guarantees that the processor has the instructions.
        unsafe { (self.crypt)(self.keys, encrypts, &mut self.buffer.0) }
    }

    /// Register `i` of the source.
    #[inline(always)]
    unsafe fn load(&self, i: usize) -> P::Register {
        // SAFETY: the source is valid for reads; the caller guarantees that the processor has the instructions.
        unsafe { P::Register::load(self.src.add(Self::BYTES * i)) }
    }

    /// The blocks before those of register `i` of the source; `previous` is before the first.
    #[inline(always)]
    unsafe fn load_previous(&self, i: usize, previous: &Block) -> P::Register {
        // SAFETY: the source is valid for reads; the caller guarantees that the processor has the instructions.
        unsafe {
            if i > 0 {
                return P::Register::load(self.src.add(Self::BYTES * i - 16));
            }
            let mut blocks = [*previous; 4];
            const { assert!(P::Register::BLOCKS <= 4) };
            let bytes = Self::BYTES - 16;
            self.src.copy_to_nonoverlapping(blocks[1..].as_flattened_mut().as_mut_ptr(), bytes);
            P::Register::load(blocks.as_ptr().cast())
        }
    }

    /// Writes register `i` of the destination.
    #[inline(always)]
    unsafe fn store(&mut self, i: usize, register: P::Register) {
        // SAFETY: the destination is valid for writes.
        unsafe { register.store(self.dst.add(Self::BYTES * i)) }
    }

    /// The last block of the data in the source.
    #[inline(always)]
    fn last(&self) -> Block {
        // SAFETY: the group has at least one block of data; a Block has alignment 1.
        unsafe { self.src.cast::<Block>().add(self.blocks - 1).read() }
    }
}

/// A pass over whole blocks, generic over the layout of the planes.
pub(crate) trait Pass {
    /// Processes a group. The processor must have the instructions of the registers.
    unsafe fn group<P: Plane>(&mut self, group: &mut Group<'_, P>);
}

/// Runs a pass on all blocks with one layout.
///
/// # Safety
///
/// The processor must have the instructions of the registers.
#[inline(always)]
unsafe fn run<P: Plane>(
    keys: &Keys<P::Stored>,
    crypt: Crypt<P::Stored, P::Register>,
    data: Span<'_>,
    pass: &mut impl Pass,
) {
    let blocks = data.len() / 16;
    let whole = blocks / P::BLOCKS * P::BLOCKS;
    let (src, dst) = (data.src(), data.dst());
    // SAFETY: each group lies within the span, whose pointers are valid for its length, or is the array `last`; the caller
    // guarantees that the processor has the instructions.
    unsafe {
        let mut group = Group::<P> { keys, crypt, buffer: Buffer::new(), src, dst, blocks: P::BLOCKS };
        for first in (0..whole).step_by(P::BLOCKS) {
            group.src = src.add(16 * first);
            group.dst = dst.add(16 * first);
            pass.group(&mut group);
        }
        if whole < blocks {
            let mut last = [[SPARE_BYTE; 16]; MOST];
            let bytes = 16 * (blocks - whole);
            src.add(16 * whole).copy_to_nonoverlapping(last.as_mut_ptr().cast(), bytes);
            group.dst = last.as_mut_ptr().cast();
            group.src = group.dst;
            group.blocks = blocks - whole;
            pass.group(&mut group);
            dst.add(16 * whole).copy_from_nonoverlapping(last.as_ptr().cast(), bytes);
            last[..P::BLOCKS].as_flattened_mut().zeroize();
        }
    }
}

/// Runs a pass with the large layout while it is faster, then with the small one.
///
/// # Safety
///
/// The processor must have the instructions of the register.
#[inline(always)]
pub(crate) unsafe fn drive<R: Register>(
    schedule: &Schedule,
    ciphers: Ciphers<R>,
    data: Span<'_>,
    mut pass: impl Pass,
) {
    let blocks = data.len() / 16;
    let mut large = blocks / R::Large::BLOCKS * R::Large::BLOCKS;
    if blocks - large >= R::Large::FROM {
        large = blocks;
    }
    let (large, small) = data.split_at(16 * large);
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        if !large.is_empty() {
            run::<R::Large>(R::Large::keys(schedule).borrow(), ciphers.large, large, &mut pass);
        }
        if R::Large::FROM > 1 && !small.is_empty() {
            run::<Narrow<R>>(schedule.narrow(), ciphers.small, small, &mut pass);
        }
    }
}

/// ECB in a direction.
pub(crate) struct Ecb {
    pub(crate) encrypts: bool,
}

impl Pass for Ecb {
    #[inline(always)]
    unsafe fn group<P: Plane>(&mut self, group: &mut Group<'_, P>) {
        // SAFETY: the caller guarantees that the processor has the instructions.
        unsafe {
            for i in 0..P::REGISTERS {
                group.buffer.0[i] = group.load(i);
            }
            group.run(self.encrypts);
            for i in 0..P::REGISTERS {
                group.store(i, group.buffer.0[i]);
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
        let (data, mut tail) = data.split_at(whole);
        run(Ctr { counter, counting }, data);
        if !tail.is_empty() {
            let mut keystream = Zeroizing::new([0; 16]);
            run(Ctr { counter, counting }, Span::in_place(&mut *keystream));
            tail.xor(&keystream[..tail.len()]);
        }
    }
}

impl<C: Counting> Pass for Ctr<'_, C> {
    #[inline(always)]
    unsafe fn group<P: Plane>(&mut self, group: &mut Group<'_, P>) {
        // SAFETY: the caller guarantees that the processor has the instructions.
        unsafe {
            P::Register::counters::<C>(self.counter, group.blocks, &mut group.buffer.0);
            group.run(true);
            for i in 0..P::REGISTERS {
                group.store(i, group.load(i) ^ group.buffer.0[i]);
            }
        }
        counter::take::<C>(self.counter, group.blocks, |_, _| ());
    }
}

/// CBC decryption; the register is set to the last ciphertext block.
pub(crate) struct CbcDecrypt<'a>(pub(crate) &'a mut Block);

impl Pass for CbcDecrypt<'_> {
    #[inline(always)]
    unsafe fn group<P: Plane>(&mut self, group: &mut Group<'_, P>) {
        let last = group.last();
        // SAFETY: the caller guarantees that the processor has the instructions.
        unsafe {
            for i in 0..P::REGISTERS {
                group.buffer.0[i] = group.load(i);
            }
            group.run(false);
            // The loop starts with the last register, so that ciphertext in place is overwritten after its last use.
            for i in (0..P::REGISTERS).rev() {
                let previous = group.load_previous(i, self.0);
                group.store(i, group.buffer.0[i] ^ previous);
            }
        }
        *self.0 = last;
    }
}

/// CFB128 decryption; the register is set to the last ciphertext block.
pub(crate) struct CfbDecrypt<'a>(pub(crate) &'a mut Block);

impl Pass for CfbDecrypt<'_> {
    #[inline(always)]
    unsafe fn group<P: Plane>(&mut self, group: &mut Group<'_, P>) {
        let last = group.last();
        // SAFETY: the caller guarantees that the processor has the instructions.
        unsafe {
            for i in 0..P::REGISTERS {
                group.buffer.0[i] = group.load_previous(i, self.0);
            }
            group.run(true);
            for i in 0..P::REGISTERS {
                group.store(i, group.load(i) ^ group.buffer.0[i]);
            }
        }
        *self.0 = last;
    }
}

/// XTS in a direction; the tweak is advanced.
pub(crate) struct Xts<'a> {
    pub(crate) encrypts: bool,
    pub(crate) tweak: &'a mut Block,
}

impl Pass for Xts<'_> {
    #[inline(always)]
    unsafe fn group<P: Plane>(&mut self, group: &mut Group<'_, P>) {
        let mut tweaks = [[0; 16]; MOST];
        tweak::take(self.tweak, group.blocks, |i, tweak| tweaks[i] = tweak);
        let step = P::Register::BLOCKS;
        // SAFETY: the caller guarantees that the processor has the instructions; `tweaks` has as many blocks as the layout or
        // more.
        unsafe {
            for i in 0..P::REGISTERS {
                let tweak = P::Register::load(tweaks.as_ptr().add(step * i).cast());
                group.buffer.0[i] = group.load(i) ^ tweak;
            }
            group.run(self.encrypts);
            for i in 0..P::REGISTERS {
                let tweak = P::Register::load(tweaks.as_ptr().add(step * i).cast());
                group.store(i, group.buffer.0[i] ^ tweak);
            }
        }
        tweaks[..P::BLOCKS].as_flattened_mut().zeroize();
    }
}
