//! What is configured: by the section of openssl.cnf that activates the provider, and by the environment, which comes
//! first.

use std::ffi::CStr;
use std::path::PathBuf;

use lockstep::hazmat::verify::Verify;

/// Whether keystream is made ahead for runs of small updates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AheadSetting {
    /// Where the processor has no AES instructions, or a device is chosen by name.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// Where the trace goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TraceTo {
    /// Standard error.
    Stderr,
    /// Appended to a file.
    File(PathBuf),
}

/// All settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Settings {
    /// A device by name.
    pub(crate) device: Option<String>,
    /// A kernel by name.
    pub(crate) kernel: Option<String>,
    /// CPU threads for large pieces.
    pub(crate) threads: Option<usize>,
    /// Bytes in one call from which on the planner chooses.
    pub(crate) threshold: Option<usize>,
    /// How results are checked.
    pub(crate) verify: Verify,
    /// Whether keystream is made ahead.
    pub(crate) ahead: AheadSetting,
    /// Where the trace goes.
    pub(crate) trace: Option<TraceTo>,
}

/// The names in the configuration file. In the environment they are upper case, after `LOCKSTEP_`.
const NAMES: [&CStr; 7] = [c"device", c"kernel", c"threads", c"threshold", c"verify", c"ahead", c"trace"];

impl Settings {
    /// Reads all settings.
    ///
    /// # Errors
    /// What is wrong with which setting, for people.
    pub(crate) fn read(
        config: impl Fn(&'static CStr) -> Option<String>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Settings, String> {
        let [device, kernel, threads, threshold, verify, ahead, trace] = NAMES.map(|name| {
            let variable = format!("LOCKSTEP_{}", name.to_string_lossy().to_uppercase());
            let from_environment = environment(&variable).filter(|value| !value.is_empty());
            match from_environment {
                Some(value) => Value { value: Some(value), origin: variable },
                None => {
                    let origin = format!("setting {}", name.to_string_lossy());
                    Value { value: config(name).filter(|value| !value.is_empty()), origin }
                }
            }
        });
        Ok(Settings {
            device: device.unless_auto(),
            kernel: kernel.unless_auto(),
            threads: threads.parse("a number of threads from 1 to 1024", |text| {
                text.parse().ok().filter(|n| (1..=1024).contains(n))
            })?,
            threshold: threshold.parse("a number of bytes, such as 65536, 64K or 1M", parse_size)?,
            verify: verify.parse("off, sample or full", |text| text.parse().ok())?.unwrap_or_default(),
            ahead: ahead
                .parse("on, off or auto", |text| match text {
                    "on" => Some(AheadSetting::On),
                    "off" => Some(AheadSetting::Off),
                    _ => None,
                })?
                .unwrap_or(AheadSetting::Auto),
            trace: trace.value.map(|value| match value.as_str() {
                "stderr" => TraceTo::Stderr,
                _ => TraceTo::File(value.into()),
            }),
        })
    }
}

/// A value as it was found.
struct Value {
    value: Option<String>,
    origin: String,
}

impl Value {
    fn unless_auto(self) -> Option<String> {
        self.value.filter(|value| value != "auto")
    }

    fn parse<T>(self, expected: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, String> {
        let Some(value) = self.value.filter(|value| value != "auto") else { return Ok(None) };
        match parse(value.trim()) {
            Some(parsed) => Ok(Some(parsed)),
            None => Err(format!("{} is `{value}`: give {expected}", self.origin)),
        }
    }
}

/// Bytes, with an optional K, M or G for powers of 1024.
fn parse_size(text: &str) -> Option<usize> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 10),
        b'M' | b'm' => (&text[..text.len() - 1], 20),
        b'G' | b'g' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(config: &[(&str, &str)], environment: &[(&str, &str)]) -> Result<Settings, String> {
        let find = |list: &[(&str, &str)], name: &str| {
            list.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_string())
        };
        Settings::read(|name| find(config, name.to_str().unwrap()), |name| find(environment, name))
    }

    #[test]
    fn nothing_said_means_auto() {
        let settings = read(&[], &[]).unwrap();
        assert_eq!(settings.device, None);
        assert_eq!(settings.threshold, None);
        assert_eq!((settings.verify, settings.ahead), (Verify::Sample, AheadSetting::Auto));
        let auto: Vec<(&str, &str)> = ["device", "kernel", "threads", "threshold", "ahead"]
            .into_iter()
            .map(|name| (name, "auto"))
            .collect();
        assert_eq!(read(&auto, &[]).unwrap(), settings);
    }

    #[test]
    fn the_environment_comes_before_the_file() {
        let settings = read(
            &[("device", "cpu"), ("threads", "3"), ("threshold", "1M"), ("trace", "stderr")],
            &[("LOCKSTEP_THREADS", "5"), ("LOCKSTEP_DEVICE", ""), ("LOCKSTEP_TRACE", "/tmp/t")],
        )
        .unwrap();
        assert_eq!(settings.device.as_deref(), Some("cpu"));
        assert_eq!(settings.threads, Some(5));
        assert_eq!(settings.threshold, Some(1 << 20));
        assert_eq!(settings.trace, Some(TraceTo::File("/tmp/t".into())));
    }

    #[test]
    fn bad_values_are_named_with_where_they_come_from() {
        let error = read(&[("threads", "0")], &[]).unwrap_err();
        assert_eq!(error, "setting threads is `0`: give a number of threads from 1 to 1024");
        for (name, bad) in [
            ("THRESHOLD", "lots"),
            ("THRESHOLD", "-1"),
            ("THRESHOLD", "99999999999G"),
            ("THREADS", "1025"),
            ("VERIFY", "yes"),
            ("AHEAD", "1"),
        ] {
            let variable = format!("LOCKSTEP_{name}");
            let error = read(&[], &[(&variable, bad)]).unwrap_err();
            assert!(error.starts_with(&format!("{variable} is `{bad}`: give ")), "{error}");
        }
    }
}
