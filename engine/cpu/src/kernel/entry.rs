//! Entry into public functions that handle secrets.

#[cfg(target_arch = "aarch64")]
use std::arch::{asm, is_aarch64_feature_detected};

use super::Kernel;

/// A call of a public function. Until the value is dropped, a 64-bit Arm processor with the mode DIT runs instructions in a time that
/// does not depend on data. The drop clears registers ([`Kernel::clear_registers`]) and restores the mode.
pub(crate) struct Entry<K: Kernel> {
    kernel: K,
    dit: bool,
}

impl<K: Kernel> Entry<K> {
    #[inline(always)]
    pub(crate) fn of(kernel: K) -> Self {
        Entry { kernel, dit: swap_dit(true) }
    }
}

impl<K: Kernel> Drop for Entry<K> {
    #[inline(always)]
    fn drop(&mut self) {
        self.kernel.clear_registers();
        swap_dit(self.dit);
    }
}

/// Runs `calls` inside an [`Entry`], for a thread that has no entry of its own.
pub(crate) fn enter<K: Kernel>(kernel: K, calls: &mut dyn FnMut()) {
    let _entry = Entry::of(kernel);
    calls();
}

/// Sets or resets the mode of data-independent timing (Arm Architecture Reference Manual, C5.2.4) if the processor has it, and returns
/// whether it was set. The standard library caches the detection.
#[cfg(target_arch = "aarch64")]
#[inline]
pub(crate) fn swap_dit(after: bool) -> bool {
    if !is_aarch64_feature_detected!("dit") {
        return after;
    }
    let before: u64;
    // SAFETY: the processor has the register, which is written after it is read. The mode changes the time of instructions only.
    unsafe {
        asm!(
            "mrs {before}, S3_3_C4_C2_5",
            "msr S3_3_C4_C2_5, {after}",
            before = out(reg) before,
            after = in(reg) u64::from(after) << 24,
            options(nostack, preserves_flags)
        );
    }
    before >> 24 & 1 == 1
}

#[cfg(not(target_arch = "aarch64"))]
#[inline(always)]
fn swap_dit(after: bool) -> bool {
    after
}
