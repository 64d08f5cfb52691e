//! Tests of the driver's calls with old and failing drivers (see `fake`), and of the machine code that a first call loads.

use std::sync::Arc;

use lockstep_core::backend::{Device, DeviceId, Unit};
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Pass, Segment, Status, Tag, Task, Tweak};
use lockstep_core::{Error, Key, KeySize, Result};
use lockstep_planner::{Planner, Selection};
use lockstep_testkit::mock::MockCpu;

use super::fake::{Fake, driver, install, start};
use super::{Api, devices};
use crate::archive::Archive;
use crate::compile::Compiler;
use crate::device::Cuda;
use crate::nvrtc::NoNvrtc;
use crate::nvrtc::tests::{compiler, failing_compiler};

const NAME: DeviceId = DeviceId { backend: "cuda", unit: Unit::Number(0) };

/// The stamp of the kernels, and the index of the archive for all architectures, as `tools/cuda_kernels.py --full` made it.
const SIZES: &str = include_str!("../../../sizes.txt");

fn good() -> Fake {
    Fake { version: 12_000, capability: (8, 0), block_threads: 1024, ..Fake::default() }
}

/// Makes an archive with the modules of `SIZES` for some targets.
fn archive(takes: impl Fn(&str) -> bool) -> &'static Archive {
    archive_of(|_, target| takes(target))
}

/// Makes an archive with some modules of `SIZES`, selected by name and target. Their units have the sizes that `SIZES` states, but are not
/// compressed. The code consists of zeros.
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

const NO_NVRTC: Compiler =
    Compiler { nvrtc: |_| Err(NoNvrtc { why: "no libnvrtc.so.13".into(), is_found: false }), cache: || None };

/// NVRTC that supports the GPU but fails to compile.
const FAILING_NVRTC: Compiler = Compiler { nvrtc: |_| Ok(failing_compiler((12, 2), &[80, 90])), ..NO_NVRTC };

/// Returns the device of the driver, on a machine without NVRTC.
fn device(archive: &'static Archive) -> Cuda {
    device_with(archive, NO_NVRTC)
}

