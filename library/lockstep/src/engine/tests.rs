use super::*;

fn build(builder: EngineBuilder, env: &[(&str, &str)]) -> Result<Engine> {
    let variable = |name| env.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).into());
    builder.build_with(variable, |_, _| true).map(|engine| engine.expect("this is allowed"))
}

#[test]
fn the_builder_comes_before_the_environment() {
    assert_eq!(build(Engine::builder(), &[(ENV_THREADS, "3")]).unwrap().threads(), 3);
    assert_eq!(build(Engine::builder().threads(5), &[(ENV_THREADS, "3")]).unwrap().threads(), 5);
    assert!(build(Engine::builder().device("auto"), &[(ENV_DEVICE, "nonsense")]).is_ok());
    assert!(build(Engine::builder(), &[(ENV_DEVICE, "cpu"), (ENV_KERNEL, "")]).is_ok());
}

#[test]
fn devices_of_the_laboratory_are_not_offered() {
    for (name, is_simulated) in [
        ("spu", true),
        ("spu:4", true),
        ("qpu", true),
        ("qpu:sim8", true),
        ("cuda:emu", true),
        ("qpu:0", false),
        ("cuda:77", false),
        ("abacus", false),
    ] {
        let error = build(Engine::builder().device(name), &[]).unwrap_err().to_string();
        assert!(error.contains(&format!("no device `{name}`")), "{error}");
        assert_eq!(error.contains("make lab"), is_simulated, "{error}");
    }
}

#[test]
fn an_engine_takes_a_list_of_backends() {
    fn with_mock(options: &BackendOptions) -> Vec<Box<dyn Backend>> {
        vec![Box::new(CpuBackend::new(CpuOptions { threads: Some(options.threads) })), Box::new(Mock)]
    }
    struct Mock;
    impl Backend for Mock {
        fn name(&self) -> &'static str {
            "mock"
        }
        fn discover(&self) -> lockstep_core::backend::Discovery {
            let missing = Missing { reason: "no mock".into(), remedy: "buy one".into() };
            lockstep_core::backend::Discovery { devices: Vec::new(), missing: Some(missing) }
        }
    }
    let engine = build(Engine::builder().with_backends(with_mock), &[]).unwrap();
    assert_eq!(engine.missing().iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["mock"]);
}

#[test]
fn a_device_and_a_kernel_must_both_be_found_without_a_driver() {
    /// A backend that finds its devices only after it has started a driver.
    struct Gpu;
    impl Backend for Gpu {
        fn name(&self) -> &'static str {
            "gpu"
        }
        fn discover(&self) -> lockstep_core::backend::Discovery {
            unreachable!("this starts a driver")
        }
    }
    let backends: [Box<dyn Backend>; 2] =
        [Box::new(CpuBackend::new(CpuOptions { threads: Some(1) })), Box::new(Gpu)];
    for (device, kernel, expected) in [
        (Some("cpu"), None, true),
        (Some("cpu"), Some("cpu/soft"), true),
        (Some("gpu:0"), None, false),
        (None, Some("gpu/ctr"), false),
        (Some("cpu"), Some("gpu/ctr"), false),
        (Some("gpu:0"), Some("cpu/soft"), false),
    ] {
        let selection = Selection { device: device.map(Into::into), kernel: kernel.map(Into::into) };
        assert_eq!(needs_no_driver(&backends, &selection), expected, "{device:?} {kernel:?}");
    }
}

/// Launch options are checked when they are given, even if only a driver can find the devices of the backend.
#[test]
fn launch_options_are_checked_without_a_driver() {
    struct Gpu;
    impl Backend for Gpu {
        fn name(&self) -> &'static str {
            "gpu"
        }
        fn discover(&self) -> lockstep_core::backend::Discovery {
            unreachable!("this starts a driver")
        }
        fn launch_options(&self) -> &'static [lockstep_core::backend::LaunchOption] {
            &[lockstep_core::backend::LaunchOption {
                name: "threads",
                meaning: "threads",
                range: 8..=512,
                multiple: 1,
                kernels: &["gpu/x"],
            }]
        }
    }
    let build = |device: &str, kernel: &str, launch: &str| {
        let builder = Engine::builder().device(device).kernel(kernel).launch(launch);
        let builder = builder.with_backends(|_| vec![Box::new(CpuBackend::default()), Box::new(Gpu)]);
        builder.build_with(|_| None, needs_no_driver).map(|engine| engine.is_some())
    };
    assert!(!build("gpu:0", "gpu/x", "threads=8").unwrap(), "the driver is needed for the device");
    for (device, kernel, launch, expected) in [
        ("gpu:0", "gpu/x", "threads=7", "give threads, from 8 to 512"),
        ("auto", "gpu/x", "threads=7", "give threads, from 8 to 512"),
        ("gpu:0", "auto", "threads=8", "kernels with this option are gpu/x"),
        ("gpu:0", "gpu/y", "edge=8", "options of gpu/y: none"),
        ("gpu:0", "auto", "edge=8", "options of gpu: threads"),
        ("auto", "auto", "threads=8", "name a device or a kernel as well"),
        ("cpu", "auto", "threads=8", "options of cpu: none"),
    ] {
        let error = build(device, kernel, launch).unwrap_err().to_string();
        assert!(error.contains(expected), "{device} {kernel} {launch}: {error}");
    }
}

#[test]
fn bad_values_are_errors() {
    for bad in ["0", "-1", "many", "1025", "1.5", "99999999999999999999"] {
        let error = build(Engine::builder(), &[(ENV_THREADS, bad)]).unwrap_err();
        assert!(matches!(&error, Error::Setting { value, .. } if value == bad), "{error}");
    }
    assert!(build(Engine::builder().threads(0), &[]).is_err());
    assert!(build(Engine::builder(), &[(ENV_VERIFY, "maybe")]).is_err());
    assert!(build(Engine::builder().verify(Verify::Off), &[(ENV_VERIFY, "maybe")]).is_ok());
    assert!(matches!(build(Engine::builder(), &[(ENV_DEVICE, "abacus")]), Err(Error::Core(_))));
    assert!(matches!(build(Engine::builder().kernel("cpu/abacus"), &[]), Err(Error::Core(_))));
}

#[test]
fn an_error_names_the_variable_that_a_name_comes_from() {
    let error = |builder, env: &[_]| build(builder, env).unwrap_err().to_string();
    let device = "; the name is from LOCKSTEP_DEVICE";
    let kernel = "; the name is from LOCKSTEP_KERNEL";
    for (name, value, words) in [
        (ENV_DEVICE, "abacus", device),
        (ENV_DEVICE, "cuda:77", device),
        (ENV_KERNEL, "abacus", kernel),
        (ENV_KERNEL, "cpu/abacus", kernel),
    ] {
        let message = error(Engine::builder(), &[(name, value)]);
        assert!(message.ends_with(words), "{message}");
    }
    let message = error(Engine::builder().device("cpu"), &[(ENV_KERNEL, "spu/ctr4")]);
    assert!(message.ends_with(kernel), "{message}");
    for message in [
        error(Engine::builder().device("abacus"), &[(ENV_DEVICE, "cpu")]),
        error(Engine::builder().device("abacus"), &[(ENV_KERNEL, "cpu/soft")]),
        error(Engine::builder().kernel("cpu/abacus"), &[(ENV_DEVICE, "cpu")]),
    ] {
        assert!(!message.contains("LOCKSTEP"), "{message}");
    }
    let message = error(Engine::builder().kernel("abacus"), &[]);
    assert!(message.contains("the name of a kernel begins with"), "{message}");
}
