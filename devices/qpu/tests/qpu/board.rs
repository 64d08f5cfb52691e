//! Tests of the QPUs of a board. A fake firmware runs the programs in the simulator.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use lockstep_core::backend::{Backend, Device, kernel_by_name};
use lockstep_core::data::Data;
use lockstep_core::key::Key;
use lockstep_core::work::{Pass, Segment, Task, Tweak};
use lockstep_modes::{Cipher, CipherKey, Direction};
use lockstep_qpu::board::{Board, Firmware, Model, SharedMemory, check};
use lockstep_qpu::chip::{BoardError, Chip, ChipError};
use lockstep_qpu::device::{Qpu, QpuBackend};
use lockstep_qpu::isa::Instruction;
use lockstep_qpu::kernels::bitslice::{Blocks, Combination, PROGRAMS, UNIT};
use lockstep_qpu::launch::{Job, Launch, MAX_RUN_BYTES};
use lockstep_qpu::sim::{Leftovers, Machine, Program};
use lockstep_reference::{Aes, ctr};

/// The physical address of the memory of the GPU, and the highest bits of its bus addresses: CACHED for accesses
/// through the level 2 cache, and UNCACHED for accesses without caches.
const PHYSICAL: u32 = 0x1e00_0000;
const CACHED: u32 = 0x4000_0000;
const UNCACHED: u32 = 0xc000_0000;
const HANDLE: u32 = 17;
/// The number of bytes of the memory of the GPU.
const BYTES: usize = 4 << 20;

/// A failure of the firmware or of the operating system that the test injects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    None,
    /// The system call fails with this error.
    Call(io::ErrorKind),
    /// The system call of a run fails by a timeout of the kernel, and the QPUs continue to run.
    Timeout,
    /// The failure [`Failure::Timeout`], after which the QPUs cannot be switched off.
    Endless,
    /// The message is refused as a whole.
    Refused,
    /// The response does not answer a tag.
    Unknown(u32),
    /// The response to a tag has no value.
    Short(u32),
    /// The response to a tag has this value.
    Value(u32, u32),
    /// Runs fail after this number of runs.
    RunsAfter(usize),
    /// The memory cannot be mapped.
    Map,
}

/// The state of the firmware.
struct State {
    model: Model,
    /// The number of the process that uses the board.
    process: u32,
    memory: Vec<u8>,
    failure: Failure,
    is_acquired: bool,
    is_enabled: bool,
    /// True if the QPUs continue to run after the response to the request that started them.
    is_running: bool,
    is_allocated: bool,
    is_locked: bool,
    runs: usize,
}

impl State {
    fn is_idle(&self) -> bool {
        !(self.is_acquired || self.is_enabled || self.is_running || self.is_allocated || self.is_locked)
    }

    /// The memory. It must not be accessed while QPUs use it.
    fn memory(&mut self) -> &mut [u8] {
        assert!(!self.is_running, "the QPUs use the memory");
        &mut self.memory
    }

    /// The bus address of the memory, and the flags with which it must be allocated.
    fn bus_and_flags(&self) -> (u32, u32) {
        match self.model {
            Model::Bcm2835 => (PHYSICAL | CACHED, 12),
            Model::Bcm2836 | Model::Bcm2837 => (PHYSICAL | UNCACHED, 4),
        }
    }

    fn word(&self, bus: u32) -> u32 {
        let at = (bus - self.bus_and_flags().0) as usize;
        u32::from_le_bytes(self.memory[at..at + 4].try_into().unwrap())
    }