fn device_with(archive: &'static Archive, compiler: Compiler) -> Cuda {
    let (_, driver) = devices(start().unwrap(), archive, compiler).unwrap().pop().unwrap();
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

/// If NVRTC is installed but fails, the device uses the PTX of the archive and states the reason in one line.
#[test]
fn nvrtc_that_fails_gives_way_to_ptx() {
    const TOO_NEW: Compiler = Compiler {
        nvrtc: |_| Err(NoNvrtc { why: "NVRTC 99.0 is for other GPUs".into(), is_found: true }),
        ..NO_NVRTC
    };
    const WORKING: Compiler = Compiler { nvrtc: |_| Ok(compiler((12, 2), &[80])), ..NO_NVRTC };
    const DOES_NOT_COMPILE: &str = "NVRTC 12.2 does not compile bitslice_expand: NVRTC: NVRTC_ERROR (TEST)";
    const DOES_NOT_LOAD: &str =
        "the NVIDIA driver (CUDA 12.0) does not load the code that NVRTC compiled of bitslice_expand: ";
    let run = |archive, compiler, load| {
        let _guard = install(Fake { load, ..good() });
        let (device, mut data) = (device_with(archive, compiler), vec![5; 1000]);
        let ended = ctr(&device, &mut data);
        assert!(ended.is_err() || data == expected(1000));
        (ended, device.notice(), driver(|fake| fake.loads))
    };
    let (ptx, nothing) = (archive(|target| target == "ptx"), archive(|_| false));
    for (compiler, load, why, loads) in [
        (FAILING_NVRTC, None, DOES_NOT_COMPILE, 2),
        (TOO_NEW, None, "NVRTC 99.0 is for other GPUs", 2),
        (WORKING, Some((0, 209)), DOES_NOT_LOAD, 3),
    ] {
        let (ended, notice, loaded) = run(ptx, compiler, load);
        ended.unwrap();
        let notice = notice.unwrap();
        assert!(notice.contains(why) && notice.contains("PTX of this program"), "{notice}");
        assert!(!notice.contains('\n') && loaded == loads, "{loaded}: {notice}");
    }
    // The device has no notice if NVRTC works, if NVRTC is not installed, or if the archive has machine code. With machine code, NVRTC is
    // not opened.
    let unused = Compiler { nvrtc: |_| panic!("NVRTC is opened"), ..NO_NVRTC };
    for (archive, compiler) in
        [(ptx, WORKING), (ptx, NO_NVRTC), (archive(|target| ["sm_80", "ptx"].contains(&target)), unused)]
    {
        let (ended, notice, _) = run(archive, compiler, None);
        assert!(ended.is_ok() && notice.is_none(), "{notice:?}");
    }
    // If there is no other code, the call fails, and the error contains the remedy for the failure of NVRTC.
    for (compiler, load, why, remedy) in [
        (FAILING_NVRTC, None, DOES_NOT_COMPILE, "install NVRTC 12 or 13"),
        (
            WORKING,
            Some((0, 222)),
            DOES_NOT_LOAD,
            "install the newest driver, or use a package with machine code",
        ),
    ] {
        let (ended, notice, _) = run(nothing, compiler, load);
        let error = ended.unwrap_err();
        assert!(reason(&error).contains(why) && reason(&error).contains(remedy), "{error}");
        assert!(notice.is_none(), "{notice:?}");
    }
}

/// A launch option beyond the GPU's limit is refused when the device gets the option, before any work.
#[test]
fn launch_options_are_compared_with_the_gpu() {
    let _guard = install(Fake { block_threads: 256, ..good() });
    let device = device(archive(|target| target == "ptx"));
    let refused = device.with_launch(&[("threads", 512)]).err().unwrap().to_string();
    assert_eq!(refused, "launch option `threads=512`: cuda:0 runs at most 256 threads in a thread block");
    assert!(device.with_launch(&[("threads", 256), ("blocks", 1)]).unwrap().is_some());
    assert_eq!(driver(|fake| fake.loads), 0);
}

/// PTX is for compute capability 6.0, which has no products of bits. Kernels for tensor units would compute nothing, so they are not used.
#[test]
fn tensor_units_hash_only_with_machine_code() {
    let hash_key = lockstep_reference::Aes::new(&[1; 16]).encrypt([0; 16]);
    let right = lockstep_reference::ghash::ghash(&hash_key, &[5; 400_000]);
    let hashes_with = |archive, compiler| {
        let _guard = install(Fake { capability: (9, 0), ..good() });
        let device = device_with(archive, compiler);
        let (key, data, mut state) = (Key::new(&[1; 16]).unwrap(), vec![5; 400_000], [0; 16]);
        let mut segments =
            [Segment { key: &key, tweak: None, state: &mut state, data: Data::read_only(&data) }];
        let task = Task::Pass(Pass::Ghash, &mut segments);
        device.submit(lockstep_core::backend::KernelId(0), task.into()).unwrap().wait().unwrap();
        assert!(state == right);
        device.counters().iter().any(|counter| counter.name == "ghash_tensor_tiles")
    };
    let hashes = |archive| hashes_with(archive, NO_NVRTC);
    assert!(hashes(archive_of(|name, target| target == "sm_90" && name != "ghash_carry_less")));
    assert!(!hashes(archive(|target| target == "ptx")));
    assert!(!hashes(archive_of(|name, target| {
        target == "ptx" || target == "sm_90" && !["ghash_tensor", "ghash_carry_less"].contains(&name)
    })));
    assert!(!hashes_with(archive(|target| target == "ptx"), FAILING_NVRTC), "NVRTC fails to compile them");
}

/// If one module does not load because memory is lacking, whichever module it is, later calls still use the tensor units.
#[test]
fn tensor_units_are_tried_again_after_a_lack_of_memory() {
    for at in 0..4 {
        let _guard = install(Fake { capability: (9, 0), load: Some((at, 2)), ..good() });
        let device = device(archive_of(|name, target| target == "sm_90" && name != "ghash_carry_less"));
        let hash = || {
            let (key, data, mut state) = (Key::new(&[1; 16]).unwrap(), vec![5; 400_000], [0; 16]);
            let mut segments =
                [Segment { key: &key, tweak: None, state: &mut state, data: Data::read_only(&data) }];
            let task = Task::Pass(Pass::Ghash, &mut segments);
            device.submit(lockstep_core::backend::KernelId(0), task.into())?.wait()
        };
        let _ = hash();
        hash().unwrap();
        assert!(device.counters().iter().any(|counter| counter.name == "ghash_tensor_tiles"), "load {at}");
    }
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

/// If the user selects no device, the planner uses a GPU only if the program has machine code for this GPU. Otherwise the driver would have
/// to compile the kernels, which takes minutes.
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

/// If the driver is too old for the machine code, the self-test of the GPU fails, and another device does the work.
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

/// The first call of each operation on each kind of machine code, self-tests included, unpacks and loads at most 1 MB.
#[test]
fn a_first_call_unpacks_and_loads_at_most_a_megabyte() {
    const MOST: u64 = 1_000_000;
    let mut largest = (0, String::new());
    for capability in [(6, 0), (7, 0), (8, 0), (9, 0), (10, 0), (12, 0)] {
        for operation in Operation::all() {
            let _guard = install(Fake { capability, ..good() });
            let archive = archive(|target| target != "ptx");
            let selection = Selection { device: Some("cuda:0".into()), kernel: None };
            let devices: Vec<Arc<dyn Device>> = vec![Arc::new(device(archive)), Arc::<MockCpu>::default()];
            let planner = Planner::new(devices, &selection).unwrap();
            // GHASH of long messages also loads the kernels for the tensor units.
            let hashes =
                !matches!(operation, Operation::Pass(pass) if !matches!(pass, Pass::Ghash | Pass::Polyval));
            let mut data = vec![5; if hashes { 400_000 } else { 1600 }];
            let Ok(plan) = planner.plan(operation, KeySize::Aes128, data.len(), None) else {
                assert!(matches!(operation, Operation::Fused(FusedAead::GcmSivSeal | FusedAead::GcmSivOpen)));
                continue;
            };
            assert_eq!(plan.kernel_name(), "cuda/bitslice", "{:?}", planner.failures());
            run_any(operation, &mut data, |task| plan.run(task)).unwrap();
            let (unpacked, loads) = (archive.unpacked(), driver(|fake| fake.loads));
            let text =
                format!("{operation:?}, {capability:?}: {unpacked} bytes unpacked, {loads} modules loaded");
            assert!(unpacked > 0 && unpacked <= MOST, "{text}");
            largest = largest.max((unpacked, text));
        }
    }
    println!("the most: {}", largest.1);
}

/// Runs an operation on one message.
fn run_any(
    operation: Operation,
    data: &mut [u8],
    run: impl FnOnce(Task<'_, '_>) -> Result<()>,
) -> Result<()> {
    let (key, mut state, mut tag) = (Key::new(&[1; 16])?, [2; 16], [0; 16]);
    match operation {
        Operation::Pass(pass) => {
            let tweak = pass.is_xts().then_some(Tweak { key: &key, position: 0 });
            let data = if pass.is_read_only() { Data::read_only(data) } else { Data::in_place(data) };
            run(Task::Pass(pass, &mut [Segment { key: &key, tweak, state: &mut state, data }]))
        }
        Operation::Fused(fused) => {
            let tag = match fused {
                FusedAead::GcmSeal | FusedAead::OcbSeal | FusedAead::GcmSivSeal => Tag::Write(&mut tag),
                FusedAead::GcmOpen | FusedAead::OcbOpen | FusedAead::GcmSivOpen => Tag::Expect(&[0; 16]),
            };
            let (nonce, data, status) = (&[3; 12], Data::in_place(data), Status::Pending);
            run(Task::Fused(fused, &mut [AeadMessage { key: &key, nonce, aad: b"x", data, tag, status }]))
        }
    }
}
