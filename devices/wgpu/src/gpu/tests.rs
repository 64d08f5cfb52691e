use std::sync::atomic::Ordering;

use lockstep_core::backend::{Completion, Device, DeviceMemory, KernelId};
use lockstep_core::data::Data;
use lockstep_core::work::{Pass, Segment, Stream, Task};
use lockstep_core::{Key, KeySize};
use lockstep_testkit::suite::{noise, test_key};

use super::*;
use crate::{LaunchOptions, WgpuDevice, software};

fn submit<'w, 'd: 'w>(device: &WgpuDevice, segments: &'w mut [Segment<'d>]) -> Result<Completion<'w>> {
    device.submit(KernelId(0), Task::Pass(Pass::Ctr, segments).into())
}

fn segment<'d>(key: &'d Key, state: &'d mut [u8; 16], data: &'d mut [u8]) -> [Segment<'d>; 1] {
    [Segment { key, tweak: None, state, data: Data::in_place(data) }]
}

fn is_lost<T>(result: Result<T>) {
    let reason = match result {
        Err(Error::DeviceFailed { reason, .. }) => reason,
        other => panic!("{:?}", other.map(|_| ())),
    };
    assert!(reason.contains("lost (Error in Device::poll"), "{reason}");
}

#[test]
fn only_a_success_is_kept() {
    let place = Mutex::default();
    let failed = || Err(Error::DeviceFailed { device: crate::SOFTWARE, reason: "not enough memory".into() });
    assert!(kept(&place, failed).is_err());
    assert_eq!(kept(&place, || Ok(7)), Ok(7));
    assert_eq!(kept(&place, failed), Ok(7));
}

/// If a device is lost, wgpu panics in the waiting thread. The panic becomes an error, and later calls also fail.
#[test]
fn a_panic_of_wgpu_is_an_error() {
    let small = LaunchOptions { chunk: Some(4096), ..LaunchOptions::default() };
    let key = test_key(1, KeySize::Aes128);
    for len in [5000, 50_000] {
        let Some(device) = software::device() else { return };
        let device = device.with_launches(small);
        let gpu = device.gpu().unwrap();
        let (plain, mut state) = (noise(1, len), [0; 16]);
        let mut data = plain.clone();
        let mut segments = segment(&key, &mut state, &mut data);
        let completion = submit(&device, &mut segments).unwrap();
        gpu.poll_panics.store(true, Ordering::SeqCst);
        is_lost(completion.wait());
        // Part of the longer message had been delivered before the loss, so its output is zeroed.
        assert!(data == if len > 5000 { vec![0; len] } else { plain.clone() });
        is_lost(submit(&device, &mut segment(&key, &mut state, &mut data)));
        is_lost(device.allocate(16));
    }
}

#[test]
fn drops_after_a_loss_are_harmless() {
    let Some(device) = software::device() else { return };
    let gpu = device.gpu().unwrap();
    let buffer = device.allocate(100).unwrap();
    let fetch = device.fetch(&[buffer.slice()], Stream::default()).unwrap();
    let (key, mut state, mut data) = (test_key(1, KeySize::Aes128), [0; 16], noise(1, 5000));
    let mut segments = segment(&key, &mut state, &mut data);
    let completion = submit(&device, &mut segments).unwrap();
    gpu.poll_panics.store(true, Ordering::SeqCst);
    assert!(completion.is_ready(), "there is nothing to wait for");
    drop((completion, fetch, buffer));
    is_lost(gpu.check());
}
