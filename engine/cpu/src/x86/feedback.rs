//! Decryption of CBC and CFB128: both combine a block with the preceding ciphertext block.

use std::arch::x86_64::__m128i;

use super::cipher::{Decrypt, Direction, Encrypt, Extent, Pass, drive, drive_short, middle, opaque};
use super::schedule::Schedule;
use super::vector::{Vector, Xmm};
use crate::kernel::{Block, Span};

/// For each block of vector i of a step, the preceding ciphertext block. For all vectors but the first, the ciphertext is
/// loaded again, which is cheaper than keeping 2 N vectors in 16 registers.
///
/// # Safety
///
/// The same as for [`Vector`]. In addition, `src` is valid for reads of i + 1 whole vectors if i is not 0.
#[inline(always)]
unsafe fn preceding<V: Vector>(src: *const u8, i: usize, first: V, before: V) -> V {
    if i == 0 {
        return first.after(before);
    }
    // SAFETY: i > 0, so the load stays within the vectors at `src` that the caller guarantees.
    unsafe { V::load(src.add(i * V::BYTES - 16)) }
}

struct Cbc<V> {
    keys: *const __m128i,
    rounds: usize,
    /// The last block of this vector is the preceding ciphertext block.
    before: V,
}

impl<V: Vector> Pass<V> for Cbc<V> {
    #[inline(always)]
    unsafe fn step<const N: usize, R: Extent>(&mut self, extent: R, src: *const u8, dst: *mut u8) {
        let keys = opaque(self.keys);
        // SAFETY: the caller guarantees that the processor has the instructions, and the memory of N vectors. There are
        // `rounds` + 1 keys.
        unsafe {
            let (first, last) = (V::broadcast(keys), V::broadcast(keys.add(self.rounds)));
            let mut x = [first; N];
            for i in 0..N {
                x[i] = first.xor(extent.load(src.add(i * V::BYTES)));
            }
            middle::<Decrypt, V, N>(keys, self.rounds, &mut x);
            let bottom: V = extent.load(src);
            for i in 0..N {
                x[i] = x[i].aesdeclast(last.xor(preceding(src, i, bottom, self.before)));
            }
            self.before = extent.load(src.add((N - 1) * V::BYTES));
            for i in 0..N {
                extent.store(x[i], dst.add(i * V::BYTES));
            }
        }
    }
}

struct Cfb<V> {
    keys: *const __m128i,
    rounds: usize,
    /// The last block of this vector is the preceding ciphertext block.
    before: V,
}

impl<V: Vector> Pass<V> for Cfb<V> {
    #[inline(always)]
    unsafe fn step<const N: usize, R: Extent>(&mut self, extent: R, src: *const u8, dst: *mut u8) {
        let keys = opaque(self.keys);
        // SAFETY: the caller guarantees that the processor has the instructions, and the memory of N vectors. There are
        // `rounds` + 1 keys.
        unsafe {
            let (first, last) = (V::broadcast(keys), V::broadcast(keys.add(self.rounds)));
            let mut x = [first; N];
            let bottom: V = extent.load(src);
            for i in 0..N {
                x[i] = first.xor(preceding(src, i, bottom, self.before));
            }
            middle::<Encrypt, V, N>(keys, self.rounds, &mut x);
            for i in 0..N {
                x[i] = x[i].aesenclast(last.xor(extent.load(src.add(i * V::BYTES))));
            }
            self.before = extent.load(src.add((N - 1) * V::BYTES));
            for i in 0..N {
                extent.store(x[i], dst.add(i * V::BYTES));
            }
        }
    }
}

/// The last block of the data.
fn last_block(data: &Span<'_>) -> Block {
    assert!(data.len() >= 16, "no block");
    // SAFETY: a Span is valid for its length, which is at least a block.
    unsafe { data.src().add(data.len() - 16).cast::<Block>().read() }
}

macro_rules! decryption {
    ($(#[$doc:meta])* $name:ident, $name_short:ident, $pass:ident, $direction:ident) => {
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// The same as for [`Vector`].
        #[inline(always)]
        pub(super) unsafe fn $name<V: Vector>(schedule: &Schedule, iv: &mut Block, data: Span<'_>) {
            if data.is_empty() {
                return;
            }
            let register = Aligned(std::mem::replace(iv, last_block(&data)));
            let (keys, rounds) = ($direction::keys(schedule), schedule.rounds());
            // SAFETY: the caller guarantees that the processor has the instructions; the register is an aligned block.
            unsafe {
                let before = V::broadcast((&raw const register).cast());
                drive::<V, _>($pass::<V> { keys, rounds, before }, data);
            }
        }

        $(#[$doc])*
        /// The data have less than [`SHORT`](super::cipher::SHORT) bytes.
        ///
        /// # Safety
        ///
        /// The same as for [`Vector`], with [`Xmm`] as the vector.
        #[inline(always)]
        pub(super) unsafe fn $name_short(schedule: &Schedule, iv: &mut Block, data: Span<'_>) {
            let (keys, rounds) = ($direction::keys(schedule), schedule.rounds());
            // SAFETY: the caller guarantees that the processor has the instructions.
            unsafe {
                let before = Xmm::load(iv.as_ptr());
                let pass = drive_short($pass::<Xmm> { keys, rounds, before }, data);
                pass.before.store(iv.as_mut_ptr());
            }
        }
    };
}

/// A block with the alignment that [`Vector::broadcast`] requires.
#[repr(C, align(16))]
struct Aligned(Block);

decryption! {
    /// CBC decryption of whole blocks.
    cbc_decrypt, cbc_decrypt_short, Cbc, Decrypt
}

decryption! {
    /// CFB128 decryption of whole blocks.
    cfb128_decrypt, cfb128_decrypt_short, Cfb, Encrypt
}
