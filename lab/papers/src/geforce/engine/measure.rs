//! Measures the times of the thesis's files on this machine.

use std::time::{Duration, Instant};

use lockstep_core::backend::{Backend, Device, kernel_by_name};
use lockstep_core::data::Data;
use lockstep_core::work::{Operation, Pass, Segment, Stream, Task};
use lockstep_core::{Key, KeySize, Result};
use lockstep_cpu::{CpuBackend, CpuOptions};
use lockstep_cuda::{Cuda, LaunchOptions, Overhead as Engine8800};
use lockstep_opengl::{Experiment, OpenGlDevice, Steps};
use lockstep_planner::{Planner, Selection};

use super::Error;
use crate::geforce::files::{FILES, File};
use crate::geforce::paper;

/// The kernel of the GeForce 6800.
const OF_THE_6800: &str = "opengl/6800";
/// The kernel of the GeForce 8800.
const OF_THE_8800: &str = "cuda/global-sbox";

/// The edges of the data texture in the thesis, in texels of 16 bytes (section 6.2.1).
pub const EDGES: [usize; 3] = [256, 512, 1024];

/// The files of Table A7.
const OVERHEAD_FILES: [u32; 4] = [1, 5, 7, 8];

/// A configuration of the GeForce 8800.
#[derive(Debug, Clone, Copy)]
pub struct Launch {
    /// The tables of the thesis with this configuration.
    pub tables: &'static str,
    /// The number of thread blocks of a launch.
    pub blocks: u32,
    /// The number of threads of a thread block.
    pub threads: u32,
    /// The number of AES blocks that a thread encrypts one after the other. The thesis calls this number the rounds in a thread.
    pub rounds: u32,
    /// Number of bytes of a call of the engine. A launch encrypts 16 * `blocks` * `threads` * `rounds` bytes.
    pub buffer: usize,
}

/// The configurations of Tables A1 to A4. Tables A2 and A4 have the same configuration, but the X server was running during the measurement
/// of Table A4.
pub const LAUNCHES: [Launch; 3] = [
    Launch { tables: "A1", blocks: 360, threads: 512, rounds: 10, buffer: 29_491_200 },
    Launch { tables: "A2", blocks: 360, threads: 512, rounds: 10, buffer: 58_982_400 },
    Launch { tables: "A3", blocks: 240, threads: 256, rounds: 10, buffer: 9_830_400 },
];

/// The configuration for the times of Table A7 on the 8800, as an index into [`LAUNCHES`]. The thesis does not state
/// it, so it is the configuration of Table A4.
const OVERHEAD_LAUNCH: usize = 1;

/// The conditions under which the files are measured.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// The sizes of Table 6.2.1 are divided by this number.
    pub scale: u64,
    /// For the 8800, the sizes of the thesis are divided by this number.
    pub scale_8800: u64,
    /// Number of runs whose mean is reported.
    pub runs: usize,
    /// Edges of the data texture, from 1 to 1024.
    pub edges: Vec<usize>,
}

/// The mean time of a file.
#[derive(Debug, Clone, Copy)]
pub struct Time {
    /// Bytes of the file, without the padding.
    pub bytes: u64,
    /// The mean of the seconds of all runs.
    pub seconds: f64,
    /// The CPU time in seconds that all threads of this process took.
    pub cpu_seconds: f64,
}

impl Time {
    /// The throughput in 10^6 bytes per second.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 / self.seconds / 1e6
    }

    /// The number of processors in use.
    pub fn processors(&self) -> f64 {
        self.cpu_seconds / self.seconds
    }
}

/// The times of a file with the kernel of the GeForce 6800.
#[derive(Debug, Clone, Copy)]
pub struct Geforce6800 {
    /// The number of the file.
    pub file: u32,
    /// The edge of the data texture.
    pub edge: usize,
    /// The time if whole textures are drawn, also for the padding, as in the thesis.
    pub whole: Time,
    /// The time if each draw has the size of its data, which the thesis proposes as future work.
    pub resized: Time,
}

/// Table A7: the times of a file without encryption.
#[derive(Debug, Clone, Copy)]
pub struct Overhead {
    /// The number of the file.
    pub file: u32,
    /// The time of the calls of an engine that does nothing.
    pub nothing: Time,
    /// The time if the data are copied to the device and back.
    pub copies: Time,
    /// The time if the data are copied and encrypted.
    pub all: Time,
}

