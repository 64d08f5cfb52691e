//! Bit planes. Eight registers of blocks are transposed to eight planes, so that one instruction processes the same bit of many
//! bytes. A plane is one register, for eight blocks in each 128 bits.

use super::register::Register;

/// One step of the transposition of bit matrices. Before this step, the submatrices of `N` by `N` bits are transposed; after
/// it, the submatrices of `2 N` by `2 N` bits are. In each group of `2 N` bits, the step exchanges the upper half of
/// `words[i]` with the lower half of `words[i + N]`.
///
/// # Safety
///
/// The processor must have the instructions of the register.
#[inline(always)]
unsafe fn swap_moves<const N: i32, R: Register>(words: &mut [R], mask: u32) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    let mask = unsafe { R::splat(mask) };
    let n = N as usize;
    for group in words.chunks_exact_mut(2 * n) {
        let (upper, lower) = group.split_at_mut(n);
        for (a, b) in upper.iter_mut().zip(lower) {
            let t = (a.shift_right::<N>() ^ *b) & mask;
            *b = *b ^ t;
            *a = *a ^ t.shift_left::<N>();
        }
    }
}

/// Transposes blocks to planes, or planes to blocks: the 8 by 8 bit matrices that the bytes of eight registers form.
///
/// # Safety
///
/// The processor must have the instructions of the register.
#[inline(always)]
pub(crate) unsafe fn transpose<R: Register>(words: &mut [R; 8]) {
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe {
        swap_moves::<1, R>(words, 0x5555_5555);
        swap_moves::<2, R>(words, 0x3333_3333);
        swap_moves::<4, R>(words, 0x0f0f_0f0f);
    }
}

/// Converts eight registers of blocks to planes, or planes to registers of blocks, in the register's order of bytes.
///
/// # Safety
///
/// The processor must have the instructions of the register.
#[inline(always)]
pub(crate) unsafe fn convert<R: Register>(words: &mut [R; 8]) {
    for word in words.iter_mut() {
        *word = word.arrange();
    }
    // SAFETY: the caller guarantees that the processor has the instructions.
    unsafe { transpose(words) };
}

#[cfg(test)]
mod tests;
