//! Repeats the paper's experiments on a current device: AES-128-CTR on data in device memory, and from host to host.

use std::time::Instant;

use lockstep_core::backend::{Device, KernelId, kernel_by_name};
use lockstep_core::data::Data;
use lockstep_core::work::{Operation, Pass, Segment, Stream, Task};
use lockstep_core::{Key, KeySize};
use lockstep_cpu::{CpuBackend, CpuOptions};
use lockstep_cuda::{Cuda, EMULATOR, LaunchOptions};
use lockstep_planner::{Planner, Selection};

use super::{Error, paper};
use crate::data::random_bytes;

/// The time in which a kernel encrypts a plaintext of one length.
#[derive(Debug, Clone)]
pub struct Point {
    /// The name of the kernel. `cpu` stands for the fastest CPU kernel, on one thread.
    pub kernel: &'static str,
    /// Bytes of the plaintext.
    pub bytes: usize,
    /// Threads per block, if selectable.
    pub threads: Option<u32>,
    /// The median of the seconds of all runs.
    pub seconds: f64,
}

impl Point {
    /// The throughput in 10^9 bytes per second.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 / self.seconds / 1e9
    }
}

/// All measurements on a device.
pub struct Measured {
    /// The name and description of the device.
    pub device: String,
    /// True if the device is the emulator, whose rates say nothing about a GPU.
    pub is_emulated: bool,
    /// The name of the CPU kernel with which the device is compared.
    pub cpu: String,
    /// The points of Figures 5 and 6: data in device memory, each with the best number of threads.
    pub sizes: Vec<Point>,
    /// The points of Figure 7: data in device memory.
    pub threads: Vec<Point>,
    /// The points of Table 1: rates from host to host. The number of threads is the best one for data in device memory.
    pub hosts: Vec<Point>,
}

/// Lockstep's kernels, in addition to the paper's.
const OURS: [&str; 2] = ["cuda/bitslice", "cuda/table"];

/// Numbers of threads from which the best is chosen.
const CHOICES: [u32; 4] = [64, 128, 256, 512];

/// Number of runs whose median is reported, and the maximum time for them in seconds.
const RUNS: usize = 9;
const SECONDS: f64 = 0.3;

const COUNTER: [u8; 16] = [0x24; 16];

