//! The devices: the simulated QPUs, and the QPUs of a board.

mod chains;
mod kernels;
mod pieces;
mod sectors;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lockstep_core::backend::{
    Backend, Completion, Cost, Counter, Device, DeviceId, DeviceProperties, DeviceSelector, Discovery,
    KernelId, KernelInfo, LaunchOption, Missing, Unit,
};
use lockstep_core::launch::number;
use lockstep_core::work::{Operation, Pass, Segment, Task, Work};
use lockstep_core::{Block, Error, KeySize};
use zeroize::Zeroizing;

use self::kernels::{KERNELS, Kernel};
use crate::board::{self, Board};
use crate::chip::{Chip, ChipError, Simulator};
use crate::launch::{Job, Launch};
use crate::sim::QPUS;

/// The backend of the QPUs of VideoCore IV. The device `qpu:0` is a Raspberry Pi 1 to 3 that runs this program, and the devices
/// `qpu` and `qpu:sim1` to `qpu:sim12` are the simulator. These devices are used only if the user names them: the simulator is
/// slow, and no board has been tested yet.
#[derive(Debug, Clone, Copy, Default)]
pub struct QpuBackend {
    /// The function [`Qpu::default`], which makes the simulator, if the simulator is one of the devices. If this is `None`, the
    /// program does not contain the simulator.
    pub simulator: Option<fn() -> Qpu>,
}

const NAME: &str = "qpu";

/// The number of the board among the backend's devices: `qpu:0`.
const BOARD: u16 = 0;

/// The names, after `qpu:`, of the simulator with 1 to 12 QPUs. The names are not plain numbers, because a number selects a
/// board.
const SIMULATORS: [&str; QPUS as usize] =
    ["sim1", "sim2", "sim3", "sim4", "sim5", "sim6", "sim7", "sim8", "sim9", "sim10", "sim11", "sim12"];

/// The cost on a board. BOARD_CALL is the time of a call in nanoseconds. COPY is the time in nanoseconds for copying a byte to
/// and from the memory of the GPU. Both are fitted to the thesis's Table 5.1. CLOCKS_PER_NS is the number of clocks of all QPUs
/// per nanosecond, at 250 MHz.
const BOARD_CALL: f64 = 250_000.0;
const COPY: f64 = 10.0;
const CLOCKS_PER_NS: f64 = 0.25 * QPUS as f64;

impl Backend for QpuBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn discover(&self) -> Discovery {
        let (board, missing) = match Board::open() {
            Ok(board) => (Some(Qpu::of_board(board)), None),
            Err(missing) => (None, Some(missing)),
        };
        let simulator = self.simulator.map(|make| make());
        let devices = board.into_iter().chain(simulator).map(|device| Arc::new(device) as Arc<dyn Device>);
        Discovery { devices: devices.collect(), missing }
    }

    fn certainly_missing(&self) -> Option<Missing> {
        board::check(Path::new("/")).err()
    }

    fn launch_options(&self) -> &'static [LaunchOption] {
        LAUNCH_OPTIONS
    }

    fn named(&self, name: &DeviceSelector) -> Option<Result<Arc<dyn Device>, Missing>> {
        if name.backend() != NAME {
            return None;
        }
        let Some(unit) = name.unit() else { return Some(Ok(Arc::new(self.simulator?()))) };
        if let Some((name, qpus)) = SIMULATORS.into_iter().zip(1..).find(|(name, _)| *name == unit) {
            return Some(Ok(Arc::new(self.simulator?().with_qpus(name, qpus))));
        }
        if name.number() != Some(BOARD) {
            return Some(Err(Missing {
                reason: format!("there is no device {NAME}:{unit}"),
                remedy: match self.simulator {
                    None => format!("use {NAME}:{BOARD}, the board that runs this program"),
                    Some(_) => format!(
                        "use {NAME}:{BOARD}, the board that runs this program, or {NAME}:sim1 to {NAME}:sim{QPUS}, the simulator \
                         with 1 to {QPUS} QPUs"
                    ),
                },
            }));
        }
        Some(Board::open().map(|board| Arc::new(Qpu::of_board(board)) as Arc<dyn Device>))
    }
}

