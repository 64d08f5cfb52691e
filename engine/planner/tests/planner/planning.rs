//! The choices of the planner, and the devices and kernels that it uses by name only.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lockstep_core::backend::{Completion, Cost, Device, DeviceId, HardwareId, KernelId, KernelInfo, Unit};
use lockstep_core::data::Data;
use lockstep_core::work::{FusedAead, Operation, Pass, Segment, Work};
use lockstep_core::{Error, Key, KeySize, Result};
use lockstep_modes::Executor;
use lockstep_modes::cmac::{CmacMessage, cmac};
use lockstep_modes::gcm::gmac;
use lockstep_modes::stream::CmacStream;
use lockstep_planner::{Planner, Selection};
use lockstep_reference::{Aes, ctr};
use lockstep_testkit::mock::{Behaviour, MockAsyncDevice};

/// A device with the kernels and costs that a test sets.
struct Pretend {
    id: DeviceId,
    kernels: Vec<KernelInfo>,
    costs: Vec<Cost>,
    /// Indices of kernels that compute wrongly.
    broken: Vec<usize>,
    hardware: Option<HardwareId>,
    is_trusted: bool,
    /// A pass that the device does not support.
    lacks: Option<Pass>,
    variants: Vec<Arc<dyn Device>>,
    /// The kernel of the last submission.
    last: Arc<AtomicUsize>,
    right: MockAsyncDevice,
    wrong: MockAsyncDevice,
}

impl Pretend {
    /// `kernels` has the name of each kernel, whether it leaks secrets, and its cost.
    fn new(backend: &'static str, kernels: &[(&'static str, bool, Cost)], broken: &[usize]) -> Self {
        let info = |&(name, leaks, _): &(&'static str, bool, Cost)| KernelInfo {
            name,
            description: "for tests",
            constant_time: !leaks,
            missing: name.ends_with("missing").then(|| "it is not there".into()),
        };
        Pretend {
            id: DeviceId { backend, unit: Unit::Only },
            kernels: kernels.iter().map(info).collect(),
            costs: kernels.iter().map(|&(_, _, cost)| cost).collect(),
            broken: broken.into(),
            hardware: None,
            is_trusted: false,
            lacks: None,
            variants: Vec::new(),
            last: Arc::default(),
            right: MockAsyncDevice::default(),
            wrong: MockAsyncDevice::new(Behaviour { corrupt_at: Some(0), ..Behaviour::default() }),
        }
    }
}

impl Device for Pretend {
    fn id(&self) -> DeviceId {
        self.id
    }
    fn is_trusted(&self) -> bool {
        self.is_trusted
    }
    fn description(&self) -> String {
        "for tests".into()
    }
    fn hardware(&self) -> Option<HardwareId> {
        self.hardware.clone()
    }
    fn variants(&self) -> Vec<Arc<dyn Device>> {
        self.variants.clone()
    }
    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }
    fn cost(&self, kernel: KernelId, operation: Operation, _key: KeySize) -> Option<Cost> {
        match operation {
            Operation::Pass(pass) if self.lacks == Some(pass) => None,
            Operation::Pass(_) => Some(self.costs[usize::from(kernel.0)]),
            Operation::Fused(_) => None,
        }
    }
    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        self.last.store(usize::from(kernel.0), Ordering::Relaxed);
        let is_broken = self.broken.contains(&usize::from(kernel.0));
        let oracle = if is_broken { &self.wrong } else { &self.right };
        oracle.submit(KernelId(0), work)
    }
}

const CTR: Operation = Operation::Pass(Pass::Ctr);

const SLOW: Cost = Cost { fixed_ns: 10.0, ns_per_byte: 1.0 };
const FAST: Cost = Cost { fixed_ns: 10_000.0, ns_per_byte: 0.1 };

fn planner(devices: Vec<Pretend>, device: Option<&str>, kernel: Option<&str>) -> Result<Planner> {
    let selection = Selection { device: device.map(Into::into), kernel: kernel.map(Into::into) };
    Planner::new(devices.into_iter().map(|device| Arc::new(device) as Arc<dyn Device>).collect(), &selection)
}

fn chosen(planner: &Planner, bytes: usize) -> &'static str {
    planner.plan(CTR, KeySize::Aes256, bytes, None).unwrap().kernel_name()
}

