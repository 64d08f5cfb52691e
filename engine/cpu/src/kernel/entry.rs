//! Entry into public functions that handle secrets.

use super::Kernel;

/// A call of a public function. Until the value is dropped, a 64-bit Arm processor with the mode DIT runs instructions in a time that
/// does not depend on data. The drop clears the registers that the kernel uses, and resets the mode.
pub(crate) struct Entry<K: Kernel> {
    kernel: K,
    #[cfg(target_arch = "aarch64")]
    resets: bool,
}

impl<K: Kernel> Entry<K> {
    #[inline(always)]
    pub(crate) fn of(kernel: K) -> Self {
        Entry {
            kernel,
            #[cfg(target_arch = "aarch64")]
            resets: dit::set(),
        }
    }
}

/// Makes calls on another thread.
pub(crate) fn enter<K: Kernel>(kernel: K, calls: &mut dyn FnMut()) {
    let _entry = Entry::of(kernel);
    calls();
}

impl<K: Kernel> Drop for Entry<K> {
    #[inline(always)]
    fn drop(&mut self) {
        self.kernel.clear_registers();
        #[cfg(target_arch = "aarch64")]
        if self.resets {
            dit::write(0);
        }
    }
}

/// The register DIT (data-independent timing; Arm Architecture Reference Manual, C5.2.4).
#[cfg(target_arch = "aarch64")]
mod dit {
    use std::arch::{asm, is_aarch64_feature_detected};

    const SET: u64 = 1 << 24;

    /// Sets the mode if the processor has it. Returns true if it was not set before.
    #[inline]
    pub(super) fn set() -> bool {
        // The result of the detection is cached by the standard library.
        let changes = is_aarch64_feature_detected!("dit") && read() & SET == 0;
        if changes {
            write(SET);
        }
        changes
    }

    #[inline(always)]
    fn read() -> u64 {
        let value;
        // SAFETY: the caller has checked that the processor has the register.
        unsafe { asm!("mrs {}, S3_3_C4_C2_5", out(reg) value, options(nostack, preserves_flags)) };
        value
    }

    #[inline(always)]
    pub(super) fn write(value: u64) {
        // SAFETY: the caller has checked that the processor has the register. The mode changes the time of instructions only.
        unsafe { asm!("msr S3_3_C4_C2_5, {}", in(reg) value, options(nostack, preserves_flags)) };
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_mode_is_set_and_reset() {
            if is_aarch64_feature_detected!("dit") {
                write(0);
                let kernel = crate::soft::Soft::of_width(crate::soft::Width::Portable).unwrap();
                let outer = crate::kernel::entry::Entry::of(kernel);
                assert_eq!(read(), SET);
                drop(crate::kernel::entry::Entry::of(kernel));
                assert_eq!(read(), SET, "an inner call does not reset the mode");
                drop(outer);
                assert_eq!(read(), 0);
            }
        }
    }
}
