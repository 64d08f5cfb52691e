//! The throughput of AES-128-ECB by batch size, from host to host: each batch is a separate call.

use std::time::Instant;

use lockstep_core::backend::{Device, KernelId};
use lockstep_core::data::Data;
use lockstep_core::work::{Pass, Segment, Task};
use lockstep_core::{Key, Result};

use super::{Error, paper};
use crate::data::random_bytes;

/// A measurement of a kernel, or of `openssl speed`.
#[derive(Debug, Clone)]
pub struct Point {
    /// The name of the kernel, or `openssl`.
    pub name: String,
    /// Number of bytes of a batch.
    pub batch: usize,
    /// The rate in 10^6 bytes per second: the total divided by the mean time of the runs.
    pub rate: f64,
    /// The lowest and the highest rate of a run.
    pub spread: (f64, f64),
}

/// The sizes and the number of runs of a measurement.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// Number of bytes of the plaintext. A run encrypts all of it, batch by batch.
    pub total: usize,
    /// Number of runs, of which the mean is reported.
    pub runs: usize,
    /// The sizes of the batches in bytes. Batches larger than the total are not measured.
    pub batches: Vec<usize>,
}

impl Conditions {
    /// The chapter's plaintext of random numbers and its number of runs, with batches from 4 KiB to 16 MiB.
    pub fn of_the_chapter() -> Conditions {
        let batches = (6..=12).map(|power| 1 << (2 * power)).collect();
        Conditions { total: paper::TOTAL, runs: paper::RUNS, batches }
    }
}

/// All measurements.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The devices that were measured, each with its description.
    pub devices: Vec<String>,
    /// The conditions under which the rates were measured.
    pub conditions: Conditions,
    /// The rates, by batch size. Within a size, they are in the order of the kernels, with `openssl` last.
    pub points: Vec<Point>,
}

impl Measured {
    /// The measurement of a kernel, or of `openssl`, at a batch size.
    pub fn find(&self, name: &str, batch: usize) -> Option<&Point> {
        self.points.iter().find(|point| point.name == name && point.batch == batch)
    }
}

/// A kernel of a device.
pub(super) struct Subject<'a> {
    pub(super) device: &'a dyn Device,
    pub(super) kernel: KernelId,
    pub(super) name: &'static str,
}

impl<'a> Subject<'a> {
    /// The kernels of a device that can run. For OpenGL these are the kernels of the chapter and the default kernel,
    /// for other devices the default kernel.
    pub(super) fn all(device: &'a dyn Device) -> Vec<Subject<'a>> {
        let kernels = device.kernels().iter().enumerate().filter(|(_, info)| info.missing.is_none());
        let subjects =
            kernels.map(|(index, info)| Subject { device, kernel: KernelId(index as u16), name: info.name });
        subjects.filter(|subject| subject.kernel.0 == 0 || paper::KERNELS.contains(&subject.name)).collect()
    }

    pub(super) fn run(&self, pass: Pass, key: &Key, state: &mut [u8; 16], data: Data<'_>) -> Result<()> {
        let mut segments = [Segment { key, tweak: None, state, data }];
        let work = Task::Pass(pass, &mut segments).into();
        self.device.submit(self.kernel, work).and_then(|completion| completion.wait())
    }
}

/// Measures the kernels of all devices. `expected` encrypts a buffer in ECB mode: each output is compared with its result.
/// `openssl` returns the rate of `openssl speed` for a batch size, in 10^6 bytes per second. Each step is reported to
/// `progress`.
///
/// # Errors
/// [`Error::Device`], and [`Error::Wrong`] for a wrong output.
pub fn measure(
    devices: &[&dyn Device],
    conditions: Conditions,
    expected: impl FnOnce(&Key, &mut [u8]) -> Result<()>,
    openssl: impl Fn(usize) -> Option<f64>,
    mut progress: impl FnMut(String),
) -> std::result::Result<Measured, Error> {
    let total = conditions.total / 16 * 16;
    let key = Key::new(&random_bytes(16))?;
    let input = random_bytes(total);
    let mut ciphertext = input.clone();
    expected(&key, &mut ciphertext)?;
    let subjects: Vec<Subject<'_>> = devices.iter().flat_map(|device| Subject::all(*device)).collect();
    let mut points = Vec::new();
    let mut output = vec![0; total];
    for &batch in conditions.batches.iter().filter(|batch| **batch <= total) {
        for subject in &subjects {
            progress(format!("{}, batches of {batch} bytes", subject.name));
            let mut times = Vec::new();
            // The first run warms up: shaders are compiled and memory is allocated.
            for run in 0..=conditions.runs {
                output.fill(0);
                let start = Instant::now();
                for (from, to) in input.chunks(batch).zip(output.chunks_mut(batch)) {
                    subject.run(Pass::EcbEncrypt, &key, &mut [0; 16], Data::copy(from, to)?)?;
                }
                if run > 0 {
                    times.push(start.elapsed().as_secs_f64());
                }
                if output != ciphertext {
                    return Err(Error::Wrong { kernel: subject.name.into(), batch });
                }
            }
            points.push(point(subject.name, batch, total, &times));
        }
        progress(format!("openssl speed, batches of {batch} bytes"));
        if let Some(rate) = openssl(batch) {
            points.push(Point { name: "openssl".into(), batch, rate, spread: (rate, rate) });
        }
    }
    let devices = devices.iter().map(|device| format!("{}: {}", device.id(), device.description())).collect();
    Ok(Measured { devices, conditions, points })
}

fn point(name: &str, batch: usize, total: usize, times: &[f64]) -> Point {
    let rate = |seconds: f64| total as f64 / seconds / 1e6;
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let slowest = times.iter().copied().fold(f64::MIN, f64::max);
    let fastest = times.iter().copied().fold(f64::MAX, f64::min);
    Point { name: name.into(), batch, rate: rate(mean), spread: (rate(slowest), rate(fastest)) }
}

#[cfg(test)]
mod tests;