#[test]
fn the_cheapest_wins_on_each_side_of_the_crossover() {
    let cpu = || Pretend::new("mock-cpu", &[("mock-cpu/plain", false, SLOW)], &[]);
    let gpu = || Pretend::new("gpu", &[("gpu/bitslice", false, FAST)], &[]);
    for devices in [vec![cpu(), gpu()], vec![gpu(), cpu()]] {
        let planner = planner(devices, None, None).unwrap();
        assert_eq!(chosen(&planner, 16), "mock-cpu/plain");
        assert_eq!(chosen(&planner, 11_000), "mock-cpu/plain");
        assert_eq!(chosen(&planner, 12_000), "gpu/bitslice");
        assert_eq!(chosen(&planner, 1 << 30), "gpu/bitslice");
    }
}

#[test]
fn kernels_that_leak_are_chosen_by_name_only() {
    let device = || Pretend::new("gpu", &[("gpu/table", true, FAST), ("gpu/bitslice", false, SLOW)], &[]);
    let auto = planner(vec![device()], None, None).unwrap();
    assert_eq!(chosen(&auto, 1 << 30), "gpu/bitslice");
    let of_device = planner(vec![device()], Some("gpu"), None).unwrap();
    assert_eq!(chosen(&of_device, 1 << 30), "gpu/bitslice");
    let by_name = planner(vec![device()], None, Some("gpu/table")).unwrap();
    assert_eq!(chosen(&by_name, 16), "gpu/table");

    let only_leaks = || Pretend::new("gpu", &[("gpu/table", true, FAST)], &[]);
    let auto = planner(vec![only_leaks()], None, None).unwrap();
    assert!(!auto.supports(CTR, KeySize::Aes128));
    assert!(matches!(auto.plan(CTR, KeySize::Aes128, 16, None).err(), Some(Error::Unsupported { .. })));
}

#[test]
fn a_kernel_that_fails_its_self_test_is_not_used() {
    let device = || Pretend::new("gpu", &[("gpu/hot", false, FAST), ("gpu/cool", false, SLOW)], &[0]);
    let auto = planner(vec![device()], None, None).unwrap();
    assert_eq!(chosen(&auto, 1 << 30), "gpu/cool");
    assert!(matches!(&auto.failures()[..], [Error::SelfTest { kernel, .. }] if kernel == "gpu/hot"));
    let forced = planner(vec![device()], None, Some("gpu/hot")).unwrap();
    assert!(matches!(forced.plan(CTR, KeySize::Aes128, 16, None).err(), Some(Error::SelfTest { .. })));
}

#[test]
fn a_kernel_that_fails_its_self_test_with_other_launch_options_is_not_used() {
    let device = |broken: &[usize]| Pretend::new("gpu", &[("gpu/coarse", false, FAST)], broken);
    for broken in [&[][..], &[0]] {
        let variants: Vec<Arc<dyn Device>> = vec![Arc::new(device(&[])), Arc::new(device(broken))];
        let planner = planner(vec![Pretend { variants, ..device(&[]) }], None, Some("gpu/coarse")).unwrap();
        let error = planner.plan(CTR, KeySize::Aes128, 16, None).err();
        assert_eq!(matches!(error, Some(Error::SelfTest { .. })), !broken.is_empty(), "{error:?}");
    }
}

/// The index of the kernel that runs in each of two calls, on a trusted device with two kernels.
fn run_by(costs: [Cost; 2], broken: &[usize], bytes: usize) -> [usize; 2] {
    let kernels = [("mock-cpu/first", false, costs[0]), ("mock-cpu/second", false, costs[1])];
    let device = Pretend { is_trusted: true, ..Pretend::new("mock-cpu", &kernels, broken) };
    let last = Arc::clone(&device.last);
    let planner = planner(vec![device], None, None).unwrap();
    [(), ()].map(|()| {
        let (key, mut state, mut data) = (Key::new(&[7; 16]).unwrap(), [3; 16], vec![1; bytes]);
        let expected = ctr::apply(&Aes::new(key.bytes()), &[3; 16], &data);
        let data_of_segment = Data::in_place(&mut data);
        let segment = Segment { key: &key, tweak: None, state: &mut state, data: data_of_segment };
        planner.run_pass(Pass::Ctr, &mut [segment]).unwrap();
        assert!(data == expected);
        last.load(Ordering::Relaxed)
    })
}

