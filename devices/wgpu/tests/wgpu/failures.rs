//! Tests of failures: a device that cannot be opened, a device that is lost, and work that a device does not support.

use crate::software;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lockstep_cache::Cache;
use lockstep_core::backend::{Completion, Cost, Device, DeviceId, KernelId, KernelInfo, Unit};
use lockstep_core::data::Data;
use lockstep_core::work::{Operation, Pass, Segment, Task, Work};
use lockstep_core::{Error, Key, KeySize, Result};
use lockstep_modes::{Cipher, CipherKey, Direction};
use lockstep_planner::{Planner, Selection};
use lockstep_testkit::mock::MockAsyncDevice;
use lockstep_testkit::suite::{noise, test_key};
use lockstep_wgpu::{LaunchOptions, WgpuDevice};

fn run(device: &WgpuDevice, key: &Key, data: &mut [u8], before: impl FnOnce()) -> Result<()> {
    let mut state = [0; 16];
    let mut segments = [Segment { key, tweak: None, state: &mut state, data: Data::in_place(data) }];
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
    // The device is lost after it has delivered some of the submitted work.
    let mut data = plain.clone();
    is_lost(run(&device, &key, &mut data, || device.lose().unwrap()));
    assert!(data.iter().all(|&byte| byte == 0), "a part of a result");
    // Later calls fail before any data are touched.
    let mut data = plain.clone();
    is_lost(run(&device, &key, &mut data, || ()));
    assert!(data == plain);
}

#[test]
fn a_completion_that_is_dropped_leaves_a_lost_device_alone() {
    let Some(device) = software::device() else { return };
    let key = test_key(1, KeySize::Aes128);
    let mut data = noise(1, 5000);
    let mut state = [0; 16];
    let mut segments =
        [Segment { key: &key, tweak: None, state: &mut state, data: Data::in_place(&mut data) }];
    let completion = device.submit(KernelId(0), Task::Pass(Pass::Ctr, &mut segments).into()).unwrap();
    device.lose().unwrap();
    assert!(completion.is_ready());
    drop(completion);
}

