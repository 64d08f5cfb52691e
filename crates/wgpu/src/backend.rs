//! Which devices there are: GPUs, and software that acts as one.

use std::sync::Arc;

use lockstep_core::backend::{Backend, Device, DeviceId, DeviceSelector, Discovery, Missing, Unit};

use crate::device::WgpuDevice;

const BACKEND: &str = "wgpu";

/// The name of a software device, such as Mesa's lavapipe.
pub const SOFTWARE: DeviceId = DeviceId { backend: BACKEND, unit: Unit::Named("software") };

/// The name of a software device of OpenGL, such as Mesa's llvmpipe.
pub const SOFTWARE_GL: DeviceId = DeviceId { backend: BACKEND, unit: Unit::Named("software-gl") };

/// The backend of whatever wgpu reaches: `wgpu:0` and so on, and `wgpu:software`.
#[derive(Debug, Clone, Copy, Default)]
pub struct WgpuBackend;

/// What was found, as what it is.
pub struct Found {
    /// GPUs first.
    pub devices: Vec<WgpuDevice>,
    /// Why there is no GPU, if there is none.
    pub missing: Option<Missing>,
}

impl WgpuBackend {
    /// The devices there are: by Vulkan or Metal, and only where neither has any by OpenGL ES, which takes longer to start
    /// than all the rest.
    pub fn find(&self) -> Found {
        let found = found(wgpu::Backends::VULKAN | wgpu::Backends::METAL);
        if found.devices.is_empty() { self.find_by_opengl() } else { found }
    }

    /// Those that OpenGL ES reaches, whatever else does.
    pub fn find_by_opengl(&self) -> Found {
        found(wgpu::Backends::GL)
    }
}

fn found(backends: wgpu::Backends) -> Found {
    // A driver may do anything.
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
        // Other systems have no such files.
        let may_be_here =
            !cfg!(target_os = "linux") || NODES.iter().any(|(folder, name)| has_file(folder, name));
        (!may_be_here).then(|| missing(false))
    }

    fn discover(&self) -> Discovery {
        let Found { devices, missing } = self.find();
        let devices = devices.into_iter().map(|device| Arc::new(device) as Arc<dyn Device>).collect();
        Discovery { devices, missing }
    }

    fn named(&self, name: &DeviceSelector) -> Option<Result<Arc<dyn Device>, Missing>> {
        if *name != SOFTWARE_GL {
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

/// Where GPUs appear on Linux, and how the names of their files begin: those of the kernel's own drivers, NVIDIA's, Arm's,
/// Qualcomm's, Imagination's, and of Windows below.
const NODES: [(&str, &str); 6] = [
    ("/dev/dri", "renderD"),
    ("/dev", "nvidia"),
    ("/dev", "mali"),
    ("/dev", "kgsl"),
    ("/dev", "pvr"),
    ("/dev", "dxg"),
];

fn has_file(folder: &str, beginning: &str) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    names.any(|name| name.to_string_lossy().starts_with(beginning))
}

fn adapters(backends: wgpu::Backends) -> Vec<wgpu::Adapter> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends,
        // Neither validation layers nor debug names, whatever is installed.
        flags: wgpu::InstanceFlags::empty(),
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    pollster::block_on(instance.enumerate_adapters(backends))
}

fn missing(has_software: bool) -> Missing {
    let (reason, remedy) = match (cfg!(target_vendor = "apple"), has_software) {
        (true, _) => ("no GPU that speaks Metal", "use a Mac with one"),
        (false, true) => ("no GPU, only software that acts as one", "install the GPU's Vulkan driver"),
        (false, false) => ("no Vulkan or OpenGL ES device", "install the GPU's driver and libvulkan.so.1"),
    };
    Missing { reason: reason.into(), remedy: remedy.into() }
}
