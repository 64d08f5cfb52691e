//! Finds devices: the GPUs that the driver lists, and the emulator.

use std::sync::Arc;

use lockstep_core::backend::{Backend, DeviceId, Discovery, LaunchOption, Missing, Unit};
#[cfg(feature = "emulator")]
use lockstep_core::backend::{Device, DeviceSelector};

use crate::device::Cuda;
use crate::kernel::LAUNCH_OPTIONS;
use crate::machine::driver;
#[cfg(feature = "emulator")]
use crate::machine::emulator::{self, Emulator, Trace};
#[cfg(feature = "faults")]
use crate::machine::failing::{Control, Failing};

const BACKEND: &str = "cuda";

/// The name of the emulator.
pub const EMULATOR: DeviceId = DeviceId { backend: BACKEND, unit: Unit::Named("emu") };

/// The backend of NVIDIA GPUs, `cuda:0` and so on, and of the emulator, `cuda:emu`.
#[derive(Debug, Clone, Copy, Default)]
pub struct CudaBackend {
    /// True if the emulator is one of the devices. The default is false, because the feature `emulator` may have been
    /// enabled for another crate of the same build.
    #[cfg(feature = "emulator")]
    pub has_emulator: bool,
}

impl Backend for CudaBackend {
    fn name(&self) -> &'static str {
        BACKEND
    }

    fn certainly_missing(&self) -> Option<Missing> {
        driver::certainly_missing()
    }

    fn launch_options(&self) -> &'static [LaunchOption] {
        LAUNCH_OPTIONS
    }

    #[cfg(feature = "emulator")]
    fn named(&self, name: &DeviceSelector) -> Option<Result<Arc<dyn Device>, Missing>> {
        (self.has_emulator && *name == EMULATOR).then(|| Ok(Arc::new(emulator()) as _))
    }

    fn discover(&self) -> Discovery {
        let (devices, missing) = gpus();
        #[cfg(feature = "emulator")]
        if self.has_emulator {
            // As the discovery of GPUs starts their driver, this starts the emulator. In a child process made by `fork` this can fail; work
            // on the emulator then also fails.
            let _ = emulator::start();
        }
        #[cfg(feature = "emulator")]
        let devices = devices.into_iter().chain(self.has_emulator.then(emulator));
        Discovery { devices: devices.into_iter().map(|device| Arc::new(device) as _).collect(), missing }
    }
}

/// All devices that this build supports, with the emulator last. If there is no GPU, also returns the reason.
pub fn devices() -> (Vec<Cuda>, Option<Missing>) {
    let (devices, missing) = gpus();
    #[cfg(feature = "emulator")]
    let devices = devices.into_iter().chain([emulator()]).collect();
    (devices, missing)
}

/// The GPUs, and the reason if there is none.
fn gpus() -> (Vec<Cuda>, Option<Missing>) {
    let (machines, missing) = match driver::discover() {
        Ok(machines) => (machines, None),
        Err(missing) => (Vec::new(), Some(missing)),
    };
    let mut devices = Vec::new();
    for (number, machine) in machines {
        let id = DeviceId { backend: BACKEND, unit: Unit::Number(number) };
        let missing = machine.missing();
        devices.push(Cuda::new(id, Box::new(machine), false, missing));
    }
    (devices, missing)
}

/// The emulator as a device, for tests of GHASH with the carry-less multiply-add. [`emulator()`] offers only the kernels that
/// the default build has on GPUs.
#[cfg(feature = "emulator")]
pub fn emulator_with_carry_less() -> Cuda {
    Cuda::new(EMULATOR, Box::new(Emulator::with_carry_less()), true, None)
}

/// Returns the emulator as a device, and the trace of its kernels' accesses.
#[cfg(feature = "emulator")]
pub fn emulator_with_trace() -> (Cuda, Trace) {
    let trace = Trace::default();
    (Cuda::new(EMULATOR, Box::new(Emulator::with_trace(trace.clone())), true, None), trace)
}

/// The emulator as a device. With the feature `faults`, an environment variable can make calls fail: see
/// `machine::failing`.
#[cfg(feature = "emulator")]
pub fn emulator() -> Cuda {
    #[cfg(feature = "faults")]
    if let Some(control) = Control::from_environment() {
        let machine = Failing { emulator: Emulator::new(), control: Arc::new(control) };
        return Cuda::new(EMULATOR, Box::new(machine), true, None);
    }
    Cuda::new(EMULATOR, Box::new(Emulator::new()), true, None)
}
