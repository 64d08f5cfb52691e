//! The selection of devices and kernels by the user, and the devices from which `auto` chooses.

use std::collections::HashSet;
use std::sync::Arc;

use crate::group::Group;
use lockstep_core::backend::{Device, DeviceSelector, KernelName, kernel_by_name};
use lockstep_core::error::{Error, Result};
use lockstep_core::shown;

/// The device and the kernel that the user named. If neither is named, the selection is `auto`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// A device such as `cpu`, or several of a backend (`cuda:0,1`, `cuda:all`), which share large work.
    pub device: Option<DeviceSelector>,
    /// A kernel such as `cpu/vaes512`.
    pub kernel: Option<KernelName>,
}

impl Selection {
    /// True if neither a device nor a kernel was named.
    pub fn is_auto(&self) -> bool {
        self.device.is_none() && self.kernel.is_none()
    }
}

pub(crate) fn known(devices: &[Arc<dyn Device>]) -> String {
    let names: Vec<_> = devices.iter().map(|device| device.id().to_string()).collect();
    if names.is_empty() { "there is none".into() } else { format!("there are {}", names.join(", ")) }
}

pub(crate) fn select(
    mut devices: Vec<Arc<dyn Device>>,
    selection: &Selection,
) -> Result<Vec<Arc<dyn Device>>> {
    if let Some(selector) = &selection.device {
        let chosen = named(&devices, selector)?;
        if let Some(kernel) = &selection.kernel {
            check_backend(&devices, &chosen, selector, kernel)?;
        }
        devices = chosen;
    }
    if let Some(name) = &selection.kernel {
        let backend = name.backend();
        let Some(device) = devices.iter().find(|device| backend == device.id().backend) else {
            // The user may have passed a key as the name. The name of the backend can then be a part of the key.
            let is_key = shown::may_be_key(name.as_str().as_bytes());
            let name = if is_key { shown::KEY_AS_NAME } else { backend };
            let known = known(&devices);
            let known =
                format!("{known}; the name of a kernel begins with that of its device, as in cpu/soft");
            return Err(Error::UnknownDevice { name: name.into(), known });
        };
        kernel_by_name(&**device, name.as_str())?;
        devices.retain(|device| backend == device.id().backend);
        // If the user names a kernel but no device, devices that are used by name only are left out, unless there are no
        // other devices.
        if selection.device.is_none() && devices.iter().any(|device| !device.properties().by_name_only) {
            devices.retain(|device| !device.properties().by_name_only);
        }
    }
    Ok(if selection.is_auto() { candidates_of_auto(devices) } else { devices })
}

/// The devices that `auto` may choose. Devices that are used by name only are left out, and each piece of hardware occurs
/// only once. If several backends reach the same hardware, the backend whose devices come first is preferred, provided that
/// it has a kernel that `auto` may choose.
pub(crate) fn candidates_of_auto(devices: Vec<Arc<dyn Device>>) -> Vec<Arc<dyn Device>> {
    let mut all: Vec<Arc<dyn Device>> = Vec::new();
    for device in devices.into_iter().filter(|device| !device.properties().by_name_only) {
        let hardware = device.hardware();
        let is_same = |other: &Arc<dyn Device>| {
            other.id().backend != device.id().backend
                && other.kernels().iter().any(|info| info.constant_time && info.missing.is_none())
                && hardware.as_ref().zip(other.hardware()).is_some_and(|(one, other)| one.is_same(&other))
        };
        if !all.iter().any(is_same) {
            all.push(device);
        }
    }
    all
}

/// The devices that a selector names: either one device, or the group of several devices of a backend, followed by
/// these devices.
fn named(devices: &[Arc<dyn Device>], selector: &DeviceSelector) -> Result<Vec<Arc<dyn Device>>> {
    let find = |selector: &DeviceSelector| devices.iter().find(|device| *selector == device.id()).cloned();
    if let Some(device) = find(selector) {
        return Ok(vec![device]);
    }
    let unknown =
        || Error::UnknownDevice { name: shown::name(&selector.to_string()).into(), known: known(devices) };
    let mut members: Vec<Arc<dyn Device>> = if selector.is_all() {
        let is_real = |device: &&Arc<dyn Device>| {
            selector.backend() == device.id().backend && !device.properties().by_name_only
        };
        devices.iter().filter(is_real).cloned().collect()
    } else {
        selector.each().map(|one| find(&one).ok_or_else(unknown)).collect::<Result<_>>()?
    };
    let mut seen = HashSet::new();
    members.retain(|device| seen.insert(device.id()));
    let first = members.first().ok_or_else(unknown)?.id();
    if members.len() > 1 {
        let units = selector.unit().unwrap_or_default();
        members.insert(0, Arc::new(Group::new(first.backend, units, members.clone())));
    }
    Ok(members)
}

/// Returns an error if the kernel does not belong to the backend of the chosen devices.
fn check_backend(
    all: &[Arc<dyn Device>],
    chosen: &[Arc<dyn Device>],
    device: &DeviceSelector,
    kernel: &KernelName,
) -> Result<()> {
    if chosen.iter().any(|device| kernel.backend() == device.id().backend) {
        return Ok(());
    }
    let has = |device: &&Arc<dyn Device>| device.kernels().iter().any(|info| info.name == kernel.as_str());
    let others: Vec<_> = all.iter().filter(has).map(|device| device.id().to_string()).collect();
    let others = if others.is_empty() { "no device of this machine".into() } else { others.join(", ") };
    let kernels = chosen.first().map_or(&[][..], |device| device.kernels());
    let known: Vec<_> = kernels.iter().map(|info| info.name).collect();
    let [kernel, device] = [kernel.to_string(), device.to_string()].map(|name| shown::name(&name).into());
    Err(Error::KernelElsewhere { kernel, device, others, known: known.join(", ") })
}
