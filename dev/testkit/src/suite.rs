//! The test suite that every backend runs for each of its kernels.
//!
//! A backend's tests contain `lockstep_testkit::backend_suite!(name, device(), "kernel")`, where `device()` returns
//! an `Arc<dyn Device>`; the macro expands to a module with one test for each check. All results are compared with
//! the oracle, and the results of incremental calls with the results of one call. Operations that the kernel does not
//! support are skipped, but a kernel that supports no operation fails.

pub mod aead;
pub mod composed;
pub mod memory;
pub mod messages;
pub mod passes;
pub mod streams;

use std::io::Write;
use std::sync::Arc;

use lockstep_core::backend::{Device, KernelId, kernel_by_name};
use lockstep_core::key::{Block, Key, KeySize};
use lockstep_core::work::{Operation, Pass};
use lockstep_planner::{Planner, Selection};

/// The subject of a check: a kernel of a device, and a planner that uses only this kernel.
pub struct Subject {
    /// The device with the kernel that is checked.
    pub device: Arc<dyn Device>,
    /// The kernel that is checked, by its index in the kernels of `device`.
    pub kernel: KernelId,
    /// The planner, which uses only this kernel.
    pub planner: Arc<Planner>,
    /// True for a slow device, which is tested with smaller sizes.
    pub slow: bool,
}

/// True if a test fails, and is not skipped, when this machine cannot run the kernel. The environment variable `LOCKSTEP_TEST_ALL_KERNELS`
/// is set on a machine that is known to have all kernels. With a value such as `cpu/`, the machine has all kernels whose names start with
/// this value.
pub fn must_run(kernel: &str) -> bool {
    let Some(value) = std::env::var_os("LOCKSTEP_TEST_ALL_KERNELS") else { return false };
    let value = value.to_string_lossy();
    !value.contains('/') || kernel.starts_with(&*value)
}

impl Subject {
    /// Returns the kernel of this name on the device. If this machine cannot run the kernel, prints a message on standard error and returns
    /// `None`.
    ///
    /// # Panics
    /// If the device has no such kernel, or cannot run it although [`must_run`] is true.
    pub fn new(device: Arc<dyn Device>, kernel: &str) -> Option<Subject> {
        let info = device.kernels().iter().find(|info| info.name == kernel);
        if let Some(why) = &info.unwrap_or_else(|| panic!("no kernel {kernel}")).missing {
            assert!(!must_run(kernel), "{kernel} cannot be tested: {why}");
            // `eprintln!` is not used, since the test harness captures its output.
            let _ = writeln!(std::io::stderr(), "NOT TESTED: {kernel}: {why}");
            return None;
        }
        let id = kernel_by_name(&*device, kernel).unwrap_or_else(|error| panic!("{error}"));
        let selection = Selection { device: Some(device.id().into()), kernel: Some(kernel.into()) };
        let planner = Planner::new(vec![Arc::clone(&device)], &selection).unwrap();
        let slow = device.properties().slow;
        Some(Subject { device, kernel: id, planner: Arc::new(planner), slow })
    }

    /// True if the kernel supports this pass.
    pub fn does(&self, pass: Pass, size: KeySize) -> bool {
        self.planner.supports(Operation::Pass(pass), size)
    }

    /// True if a case is tested with the key size at this index of `sizes`. Code that depends on lengths, counts or
    /// counters does not depend on the key size. So a slow device is tested with one key size for each case.
    pub fn tests(&self, case: usize, index: usize, sizes: &[KeySize]) -> bool {
        !self.slow || case % sizes.len() == index
    }

    /// The key sizes with which the kernel supports this pass.
    pub fn sizes(&self, pass: Pass) -> Vec<KeySize> {
        KeySize::ALL.into_iter().filter(|&size| self.does(pass, size)).collect()
    }

    /// True if the kernel supports all of these passes.
    pub fn does_all(&self, passes: &[Pass], size: KeySize) -> bool {
        passes.iter().all(|&pass| self.does(pass, size))
    }
}

/// Pseudo-random bytes (xorshift64*). Equal seeds and lengths give equal bytes.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Pseudo-random bytes that depend on the length only (xorshift64, eight bytes at a time).
pub fn random_bytes(len: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend(state.to_le_bytes());
    }
    out.truncate(len);
    out
}

/// A pseudo-random key of this size. Equal seeds give equal keys.
pub fn test_key(seed: u64, size: KeySize) -> Key {
    Key::new(&noise(seed ^ 0x6b65_7900, size.bytes())).expect("a length of AES")
}

/// A pseudo-random block. Equal seeds give equal blocks.
pub fn test_block(seed: u64) -> Block {
    noise(seed ^ 0x626c_6f63, 16).try_into().expect("16 bytes")
}

/// Calls a macro with the list of all checks, sorted by module. The brackets contain the name of the macro and the first tokens of its
/// arguments; the list follows these tokens.
#[macro_export]
macro_rules! suite_checks {
    ([$($macro:tt)+] $($first:tt)*) => {
        $($macro)+! { $($first)*
            passes:
                it_does_something proves_itself every_pass_every_length chaining_states_link_segments counters_wrap
                unaligned many_segments;
            messages: every_cipher_every_length xts_steals batches_of_mixed_sizes wrong_shapes_are_refused;
            aead:
                gcm_agrees mixed_key_sizes gcm_nonces_of_any_length ccm_agrees forgeries_are_refused fused_agrees_with_composed
                macs_agree;
            composed:
                composed_aeads_agree composed_forgeries_are_refused lengths_of_nonces_and_tags siv_agrees hctr2_agrees;
            streams:
                any_split_gives_the_same padding_by_pieces seek_goes_anywhere aead_by_pieces cmac_by_pieces
                order_is_kept;
            memory: device_memory pinned_memory tables dropped_completions;
        }
    };
}

/// Makes a module of tests that run the shared suite on a kernel of a device.
#[macro_export]
macro_rules! backend_suite {
    ($name:ident, $device:expr, $kernel:expr) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            fn subject() -> Option<$crate::suite::Subject> {
                $crate::suite::Subject::new($device, $kernel)
            }

            $crate::suite_checks!([$crate::backend_suite] @tests);
        }
    };
    (@tests $($module:ident: $($check:ident)*);* $(;)?) => {
        $($(
            #[test]
            fn $check() {
                if let Some(subject) = subject() {
                    $crate::suite::$module::$check(&subject);
                }
            }
        )*)*
    };
}
