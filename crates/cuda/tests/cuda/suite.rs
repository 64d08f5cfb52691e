//! The shared suite, for every kernel, on the emulator; or on the device that LOCKSTEP_TEST_DEVICE names.
#![cfg(feature = "emulator")]

use std::sync::Arc;

use lockstep_core::backend::{Backend, Device};
use lockstep_cuda::{CudaBackend, LaunchOptions};
use lockstep_testkit::suite::{Subject, aead, composed, memory};

fn device() -> Arc<dyn Device> {
    let Ok(name) = std::env::var("LOCKSTEP_TEST_DEVICE") else { return Arc::new(lockstep_cuda::emulator()) };
    let found = CudaBackend.discover();
    let device = found.devices.into_iter().find(|device| device.id().to_string() == name);
    device.unwrap_or_else(|| panic!("no device {name}: {:?}", found.missing))
}

/// Without the kernels for short messages, which would run most of the suite otherwise.
fn wide() -> Arc<dyn Device> {
    let options = LaunchOptions { always_wide: true, ..LaunchOptions::default() };
    Arc::new(lockstep_cuda::emulator().launched(options))
}

lockstep_testkit::backend_suite!(bitslice, device(), "cuda/bitslice");
lockstep_testkit::backend_suite!(bitslice_wide, wide(), "cuda/bitslice");
lockstep_testkit::backend_suite!(table, device(), "cuda/table");
lockstep_testkit::backend_suite!(fine_shared, device(), "cuda/fine-shared");
lockstep_testkit::backend_suite!(coarse_shared, device(), "cuda/coarse-shared");
lockstep_testkit::backend_suite!(fine_constant, device(), "cuda/fine-constant");
lockstep_testkit::backend_suite!(coarse_constant, device(), "cuda/coarse-constant");
lockstep_testkit::backend_suite!(global_sbox, device(), "cuda/global-sbox");

/// The checks that hash, with GHASH and POLYVAL by the carry-less multiply-add, which the default build does not have.
#[test]
fn carry_less_products() {
    let device = Arc::new(lockstep_cuda::emulator_with_carry_less());
    let subject = Subject::new(device, "cuda/bitslice").unwrap();
    for check in [
        aead::gcm_agrees,
        aead::gcm_nonces_of_any_length,
        aead::forgeries_are_refused,
        aead::fused_agrees_with_composed,
        composed::composed_aeads_agree,
        memory::device_memory,
        memory::tables,
    ] {
        check(&subject);
    }
}
