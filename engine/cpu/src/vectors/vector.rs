//! AES blocks in one register: one block in xmm or in a register of Armv8, two in ymm, four in zmm.
//!
//! The impls (`registers`, `neon`) come from one macro, since they differ only in the names of the intrinsics. The functions
//! that create a vector, such as loads, are unsafe: the caller guarantees that the processor has the instructions. A vector
//! value therefore proves that the processor has the instructions, and arithmetic on the value is safe.
//!
//! All functions here are `#[inline(always)]`, because the intrinsics must be inlined into an entry function that has the
//! target features (see [`super`]).

#[cfg(target_arch = "aarch64")]
pub(super) use super::neon::{Single, prefetch};
#[cfg(target_arch = "x86_64")]
pub(super) use super::registers::{Single, Ymm, Zmm, prefetch};

/// The register type of one block.
pub(super) type RawBlock = <Single as Vector>::Raw;

/// The halves of a [`Vector::clmul`]: both low, both high, or the high half of the first factor and the low half of the second.
pub(super) const LOW: i32 = 0x00;
pub(super) const HIGH: i32 = 0x11;
pub(super) const HIGH_LOW: i32 = 0x01;

/// AES blocks in one register.
///
/// # Safety of the unsafe functions
///
/// Every unsafe function here requires that the processor has the instructions of this vector (as checked by the kernel's
/// `detect`) and that the pointer is valid for the bytes that are accessed.
pub(super) trait Vector: Copy {
    /// The register type.
    type Raw: Copy;
    /// The blocks of eight vectors.
    type Powers;
    /// Blocks in a register.
    const BLOCKS: usize;
    /// Number of registers of this type.
    const REGISTERS: usize;
    /// Bytes in a register.
    const BYTES: usize = 16 * Self::BLOCKS;

    /// Loads a whole vector from memory of any alignment.
    unsafe fn load(ptr: *const u8) -> Self;
    /// Loads `blocks` blocks, fewer than a vector; the other blocks are zero.
    unsafe fn load_blocks(_ptr: *const u8, _blocks: usize) -> Self {
        unreachable!("fewer blocks than one")
    }
    /// Loads `bytes` bytes, fewer than a vector; the other bytes are unspecified.
    unsafe fn load_bytes(ptr: *const u8, bytes: usize) -> Self;
    /// Loads the block at `ptr`, which is aligned, into every place.
    unsafe fn broadcast(ptr: *const RawBlock) -> Self;
    /// A vector of the first numbers of `blocks`, each stored as a little-endian block; for constants.
    unsafe fn numbers(blocks: [u128; 4]) -> Self;
    /// A vector with the block in every place.
    unsafe fn splat(block: Single) -> Self;
    /// A vector with the block in the first place; the other places are zero.
    unsafe fn widen(block: Single) -> Self;
    /// A vector of the first blocks of `blocks`.
    unsafe fn join(blocks: [Single; 4]) -> Self;
    /// Loads block `i` from `ptrs[i] + offset`; only for vectors of at most two blocks.
    unsafe fn gather(_ptrs: *const *const u8, _offset: usize) -> Self {
        unreachable!("more blocks than two")
    }

    /// Writes the whole vector.
    unsafe fn store(self, ptr: *mut u8);
    /// Writes the first `blocks` blocks, fewer than a vector.
    unsafe fn store_blocks(self, _ptr: *mut u8, _blocks: usize) {
        unreachable!("fewer blocks than one")
    }
    /// Writes the first `bytes` bytes. `bytes` is less than the size of a vector.
    unsafe fn store_bytes(self, ptr: *mut u8, bytes: usize);
    /// Writes block `i` to `ptrs[i] + offset`; only for vectors of at most two blocks.
    unsafe fn scatter(self, _ptrs: *const *mut u8, _offset: usize) {
        unreachable!("more blocks than two")
    }

    /// Exclusive or.
    fn xor(self, other: Self) -> Self;
    /// Bitwise and.
    fn and(self, other: Self) -> Self;
    /// One round of encryption.
    fn aesenc(self, key: Self) -> Self;
    /// The last round of encryption.
    fn aesenclast(self, key: Self) -> Self;
    /// One round of decryption, equivalent inverse cipher.
    fn aesdec(self, key: Self) -> Self;
    /// The last round of decryption.
    fn aesdeclast(self, key: Self) -> Self;

    /// A middle round of encryption, or of decryption.
    #[inline(always)]
    fn round<const ENCRYPTS: bool>(self, key: Self) -> Self {
        if ENCRYPTS { self.aesenc(key) } else { self.aesdec(key) }
    }

    /// The last round of encryption, or of decryption.
    #[inline(always)]
    fn last<const ENCRYPTS: bool>(self, key: Self) -> Self {
        if ENCRYPTS { self.aesenclast(key) } else { self.aesdeclast(key) }
    }

