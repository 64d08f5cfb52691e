//! The trait that a backend implements for a call.

use std::sync::Arc;

use lockstep_core::data::{Data, DeviceSlice};
use lockstep_core::{Error, Result};

use crate::cut::Limits;
use crate::messages::{Messages, Piece, Results};
use crate::staging::{HostDevice, StagingPool};

/// One call to a device. In each chunk, either all pieces have their data in device memory, or none has.
pub trait Pipeline {
    /// The device.
    type Device: HostDevice;
    /// The result of [`Pipeline::stage`], which [`Pipeline::launch`] takes.
    type Staged;
    /// The location where [`Pipeline::read_back`] finds the results of a chunk.
    type Found;

    /// Staging buffers of the device.
    fn pool(&self) -> &Arc<StagingPool<Self::Device>>;

    /// Returns the limits for cutting the data of the call. If `resident` is true, the limits apply to data in device memory, otherwise to
    /// all other data.
    fn limits(&self, resident: bool) -> Limits;

    /// Checks, before any work, that the device can access the data of a message. The caller has already skipped empty data
    /// and refused data of another device. This function also prevents the release of memory that the call uses, until the
    /// call has ended.
    ///
    /// A device without memory for callers keeps this implementation, which refuses all memory but the host's.
    ///
    /// # Errors
    /// [`Error::OutOfReach`], [`Error::DeviceFailed`].
    fn admit(&mut self, data: &Data<'_>) -> Result<()> {
        match data {
            Data::Host(_) => Ok(()),
            _ => {
                let device = self.pool().device().id();
                Err(Error::OutOfReach { device, what: "memory that it did not allocate".into() })
            }
        }
    }

    /// A staging buffer that this call has not used before.
    ///
    /// # Errors
    /// [`Error::DeviceFailed`].
    fn take_staging(&self) -> Result<<Self::Device as HostDevice>::Staging> {
        self.pool().take()
    }

    /// Writes the input and the description of a chunk to the staging buffer. May reorder the pieces. After an error, no
    /// output has been changed.
    ///
    /// # Errors
    /// [`Error::DeviceFailed`].
    fn stage(
        &self,
        staging: &mut <Self::Device as HostDevice>::Staging,
        pieces: &mut [Piece],
        messages: &Messages<'_, '_>,
    ) -> Result<Self::Staged>;

    /// Starts the work of the chunk: copies to the device, kernels, copies back, and wiping of device memory. The event
    /// marks the end of all this work.
    ///
    /// # Errors
    /// [`Error::DeviceFailed`].
    fn launch(
        &self,
        staging: &mut <Self::Device as HostDevice>::Staging,
        staged: Self::Staged,
        pieces: &[Piece],
        messages: &Messages<'_, '_>,
    ) -> Result<(<Self::Device as HostDevice>::Event, Self::Found)>;

    /// Copies the results of a chunk from the staging buffer to the caller's memory, after the event.
    ///
    /// # Errors
    /// [`Error::DeviceFailed`].
    fn read_back(
        &self,
        staging: &mut <Self::Device as HostDevice>::Staging,
        found: &Self::Found,
        pieces: &[Piece],
        results: &mut Results<'_, '_, '_>,
    ) -> Result<()>;

    /// Zeroes outputs of a failed call in device memory that [`Pipeline::admit`] has accepted, as far as the device still
    /// works. All chunks have ended, and there is at least one output.
    ///
    /// # Panics
    /// This implementation, for devices without memory for callers, panics.
    fn zero(&self, outputs: &[DeviceSlice]) {
        unreachable!("a device that admits device memory must zero it: {outputs:?}");
    }
}

/// The work that runs instead of a kernel, to measure the cost of calls and transfers alone. Neither variant encrypts, so
/// neither is a kernel, and the planner cannot choose them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overhead {
    /// Runs nothing on the device: this measures the cost of a call alone.
    Null,
    /// The data are copied to the device and back, unchanged.
    Copy,
}
