//! GPUs by wgpu: missing ones, and a software device.

use crate::common::*;

/// Runs a command as on a machine without any driver.
fn run_without_drivers(folder: &Folder, args: &[&str]) -> Ended {
    let mut command = folder.command(args);
    for name in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES", "__EGL_VENDOR_LIBRARY_FILENAMES"] {
        command.env(name, "/nonexistent");
    }
    command.output().unwrap().into()
}

#[test]
fn a_device_that_does_not_exist() {
    let folder = Folder::with_keys();
    folder.write("plain", data(1000));
    let before = folder.names();
    let args = ["encrypt", "-k", "key", "plain", "-o", "out", "--device"];
    for device in ["wgpu:7", "wgpu:abacus", "wgpu:0,7"] {
        folder.run([&args[..], &[device]].concat()).failed(2, &format!("no device `{device}`"));
    }
    let ended = run_without_drivers(&folder, &[&args[..], &["wgpu:0"]].concat());
    let ended = ended.failed(2, "no Vulkan or OpenGL ES device: install");
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert_eq!(folder.names(), before);
    // Without the option there is no message.
    assert_eq!(run_without_drivers(&folder, &args[..6]).succeeded().stderr, "");
    let report = run_without_drivers(&folder, &["devices"]).succeeded();
    let lines: Vec<_> = report.text().lines().filter(|line| line.starts_with("wgpu")).collect();
    assert!(matches!(lines[..], [line] if line.starts_with("wgpu: not here: ")), "{lines:?}");
    assert_eq!(report.stderr, "");
}

#[test]
fn the_software_device() {
    let folder = Folder::with_keys();
    let report = folder.run(["devices", "--json"]).succeeded().json();
    let devices = report["devices"].as_array().unwrap();
    let Some(device) = devices.iter().find(|device| device["name"] == "wgpu:software") else {
        assert!(std::env::var_os("CI").is_none(), "no wgpu:software: tools/setup.sh gpus installs it");
        eprintln!("NOT TESTED: there is no wgpu:software on this machine");
        return;
    };
    assert_eq!((&device["simulated"], &device["by_name_only"]), (&false.into(), &true.into()));
    let plain = data(5 * CHUNK + 1);
    folder.write("plain", &plain);
    folder.run(["encrypt", "-k", "key", "plain", "-o", "sealed", "--device", "wgpu:software"]).succeeded();
    folder.run(["decrypt", "-k", "key", "sealed", "-o", "by_cpu", "--device", "cpu"]).succeeded();
    assert!(folder.read("by_cpu") == plain);
    folder.run(["decrypt", "-k", "key", "sealed", "-o", "by_gpu", "--device", "wgpu:software"]).succeeded();
    assert!(folder.read("by_gpu") == plain);
    let mut damaged = folder.read("sealed");
    damaged[HEADER + 3 * ENCRYPTED + 5] ^= 1;
    folder.write("damaged", damaged);
    folder.run(["decrypt", "-k", "key", "damaged", "-o", "no", "--device", "wgpu:software"]).failed(1, "");
    assert!(!folder.has("no"));
}
