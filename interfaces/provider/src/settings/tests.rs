
use std::os::unix::ffi::OsStringExt;

use lockstep_provider_settings::TraceTo;

use super::*;

fn values_of(section: &[(&str, &str)]) -> impl Fn(&[&CStr]) -> Vec<Option<String>> {
    |names| {
        let value = |name: &&CStr| section.iter().find(|(known, _)| known.as_bytes() == name.to_bytes());
        names.iter().map(|name| value(name).map(|(_, value)| (*value).into())).collect()
    }
}

fn read<const N: usize>(section: [(&str, &str); N], environment: &[(&str, &str)]) -> Result<Found, String> {
    let find =
        |name: &str| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into());
    Found::read(values_of(&section), find)
}

#[test]
fn nothing_is_set_by_default() {
    let found = read([("activate", "1"), ("module", "/lib/lockstep.so")], &[]).unwrap();
    assert_eq!(found.settings, Settings::default());
    assert_eq!((found.fallback, found.warnings), (None, vec![]));
    let empty = read([("threads", "")], &[("LOCKSTEP_DEVICE", "")]).unwrap();
    assert_eq!(empty.settings, Settings::default());
}

#[test]
fn the_environment_overrides_the_file() {
    let found = read(
        [("device", "cpu"), ("threads", "3"), ("threshold", "1M"), ("trace", "stderr")],
        &[("LOCKSTEP_THREADS", "5"), ("LOCKSTEP_DEVICE", ""), ("LOCKSTEP_TRACE", "/tmp/t")],
    )
    .unwrap();
    let settings = found.settings;
    assert_eq!(settings.device.as_deref(), Some("cpu"));
    assert_eq!(settings.threads, Some(5));
    assert_eq!(settings.threshold, Some(1 << 20));
    assert_eq!(settings.verify, Verify::Sample);
    assert_eq!(settings.trace, Some(TraceTo::File("/tmp/t".into())));
    assert_eq!(found.fallback, None);
}

#[test]
fn bad_values_of_the_file_are_errors() {
    let error = read([("threads", "0")], &[]).unwrap_err();
    assert_eq!(error, "setting threads is `0`: give a number of threads from 1 to 1024, or auto");
    // A mistake in the configuration file is an error even if the environment has another value.
    assert!(read([("verify", "yes")], &[("LOCKSTEP_VERIFY", "full")]).is_err());
}

#[test]
fn a_key_in_place_of_a_value_is_not_shown() {
    // Names of devices and kernels, and launch options, are checked when the engine is built.
    let key = "000102030405060708090a0b0c0d0e0f";
    let names = NAMES.into_iter().filter(|name| !["device", "kernel", "launch"].contains(name));
    for name in names {
        let error = read([(name, key)], &[]).unwrap_err();
        assert!(error.starts_with(&format!("setting {name} is `(a key, not shown)`: give ")), "{error}");
        let variable = format!("LOCKSTEP_{}", name.to_uppercase());
        let warnings = read([], &[(&variable, key)]).unwrap().warnings;
        assert!(warnings[0].contains("(a key, not shown)") && !warnings[0].contains(key), "{warnings:?}");
    }
}

#[test]
fn bad_values_of_the_environment_cause_warnings_and_the_file_applies() {
    let found = read([("threads", "3")], &[("LOCKSTEP_THREADS", "many"), ("LOCKSTEP_AHEAD", "1")]).unwrap();
    assert_eq!(found.settings.threads, Some(3));
    assert_eq!(found.warnings.len(), 2);
    let [threads, ahead] = [&found.warnings[0], &found.warnings[1]];
    assert!(threads.starts_with("LOCKSTEP_THREADS is `many` and is ignored: give "), "{threads}");
    assert!(ahead.starts_with("LOCKSTEP_AHEAD is `1` and is ignored: give "), "{ahead}");
}

#[test]
fn a_mistake_in_the_environment_does_not_reduce_checking() {
    for (configured, value) in [("off", "ful"), ("sample", "FULL"), ("off", "1")] {
        let found = read([("verify", configured)], &[("LOCKSTEP_VERIFY", value)]).unwrap();
        assert_eq!(found.settings.verify, Verify::Full);
        let warning = format!("LOCKSTEP_VERIFY is `{value}`, so all results are compared (full): give off, ");
        assert!(found.warnings.len() == 1 && found.warnings[0].starts_with(&warning), "{found:?}");
    }
    let found = read([("verify", "full")], &[("LOCKSTEP_VERIFY", "off")]).unwrap();
    assert_eq!(found.settings.verify, Verify::Off);
}

#[test]
fn a_value_that_is_not_utf_8_is_ignored() {
    let environment =
        |name: &str| (name == "LOCKSTEP_TRACE").then(|| OsString::from_vec(b"/tmp/\xff".to_vec()));
    let found = Found::read(values_of(&[("trace", "stderr")]), environment).unwrap();
    assert_eq!(found.settings.trace, Some(TraceTo::Stderr));
    assert_eq!(found.warnings, ["LOCKSTEP_TRACE is `/tmp/\u{fffd}` and is ignored: give a value in UTF-8"]);
}

#[test]
fn settings_without_device_and_kernel_of_the_environment_are_kept() {
    let found = read([("device", "cpu")], &[("LOCKSTEP_DEVICE", "wgpu:0")]).unwrap();
    assert_eq!(found.settings.device.as_deref(), Some("wgpu:0"));
    assert_eq!(found.fallback.unwrap().device.as_deref(), Some("cpu"));
    let found = read([], &[("LOCKSTEP_KERNEL", "cpu/abacus"), ("LOCKSTEP_THREADS", "2")]).unwrap();
    let fallback = found.fallback.unwrap();
    assert_eq!((fallback.kernel, fallback.threads), (None, Some(2)));
}

#[test]
fn misspelt_names_are_errors() {
    let error = read([("activate", "1"), ("treads", "4")], &[]).unwrap_err();
    assert_eq!(
        error,
        "there is no setting `treads`, did you mean `threads`? There are device, kernel, launch, threads, threshold, \
             verify, calibrate, ahead, trace"
    );
}
