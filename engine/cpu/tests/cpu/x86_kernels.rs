//! The x86-64 kernels that this processor can run, against the oracle.
#![cfg(target_arch = "x86_64")]

use crate::kernel_checks::kernel_suite;

use lockstep_cpu::kernel::Kernel;
use lockstep_cpu::vectors::{AesNi, Vaes256, Vaes512};

kernel_suite!(aesni: AesNi::detect(), AesNi::NAME);
kernel_suite!(vaes256: Vaes256::detect(), Vaes256::NAME);
kernel_suite!(vaes512: Vaes512::detect(), Vaes512::NAME);
