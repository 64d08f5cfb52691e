//! Reads the settings from the section of openssl.cnf that activates the provider, and from the environment. The environment
//! takes precedence.
//!
//! A mistake in the configuration file is an error, and the provider does not load. A mistake in the environment is
//! reported, and the variable is ignored. One reason is that the command `lockstep` reads the same variables and has
//! devices that the provider does not have. The other reason is that a variable affects every program that is started
//! with it. Exception: a mistake in `LOCKSTEP_VERIFY` selects `full`, because it must not reduce verification.

mod misspelt;

use std::ffi::{CStr, CString, OsString};

use lockstep::hazmat::shown;
use lockstep::hazmat::verify::Verify;
use lockstep_provider_settings::{NAMES, Settings};

use misspelt::misspelt;

/// The settings that were read.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) settings: Settings,
    /// A copy of the settings in which the device, the kernel and the launch options are those of the configuration file. It
    /// replaces `settings` if the device or the kernel that the environment names does not exist. `None` if it is equal to
    /// `settings`.
    pub(crate) fallback: Option<Settings>,
    /// Warnings about the environment.
    pub(crate) warnings: Vec<String>,
}

impl Found {
    /// Reads all settings. `section` is a function that looks up names in the provider's section of the configuration file, and
    /// returns their values.
    ///
    /// # Errors
    /// A message about a wrong setting in the configuration file.
    pub(crate) fn read(
        section: impl Fn(&[&CStr]) -> Vec<Option<String>>,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Found, String> {
        if let Some((wrong, right)) = misspelt(&section) {
            let names = NAMES.join(", ");
            return Err(format!("there is no setting `{wrong}`, did you mean `{right}`? There are {names}"));
        }
        let mut settings = Settings::default();
        let names = NAMES.map(|name| CString::new(name).expect("no NUL in it"));
        for (name, value) in NAMES.iter().zip(section(&names.each_ref().map(CString::as_c_str))) {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                let why = |expected| format!("setting {name} is `{}`: give {expected}", shown::name(&value));
                settings.set(name, &value).map_err(why)?;
            }
        }
        let configured = settings.clone();
        let mut warnings = Vec::new();
        for name in NAMES {
            let variable = format!("LOCKSTEP_{}", name.to_uppercase());
            let Some(value) = environment(&variable).filter(|value| !value.is_empty()) else { continue };
            // A value that is not UTF-8 is rejected. If its bytes were replaced by other characters, the value could be the
            // name of another file.
            let set = value.to_str().map_or(Err("a value in UTF-8"), |value| settings.set(name, value));
            let Err(expected) = set else { continue };
            let what = value.to_string_lossy();
            let what = shown::name(&what);
            let effect = match name {
                "verify" => {
                    settings.verify = Verify::Full;
                    ", so all results are compared (full)"
                }
                _ => " and is ignored",
            };
            warnings.push(format!("{variable} is `{what}`{effect}: give {expected}"));
        }
        let Settings { device, kernel, launch, .. } = configured;
        let fallback = Settings { device, kernel, launch, ..settings.clone() };
        Ok(Found { fallback: Some(fallback).filter(|fallback| *fallback != settings), settings, warnings })
    }
}

#[cfg(test)]
mod tests;