#[test]
fn more_than_a_buffer_holds_is_an_error() {
    let Some(device) = software::device() else { return };
    let options =
        LaunchOptions { chunk: Some(usize::MAX / 4), buffer: Some(1 << 20), ..LaunchOptions::default() };
    let device = device.with_launches(options);
    let key = test_key(1, KeySize::Aes128);
    let mut data = vec![5; 2 << 20];
    match run(&device, &key, &mut data, || ()) {
        Err(Error::DeviceFailed { reason, .. }) => assert!(reason.contains("less at once"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert!(data.iter().all(|&byte| byte == 5), "a call that was refused touched its data");
    // The device still works.
    run(&device, &key, &mut data[..1000], || ()).unwrap();
}

/// If the requested size of buffers exceeds the driver's limit, the driver refuses to open the device.
#[test]
fn a_device_that_does_not_open_is_an_error() {
    let Some(device) = software::device() else { return };
    let device = unopened(device);
    let key = test_key(1, KeySize::Aes128);
    let mut data = noise(1, 100);
    for _ in 0..2 {
        match run(&device, &key, &mut data, || ()) {
            Err(Error::DeviceFailed { reason, .. }) => assert!(reason.contains("does not open"), "{reason}"),
            other => panic!("{other:?}"),
        }
    }
    assert!(data == noise(1, 100));
}

/// A device that the driver refuses to open, because the requested size of buffers exceeds the driver's limit.
fn unopened(device: WgpuDevice) -> WgpuDevice {
    device.with_launches(LaunchOptions { buffer: Some(u64::MAX), ..LaunchOptions::default() })
}

/// A device that reports costs to the planner: a GPU with low costs, or a CPU with high costs. The GPU can be lost in the middle of a call.
struct Seen {
    device: Kind,
    kernels: Vec<KernelInfo>,
}

enum Kind {
    Gpu(WgpuDevice, Arc<AtomicBool>),
    Processor(MockAsyncDevice),
}

impl Seen {
    fn gpu(device: WgpuDevice) -> (Seen, Arc<AtomicBool>) {
        let fails = Arc::new(AtomicBool::new(false));
        let kernels = device.kernels()[..1].to_vec();
        (Seen { device: Kind::Gpu(device, Arc::clone(&fails)), kernels }, fails)
    }

    fn processor() -> Seen {
        let far = MockAsyncDevice::default();
        Seen { kernels: far.kernels()[..1].to_vec(), device: Kind::Processor(far) }
    }
}

impl Device for Seen {
    fn id(&self) -> DeviceId {
        match &self.device {
            Kind::Gpu(..) => DeviceId { backend: "wgpu", unit: Unit::Number(0) },
            Kind::Processor(_) => DeviceId { backend: "cpu", unit: Unit::Only },
        }
    }
    fn description(&self) -> String {
        "a test".into()
    }
    fn is_trusted(&self) -> bool {
        matches!(self.device, Kind::Processor(_))
    }
    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }
    fn cost(&self, kernel: KernelId, operation: Operation, size: KeySize) -> Option<Cost> {
        match &self.device {
            Kind::Gpu(gpu, _) => gpu.cost(kernel, operation, size).map(|_| Cost::new(1.0, 1000.0)),
            Kind::Processor(far) => far.cost(kernel, operation, size).map(|_| Cost::new(1e9, 1.0)),
        }
    }
    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        match &self.device {
            Kind::Processor(far) => far.submit(kernel, work),
            Kind::Gpu(gpu, fails) => {
                let completion = gpu.submit(kernel, work)?;
                if fails.load(Ordering::SeqCst) {
                    gpu.lose()?;
                }
                Ok(completion)
            }
        }
    }
}

fn planner(gpu: Seen, selection: &Selection) -> Planner {
    Planner::new(vec![Arc::new(Seen::processor()), Arc::new(gpu)], selection).unwrap()
}

fn encrypt(planner: &Planner, data: &mut [u8]) -> Result<()> {
    let key = CipherKey::new(Cipher::Ctr, &[3; 16]).unwrap();
    Cipher::Ctr.one(planner, Direction::Encrypt, &key, &mut [9; 16], Data::in_place(data))
}

fn expected(len: usize) -> Vec<u8> {
    lockstep_reference::ctr::apply(&lockstep_reference::Aes::new(&[3; 16]), &[9; 16], &noise(5, len))
}

/// If the caller named no device, the CPU does the work of a lost GPU.
#[test]
fn work_of_a_lost_device_is_done_again() {
    let Some(device) = software::device() else { return };
    let device = device.with_launches(LaunchOptions { chunk: Some(4096), ..LaunchOptions::default() });
    let (gpu, fails) = Seen::gpu(device);
    let planner = planner(gpu, &Selection::default());
    let len = 50_000;
    let mut data = noise(5, len);
    encrypt(&planner, &mut data).unwrap();
    assert!(data == expected(len) && planner.incidents().is_empty());
    fails.store(true, Ordering::SeqCst);
    // In the first turn the device is lost in the middle of the call. In the second turn it has already been lost.
    for incidents in 1..3 {
        let mut data = noise(5, len);
        encrypt(&planner, &mut data).unwrap();
        assert!(data == expected(len), "the result of the CPU");
        let incidents_so_far = planner.incidents();
        assert_eq!(incidents_so_far.len(), incidents);
        assert!(incidents_so_far[0].to_string().contains("lost"), "{}", incidents_so_far[0]);
    }
}

#[test]
fn a_caller_who_named_the_device_gets_the_error() {
    let Some(device) = software::device() else { return };
    let (gpu, fails) = Seen::gpu(device);
    let planner = planner(gpu, &Selection { device: Some("wgpu:0".into()), kernel: None });
    encrypt(&planner, &mut noise(5, 1000)).unwrap();
    fails.store(true, Ordering::SeqCst);
    is_lost(encrypt(&planner, &mut noise(5, 1000)));
}

/// A device that does not open fails its self-test, and the CPU does the work.
#[test]
fn a_device_that_does_not_open_is_passed_over() {
    let Some(device) = software::device() else { return };
    let (gpu, _) = Seen::gpu(unopened(device));
    let planner = planner(gpu, &Selection::default());
    let mut data = noise(5, 5000);
    encrypt(&planner, &mut data).unwrap();
    assert!(data == expected(5000));
    let failures = planner.failures();
    assert!(failures.iter().any(|failure| failure.to_string().contains("does not open")), "{failures:?}");
}

/// A directory that is removed after the test.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Compiled programs are stored if the driver returns them. Calls also succeed without stored programs.
#[test]
fn a_cache_that_is_damaged_or_cannot_be_written_is_harmless() {
    let Some(device) = software::device() else { return };
    let folder = Folder(std::env::temp_dir().join(format!("lockstep-wgpu-{}", std::process::id())));
    let cache = Cache::at(folder.0.join("cache"));
    let key = test_key(1, KeySize::Aes128);
    let encrypted = |device: WgpuDevice| {
        let mut data = noise(1, 100);
        run(&device, &key, &mut data, || ()).unwrap();
        data
    };
    let expected = encrypted(device.with_cache(cache.clone()));
    for name in cache.names() {
        let content = cache.read(&name, 1 << 30).unwrap();
        for damaged in [&[][..], &content[..content.len() / 2], &noise(1, content.len())] {
            cache.write(&name, damaged).unwrap();
            assert_eq!(encrypted(software::device().unwrap().with_cache(cache.clone())), expected);
            assert!(cache.read(&name, 1 << 30).unwrap() != damaged, "it is written again");
        }
    }
    // A file is at the path at which the cache needs a directory.
    std::fs::create_dir_all(&folder.0).unwrap();
    std::fs::write(folder.0.join("file"), b"").unwrap();
    let nowhere = Cache::at(folder.0.join("file").join("cache"));
    assert_eq!(encrypted(software::device().unwrap().with_cache(nowhere)), expected);
}
