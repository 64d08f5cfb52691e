//! The device that is measured, the CPU that checks its results, and the memory of both.

use std::sync::Arc;

use lockstep::Engine;
use lockstep_core::backend::{Device, DeviceBuffer, DeviceMemory, KernelId};
use lockstep_core::data::{Data, DeviceSlice, PinnedBuffer};
use lockstep_core::work::{Operation, Pass, Segment, Stream, Task};
use lockstep_core::{Key, KeySize};
use lockstep_testkit::suite::random_bytes;

use super::Result;

/// Minimum size of the buffers in bytes.
pub(crate) const SMALLEST: usize = 16 << 10;

/// If a call is expected to take longer than this number of seconds at the next size, no larger sizes are measured.
const MAX_CALL: f64 = 1.5;

/// Number of parts of the output that are overwritten before a check.
const POISONED: usize = 64;

pub(crate) struct Bench {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) cpu: Arc<dyn Device>,
    pub(crate) largest: usize,
    /// Random data in host memory. The device buffer `from` contains the same data.
    pub(crate) input: Vec<u8>,
    /// The result that the CPU computed for the measured operation.
    pub(crate) expected: Vec<u8>,
    seconds: f64,
    from: Box<dyn DeviceBuffer>,
    to: Box<dyn DeviceBuffer>,
    /// Ciphertext that the device decrypts.
    sealed: Box<dyn DeviceBuffer>,
    /// The result of the device, copied to the host. The memory is page-locked if the device supports this.
    got: Host,
}

/// Host memory to which data are copied from the device.
enum Host {
    Pinned(PinnedBuffer),
    Plain(Vec<u8>),
}

impl Bench {
    /// Allocates buffers of `largest` bytes. If the device has too little memory, the buffers are smaller.
    pub(crate) fn of(device: Arc<dyn Device>, largest: usize, seconds: f64) -> Result<Bench> {
        let cpu = self::device("cpu")?;
        let memory = device.memory().ok_or_else(|| format!("{} has no memory of its own", device.id()))?;
        let (mut largest, mut buffers) = (largest, allocate(memory, largest));
        while buffers.is_err() && largest > SMALLEST {
            largest /= 2;
            buffers = allocate(memory, largest);
        }
        let [from, to, sealed] = buffers?;
        let got = match memory.allocate_pinned(largest) {
            Ok(buffer) => Host::Pinned(buffer),
            Err(_) => Host::Plain(vec![0; largest]),
        };
        eprintln!("{}: {}; {largest} bytes", device.id(), device.description());
        let mut input = vec![0; largest];
        let key = Key::new(&random_bytes(16))?;
        let (mut state, data) = ([7; 16], Data::in_place(&mut input));
        let mut segments = [Segment { key: &key, tweak: None, state: &mut state, data }];
        let kernel =
            fastest(&*cpu, Operation::Pass(Pass::Ctr), KeySize::Aes128).ok_or("the CPU lacks CTR")?;
        cpu.submit(kernel, Task::Pass(Pass::Ctr, &mut segments).into())?.wait()?;
        memory.upload(&input, &from.slice(), Stream::default())?;
        let expected = vec![0; largest];
        Ok(Bench { device, cpu, largest, input, expected, seconds, from, to, sealed, got })
    }

    pub(crate) fn memory(&self) -> Result<&dyn DeviceMemory> {
        self.device.memory().ok_or_else(|| "the device has no memory of its own".into())
    }

    pub(crate) fn from(&self, len: usize) -> DeviceSlice {
        self.from.slice().slice(0..len)
    }

    pub(crate) fn to(&self, len: usize) -> DeviceSlice {
        self.to.slice().slice(0..len)
    }

    pub(crate) fn sealed(&self, len: usize) -> DeviceSlice {
        self.sealed.slice().slice(0..len)
    }

    /// The sizes to be measured: 16 KiB, 64 KiB and so on, up to the size of the buffers.
    pub(crate) fn sizes(&self) -> Vec<usize> {
        (14..=40).step_by(2).map(|bits| 1 << bits).filter(|&size| size <= self.largest).collect()
    }

    /// Seconds of a measurement.
    pub(crate) fn seconds(&self, len: usize) -> f64 {
        if len == self.largest { self.seconds } else { self.seconds / 10.0 }
    }

