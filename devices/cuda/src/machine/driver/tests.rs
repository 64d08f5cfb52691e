//! Tests of the driver's calls with old and failing drivers (see `fake`), and of the machine code that a first call loads.

use std::sync::Arc;

use lockstep_core::backend::{Device, DeviceId, Unit};
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Pass, Segment, Status, Tag, Task};
use lockstep_core::{Error, Key, KeySize, Result};
use lockstep_planner::{Planner, Selection};
use lockstep_testkit::mock::MockCpu;

use super::fake::{Fake, driver, install, start};
use super::{Api, devices};
use crate::archive::Archive;
use crate::device::Cuda;

const NAME: DeviceId = DeviceId { backend: "cuda", unit: Unit::Number(0) };

/// The stamp of the kernels, and the index of the archive for all architectures, as `tools/cuda_kernels.py --full` made it.
const SIZES: &str = include_str!("../../../sizes.txt");

fn good() -> Fake {
    Fake { version: 12_000, capability: (8, 0), ..Fake::default() }
}

/// An archive with the modules of `SIZES` for some targets.
fn archive(takes: impl Fn(&str) -> bool) -> &'static Archive {
    archive_of(|_, target| takes(target))
}

/// An archive with some modules of `SIZES`, selected by name and target. Their units have the sizes that `SIZES`
/// states, but are not compressed. The code consists of zeros.
fn archive_of(takes: impl Fn(&str, &str) -> bool) -> &'static Archive {
    let (mut index, mut len) = ("lockstep-kernels 1".to_owned(), 0usize);
    let lines: Vec<Vec<&str>> = SIZES.lines().skip(2).map(|line| line.split(' ').collect()).collect();
    for (number, unit) in lines.iter().enumerate().filter(|(_, line)| line[0] == "unit") {
        let modules = lines[number + 1..].iter().take_while(|line| line[0] != "unit");
        let taken: Vec<_> = modules.filter(|module| takes(module[0], module[1])).collect();
        if !taken.is_empty() {
            index += &format!("\nunit {len} {} {}", unit[3], unit[3]);
            taken.iter().for_each(|module| index += &format!("\n{}", module.join(" ")));
            len += unit[3].parse::<usize>().unwrap();
        }
    }
    let bytes = [index.as_bytes(), b"\n\n", &vec![0; len]].concat();
    Box::leak(Box::new(Archive::parse(bytes.leak()).unwrap()))
}

/// The device of the driver, on a machine without NVRTC.
fn device(archive: &'static Archive) -> Cuda {
    let no_nvrtc = |_| Err("no libnvrtc.so.13".to_owned());
    let (_, driver) = devices(start().unwrap(), archive, no_nvrtc).unwrap().pop().unwrap();
    let missing = driver.missing();
    Cuda::new(NAME, Box::new(driver), false, missing)
}

fn expected(len: usize) -> Vec<u8> {
    lockstep_reference::ctr::apply(&lockstep_reference::Aes::new(&[1; 16]), &[2; 16], &vec![5; len])
}

/// Encrypts in CTR mode by the device itself, without a planner.
fn ctr(device: &Cuda, data: &mut [u8]) -> Result<()> {
    run_ctr(data, |task| device.submit(lockstep_core::backend::KernelId(0), task.into())?.wait())
}

fn run_ctr(data: &mut [u8], run: impl FnOnce(Task<'_, '_>) -> Result<()>) -> Result<()> {
    let key = Key::new(&[1; 16]).unwrap();
    let mut state = [2; 16];
    let mut segments = [Segment { key: &key, tweak: None, state: &mut state, data: Data::in_place(data) }];
    run(Task::Pass(Pass::Ctr, &mut segments))
}