/// Totals of the simulated QPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Simulated {
    /// Bytes of data that the device has processed.
    pub bytes: u64,
    /// Clocks of all runs, each counted until its last QPU has ended.
    pub clocks: u64,
    /// Instructions that all QPUs together have executed.
    pub instructions: u64,
}

/// A call of the device: it runs programs, and adds up their totals.
struct Call<'c> {
    chip: &'c mut dyn Chip,
    device: DeviceId,
    /// The number of QPUs that the call may use.
    qpus: u8,
    done: Simulated,
}

impl Call<'_> {
    /// Runs a program on a number of QPUs. Returns its output.
    fn run(&mut self, launch: Launch, job: &Job<'_>, qpus: u8) -> Result<Zeroizing<Vec<u8>>, Error> {
        let failed =
            |error: ChipError| Error::DeviceFailed { device: self.device, reason: error.to_string() };
        let (output, run) = launch.run(self.chip, job, qpus).map_err(failed)?;
        self.done.clocks += run.clocks;
        self.done.instructions += run.instructions;
        Ok(output)
    }
}

/// The QPUs of a chip.
pub struct Qpu {
    unit: Unit,
    description: String,
    properties: DeviceProperties,
    /// The chip. It executes one call at a time.
    chip: Arc<Mutex<Box<dyn Chip>>>,
    qpus: u8,
    kernels: Vec<KernelInfo>,
    done: Mutex<Simulated>,
    counts: Mutex<Vec<Counter>>,
}

impl Default for Qpu {
    /// The QPUs of the simulator.
    fn default() -> Qpu {
        let description = format!("{}; {NAME}:sim1 to {NAME}:sim{QPUS} have 1 to {QPUS}", simulator(QPUS));
        Qpu::new(Unit::Only, description, DeviceProperties::SIMULATOR, Box::new(Simulator))
    }
}

