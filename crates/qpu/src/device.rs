//! The QPUs as devices: those of the simulator, and those of a board.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lockstep_core::backend::{
    Backend, Completion, Cost, Counter, Device, DeviceId, DeviceProperties, DeviceSelector, Discovery,
    KernelId, KernelInfo, Missing, Unit,
};
use lockstep_core::chaining::ChainingState;
use lockstep_core::key::RoundKeys;
use lockstep_core::work::{Operation, Pass, Segment, Task, Work};
use lockstep_core::{Block, Error, KeySize};
use zeroize::Zeroizing;

use crate::board::{self, Board};
use crate::chip::{Chip, Simulator};
use crate::kernels::bitslice::Blocks;
use crate::launch::{Job, Launch, MAX_RUN_BYTES};
use crate::sim::QPUS;

/// The backend of the QPUs of VideoCore IV. The device `qpu:0` is a Raspberry Pi 1 to 3 that runs this program, and the device
/// `qpu` is the simulator. Both are used by name only: no board has been tested yet.
#[derive(Debug, Clone, Copy)]
pub struct QpuBackend {
    /// True if there is the simulator.
    pub has_simulator: bool,
}

/// The backend's name.
const NAME: &str = "qpu";

/// The number of the board.
const BOARD: u16 = 0;

/// The cost on a board: nanoseconds of a call, and of a byte for the copies to and from the GPU's memory, both as fitted to the
/// thesis's Table 5.1; and clocks of all QPUs in a nanosecond at 250 MHz.
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
        let simulator = self.has_simulator.then(Qpu::default);
        let devices = board.into_iter().chain(simulator).map(|device| Arc::new(device) as Arc<dyn Device>);
        Discovery { devices: devices.collect(), missing }
    }

    fn certainly_missing(&self) -> Option<Missing> {
        board::check(Path::new("/")).err()
    }

    fn named(&self, name: &DeviceSelector) -> Option<Result<Arc<dyn Device>, Missing>> {
        let unit = name.unit().filter(|_| name.backend() == NAME)?;
        if name.number() != Some(BOARD) {
            return Some(Err(Missing {
                reason: format!("there is no device {NAME}:{unit}"),
                remedy: format!("use {NAME}:{BOARD}, the board that runs this program"),
            }));
        }
        Some(Board::open().map(|board| Arc::new(Qpu::of_board(board)) as Arc<dyn Device>))
    }
}

/// A kernel of the device.
struct Kernel {
    info: KernelInfo,
    /// Bytes of the simulation in a nanosecond, at 20 million instructions a second.
    simulated_rate: f64,
    /// Clocks of a QPU for a byte, by the simulator with twelve QPUs and a key of 128 bits.
    clocks_per_byte: f64,
    launch: fn(Pass) -> Option<Launch>,
}

static KERNELS: [Kernel; 4] = [
    Kernel {
        info: KernelInfo {
            name: "qpu/bitslice",
            description: "32 blocks at once, as bit planes",
            constant_time: true,
            missing: None,
        },
        simulated_rate: 0.0055,
        clocks_per_byte: 15.0,
        launch: |pass| match pass {
            Pass::EcbEncrypt => Some(blocks(false, false)),
            Pass::EcbDecrypt => Some(blocks(true, false)),
            Pass::CbcDecrypt => Some(blocks(true, true)),
            Pass::Cfb128Decrypt => Some(blocks(false, true)),
            Pass::Ctr | Pass::Ctr32 => Some(Launch::Ctr),
            _ => None,
        },
    },
    Kernel {
        info: KernelInfo {
            name: "qpu/packed-tuned",
            description: "four blocks in a vector and lookups of columns",
            constant_time: false,
            missing: None,
        },
        simulated_rate: 0.005,
        clocks_per_byte: 26.6,
        launch: |pass| match pass {
            Pass::EcbEncrypt => Some(Launch::PackedTuned { decrypts: false }),
            Pass::EcbDecrypt => Some(Launch::PackedTuned { decrypts: true }),
            _ => None,
        },
    },
    Kernel {
        info: KernelInfo {
            name: "qpu/packed",
            description: "four blocks in a vector and table lookups, as published in the thesis",
            constant_time: false,
            missing: None,
        },
        simulated_rate: 0.001,
        clocks_per_byte: 89.3,
        launch: |pass| match pass {
            Pass::EcbEncrypt => Some(Launch::Packed { decrypts: false }),
            Pass::EcbDecrypt => Some(Launch::Packed { decrypts: true }),
            _ => None,
        },
    },
    Kernel {
        info: KernelInfo {
            name: "qpu/naive",
            description: "one byte in an element, the thesis's first kernel",
            constant_time: false,
            missing: None,
        },
        simulated_rate: 0.0002,
        clocks_per_byte: 512.0,
        launch: |pass| (pass == Pass::EcbEncrypt).then_some(Launch::Naive),
    },
];

