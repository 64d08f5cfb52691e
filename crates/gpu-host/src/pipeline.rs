//! What a backend implements for a call.

use std::sync::Arc;

use lockstep_core::Result;
use lockstep_core::data::{Data, DeviceSlice};
use lockstep_core::work::{AeadMessage, Operation};

use crate::cut::{Limits, Piece};
use crate::messages::{Messages, Results};
use crate::staging::{HostDevice, StagingPool};

/// One call to a device. The pieces of a chunk have all their data in device memory, or none.
pub trait Pipeline {
    /// The device.
    type Device: HostDevice;
    /// What [`Pipeline::stage`] leaves for [`Pipeline::launch`].
    type Staged;
    /// Where [`Pipeline::read_back`] finds the results of a chunk.
    type Found;

    /// Staging buffers of the device.
    fn pool(&self) -> &Arc<StagingPool<Self::Device>>;

    /// What the call does.
    fn operation(&self) -> Operation;

    /// How its data are cut, those in device memory if `resident`.
    fn limits(&self, resident: bool) -> Limits;

    /// Checks that the device reaches the data of a message, which are not empty and not of another device, before
    /// anything is done; keeps allocated what must stay so until the call has ended.
    ///
    /// # Errors
    /// [`lockstep_core::Error::OutOfReach`], [`lockstep_core::Error::DeviceFailed`].
    fn admit(&mut self, _data: &Data<'_>) -> Result<()> {
        Ok(())
    }

    /// A staging buffer that this call has not used before.
    ///
    /// # Errors
    /// [`lockstep_core::Error::DeviceFailed`].
    fn take_staging(&self) -> Result<<Self::Device as HostDevice>::Staging> {
        self.pool().take()
    }

    /// Does a message that is too long for a chunk at once and returns true; returns false if a chunk can take it. Sets
    /// `begun` when the output may have been written.
    ///
    /// # Errors
    /// [`lockstep_core::Error::DeviceFailed`].
    fn long_message(&self, _message: &mut AeadMessage<'_>, _begun: &mut bool) -> Result<bool> {
        Ok(false)
    }

    /// Writes the input and the description of a chunk to the staging buffer; may bring the pieces into another order. On
    /// an error no output has been touched.
    ///
    /// # Errors
    /// [`lockstep_core::Error::DeviceFailed`].
    fn stage(
        &self,
        staging: &mut <Self::Device as HostDevice>::Staging,
        pieces: &mut [Piece],
        messages: &Messages<'_, '_>,
    ) -> Result<Self::Staged>;

    /// Starts the chunk: copies to the device, kernels, copies back, and wiping of device memory. The event is the end of
    /// all of it.
    ///
    /// # Errors
    /// [`lockstep_core::Error::DeviceFailed`].
    fn launch(
        &self,
        staging: &mut <Self::Device as HostDevice>::Staging,
        staged: Self::Staged,
        pieces: &[Piece],
        messages: &Messages<'_, '_>,
    ) -> Result<(<Self::Device as HostDevice>::Event, Self::Found)>;

    /// Brings the results of a chunk from the staging buffer to the caller, after the event.
    ///
    /// # Errors
    /// [`lockstep_core::Error::DeviceFailed`].
    fn read_back(
        &self,
        staging: &mut <Self::Device as HostDevice>::Staging,
        found: &Self::Found,
        pieces: &[Piece],
        results: &mut Results<'_, '_, '_>,
    ) -> Result<()>;

    /// Zeroes device memory of the caller as far as the device still answers, after all chunks have ended.
    fn zero(&self, outputs: &[DeviceSlice]);
}

/// What runs in place of a kernel to measure what calls and transfers cost by themselves. Neither encrypts, so neither is
/// a kernel, and no planner can choose one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overhead {
    /// Nothing at all: the call.
    Null,
    /// Data travel to the device and back, unchanged.
    Copy,
}
