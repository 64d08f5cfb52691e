//! The data of tasks: this backend accesses host memory only.

use lockstep_core::backend::{DeviceId, Unit};
use lockstep_core::data::{Data, HostData};
use lockstep_core::{Error, Result};

/// The identifier of the only device of this backend.
pub const CPU: DeviceId = DeviceId { backend: "cpu", unit: Unit::Only };

/// Checks that data are in host memory, and that they are writable unless they are only read.
pub(crate) fn check_host(data: &Data<'_>, only_read: bool) -> Result<()> {
    let what = match data {
        Data::Host(HostData::ReadOnly(_)) if !only_read => {
            return Err(Error::OutputLength { needed: data.len(), got: 0 });
        }
        Data::Host(_) => return Ok(()),
        Data::Pinned { .. } => "pinned memory of other devices".into(),
        Data::Device { from, .. } => format!("memory of {}", from.device()),
    };
    Err(Error::OutOfReach { device: CPU, what })
}

/// The host data of a segment or message that [`check_host`] has accepted.
pub(crate) fn host<'s>(data: &'s mut Data<'_>) -> HostData<'s> {
    match data {
        Data::Host(data) => data.reborrow(),
        Data::Pinned { .. } | Data::Device { .. } => unreachable!("rejected by check_host"),
    }
}
