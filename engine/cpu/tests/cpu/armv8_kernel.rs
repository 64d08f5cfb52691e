//! The kernels for Arm against the oracle; `tools/arm64/test.sh` runs this test in an emulator.
#![cfg(target_arch = "aarch64")]

use crate::kernel_checks::kernel_suite;

use lockstep_cpu::kernel::Kernel;
use lockstep_cpu::vectors::{Armv8, Armv8Sha3};

#[test]
fn the_emulator_has_the_instructions() {
    if std::env::var_os("LOCKSTEP_ARM64_TEST").is_some() {
        assert!(Armv8Sha3::detect().is_some(), "run qemu-aarch64 with -cpu max");
    }
}

kernel_suite!(armv8: Armv8::detect(), Armv8::NAME);
kernel_suite!(armv8_sha3: Armv8Sha3::detect(), Armv8Sha3::NAME);