/// The mean time of the padding of a file, 16 bytes, which is a separate call.
#[derive(Debug, Clone, Copy)]
pub struct Padding {
    /// The edge of the data texture.
    pub edge: usize,
    /// Seconds if a whole texture is drawn, as in the thesis.
    pub whole: f64,
    /// Seconds if only one fragment is drawn.
    pub resized: f64,
}

/// The time of a file with one configuration of the kernel for the GeForce 8800.
#[derive(Debug, Clone, Copy)]
pub struct Geforce8800 {
    /// The number of the file.
    pub file: u32,
    /// The configuration, as an index into [`LAUNCHES`].
    pub launch: usize,
    /// The mean time of the file with this configuration.
    pub time: Time,
}

/// All measurements.
pub struct Measured {
    /// The conditions under which the times were measured.
    pub conditions: Conditions,
    /// The devices that were measured, each with its description.
    pub devices: Vec<String>,
    /// True if an emulator took the place of the 8800: its rates are meaningless.
    pub is_emulated: bool,
    /// The number of each file, and its time on one thread of the CPU.
    pub cpu: Vec<(u32, Time)>,
    /// The times with the kernel of the 6800, for each file and edge.
    pub on_6800: Vec<Geforce6800>,
    /// The times of the padding, for each edge.
    pub padding: Vec<Padding>,
    /// The edge of the data texture for `overhead`: the edge of Table A5 if it is measured, otherwise the largest
    /// edge.
    pub overhead_edge: usize,
    /// Table A7: the times without encryption, for the files of that table.
    pub overhead: Vec<Overhead>,
    /// The times with the kernel of the 8800, for each file and configuration. Empty if there is no CUDA device.
    pub on_8800: Vec<Geforce8800>,
    /// Table A7 for the 8800, with the buffer of Table A4. Empty if there is no CUDA device.
    pub overhead_8800: Vec<Overhead>,
}

/// Encrypts a buffer in ECB mode.
type Encrypt<'a> = dyn FnMut(&[u8], &mut [u8]) -> Result<()> + 'a;

/// Measures the files. `opengl` opens the same device for each experiment. Each step is reported to `progress`.
///
/// # Errors
/// [`Error::Device`]; [`Error::Wrong`] for a wrong output; [`Error::Memory`].
pub fn measure(
    opengl: &dyn Fn(Experiment) -> Result<OpenGlDevice>,
    cuda: Option<&Cuda>,
    conditions: Conditions,
    mut progress: impl FnMut(String),
) -> std::result::Result<Measured, Error> {
    let bench = Bench::new(&conditions)?;
    let plain = opengl(Experiment::default())?;
    let named = |device: &dyn Device| format!("{}: {}", device.id(), device.description());
    let mut devices = vec![named(&plain)];
    devices.extend(cuda.map(|cuda| named(cuda)));
    let files = FILES.map(|file| scaled(file, conditions.scale));
    let mut cpu = Vec::new();
    for file in &files {
        progress(format!("file {} on the CPU", file.number));
        cpu.push((file.number, bench.cpu_time(file)?));
    }
    let (mut on_6800, mut padding) = (Vec::new(), Vec::new());
    for &edge in &conditions.edges {
        let whole = opengl(Experiment { edge: Some(edge), steps: Steps::All })?;
        for file in &files {
            progress(format!("file {} in textures of {edge} x {edge}", file.number));
            let [whole, resized] = [&whole, &plain].map(|device| bench.on_6800(device, file, edge, true));
            on_6800.push(Geforce6800 { file: file.number, edge, whole: whole?, resized: resized? });
        }
        progress(format!("the padding in a texture of {edge} x {edge}"));
        let [whole, resized] = [&whole, &plain].map(|device| bench.padding_time(device));
        padding.push(Padding { edge, whole: whole?, resized: resized? });
    }
    let mut overhead = Vec::new();
    let of_table = conditions.edges.iter().find(|edge| **edge == paper::EDGE as usize);
    let edge = of_table.or(conditions.edges.iter().max()).copied().unwrap_or(paper::EDGE as usize);
    for file in OVERHEAD_FILES.map(|number| &files[number as usize - 1]) {
        progress(format!("file {} without encryption", file.number));
        let time = |steps| {
            let device = opengl(Experiment { edge: Some(edge), steps })?;
            bench.on_6800(&device, file, edge, steps == Steps::All)
        };
        let (nothing, copies, all) = (time(Steps::Nothing)?, time(Steps::Copies)?, time(Steps::All)?);
        overhead.push(Overhead { file: file.number, nothing, copies, all });
    }
    let (mut on_8800, mut overhead_8800) = (Vec::new(), Vec::new());
    if let Some(cuda) = cuda {
        let files = FILES.map(|file| scaled(file, conditions.scale_8800));
        for (launch, Launch { tables, .. }) in LAUNCHES.iter().enumerate() {
            for file in &files {
                progress(format!("file {} as in Table {tables}", file.number));
                let time = bench.on_8800(cuda, file, &LAUNCHES[launch])?;
                on_8800.push(Geforce8800 { file: file.number, launch, time });
            }
        }
        for file in OVERHEAD_FILES.map(|number| &files[number as usize - 1]) {
            progress(format!("file {} on the 8800 without encryption", file.number));
            let [nothing, copies] =
                [Engine8800::Null, Engine8800::Copy].map(|kind| bench.overhead_8800(cuda, file, kind));
            let is_same = |point: &&Geforce8800| (point.file, point.launch) == (file.number, OVERHEAD_LAUNCH);
            let all = on_8800.iter().find(is_same).map(|point| point.time);
            let all = all.map_or_else(|| bench.on_8800(cuda, file, &LAUNCHES[OVERHEAD_LAUNCH]), Ok);
            overhead_8800.push(Overhead { file: file.number, nothing: nothing?, copies: copies?, all: all? });
        }
    }
    let is_emulated = cuda.is_some_and(|cuda| cuda.properties().simulated);
    Ok(Measured {
        conditions,
        devices,
        is_emulated,
        cpu,
        on_6800,
        padding,
        overhead_edge: edge,
        overhead,
        on_8800,
        overhead_8800,
    })
}