fn reason(error: &Error) -> &str {
    match error {
        Error::DeviceFailed { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

#[test]
fn a_driver_without_an_entry_point_is_told_its_version() {
    for &symbol in Api::SYMBOLS {
        let _guard = install(Fake { lacks: symbol, version: 11_040, ..good() });
        let missing = start().err().unwrap().to_string();
        let version = if symbol == "cuDriverGetVersion" { "" } else { " (CUDA 11.4)" };
        let wanted = format!("the NVIDIA driver{version} is too old: it has no {symbol}");
        assert!(missing.contains(&wanted) && missing.contains("install driver 525 or newer"), "{missing}");
    }
}

/// The behaviour of a driver depends on the functions that it exports and the modules that it loads. Its version only
/// appears in messages.
#[test]
fn a_wrong_version_changes_nothing() {
    for version in [0, -1, 7_050, 11_040, 12_020, 99_990] {
        let _guard = install(Fake { version, ..good() });
        let device = device(archive(|target| target == "sm_80"));
        let mut data = vec![5; 1000];
        ctr(&device, &mut data).unwrap();
        assert_eq!(data, expected(1000), "version {version}");
    }
}

#[test]
fn a_module_that_does_not_load_is_an_error_and_may_load_later() {
    let archive = archive(|target| target == "sm_80");
    // The first module contains the key expansion, and the second module contains CTR.
    for (at, code, wanted) in [
        (
            0,
            209,
            "the NVIDIA driver (CUDA 11.4) does not load the machine code of bitslice_expand: NO_BINARY_FOR_GPU",
        ),
        (1, 200, "the NVIDIA driver (CUDA 11.4) does not load the machine code of bitslice_ctr: "),
        (1, 222, "install driver 525 or newer"),
        (0, 2, "out of memory of the GPU: no "),
        (1, 2, "out of memory of the GPU: no "),
        (1, 999, "the device is lost to this process"),
    ] {
        let _guard = install(Fake { version: 11_040, load: Some((at, code)), ..good() });
        let device = device(archive);
        let mut data = vec![5; 1000];
        let error = ctr(&device, &mut data).expect_err(wanted);
        assert!(reason(&error).contains(wanted), "{error}");
        assert_eq!(data, vec![5; 1000]);
        let again = ctr(&device, &mut data);
        assert_eq!(again.is_ok(), code != 999, "{again:?}");
        if code != 999 {
            assert_eq!(data, expected(1000));
        }
    }
}

/// PTX that does not load is an error with the driver's version and a remedy for this error.
#[test]
fn ptx_that_does_not_load_is_an_error_with_a_remedy() {
    for (code, remedy) in [
        (200, "install driver 575 or newer, or NVRTC 12 or 13"),
        (218, "install driver 575 or newer, or NVRTC 12 or 13"),
        (221, "install the driver's package with libnvidia-ptxjitcompiler.so.1"),
        (222, "install driver 575 or newer, or NVRTC 12 or 13"),
        (223, "unset CUDA_DISABLE_PTX_JIT and CUDA_DISABLE_JIT"),
    ] {
        let _guard = install(Fake { load: Some((0, code)), ..good() });
        let error = ctr(&device(archive(|target| target == "ptx")), &mut [5; 1000]).unwrap_err();
        let begin = "the NVIDIA driver (CUDA 12.0) does not load the PTX of bitslice_expand: ";
        assert!(reason(&error).contains(begin) && reason(&error).contains(remedy), "{code}: {error}");
    }
}

/// PTX for compute capability 6.0 has no products of bits: with it, tensor units would hash nothing.
#[test]
fn tensor_units_hash_only_with_machine_code() {
    let hashes = |archive| {
        let _guard = install(Fake { capability: (9, 0), ..good() });
        let device = device(archive);
        let (key, data, mut state) = (Key::new(&[1; 16]).unwrap(), vec![5; 400_000], [0; 16]);
        let mut segments =
            [Segment { key: &key, tweak: None, state: &mut state, data: Data::read_only(&data) }];
        let task = Task::Pass(Pass::Ghash, &mut segments);
        device.submit(lockstep_core::backend::KernelId(0), task.into()).unwrap().wait().unwrap();
        device.counters().iter().any(|counter| counter.name == "ghash_tensor_tiles")
    };
    assert!(hashes(archive_of(|name, target| target == "sm_90" && name != "ghash_carry_less")));
    assert!(!hashes(archive(|target| target == "ptx")));
    assert!(!hashes(archive_of(|name, target| {
        target == "ptx" || target == "sm_90" && !["ghash_tensor", "ghash_carry_less"].contains(&name)
    })));
}

#[test]
fn a_context_that_does_not_open_may_open_later() {
    let _guard = install(Fake { retain: 2, ..good() });
    let device = device(archive(|target| target == "sm_80"));
    let mut data = vec![5; 1000];
    let error = ctr(&device, &mut data).unwrap_err();
    assert!(reason(&error).contains("OUT_OF_MEMORY"), "{error}");
    ctr(&device, &mut data).unwrap();
    assert_eq!(data, expected(1000));
}

fn planner(device: Cuda) -> Planner {
    let devices: Vec<Arc<dyn Device>> = vec![Arc::new(device), Arc::<MockCpu>::default()];
    Planner::new(devices, &Selection::default()).unwrap()
}

fn plan_and_run(planner: &Planner, len: usize) -> (&'static str, Vec<u8>) {
    let mut data = vec![5; len];
    let plan = planner.plan(Operation::Pass(Pass::Ctr), KeySize::Aes128, len, None).unwrap();
    let name = plan.kernel_name();
    run_ctr(&mut data, |task| plan.run(task)).unwrap();
    (name, data)
}

/// Without a selection, the planner uses a GPU if the program has machine code for it, and not if the driver would have to compile.
#[test]
fn auto_chooses_a_gpu_with_machine_code() {
    for (targets, chosen) in [
        (&["sm_80"][..], "cuda/bitslice"),
        (&["ptx"], "mock-cpu/oracle"),
        (&["sm_90", "ptx"], "mock-cpu/oracle"),
    ] {
        let _guard = install(good());
        let planner = planner(device(archive(|target| targets.contains(&target))));
        assert!(plan_and_run(&planner, 1 << 20) == (chosen, expected(1 << 20)), "{targets:?}");
    }
}

/// The GPU is not chosen for an operation if any module that the operation needs must be compiled.
#[test]
fn auto_needs_machine_code_of_all_modules() {
    let _guard = install(good());
    let starts_at_once = |lacking: &str, operation| {
        let device = device(archive_of(|name, target| match name == lacking {
            true => target == "ptx",
            false => target == "sm_80",
        }));
        let cost = device.cost(lockstep_core::backend::KernelId(0), operation, KeySize::Aes128);
        cost.unwrap().fixed_ns < 1e9
    };
    let (ctr, gcm) = (Operation::Pass(Pass::Ctr), Operation::Fused(FusedAead::GcmSeal));
    for (operation, modules) in [
        (ctr, &["bitslice_expand", "bitslice_ctr", "helpers"][..]),
        (gcm, &["bitslice_ecb_encrypt", "bitslice_ctr32", "ghash", "helpers"]),
        (Operation::Pass(Pass::Ghash), &["bitslice_ecb_encrypt", "ghash", "helpers"]),
        (Operation::Pass(Pass::CbcEncrypt), &["bitslice_expand", "chain", "helpers"]),
        (Operation::Pass(Pass::CbcDecrypt), &["bitslice_cbc_decrypt", "helpers"]),
        (Operation::Pass(Pass::XtsDecrypt), &["bitslice_ecb_encrypt", "bitslice_xts_decrypt", "helpers"]),
        (Operation::Fused(FusedAead::OcbOpen), &["bitslice_ecb_encrypt", "bitslice_ocb_decrypt", "ocb"]),
    ] {
        assert!(starts_at_once("none", operation), "{operation:?}");
        for module in modules {
            assert!(!starts_at_once(module, operation), "{operation:?} without {module}");
        }
    }
    assert!(starts_at_once("bitslice_ctr32", ctr) && starts_at_once("bitslice_ctr", gcm));
    assert!(starts_at_once("bitslice_ecb_encrypt", ctr), "CTR encrypts no other blocks");
    assert!(starts_at_once("ghash_tensor", gcm), "integers are used instead");
}

/// A driver that does not load the machine code fails the self-test, and the work is done elsewhere.
#[test]
fn work_goes_elsewhere_if_the_driver_is_too_old() {
    let _guard = install(Fake { version: 11_040, load: Some((1, 209)), ..good() });
    let planner = planner(device(archive(|target| target == "sm_80")));
    assert!(plan_and_run(&planner, 100_000) == ("mock-cpu/oracle", expected(100_000)));
    let failures = planner.failures();
    assert!(
        failures.iter().any(|error| error.to_string().contains("install driver 525 or newer")),
        "{failures:?}"
    );
}

#[test]
fn gpus_before_pascal_are_refused() {
    let _guard = install(Fake { capability: (5, 2), ..good() });
    let device = device(archive(|_| true));
    let missing = device.kernels()[0].missing.clone().unwrap();
    assert!(missing.contains("compute capability 5.2 is not supported"), "{missing}");
}

/// The first call on each architecture, self-tests included, unpacks and loads at most 1 MB of machine code.
#[test]
fn a_first_call_unpacks_and_loads_at_most_a_megabyte() {
    const MOST: u64 = 1_000_000;
    for (major, minor) in
        [(6, 0), (6, 1), (7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0), (12, 1)]
    {
        for gcm in [false, true] {
            let _guard = install(Fake { capability: (major, minor), ..good() });
            let archive = archive(|target| target != "ptx");
            let planner = planner(device(archive));
            let name = if gcm {
                let key = Key::new(&[1; 16]).unwrap();
                let (mut data, mut tag) = (vec![5; 100_000], [0; 16]);
                let (sealed, right) = lockstep_reference::gcm::seal(
                    &lockstep_reference::Aes::new(&[1; 16]),
                    &[3; 12],
                    b"x",
                    &data,
                );
                let message = AeadMessage {
                    key: &key,
                    nonce: &[3; 12],
                    aad: b"x",
                    data: Data::in_place(&mut data),
                    tag: Tag::Write(&mut tag),
                    status: Status::Pending,
                };
                let plan = planner
                    .plan(Operation::Fused(FusedAead::GcmSeal), KeySize::Aes128, 100_000, None)
                    .unwrap();
                let name = plan.kernel_name();
                plan.run(Task::Fused(FusedAead::GcmSeal, &mut [message])).unwrap();
                assert!(data == sealed && tag == right[..]);
                name
            } else {
                plan_and_run(&planner, 100_000).0
            };
            assert_eq!(name, "cuda/bitslice", "{:?}", planner.failures());
            let (unpacked, loads) = (archive.unpacked(), driver(|fake| fake.loads));
            assert!(
                unpacked > 0 && unpacked <= MOST,
                "{major}.{minor}, GCM {gcm}: {unpacked} bytes in {loads} modules"
            );
            println!("{major}.{minor}, GCM {gcm}: {unpacked} bytes unpacked, {loads} modules loaded");
        }
    }
}
