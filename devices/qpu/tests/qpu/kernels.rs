//! Tests that kernels compute AES, and that their clocks equal the measured or derived clocks.

use lockstep_core::key::Key;
use lockstep_qpu::chip::{Chip, ChipError, ProgramRun, Simulator};
use lockstep_qpu::compiler::scheduled::{self, Hints};
use lockstep_qpu::compiler::{Code, sequential};
use lockstep_qpu::kernels::bitslice::{BitsliceProgram, Blocks, Combination, PROGRAMS, UNIT};
use lockstep_qpu::kernels::packed;
use lockstep_qpu::launch::{Job, Launch};
use lockstep_qpu::sim::{Leftovers, Program, Run};
use lockstep_reference::Aes;

/// Test data of `len` bytes with different values.
fn bytes(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn key(bits: usize) -> Vec<u8> {
    bytes(bits / 8 + 7).split_off(7)
}

/// A simulator that runs this program in place of the program that the device passes to it.
struct WithProgram(Program);

impl Chip for WithProgram {
    fn reserve(&mut self, bytes: usize) -> Result<u32, ChipError> {
        Simulator.reserve(bytes)
    }

    fn run(&mut self, run: ProgramRun<'_>) -> Result<Run, ChipError> {
        Simulator.run(ProgramRun { program: &self.0, ..run })
    }
}

/// A counter block whose last four bytes do not overflow in a run.
const COUNTER: [u8; 16] = *b"a nonce of 1\x01\x02\x03\x07";

/// Runs a kernel.
fn run_on(
    chip: &mut dyn Chip,
    launch: Launch,
    bits: usize,
    qpus: u8,
    input: &[u8],
    other: &[u8],
) -> (Vec<u8>, Run) {
    let key = Key::new(&key(bits)).unwrap();
    let job = Job { keys: key.round_keys(), counter: COUNTER, input, other };
    let (output, run) = launch.run(chip, &job, qpus).unwrap_or_else(|error| panic!("{error}"));
    // A program must leave nothing behind: on a board, the next program would receive it.
    assert_eq!(run.leftovers, Leftovers::default(), "{launch:?} on {qpus} QPUs");
    (output.to_vec(), run)
}

fn run(launch: Launch, bits: usize, qpus: u8, input: &[u8]) -> (Vec<u8>, Run) {
    run_on(&mut Simulator, launch, bits, qpus, input, &[])
}

/// The result of the oracle for whole blocks in ECB mode.
fn ecb(bits: usize, decrypts: bool, data: &[u8]) -> Vec<u8> {
    let aes = Aes::new(&key(bits));
    let cipher = |block: &[u8; 16]| if decrypts { aes.decrypt(*block) } else { aes.encrypt(*block) };
    data.as_chunks().0.iter().flat_map(cipher).collect()
}

/// The totals of 20 times `unit` bytes for each QPU in the steady state. They are the difference between the totals
/// of a longer run and of a shorter run, so that the start and the end of a run do not count.
fn steady(launch: Launch, bits: usize, qpus: u8, unit: usize) -> Run {
    let run = |units: usize| {
        let input = bytes(unit * units * usize::from(qpus));
        let other = match launch {
            Launch::Blocks(Blocks { combination: Combination::Data | Combination::Tweak, .. }) => &input[..],
            _ => &[],
        };
        run_on(&mut Simulator, launch, bits, qpus, &input, other).1
    };
    let (short, long) = (run(10), run(30));
    Run {
        clocks: long.clocks - short.clocks,
        instructions: long.instructions - short.instructions,
        ..Run::default()
    }
}

/// Clocks of a QPU per byte.
fn clocks_per_byte(launch: Launch, bits: usize, qpus: u8, unit: usize) -> f64 {
    steady(launch, bits, qpus, unit).clocks as f64 / (20 * unit) as f64
}

#[test]
fn packed_as_published() {
    let launch = Launch::Packed { decrypts: false };
    for bits in [128, 192, 256] {
        let plain = bytes(12 * 64 * 2);
        let (output, run) = run(launch, bits, 12, &plain);
        assert_eq!(output, ecb(bits, false, &plain), "{bits}");
        assert_eq!(run.interrupts, 1);
    }
    // The clocks per 64 bytes. The thesis measured 5429 with one QPU and 5735 with twelve.
    for (qpus, expected) in [(1, 5429), (12, 5735)] {
        let each = steady(launch, 128, qpus, 64).clocks / 20;
        assert!(
            each.abs_diff(expected) * 50 <= expected,
            "{each} clocks with {qpus} QPUs, measured {expected}"
        );
    }
}

/// The kernel computes the right result at the rates of Table 5.2 of the thesis. These rates include copies by the host, which are assumed
/// to take 10 ns per byte, as for encryption.
#[test]
fn packed_decryption_as_published() {
    let launch = Launch::Packed { decrypts: true };
    for bits in [128, 256] {
        let data = bytes(12 * 64 * 2);
        assert!(run(launch, bits, 12, &data).0 == ecb(bits, true, &data), "{bits}");
    }
    for (qpus, measured) in [(1, 342e3), (12, 3883e3)] {
        let seconds = clocks_per_byte(launch, 128, qpus, 64) / f64::from(qpus) / 250e6;
        let rate = 1.0 / (seconds + 10e-9);
        assert!(
            (rate / measured - 1.0).abs() <= 0.05,
            "{rate} bytes a second with {qpus} QPUs, measured {measured}"
        );
    }
}

/// The thesis expects that decryption can be nearly as fast as encryption. This decryption reaches three quarters of
/// the rate of encryption.
#[test]
fn packed_fast_decryption() {
    for bits in [128, 192, 256] {
        let data = bytes(64 * 5);
        assert!(run(Launch::PackedFastDecryption, bits, 3, &data).0 == ecb(bits, true, &data), "{bits}");
    }
    let [encryption, decryption] = [Launch::Packed { decrypts: false }, Launch::PackedFastDecryption]
        .map(|launch| clocks_per_byte(launch, 128, 12, 64));
    println!("packed: {encryption:.2} and {decryption:.2} clocks a byte and QPU");
    assert!(decryption < 1.35 * encryption);
}

/// The thesis's first kernel computes AES in the clocks of the thesis. Table 7.4 has 6732 clocks per block with one QPU, and 6720 with
/// twelve.
#[test]
fn naive_as_published() {
    let launch = Launch::Naive { decrypts: false };
    let plain = bytes(16 * 24);
    assert_eq!(run(launch, 128, 12, &plain).0, ecb(128, false, &plain));
    for bits in [128, 192, 256] {
        assert_eq!(run(Launch::Naive { decrypts: true }, bits, 3, &plain).0, ecb(bits, true, &plain));
    }
    for qpus in [1, 12] {
        let run = steady(launch, 128, qpus, 16);
        // The time of the instructions alone equals the measured time. The latency of the texture unit, which is fitted to the
        // packed kernel, adds a fifth, because this kernel waits for each lookup.
        let (issued, clocks) = (4 * run.instructions / (20 * u64::from(qpus)), run.clocks / 20);
        assert!(issued.abs_diff(6732) * 20 <= 6732, "{issued} clocks of instructions a block");
        assert!((issued..issued + 22 * 70).contains(&clocks), "{clocks} clocks a block with {qpus} QPUs");
    }
}

#[test]
fn packed_tuned() {
    let [encryption, decryption] = [false, true].map(|decrypts| {
        let launch = Launch::PackedTuned { decrypts };
        for bits in [128, 192, 256] {
            let data = bytes(256 * 25);
            assert!(run(launch, bits, 12, &data).0 == ecb(bits, decrypts, &data), "{bits} {decrypts}");
        }
        let [one, twelve] = [1, 12].map(|qpus| clocks_per_byte(launch, 128, qpus, 256));
        println!(
            "packed-tuned-128, decrypts {decrypts}: {one:.2} clocks a byte and QPU, {twelve:.2} with 12"
        );
        assert!(one <= 34.0 && twelve <= 34.0, "{one} {twelve}");
        twelve
    });
    assert!(encryption / decryption >= 0.9, "{encryption} {decryption}");
}

/// The programs of a kernel by each compiler: by the scheduler without hints, by the scheduler with the hints `used`,
/// and by the sequential compiler if it finds enough registers.
fn programs(code: &Code, used: Hints) -> Vec<WithProgram> {
    let scheduled = [Hints::default(), used].map(|hints| scheduled::compile(code, &hints).unwrap());
    let all = scheduled.into_iter().chain(sequential::compile(code));
    all.map(|instructions| WithProgram(Program::new(&instructions))).collect()
}

#[test]
fn the_published_code_can_be_scheduled() {
    let plain = bytes(12 * 64 * 2);
    for mut chip in programs(&packed::encrypt_as_published(), Hints::default()) {
        let launch = Launch::Packed { decrypts: false };
        let (output, _) = run_on(&mut chip, launch, 128, 12, &plain, &[]);
        assert_eq!(output, ecb(128, false, &plain));
    }
}

fn program(name: &str) -> BitsliceProgram {
    *PROGRAMS.iter().find(|program| program.name == name).expect("a program of this name")
}

fn xor(data: &[u8], other: &[u8]) -> Vec<u8> {
    data.iter().zip(other).map(|(byte, other)| byte ^ other).collect()
}

#[test]
fn bitslice_ctr() {
    let program = program("ctr");
    for mut chip in programs(&program.code(), program.hints()) {
        for bits in [128, 192, 256] {
            let plain = bytes(UNIT * 5 + 3);
            let counters: Vec<u8> = (0x0102_0307u32..)
                .take(plain.len().div_ceil(16))
                .flat_map(|counter| [&COUNTER[..12], &counter.to_be_bytes()].concat())
                .collect();
            let (output, _) = run_on(&mut chip, Launch::Ctr, bits, 2, &plain, &[]);
            assert!(output == xor(&plain, &ecb(bits, false, &counters)), "{bits}");
        }
    }
    for (bits, most) in [(128, 15.0), (192, 18.0), (256, 21.0)] {
        let [one, twelve] = [1, 12].map(|qpus| clocks_per_byte(Launch::Ctr, bits, qpus, UNIT));
        println!("ctr-{bits}: {one:.2} clocks a byte and QPU, {twelve:.2} with 12");
        assert!(one <= most && 12.0 * one / twelve >= 11.0, "{bits}: {one} and {twelve}");
    }
}

/// The tweaks of blocks as bit planes: word i of vector b of a unit has bit b of byte i of the 32 tweaks of the unit.
fn planes(tweaks: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; tweaks.len()];
    for (unit, tweaks) in bytes.chunks_exact_mut(UNIT).zip(tweaks.chunks_exact(UNIT)) {
        for (place, byte) in tweaks.iter().enumerate() {
            let (block, i) = (place / 16, place % 16);
            for bit in (0..8).filter(|bit| byte >> bit & 1 == 1) {
                unit[64 * bit + 4 * i + block / 8] |= 1 << (block % 8);
            }
        }
    }
    bytes
}