    /// Kernels that run on the device, with their names.
    pub(crate) fn kernels(&self) -> Vec<(KernelId, &'static str)> {
        let kernels = self.device.kernels().iter().enumerate().filter(|(_, info)| info.missing.is_none());
        kernels.map(|(index, info)| (KernelId(index as u16), info.name)).collect()
    }

    /// Copies the result of the CPU to the device, where it is the input of decryption.
    pub(crate) fn upload_expected(&self, len: usize) -> Result<()> {
        Ok(self.memory()?.upload(&self.expected[..len], &self.sealed(len), Stream::default())?)
    }

    /// Overwrites parts of the output, so that the output of an earlier call cannot be mistaken for the output of the next call.
    pub(crate) fn poison(&self, len: usize) -> Result<()> {
        let junk = [0xA5; 16];
        let step = (len / POISONED).max(16);
        for at in (0..len).step_by(step).chain([len.saturating_sub(16)]) {
            let part = self.to(len).slice(at..len.min(at + 16));
            self.memory()?.upload(&junk[..part.len()], &part, Stream::default())?;
        }
        Ok(())
    }

    /// Compares the output on the device with the input if `with_input` is true, otherwise with the result of the CPU.
    ///
    /// # Errors
    /// If the output is wrong.
    pub(crate) fn check(&mut self, len: usize, with_input: bool) -> Result<()> {
        let (from, memory) = (self.to(len), self.device.memory().ok_or("no memory")?);
        let expected = if with_input { &self.input[..len] } else { &self.expected[..len] };
        match &mut self.got {
            Host::Plain(got) => {
                memory.download(&from, &mut got[..len], Stream::default())?;
                compare(&got[..len], expected)
            }
            Host::Pinned(buffer) => {
                let mut got = buffer.lock();
                memory.download(&from, &mut got[..len], Stream::default())?;
                compare(&got[..len], expected)
            }
        }
    }
}

pub(crate) fn device(name: &str) -> Result<Arc<dyn Device>> {
    let engine = Engine::builder().device(name).build()?;
    let found = engine.devices().iter().find(|device| device.id().to_string() == name);
    Ok(Arc::clone(found.ok_or_else(|| format!("no device {name}"))?))
}

fn allocate(memory: &dyn DeviceMemory, len: usize) -> Result<[Box<dyn DeviceBuffer>; 3]> {
    Ok([memory.allocate(len)?, memory.allocate(len)?, memory.allocate(len)?])
}

/// Compares two buffers. The comparison uses several threads, because the buffers may have gigabytes.
pub(crate) fn compare(got: &[u8], expected: &[u8]) -> Result<()> {
    const PIECE: usize = 64 << 20;
    let first_wrong = std::thread::scope(|scope| {
        let pieces = got.chunks(PIECE).zip(expected.chunks(PIECE)).enumerate();
        let compare = |(index, (got, expected)): (usize, (&[u8], &[u8]))| {
            let is_equal = got == expected;
            let wrong = || got.iter().zip(expected).position(|(a, b)| a != b).map(|at| index * PIECE + at);
            if is_equal { None } else { wrong() }
        };
        let threads: Vec<_> = pieces.map(|piece| scope.spawn(move || compare(piece))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok().flatten()).min()
    });
    match first_wrong {
        None if got.len() == expected.len() => Ok(()),
        at => Err(format!("the output is WRONG from byte {} of {} on", at.unwrap_or(0), got.len()).into()),
    }
}

/// The constant-time kernel that is the fastest one for an operation according to the costs that the device states.
pub(crate) fn fastest(device: &dyn Device, operation: Operation, size: KeySize) -> Option<KernelId> {
    let kernels = device.kernels().iter().enumerate();
    let fit = kernels.filter(|(_, info)| info.missing.is_none() && info.constant_time);
    let costs = fit.filter_map(|(index, _)| {
        let kernel = KernelId(index as u16);
        Some((kernel, device.cost(kernel, operation, size)?.ns(1 << 20)))
    });
    costs.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(kernel, _)| kernel)
}

/// True if a call of the next size, which is four times as large, would take too long.
pub(crate) fn is_slow(seconds: f64) -> bool {
    4.0 * seconds > MAX_CALL
}