fn blocks(decrypts: bool, combines: bool) -> Launch {
    Launch::Blocks(Blocks { decrypts, combines })
}

/// Totals of the simulated QPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Simulated {
    /// Bytes processed.
    pub bytes: u64,
    /// Clocks of all runs.
    pub clocks: u64,
    /// Instructions of all QPUs.
    pub instructions: u64,
}

/// The QPUs of a chip.
pub struct Qpu {
    unit: Unit,
    description: String,
    properties: DeviceProperties,
    /// For one call at a time.
    chip: Mutex<Box<dyn Chip>>,
    kernels: Vec<KernelInfo>,
    done: Mutex<Simulated>,
    counts: Mutex<Vec<Counter>>,
}

impl Default for Qpu {
    /// The QPUs of the simulator.
    fn default() -> Qpu {
        let description = format!("VideoCore IV with {QPUS} QPUs");
        Qpu::new(Unit::Only, description, DeviceProperties::SIMULATOR, Box::new(Simulator))
    }
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

    /// A board whose firmware is an imitation that runs the simulator.
    pub fn of_simulated_board(board: Board) -> Qpu {
        Qpu::with_board(board, DeviceProperties::SIMULATOR)
    }

    fn with_board(board: Board, properties: DeviceProperties) -> Qpu {
        let description = format!("{}: VideoCore IV with {QPUS} QPUs", board.model().description());
        Qpu::new(Unit::Number(BOARD), description, properties, Box::new(board))
    }

    fn new(unit: Unit, description: String, properties: DeviceProperties, chip: Box<dyn Chip>) -> Qpu {
        let count = |kernel: &Kernel| Counter { name: kernel.info.name, launches: 0, bytes: 0 };
        Qpu {
            unit,
            description,
            properties,
            chip: Mutex::new(chip),
            kernels: KERNELS.iter().map(|kernel| kernel.info.clone()).collect(),
            done: Mutex::default(),
            counts: Mutex::new(KERNELS.iter().map(count).collect()),
        }
    }

    /// The totals of the simulator so far.
    pub fn simulated(&self) -> Simulated {
        *lock(&self.done)
    }

    /// Executes a pass over a segment. Returns its bytes.
    fn run_segment(
        &self,
        chip: &mut dyn Chip,
        launch: Launch,
        pass: Pass,
        segment: &mut Segment<'_>,
    ) -> Result<u64, Error> {
        let keys = segment.key.round_keys();
        let mut host = segment.data.reborrow().into_host(self.id())?;
        let len = host.input().len();
        let rule = ChainingState::of(pass);
        let mut state = Zeroizing::new(*segment.state);
        let mut at = 0;
        while at < len {
            let end = at + self.piece(pass, &state, len - at);
            let input = Zeroizing::new(host.input()[at..end].to_vec());
            let (output, next) = self.run_piece(chip, launch, pass, keys, &state, &input, rule)?;
            host.output()[at..end].copy_from_slice(&output[..end - at]);
            (state, at) = (next, end);
        }
        *segment.state = *state;
        Ok(len as u64)
    }