/// The expected output of a bitsliced program on two QPUs.
fn expected(kind: Blocks, bits: usize, input: &[u8], other: &[u8]) -> Vec<u8> {
    let cipher = |data: &[u8]| ecb(bits, kind.decrypts, data);
    match kind.combination {
        Combination::None => cipher(input),
        Combination::Data => xor(&cipher(input), other),
        Combination::Tweak => xor(&cipher(&xor(input, other)), other),
        Combination::Chain => {
            let mut output = Vec::new();
            for unit in input.chunks(UNIT) {
                // The result of the previous unit that this QPU has encrypted.
                let before = output.len().checked_sub(2 * UNIT);
                let before = before.map_or(vec![0; UNIT], |start| output[start..start + UNIT].to_vec());
                output.extend(cipher(&xor(unit, &before)));
            }
            output
        }
    }
}

#[test]
fn bitslice_blocks() {
    // For each program: the maximum number of clocks per byte of a QPU with a key of 128 bits, and the minimum speed-up by 12 QPUs. The
    // speed-up of programs with two more loads per unit is less than 11, because the loads occupy the DMA engine for more than two thirds
    // of the time.
    for (name, most, scaling) in [
        ("encrypt", 16.0, 11.0),
        ("decrypt", 19.0, 11.0),
        ("cfb_decrypt", 17.0, 9.5),
        ("cbc_decrypt", 19.5, 9.5),
        ("xts_encrypt", 17.0, 11.0),
        ("xts_decrypt", 19.5, 11.0),
        ("chain_encrypt", 16.5, 11.0),
    ] {
        let program = program(name);
        let Some(kind) = program.blocks else { panic!("{name} is for blocks") };
        let launch = Launch::Blocks(kind);
        for mut chip in programs(&program.code(), program.hints()) {
            for bits in [128, 192, 256] {
                let (input, more) = (bytes(UNIT * 5), bytes(UNIT * 6).split_off(UNIT));
                let other = match kind.combination {
                    Combination::None | Combination::Chain => Vec::new(),
                    Combination::Data => more.clone(),
                    Combination::Tweak => planes(&more),
                };
                let (output, _) = run_on(&mut chip, launch, bits, 2, &input, &other);
                assert!(output == expected(kind, bits, &input, &more), "{name} {bits}");
            }
        }
        let [one, twelve] = [1, 12].map(|qpus| clocks_per_byte(launch, 128, qpus, UNIT));
        println!("{name}: {one:.2} clocks a byte and QPU, {twelve:.2} with 12");
        assert!(one <= most && 12.0 * one / twelve >= scaling, "{name}: {one} and {twelve}");
    }
}