#[test]
fn a_kernel_that_is_always_faster_is_used_unless_it_fails() {
    let faster = Cost { fixed_ns: 5.0, ns_per_byte: 0.5 };
    for bytes in [16, 100, 20_000] {
        assert_eq!(run_by([SLOW, faster], &[], bytes), [1, 1]);
        assert_eq!(run_by([faster, SLOW], &[], bytes), [0, 0]);
        // Of two equal kernels, the first is used.
        assert_eq!(run_by([SLOW, SLOW], &[], bytes), [0, 0]);
        assert_eq!(run_by([SLOW, faster], &[1], bytes), [0, 0]);
        assert_eq!(run_by([faster, SLOW], &[0], bytes), [1, 1]);
    }
    // By their stated costs, the first kernel is faster for short work, and the second for long work.
    assert_eq!(run_by([SLOW, FAST], &[], 16), [0, 0]);
    assert_eq!(run_by([SLOW, FAST], &[], 20_000), [1, 1]);
}

#[test]
fn kernels_that_cannot_run_are_not_chosen() {
    let device = || Pretend::new("gpu", &[("gpu/missing", false, FAST), ("gpu/there", false, SLOW)], &[]);
    assert_eq!(chosen(&planner(vec![device()], None, None).unwrap(), 1 << 30), "gpu/there");
    let error = planner(vec![device()], None, Some("gpu/missing")).err().unwrap();
    assert_eq!(error.to_string(), "no kernel `gpu/missing` on gpu: it is not there");
}

#[test]
fn data_on_a_device_are_planned_for_it() {
    let cpu = Pretend::new("mock-cpu", &[("mock-cpu/plain", false, SLOW)], &[]);
    let gpu = Pretend::new("gpu", &[("gpu/bitslice", false, FAST)], &[]);
    let (here, there) = (cpu.id, gpu.id);
    let planner = planner(vec![cpu, gpu], None, None).unwrap();
    for bytes in [16, 1 << 30] {
        for id in [here, there] {
            assert_eq!(planner.plan(CTR, KeySize::Aes128, bytes, Some(id)).unwrap().device.id(), id);
        }
    }
    let nowhere = DeviceId { backend: "gpu", unit: Unit::Number(3) };
    let error = planner.plan(CTR, KeySize::Aes128, 16, Some(nowhere)).err().unwrap();
    assert_eq!(error.to_string(), "no device `gpu:3`: there are mock-cpu, gpu");
}

#[test]
fn an_operation_that_no_kernel_supports_is_an_error() {
    let device = Pretend::new("gpu", &[("gpu/bitslice", false, FAST)], &[]);
    let by_kernel = planner(vec![device], None, Some("gpu/bitslice")).unwrap();
    let device = Pretend::new("gpu", &[("gpu/bitslice", false, FAST)], &[]);
    let by_device = planner(vec![device], Some("gpu"), None).unwrap();
    for (planner, name) in [(by_kernel, "gpu/bitslice"), (by_device, "gpu")] {
        let error =
            planner.plan(Operation::Fused(FusedAead::GcmSeal), KeySize::Aes128, 16, None).err().unwrap();
        let expected =
            "cannot do GCM encryption: choose another device or kernel, or leave the choice to `auto`";
        assert_eq!(error.to_string(), format!("{name} {expected}"));
    }
}

#[test]
fn a_kernel_of_another_device_is_refused() {
    let devices = || {
        let cpu =
            Pretend::new("mock-cpu", &[("mock-cpu/plain", false, SLOW), ("mock-cpu/fine", false, SLOW)], &[]);
        vec![cpu, Pretend::new("gpu", &[("gpu/bitslice", false, FAST)], &[])]
    };
    let error = planner(devices(), Some("mock-cpu"), Some("gpu/bitslice")).err().unwrap();
    assert_eq!(
        error.to_string(),
        "the kernel `gpu/bitslice` does not run on the device `mock-cpu`: gpu/bitslice runs on gpu; mock-cpu has mock-cpu/plain, \
         mock-cpu/fine"
    );
    let error = planner(devices(), Some("gpu"), Some("abacus/one")).err().unwrap().to_string();
    assert!(error.contains("abacus/one runs on no device of this machine"), "{error}");
    assert!(planner(devices(), Some("gpu"), Some("gpu/bitslice")).is_ok());
}

