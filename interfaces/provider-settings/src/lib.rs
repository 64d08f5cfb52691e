//! The settings of the OpenSSL provider: their names, their values, and the devices that they may name. The provider
//! reads them from `openssl.cnf` and from the environment; `lockstep openssl-conf` writes them to `openssl.cnf`. Both
//! use this crate to check the settings.
#![forbid(unsafe_code)]

use std::num::NonZero;
use std::path::PathBuf;
use std::thread::available_parallelism;

use lockstep::engine::{self, EngineBuilder, MAX_THREADS};
use lockstep::hazmat::names::{DeviceSelector, KernelName};
use lockstep::hazmat::shown;
use lockstep::hazmat::verify::Verify;
use lockstep::{Engine, Error, Result};

/// The names of the settings in the configuration file. The names of the environment variables are in upper case and have the prefix
/// `LOCKSTEP_`.
pub const NAMES: [&str; 9] =
    ["device", "kernel", "launch", "threads", "threshold", "verify", "calibrate", "ahead", "trace"];

/// The backends of the provider that `make provider` builds.
pub const PACKAGED_BACKENDS: &[&str] = &["cpu", "cuda"];

/// The destination of the trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TraceTo {
    /// Standard error.
    Stderr,
    /// Standard output.
    Stdout,
    /// The file with this absolute path. The trace is appended to the file.
    File(PathBuf),
}

/// The values of all settings. A setting that is not set has its default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// The name of a device, or `auto` for the planner's choice. `None` means the CPU, or the planner's choice if `kernel` is set.
    pub device: Option<String>,
    /// The name of a kernel; `None` for the planner's choice.
    pub kernel: Option<String>,
    /// Launch options of the device, such as `threads=256`; `None` for the defaults of the device.
    pub launch: Option<String>,
    /// Number of CPU threads for large calls. `None` means the number of threads that this process can run at the same time.
    pub threads: Option<usize>,
    /// The planner gets only calls with at least this number of bytes. `None` means a default that depends on the device.
    pub threshold: Option<usize>,
    /// How the results of devices other than the CPU are verified.
    pub verify: Verify,
    /// True if the planner may measure operations by itself and store the measurements in the user's cache directory.
    pub calibrate: bool,
    /// True if keystream is computed ahead for consecutive small updates. `None` means that it is computed ahead if the processor has no
    /// AES instructions, or if a device is chosen by name.
    pub ahead: Option<bool>,
    /// The destination of the trace.
    pub trace: Option<TraceTo>,
}

