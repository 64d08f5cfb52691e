//! What is configured: by the section of openssl.cnf that activates the provider, and by the environment, which comes
//! first.
//!
//! A mistake in the configuration file is an error, and the provider does not load. A mistake in the environment is not:
//! the command reads the same variables and has devices that the provider does not have, and a variable reaches every
//! program that is started with it. It is reported, and the variable is ignored. `LOCKSTEP_VERIFY` is the exception: a mistake
//! in it must not reduce checking, and means `full`.

mod misspelt;

use std::ffi::{CStr, OsStr, OsString};

use lockstep::hazmat::verify::Verify;
use lockstep::provider_settings::{NAMES, Settings};

use misspelt::misspelt;

/// The provider's section of the configuration file.
pub(crate) trait Section {
    /// The value that a name has.
    fn value(&self, name: &CStr) -> Option<String>;

    /// One of these names that has a value, by its place in the list. OpenSSL has no list of the names of a section: it
    /// finds names that it is given.
    fn any_of(&self, names: &[&CStr]) -> Option<usize>;
}

/// The settings as they were found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) settings: Settings,
    /// The settings without the device and the kernel that the environment names, if it names any: for when there are no
    /// such ones.
    pub(crate) without: Option<Settings>,
    /// What is wrong with the environment.
    pub(crate) warnings: Vec<String>,
}

impl Found {
    /// Reads all settings.
    ///
    /// # Errors
    /// What is wrong in the configuration file, in words.
    pub(crate) fn read(
        section: &impl Section,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Found, String> {
        if let Some((wrong, right)) = misspelt(section) {
            let names = NAMES.join(", ");
            return Err(format!("there is no setting `{wrong}`, did you mean `{right}`? There are {names}"));
        }
        let mut settings = Settings::default();
        for name in NAMES {
            let key = std::ffi::CString::new(name).expect("no NUL in it");
            if let Some(value) = section.value(&key).filter(|value| !value.is_empty()) {
                let set = settings.set(name, &value);
                set.map_err(|expected| format!("setting {name} is `{value}`: give {expected}"))?;
            }
        }
        let configured = settings.clone();
        let mut warnings = Vec::new();
        for name in NAMES {
            let variable = variable(name);
            let Some(value) = environment(&variable).filter(|value| !value.is_empty()) else { continue };
            let Err(why) = set_from(&mut settings, name, &value) else { continue };
            let what = value.to_string_lossy();
            if name == "verify" {
                settings.verify = Verify::Full;
                warnings.push(format!("{variable} is `{what}`, so all results are compared (full): {why}"));
            } else {
                warnings.push(format!("{variable} is `{what}` and is ignored: {why}"));
            }
        }
        let without = Settings { device: configured.device, kernel: configured.kernel, ..settings.clone() };
        Ok(Found { without: Some(without).filter(|without| *without != settings), settings, warnings })
    }
}

/// Sets a setting to a value of the environment.
///
/// # Errors
/// What to do about it.
fn set_from(settings: &mut Settings, name: &str, value: &OsStr) -> Result<(), String> {
    // Another value must not be made of it: it could be the name of another file.
    let value = value.to_str().ok_or("give a value in UTF-8")?;
    settings.set(name, value).map_err(|expected| format!("give {expected}"))
}

/// The name of a setting in the environment.
fn variable(name: &str) -> String {
    format!("LOCKSTEP_{}", name.to_uppercase())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use lockstep::provider_settings::TraceTo;

    use super::*;

    impl Section for [(&str, &str)] {
        fn value(&self, name: &CStr) -> Option<String> {
            let found = self.iter().find(|(known, _)| known.as_bytes() == name.to_bytes());
            found.map(|(_, value)| (*value).into())
        }

        fn any_of(&self, names: &[&CStr]) -> Option<usize> {
            names.iter().position(|name| self.value(name).is_some())
        }
    }

    impl<const N: usize> Section for [(&str, &str); N] {
        fn value(&self, name: &CStr) -> Option<String> {
            self.as_slice().value(name)
        }

        fn any_of(&self, names: &[&CStr]) -> Option<usize> {
            self.as_slice().any_of(names)
        }
    }

    fn read<const N: usize>(
        section: [(&str, &str); N],
        environment: &[(&str, &str)],
    ) -> Result<Found, String> {
        let find = |name: &str| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into())
        };
        Found::read(&section, find)
    }

    #[test]
    fn nothing_is_set_by_default() {
        let found = read([("activate", "1"), ("module", "/lib/lockstep.so")], &[]).unwrap();
        assert_eq!(found.settings, Settings::default());
        assert_eq!((found.without, found.warnings), (None, vec![]));
        let empty = read([("threads", "")], &[("LOCKSTEP_DEVICE", "")]).unwrap();
        assert_eq!(empty.settings, Settings::default());
    }

    #[test]
    fn the_environment_comes_before_the_file() {
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
        assert_eq!(found.without, None);
    }

    #[test]
    fn bad_values_of_the_file_are_errors() {
        let error = read([("threads", "0")], &[]).unwrap_err();
        assert_eq!(error, "setting threads is `0`: give a number of threads from 1 to 1024, or auto");
        // Also where the environment has another value.
        assert!(read([("verify", "yes")], &[("LOCKSTEP_VERIFY", "full")]).is_err());
    }

    #[test]
    fn bad_values_of_the_environment_are_warned_of_and_those_of_the_file_hold() {
        let found =
            read([("threads", "3")], &[("LOCKSTEP_THREADS", "many"), ("LOCKSTEP_AHEAD", "1")]).unwrap();
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
            let warning =
                format!("LOCKSTEP_VERIFY is `{value}`, so all results are compared (full): give off, ");
            assert!(found.warnings.len() == 1 && found.warnings[0].starts_with(&warning), "{found:?}");
        }
        let found = read([("verify", "full")], &[("LOCKSTEP_VERIFY", "off")]).unwrap();
        assert_eq!(found.settings.verify, Verify::Off);
    }

    #[test]
    fn a_value_that_is_not_utf_8_is_not_followed() {
        let environment =
            |name: &str| (name == "LOCKSTEP_TRACE").then(|| OsString::from_vec(b"/tmp/\xff".to_vec()));
        let found = Found::read(&[("trace", "stderr")], environment).unwrap();
        assert_eq!(found.settings.trace, Some(TraceTo::Stderr));
        assert_eq!(
            found.warnings,
            ["LOCKSTEP_TRACE is `/tmp/\u{fffd}` and is ignored: give a value in UTF-8"]
        );
    }

    #[test]
    fn device_and_kernel_of_the_environment_can_be_done_without() {
        let found = read([("device", "cpu")], &[("LOCKSTEP_DEVICE", "wgpu:0")]).unwrap();
        assert_eq!(found.settings.device.as_deref(), Some("wgpu:0"));
        assert_eq!(found.without.unwrap().device.as_deref(), Some("cpu"));
        let found = read([], &[("LOCKSTEP_KERNEL", "cpu/abacus"), ("LOCKSTEP_THREADS", "2")]).unwrap();
        let without = found.without.unwrap();
        assert_eq!((without.kernel, without.threads), (None, Some(2)));
    }

    #[test]
    fn names_that_are_misspelt_are_errors() {
        let error = read([("activate", "1"), ("treads", "4")], &[]).unwrap_err();
        assert_eq!(
            error,
            "there is no setting `treads`, did you mean `threads`? There are device, kernel, threads, threshold, \
             verify, calibrate, ahead, trace"
        );
    }
}
