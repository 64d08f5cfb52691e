//! No kernel works inline before it has passed its known-answer tests on this very processor.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use lockstep_core::backend::{Device, KernelId};
use lockstep_core::selftest;
use lockstep_core::work::Operation;

use super::InlineKernel;
use crate::aws_lc::AwsLc;
use crate::device::{Cpu, CpuOptions};

const UNKNOWN: u8 = 0;
const PASSED: u8 = 1;
const FAILED: u8 = 2;

/// By the order of names below. No lock: a fork in the midst of a test leaves nothing held, and a test run twice does
/// no harm.
static OUTCOMES: [AtomicU8; 5] = [const { AtomicU8::new(UNKNOWN) }; 5];

/// True if the kernel, and AWS-LC's GCM beside it, have passed all their known-answer tests; they are run at the first
/// call and take well below a millisecond.
pub fn is_proven(kernel: InlineKernel) -> bool {
    let names = ["cpu/vaes512", "cpu/vaes256", "cpu/aesni", "cpu/armv8", "cpu/soft"];
    let Some(place) = names.iter().position(|name| *name == kernel.name()) else { return false };
    match OUTCOMES[place].load(Relaxed) {
        UNKNOWN => {
            let passed = test(kernel.name()) && test(AwsLc::NAME);
            OUTCOMES[place].store(if passed { PASSED } else { FAILED }, Relaxed);
            passed
        }
        outcome => outcome == PASSED,
    }
}

fn test(name: &str) -> bool {
    // One thread: nothing is started here.
    let cpu = Cpu::new(&CpuOptions { threads: Some(1) });
    let Some(number) = cpu.kernels().iter().position(|info| info.name == name) else { return false };
    let kernel = KernelId(number as u16);
    Operation::all().all(|operation| selftest::run(&cpu, kernel, operation).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_of_this_machine_passes() {
        for kernel in InlineKernel::all() {
            assert!(is_proven(kernel) && is_proven(kernel), "{}", kernel.name());
        }
    }
}
