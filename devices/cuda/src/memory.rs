//! Device memory and pinned memory that callers allocate.
#![allow(unsafe_code, reason = "a launch: the kernel gets addresses of device memory")]

use std::sync::Arc;

use lockstep_core::Result;
use lockstep_core::backend::{DeviceBuffer, DeviceMemory, Fetch};
use lockstep_core::data::{DeviceSlice, PinnedBuffer, check_lengths};
use lockstep_core::work::Stream;
use lockstep_gpu_host::InFlight;
use zeroize::Zeroizing;

use crate::gpu::Gpu;
use crate::kernel::{helper, one_each};
use crate::launch::Parameters;
use crate::machine::Hold;
use crate::staging::{Layout, Pool};

#[derive(Clone)]
pub(crate) struct Memory(pub(crate) Arc<Pool>);

impl Memory {
    fn gpu(&self) -> &Arc<Gpu> {
        self.0.device()
    }
}

impl DeviceMemory for Memory {
    fn has_addresses(&self) -> bool {
        true
    }

    fn allocate(&self, len: usize) -> Result<Box<dyn DeviceBuffer>> {
        Ok(Box::new(self.gpu().buffer(len)?))
    }

    fn allocate_pinned(&self, len: usize) -> Result<PinnedBuffer> {
        self.gpu().callers_pinned(len)
    }

    fn upload(&self, from: &[u8], to: &DeviceSlice, stream: Stream) -> Result<()> {
        check_lengths(from.len(), to.len())?;
        self.gpu().upload(from, to, stream)
    }

    fn zero(&self, to: &DeviceSlice, stream: Stream) -> Result<()> {
        let _hold = self.gpu().hold(to)?;
        let stream = self.gpu().callers_stream(stream);
        self.gpu().zero_slice(&stream, to)?;
        self.gpu().record(&stream)?.wait()
    }

    fn download(&self, from: &DeviceSlice, to: &mut [u8], stream: Stream) -> Result<()> {
        check_lengths(from.len(), to.len())?;
        self.gpu().download(from, to, stream)
    }

    fn fetch(&self, from: &[DeviceSlice], stream: Stream) -> Result<Box<dyn Fetch>> {
        let holds = from.iter().map(|slice| self.gpu().hold(slice)).collect::<Result<Vec<_>>>()?;
        let mut layout = Layout::default();
        let [places, lengths, targets] = [(); 3].map(|()| layout.section(8 * from.len()));
        let described = layout.len();
        let total = from.iter().map(DeviceSlice::len).sum();
        let parts = layout.section(total);
        let mut staging = self.0.take()?;
        staging.reserve(self.gpu(), layout.len(), layout.len())?;
        let mut target = 0u64;
        for (index, slice) in from.iter().enumerate() {
            let entries = [(places, slice.offset()), (lengths, slice.len() as u64), (targets, target)];
            for (at, value) in entries {
                staging.host[at + 8 * index..][..8].copy_from_slice(&value.to_ne_bytes());
            }
            target += slice.len() as u64;
        }
        let stream = self.gpu().callers_stream(stream);
        self.gpu().copy_in(&stream, &mut staging.host, 0..described, &staging.device, 0)?;
        let at = |place: usize| staging.device.address() + place as u64;
        let parameters =
            Parameters::default().long(at(places)).long(at(lengths)).long(at(targets)).long(at(parts)).word(
                u32::try_from(from.len()).map_err(|_| self.gpu().failed("too many parts for one fetch"))?,
            );
        let shape = one_each(32 * from.len() as u64);
        let shape = shape.ok_or_else(|| self.gpu().failed("too many parts for one fetch"))?;
        if shape.grid > 0 {
            // SAFETY: the kernel reads the described parts. They are memory of the caller, and are held until the result is
            // dropped. The kernel writes `total` bytes to the staging buffer, which has space for them, and whose drop waits
            // for the machine.
            unsafe { self.gpu().launch(&stream, helper::GATHER, shape, parameters.bytes(), total as u64)? };
        }
        if total > 0 {
            self.gpu().copy_out(&stream, &staging.device, parts, &mut staging.host, parts..parts + total)?;
        }
        self.gpu().zero(&stream, &staging.device, 0..layout.len())?;
        let event = self.gpu().record(&stream)?;
        staging.host.end_use(&stream, &event);
        let work = InFlight::new(&self.0, staging, event);
        Ok(Box::new(Fetched { work, parts: parts..parts + total, _holds: holds }))
    }
}

/// Parts that are being copied to the host.
struct Fetched {
    work: InFlight<Gpu>,
    /// The place of the parts in the staging buffer.
    parts: std::ops::Range<usize>,
    _holds: Vec<Hold>,
}

impl Fetch for Fetched {
    fn is_ready(&self) -> bool {
        self.work.is_past()
    }

    fn wait(mut self: Box<Self>) -> Result<Zeroizing<Vec<u8>>> {
        self.work.wait()?;
        let parts = Zeroizing::new(self.work.staging().host[self.parts.clone()].to_vec());
        self.work.finish();
        Ok(parts)
    }
}
