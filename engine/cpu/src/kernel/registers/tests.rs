use super::*;

/// Sets all bits of the vector register 15, calls a function, and returns the upper half of the register.
fn upper_half_after(clear: unsafe extern "C" fn()) -> [u64; 2] {
    let mut register = [0u64; 4];
    // SAFETY: the caller has tested that the processor has AVX. The function is called by the C convention, with an aligned stack, and
    // there is memory for the register.
    unsafe {
        asm!(
            "vpcmpeqd xmm15, xmm15, xmm15",
            "vinsertf128 ymm15, ymm15, xmm15, 1",
            "call {clear}",
            "vmovdqu [r12], ymm15",
            clear = in(reg) clear,
            in("r12") register.as_mut_ptr(),
            clobber_abi("C"),
        );
    }
    [register[2], register[3]]
}

/// Kernels of SSE instructions clear the upper halves of registers on processors with AVX, with and without AVX-512.
#[test]
fn the_widest_registers_are_cleared() {
    unsafe extern "C" fn nothing() {}
    unsafe extern "C" fn clear() {
        // SAFETY: every x86-64 processor has SSE2.
        unsafe { clear_xmm() }
    }
    if !is_x86_feature_detected!("avx") {
        return;
    }
    assert_eq!(upper_half_after(nothing), [u64::MAX; 2]);
    detect();
    assert_eq!(upper_half_after(clear), [0; 2]);
    // Simulates a processor without AVX-512.
    WIDEST.store(YMM, Ordering::Relaxed);
    assert_eq!(upper_half_after(clear), [0; 2]);
    detect();
}
