//! The data of tasks: this backend accesses host memory only.

use lockstep_core::backend::{DeviceId, Unit};
use lockstep_core::data::{Data, HostData};
use lockstep_core::{Error, Result};

/// The identifier of the only device of this backend.
pub const CPU: DeviceId = DeviceId { backend: "cpu", unit: Unit::Only };

/// Checks that data are in host memory, and that they are writable unless they are only read.
#[inline]
pub(crate) fn check_host(data: &Data<'_>, only_read: bool) -> Result<()> {
    match data {
        Data::Host(HostData::ReadOnly(_)) if !only_read => Err(refusal(data)),
        Data::Host(_) => Ok(()),
        Data::Pinned { .. } | Data::Device { .. } => Err(refusal(data)),
    }
}

/// The error of data that [`check_host`] refuses.
#[cold]
fn refusal(data: &Data<'_>) -> Error {
    let what = match data {
        Data::Host(_) => return Error::OutputLength { needed: data.len(), got: 0 },
        Data::Pinned { .. } => "pinned memory of other devices".into(),
        Data::Device { from, .. } => format!("memory of {}", from.device()),
    };
    Error::OutOfReach { device: CPU, what }
}

/// The host data of a segment or message that [`check_host`] has accepted.
#[inline]
pub(crate) fn host<'s>(data: &'s mut Data<'_>) -> HostData<'s> {
    match data {
        Data::Host(data) => data.reborrow(),
        Data::Pinned { .. } | Data::Device { .. } => unreachable!("rejected by check_host"),
    }
}