    /// Byte i of each block is the byte of the block whose number is byte i of `order`, or zero if that number is 0x80.
    fn shuffled(self, order: Self) -> Self;
    /// The bytes of each block in reverse.
    fn reversed(self) -> Self;
    /// The same value, hidden from the compiler if there are 32 registers. Without this function, the compiler would move the products of
    /// a step before its rounds, and on 64-bit Arm also the loads, so that it would copy values to the stack.
    #[inline(always)]
    fn pinned(self) -> Self {
        self
    }
    /// A number in the order of halves that counters and hashes have in registers. On 64-bit Arm, the halves are exchanged, because
    /// REV64 reverses the bytes of each half, and the bytes of a block take a second instruction.
    #[inline(always)]
    fn native(self) -> Self {
        self
    }
    /// Adds the 32-bit words of both vectors, modulo 2^32.
    fn add32(self, other: Self) -> Self;
    /// The blocks shifted up by one place; the last block of `before` becomes the first.
    fn after(self, before: Self) -> Self;

    /// Carry-less product of one half of each block, selected by [`LOW`], [`HIGH`] or [`HIGH_LOW`].
    fn clmul<const HALVES: i32>(self, other: Self) -> Self;
    /// The halves of each block exchanged.
    fn swapped(self) -> Self;
    /// The low halves of a block of `self` and of the same block of `other`, for each block.
    fn low_halves(self, other: Self) -> Self;
    /// The high halves of a block of `self` and of the same block of `other`, for each block.
    fn high_halves(self, other: Self) -> Self;
    /// The first block.
    fn lowest(self) -> Single;
    /// The lower half of `self` and the upper half of `other`; only for vectors of four blocks.
    fn with_upper_half(self, _other: Self) -> Self {
        unreachable!("fewer blocks than four")
    }
    /// The exclusive or of all blocks.
    fn folded(self) -> Single;
    /// Each block times alpha^`power` (XTS, IEEE 1619, 5.2); `power` is below 8 and a multiple of BLOCKS. `modulus` has 0x87 in
    /// the low half of each block.
    fn times_alpha(self, power: usize, modulus: Self) -> Self;
    /// Each block times alpha^(8 `bytes`), for at most 4 bytes.
    fn times_alpha_8(self, bytes: usize) -> Self;
}

impl Single {
    /// A vector with `value` in the first byte; the other bytes are zero.
    ///
    /// # Safety
    ///
    /// The same as for [`Vector`].
    #[inline(always)]
    pub(super) unsafe fn byte(value: u8) -> Single {
        // SAFETY: the caller guarantees that the processor has the instructions.
        unsafe { Single::number(value.into()) }
    }

    #[inline(always)]
    pub(super) fn first_byte(self) -> u8 {
        self.to_number() as u8
    }
}