/// Returns a file of about `1 / scale` of the length. It has whole blocks, and at least one.
pub(in crate::geforce) fn scaled(file: File, scale: u64) -> File {
    File { bytes: (file.bytes / scale / 16 * 16).max(16), ..file }
}

pub(super) fn encrypt(device: &dyn Device, kernel: &str, key: &Key, data: Data<'_>) -> Result<()> {
    let mut state = [0; 16];
    let mut segments = [Segment { key, tweak: None, state: &mut state, data }];
    let work = Task::Pass(Pass::EcbEncrypt, &mut segments).into();
    device.submit(kernel_by_name(device, kernel)?, work)?.wait()
}

/// Returns the key of the thesis's experiments as a [`Key`].
pub(in crate::geforce) fn key() -> Result<Key> {
    Key::new(&paper::KEY)
}

/// Makes a planner that uses the fastest kernel of the CPU on one thread.
pub(in crate::geforce) fn processor() -> Result<Planner> {
    Planner::new(CpuBackend::new(CpuOptions { threads: Some(1) }).discover().devices, &Selection::default())
}

/// Encrypts by the device that a planner chooses.
pub(in crate::geforce) fn encrypt_by(planner: &Planner, key: &Key, data: Data<'_>) -> Result<()> {
    let plan = planner.plan(Operation::Pass(Pass::EcbEncrypt), KeySize::Aes128, data.len(), None)?;
    let mut state = [0; 16];
    plan.run(Task::Pass(Pass::EcbEncrypt, &mut [Segment { key, tweak: None, state: &mut state, data }]))
}

/// Allocates a buffer of zeros, or returns [`Error::Memory`].
pub(in crate::geforce) fn buffer(bytes: usize) -> std::result::Result<Vec<u8>, Error> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(bytes).map_err(|_| Error::Memory { bytes })?;
    buffer.resize(bytes, 0);
    Ok(buffer)
}

/// Returns the CPU time of this process so far: user and system time of all threads.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.clamp(0, 999_999_999) as u32)
}

struct Bench {
    runs: usize,
    key: Key,
    cpu: Planner,
}

impl Bench {
    fn new(conditions: &Conditions) -> Result<Bench> {
        Ok(Bench { runs: conditions.runs.max(1), key: key()?, cpu: processor()? })
    }

    fn cpu_time(&self, file: &File) -> std::result::Result<Time, Error> {
        // The size of a buffer of Table A5.
        let size = 16 * (paper::EDGE as usize).pow(2);
        self.time("cpu", file, size, true, &mut |from, to| {
            encrypt_by(&self.cpu, &self.key, Data::copy(from, to)?)
        })
    }