/// The names of a planner's devices if the planner is limited to `device`. The machine has one device for each element of `names`, which is
/// the device's backend. Devices are numbered from 0, across backends.
fn several(names: &[&str], device: &str) -> Result<Vec<String>> {
    let devices = names.iter().enumerate().map(|(number, &backend)| {
        let backend: &'static str = if backend == "gpu" { "gpu" } else { "other" };
        let id = DeviceId { backend, unit: Unit::Number(number as u16) };
        Pretend { id, ..Pretend::new(backend, &[("gpu/fast", false, FAST)], &[]) }
    });
    let planner = planner(devices.collect(), Some(device), None)?;
    Ok(planner.devices().iter().map(|device| device.id().to_string()).collect())
}

#[test]
fn several_devices_by_name() {
    let names = ["gpu", "gpu", "other", "gpu"];
    assert_eq!(several(&names, "gpu:0,3").unwrap(), ["gpu:0,3", "gpu:0", "gpu:3"]);
    assert_eq!(several(&names, "gpu:all").unwrap(), ["gpu:all", "gpu:0", "gpu:1", "gpu:3"]);
    assert_eq!(several(&names, "gpu:1").unwrap(), ["gpu:1"]);
    assert_eq!(several(&names, "gpu:1,1").unwrap(), ["gpu:1"]);
    assert_eq!(several(&names, "other:all").unwrap(), ["other:2"]);
    for wrong in ["gpu:0,2", "gpu:0,", "gpu:,", "gpu:", "gpu", "all", "tpu:all", "gpu:0,all", "gpu:0,1x", ""]
    {
        let error = several(&names, wrong).unwrap_err().to_string();
        assert_eq!(error, format!("no device `{wrong}`: there are gpu:0, gpu:1, other:2, gpu:3"));
    }
}

#[test]
fn a_group_does_large_work_and_one_device_the_rest() {
    let devices = [0, 1].map(|number| {
        let id = DeviceId { backend: "gpu", unit: Unit::Number(number) };
        Pretend { id, ..Pretend::new("gpu", &[("gpu/fast", false, FAST)], &[]) }
    });
    let planner = planner(devices.into(), Some("gpu:all"), None).unwrap();
    let chosen = |bytes| planner.plan(CTR, KeySize::Aes128, bytes, None).unwrap().device.id().to_string();
    assert_eq!(chosen(1000), "gpu:0");
    assert_eq!(chosen(10_000_000), "gpu:all");
    // Work on the memory of one of the devices is planned for this device.
    let second = DeviceId { backend: "gpu", unit: Unit::Number(1) };
    let there = planner.plan(CTR, KeySize::Aes128, 10_000_000, Some(second)).unwrap();
    assert_eq!(there.device.id(), second);
}

/// The devices among which `auto` chooses. Each element of `devices` states the backend, the number, the model, the PCI address and the
/// kernel of a device of the machine.
fn candidates(devices: &[(&'static str, u16, &str, &str, &'static str)]) -> Vec<String> {
    let devices = devices.iter().map(|&(backend, number, model, pci, kernel)| {
        let id = DeviceId { backend, unit: Unit::Number(number) };
        let hardware = Some(HardwareId::new(0x10de, model, pci));
        Pretend { id, hardware, ..Pretend::new(backend, &[(kernel, false, FAST)], &[]) }
    });
    let planner = planner(devices.collect(), None, None).unwrap();
    planner.devices().iter().map(|device| device.id().to_string()).collect()
}

#[test]
fn hardware_that_several_backends_reach_is_a_candidate_once() {
    let (h100, pci) = ("NVIDIA H100 PCIe", ["0000:01:00.0", "0000:02:00.0", "0000:03:00.0"]);
    // Devices with equal PCI addresses are the same GPU. Only `wgpu` reaches the third GPU.
    let all = [
        ("cuda", 0, h100, pci[0], "cuda/fast"),
        ("cuda", 1, h100, pci[1], "cuda/fast"),
        ("wgpu", 0, h100, pci[2], "wgpu/fast"),
        ("wgpu", 1, h100, pci[0], "wgpu/fast"),
        ("opengl", 0, h100, pci[2], "opengl/fast"),
    ];
    assert_eq!(candidates(&all), ["cuda:0", "cuda:1", "wgpu:0"]);
    // If a PCI address is unknown, devices with the same model name are the same GPU.
    let all = [
        ("cuda", 0, h100, pci[0], "cuda/fast"),
        ("cuda", 1, h100, pci[1], "cuda/fast"),
        ("wgpu", 0, h100, "", "wgpu/fast"),
        ("wgpu", 1, "NVIDIA T4", "", "wgpu/fast"),
        ("opengl", 0, "NVIDIA T4/PCIe/SSE2", "", "opengl/fast"),
    ];
    assert_eq!(candidates(&all), ["cuda:0", "cuda:1", "wgpu:1"]);
    // A backend without a kernel for the GPU does not exclude other backends.
    let all = [("cuda", 0, h100, pci[0], "cuda/missing"), ("wgpu", 0, h100, pci[0], "wgpu/fast")];
    assert_eq!(candidates(&all), ["cuda:0", "wgpu:0"]);
}

