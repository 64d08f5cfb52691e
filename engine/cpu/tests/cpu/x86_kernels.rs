//! The x86-64 kernels that this processor can run, against the oracle.
#![cfg(target_arch = "x86_64")]

use crate::kernel_checks::kernel_suite;

use lockstep_cpu::x86::{AesNi, Vaes256, Vaes512};

kernel_suite!(AesNi: aesni);
kernel_suite!(Vaes256: vaes256);
kernel_suite!(Vaes512: vaes512);
