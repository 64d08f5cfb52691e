//! GPUs through wgpu and OpenGL: machines without GPUs, and software devices.

use std::path::Path;

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
    // Without `--device`, the command prints no message about missing devices.
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
        assert!(std::env::var_os("CI").is_none(), "no wgpu:software: tools/setup.sh tests installs it");
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

/// The arguments of `cipher` on the software device of OpenGL.
const BY_OPENGL: [&str; 10] = [
    "cipher",
    "-m",
    "ctr",
    "--key-hex",
    "000102030405060708090a0b0c0d0e0f",
    "--iv-hex",
    "ffffffffffffffffffffffffffffffff",
    "--device",
    "opengl:software",
    "plain",
];

#[test]
fn egl_without_opengl() {
    let folder = Folder::new();
    if !has_software_opengl(&folder) {
        return;
    }
    folder.write("plain", data(1000));
    for (name, value, expected) in [
        // The four cases are: no library of a vendor, no driver, a driver that does not exist, and a driver without OpenGL 3.3.
        ("__EGL_VENDOR_LIBRARY_FILENAMES", "/nonexistent", "libEGL has no display for it: install"),
        ("LIBGL_DRIVERS_PATH", "/nonexistent", "its driver does not start: "),
        ("GALLIUM_DRIVER", "abacus", "its driver does not start: "),
        ("MESA_GLES_VERSION_OVERRIDE", "2.0", "neither OpenGL 3.3 nor OpenGL ES 3.0: update the driver"),
    ] {
        if name.starts_with("__EGL")
            && ["/dev/dri", "/dev/nvidiactl"].iter().any(|path| Path::new(path).exists())
        {
            // In this case EGL lists no device. On a machine that may have a GPU, the command treats the missing device as that
            // GPU, so it lists no software device.
            continue;
        }
        let mut command = folder.command(BY_OPENGL.into_iter().chain(["-o", "out"]));
        command.env(name, value);
        if name.starts_with("MESA_GLES") {
            command.env("MESA_GL_VERSION_OVERRIDE", "2.1");
        }
        let ended = Ended::from(command.output().unwrap());
        assert_eq!((ended.code, folder.names()), (2, vec!["plain".to_owned()]), "{name}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{name}: {}", ended.stderr);
    }
}

#[test]
fn processes_that_use_the_same_device() {
    let folder = Folder::new();
    if !has_software_opengl(&folder) {
        return;
    }
    folder.write("plain", data(3_000_000));
    let mut by_cpu = BY_OPENGL.map(String::from);
    by_cpu[8] = "cpu".into();
    let expected = folder.run(by_cpu).succeeded().stdout;
    let start = |number| {
        let output = format!("out{number}");
        folder.command(BY_OPENGL.into_iter().chain(["-o", &output])).spawn().unwrap()
    };
    let children: Vec<_> = (0..3).map(start).collect();
    children.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    (0..3).for_each(|number| assert!(folder.read(&format!("out{number}")) == expected));
}