macro_rules! vector {
    (
        $(#[$doc:meta])*
        $name:ident($raw:ty), blocks: $blocks:literal, alpha: [$($power:literal)*],
        memory: $load:ident, $store:ident, splat: $splat:ident, widen: $widen:ident, lowest: $lowest:ident,
        two: { $($two:ident: $two_op:ident,)* },
        clmul: $clmul:ident, shuffle_bytes: $shuffle:ident, shuffle_words: $words:ident,
        shifts: $left:ident, $right:ident, $left_bytes:ident, align: $align:ident,
        folded: |$fold:ident| $folded:expr,
        after: |$this:ident, $before:ident| $after:expr,
        { $($rest:tt)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub(super) struct $name(pub(super) $raw);

        impl Vector for $name {
            type Raw = $raw;
            type Powers = [RawBlock; 8 * $blocks];
            const BLOCKS: usize = $blocks;
            const REGISTERS: usize = if $blocks == 4 || cfg!(target_arch = "aarch64") { 32 } else { 16 };

            #[inline(always)]
            unsafe fn load(ptr: *const u8) -> Self {
                // SAFETY: the caller guarantees that the processor has the instruction, and a whole vector at `ptr`.
                unsafe { $name($load(ptr.cast())) }
            }

            #[inline(always)]
            unsafe fn broadcast(ptr: *const RawBlock) -> Self {
                // SAFETY: the caller guarantees that the processor has the instruction, and an aligned block at `ptr`.
                unsafe { Self::splat(Single(*ptr)) }
            }

            #[inline(always)]
            unsafe fn splat(block: Single) -> Self {
                // SAFETY: the caller guarantees that the processor has the instruction.
                unsafe { $name($splat(block.0)) }
            }

            #[inline(always)]
            unsafe fn widen(block: Single) -> Self {
                // SAFETY: the caller guarantees that the processor has the instruction.
                unsafe { $name($widen(block.0)) }
            }

            #[inline(always)]
            unsafe fn numbers(blocks: [u128; 4]) -> Self {
                // SAFETY: four blocks are at least a vector; the caller guarantees that the processor has the instruction.
                unsafe { Self::load(blocks.as_ptr().cast()) }
            }

            #[inline(always)]
            unsafe fn store(self, ptr: *mut u8) {
                // SAFETY: a vector exists only if the processor has its instructions; the caller guarantees that the
                // memory is valid.
                unsafe { $store(ptr.cast(), self.0) }
            }

            $(#[inline(always)]
            fn $two(self, other: Self) -> Self {
                // SAFETY: a vector exists only if the processor has its instructions.
                unsafe { $name($two_op(self.0, other.0)) }
            })*

            #[inline(always)]
            fn shuffled(self, order: Self) -> Self {
                // SAFETY: a vector exists only if the processor has its instructions.
                unsafe { $name($shuffle(self.0, order.0)) }
            }

            #[inline(always)]
            fn reversed(self) -> Self {
                // With a call of `shuffled` instead, the compiler stores a secret vector of GCM on the stack.
                const ORDER: [u128; 4] = [0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f; 4];
                // SAFETY: a vector exists only if the processor has its instructions.
                unsafe { $name($shuffle(self.0, Self::numbers(ORDER).0)) }
            }

            #[inline(always)]
            fn after(self, before: Self) -> Self {
                let ($this, $before) = (self.0, before.0);
                // SAFETY: a vector exists only if the processor has its instructions.
                unsafe { $name($after) }
            }

            #[inline(always)]
            fn clmul<const HALVES: i32>(self, other: Self) -> Self {
                // SAFETY: a vector exists only if the processor has its instructions.
                unsafe { $name($clmul::<HALVES>(self.0, other.0)) }
            }

            #[inline(always)]
            fn swapped(self) -> Self {
                // SAFETY: a vector exists only if the processor has its instructions.
                unsafe { $name($words::<0x4e>(self.0)) }
            }

            #[inline(always)]
            fn lowest(self) -> Single {
                // SAFETY: a vector exists only if the processor has its instructions.
                unsafe { Single($lowest(self.0)) }
            }

            #[inline(always)]
            fn folded(self) -> Single {
                let $fold = self;
                $folded
            }

            #[inline(always)]
            fn times_alpha(self, power: usize, modulus: Self) -> Self {
                // SAFETY: a vector exists only if the processor has its instructions.
                unsafe {
                    match power {
                        0 => self,
                        $($power => {
                            // The bits shifted out of the lower half move to the upper half. The bits shifted out of the
                            // upper half are multiplied by 0x87 and added.
                            let out = $right::<{ 64 - $power }>(self.0);
                            let up = $name($left_bytes::<8>(out));
                            $name($left::<$power>(self.0)).xor(up).xor($name(out).clmul::<HIGH_LOW>(modulus))
                        })*
                        _ => unreachable!("not a multiple of the blocks in a vector, below 8"),
                    }
                }
            }

            #[inline(always)]
            fn times_alpha_8(self, bytes: usize) -> Self {
                macro_rules! times {
                    ($bytes:literal) => {{
                        // SAFETY: a vector exists only if the processor has its instructions.
                        unsafe {
                            // The bytes shifted out are multiplied by 0x87 = 1 + x + x^2 + x^7 and added. The rotation adds
                            // the first term and replaces two shifts.
                            let rotated = $name($align::<{ 16 - $bytes }>(self.0, self.0));
                            let out = rotated.and(Self::numbers([(1 << (8 * $bytes)) - 1; 4])).0;
                            let back = $name($left::<1>(out)).xor($name($left::<2>(out)));
                            rotated.xor(back.xor($name($left::<7>(out))))
                        }
                    }};
                }
                match bytes {
                    1 => times!(1),
                    2 => times!(2),
                    3 => times!(3),
                    4 => times!(4),
                    _ => unreachable!("more than 4 bytes"),
                }
            }

            $($rest)*
        }
    };
}
pub(super) use vector;

/// The functions of [`Vector`] that access one block at most.
macro_rules! functions_of_one_block {
    () => {
        #[inline(always)]
        unsafe fn join(blocks: [Single; 4]) -> Self {
            blocks[0]
        }

        #[inline(always)]
        unsafe fn load_bytes(ptr: *const u8, bytes: usize) -> Self {
            // SAFETY: `bytes` is less than 16. The caller guarantees `ptr`, and that the processor has the instructions.
            unsafe { Self::number(partial::load(ptr, bytes)) }
        }

        #[inline(always)]
        unsafe fn gather(ptrs: *const *const u8, offset: usize) -> Self {
            // SAFETY: the caller guarantees one pointer to a valid block.
            unsafe { Self::load((*ptrs).add(offset)) }
        }

        #[inline(always)]
        unsafe fn store_bytes(self, ptr: *mut u8, bytes: usize) {
            // SAFETY: `bytes` is less than 16. The caller guarantees `ptr`.
            unsafe { partial::store(self.to_number(), ptr, bytes) }
        }

        #[inline(always)]
        unsafe fn scatter(self, ptrs: *const *mut u8, offset: usize) {
            // SAFETY: the caller guarantees one pointer to a valid block.
            unsafe { self.store((*ptrs).add(offset)) }
        }
    };
}
pub(super) use functions_of_one_block;
