//! What happens when a device is lost, and when it is asked for what it cannot do.

mod software;

use lockstep_core::backend::{Device, KernelId};
use lockstep_core::data::Data;
use lockstep_core::suite::{noise, test_key};
use lockstep_core::work::{Pass, Segment, Task};
use lockstep_core::{Error, Key, KeySize, Result};
use lockstep_vulkan::{LaunchOptions, Vulkan};

fn run(device: &Vulkan, key: &Key, data: &mut [u8], before: impl FnOnce()) -> Result<()> {
    let mut register = [0; 16];
    let mut segments = [Segment { key, tweak: None, register: &mut register, data: Data::in_place(data) }];
    let completion = device.submit(KernelId(0), Task::Pass(Pass::Ctr, &mut segments).into())?;
    before();
    completion.wait()
}

fn is_lost(result: Result<()>) {
    match result {
        Err(Error::DeviceFailed { reason, .. }) => assert!(reason.contains("lost"), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lost_device_is_an_error() {
    let Some(device) = software::device() else { return };
    let device = device.with_launches(LaunchOptions { chunk: Some(4096), ..LaunchOptions::default() });
    let key = test_key(1, KeySize::Aes128);
    let plain = noise(1, 50_000);
    let mut data = plain.clone();
    run(&device, &key, &mut data, || ()).unwrap();
    assert!(data != plain);
    // While work is under way, of which some has been delivered.
    let mut data = plain.clone();
    is_lost(run(&device, &key, &mut data, || device.lose().unwrap()));
    assert!(data.iter().all(|&byte| byte == 0), "half a result");
    // And from then on, before anything is touched.
    let mut data = plain.clone();
    is_lost(run(&device, &key, &mut data, || ()));
    assert!(data == plain);
}

#[test]
fn a_completion_that_is_dropped_leaves_a_lost_device_alone() {
    let Some(device) = software::device() else { return };
    let key = test_key(1, KeySize::Aes128);
    let mut data = noise(1, 5000);
    let mut register = [0; 16];
    let mut segments =
        [Segment { key: &key, tweak: None, register: &mut register, data: Data::in_place(&mut data) }];
    let completion = device.submit(KernelId(0), Task::Pass(Pass::Ctr, &mut segments).into()).unwrap();
    device.lose().unwrap();
    assert!(completion.is_ready());
    drop(completion);
}

#[test]
fn more_than_a_buffer_holds_is_an_error() {
    let Some(device) = software::device() else { return };
    let device =
        device.with_launches(LaunchOptions { chunk: Some(usize::MAX / 4), ..LaunchOptions::default() });
    let key = test_key(1, KeySize::Aes128);
    let mut data = vec![0; 130 << 20];
    let refused = run(&device, &key, &mut data, || ());
    match refused {
        Err(Error::DeviceFailed { reason, .. }) => assert!(reason.contains("less at once"), "{reason}"),
        // Where a binding may have more.
        other => other.unwrap(),
    }
    // It goes on working.
    run(&device, &key, &mut data[..1000], || ()).unwrap();
}