/// The description of the simulator.
fn simulator(qpus: u8) -> String {
    format!("VideoCore IV with {qpus} QPU{}", if qpus == 1 { "" } else { "s" })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Qpu {
    /// The QPUs of a board.
    pub fn of_board(board: Board) -> Qpu {
        let properties = DeviceProperties { by_name_only: true, ..DeviceProperties::default() };
        Qpu::with_board(board, properties)
    }

    /// A simulated board, whose firmware runs the simulator.
    pub fn of_simulated_board(board: Board) -> Qpu {
        Qpu::with_board(board, DeviceProperties::SIMULATOR)
    }

    fn with_board(board: Board, properties: DeviceProperties) -> Qpu {
        let description = format!("{}: VideoCore IV with {QPUS} QPUs", board.model().description());
        Qpu::new(Unit::Number(BOARD), description, properties, Box::new(board))
    }

    /// The simulator with another number of QPUs.
    fn with_qpus(self, name: &'static str, qpus: u8) -> Qpu {
        Qpu { unit: Unit::Named(name), description: simulator(qpus), qpus, ..self }
    }

    fn new(unit: Unit, description: String, properties: DeviceProperties, chip: Box<dyn Chip>) -> Qpu {
        Qpu {
            unit,
            description,
            properties,
            chip: Arc::new(Mutex::new(chip)),
            qpus: QPUS,
            kernels: KERNELS.iter().map(|kernel| kernel.info.clone()).collect(),
            done: Mutex::default(),
            counts: Mutex::new(no_counts()),
        }
    }

    /// The totals of the simulator over all calls.
    pub fn simulated(&self) -> Simulated {
        *lock(&self.done)
    }
}

fn no_counts() -> Vec<Counter> {
    let count = |kernel: &Kernel| Counter { name: kernel.info.name, launches: 0, bytes: 0 };
    KERNELS.iter().map(count).collect()
}

/// The launch options for users.
const LAUNCH_OPTIONS: &[LaunchOption] = &[LaunchOption {
    name: "qpus",
    meaning: "the number of QPUs",
    range: 1..=QPUS as u32,
    multiple: 1,
    kernels: &[],
}];

/// Zeroes the output of a call that failed after its first run, because a partial result must not look like a complete result.
fn zero_outputs(device: DeviceId, segments: &mut [Segment<'_>]) {
    for segment in segments {
        // Memory that is not host memory is skipped, because no run has written it.
        if let Ok(mut host) = segment.data.reborrow().into_host(device) {
            host.output().fill(0);
        }
    }
}

impl Device for Qpu {
    fn id(&self) -> DeviceId {
        DeviceId { backend: NAME, unit: self.unit }
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    fn properties(&self) -> DeviceProperties {
        self.properties
    }

    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }

    fn cost(&self, kernel: KernelId, operation: Operation, _: KeySize) -> Option<Cost> {
        let Operation::Pass(pass) = operation else { return None };
        let kernel = KERNELS.get(usize::from(kernel.0))?;
        (kernel.launch)(pass)?;
        if self.properties.simulated {
            // This is the cost of the simulation on the host, not the cost on a chip.
            return Some(Cost::new(100_000.0, kernel.simulated_rate));
        }
        Some(Cost::new(BOARD_CALL, 1.0 / (kernel.clocks_per_byte / CLOCKS_PER_NS + COPY)))
    }

    fn with_launch(&self, launch: &[(&'static str, u32)]) -> Result<Option<Arc<dyn Device>>, Error> {
        Ok(Some(Arc::new(Qpu {
            unit: self.unit,
            description: self.description.clone(),
            properties: self.properties,
            chip: Arc::clone(&self.chip),
            qpus: number(launch, "qpus").map_or(self.qpus, |qpus| qpus as u8),
            kernels: self.kernels.clone(),
            done: Mutex::default(),
            counts: Mutex::new(no_counts()),
        })))
    }

    fn counters(&self) -> Vec<Counter> {
        lock(&self.counts).clone()
    }

    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>, Error> {
        let named = KERNELS.get(usize::from(kernel.0));
        let operation = work.task.operation();
        let unsupported = || operation.unsupported_by(named.map_or("the QPUs", |named| named.info.name));
        let Task::Pass(pass, segments) = work.task else { return Err(unsupported()) };
        let launch = named.and_then(|named| (named.launch)(pass)).ok_or_else(unsupported)?;
        let states: Zeroizing<Vec<Block>> =
            Zeroizing::new(segments.iter().map(|segment| *segment.state).collect());
        let mut chip = lock(&self.chip);
        let done = Simulated::default();
        let mut call = Call { chip: &mut **chip, device: self.id(), qpus: self.qpus, done };
        let result = if pass.is_xts() {
            sectors::run(&mut call, launch, segments)
        } else if pass.is_serial() && pass != Pass::PcbcDecrypt {
            chains::run(&mut call, launch, pass, segments)
        } else {
            segments.iter_mut().try_for_each(|segment| pieces::run(&mut call, launch, pass, segment))
        };
        let done = call.done;
        chip.finish();
        drop(chip);
        if result.is_err() {
            if done.bytes > 0 && !pass.is_read_only() {
                zero_outputs(self.id(), segments);
            }
            segments.iter_mut().zip(&*states).for_each(|(segment, state)| *segment.state = *state);
        }
        result?;
        let total = &mut lock(&self.done);
        total.bytes += done.bytes;
        total.clocks += done.clocks;
        total.instructions += done.instructions;
        let count = &mut lock(&self.counts)[usize::from(kernel.0)];
        count.launches += 1;
        count.bytes += done.bytes;
        Ok(Completion::Done)
    }
}
