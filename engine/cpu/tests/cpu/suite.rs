//! The shared suite on every kernel of this processor.

use std::sync::Arc;

use lockstep_core::backend::Device;
use lockstep_cpu::{Cpu, CpuOptions};

fn cpu(threads: usize) -> Arc<dyn Device> {
    Arc::new(Cpu::new(&CpuOptions { threads: Some(threads) }))
}

lockstep_testkit::backend_suite!(soft, cpu(1), "cpu/soft");
lockstep_testkit::backend_suite!(soft_threads, cpu(3), "cpu/soft");

/// The checks of fused GCM. The other checks of the suite skip every operation of this kernel.
#[cfg(feature = "aws-lc")]
mod aws_lc {
    use super::*;

    macro_rules! gcm_suite {
        ($name:ident, $threads:literal) => {
            mod $name {
                use super::*;

                fn subject() -> Option<lockstep_testkit::suite::Subject> {
                    lockstep_testkit::suite::Subject::new(cpu($threads), "cpu/aws-lc")
                }

                lockstep_testkit::backend_suite!(@tests passes: it_does_something proves_itself);
                lockstep_testkit::backend_suite!(@tests aead:
                    gcm_agrees mixed_key_sizes forgeries_are_refused fused_agrees_with_composed);
            }
        };
    }
    gcm_suite!(one_thread, 1);
    gcm_suite!(three_threads, 3);
}

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
