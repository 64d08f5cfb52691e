//! The data-parallel passes.
//!
//! Each pass is generic over the layout of the planes. It uses the wide layout while there are enough blocks for the wide
//! layout to be faster, and the narrow layout for the rest.

use zeroize::Zeroize;

use super::planes::{MOST, Plane};
use super::rounds;
use super::schedule::{Keys, Schedule};
use super::vector::Vector;
use crate::counter::{self, Counting};
use crate::kernel::{Block, Span};
use crate::tweak;

/// The direction of the cipher.
#[derive(Clone, Copy)]
pub(crate) enum Direction {
    /// The cipher.
    Encrypt,
    /// The inverse cipher.
    Decrypt,
}

/// Smallest number of blocks for which one wide pass is faster than several narrow passes.
const WIDE_FROM: usize = 25;

/// Buffer for [`Plane::BLOCKS`] blocks; zeroed on drop.
pub(crate) struct Buffer(pub(crate) [Vector; MOST]);

impl Buffer {
    pub(crate) fn new() -> Self {
        Buffer([Vector::zero(); MOST])
    }

    /// Encrypts or decrypts all blocks.
    #[inline(always)]
    pub(crate) fn run<P: Plane>(&mut self, keys: &Keys<P>, direction: Direction) {
        let mut planes = P::pack(&self.0);
        match direction {
            Direction::Encrypt => rounds::encrypt(keys, &mut planes),
            Direction::Decrypt => rounds::decrypt(keys, &mut planes),
        }
        P::unpack(&planes, &mut self.0);
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Block `index` of the source.
#[inline(always)]
pub(crate) fn load(data: &Span<'_>, index: usize) -> Vector {
    assert!(index < data.len() / 16);
    // SAFETY: the block lies within the span, whose source is valid for reads; a Block has alignment 1.
    Vector::from_block(unsafe { data.src().cast::<Block>().add(index).read() })
}

/// Writes block `index` of the destination.
#[inline(always)]
pub(crate) fn store(data: &mut Span<'_>, index: usize, block: Vector) {
    assert!(index < data.len() / 16);
    // SAFETY: the block lies within the span, whose destination is valid for writes; a Block has alignment 1.
    unsafe { data.dst().cast::<Block>().add(index).write(block.to_block()) }
}

/// A pass over whole blocks, generic over the layout of the planes.
trait Pass {
    fn run<P: Plane>(&mut self, keys: &Keys<P>, data: Span<'_>);
}

/// Runs a pass with wide planes while they are faster, then with narrow ones.
fn drive(schedule: &Schedule, data: Span<'_>, mut pass: impl Pass) {
    let blocks = data.len() / 16;
    let mut wide = blocks / MOST * MOST;
    if blocks - wide >= WIDE_FROM {
        wide = blocks;
    }
    let (wide, narrow) = data.split_at(16 * wide);
    if !wide.is_empty() {
        pass.run(&schedule.wide(), wide);
    }
    if !narrow.is_empty() {
        pass.run(schedule.narrow(), narrow);
    }
}

/// Splits `blocks` blocks into groups of at most `size`. Returns the first block of each group and the number of blocks in
/// the group.
#[inline(always)]
fn groups(blocks: usize, size: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..blocks).step_by(size).map(move |first| (first, size.min(blocks - first)))
}

struct Ecb(Direction);

impl Pass for Ecb {
    fn run<P: Plane>(&mut self, keys: &Keys<P>, mut data: Span<'_>) {
        let mut buffer = Buffer::new();
        for (first, n) in groups(data.len() / 16, P::BLOCKS) {
            for i in 0..n {
                buffer.0[i] = load(&data, first + i);
            }
            buffer.run(keys, self.0);
            for i in 0..n {
                store(&mut data, first + i, buffer.0[i]);
            }
        }
    }
}

pub(crate) fn ecb(key: &Schedule, direction: Direction, data: Span<'_>) {
    drive(key, data, Ecb(direction));
}

struct Ctr<'a, C> {
    counter: &'a mut Block,
    counting: std::marker::PhantomData<C>,
}

impl<C: Counting> Pass for Ctr<'_, C> {
    fn run<P: Plane>(&mut self, keys: &Keys<P>, mut data: Span<'_>) {
        let mut buffer = Buffer::new();
        for (first, n) in groups(data.len() / 16, P::BLOCKS) {
            counter::take::<C>(self.counter, n, |i, counter| buffer.0[i] = Vector::from_block(counter));
            buffer.run(keys, Direction::Encrypt);
            for i in 0..n {
                let block = load(&data, first + i) ^ buffer.0[i];
                store(&mut data, first + i, block);
            }
        }
    }
}

