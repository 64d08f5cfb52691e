//! Parts of a block as numbers: up to 16 bytes are loaded and stored without a call and without a loop over bytes.
//!
//! A number holds the bytes in little-endian order; its other bytes are zero. A copy is two overlapping words of the largest size
//! that fits. Less than 8 bytes are shifted as a number of 64 bits, because a shift of 128 bits takes several instructions. No branch
//! depends on anything but the length.

/// Loads at most 16 bytes.
///
/// # Safety
///
/// `ptr` is valid for reads of `len` bytes, which are at most 16.
#[inline(always)]
pub(crate) unsafe fn load(ptr: *const u8, len: usize) -> u128 {
    macro_rules! words {
        ($word:ty, $number:ty) => {{
            let last = len - size_of::<$word>();
            // SAFETY: `len` is at least the size of a word, so both words lie inside the `len` bytes.
            let (a, b) = unsafe {
                (ptr.cast::<$word>().read_unaligned(), ptr.add(last).cast::<$word>().read_unaligned())
            };
            u128::from(
                <$number>::from(<$word>::from_le(a)) | <$number>::from(<$word>::from_le(b)) << (8 * last),
            )
        }};
    }
    match len {
        8.. => words!(u64, u128),
        4.. => words!(u32, u64),
        2.. => words!(u16, u64),
        1 => words!(u8, u64),
        0 => 0,
    }
}

/// Stores the first bytes of a number, at most 16.
///
/// # Safety
///
/// `ptr` is valid for writes of `len` bytes, which are at most 16.
#[inline(always)]
pub(crate) unsafe fn store(value: u128, ptr: *mut u8, len: usize) {
    macro_rules! words {
        ($word:ty, $number:ty) => {{
            let last = len - size_of::<$word>();
            let (a, b) = (value as $word, (value as $number >> (8 * last)) as $word);
            // SAFETY: `len` is at least the size of a word, so both words lie inside the `len` bytes.
            unsafe {
                ptr.cast::<$word>().write_unaligned(a.to_le());
                ptr.add(last).cast::<$word>().write_unaligned(b.to_le());
            }
        }};
    }
    match len {
        8.. => words!(u64, u128),
        4.. => words!(u32, u64),
        2.. => words!(u16, u64),
        1 => words!(u8, u64),
        0 => {}
    }
}

/// Copies bytes, block by block.
///
/// # Safety
///
/// `src` is valid for reads of `len` bytes and `dst` for writes; they do not overlap.
#[inline(always)]
pub(crate) unsafe fn copy(src: *const u8, dst: *mut u8, len: usize) {
    let whole = len & !15;
    // SAFETY: the blocks and the rest lie inside the `len` bytes.
    unsafe {
        for at in (0..whole).step_by(16) {
            dst.add(at).cast::<[u8; 16]>().write(src.add(at).cast::<[u8; 16]>().read());
        }
        store(load(src.add(whole), len - whole), dst.add(whole), len - whole);
    }
}

#[cfg(test)]
mod tests;
