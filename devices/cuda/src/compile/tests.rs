use super::*;
use crate::nvrtc::tests::{compiler, failing_compiler};

const HOPPER: Architecture = Architecture { major: 9, minor: 0 };

#[test]
fn includes_are_inserted() {
    let all = [
        ("x/m.cu", "#include \"n.cuh\"\n#include \"../c/o.cuh\"\nlast"),
        ("x/n.cuh", "#pragma once\n#include \"../c/o.cuh\"\nn"),
        ("c/o.cuh", "#pragma once\no\n#include \"../../outside.h\""),
    ];
    let text = source(&all, "m").unwrap();
    let words: Vec<_> = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    assert_eq!(words, ["o", "n", "last"]);
    assert!(text.ends_with("#line 3 \"x/m.cu\"\nlast\n"));
    assert!(source(&all, "n").is_none());
}

#[test]
fn every_module_has_its_source() {
    let modules: Vec<_> = SOURCES.iter().filter_map(|(path, _)| path.strip_suffix(".cu")).collect();
    assert!(modules.contains(&"helpers"));
    for module in modules {
        let name = module.rsplit('/').next().unwrap();
        let text = source(SOURCES, name).unwrap();
        assert!(text.contains("using u8 =") && !text.contains("#include"), "{name}");
    }
}

#[test]
fn unknown_architectures_get_ptx() {
    assert_eq!(options(&[80, 90], HOPPER)[0], "--gpu-architecture=sm_90");
    assert_eq!(options(&[80, 90], Architecture { major: 13, minor: 0 })[0], "--gpu-architecture=compute_90");
}

#[test]
fn the_cache_name_depends_on_all_inputs() {
    let name = |source: &str, options: &[&str], version| {
        let options = options.iter().map(|&option| option.into()).collect();
        Compilation { module: "m", source: source.into(), options, version }.cache_name()
    };
    let first = name("source", &["a"], (13, 0));
    assert_ne!(first, name("source ", &["a"], (13, 0)));
    assert_ne!(first, name("source", &["a"], (13, 1)));
    assert_ne!(first, name("source", &[], (13, 0)));
}

/// An archive with one module. The code of the module is not compressed.
fn archive(module: &str, target: &str) -> &'static Archive {
    let bytes = format!("lockstep-kernels 1\nunit 0 4 4\n{module} {target} 0 4\n\nPTX\0");
    Box::leak(Box::new(Archive::parse(bytes.into_bytes().leak()).unwrap()))
}

const NO_NVRTC: Compiler =
    Compiler { nvrtc: |_| Err(NoNvrtc { why: "no libnvrtc.so.13".into(), is_found: false }), cache: || None };

/// A compiler that supports compute capabilities up to 9.0.
const NVRTC: Compiler = Compiler { nvrtc: |_| Ok(compiler((0, 0), &[60, 80, 90])), ..NO_NVRTC };

#[test]
fn machine_code_comes_before_nvrtc_and_nvrtc_before_ptx() {
    let origin = |target, compiler| match ModuleCode::new(archive("helpers", target), HOPPER, compiler)
        .origin("helpers")
    {
        Ok(Origin::BuiltIn(_)) => "archive".to_owned(),
        Ok(Origin::Compiler(_)) => "NVRTC".into(),
        Ok(Origin::Ptx(..)) => "PTX".into(),
        Err(missing) => missing.to_string(),
    };
    assert_eq!(origin("sm_90", NVRTC), "archive");
    assert_eq!(origin("ptx", NVRTC), "NVRTC");
    assert_eq!(origin("sm_80", NVRTC), "NVRTC");
    assert_eq!(origin("ptx", NO_NVRTC), "PTX");
    let missing = origin("sm_80", NO_NVRTC);
    assert!(missing.contains("and no libnvrtc.so.13") && missing.contains("NVRTC 12 or 13"), "{missing}");
    let volta = Architecture { major: 7, minor: 0 };
    let missing = ModuleCode::new(archive("helpers", "sm_80"), volta, NO_NVRTC).available().unwrap_err();
    assert!(missing.remedy.contains("install NVRTC 12 (libnvrtc.so.12)"), "{missing}");
}