    /// The bytes of the next run: a run increments the last 32 bits of a counter, which must not overflow in it.
    fn piece(&self, pass: Pass, state: &Block, left: usize) -> usize {
        let most = left.min(MAX_RUN_BYTES - 512);
        if !matches!(pass, Pass::Ctr | Pass::Ctr32) {
            return most;
        }
        let low = u32::from_be_bytes(state[12..].try_into().expect("four bytes"));
        let until_wrap = ((1u64 << 32) - u64::from(low)) * 16;
        until_wrap.min(most as u64) as usize
    }

    /// Runs a piece. Returns its output, and the chaining state after it.
    #[allow(clippy::too_many_arguments, reason = "a call of one place")]
    fn run_piece(
        &self,
        chip: &mut dyn Chip,
        launch: Launch,
        pass: Pass,
        keys: &RoundKeys,
        state: &Block,
        input: &[u8],
        rule: ChainingState,
    ) -> Result<(Zeroizing<Vec<u8>>, Zeroizing<Block>), Error> {
        // With room for all, so that no copy is left behind by a move.
        let mut padded = Zeroizing::new(Vec::with_capacity(input.len().next_multiple_of(16)));
        padded.extend_from_slice(input);
        if pass == Pass::Cfb128Decrypt {
            padded.resize(input.len().next_multiple_of(16), 0);
        }
        // The blocks before those of the input.
        let mut before = Zeroizing::new(Vec::with_capacity(padded.len()));
        if matches!(pass, Pass::CbcDecrypt | Pass::Cfb128Decrypt) {
            before.extend_from_slice(state);
            before.extend_from_slice(&padded[..padded.len() - 16]);
        }
        let (blocks, other): (&[u8], &[u8]) = match pass {
            Pass::CbcDecrypt => (&padded, &before),
            Pass::Cfb128Decrypt => (&before, &padded),
            _ => (&padded, &[]),
        };
        let job = Job { keys, counter: *state, input: blocks, other };
        let (output, run) = launch
            .run(chip, &job, QPUS)
            .map_err(|error| Error::DeviceFailed { device: self.id(), reason: error.to_string() })?;
        let mut done = lock(&self.done);
        done.bytes += input.len() as u64;
        done.clocks += run.clocks;
        done.instructions += run.instructions;
        let last = input.as_chunks::<16>().0.last().copied();
        Ok((output, Zeroizing::new(rule.after(*state, input.len(), last))))
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
            // The cost of the simulation on the host, not the cost on the chip.
            return Some(Cost::new(100_000.0, kernel.simulated_rate));
        }
        Some(Cost::new(BOARD_CALL, 1.0 / (kernel.clocks_per_byte / CLOCKS_PER_NS + COPY)))
    }

    fn counters(&self) -> Vec<Counter> {
        lock(&self.counts).clone()
    }

    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>, Error> {
        let named = KERNELS.get(usize::from(kernel.0));
        let operation = work.task.operation();
        let unsupported = || Error::Unsupported {
            kernel: named.map_or("the QPUs", |named| named.info.name),
            operation: operation.to_string(),
        };
        let Task::Pass(pass, segments) = work.task else { return Err(unsupported()) };
        let launch = named.and_then(|named| (named.launch)(pass)).ok_or_else(unsupported)?;
        let mut bytes = 0;
        let mut chip = lock(&self.chip);
        let mut result = Ok(());
        for segment in segments.iter_mut() {
            match self.run_segment(&mut **chip, launch, pass, segment) {
                Ok(done) => bytes += done,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        chip.finish();
        result?;
        let count = &mut lock(&self.counts)[usize::from(kernel.0)];
        count.launches += 1;
        count.bytes += bytes;
        Ok(Completion::Done)
    }
}
