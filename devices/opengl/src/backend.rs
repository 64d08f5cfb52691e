//! Discovery of devices: GPUs, and software that implements OpenGL.

use std::sync::Arc;

use lockstep_core::backend::{
    Backend, Device, DeviceId, DeviceSelector, Discovery, LaunchOption, Missing, Unit,
};
use lockstep_gpu_host::may_have_gpu;

use crate::device::{LAUNCH_OPTIONS, OpenGlDevice};
use crate::egl::Library;

const BACKEND: &str = "opengl";

/// The name of a software device, such as Mesa's llvmpipe.
pub const SOFTWARE: DeviceId = DeviceId { backend: BACKEND, unit: Unit::Named("software") };

/// The backend of all devices with OpenGL: `opengl:0` and so on, and `opengl:software`.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenGlBackend;

impl OpenGlBackend {
    /// Finds the devices and returns them as [`OpenGlDevice`], with the GPUs first. If there is no GPU, also returns the reason. Contexts
    /// are opened later, at the first use of a device.
    pub fn find(&self) -> (Vec<OpenGlDevice>, Option<Missing>) {
        let Some(library) = Library::open() else {
            let remedy = "install the GPU's driver and libEGL.so.1".into();
            return (Vec::new(), Some(Missing { reason: "no libEGL.so.1".into(), remedy }));
        };
        let (software, places): (Vec<_>, Vec<_>) =
            library.places().into_iter().partition(|place| place.is_software);
        let numbered = places.into_iter().enumerate().map(|(number, place)| {
            let id = DeviceId { backend: BACKEND, unit: Unit::Number(number as u16) };
            OpenGlDevice::new(id, library, place)
        });
        let mut devices: Vec<OpenGlDevice> = numbered.collect();
        let missing = devices.is_empty().then(missing);
        devices.extend(software.into_iter().take(1).map(|place| OpenGlDevice::new(SOFTWARE, library, place)));
        (devices, missing)
    }
}

fn missing() -> Missing {
    Missing { reason: "no GPU that supports OpenGL".into(), remedy: "install the GPU's driver".into() }
}

impl Backend for OpenGlBackend {
    fn name(&self) -> &'static str {
        BACKEND
    }

    fn certainly_missing(&self) -> Option<Missing> {
        (!may_have_gpu()).then(missing)
    }

    fn launch_options(&self) -> &'static [LaunchOption] {
        LAUNCH_OPTIONS
    }

    fn named(&self, name: &DeviceSelector) -> Option<Result<Arc<dyn Device>, Missing>> {
        let device = self.find().0.into_iter().find(|device| *name == device.id())?;
        Some(Ok(Arc::new(device)))
    }

    fn discover(&self) -> Discovery {
        let (devices, missing) = self.find();
        let devices = devices.into_iter().map(|device| Arc::new(device) as Arc<dyn Device>).collect();
        Discovery { devices, missing }
    }
}
