//! Clearing of registers, in which a kernel leaves round keys, powers of H and text: the vector registers, and the general registers
//! that a function need not preserve. Wiping of the stack, to which the compiler copies what does not fit into registers.

use std::arch::{asm, is_x86_feature_detected};
use std::sync::atomic::{AtomicU8, Ordering};

/// Clears the general registers that a function need not preserve, and calls `asm!` with the vector registers 0 to 15 as clobbers, in
/// addition to others.
macro_rules! clear {
    ($($line:expr),*; $($more:tt)*) => {
        asm!(
            $($line,)*
            "xor eax, eax", "xor ecx, ecx", "xor edx, edx", "xor esi, esi", "xor edi, edi",
            "xor r8d, r8d", "xor r9d, r9d", "xor r10d, r10d", "xor r11d, r11d",
            out("rax") _, out("rcx") _, out("rdx") _, out("rsi") _, out("rdi") _,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            $(out($more) _,)*
            options(nomem, nostack)
        )
    };
}

/// An instruction for each register, whose operands are this register.
macro_rules! of_each {
    ($instruction:literal, twice: $($number:literal)*) => {
        concat!($($instruction, " xmm", $number, ", xmm", $number, "\n"),*)
    };
    ($instruction:literal, thrice: $($number:literal)*) => {
        concat!($($instruction, " xmm", $number, ", xmm", $number, ", xmm", $number, "\n"),*)
    };
}

/// The widest vector registers of the processor: [`XMM`], [`YMM`] or [`ZMM`]. Whatever the kernel uses, the C library may copy data
/// through any of them, for example through registers 16 to 31. The detection of the standard library is not called where registers hold
/// secrets, because the call would copy registers to the stack.
static WIDEST: AtomicU8 = AtomicU8::new(XMM);

/// SSE2.
const XMM: u8 = 0;
/// AVX.
const YMM: u8 = 1;
/// AVX-512VL.
const ZMM: u8 = 2;

/// Detects the registers of the processor. The detection of each kernel calls it, so that a token exists only after it.
pub(crate) fn detect() {
    let widest = match () {
        () if is_x86_feature_detected!("avx512vl") => ZMM,
        () if is_x86_feature_detected!("avx") => YMM,
        () => XMM,
    };
    WIDEST.store(widest, Ordering::Relaxed);
}

/// Clears all vector registers that the processor has.
///
/// # Safety
/// The processor has SSE2, as every x86-64 processor does.
#[inline]
pub(crate) unsafe fn clear_xmm() {
    match WIDEST.load(Ordering::Relaxed) {
        // SAFETY: the processor has the instructions.
        ZMM => return unsafe { clear_zmm() },
        // SAFETY: the processor has the instructions.
        YMM => return unsafe { clear_ymm() },
        _ => {}
    }
    // SAFETY: the registers are declared as written.
    unsafe { clear!(of_each!("pxor", twice: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);) }
}

/// Clears the registers of AVX or, if the processor has AVX-512, those of AVX-512. `vpxor` on an XMM register also zeroes the upper
/// bits of the register. `vzeroupper` marks the upper halves as unused, so later SSE instructions of the caller have no transition
/// penalty. `vzeroall` takes 2.5 ns longer (Sapphire Rapids).
///
/// # Safety
/// The processor has AVX.
#[inline]
#[target_feature(enable = "avx")]
pub(crate) unsafe fn clear_ymm() {
    if WIDEST.load(Ordering::Relaxed) == ZMM {
        // SAFETY: the processor has the instructions.
        return unsafe { clear_zmm() };
    }
    // SAFETY: the processor has the instructions, and the registers are declared as written.
    unsafe { clear!("vzeroupper", of_each!("vpxor", thrice: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);) }
}

/// Clears the registers of AVX-512 instructions.
///
/// # Safety
/// The processor has AVX-512F and AVX-512VL.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
pub(crate) unsafe fn clear_zmm() {
    // SAFETY: the processor has the instructions, and the registers are declared as written.
    unsafe {
        clear!(
            "vzeroupper",
            of_each!("vpxor", thrice: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15),
            of_each!("vpxord", thrice: 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
            "xmm16" "xmm17" "xmm18" "xmm19" "xmm20" "xmm21" "xmm22" "xmm23"
            "xmm24" "xmm25" "xmm26" "xmm27" "xmm28" "xmm29" "xmm30" "xmm31"
        );
    }
}

/// Overwrites the BYTES of the stack below the frame of the caller, which are a multiple of 64 and at most a page.
#[inline(always)]
pub(crate) fn wipe_stack<const BYTES: usize>() {
    const { assert!(BYTES > 0 && BYTES.is_multiple_of(64) && BYTES <= 4096) };
    // SAFETY: the block may use the stack, whose pointer is a multiple of 16. It reserves the bytes before it writes to them; a page
    // is not more than the guard page below the stack.
    unsafe {
        asm!(
            "sub rsp, {bytes}",
            "xor {zero:e}, {zero:e}",
            "mov {left:e}, {bytes}",
            "2:",
            "mov [rsp + {left} - 8], {zero}",
            "mov [rsp + {left} - 16], {zero}",
            "mov [rsp + {left} - 24], {zero}",
            "mov [rsp + {left} - 32], {zero}",
            "mov [rsp + {left} - 40], {zero}",
            "mov [rsp + {left} - 48], {zero}",
            "mov [rsp + {left} - 56], {zero}",
            "mov [rsp + {left} - 64], {zero}",
            "sub {left}, 64",
            "jnz 2b",
            "add rsp, {bytes}",
            bytes = const BYTES,
            left = out(reg) _,
            zero = out(reg) _,
        );
    }
}

#[cfg(test)]
mod tests;