    /// Returns the mean time of a file with the buffer of an edge. If `computes` is false, the device does not encrypt, so the output is
    /// not compared.
    fn on_6800(
        &self,
        device: &OpenGlDevice,
        file: &File,
        edge: usize,
        computes: bool,
    ) -> std::result::Result<Time, Error> {
        self.time(OF_THE_6800, file, 16 * edge * edge, computes, &mut |from, to| {
            encrypt(device, OF_THE_6800, &self.key, Data::copy(from, to)?)
        })
    }

    fn padding_time(&self, device: &OpenGlDevice) -> std::result::Result<f64, Error> {
        let empty = File { bytes: 0, ..FILES[0] };
        let time = self.time(OF_THE_6800, &empty, 16, true, &mut |from, to| {
            encrypt(device, OF_THE_6800, &self.key, Data::copy(from, to)?)
        });
        Ok(time?.seconds)
    }

    fn on_8800(&self, cuda: &Cuda, file: &File, launch: &Launch) -> std::result::Result<Time, Error> {
        let Launch { blocks, threads, rounds, buffer, .. } = *launch;
        let cuda = cuda.launched(LaunchOptions {
            threads: Some(threads),
            blocks: Some(blocks),
            blocks_per_thread: Some(rounds),
            ..LaunchOptions::default()
        });
        self.time(OF_THE_8800, file, buffer, true, &mut |from, to| {
            encrypt(&cuda, OF_THE_8800, &self.key, Data::copy(from, to)?)
        })
    }

    /// Returns the mean time of a file with an engine that does not encrypt.
    fn overhead_8800(&self, cuda: &Cuda, file: &File, kind: Engine8800) -> std::result::Result<Time, Error> {
        self.time(OF_THE_8800, file, LAUNCHES[OVERHEAD_LAUNCH].buffer, false, &mut |from, to| {
            let (data, mut state) = (Data::copy(from, to)?, [0; 16]);
            let mut segments = [Segment { key: &self.key, tweak: None, state: &mut state, data }];
            cuda.overhead(kind, &mut segments, Stream::default())?.wait()
        })
    }

    /// Returns the mean time of the calls that encrypt a file, buffer by buffer, and then the padding. The time does not include creating
    /// and comparing the data of a buffer.
    fn time(
        &self,
        kernel: &'static str,
        file: &File,
        size: usize,
        computes: bool,
        encrypt: &mut Encrypt<'_>,
    ) -> std::result::Result<Time, Error> {
        let most = usize::try_from(file.bytes).map_or(size, |bytes| bytes.clamp(16, size));
        let (mut input, mut output, mut expected) = (buffer(most)?, buffer(most)?, buffer(most)?);
        let (mut wall, mut cpu) = (Duration::ZERO, Duration::ZERO);
        // The first run warms up: shaders are compiled and memory is allocated.
        for run in 0..=self.runs {
            let mut done = 0;
            loop {
                // The file is followed by its padding, a block of 16 bytes with the value 16 (RFC 5652, 6.3).
                let is_padding = done == file.bytes;
                let len = if is_padding { 16 } else { most.min((file.bytes - done) as usize) };
                for (at, block) in input[..len].chunks_exact_mut(16).enumerate() {
                    let value = if is_padding { [16; 16] } else { file.block(done / 16 + at as u64) };
                    block.copy_from_slice(&value);
                }
                output[..len].fill(0);
                let (start, cpu_start) = (Instant::now(), cpu_time());
                encrypt(&input[..len], &mut output[..len])?;
                if run > 0 {
                    cpu += cpu_time() - cpu_start;
                    wall += start.elapsed();
                }
                if computes {
                    encrypt_by(&self.cpu, &self.key, Data::copy(&input[..len], &mut expected[..len])?)?;
                    if output[..len] != expected[..len] {
                        return Err(Error::Wrong { kernel, file: file.number });
                    }
                }
                if is_padding {
                    break;
                }
                done += len as u64;
                // One call is enough to warm up.
                if run == 0 {
                    done = file.bytes;
                }
            }
        }
        let mean = |time: Duration| time.as_secs_f64() / self.runs as f64;
        Ok(Time { bytes: file.bytes, seconds: mean(wall), cpu_seconds: mean(cpu) })
    }
}
