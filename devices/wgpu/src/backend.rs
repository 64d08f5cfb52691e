//! Discovery of devices: GPUs, and software devices that implement the same interfaces.

use std::sync::Arc;

use lockstep_core::backend::{Backend, Device, DeviceId, DeviceSelector, Discovery, Missing, Unit};
use lockstep_gpu_host::may_have_gpu;

use crate::device::WgpuDevice;

const BACKEND: &str = "wgpu";

/// The name of a software device, such as Mesa's lavapipe.
pub const SOFTWARE: DeviceId = DeviceId { backend: BACKEND, unit: Unit::Named("software") };

/// The name of a software device of OpenGL, such as Mesa's llvmpipe.
pub const SOFTWARE_GL: DeviceId = DeviceId { backend: BACKEND, unit: Unit::Named("software-gl") };

/// The backend of all devices that wgpu supports: `wgpu:0` and so on, and `wgpu:software`.
#[derive(Debug, Clone, Copy, Default)]
pub struct WgpuBackend;

/// The devices that were found, with their concrete type.
pub struct Found {
    /// All devices, with the GPUs first.
    pub devices: Vec<WgpuDevice>,
    /// The reason why there is no GPU; `None` if there is one.
    pub missing: Option<Missing>,
}

impl WgpuBackend {
    /// Finds all devices with Vulkan or Metal. If there are none, finds all devices with OpenGL ES, whose start takes
    /// longer.
    pub fn find(&self) -> Found {
        let found = found(wgpu::Backends::VULKAN | wgpu::Backends::METAL);
        if found.devices.is_empty() { self.find_by_opengl() } else { found }
    }

    /// Finds all devices with OpenGL ES.
    pub fn find_by_opengl(&self) -> Found {
        found(wgpu::Backends::GL)
    }
}

fn found(backends: wgpu::Backends) -> Found {
    // Some drivers cause a panic in wgpu. No adapter is then listed.
    let adapters = std::panic::catch_unwind(|| adapters(backends)).unwrap_or_default();
    let (mut devices, mut software): (Vec<WgpuDevice>, Vec<WgpuDevice>) = Default::default();
    for adapter in adapters {
        let info = adapter.get_info();
        if info.device_type == wgpu::DeviceType::Cpu {
            let id = if info.backend == wgpu::Backend::Gl { SOFTWARE_GL } else { SOFTWARE };
            if software.iter().all(|device| device.id() != id) {
                software.push(WgpuDevice::new(id, adapter));
            }
        } else {
            let unit = Unit::Number(devices.len() as u16);
            devices.push(WgpuDevice::new(DeviceId { backend: BACKEND, unit }, adapter));
        }
    }
    let missing = devices.is_empty().then(|| missing(!software.is_empty()));
    devices.append(&mut software);
    Found { devices, missing }
}

impl Backend for WgpuBackend {
    fn name(&self) -> &'static str {
        BACKEND
    }

    fn certainly_missing(&self) -> Option<Missing> {
        (!may_have_gpu()).then(|| missing(false))
    }

    fn discover(&self) -> Discovery {
        let Found { devices, missing } = self.find();
        let devices = devices.into_iter().map(|device| Arc::new(device) as Arc<dyn Device>).collect();
        Discovery { devices, missing }
    }

    fn named(&self, name: &DeviceSelector) -> Option<Result<Arc<dyn Device>, Missing>> {
        // The search for this device also starts the driver of a GPU, so it is left to `discover` if there may be a GPU.
        if *name != SOFTWARE_GL || may_have_gpu() {
            return None;
        }
        let found = self.find_by_opengl();
        let device = found.devices.into_iter().find(|device| device.id() == SOFTWARE_GL);
        Some(device.map(|device| Arc::new(device) as Arc<dyn Device>).ok_or_else(|| Missing {
            reason: "no software device for OpenGL ES".into(),
            remedy: "install Mesa's libEGL and its software driver".into(),
        }))
    }
}

fn adapters(backends: wgpu::Backends) -> Vec<wgpu::Adapter> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends,
        // Disables validation layers and debug names, even if they are installed.
        flags: wgpu::InstanceFlags::empty(),
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    pollster::block_on(instance.enumerate_adapters(backends))
}

fn missing(has_software: bool) -> Missing {
    let (reason, remedy) = match (cfg!(target_vendor = "apple"), has_software) {
        (true, _) => ("no GPU that supports Metal", "use a Mac with one"),
        (false, true) => ("no GPU, only a software device", "install the GPU's Vulkan driver"),
        (false, false) => ("no Vulkan or OpenGL ES device", "install the GPU's driver and libvulkan.so.1"),
    };
    Missing { reason: reason.into(), remedy: remedy.into() }
}
