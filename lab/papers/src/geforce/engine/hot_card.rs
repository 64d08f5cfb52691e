//! A card that returns wrong results once it is hot. The thesis found wrong results of its GeForce 6800 in files of 700 MB,
//! and no wrong results in files below 500 MB (section 6.2). Here a fault is injected into the results of a device.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lockstep_core::backend::{Completion, Cost, Device, DeviceId, DeviceProperties, KernelId, KernelInfo};
use lockstep_core::data::Data;
use lockstep_core::work::{Operation, Task, Work};
use lockstep_core::{Block, KeySize, Result};
use lockstep_cpu::{CpuBackend, CpuOptions};
use lockstep_planner::verify::Verify;
use lockstep_planner::{Planner, Selection};

use super::Error;
use super::measure::{buffer, encrypt_by, key, processor};
use crate::geforce::files::FILES;

/// The size of the file with wrong results.
const BYTES: u64 = 700_000_000;
/// Number of bytes after which results are wrong. In the thesis, no file below this size had errors.
const HOT_FROM: u64 = 500_000_000;
/// One block in this number of blocks is wrong. The thesis does not state how many blocks were wrong.
const BLOCKS_PER_ERROR: u64 = 16;
/// Bytes of a call, as in Table A5.
const CALL: u64 = 4 << 20;

/// A device whose results are wrong after a number of bytes.
struct HotCard {
    inner: Arc<dyn Device>,
    kernels: Vec<KernelInfo>,
    hot_from: u64,
    /// False during the self-test, whose bytes are not counted.
    is_counting: AtomicBool,
    bytes: AtomicU64,
    calls: AtomicU64,
}

impl Device for HotCard {
    fn id(&self) -> DeviceId {
        self.inner.id()
    }
    fn description(&self) -> String {
        self.inner.description()
    }
    fn properties(&self) -> DeviceProperties {
        // With these default properties, the planner may choose the device even if it is a software device. Otherwise a software device is
        // used only if its name is given.
        DeviceProperties::default()
    }
    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }
    fn cost(&self, kernel: KernelId, operation: Operation, size: KeySize) -> Option<Cost> {
        // The cost is so low that the planner chooses this device.
        self.inner.cost(kernel, operation, size).map(|_| Cost::new(1.0, 1e6))
    }
    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        let Task::Pass(pass, segments) = work.task else { return self.inner.submit(kernel, work) };
        self.inner.submit(kernel, Task::Pass(pass, &mut *segments).into())?.wait()?;
        if self.is_counting.load(Ordering::Relaxed) {
            self.calls.fetch_add(1, Ordering::Relaxed);
            for segment in segments {
                let Data::Host(data) = &mut segment.data else { continue };
                for block in data.output().chunks_exact_mut(16) {
                    let done = self.bytes.fetch_add(16, Ordering::Relaxed);
                    if done >= self.hot_from && (done / 16).is_multiple_of(BLOCKS_PER_ERROR) {
                        block[5] ^= 0x10;
                    }
                }
            }
        }
        Ok(Completion::Done)
    }
}

/// The result of the encryption of a file on the hot card.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The kind of verification: `off`, `sample` or `full`.
    pub verify: &'static str,
    /// The number of bytes of the file.
    pub bytes: u64,
    /// The number of bytes after which results of the device are wrong.
    pub hot_from: u64,
    /// The number of wrong blocks in the output.
    pub wrong_blocks: u64,
    /// The number of calls that encrypted the file, and the number of those calls that ran on the device, with right or
    /// wrong results.
    pub calls: (u64, u64),
    /// The error that the planner reported, if it noticed one.
    pub incident: Option<String>,
}

/// Encrypts a file of `1 / scale` of 700 MB with each kind of verification, by the default kernel of a device that is hot after
/// `1 / scale` of 500 MB.
///
/// # Errors
/// [`Error::Device`] and [`Error::Memory`].
pub fn hot_card(device: &Arc<dyn Device>, scale: u64) -> std::result::Result<Vec<Outcome>, Error> {
    [Verify::Off, Verify::Sample, Verify::Full]
        .map(|verify| encrypt_file(device, scale, verify))
        .into_iter()
        .collect()
}

fn encrypt_file(device: &Arc<dyn Device>, scale: u64, verify: Verify) -> std::result::Result<Outcome, Error> {
    let (bytes, hot_from) = ((BYTES / scale / 16 * 16).max(32), (HOT_FROM / scale / 16 * 16).max(16));
    let card = Arc::new(HotCard {
        inner: Arc::clone(device),
        kernels: device.kernels().to_vec(),
        hot_from,
        is_counting: AtomicBool::new(false),
        bytes: AtomicU64::new(0),
        calls: AtomicU64::new(0),
    });
    let key = key()?;
    let mut devices =
        lockstep_core::backend::Backend::discover(&CpuBackend::new(CpuOptions { threads: Some(1) })).devices;
    devices.push(Arc::clone(&card) as Arc<dyn Device>);
    let planner = Planner::new(devices, &Selection::default())?.with_verify(verify);
    let cpu = processor()?;
    // The device passes its self-test while it is cold.
    let mut block: Block = [0; 16];
    encrypt_by(&planner, &key, Data::in_place(&mut block))?;
    card.is_counting.store(true, Ordering::Relaxed);
    let size = bytes.min(CALL) as usize;
    let (mut input, mut output, mut expected) = (buffer(size)?, buffer(size)?, buffer(size)?);
    let (mut done, mut calls, mut wrong_blocks) = (0, 0, 0);
    while done < bytes {
        let len = size.min((bytes - done) as usize);
        for (at, block) in input[..len].chunks_exact_mut(16).enumerate() {
            block.copy_from_slice(&FILES[3].block(done / 16 + at as u64));
        }
        encrypt_by(&planner, &key, Data::copy(&input[..len], &mut output[..len])?)?;
        encrypt_by(&cpu, &key, Data::copy(&input[..len], &mut expected[..len])?)?;
        let pairs = output[..len].chunks_exact(16).zip(expected[..len].chunks_exact(16));
        wrong_blocks += pairs.filter(|(output, expected)| output != expected).count() as u64;
        done += len as u64;
        calls += 1;
    }
    Ok(Outcome {
        verify: verify.name(),
        bytes,
        hot_from,
        wrong_blocks,
        calls: (calls, card.calls.load(Ordering::Relaxed)),
        incident: planner.incidents().first().map(ToString::to_string),
    })
}
