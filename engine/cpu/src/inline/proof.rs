//! The self-test of inline kernels on this processor.

use std::sync::atomic::Ordering::Relaxed;

use lockstep_core::selftest;

use super::InlineKernel;
use crate::kernels::{Member, with_kernel};

const UNKNOWN: u8 = 0;
const PASSED: u8 = 1;
const FAILED: u8 = 2;

/// True if the kernel has passed its self-test: the first known-answer test of every operation. The first call runs the self-test,
/// which takes 0.5 ms, or 2 ms for the portable kernel.
#[inline]
pub fn is_proven(kernel: InlineKernel) -> bool {
    // There is no lock, because a fork during a self-test could leave a lock held. Running a self-test twice is harmless.
    let outcome = with_kernel!(kernel.0, kernel => kernel.outcome());
    match outcome.load(Relaxed) {
        UNKNOWN => {
            let passed = selftest::passes_first_tests(&|task| kernel.run(task)) == Ok(true);
            outcome.store(if passed { PASSED } else { FAILED }, Relaxed);
            passed
        }
        known => known == PASSED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_passes_its_self_test() {
        for kernel in InlineKernel::all() {
            assert!(is_proven(kernel) && is_proven(kernel), "{}", kernel.name());
        }
    }
}
