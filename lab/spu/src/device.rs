//! The simulated Cell as a device. Work is split over the SPEs as the main processor of a Cell would split it.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lockstep_core::backend::{
    Backend, Completion, Cost, Counter, Device, DeviceId, DeviceProperties, DeviceSelector, Discovery,
    KernelId, KernelInfo, LaunchOption, Missing, Unit,
};
use lockstep_core::data::HostData;
use lockstep_core::launch::number;
use lockstep_core::work::{Operation, Pass, Segment, Task, Work};
use lockstep_core::{Block, Error, KeySize};
use zeroize::Zeroizing;

use crate::kernels::{Compiled, KERNELS, Loop, MAX_RUN_BYTES, Mode, Refused, Way};
use crate::schedule::Effort;
use crate::sim::{Chip, Machine, Transfer, clocks};

/// The backend of the simulated Cell. The device `spu` has the eight SPEs of a chip. The devices `spu:1` to `spu:16` have 1 to 16 SPEs, and
/// are created only if they are requested by name.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpuBackend;

const NAME: &str = "spu";

impl Backend for SpuBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn discover(&self) -> Discovery {
        Discovery { devices: vec![Arc::new(Spu::default())], missing: None }
    }

    fn launch_options(&self) -> &'static [LaunchOption] {
        &[LaunchOption {
            name: "spes",
            meaning: "the number of SPEs",
            range: 1..=MAX_SPES as u32,
            multiple: 1,
            kernels: &[],
        }]
    }

    fn named(&self, name: &DeviceSelector) -> Option<Result<Arc<dyn Device>, Missing>> {
        if name.backend() != NAME {
            return None;
        }
        let Some(unit) = name.unit() else { return Some(Ok(Arc::new(Spu::default()))) };
        Some(match name.number().and_then(Spu::with_spes) {
            Some(spu) => Ok(Arc::new(spu)),
            None => Err(Missing {
                reason: format!("no Cell has `{unit}` SPEs"),
                remedy: format!("use {NAME} for 8, or {NAME}:1 to {NAME}:{MAX_SPES}"),
            }),
        })
    }
}

/// Totals of a simulated Cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Simulated {
    /// Bytes of data that the device has processed.
    pub bytes: u64,
    /// Clocks from the start of a call until its last SPE finishes, including transfers, summed over all calls.
    pub clocks: u64,
    /// Instructions that all SPEs together have executed.
    pub instructions: u64,
}

/// A simulated Cell, as a device.
pub struct Spu {
    id: DeviceId,
    kernels: Vec<KernelInfo>,
    /// Each SPE is created at its first use, so that discovery is cheap.
    spes: Vec<Mutex<Option<Machine>>>,
    done: Mutex<Simulated>,
    counts: Mutex<Vec<Counter>>,
}

/// Maximum number of SPEs: Cell blades had two chips with eight SPEs each.
const MAX_SPES: u16 = 16;

/// The loop that encrypts the zero block to obtain the hash key of GHASH.
const HASH_KEY: Loop = Loop { way: Way::Vperm, mode: Mode::Ecb, blocks: 4, overlaps: true };

/// Minimum size of work, in bytes, for which a thread is started for each SPE.
const THREADS_FROM: usize = 64 * 1024;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Spu {
    /// Returns a Cell with one chip, which has eight SPEs.
    fn default() -> Spu {
        Spu::new(DeviceId { backend: NAME, unit: Unit::Only }, Chip::SPES)
    }
}

impl Spu {
    /// Returns a Cell with this number of SPEs, from 1 to 16. One chip has eight, and two chips on a board have sixteen.
    pub fn with_spes(spes: u16) -> Option<Spu> {
        let id = DeviceId { backend: NAME, unit: Unit::Number(spes) };
        (1..=MAX_SPES).contains(&spes).then(|| Spu::new(id, spes.into()))
    }

    fn new(id: DeviceId, spes: usize) -> Spu {
        let info = |kernel: &crate::kernels::Named| KernelInfo {
            name: kernel.name,
            description: kernel.description,
            constant_time: kernel.constant_time,
            missing: None,
        };
        let count = |kernel: &crate::kernels::Named| Counter { name: kernel.name, launches: 0, bytes: 0 };
        Spu {
            id,
            kernels: KERNELS.iter().map(info).collect(),
            spes: (0..spes).map(|_| Mutex::new(None)).collect(),
            done: Mutex::default(),
            counts: Mutex::new(KERNELS.iter().map(count).collect()),
        }
    }

