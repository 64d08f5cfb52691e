//! The device and the kernel to which work has been assigned, independent of the choice.

use lockstep_core::backend::{Completion, Device, KernelId};
use lockstep_core::error::Result;
use lockstep_core::work::Work;
use lockstep_modes::Executor;

/// A device, and the kernel that runs the work on it.
#[derive(Clone, Copy)]
pub(crate) struct Target<'p> {
    pub(crate) device: &'p dyn Device,
    pub(crate) kernel: KernelId,
    /// Gives access to the memory of the device.
    pub(crate) executor: &'p dyn Executor,
}

impl Target<'_> {
    /// Submits the work without verification.
    ///
    /// # Errors
    /// The errors of [`Device::submit`].
    pub(crate) fn submit<'w, 'd: 'w>(self, work: impl Into<Work<'w, 'd>>) -> Result<Completion<'w>> {
        self.device.submit(self.kernel, work.into())
    }
}
