//! The shared suite on every kernel of this processor.

use std::sync::Arc;

use lockstep_core::backend::Device;
use lockstep_cpu::{Cpu, CpuOptions};

fn cpu(threads: usize) -> Arc<dyn Device> {
    Arc::new(Cpu::new(&CpuOptions { threads: Some(threads) }))
}

lockstep_testkit::backend_suite!(soft, cpu(1), "cpu/soft");
lockstep_testkit::backend_suite!(soft_threads, cpu(3), "cpu/soft");

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::*;

    lockstep_testkit::backend_suite!(aesni, cpu(1), "cpu/aesni");
    lockstep_testkit::backend_suite!(vaes256, cpu(1), "cpu/vaes256");
    lockstep_testkit::backend_suite!(vaes512, cpu(1), "cpu/vaes512");
    lockstep_testkit::backend_suite!(vaes512_threads, cpu(3), "cpu/vaes512");
}

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use super::*;

    lockstep_testkit::backend_suite!(armv8, cpu(1), "cpu/armv8");
    lockstep_testkit::backend_suite!(armv8_sha3, cpu(1), "cpu/armv8-sha3");
    lockstep_testkit::backend_suite!(armv8_sha3_threads, cpu(3), "cpu/armv8-sha3");
}
