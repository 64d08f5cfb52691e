
use super::*;

fn set(name: &str, value: &str) -> std::result::Result<Settings, &'static str> {
    let mut settings = Settings::default();
    settings.set(name, value).map(|()| settings)
}

#[test]
fn auto_is_the_default() {
    for name in NAMES.iter().filter(|name| !["device", "trace"].contains(name)) {
        assert_eq!(set(name, "auto").unwrap(), Settings::default(), "{name}");
    }
    assert_eq!(set("trace", "off").unwrap(), Settings::default());
}

#[test]
fn the_default_device_is_the_cpu() {
    let engine = Settings::default().engine(PACKAGED_BACKENDS).unwrap();
    let names: Vec<_> = engine.devices().iter().map(|device| device.id().to_string()).collect();
    assert_eq!(names, ["cpu"]);
    assert_eq!(set("device", "auto").unwrap().device.as_deref(), Some("auto"));
    assert!(set("device", "auto").unwrap().engine(PACKAGED_BACKENDS).is_ok());
}

#[test]
fn values_are_parsed() {
    assert_eq!(set("threads", " 5").unwrap().threads, Some(5));
    assert_eq!(set("threshold", "64k").unwrap().threshold, Some(65536));
    assert_eq!(set("verify", "full").unwrap().verify, Verify::Full);
    assert!(set("calibrate", "on").unwrap().calibrate && !set("calibrate", "off").unwrap().calibrate);
    assert_eq!(set("ahead", "off").unwrap().ahead, Some(false));
    let trace = |value| set("trace", value).unwrap().trace.unwrap();
    assert_eq!(trace("stdout"), TraceTo::Stdout);
    assert_eq!(trace("/dev/stderr"), TraceTo::Stderr);
    assert_eq!(trace("/var/log/a"), TraceTo::File("/var/log/a".into()));
}

#[test]
fn bad_values_are_refused_with_the_valid_ones() {
    for (name, value) in [
        ("threads", "0"),
        ("threads", "1025"),
        ("threshold", "lots"),
        ("threshold", "-1"),
        ("threshold", "99999999999G"),
        ("verify", "yes"),
        ("calibrate", "1"),
        ("ahead", "1"),
        ("trace", "auto"),
        ("trace", "stdin"),
        ("trace", "folder/trace"),
    ] {
        assert!(set(name, value).is_err(), "{name} = {value}");
    }
    assert!(set("trace", "trace.txt").unwrap_err().contains("absolute path"));
}

#[test]
fn only_devices_of_the_provider_are_accepted() {
    let engine = |device: &str| {
        Settings { device: Some(device.into()), ..Settings::default() }.engine(PACKAGED_BACKENDS)
    };
    assert!(engine("cpu").is_ok());
    for (name, expected) in [
        ("wgpu:0", "give a device that "),
        ("spu", "simulated devices are in lockstep-lab "),
        ("abacus", "give a device that "),
    ] {
        let error = engine(name).unwrap_err().to_string();
        assert!(error.starts_with(&format!("device is `{name}`: {expected}")), "{error}");
    }
    // The provider has this backend, but the device does not exist.
    assert!(engine("cpu:77").unwrap_err().to_string().contains("no device `cpu:77`"));
    let kernel =
        |name: &str| Settings { kernel: Some(name.into()), ..Settings::default() }.engine(PACKAGED_BACKENDS);
    assert!(kernel("cpu/soft").is_ok());
    assert!(kernel("wgpu/bitslice").unwrap_err().to_string().contains("kernel is `wgpu/bitslice`"));
    assert!(kernel("cpu/abacus").unwrap_err().to_string().contains("no kernel `cpu/abacus`"));
}
