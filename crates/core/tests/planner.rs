//! What the planner chooses, and what it never chooses by itself.

use std::sync::Arc;

use lockstep_core::backend::{Completion, Cost, Device, DeviceId, KernelId, KernelInfo, Unit};
use lockstep_core::far::{Behaviour, Far};
use lockstep_core::planner::{Planner, Selection};
use lockstep_core::work::{Operation, Pass, Recipe, Work};
use lockstep_core::{Error, KeySize, Result};

/// A real device with kernels and costs as a test wants them, all computed by `far`.
struct Pretend {
    id: DeviceId,
    kernels: Vec<KernelInfo>,
    costs: Vec<Cost>,
    /// Kernels that answer wrong.
    broken: Vec<usize>,
    right: Far,
    wrong: Far,
}

impl Pretend {
    /// Kernels by name, whether they leak, and what they cost.
    fn new(backend: &'static str, kernels: &[(&'static str, bool, Cost)], broken: &[usize]) -> Self {
        let info = |&(name, leaks, _): &(&'static str, bool, Cost)| KernelInfo {
            name,
            description: "pretends",
            constant_time: !leaks,
            missing: name.ends_with("missing").then(|| "it is not there".into()),
        };
        Pretend {
            id: DeviceId { backend, unit: Unit::Only },
            kernels: kernels.iter().map(info).collect(),
            costs: kernels.iter().map(|&(_, _, cost)| cost).collect(),
            broken: broken.into(),
            right: Far::default(),
            wrong: Far::new(Behaviour { corrupt_at: Some(0), ..Behaviour::default() }),
        }
    }
}

impl Device for Pretend {
    fn id(&self) -> DeviceId {
        self.id
    }
    fn description(&self) -> String {
        "pretends".into()
    }
    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }
    fn cost(&self, kernel: KernelId, operation: Operation, _key: KeySize) -> Option<Cost> {
        match operation {
            Operation::Pass(_) => Some(self.costs[usize::from(kernel.0)]),
            Operation::Recipe(_) => None,
        }
    }
    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        let is_broken = self.broken.contains(&usize::from(kernel.0));
        let far = if is_broken { &self.wrong } else { &self.right };
        far.submit(KernelId(0), work)
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
    let near = || Pretend::new("near", &[("near/plain", false, SLOW)], &[]);
    let gpu = || Pretend::new("gpu", &[("gpu/bitslice", false, FAST)], &[]);
    for devices in [vec![near(), gpu()], vec![gpu(), near()]] {
        let planner = planner(devices, None, None).unwrap();
        assert_eq!(chosen(&planner, 16), "near/plain");
        assert_eq!(chosen(&planner, 11_000), "near/plain");
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
fn a_kernel_that_answers_wrong_is_passed_over() {
    let device = || Pretend::new("gpu", &[("gpu/hot", false, FAST), ("gpu/cool", false, SLOW)], &[0]);
    let auto = planner(vec![device()], None, None).unwrap();
    assert_eq!(chosen(&auto, 1 << 30), "gpu/cool");
    assert!(matches!(&auto.failures()[..], [Error::SelfTest { kernel, .. }] if kernel == "gpu/hot"));
    let forced = planner(vec![device()], None, Some("gpu/hot")).unwrap();
    assert!(matches!(forced.plan(CTR, KeySize::Aes128, 16, None).err(), Some(Error::SelfTest { .. })));
}

#[test]
fn kernels_that_cannot_run_are_not_chosen() {
    let device = || Pretend::new("gpu", &[("gpu/missing", false, FAST), ("gpu/there", false, SLOW)], &[]);
    assert_eq!(chosen(&planner(vec![device()], None, None).unwrap(), 1 << 30), "gpu/there");
    let error = planner(vec![device()], None, Some("gpu/missing")).err().unwrap();
    assert_eq!(error.to_string(), "no kernel `gpu/missing` on gpu: it is not there");
}

#[test]
fn data_on_a_device_stay_there() {
    let near = Pretend::new("near", &[("near/plain", false, SLOW)], &[]);
    let gpu = Pretend::new("gpu", &[("gpu/bitslice", false, FAST)], &[]);
    let (here, there) = (near.id, gpu.id);
    let planner = planner(vec![near, gpu], None, None).unwrap();
    for bytes in [16, 1 << 30] {
        for id in [here, there] {
            assert_eq!(planner.plan(CTR, KeySize::Aes128, bytes, Some(id)).unwrap().device.id(), id);
        }
    }
    let nowhere = DeviceId { backend: "gpu", unit: Unit::Number(3) };
    let error = planner.plan(CTR, KeySize::Aes128, 16, Some(nowhere)).err().unwrap();
    assert_eq!(error.to_string(), "no device `gpu:3`: there are near, gpu");
}

#[test]
fn what_nobody_does_is_an_error() {
    let device = Pretend::new("gpu", &[("gpu/bitslice", false, FAST)], &[]);
    let planner = planner(vec![device], None, Some("gpu/bitslice")).unwrap();
    let error = planner.plan(Operation::Recipe(Recipe::GcmSeal), KeySize::Aes128, 16, None).err().unwrap();
    assert_eq!(error.to_string(), "gpu/bitslice cannot do GcmSeal: choose another kernel, or none");
}