/// Runs a pass on 48 bytes by a planner that has a trusted device and a device without support for the pass `lacks`.
/// Returns the planner, the outcome and the data.
fn run_without(lacks: Pass, device: Option<&str>, pass: Pass) -> (Planner, Result<()>, [u8; 48]) {
    let cpu =
        Pretend { is_trusted: true, ..Pretend::new("mock-cpu", &[("mock-cpu/plain", false, SLOW)], &[]) };
    let gpu = Pretend { lacks: Some(lacks), ..Pretend::new("gpu", &[("gpu/bitslice", false, FAST)], &[]) };
    let planner = planner(vec![cpu, gpu], device, None).unwrap();
    let (key, mut state, mut data) = (Key::new(&[7; 16]).unwrap(), [3; 16], [1; 48]);
    let segment = Segment { key: &key, tweak: None, state: &mut state, data: Data::in_place(&mut data) };
    let outcome = planner.run_pass(pass, &mut [segment]);
    (planner, outcome, data)
}

#[test]
fn the_cpu_computes_a_pass_without_output_that_a_named_device_lacks() {
    let (planner, outcome, _) = run_without(Pass::Ghash, Some("gpu"), Pass::Ghash);
    outcome.unwrap();
    assert_eq!(planner.assisted(), [(Operation::Pass(Pass::Ghash), 48)]);
    // A pass that writes data is refused, and its data are unchanged.
    let (planner, outcome, data) = run_without(Pass::Ctr, Some("gpu"), Pass::Ctr);
    assert!(matches!(outcome, Err(Error::Unsupported { .. })));
    assert_eq!((data, planner.assisted()), ([1; 48], vec![]));
    // The CPU does not compute a whole MAC for a named device, because the device would then do no work.
    let (planner, ..) = run_without(Pass::CbcMac, Some("gpu"), Pass::Ctr);
    let (key, mut mac) = (Key::new(&[7; 16]).unwrap(), [9; 16]);
    let mut messages = [CmacMessage { key: &key, data: b"data", mac: &mut mac }];
    assert!(matches!(cmac(&planner, &mut messages), Err(Error::Unsupported { .. })));
    let planner = Arc::new(planner);
    let mut stream = CmacStream::new(planner.clone() as Arc<dyn Executor>, key.clone());
    assert!(matches!(stream.update(&[5; 100]), Err(Error::Unsupported { .. })));
    assert_eq!(planner.assisted(), []);
    let (planner, ..) = run_without(Pass::Ghash, Some("gpu"), Pass::Ctr);
    let refused = gmac(&planner, &key, &[1; 12], b"data", &mut mac);
    assert!(matches!(refused, Err(Error::Unsupported { .. })));
    assert_eq!((mac, planner.assisted()), ([9; 16], vec![]));
    // The CPU gives no assistance if the device supports the pass, or if no device is named.
    for (device, pass) in [(Some("gpu"), Pass::Ctr), (None, Pass::Ghash), (Some("mock-cpu"), Pass::Ghash)] {
        let (planner, outcome, _) = run_without(Pass::Ghash, device, pass);
        outcome.unwrap();
        assert_eq!(planner.assisted(), [], "{device:?} {pass:?}");
    }
    // `worked` counts the bytes of a pass for the device that ran it.
    let (planner, _, _) = run_without(Pass::Ghash, Some("gpu"), Pass::Ctr);
    let worked: Vec<_> = planner.worked().into_iter().map(|(id, bytes)| (id.backend, bytes)).collect();
    assert_eq!(worked, [("gpu", 48)]);
}
