//! The portable kernel against the oracle.

use crate::kernel_checks::kernel_suite;

use lockstep_cpu::soft::Soft;

kernel_suite!(Soft: soft);