/// Returns the median seconds of a call, after one warm-up call.
fn time(mut call: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    call()?;
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < 3 || (times.len() < RUNS && start.elapsed().as_secs_f64() < SECONDS) {
        let start = Instant::now();
        call()?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

struct Bench<'a> {
    cuda: &'a Cuda,
    cpu: Planner,
    key: Key,
    input: Vec<u8>,
    /// The CPU's result, which every output must equal.
    expected: Vec<u8>,
}

/// Measures plaintexts of up to `largest` bytes, and reports each step to `progress`.
///
/// # Errors
/// [`Error::Device`], and [`Error::Wrong`] for a wrong output.
pub fn measure(cuda: &Cuda, largest: usize, mut progress: impl FnMut(String)) -> Result<Measured, Error> {
    use lockstep_core::backend::Backend;
    let devices = CpuBackend::new(CpuOptions { threads: Some(1) }).discover().devices;
    let cpu = Planner::new(devices, &Selection::default()).map_err(Error::Device)?;
    let input = random_bytes(largest);
    let mut bench = Bench {
        cuda,
        cpu,
        key: Key::new(&random_bytes(16)).map_err(Error::Device)?,
        expected: input.clone(),
        input,
    };
    let Bench { cpu, key, expected, .. } = &mut bench;
    run_cpu(cpu, key, expected)?;
    let fitting = |bytes: &&usize| **bytes <= largest;
    let sizes: Vec<usize> = (12..=28).map(|power| 1usize << power).collect();
    let mut measured = Measured {
        device: format!("{}: {}", cuda.id(), cuda.description()),
        is_emulated: cuda.id() == EMULATOR,
        cpu: bench.cpu_name()?,
        sizes: Vec::new(),
        threads: Vec::new(),
        hosts: Vec::new(),
    };
    for &bytes in sizes.iter().filter(fitting) {
        progress(format!("data on the device, {bytes} bytes"));
        for kernel in paper::KERNELS {
            let mut best: Option<Point> = None;
            for threads in CHOICES {
                let point = bench.on_device(kernel, bytes, Some(threads))?;
                if best.as_ref().is_none_or(|best| point.seconds < best.seconds) {
                    best = Some(point);
                }
            }
            measured.sizes.extend(best);
        }
        for kernel in OURS {
            measured.sizes.push(bench.on_device(kernel, bytes, None)?);
        }
    }
    for &bytes in paper::FIGURE_7.iter().filter(fitting) {
        for threads in paper::THREADS {
            progress(format!("{threads} threads a block, {bytes} bytes"));
            for kernel in paper::KERNELS {
                measured.threads.push(bench.on_device(kernel, bytes, Some(threads))?);
            }
        }
    }
    for &bytes in paper::SIZES.iter().filter(fitting) {
        progress(format!("host to host, {bytes} bytes"));
        for kernel in paper::KERNELS.into_iter().chain(OURS) {
            // Uses the launch that was fastest when the data were in device memory.
            let known = measured.sizes.iter().find(|point| (point.kernel, point.bytes) == (kernel, bytes));
            let threads = known.and_then(|point| point.threads);
            measured.hosts.push(bench.host_to_host(kernel, bytes, threads)?);
        }
        measured.hosts.push(bench.processor(bytes)?);
    }
    Ok(measured)
}

fn run_cpu(cpu: &Planner, key: &Key, data: &mut [u8]) -> Result<(), Error> {
    let plan =
        cpu.plan(Operation::Pass(Pass::Ctr), KeySize::Aes128, data.len(), None).map_err(Error::Device)?;
    let mut register = COUNTER;
    let data = Data::in_place(data);
    let mut segments = [Segment { key, tweak: None, state: &mut register, data }];
    plan.run(Task::Pass(Pass::Ctr, &mut segments)).map_err(Error::Device)
}

impl Bench<'_> {
    fn cpu_name(&self) -> Result<String, Error> {
        let ctr = Operation::Pass(Pass::Ctr);
        let plan = self.cpu.plan(ctr, KeySize::Aes128, 1 << 20, None).map_err(Error::Device)?;
        Ok(plan.kernel_name().into())
    }

    fn submit(&self, cuda: &Cuda, kernel: KernelId, data: Data<'_>) -> Result<(), Error> {
        let mut register = COUNTER;
        let mut segments = [Segment { key: &self.key, tweak: None, state: &mut register, data }];
        let work = Task::Pass(Pass::Ctr, &mut segments).into();
        cuda.submit(kernel, work).and_then(|completion| completion.wait()).map_err(Error::Device)
    }

    fn on_device(&self, kernel: &'static str, bytes: usize, threads: Option<u32>) -> Result<Point, Error> {
        let cuda = self.cuda.launched(LaunchOptions { threads, ..LaunchOptions::default() });
        let id = kernel_by_name(&cuda, kernel).map_err(Error::Device)?;
        let memory = cuda.memory().ok_or(Error::NoMemory)?;
        let buffers = [memory.allocate(bytes), memory.allocate(bytes)];
        let [from, to] = buffers.map(|buffer| buffer.map_err(Error::Device));
        let (from, to) = (from?, to?);
        memory.upload(&self.input[..bytes], &from.slice(), Stream::default()).map_err(Error::Device)?;
        let seconds = time(|| {
            let data = Data::on_device(from.slice(), to.slice()).map_err(Error::Device)?;
            self.submit(&cuda, id, data)
        })?;
        let mut output = vec![0; bytes];
        memory.download(&to.slice(), &mut output, Stream::default()).map_err(Error::Device)?;
        self.check(kernel, &output)?;
        Ok(Point { kernel, bytes, threads, seconds })
    }

    fn host_to_host(&self, kernel: &'static str, bytes: usize, threads: Option<u32>) -> Result<Point, Error> {
        let cuda = self.cuda.launched(LaunchOptions { threads, ..LaunchOptions::default() });
        let id = kernel_by_name(&cuda, kernel).map_err(Error::Device)?;
        let mut output = vec![0; bytes];
        let seconds = time(|| {
            let data = Data::copy(&self.input[..bytes], &mut output).map_err(Error::Device)?;
            self.submit(&cuda, id, data)
        })?;
        self.check(kernel, &output)?;
        Ok(Point { kernel, bytes, threads, seconds })
    }

    fn processor(&self, bytes: usize) -> Result<Point, Error> {
        let mut data = self.input[..bytes].to_vec();
        // Each run encrypts the output of the previous one, which takes the same time. After an even number of runs the
        // buffer contains the plaintext again, and one more run gives the ciphertext.
        let mut runs = 0;
        let seconds = time(|| {
            runs += 1;
            run_cpu(&self.cpu, &self.key, &mut data)
        })?;
        if runs % 2 == 0 {
            run_cpu(&self.cpu, &self.key, &mut data)?;
        }
        self.check("cpu", &data)?;
        Ok(Point { kernel: "cpu", bytes, threads: None, seconds })
    }

    fn check(&self, kernel: &'static str, output: &[u8]) -> Result<(), Error> {
        let right = output == &self.expected[..output.len()];
        if right { Ok(()) } else { Err(Error::Wrong { kernel, bytes: output.len() }) }
    }
}