    /// Returns the totals of all calls so far.
    pub fn simulated(&self) -> Simulated {
        *lock(&self.done)
    }

    fn failed(&self, reason: String) -> Error {
        Error::DeviceFailed { device: self.id, reason }
    }

    fn run_pass(&self, of: Loop, pass: Pass, segments: &mut [Segment<'_>]) -> Result<u64, Error> {
        let mut tasks = Vec::new();
        for (index, segment) in segments.iter_mut().enumerate() {
            let host = segment.data.reborrow().into_host(self.id)?;
            let size = segment.key.size();
            let compiled = of.compiled(size.rounds(), Effort::Full).map_err(|why| self.failed(why))?;
            cut(&mut tasks, pass, index, segment.state, host.input(), compiled);
        }
        let keys: Vec<&[Block]> =
            segments.iter().map(|segment| segment.key.round_keys().as_blocks()).collect();
        let bytes = tasks.iter().map(|task| task.data.len() as u64).sum();
        self.run_tasks(pass, &mut tasks, &keys)?;
        for task in &tasks {
            let segment = &mut segments[task.segment];
            *segment.state = *task.register;
            if !pass.is_read_only() {
                let mut host = segment.data.reborrow().into_host(self.id)?;
                write_back(&mut host, task);
            }
        }
        Ok(bytes)
    }

    /// Runs the tasks on the SPEs in round-robin order.
    fn run_tasks(&self, pass: Pass, tasks: &mut [Piece], keys: &[&[Block]]) -> Result<(), Error> {
        let spes = self.spes.len();
        let mut shares: Vec<Vec<&mut Piece>> = (0..spes).map(|_| Vec::new()).collect();
        let bytes: usize = tasks.iter().map(|task| task.data.len()).sum();
        for (i, task) in tasks.iter_mut().enumerate() {
            shares[i % spes].push(task);
        }
        let work = shares.into_iter().zip(&self.spes).filter(|(share, _)| !share.is_empty());
        let one = |(share, machine): (Vec<&mut Piece>, &Mutex<Option<Machine>>)| {
            let mut machine = lock(machine);
            let machine = ExclusiveUse(machine.get_or_insert_with(Machine::new));
            run_share(machine.0, pass, share, keys)
        };
        let outcomes: Vec<Result<Share, String>> = if bytes < THREADS_FROM {
            work.map(one).collect()
        } else {
            std::thread::scope(|scope| {
                // If no thread can be started for the share of an SPE, the calling thread runs this share after it has
                // started all other threads.
                let begin = |share| {
                    let share = Arc::new(Mutex::new(Some(share)));
                    let theirs = Arc::clone(&share);
                    let taken = move || lock(&theirs).take().map(one);
                    (std::thread::Builder::new().spawn_scoped(scope, taken).ok(), share)
                };
                let begun: Vec<_> = work.map(begin).collect();
                let mut outcomes = Vec::new();
                for (thread, share) in begun {
                    let outcome = match thread {
                        Some(thread) => thread.join().unwrap_or_default(),
                        None => lock(&share).take().map(one),
                    };
                    outcomes.push(outcome.unwrap_or_else(|| Err("the simulator panicked".into())));
                }
                outcomes
            })
        };
        let mut transfers = Vec::new();
        let mut instructions = 0;
        for outcome in outcomes {
            let share = outcome.map_err(|why| self.failed(why))?;
            transfers.push(share.transfers);
            instructions += share.instructions;
        }
        // Each chip has its own memory.
        let chips = transfers.chunks(Chip::SPES).map(|spes| clocks(&Chip::CELL, spes));
        let longest = chips.max().unwrap_or_default();
        let mut done = lock(&self.done);
        done.bytes += bytes as u64;
        done.clocks += longest;
        done.instructions += instructions;
        Ok(())
    }
}

/// Exclusive access to the machine of an SPE. The machine is cleared on drop, even after a panic.
pub struct ExclusiveUse<'m>(pub &'m mut Machine);