impl Settings {
    /// Sets the setting with this name, which is one of [`NAMES`]. `auto` selects the default, with two exceptions: for
    /// the device it selects the planner's choice, and the trace does not accept `auto`. The names of devices and
    /// kernels are checked only by [`Settings::engine`].
    ///
    /// # Errors
    /// A description of the values that the setting accepts. In messages it follows the word "give".
    ///
    /// # Panics
    /// For a name that is not one of [`NAMES`].
    pub fn set(&mut self, name: &str, value: &str) -> std::result::Result<(), &'static str> {
        let value = value.trim();
        let text = Some(value).filter(|value| *value != "auto" || name == "trace");
        match name {
            "device" => self.device = Some(value.into()),
            "kernel" => self.kernel = text.map(String::from),
            "launch" => self.launch = text.map(String::from),
            "threads" => {
                let number = |text: &str| text.parse().ok().filter(|n| (1..=MAX_THREADS).contains(n));
                self.threads = parsed(text, number, "a number of threads from 1 to 1024, or auto")?;
            }
            "threshold" => {
                self.threshold =
                    parsed(text, parse_size, "a number of bytes, such as 65536, 64K or 1M, or auto")?;
            }
            "verify" => {
                self.verify =
                    parsed(text, |text| text.parse().ok(), "off, sample or full")?.unwrap_or_default();
            }
            "calibrate" => self.calibrate = parsed(text, on_or_off, "on, off or auto")?.unwrap_or_default(),
            "ahead" => self.ahead = parsed(text, on_or_off, "on, off or auto")?,
            "trace" => {
                self.trace = parsed(text, parse_trace, "off, stderr, stdout or the absolute path of a file")?
                    .flatten();
            }
            _ => panic!("{name} is not a setting"),
        }
        Ok(())
    }

    /// Opens the devices that these settings choose. Only devices of the given backends can be chosen, and environment variables have
    /// no effect.
    ///
    /// # Errors
    /// [`Error::Setting`] for a device or a kernel of another backend. In this case no device has been opened. [`Error::Core`] for
    /// devices and kernels that do not exist.
    pub fn engine(&self, backends: &'static [&'static str]) -> Result<Engine> {
        self.builder(backends)?.build()
    }

    /// Does the same as [`Settings::engine`], but returns `None` if opening the devices would start a driver
    /// ([`EngineBuilder::build_without_driver`]).
    ///
    /// # Errors
    /// The errors of [`Settings::engine`].
    pub fn engine_without_driver(&self, backends: &'static [&'static str]) -> Result<Option<Engine>> {
        self.builder(backends)?.build_without_driver()
    }

    fn builder(&self, backends: &'static [&'static str]) -> Result<EngineBuilder> {
        let has = |backend: &str| backends.contains(&backend) || engine::is_registered(backend);
        let refuse = |name, value: &str, expected| {
            Err(Error::Setting { name, value: shown::name(value).into(), expected })
        };
        let is_device = |name: &str| name == "auto" || has(DeviceSelector::from(name).backend());
        if let Some(device) = self.device.as_deref().filter(|name| !is_device(name)) {
            let other = "give a device that the provider has, such as cpu or cuda:0, or auto";
            return refuse("device", device, engine::simulated_elsewhere(&device.into()).unwrap_or(other));
        }
        if let Some(kernel) = self.kernel.as_deref().filter(|name| !has(KernelName::from(*name).backend())) {
            return refuse(
                "kernel",
                kernel,
                "give a kernel that the provider has, such as cpu/soft, or auto",
            );
        }
        let threads = || available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
        // If only a kernel is set, the device is `auto`, and the name of the kernel selects the backend.
        let device = self.device.as_deref().unwrap_or(if self.kernel.is_some() { "auto" } else { "cpu" });
        let builder = self.launch.iter().fold(Engine::builder(), EngineBuilder::launch);
        Ok(builder
            .backends(backends)
            .device(device)
            .kernel(self.kernel.as_deref().unwrap_or("auto"))
            .threads(self.threads.unwrap_or_else(threads))
            .verify(self.verify)
            .calibrate_automatically(self.calibrate))
    }
}

fn parsed<T>(
    text: Option<&str>,
    parse: impl Fn(&str) -> Option<T>,
    expected: &'static str,
) -> std::result::Result<Option<T>, &'static str> {
    text.map(|text| parse(text).ok_or(expected)).transpose()
}

fn on_or_off(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// Parses the destination of the trace. A file must have an absolute path, since the working directory of the program
/// is unknown when the configuration is written.
fn parse_trace(text: &str) -> Option<Option<TraceTo>> {
    match text {
        "off" => Some(None),
        "stderr" | "/dev/stderr" => Some(Some(TraceTo::Stderr)),
        "stdout" | "/dev/stdout" => Some(Some(TraceTo::Stdout)),
        _ => text.starts_with('/').then(|| Some(TraceTo::File(text.into()))),
    }
}

/// Parses a number of bytes, with an optional suffix K, M or G for powers of 1024.
fn parse_size(text: &str) -> Option<usize> {
    let shifts = [(['k', 'K'], 10), (['m', 'M'], 20), (['g', 'G'], 30)];
    let suffixed = |(suffix, shift)| Some((text.strip_suffix(suffix)?, shift));
    let (digits, shift) = shifts.into_iter().find_map(suffixed).unwrap_or((text, 0));
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests;
