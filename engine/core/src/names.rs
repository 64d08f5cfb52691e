//! Names of backends, devices and kernels.
//!
//! | name | written as | type |
//! |---|---|---|
//! | device that exists | `cpu`, `cuda:0`, `cuda:emu` | [`DeviceId`] |
//! | devices that a user selects | also `cuda:0,1`, `cuda:all` | [`DeviceSelector`] |
//! | kernel that a user selects | `cpu/vaes512` | [`KernelName`] |
//!
//! Backends declare their own names as constants. The text that a user writes is parsed once, into a [`DeviceSelector`] or a
//! [`KernelName`]. Parsing never fails, because the existing devices are known only after discovery. The error for an
//! unknown name lists the existing names.

use std::fmt;

/// The name of a backend. The former name `vulkan` still selects `wgpu`.
fn unaliased(backend: &str) -> &str {
    if backend == "vulkan" { "wgpu" } else { backend }
}

/// The name of a device that exists: `cpu`, `cuda:0`, `cuda:emu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeviceId {
    /// The backend's name.
    pub backend: &'static str,
    /// The device within the backend.
    pub unit: Unit,
}

/// Identifies a device of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// The backend has one device at most.
    Only,
    /// One of several devices, identified by a number.
    Number(u16),
    /// A special device, such as an emulator.
    Named(&'static str),
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit {
            Unit::Only => f.write_str(self.backend),
            Unit::Number(number) => write!(f, "{}:{number}", self.backend),
            Unit::Named(name) => write!(f, "{}:{name}", self.backend),
        }
    }
}

/// The devices that a user selects: one (`cpu`, `cuda:0`, `wgpu:software`) or several of a backend (`cuda:0,1`, `cuda:all`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeviceSelector {
    backend: String,
    unit: Option<String>,
}

impl DeviceSelector {
    /// The name of the backend: `cpu`, `cuda`, `wgpu`, `opengl`. Aliases are replaced.
    pub fn backend(&self) -> &str {
        &self.backend
    }

    /// The part after the colon: a number, a name, a list or `all`.
    pub fn unit(&self) -> Option<&str> {
        self.unit.as_deref()
    }

    /// The part after the colon as a number, if it is a number without leading zeros.
    pub fn number(&self) -> Option<u16> {
        let unit = self.unit()?;
        unit.parse().ok().filter(|number: &u16| number.to_string() == unit)
    }

    /// True for all real devices of the backend: `cuda:all`.
    pub fn is_all(&self) -> bool {
        self.unit() == Some("all")
    }

    /// The selectors of a list: `cuda:0` and `cuda:1` for `cuda:0,1`. Empty if no unit is given.
    pub fn each(&self) -> impl Iterator<Item = DeviceSelector> {
        let units = self.unit().into_iter().flat_map(|unit| unit.split(','));
        units.map(|unit| DeviceSelector { backend: self.backend.clone(), unit: Some(unit.into()) })
    }
}

impl From<&str> for DeviceSelector {
    fn from(text: &str) -> Self {
        let (backend, unit) =
            text.split_once(':').map_or((text, None), |(backend, unit)| (backend, Some(unit)));
        DeviceSelector { backend: unaliased(backend).into(), unit: unit.map(str::to_owned) }
    }
}

impl From<DeviceId> for DeviceSelector {
    fn from(id: DeviceId) -> Self {
        id.to_string().as_str().into()
    }
}

impl PartialEq<DeviceId> for DeviceSelector {
    /// True if the selector is the name of this one device.
    fn eq(&self, id: &DeviceId) -> bool {
        let named = DeviceSelector::from(*id);
        *self == named
    }
}

impl fmt::Display for DeviceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.unit {
            Some(unit) => write!(f, "{}:{unit}", self.backend),
            None => f.write_str(&self.backend),
        }
    }
}

/// The kernel that a user selects, such as `cpu/vaes512`: the name of the backend, a slash, and the name of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KernelName(String);

impl KernelName {
    /// The name of the backend whose devices may have the kernel.
    pub fn backend(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }

    /// The whole name, as in [`crate::backend::KernelInfo::name`].
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for KernelName {
    fn from(text: &str) -> Self {
        KernelName(match text.split_once('/') {
            Some((backend, kernel)) => format!("{}/{kernel}", unaliased(backend)),
            None => unaliased(text).into(),
        })
    }
}

impl fmt::Display for KernelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
