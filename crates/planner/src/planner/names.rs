//! Which devices a selection names.

use std::sync::Arc;

use super::Selection;
use crate::group::Group;
use lockstep_core::backend::{Device, kernel_by_name};
use lockstep_core::error::{Error, Result};

pub(super) fn known(devices: &[Arc<dyn Device>]) -> String {
    let names: Vec<_> = devices.iter().map(|device| device.id().to_string()).collect();
    if names.is_empty() { "there is none".into() } else { format!("there are {}", names.join(", ")) }
}

/// The devices that a name means: one, or several of a backend, `cuda:0,1` or `cuda:all`, each alone and all together.
fn named(devices: &[Arc<dyn Device>], name: &str) -> Result<Vec<Arc<dyn Device>>> {
    let find = |name: &str| devices.iter().find(|device| device.id().to_string() == *name).cloned();
    if let Some(device) = find(name) {
        return Ok(vec![device]);
    }
    let unknown = || Error::UnknownDevice { name: name.into(), known: known(devices) };
    let (backend, units) = name.split_once(':').ok_or_else(unknown)?;
    let mut members: Vec<Arc<dyn Device>> = if units == "all" {
        let real = |device: &&Arc<dyn Device>| device.id().backend == backend && !device.is_simulated();
        devices.iter().filter(real).cloned().collect()
    } else {
        let one = |unit: &str| find(&format!("{backend}:{unit}")).ok_or_else(unknown);
        units.split(',').map(one).collect::<Result<_>>()?
    };
    let mut seen = Vec::new();
    members.retain(|device| {
        let is_new = !seen.contains(&device.id());
        seen.push(device.id());
        is_new
    });
    match members.first() {
        None => return Err(unknown()),
        Some(first) if members.len() > 1 => {
            let group = Group::new(first.id().backend, units, members.clone());
            members.insert(0, Arc::new(group));
        }
        Some(_) => {}
    }
    Ok(members)
}

/// Refuses a kernel of another backend than that of the chosen devices.
fn check_fit(all: &[Arc<dyn Device>], chosen: &[Arc<dyn Device>], device: &str, kernel: &str) -> Result<()> {
    let backend = kernel.split('/').next().unwrap_or_default();
    if chosen.iter().any(|device| device.id().backend == backend) {
        return Ok(());
    }
    let has = |device: &&Arc<dyn Device>| device.kernels().iter().any(|info| info.name == kernel);
    let others: Vec<_> = all.iter().filter(has).map(|device| device.id().to_string()).collect();
    let others = if others.is_empty() { "no device of this machine".into() } else { others.join(", ") };
    let kernels = chosen.first().map_or(&[][..], |device| device.kernels());
    let known: Vec<_> = kernels.iter().map(|info| info.name).collect();
    Err(Error::KernelElsewhere {
        kernel: kernel.into(),
        device: device.into(),
        others,
        known: known.join(", "),
    })
}

pub(super) fn select(
    mut devices: Vec<Arc<dyn Device>>,
    selection: &Selection,
) -> Result<Vec<Arc<dyn Device>>> {
    if let Some(name) = &selection.device {
        let chosen = named(&devices, name)?;
        if let Some(kernel) = &selection.kernel {
            check_fit(&devices, &chosen, name, kernel)?;
        }
        devices = chosen;
    }
    if let Some(name) = &selection.kernel {
        // A kernel's name begins with its backend's: `cpu/soft`.
        let backend = name.split('/').next().unwrap_or_default();
        let Some(device) = devices.iter().find(|device| device.id().backend == backend) else {
            return Err(Error::UnknownDevice { name: backend.into(), known: known(&devices) });
        };
        kernel_by_name(&**device, name)?;
        devices.retain(|device| device.id().backend == backend);
        // A kernel's name alone means the simulated device only where there is no real one.
        if selection.device.is_none() && devices.iter().any(|device| !device.is_simulated()) {
            devices.retain(|device| !device.is_simulated());
        }
    }
    if selection.device.is_none() && selection.kernel.is_none() {
        devices.retain(|device| !device.is_simulated());
    }
    Ok(devices)
}
