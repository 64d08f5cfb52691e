//! Staging buffers: memory of the host and of the device through which chunks pass. Several staging buffers allow copies and
//! kernels to overlap.

use std::sync::{Arc, Mutex, PoisonError};

use lockstep_core::Result;
use lockstep_core::backend::DeviceId;

/// The operations of a device that staging requires.
pub trait HostDevice: Send + Sync + 'static {
    /// Memory of the host and of the device for one chunk. Dropping the value frees the memory. If the memory may hold keys or
    /// data, it is passed to [`HostDevice::wipe`] or [`HostDevice::discard`] before, unless the device has failed.
    type Staging: Send;
    /// A point in the work of the device.
    type Event: Send;

    /// Maximum number of idle staging buffers that are kept.
    const MOST_IDLE: usize;
    /// True if a staging buffer must be wiped before the next chunk of a call. False if it is sufficient to wipe it at the
    /// end of the call.
    const WIPES_EACH_CHUNK: bool;

    /// The device's name.
    fn id(&self) -> DeviceId;

    /// A new staging buffer.
    ///
    /// # Errors
    /// [`lockstep_core::Error::DeviceFailed`].
    fn allocate_staging(self: &Arc<Self>) -> Result<Self::Staging>;

    /// Wipes the remains of keys and data in a staging buffer whose work has succeeded. Returns false if the staging buffer
    /// cannot be used again or is too large to be kept.
    fn wipe(&self, staging: &mut Self::Staging) -> bool;

    /// Wipes and frees a staging buffer whose chunk was not launched or cannot be waited for. The default is for memory that is
    /// wiped when it is dropped.
    fn discard(&self, staging: Self::Staging) {
        drop(staging);
    }

    /// True if waiting for the event, and reading results from the staging buffer, would not block.
    fn is_past(&self, staging: &Self::Staging, event: &Self::Event) -> bool;

    /// Waits for the event.
    ///
    /// # Errors
    /// [`lockstep_core::Error::DeviceFailed`] if the work before the event failed.
    fn wait(&self, event: &Self::Event) -> Result<()>;
}

/// The idle staging buffers of a device.
pub struct StagingPool<D: HostDevice> {
    device: Arc<D>,
    idle: Mutex<Vec<D::Staging>>,
}

impl<D: HostDevice> StagingPool<D> {
    /// An empty pool.
    pub fn new(device: Arc<D>) -> Self {
        StagingPool { device, idle: Mutex::default() }
    }

    /// The device that the staging buffers belong to.
    pub fn device(&self) -> &Arc<D> {
        &self.device
    }

    /// An idle staging buffer, or a new one.
    ///
    /// # Errors
    /// [`lockstep_core::Error::DeviceFailed`].
    pub fn take(&self) -> Result<D::Staging> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| self.device.allocate_staging(), Ok)
    }

    /// Takes back a staging buffer whose work has succeeded.
    fn give(&self, mut staging: D::Staging) {
        if !self.device.wipe(&mut staging) {
            return;
        }
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < D::MOST_IDLE {
            idle.push(staging);
        }
    }
}

/// A staging buffer with work in flight. Dropping the value waits for the work. The staging buffer then goes back to the
/// pool if the work succeeded; otherwise it is freed.
pub struct InFlight<D: HostDevice> {
    pool: Arc<StagingPool<D>>,
    /// `None` once the staging buffer has been given back.
    staging: Option<D::Staging>,
    event: D::Event,
}

impl<D: HostDevice> InFlight<D> {
    /// Work that uses this staging buffer and ends at the event.
    pub fn new(pool: &Arc<StagingPool<D>>, staging: D::Staging, event: D::Event) -> Self {
        InFlight { pool: Arc::clone(pool), staging: Some(staging), event }
    }

    /// True if waiting would not block.
    pub fn is_past(&self) -> bool {
        self.staging.as_ref().is_none_or(|staging| self.pool.device.is_past(staging, &self.event))
    }

    /// Waits until the work has ended.
    ///
    /// # Errors
    /// [`lockstep_core::Error::DeviceFailed`] if the work failed.
    pub fn wait(&self) -> Result<()> {
        self.pool.device.wait(&self.event)
    }

    /// The device that does the work.
    pub fn device(&self) -> &Arc<D> {
        &self.pool.device
    }

    /// The staging buffer, which holds the results after the event.
    pub fn staging(&mut self) -> &mut D::Staging {
        self.staging.as_mut().expect("taken only by methods that consume the owner")
    }

    /// Gives the staging buffer back to the pool. [`InFlight::wait`] must have succeeded.
    pub fn finish(mut self) {
        if let Some(staging) = self.staging.take() {
            self.pool.give(staging);
        }
    }

    /// Returns the staging buffer for another chunk of the same call. [`InFlight::wait`] must have succeeded.
    pub(crate) fn reuse(mut self) -> Result<D::Staging> {
        match self.staging.take() {
            Some(staging) if !D::WIPES_EACH_CHUNK => Ok(staging),
            staging => {
                staging.into_iter().for_each(|staging| self.pool.give(staging));
                self.pool.take()
            }
        }
    }
}

impl<D: HostDevice> Drop for InFlight<D> {
    fn drop(&mut self) {
        if let Some(staging) = self.staging.take()
            && self.wait().is_ok()
        {
            self.pool.give(staging);
        }
    }
}
