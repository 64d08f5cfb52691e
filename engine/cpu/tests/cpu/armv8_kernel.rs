//! The Arm kernel against the oracle; `tools/arm64/test.sh` runs this test in an emulator.
#![cfg(target_arch = "aarch64")]

use crate::kernel_checks::kernel_suite;

use lockstep_cpu::kernel::Kernel;
use lockstep_cpu::vectors::Armv8;

#[test]
fn the_emulator_has_the_instructions() {
    if std::env::var_os("LOCKSTEP_ARM64_TEST").is_some() {
        assert!(Armv8::detect().is_some(), "run qemu-aarch64 with -cpu max");
    }
}

kernel_suite!(armv8: Armv8::detect(), Armv8::NAME);
