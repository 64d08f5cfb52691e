//! Runs the shared suite for every kernel, on the emulator or on the device that LOCKSTEP_TEST_DEVICE names.
#![cfg(feature = "emulator")]

use std::sync::Arc;

use lockstep_core::backend::Device;
use lockstep_cuda::{Cuda, LaunchOptions};
use lockstep_testkit::suite::{Subject, aead, composed, memory};

/// The device that LOCKSTEP_TEST_DEVICE names.
fn named() -> Option<Cuda> {
    let name = std::env::var("LOCKSTEP_TEST_DEVICE").ok()?;
    let (devices, missing) = lockstep_cuda::devices();
    let device = devices.into_iter().find(|device| device.id().to_string() == name);
    Some(device.unwrap_or_else(|| panic!("no device {name}: {missing:?}")))
}

fn device() -> Arc<dyn Device> {
    Arc::new(named().unwrap_or_else(lockstep_cuda::emulator))
}

/// The emulator without the kernels for short messages. With these kernels, most of the suite would not run the kernels for long messages.
fn wide() -> Arc<dyn Device> {
    let options = LaunchOptions { always_wide: true, ..LaunchOptions::default() };
    Arc::new(named().unwrap_or_else(lockstep_cuda::emulator).launched(options))
}

/// The emulator with fine grain in launches of less than 1 KiB. Some launches of the suite have fewer bytes.
fn coarse_with_fine() -> Arc<dyn Device> {
    let options = LaunchOptions { fine_below: Some(1), ..LaunchOptions::default() };
    Arc::new(named().unwrap_or_else(lockstep_cuda::emulator).launched(options))
}

lockstep_testkit::backend_suite!(bitslice, device(), "cuda/bitslice");
lockstep_testkit::backend_suite!(bitslice_wide, wide(), "cuda/bitslice");
lockstep_testkit::backend_suite!(table, device(), "cuda/table");
lockstep_testkit::backend_suite!(fine_shared, device(), "cuda/fine-shared");
lockstep_testkit::backend_suite!(coarse_shared, device(), "cuda/coarse-shared");
lockstep_testkit::backend_suite!(fine_constant, device(), "cuda/fine-constant");
lockstep_testkit::backend_suite!(coarse_constant, device(), "cuda/coarse-constant");
lockstep_testkit::backend_suite!(coarse_with_fine, coarse_with_fine(), "cuda/coarse-shared");
lockstep_testkit::backend_suite!(global_sbox, device(), "cuda/global-sbox");
lockstep_testkit::backend_suite!(gems, device(), "cuda/gems");

/// Runs the checks of modes that hash, with the carry-less multiply-add in GHASH and POLYVAL. The default build does not contain these
/// kernels. A named device uses them if the build contains them and the device supports the instruction.
#[test]
fn carry_less_products() {
    let device = Arc::new(named().unwrap_or_else(lockstep_cuda::emulator_with_carry_less));
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