#[test]
fn code_that_the_driver_compiles_is_not_at_hand() {
    let is_at_hand =
        |target| ModuleCode::new(archive("helpers", target), HOPPER, NO_NVRTC).is_at_hand("helpers");
    assert!(is_at_hand("sm_90") && !is_at_hand("ptx") && !is_at_hand("sm_80"));
}

/// A compilation can take minutes. After a failure NVRTC is not tried again, not even for a module without PTX.
#[test]
fn nvrtc_that_failed_is_not_tried_again() {
    const FAILING: Compiler = Compiler { nvrtc: |_| Ok(failing_compiler((12, 2), &[90])), ..NO_NVRTC };
    const UNUSED: Compiler = Compiler { nvrtc: |_| panic!("NVRTC is opened"), ..NO_NVRTC };
    let mut code = ModuleCode::new(archive("expand", "ptx"), HOPPER, FAILING);
    assert!(code.image("expand").is_ok_and(|image| image.kind == "PTX"));
    code.compiler = UNUSED;
    assert!(code.image("expand").is_ok_and(|image| image.kind == "PTX"));
    let missing = code.image("helpers").err().unwrap();
    assert!(missing.reason.contains("NVRTC 12.2 does not compile expand"), "{missing}");
    assert!(!code.has_tensor_bits());
}

/// Only code for compute capability 8.0 to 9.0 contains the products of bits that tensor units compute.
#[test]
fn tensor_units_are_used_with_code_for_this_gpu_only() {
    let has = |target, compiler, major, minor| {
        let architecture = Architecture { major, minor };
        ModuleCode::new(archive("ghash_tensor", target), architecture, compiler).has_tensor_bits()
    };
    assert!(has("sm_80", NO_NVRTC, 8, 6) && has("sm_90", NO_NVRTC, 9, 0));
    assert!(!has("ptx", NO_NVRTC, 9, 0), "compute_60");
    assert!(!has("sm_80", NO_NVRTC, 9, 0), "no code");
    assert!(has("ptx", NVRTC, 8, 0) && has("ptx", NVRTC, 9, 0));
    assert!(!has("ptx", NVRTC, 8, 9), "NVRTC makes PTX of an older architecture");
    assert!(!has("sm_100", NVRTC, 10, 0) && !has("sm_70", NVRTC, 7, 0), "no products of bits");
}

/// Modules compile if NVRTC is installed or LOCKSTEP_NVRTC names the library. The bitsliced modules take minutes
/// and are compiled only if LOCKSTEP_TEST_ALL_KERNELS is set.
#[test]
fn nvrtc_compiles_modules() {
    let Ok(nvrtc) = Nvrtc::open(HOPPER) else {
        let why = format!("NOT TESTED: compilation at run time: no libnvrtc; name it in {ENV_NVRTC}\n");
        let _ = std::io::Write::write_all(&mut std::io::stderr(), why.as_bytes());
        return;
    };
    let modules = SOURCES.iter().filter_map(|(path, _)| path.strip_suffix(".cu")?.rsplit('/').next());
    let all = std::env::var("LOCKSTEP_TEST_ALL_KERNELS").is_ok_and(|kernels| !kernels.starts_with("cpu/"));
    for module in modules.filter(|module| all || ["helpers", "expand", "global_sbox"].contains(module)) {
        let text = source(SOURCES, module).unwrap();
        let code = nvrtc.compile(module, &text, &options(nvrtc.supported(), HOPPER)).unwrap();
        assert!(code.starts_with(b"\x7fELF"), "{module}");
    }
    let ptx =
        nvrtc.compile("helpers", &source(SOURCES, "helpers").unwrap(), &options(&[80], HOPPER)).unwrap();
    assert!(ptx.ends_with(&[0]) && ptx.windows(5).any(|bytes| bytes == b"edges"));
    let error = nvrtc.compile("wrong", "this is no C++", &options(nvrtc.supported(), HOPPER)).unwrap_err();
    assert!(error.contains("error"), "{error}");
}
