//! Clearing of registers, in which a kernel leaves round keys, powers of H and text: the vector registers, and the general registers
//! that a function need not preserve. Wiping of the stack, to which the compiler copies what does not fit into registers.

use std::arch::asm;

/// Executes instructions that clear the vector registers 0 to 15, and clears the general registers that a function need not preserve.
macro_rules! clear {
    ($($line:literal),*;) => {
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
            options(nomem, nostack)
        )
    };
}

/// Clears the registers of SSE instructions.
///
/// # Safety
/// The processor has SSE2, as every x86-64 processor does.
#[inline]
pub(crate) unsafe fn clear_xmm() {
    // SAFETY: the registers are declared as written.
    unsafe {
        clear!(
            "pxor xmm0, xmm0", "pxor xmm1, xmm1", "pxor xmm2, xmm2", "pxor xmm3, xmm3", "pxor xmm4, xmm4",
            "pxor xmm5, xmm5", "pxor xmm6, xmm6", "pxor xmm7, xmm7", "pxor xmm8, xmm8", "pxor xmm9, xmm9",
            "pxor xmm10, xmm10", "pxor xmm11, xmm11", "pxor xmm12, xmm12", "pxor xmm13, xmm13",
            "pxor xmm14, xmm14", "pxor xmm15, xmm15";
        );
    }
    clear_upper();
}

/// Clears the registers of AVX instructions.
///
/// # Safety
/// The processor has AVX.
#[inline]
#[target_feature(enable = "avx")]
pub(crate) unsafe fn clear_ymm() {
    // SAFETY: the processor has the instruction, and the registers are declared as written.
    unsafe { clear!("vzeroall";) }
    clear_upper();
}

/// Clears the registers of AVX-512 instructions.
///
/// # Safety
/// The processor has AVX-512F and AVX-512VL.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
pub(crate) unsafe fn clear_zmm() {
    // SAFETY: the processor has the instruction, and the registers are declared as written.
    unsafe { clear!("vzeroall";) }
    // SAFETY: the processor has the instructions.
    unsafe { clear_zmm16_to_31() }
}

/// Clears the vector registers 16 to 31 if the processor has them. A kernel that does not use these registers leaves data in them, too,
/// because it calls the C library's `memcpy`, which uses them on such processors.
#[inline]
fn clear_upper() {
    if is_x86_feature_detected!("avx512vl") {
        // SAFETY: the processor has AVX-512VL, which includes AVX-512F.
        unsafe { clear_zmm16_to_31() }
    }
}

/// Clears the vector registers 16 to 31, which `vzeroall` leaves. An instruction with a shorter vector sets the rest of its register to
/// zero.
///
/// # Safety
/// The processor has AVX-512F and AVX-512VL.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
unsafe fn clear_zmm16_to_31() {
    // SAFETY: the processor has the instructions, and the registers are declared as written.
    unsafe {
        asm!(
            "vpxord xmm16, xmm16, xmm16", "vpxord xmm17, xmm17, xmm17", "vpxord xmm18, xmm18, xmm18",
            "vpxord xmm19, xmm19, xmm19", "vpxord xmm20, xmm20, xmm20", "vpxord xmm21, xmm21, xmm21",
            "vpxord xmm22, xmm22, xmm22", "vpxord xmm23, xmm23, xmm23", "vpxord xmm24, xmm24, xmm24",
            "vpxord xmm25, xmm25, xmm25", "vpxord xmm26, xmm26, xmm26", "vpxord xmm27, xmm27, xmm27",
            "vpxord xmm28, xmm28, xmm28", "vpxord xmm29, xmm29, xmm29", "vpxord xmm30, xmm30, xmm30",
            "vpxord xmm31, xmm31, xmm31",
            out("xmm16") _, out("xmm17") _, out("xmm18") _, out("xmm19") _,
            out("xmm20") _, out("xmm21") _, out("xmm22") _, out("xmm23") _,
            out("xmm24") _, out("xmm25") _, out("xmm26") _, out("xmm27") _,
            out("xmm28") _, out("xmm29") _, out("xmm30") _, out("xmm31") _,
            options(nomem, nostack, preserves_flags)
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
            "sub {left}, 32",
            "jnz 2b",
            "add rsp, {bytes}",
            bytes = const BYTES,
            left = out(reg) _,
            zero = out(reg) _,
        );
    }
}