pub(crate) fn ctr<C: Counting>(key: &Schedule, counter: &mut Block, data: Span<'_>) {
    let whole = data.len() / 16 * 16;
    let (data, tail) = data.split_at(whole);
    drive(key, data, Ctr::<C> { counter, counting: std::marker::PhantomData });
    if !tail.is_empty() {
        let mut last = [0; 16];
        let n = tail.len();
        // SAFETY: the tail's source is valid for its length, which is less than a block; `last` does not overlap it.
        unsafe { tail.src().copy_to_nonoverlapping(last.as_mut_ptr(), n) };
        drive(key, Span::in_place(&mut last), Ctr::<C> { counter, counting: std::marker::PhantomData });
        // SAFETY: the tail's destination is valid for its length, which is less than a block.
        unsafe { tail.dst().copy_from_nonoverlapping(last.as_ptr(), n) };
        last.zeroize();
    }
}

struct CbcDecrypt<'a>(&'a mut Block);

impl Pass for CbcDecrypt<'_> {
    fn run<P: Plane>(&mut self, keys: &Keys<P>, mut data: Span<'_>) {
        let mut buffer = Buffer::new();
        let mut previous = Vector::from_block(*self.0);
        for (first, n) in groups(data.len() / 16, P::BLOCKS) {
            for i in 0..n {
                buffer.0[i] = load(&data, first + i);
            }
            buffer.run(keys, Direction::Decrypt);
            for i in 0..n {
                let ciphertext = load(&data, first + i);
                store(&mut data, first + i, buffer.0[i] ^ previous);
                previous = ciphertext;
            }
        }
        *self.0 = previous.to_block();
    }
}

pub(crate) fn cbc_decrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) {
    drive(key, data, CbcDecrypt(iv));
}

struct CfbDecrypt<'a>(&'a mut Block);

impl Pass for CfbDecrypt<'_> {
    fn run<P: Plane>(&mut self, keys: &Keys<P>, mut data: Span<'_>) {
        let mut buffer = Buffer::new();
        let mut previous = Vector::from_block(*self.0);
        for (first, n) in groups(data.len() / 16, P::BLOCKS) {
            for i in 0..n {
                buffer.0[i] = previous;
                previous = load(&data, first + i);
            }
            buffer.run(keys, Direction::Encrypt);
            for i in 0..n {
                let block = load(&data, first + i) ^ buffer.0[i];
                store(&mut data, first + i, block);
            }
        }
        *self.0 = previous.to_block();
    }
}

pub(crate) fn cfb128_decrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) {
    drive(key, data, CfbDecrypt(iv));
}

struct Xts<'a> {
    direction: Direction,
    tweak: &'a mut Block,
}

impl Pass for Xts<'_> {
    fn run<P: Plane>(&mut self, keys: &Keys<P>, mut data: Span<'_>) {
        let mut buffer = Buffer::new();
        let mut tweaks = Buffer::new();
        for (first, n) in groups(data.len() / 16, P::BLOCKS) {
            tweak::take(self.tweak, n, |i, tweak| tweaks.0[i] = Vector::from_block(tweak));
            for i in 0..n {
                buffer.0[i] = load(&data, first + i) ^ tweaks.0[i];
            }
            buffer.run(keys, self.direction);
            for i in 0..n {
                store(&mut data, first + i, buffer.0[i] ^ tweaks.0[i]);
            }
        }
    }
}

pub(crate) fn xts(key: &Schedule, direction: Direction, tweak: &mut Block, data: Span<'_>) {
    drive(key, data, Xts { direction, tweak });
}
