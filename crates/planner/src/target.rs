//! The device and the kernel that work was assigned to, without the choice that led there.

use lockstep_core::backend::{Completion, Device, KernelId};
use lockstep_core::error::{Error, Result};
use lockstep_core::work::Work;
use lockstep_modes::Executor;

/// A record of what devices did wrong.
pub(crate) trait IncidentLog: Sync {
    /// Records a failure or a wrong result of a device, after another device has done its work.
    fn record_incident(&self, incident: Error);
}

/// A device and the kernel that runs the work there.
#[derive(Clone, Copy)]
pub(crate) struct Target<'p> {
    pub(crate) device: &'p dyn Device,
    pub(crate) kernel: KernelId,
    /// Reaches the memory of the device.
    pub(crate) executor: &'p dyn Executor,
    pub(crate) incidents: &'p dyn IncidentLog,
}

impl Target<'_> {
    /// Submits the work; nothing is verified.
    ///
    /// # Errors
    /// Those of [`Device::submit`].
    pub(crate) fn submit<'w, 'd: 'w>(self, work: impl Into<Work<'w, 'd>>) -> Result<Completion<'w>> {
        self.device.submit(self.kernel, work.into())
    }
}
