//! The interface between the modes and the executors of their passes.

use lockstep_core::backend::{DeviceId, DeviceMemory};
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Segment, Stream};
use lockstep_core::{KeySize, Result};

/// Runs passes and fused AEADs on a device and waits for their completion.
///
/// In each call, all keys have the same size, and one device can access all data. After an error, the outputs of the call are
/// invalid: in-place input may have been overwritten.
pub trait Executor: Send + Sync {
    /// Runs a pass over the segments; does nothing if there are none.
    ///
    /// # Errors
    /// [`lockstep_core::Error::Unsupported`], [`lockstep_core::Error::SelfTest`], and errors of devices.
    fn run_pass(&self, pass: Pass, segments: &mut [Segment<'_>]) -> Result<()>;

    /// Runs a fused AEAD over the messages, whose nonces must have a length that [`FusedAead`] states. If no usable kernel
    /// supports the fused AEAD, the function leaves the messages unchanged and returns `false`. The mode is then composed of
    /// passes.
    ///
    /// # Errors
    /// Errors of devices.
    fn run_fused(&self, fused: FusedAead, messages: &mut [AeadMessage<'_>]) -> Result<bool>;

    /// The memory of a device whose buffers were passed to a mode.
    ///
    /// # Errors
    /// [`lockstep_core::Error::UnknownDevice`], or [`lockstep_core::Error::OutOfReach`] if the device has no memory of its own.
    fn memory(&self, device: DeviceId) -> Result<&dyn DeviceMemory>;

    /// The stream for copies from and to the memory of a device.
    fn stream(&self, _device: DeviceId) -> Stream {
        Stream::default()
    }

    /// Checks that the device that the user has named, if there is one, can run the pass of a MAC. In modes that also encrypt, the
    /// CPU may run such a pass for the device. A MAC alone consists of this pass, so the device would do nothing.
    ///
    /// # Errors
    /// [`lockstep_core::Error::Unsupported`].
    fn check_mac(&self, _pass: Pass, _key: KeySize) -> Result<()> {
        Ok(())
    }
}