    /// Runs QPUs with a control list, as the firmware does.
    fn execute(&mut self, qpus: u32, control: u32) -> u32 {
        assert!(self.is_enabled && self.is_acquired && self.is_locked);
        let uniforms: Vec<u32> = (0..qpus).map(|qpu| self.word(control + 8 * qpu)).collect();
        let code = self.word(control + 4);
        assert!((0..qpus).all(|qpu| self.word(control + 8 * qpu + 4) == code));
        let mut instructions = Vec::new();
        // The length of the program is unknown, so this loop also reads words after its end. These words are not instructions, or are never
        // executed.
        for address in (code..).step_by(8).take(2048) {
            let word = u64::from(self.word(address)) | u64::from(self.word(address + 4)) << 32;
            let Ok(instruction) = Instruction::decode(word) else { break };
            instructions.push(instruction);
        }
        let program = Program::new(&instructions);
        let run = Machine::new(&program, &uniforms)
            .with_memory_at(self.bus_and_flags().0)
            .with_registers(0xc0de_d00d)
            .run(&mut self.memory, 1_000_000_000)
            .unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(run.interrupts, 1);
        assert_eq!(run.leftovers, Leftovers::default());
        self.runs += 1;
        0
    }

    fn response(&mut self, tag: u32, values: &[u32]) -> u32 {
        match (tag, values) {
            (0x3000c, &[bytes, alignment, flags]) => {
                assert!(!self.is_allocated && alignment == 4096 && flags == self.bus_and_flags().1);
                self.is_allocated = bytes as usize <= BYTES;
                if self.is_allocated { HANDLE } else { 0 }
            }
            (0x3000d, &[HANDLE]) => {
                self.is_locked = true;
                self.bus_and_flags().0
            }
            (0x3000e, &[HANDLE]) => {
                assert!(!self.is_running);
                self.is_locked = false;
                0
            }
            (0x3000f, &[HANDLE]) => {
                assert!(!self.is_locked && self.is_allocated);
                self.is_allocated = false;
                0
            }
            // The timeout must be below one second, after which the kernel gives up.
            (0x30011, &[qpus, control, 0, 900]) => self.execute(qpus, control),
            (0x30012, &[enable]) => {
                assert_eq!(self.is_enabled, enable == 0, "switched twice");
                self.is_enabled = enable == 1;
                self.is_running = false;
                0
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The firmware, and the memory that it maps.
#[derive(Clone)]
struct Fake(Arc<Mutex<State>>);

impl Fake {
    fn new(failure: Failure) -> Fake {
        Fake::of_model(failure, Model::Bcm2836)
    }

    fn of_model(failure: Failure, model: Model) -> Fake {
        Fake(Arc::new(Mutex::new(State {
            model,
            process: 1,
            memory: vec![0; BYTES],
            failure,
            is_acquired: false,
            is_enabled: false,
            is_running: false,
            is_allocated: false,
            is_locked: false,
            runs: 0,
        })))
    }

    fn board(&self) -> Board {
        let model = self.0.lock().unwrap().model;
        Board::new(Box::new(self.clone()), model)
    }
}

impl Firmware for Fake {
    fn process(&self) -> u32 {
        self.0.lock().unwrap().process
    }

    fn acquire(&mut self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        assert!(!state.is_acquired);
        state.is_acquired = true;
        Ok(())
    }

    fn give_back(&mut self) {
        self.0.lock().unwrap().is_acquired = false;
    }

    fn property(&mut self, message: &mut [u32; 16]) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        let words = message[3] as usize / 4;
        assert_eq!((message[0], message[1], message[4]), (4 * (6 + words as u32), 0, 0));
        assert_eq!(message[5 + words], 0, "the end");
        let tag = message[2];
        match state.failure {
            Failure::Call(error) => return Err(error.into()),
            Failure::Timeout | Failure::Endless if tag == 0x30011 => {
                state.is_running = true;
                return Err(io::ErrorKind::TimedOut.into());
            }
            Failure::RunsAfter(runs) if tag == 0x30011 && state.runs >= runs => {
                (message[1], message[4], message[5]) = (0x8000_0000, 0x8000_0004, 0x8000_0000);
            }
            Failure::Endless if (tag, message[5]) == (0x30012, 0) => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Failure::Refused => message[1] = 0x8000_0001,
            Failure::Unknown(unknown) if unknown == tag => message[1] = 0x8000_0000,
            Failure::Short(short) if short == tag => (message[1], message[4]) = (0x8000_0000, 0x8000_0000),
            Failure::Value(failing, value) if failing == tag => {
                (message[1], message[4], message[5]) = (0x8000_0000, 0x8000_0004, value);
            }
            _ => {
                let values = message[5..5 + words].to_vec();
                (message[1], message[4]) = (0x8000_0000, 0x8000_0004);
                message[5] = state.response(tag, &values);
            }
        }
        Ok(())
    }

    fn map(&mut self, address: u32, bytes: usize) -> io::Result<Box<dyn SharedMemory>> {
        let state = self.0.lock().unwrap();
        assert!(address == PHYSICAL && state.is_locked && bytes <= BYTES);
        if state.failure == Failure::Map {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(Box::new(self.clone()))
    }
}

impl SharedMemory for Fake {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset.is_multiple_of(4) && bytes.len().is_multiple_of(4));
        self.0.lock().unwrap().memory()[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn read(&self, offset: usize, bytes: &mut [u8]) {
        assert!(offset.is_multiple_of(4) && bytes.len().is_multiple_of(4));
        bytes.copy_from_slice(&self.0.lock().unwrap().memory[offset..offset + bytes.len()]);
    }

    fn wipe(&mut self, offset: usize, len: usize) {
        self.0.lock().unwrap().memory()[offset..offset + len].fill(0);
    }
}

fn board() -> Arc<dyn Device> {
    Arc::new(Qpu::of_simulated_board(Fake::new(Failure::None).board()))
}

// The board executes the same programs as the simulator, so testing the device interface with one kernel is enough.
lockstep_testkit::backend_suite!(packed_tuned, board(), "qpu/packed-tuned");

const KEY: [u8; 16] = *b"a key of 128 bit";

/// Encrypts bytes in ECB mode on a board.
fn encrypt(board: &mut Board, launch: Launch, input: &[u8]) -> Result<Vec<u8>, ChipError> {
    let key = Key::new(&KEY).unwrap();
    let job = Job { keys: key.round_keys(), counter: [0; 16], input, other: &[] };
    launch.run(board, &job, 12).map(|(output, _)| output.to_vec())
}

/// Every program has the same result on a board as in the simulator. In the simulator the memory has other addresses, and
/// registers and VPM are zero at the start.
#[test]
fn programs_run_at_the_addresses_of_a_board() {
    let key = Key::new(&KEY).unwrap();
    let input: Vec<u8> = (0..16 * 100u32).map(|index| (index * 7 + index / 64) as u8).collect();
    let mut board = Fake::new(Failure::None).board();
    let bitsliced = PROGRAMS.map(|program| program.blocks.map_or(Launch::Ctr, Launch::Blocks));
    let others = [false, true].into_iter().flat_map(|decrypts| {
        [Launch::Packed { decrypts }, Launch::PackedTuned { decrypts }, Launch::Naive { decrypts }]
    });
    for launch in bitsliced.into_iter().chain(others).chain([Launch::PackedFastDecryption]) {
        let other = match launch {
            Launch::Blocks(Blocks { combination: Combination::Data, .. }) => vec![0x5a; input.len()],
            Launch::Blocks(Blocks { combination: Combination::Tweak, .. }) => vec![0x5a; UNIT * 4],
            _ => Vec::new(),
        };
        for len in [16usize, 16 * 33, 16 * 100] {
            // CTR also supports lengths that are not multiples of a word.
            let len = if launch == Launch::Ctr { len - 3 } else { len };
            let other = match launch {
                Launch::Blocks(Blocks { combination: Combination::Tweak, .. }) => {
                    &other[..len.next_multiple_of(UNIT)]
                }
                _ => &other[..len.min(other.len())],
            };
            let job = Job { keys: key.round_keys(), counter: [7; 16], input: &input[..len], other };
            let (expected, _) = launch.simulate(&job, 3).unwrap();
            let (output, _) = launch.run(&mut board, &job, 3).unwrap();
            assert!(output == expected, "{launch:?} {len}");
        }
    }
}

#[test]
fn nothing_is_left_on_the_board() {
    let fake = Fake::new(Failure::None);
    let mut board = fake.board();
    let input = [0x5a; 16 * 100];
    let aes = Aes::new(&KEY);
    for (runs, launch) in (1..).zip([
        Launch::Naive { decrypts: false },
        Launch::Packed { decrypts: false },
        Launch::PackedTuned { decrypts: false },
        Launch::Naive { decrypts: false },
    ]) {
        let output = encrypt(&mut board, launch, &input).unwrap();
        assert!(output.chunks(16).all(|block| block == aes.encrypt([0x5a; 16])), "{launch:?}");
        let state = fake.0.lock().unwrap();
        assert_eq!(state.runs, runs);
        // The control list and the program are not wiped, because they are public.
        assert!(state.memory[5 * 4096..].iter().all(|byte| *byte == 0), "{launch:?}: the data are wiped");
    }
    board.finish();
    assert!(fake.0.lock().unwrap().is_idle() && fake.0.lock().unwrap().memory.iter().all(|byte| *byte == 0));
    encrypt(&mut board, Launch::Naive { decrypts: false }, &input).unwrap();
    assert!(!fake.0.lock().unwrap().is_idle());
    drop(board);
    assert!(fake.0.lock().unwrap().is_idle());
}

#[test]
fn failures_have_reasons_and_remedies() {
    let error = |failure| {
        let fake = Fake::new(failure);
        let mut board = fake.board();
        let error = encrypt(&mut board, Launch::Naive { decrypts: false }, &[0; 64]).unwrap_err();
        let ChipError::Board(error) = error else { panic!("{error}") };
        {
            let mut state = fake.0.lock().unwrap();
            assert!(state.is_idle(), "{failure:?}: other processes can go on, and memory is free");
            assert!(
                state.memory[5 * 4096..].iter().all(|byte| *byte == 0),
                "{failure:?}: the data are wiped"
            );
            state.failure = Failure::None;
        }
        let again = encrypt(&mut board, Launch::Naive { decrypts: false }, &[0; 64]).unwrap();
        assert_eq!(again[..16], Aes::new(&KEY).encrypt([0; 16]), "{failure:?}: the next run works");
        error
    };
    for (failure, reason, remedy) in [
        (Failure::Call(io::ErrorKind::TimedOut), "the mailbox of the firmware fails: timed out", "try again"),
        // If the firmware refuses a message, the kernel of Linux returns this error.
        (
            Failure::Call(io::ErrorKind::InvalidInput),
            "cannot switch the QPUs on: the firmware refuses the message",
            "update the firmware",
        ),
        (Failure::Timeout, "cannot run the QPUs: the mailbox of the firmware fails: timed out", "try again"),
        (Failure::Refused, "the firmware refuses the message: 0x80000001", "update the firmware"),
        (Failure::Unknown(0x30012), "cannot switch the QPUs on: the firmware does not know", "update"),
        (Failure::Unknown(0x30011), "cannot run the QPUs: the firmware does not know", "update"),
        (
            Failure::Short(0x3000d),
            "cannot lock memory of the GPU: the firmware's response is too short",
            "update",
        ),
        (
            Failure::Value(0x30012, 0x8000_0000),
            "cannot switch the QPUs on: the firmware returns 0x80000000",
            "vc4-kms-v3d",
        ),
        (
            Failure::Value(0x30011, 0x8000_0000),
            "cannot run the QPUs: the firmware returns 0x80000000",
            "restart the board",
        ),
        (Failure::Value(0x3000c, 0), "bytes of memory for the GPU", "gpu_mem"),
        (Failure::Value(0x3000d, 0), "cannot lock memory", "try again"),
        // None of these addresses can be memory of the GPU: the first page of physical memory, which the kernel of Linux uses; an address
        // that does not start a page; and the address of registers.
        (Failure::Value(0x3000d, UNCACHED), "at 0xc0000000, which is no memory of the GPU", "update"),
        (Failure::Value(0x3000d, 0xde00_0010), "at 0xde000010, which is no memory of the GPU", "update"),
        (Failure::Value(0x3000d, 0xfeff_f000), "at 0xfefff000, which is no memory of the GPU", "update"),
        (Failure::Map, "cannot map memory of the GPU: permission denied", "as root"),
    ] {
        let BoardError { reason: found, remedy: advice } = error(failure);
        assert!(found.contains(reason) && advice.contains(remedy), "{failure:?}: {found}: {advice}");
    }
}

/// Programs run on each model of the board. On a Raspberry Pi 1, which has less memory, a higher address is refused.
#[test]
fn memory_of_each_model() {
    for model in [Model::Bcm2835, Model::Bcm2836, Model::Bcm2837] {
        let mut board = Fake::of_model(Failure::None, model).board();
        let output = encrypt(&mut board, Launch::PackedTuned { decrypts: false }, &[0; 64]).unwrap();
        assert_eq!(output[..16], Aes::new(&KEY).encrypt([0; 16]), "{model:?}");
    }
    // This address is memory on a Raspberry Pi 2, and registers on a Raspberry Pi 1.
    let mut board = Fake::of_model(Failure::Value(0x3000d, PHYSICAL << 1 | CACHED), Model::Bcm2835).board();
    let error = encrypt(&mut board, Launch::PackedTuned { decrypts: false }, &[0; 64]).unwrap_err();
    assert!(error.to_string().contains("at 0x7c000000, which is no memory of the GPU"), "{error}");
}

/// After a fork during a call, the child process has a copy of the parent's board. The child neither wipes nor frees the
/// memory that the parent uses.
#[test]
fn a_child_process_leaves_a_call_of_its_parent_alone() {
    let fake = Fake::new(Failure::None);
    let mut board = fake.board();
    board.reserve(4096).unwrap();
    {
        let mut state = fake.0.lock().unwrap();
        state.memory[6 * 4096] = 7;
        state.process = 2;
    }
    board.finish();
    {
        let mut state = fake.0.lock().unwrap();
        assert!(state.is_acquired && state.is_enabled && state.is_allocated && state.is_locked);
        assert_eq!(state.memory[6 * 4096], 7);
        // The parent ends its call.
        (state.is_acquired, state.is_enabled) = (false, false);
        (state.is_allocated, state.is_locked) = (false, false);
    }
    let output = encrypt(&mut board, Launch::PackedTuned { decrypts: false }, &[0; 64]).unwrap();
    assert_eq!(output[..16], Aes::new(&KEY).encrypt([0; 16]));
    board.finish();
    assert!(fake.0.lock().unwrap().is_idle());
    // The next call does not use the parent's memory either.
    board.reserve(4096).unwrap();
    {
        let mut state = fake.0.lock().unwrap();
        state.process = 3;
        (state.is_acquired, state.is_enabled) = (false, false);
        (state.is_allocated, state.is_locked) = (false, false);
    }
    encrypt(&mut board, Launch::PackedTuned { decrypts: false }, &[0; 64]).unwrap();
    board.finish();
    assert!(fake.0.lock().unwrap().is_idle());
}

/// QPUs that cannot be switched off after a failure may still write to their memory. The memory is neither wiped nor freed,
/// and no run begins before the QPUs are off.
#[test]
fn memory_of_running_qpus_is_kept() {
    let fake = Fake::new(Failure::Endless);
    let mut board = fake.board();
    for _ in 0..2 {
        let error = encrypt(&mut board, Launch::Naive { decrypts: false }, &[0; 64]).unwrap_err();
        assert!(error.to_string().contains("timed out"), "{error}");
        board.finish();
        let state = fake.0.lock().unwrap();
        assert!(state.is_acquired && state.is_enabled && state.is_running);
        assert!(state.is_allocated && state.is_locked);
    }
    fake.0.lock().unwrap().failure = Failure::None;
    let output = encrypt(&mut board, Launch::Naive { decrypts: false }, &[0; 64]).unwrap();
    assert_eq!(output[..16], Aes::new(&KEY).encrypt([0; 16]), "the next run works");
    board.finish();
    assert!(fake.0.lock().unwrap().is_idle());

    fake.0.lock().unwrap().failure = Failure::Endless;
    encrypt(&mut board, Launch::Naive { decrypts: false }, &[0; 64]).unwrap_err();
    drop(board);
    let state = fake.0.lock().unwrap();
    assert!(!state.is_acquired && state.is_allocated, "other processes can go on; the memory is lost");
}

#[test]
fn a_failing_board_is_a_failing_device() {
    let device: Arc<dyn Device> = Arc::new(Qpu::of_board(Fake::new(Failure::Value(0x30012, 1)).board()));
    assert!(device.properties().by_name_only && !device.properties().simulated);
    assert_eq!(device.id().to_string(), "qpu:0");
    assert!(device.description().contains("Raspberry Pi 2"), "{}", device.description());
    let selection = lockstep_planner::Selection { device: Some("qpu:0".into()), ..Default::default() };
    let planner = lockstep_planner::Planner::new(vec![device], &selection).unwrap();
    let key = CipherKey::new(Cipher::Ecb, &KEY).unwrap();
    let error = Cipher::Ecb
        .one(&planner, Direction::Encrypt, &key, &mut [0; 16], Data::in_place(&mut [0; 64]))
        .unwrap_err();
    assert!(error.to_string().contains("cannot switch the QPUs on"), "{error}");
}

/// The second of the two runs of a message fails. No part of the result of the first run remains in the caller's buffer.
#[test]
fn a_failure_leaves_no_result() {
    let fake = Fake::new(Failure::None);
    let device: Arc<dyn Device> = Arc::new(Qpu::of_board(fake.board()));
    let selection = lockstep_planner::Selection { device: Some("qpu:0".into()), ..Default::default() };
    let planner = lockstep_planner::Planner::new(vec![device], &selection).unwrap();
    let cipher = Cipher::Ctr;
    let key = CipherKey::new(cipher, &KEY).unwrap();
    let mut data = vec![0x5a; MAX_RUN_BYTES + 100];
    // The self-test has passed, and the result is right.
    cipher.one(&planner, Direction::Encrypt, &key, &mut [0; 16], Data::in_place(&mut data)).unwrap();
    assert!(data == ctr::apply(&Aes::new(&KEY), &[0; 16], &vec![0x5a; data.len()]));
    {
        let mut state = fake.0.lock().unwrap();
        state.failure = Failure::RunsAfter(state.runs + 1);
    }
    let (mut counter, runs) = ([0; 16], fake.0.lock().unwrap().runs);
    let error =
        cipher.one(&planner, Direction::Encrypt, &key, &mut counter, Data::in_place(&mut data)).unwrap_err();
    assert!(error.to_string().contains("cannot run the QPUs"), "{error}");
    assert_eq!(fake.0.lock().unwrap().runs, runs + 1, "the first run succeeded");
    let nonzero = data.iter().filter(|byte| **byte != 0).count();
    assert!(nonzero == 0 && counter == [0; 16], "{nonzero} of {} bytes, {counter:?}", data.len());
    assert!(fake.0.lock().unwrap().is_idle());
}

/// A failed call restores the chaining state from before the call, for each way of processing segments. Data that no run has
/// written are unchanged.
#[test]
fn a_failure_undoes_chaining_states() {
    let key = Key::new(&KEY).unwrap();
    for (pass, len, runs, expected) in [
        (Pass::EcbDecrypt, MAX_RUN_BYTES, 0, 0x5a),
        (Pass::EcbDecrypt, MAX_RUN_BYTES, 1, 0),
        (Pass::CbcEncrypt, 16_000, 0, 0x5a),
        (Pass::CbcEncrypt, 16_000, 1, 0),
        (Pass::CbcMac, 16_000, 1, 0x5a),
        // The first run encrypts the tweak.
        (Pass::XtsEncrypt, MAX_RUN_BYTES + 16, 1, 0x5a),
        (Pass::XtsEncrypt, MAX_RUN_BYTES + 16, 2, 0),
    ] {
        let fake = Fake::new(Failure::RunsAfter(runs));
        let device = Qpu::of_simulated_board(fake.board());
        let (mut data, mut state) = (vec![0x5a; len], [7; 16]);
        let tweak = pass.is_xts().then_some(Tweak { key: &key, position: 0 });
        let mut segments = [Segment { key: &key, tweak, state: &mut state, data: Data::in_place(&mut data) }];
        let kernel = kernel_by_name(&device, "qpu/bitslice").unwrap();
        let failed = device.submit(kernel, Task::Pass(pass, &mut segments).into()).is_err();
        assert!(failed && fake.0.lock().unwrap().runs == runs, "{pass:?} {runs}");
        assert!(state == [7; 16] && data.iter().all(|byte| *byte == expected), "{pass:?} {runs}");
    }
}

/// A folder with the files of a board.
fn files(compatible: &str, has_mailbox: bool, is_owned: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let create = |path: &str, content: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    create("proc/device-tree/compatible", compatible);
    create("sys/bus/platform/drivers/vc4_v3d/bind", "");
    if has_mailbox {
        create("dev/vcio", "");
    }
    if is_owned {
        create("sys/bus/platform/drivers/vc4_v3d/3fc00000.v3d/uevent", "");
    }
    folder
}

#[test]
fn boards_are_recognized() {
    let of = |compatible: &str| {
        check(files(compatible, true, false).path()).map_err(|missing| missing.to_string())
    };
    assert_eq!(of("raspberrypi,model-b\0brcm,bcm2835\0"), Ok(Model::Bcm2835));
    assert_eq!(of("raspberrypi,2-model-b\0brcm,bcm2836\0"), Ok(Model::Bcm2836));
    assert_eq!(of("raspberrypi,3-model-b\0brcm,bcm2837\0"), Ok(Model::Bcm2837));
    for newer in ["raspberrypi,4-model-b\0brcm,bcm2711\0", "raspberrypi,5-model-b\0brcm,bcm2712\0"] {
        assert!(of(newer).unwrap_err().contains("wgpu:0"), "{newer}");
    }
    assert!(of("someone,else\0").unwrap_err().contains("no Raspberry Pi 1 to 3"));
    assert!(check(Path::new("/nowhere")).unwrap_err().to_string().contains("no Raspberry Pi 1 to 3"));
    let pi_2 = "raspberrypi,2-model-b\0brcm,bcm2836\0";
    let missing = check(files(pi_2, false, false).path()).unwrap_err().to_string();
    assert!(missing.contains("/dev/vcio"), "{missing}");
    let missing = check(files(pi_2, true, true).path()).unwrap_err().to_string();
    assert!(missing.contains("vc4 owns the QPUs") && missing.contains("config.txt"), "{missing}");
}

#[test]
fn this_machine_has_no_board() {
    let backend = QpuBackend { simulator: Some(Qpu::default) };
    let found = backend.discover();
    let names: Vec<String> = found.devices.iter().map(|device| device.id().to_string()).collect();
    assert!(names == ["qpu"] && found.missing.is_some(), "{names:?}");
    assert!(QpuBackend::default().discover().devices.is_empty());
    let named = |name: &str| backend.named(&name.into()).map(|device| device.err().unwrap().to_string());
    assert!(named("qpu:0").unwrap().contains("no Raspberry Pi"));
    assert!(named("qpu:1").unwrap().contains("there is no device qpu:1"));
    assert_eq!(backend.named(&"qpu".into()).unwrap().unwrap().id().to_string(), "qpu");
    for (name, description) in
        [("qpu:sim1", "VideoCore IV with 1 QPU"), ("qpu:sim12", "VideoCore IV with 12 QPUs")]
    {
        let device = backend.named(&name.into()).unwrap().unwrap();
        assert_eq!((device.id().to_string().as_str(), device.description().as_str()), (name, description));
        assert!(device.properties().simulated && QpuBackend::default().named(&name.into()).is_none());
    }
    for name in ["qpu:sim0", "qpu:sim13", "qpu:sim", "qpu:sim08", "qpu:8"] {
        let message = named(name).unwrap();
        assert!(message.contains(&format!("there is no device {name}: use qpu:0")), "{message}");
        assert!(message.ends_with("or qpu:sim1 to qpu:sim12, the simulator with 1 to 12 QPUs"), "{message}");
    }
    // Without the simulator there is no device `qpu`. Names of other backends have no device here.
    assert!(QpuBackend::default().named(&"qpu".into()).is_none() && named("spu").is_none());
}
