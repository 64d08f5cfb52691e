//! The portable kernel against the oracle, with registers of every width.

use crate::kernel_checks::kernel_suite;

use lockstep_cpu::kernel::Kernel;
use lockstep_cpu::soft::{Soft, Width};

/// The kernel with registers of this width.
fn of_width(width: Width) -> Option<Soft> {
    let kernel = Soft::of_width(width)?;
    assert_eq!(kernel.width(), width);
    Some(kernel)
}

kernel_suite!(portable: of_width(Width::Portable), "cpu/soft with the instructions of every processor");

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;

    kernel_suite!(ssse3: of_width(Width::Ssse3), "cpu/soft with SSSE3");
    kernel_suite!(avx2: of_width(Width::Avx2), "cpu/soft with AVX2");
    kernel_suite!(avx512: of_width(Width::Avx512), "cpu/soft with AVX-512");
}

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod arm {
    use super::*;

    kernel_suite!(neon: of_width(Width::Neon), "cpu/soft with NEON");
}

#[test]
fn the_widest_registers_are_chosen() {
    let chosen = Soft::detect().expect("the kernel runs on every processor").width();
    let widest = Width::ALL.iter().rev().find(|width| Soft::of_width(**width).is_some());
    assert_eq!(Some(&chosen), widest);
}