impl Drop for ExclusiveUse<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

/// A piece of a segment for one SPE. In a serial pass, the piece is the whole segment.
struct Piece {
    segment: usize,
    range: Range<usize>,
    register: Zeroizing<Block>,
    data: Zeroizing<Vec<u8>>,
    compiled: Arc<Compiled>,
}

/// The work of an SPE.
#[derive(Default)]
struct Share {
    transfers: Vec<Transfer>,
    instructions: u64,
}

/// Cuts a segment into pieces that can be processed in parallel.
fn cut(
    pieces: &mut Vec<Piece>,
    pass: Pass,
    segment: usize,
    register: &Block,
    input: &[u8],
    compiled: Arc<Compiled>,
) {
    let serial = pass.is_serial() || pass == Pass::Ghash;
    let largest = if serial { input.len().max(1) } else { MAX_RUN_BYTES };
    let mut register = Zeroizing::new(*register);
    let mut at = 0;
    while at < input.len() {
        let mut len = largest.min(input.len() - at);
        if pass == Pass::Ctr {
            // The loop increments only the last 32 bits of the counter. So a piece ends where these bits wrap to zero,
            // and the next piece starts with a counter whose higher bits are incremented.
            let low = u32::from_be_bytes(register[12..].try_into().expect("four bytes"));
            let until_wrap = (1u64 << 32) - u64::from(low);
            len = (len as u64).min(until_wrap * 16) as usize;
        }
        let data = Zeroizing::new(input[at..at + len].to_vec());
        let next = match serial {
            true => register.clone(),
            false => Zeroizing::new(register_after(pass, &register, &data, &[])),
        };
        // Each piece starts with a different value of the register. After the pass, the register of the segment gets
        // the value of the last piece.
        let own = std::mem::replace(&mut register, next);
        pieces.push(Piece {
            segment,
            range: at..at + len,
            register: own,
            data,
            compiled: Arc::clone(&compiled),
        });
        at += len;
    }
}

/// Returns the value of the register after the given input and output.
fn register_after(pass: Pass, register: &Block, input: &[u8], output: &[u8]) -> Block {
    let blocks = input.len().div_ceil(16);
    let last = |bytes: &[u8]| match bytes.as_chunks::<16>().0.last() {
        Some(block) => *block,
        None => *register,
    };
    match pass {
        Pass::Ctr => u128::from_be_bytes(*register).wrapping_add(blocks as u128).to_be_bytes(),
        Pass::Ctr32 => {
            let mut next = *register;
            let low = u32::from_be_bytes(register[12..].try_into().expect("four bytes"));
            next[12..].copy_from_slice(&low.wrapping_add(blocks as u32).to_be_bytes());
            next
        }
        Pass::CbcDecrypt | Pass::Cfb128Decrypt => last(input),
        Pass::CbcEncrypt | Pass::CbcMac | Pass::Cfb128Encrypt | Pass::Ghash => last(output),
        Pass::Ofb if input.len() >= 16 => {
            let (input, output) = (last(input), last(output));
            std::array::from_fn(|i| input[i] ^ output[i])
        }
        _ => *register,
    }
}

fn run_share(
    machine: &mut Machine,
    pass: Pass,
    share: Vec<&mut Piece>,
    keys: &[&[Block]],
) -> Result<Share, String> {
    let mut done = Share::default();
    let mut loaded = None;
    for piece in share {
        let keys = keys[piece.segment];
        if loaded != Some((Arc::as_ptr(&piece.compiled), keys.as_ptr())) {
            load(machine, &piece.compiled, keys, &mut done)?;
            loaded = Some((Arc::as_ptr(&piece.compiled), keys.as_ptr()));
        }
        let compiled = Arc::clone(&piece.compiled);
        let mut buffer = Zeroizing::new(vec![0; MAX_RUN_BYTES.min(piece.data.len().next_multiple_of(16))]);
        for part in piece.data.chunks_mut(MAX_RUN_BYTES) {
            let buffer = &mut buffer[..part.len().next_multiple_of(16)];
            buffer.fill(0);
            buffer[..part.len()].copy_from_slice(part);
            let run = compiled.run(machine, keys, &piece.register, buffer).map_err(message_of)?;
            let output = &buffer[..part.len()];
            *piece.register = register_after(pass, &piece.register, part, output);
            part.copy_from_slice(output);
            let bytes = buffer.len() as u64;
            let bytes_out = if pass.is_read_only() { 0 } else { bytes };
            done.transfers.push(Transfer {
                bytes_in: bytes,
                clocks: run.cycles,
                bytes_out,
                exclusive: false,
            });
            done.instructions += run.instructions;
        }
    }
    Ok(done)
}

