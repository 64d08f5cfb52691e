//! Tests of energy counters through NVML. A mock replaces the driver's library.

use std::path::{Path, PathBuf};
use std::process::Command;

use lockstep_cuda::Energy;

/// Three devices: one with a counter, one that is too old, and one that cannot be opened. Each read of the counter adds a
/// joule.
const NVML: &str = r#"
static unsigned long long energy = 5000;
static int devices[3];
#ifndef TOO_OLD
unsigned nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *total) {
    if (device != &devices[0]) return 3;
    *total = energy += 1000;
    return 0;
}
#endif
unsigned nvmlInit_v2(void) { return START; }
unsigned nvmlDeviceGetCount_v2(unsigned *count) { *count = COUNT; return 0; }
unsigned nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    if (index > 1) return 15;
    *device = &devices[FIRST + index];
    return 0;
}
"#;

fn library(name: &str, defines: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, library) = (folder.join(format!("{name}.c")), folder.join(format!("lib{name}.so")));
    std::fs::write(&source, NVML).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).args(defines).arg(&source);
    assert!(compiler.status().unwrap().success());
    library
}

fn refused(library: &Path) -> String {
    match Energy::open_library(library.as_os_str()) {
        Ok(_) => panic!("{} was accepted", library.display()),
        Err(missing) => missing.to_string(),
    }
}

#[test]
fn gpus_with_a_counter_are_found() {
    let library = library("nvml", &["-DSTART=0", "-DCOUNT=3", "-DFIRST=0"]);
    let energy = Energy::open_library(library.as_os_str()).unwrap();
    assert_eq!(energy.devices(), 1);
    let before = energy.millijoules().unwrap();
    assert_eq!(energy.millijoules().unwrap() - before, 1000);
}

#[test]
fn reasons_are_reported() {
    assert!(refused(Path::new("/nonexistent/libnvidia-ml.so.1")).contains("install the NVIDIA driver"));
    let started = refused(&library("nvml-start", &["-DSTART=9", "-DCOUNT=1", "-DFIRST=0"]));
    assert!(started.contains("does not start (error 9)"), "{started}");
    let none = refused(&library("nvml-none", &["-DSTART=0", "-DCOUNT=0", "-DFIRST=0"]));
    assert!(none.contains("no NVIDIA GPU"), "{none}");
    let uncounted = refused(&library("nvml-uncounted", &["-DSTART=0", "-DCOUNT=1", "-DFIRST=1"]));
    assert!(uncounted.contains("no NVIDIA GPU"), "{uncounted}");
    let old = refused(&library("nvml-old", &["-DSTART=0", "-DCOUNT=1", "-DFIRST=0", "-DTOO_OLD"]));
    assert!(old.contains("has no nvmlDeviceGetTotalEnergyConsumption"), "{old}");
}
