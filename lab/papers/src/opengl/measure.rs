//! The throughput of AES-128 from host to host, by batch size in ECB mode, and by mode: each batch is a separate call.

use std::time::Instant;

use lockstep_core::backend::{Device, KernelId};
use lockstep_core::data::Data;
use lockstep_core::work::{Operation, Pass, Segment, Task};
use lockstep_core::{Key, KeySize, Result};

use super::{Error, paper};
use crate::data::random_bytes;

/// A measurement of a kernel, or of `openssl speed`.
#[derive(Debug, Clone)]
pub struct Point {
    /// The name of the kernel, or `openssl`.
    pub name: String,
    /// The mode and the direction.
    pub pass: Pass,
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
    /// True if a device is an emulator, whose rates say nothing about a GPU.
    pub is_emulated: bool,
    /// The rates of ECB encryption, by batch size. Within a size, they are in the order of the kernels, with `openssl` last.
    pub points: Vec<Point>,
    /// The rates of each of [`MODES`], by kernel. All have the same batch size: that of the chapter, or the largest one that was
    /// measured.
    pub modes: Vec<Point>,
}

/// The modes that the GPU can process in parallel (section 36.5), with the directions.
pub const MODES: [Pass; 4] = [Pass::EcbEncrypt, Pass::EcbDecrypt, Pass::CbcDecrypt, Pass::Ctr];

/// The initialization vector of CBC, and the first counter block of CTR.
const IV: [u8; 16] = [0x24; 16];

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
    /// The kernels of a device that can run: the default kernel, and those of the chapter.
    pub(super) fn all(device: &'a dyn Device) -> Vec<Subject<'a>> {
        let kernels = device.kernels().iter().enumerate().filter(|(_, info)| info.missing.is_none());
        let subjects =
            kernels.map(|(index, info)| Subject { device, kernel: KernelId(index as u16), name: info.name });
        let is_of_the_chapter =
            |name| paper::KERNELS.contains(&name) || paper::BY_MODE.contains(&name) || name == paper::IN_CUDA;
        subjects.filter(|subject| subject.kernel.0 == 0 || is_of_the_chapter(subject.name)).collect()
    }

    /// True if the kernel is measured by batch size. A kernel with both directions in one program is measured only by mode.
    fn is_measured_by_batch(&self) -> bool {
        !paper::BY_MODE.contains(&self.name)
    }

    /// True if the kernel supports a mode.
    fn has(&self, pass: Pass) -> bool {
        self.device.cost(self.kernel, Operation::Pass(pass), KeySize::Aes128).is_some()
    }

    pub(super) fn run(&self, pass: Pass, key: &Key, state: &mut [u8; 16], data: Data<'_>) -> Result<()> {
        let mut segments = [Segment { key, tweak: None, state, data }];
        let work = Task::Pass(pass, &mut segments).into();
        self.device.submit(self.kernel, work).and_then(|completion| completion.wait())
    }
}

/// Measures the kernels of all devices. `expected` encrypts or decrypts a buffer on the CPU: each output is compared with its result.
/// `openssl` returns the rate of `openssl speed` for a batch size, in 10^6 bytes per second. Each step is reported to
/// `progress`.
///
/// # Errors
/// [`Error::Device`], and [`Error::Wrong`] for a wrong output.
pub fn measure(
    devices: &[&dyn Device],
    conditions: Conditions,
    expected: impl Fn(Pass, &Key, &mut [u8; 16], &mut [u8]) -> Result<()>,
    openssl: impl Fn(usize) -> Option<f64>,
    mut progress: impl FnMut(String),
) -> std::result::Result<Measured, Error> {
    let total = conditions.total / 16 * 16;
    let key = Key::new(&random_bytes(16))?;
    let input = random_bytes(total);
    let subjects: Vec<Subject<'_>> = devices.iter().flat_map(|device| Subject::all(*device)).collect();
    let batches: Vec<usize> = conditions.batches.iter().copied().filter(|batch| *batch <= total).collect();
    let mut bench = Bench { key, input, output: vec![0; total], results: Vec::new(), runs: conditions.runs };
    let mut points = Vec::new();
    bench.expect(Pass::EcbEncrypt, &expected)?;
    for &batch in &batches {
        for subject in subjects.iter().filter(|subject| subject.is_measured_by_batch()) {
            progress(format!("{}, batches of {batch} bytes", subject.name));
            points.push(bench.measure(subject, Pass::EcbEncrypt, batch)?);
        }
        progress(format!("openssl speed, batches of {batch} bytes"));
        if let Some(rate) = openssl(batch) {
            let (name, pass) = ("openssl".into(), Pass::EcbEncrypt);
            points.push(Point { name, pass, batch, rate, spread: (rate, rate) });
        }
    }
    let mut modes = Vec::new();
    let batch = batches.iter().copied().filter(|batch| *batch <= paper::BATCH).max();
    for (pass, batch) in MODES.into_iter().filter_map(|pass| Some((pass, batch?))) {
        bench.expect(pass, &expected)?;
        for subject in subjects.iter().filter(|subject| subject.has(pass)) {
            progress(format!("{}, {pass:?}", subject.name));
            let measured = points
                .iter()
                .find(|point| (point.name == subject.name) && (point.pass, point.batch) == (pass, batch));
            modes.push(measured.cloned().map_or_else(|| bench.measure(subject, pass, batch), Ok)?);
        }
    }
    let is_emulated = devices.iter().any(|device| device.properties().simulated);
    let devices = devices.iter().map(|device| format!("{}: {}", device.id(), device.description())).collect();
    Ok(Measured { devices, conditions, is_emulated, points, modes })
}

/// The data of all measurements.
struct Bench {
    key: Key,
    input: Vec<u8>,
    output: Vec<u8>,
    /// The result of the CPU for the mode that is being measured.
    results: Vec<u8>,
    runs: usize,
}

impl Bench {
    /// Computes the result of a mode.
    fn expect(
        &mut self,
        pass: Pass,
        expected: &impl Fn(Pass, &Key, &mut [u8; 16], &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        self.results.clone_from(&self.input);
        expected(pass, &self.key, &mut IV.clone(), &mut self.results)
    }

    /// Measures a kernel with batches of this number of bytes.
    fn measure(
        &mut self,
        subject: &Subject<'_>,
        pass: Pass,
        batch: usize,
    ) -> std::result::Result<Point, Error> {
        let mut times = Vec::new();
        // The first run warms up: shaders are compiled and memory is allocated.
        for run in 0..=self.runs {
            self.output.fill(0);
            let mut state = IV;
            let start = Instant::now();
            for (from, to) in self.input.chunks(batch).zip(self.output.chunks_mut(batch)) {
                subject.run(pass, &self.key, &mut state, Data::copy(from, to)?)?;
            }
            if run > 0 {
                times.push(start.elapsed().as_secs_f64());
            }
            if self.output != self.results {
                return Err(Error::Wrong { kernel: subject.name.into(), batch });
            }
        }
        Ok(point(subject.name, pass, batch, self.input.len(), &times))
    }
}

/// A measurement whose runs took these times in seconds.
fn point(name: &str, pass: Pass, batch: usize, total: usize, times: &[f64]) -> Point {
    let rate = |seconds: f64| total as f64 / seconds / 1e6;
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let slowest = times.iter().copied().fold(f64::MIN, f64::max);
    let fastest = times.iter().copied().fold(f64::MAX, f64::min);
    Point { name: name.into(), pass, batch, rate: rate(mean), spread: (rate(slowest), rate(fastest)) }
}

#[cfg(test)]
mod tests;