/// Prepares an SPE: loads its local store, and computes the values that are derived from the key. Loading replaces the
/// previous content of the local store. Therefore these transfers must not overlap with other transfers of the SPE.
fn load(machine: &mut Machine, compiled: &Compiled, keys: &[Block], done: &mut Share) -> Result<(), String> {
    let bytes = |compiled: &Compiled| compiled.loaded_bytes().iter().sum::<usize>() as u64;
    if compiled.of.way.is_hash() {
        // The hash key is the encryption of the zero block. The zero block is loaded with the program. The main
        // processor then computes the tables of the loop from the hash key.
        let encrypt = HASH_KEY.compiled(keys.len() - 1, Effort::Full)?;
        encrypt.load(machine, keys).map_err(message_of)?;
        let mut h = Zeroizing::new([0; 16]);
        let run = encrypt.run(machine, keys, &[0; 16], &mut *h).map_err(message_of)?;
        let bytes_in = bytes(&encrypt) + 16;
        done.transfers.push(Transfer { bytes_in, clocks: run.cycles, bytes_out: 16, exclusive: true });
        done.instructions += run.instructions;
        compiled.load_hash_key(machine, &h);
    } else {
        compiled.load(machine, keys).map_err(message_of)?;
    }
    done.transfers.push(Transfer { bytes_in: bytes(compiled), clocks: 0, bytes_out: 0, exclusive: true });
    Ok(())
}

fn message_of(why: Refused) -> String {
    why.to_string()
}

fn write_back(host: &mut HostData<'_>, piece: &Piece) {
    host.output()[piece.range.clone()].copy_from_slice(&piece.data);
}

impl Device for Spu {
    fn id(&self) -> DeviceId {
        self.id
    }

    fn description(&self) -> String {
        match (self.id.unit, self.spes.len()) {
            (Unit::Only, spes) => {
                format!("Cell with {spes} SPEs; {NAME}:1 to {NAME}:{MAX_SPES} have 1 to {MAX_SPES}")
            }
            (_, 1) => "Cell with 1 SPE".into(),
            (_, spes) => format!("Cell with {spes} SPEs"),
        }
    }

    fn properties(&self) -> DeviceProperties {
        DeviceProperties::SIMULATOR
    }

    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }

    fn cost(&self, kernel: KernelId, operation: Operation, _: KeySize) -> Option<Cost> {
        let Operation::Pass(pass) = operation else { return None };
        KERNELS.get(usize::from(kernel.0))?.loop_for(pass)?;
        // The cost is the time of the simulation on the host, not the time on the chip: about 200 instructions per block.
        Some(Cost::new(100_000.0, 0.005))
    }

    fn with_launch(&self, launch: &[(&'static str, u32)]) -> Result<Option<Arc<dyn Device>>, Error> {
        let spes = number(launch, "spes").map_or(self.spes.len(), |spes| spes as usize);
        Ok(Some(Arc::new(Spu::new(self.id, spes))))
    }

    fn counters(&self) -> Vec<Counter> {
        lock(&self.counts).clone()
    }

    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>, Error> {
        let named = KERNELS.get(usize::from(kernel.0));
        let operation = work.task.operation();
        let unsupported = || operation.unsupported_by(named.map_or("the Cell", |named| named.name));
        let of = match operation {
            Operation::Pass(pass) => named.and_then(|named| named.loop_for(pass)).ok_or_else(unsupported)?,
            Operation::Fused(_) => return Err(unsupported()),
        };
        let Task::Pass(pass, segments) = work.task else { return Err(unsupported()) };
        let bytes = self.run_pass(of, pass, segments)?;
        let count = &mut lock(&self.counts)[usize::from(kernel.0)];
        count.launches += 1;
        count.bytes += bytes;
        Ok(Completion::Done)
    }
}
