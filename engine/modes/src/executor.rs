//! The interface between the modes and the executors of their passes.

use lockstep_core::backend::{DeviceId, DeviceMemory};
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Segment, Stream};
use lockstep_core::{KeySize, Result};

/// Runs passes and fused AEADs on a device and waits for their completion.
///
/// The caller guarantees for each call that all keys have the same size, and that one device can access all data. After an
/// error, the outputs of the call are invalid. If the call was in place, the input may be overwritten.
pub trait Executor: Send + Sync {
    /// Runs a pass over the segments. Does nothing if there are no segments.
    ///
    /// # Errors
    /// [`lockstep_core::Error::Unsupported`], [`lockstep_core::Error::SelfTest`], and errors of devices.
    fn run_pass(&self, pass: Pass, segments: &mut [Segment<'_>]) -> Result<()>;

    /// Runs a fused AEAD over the messages, whose nonces must have a length that [`FusedAead`] states. If no usable kernel
    /// supports the fused AEAD, the function leaves the messages unchanged and returns `false`. The caller then composes the
    /// mode of passes.
    ///
    /// # Errors
    /// Errors of devices.
    fn run_fused(&self, fused: FusedAead, messages: &mut [AeadMessage<'_>]) -> Result<bool>;

    /// Returns the memory of a device, for access to buffers of this device that were passed to a mode.
    ///
    /// # Errors
    /// [`lockstep_core::Error::UnknownDevice`], or [`lockstep_core::Error::OutOfReach`] if the device has no memory of its own.
    fn memory(&self, device: DeviceId) -> Result<&dyn DeviceMemory>;

    /// Returns the stream for copies to and from the memory of a device.
    fn stream(&self, _device: DeviceId) -> Stream {
        Stream::default()
    }

    /// If the user has named a device, checks that this device can run the pass of a MAC. In modes that also encrypt, the CPU
    /// may run the pass of the MAC instead of the device. A MAC alone has no other pass, so the named device would do no work.
    ///
    /// # Errors
    /// [`lockstep_core::Error::Unsupported`].
    fn check_mac(&self, _pass: Pass, _key: KeySize) -> Result<()> {
        Ok(())
    }
}
