//! Runs of a kernel: what is in memory, which uniforms each QPU gets, and the result.

use std::sync::LazyLock;

use lockstep_core::Block;
use zeroize::Zeroizing;

use crate::compiler::scheduled::{self, Hints};
use crate::compiler::{Code, sequential};
use crate::kernels::bitslice::{Blocks, KEY_STRIDE, PROGRAMS, UNIT};
use crate::kernels::{INVERSE_SBOX, SBOX, naive, packed, packed_tuned};
use crate::sim::{Fault, Machine, Program, QPUS, Run};

/// The most bytes of a run.
pub const MAX_RUN_BYTES: usize = 64 * UNIT * QPUS as usize;

/// Clocks after which a run of the simulator is ended: far more than a byte takes, and any program that ends.
const CLOCKS_PER_BYTE: u64 = 2000;

/// The alignment of the round keys of the bitsliced kernels, and of everything else.
const KEYS_ALIGNMENT: usize = 4096;
const ALIGNMENT: usize = 64;

/// A kernel, with its program for one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launch {
    /// A bitsliced program that encrypts or decrypts blocks.
    Blocks(Blocks),
    /// Bitsliced CTR.
    Ctr,
    /// The thesis's kernel, as it was published: ECB encryption.
    Packed,
    /// The same, tuned.
    PackedTuned {
        /// True for decryption.
        decrypts: bool,
    },
    /// The thesis's first kernel: ECB encryption.
    Naive,
}

/// The input of a run. It has keys, so it is not printed.
#[derive(Clone, Copy)]
pub struct Job<'j> {
    /// The round keys in the order in which they are added.
    pub keys: &'j [Block],
    /// For CTR: the first counter block. Its last four bytes must not overflow in the run.
    pub counter: Block,
    /// The blocks, at most [`MAX_RUN_BYTES`]. Any number of bytes for CTR; whole blocks otherwise.
    pub input: &'j [u8],
    /// What the result is combined with, as long as the input; empty if the program does not combine.
    pub other: &'j [u8],
}

/// The bitsliced programs, compiled on first use.
static BITSLICE: [LazyLock<Program>; PROGRAMS.len()] = [
    LazyLock::new(|| Program::new(&PROGRAMS[0].compile())),
    LazyLock::new(|| Program::new(&PROGRAMS[1].compile())),
    LazyLock::new(|| Program::new(&PROGRAMS[2].compile())),
    LazyLock::new(|| Program::new(&PROGRAMS[3].compile())),
    LazyLock::new(|| Program::new(&PROGRAMS[4].compile())),
];

/// The bitsliced program for blocks, or for CTR.
fn bitslice(blocks: Option<Blocks>) -> &'static Program {
    let index = PROGRAMS.iter().position(|program| program.blocks == blocks);
    &BITSLICE[index.expect("there is a program for each")]
}

/// The thesis's kernels, by the compiler's scheme of that time.
static PACKED: LazyLock<Program> = LazyLock::new(|| as_published(packed::encrypt_as_published()));
static NAIVE: LazyLock<Program> = LazyLock::new(|| as_published(naive::encrypt_as_published()));

/// The tuned kernels for 10, 12 and 14 rounds, for encryption and for decryption.
static PACKED_TUNED: LazyLock<[[Program; 2]; 3]> = LazyLock::new(|| {
    [10, 12, 14].map(|rounds| {
        [false, true].map(|decrypts| {
            let code = packed_tuned::blocks(rounds, decrypts);
            Program::new(&scheduled::compile(&code, &Hints::default()).expect(FITS))
        })
    })
});

const FITS: &str = "a kernel that fits into the registers";

fn as_published(code: Code) -> Program {
    Program::new(&sequential::compile(&code).expect(FITS))
}

/// Memory in which things get addresses one after the other. It is wiped on drop.
struct Memory(Zeroizing<Vec<u8>>);

impl Memory {
    /// Memory whose size is known, so that no copy of its content is left behind.
    fn new(bytes: usize) -> Memory {
        Memory(Zeroizing::new(Vec::with_capacity(bytes)))
    }

    fn put_words(&mut self, words: &[u32]) -> u32 {
        let address = self.room(4 * words.len());
        for (place, word) in self.0[address as usize..].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        address
    }

    /// Room for some bytes, which are zero.
    fn room(&mut self, bytes: usize) -> u32 {
        let start = self.0.len().next_multiple_of(ALIGNMENT);
        debug_assert!(start + bytes <= self.0.capacity(), "the memory is not moved");
        self.0.resize(start + bytes, 0);
        start as u32
    }

    fn align(&mut self, to: usize) {
        let end = self.0.len().next_multiple_of(to);
        self.0.resize(end, 0);
    }
}

impl Launch {
    /// Runs the program on QPUs of the simulator. Returns the output, which is as long as the input.
    ///
    /// # Errors
    /// A fault of the program.
    ///
    /// # Panics
    /// If the input is longer than [`MAX_RUN_BYTES`], or no whole blocks except for CTR; if the other data are not as long as the
    /// program needs; or if there are no QPUs or more than [`QPUS`].
    pub fn simulate(self, job: &Job<'_>, qpus: u8) -> Result<(Zeroizing<Vec<u8>>, Run), Fault> {
        assert!(job.input.len() <= MAX_RUN_BYTES, "{} bytes in a run", job.input.len());
        assert!((1..=QPUS).contains(&qpus), "{qpus} QPUs");
        assert!(self == Launch::Ctr || job.input.len().is_multiple_of(16), "{} bytes", job.input.len());
        let combines = matches!(self, Launch::Blocks(Blocks { combines: true, .. }));
        assert_eq!(job.other.len(), if combines { job.input.len() } else { 0 });
        if job.input.is_empty() {
            return Ok((Zeroizing::new(Vec::new()), Run::default()));
        }
        let qpus = u32::from(qpus);
        // Room for the keys, margins, the data three times (four times with a word for each byte), and what is small.
        let margin = UNIT * qpus as usize;
        let mut memory = Memory::new(4 * job.input.len() + 8 * margin + 4 * KEYS_ALIGNMENT);
        let (program, uniforms, output) = match self {
            Launch::Ctr => ctr(&mut memory, job, qpus),
            Launch::Blocks(kind) => blocks(&mut memory, job, qpus, kind),
            Launch::Packed => packed(&mut memory, job, qpus),
            Launch::PackedTuned { decrypts } => packed_tuned(&mut memory, job, qpus, decrypts),
            Launch::Naive => naive(&mut memory, job, qpus),
        };
        let budget = (job.input.len() as u64 + UNIT as u64 * u64::from(qpus)) * CLOCKS_PER_BYTE;
        let run = Machine::new(program, &uniforms).run(&mut memory.0, budget)?;
        let stride = if self == Launch::Naive { 4 } else { 1 };
        let output = memory.0[output as usize..].iter().step_by(stride).take(job.input.len());
        Ok((Zeroizing::new(output.copied().collect()), run))
    }
}

/// The round keys as the bitsliced kernels read them: a byte in the highest bits of a word. The S-box omits its constant, which
/// is added by all keys but one.
fn bitslice_keys(memory: &mut Memory, keys: &[Block], without_constant: usize) -> u32 {
    memory.align(KEYS_ALIGNMENT);
    let address = memory.room(KEY_STRIDE as usize * keys.len());
    for (round, key) in keys.iter().enumerate() {
        let constant = if round == without_constant { 0 } else { lockstep_core::sbox::AFFINE };
        for (byte, value) in key.iter().enumerate() {
            let place = address as usize + KEY_STRIDE as usize * round + 4 * byte + 3;
            memory.0[place] = value ^ constant;
        }
    }
    address
}

/// The number of units of a QPU.
fn units_of(qpu: u32, qpus: u32, units: u32) -> u32 {
    units.saturating_sub(qpu).div_ceil(qpus)
}

/// QPUs that have a unit.
fn working(qpus: u32, units: u32) -> u32 {
    qpus.min(units.max(1))
}

fn ctr(memory: &mut Memory, job: &Job<'_>, qpus: u32) -> (&'static Program, Vec<u32>, u32) {
    let keys = bitslice_keys(memory, job.keys, 0);
    let rounds = job.keys.len() as u32 - 2;
    let low = u32::from_be_bytes([job.counter[12], job.counter[13], job.counter[14], job.counter[15]]);
    // The counter of a unit is a multiple of 32: the run begins with blocks that are not needed.
    let (first, skipped) = (low & !31, (low % 32) as usize * 16);
    let mut vectors = Zeroizing::new([0u32; 48]);
    for byte in 0..16 {
        let known = if byte < 12 { job.counter[byte] } else { 0 };
        vectors[byte] = u32::from(known ^ job.keys[0][byte]) << 24;
        vectors[16 + byte] = 8 * (byte as u32).saturating_sub(12);
        vectors[32 + byte] = if byte < 12 { 0 } else { 0xff00_0000 };
    }
    let vectors = memory.put_words(&*vectors);
    memory.room(UNIT * qpus as usize);
    let bytes = (skipped + job.input.len()).next_multiple_of(UNIT);
    let data = memory.room(bytes);
    memory.0[data as usize + skipped..][..job.input.len()].copy_from_slice(job.input);
    let units = (bytes / UNIT) as u32;
    let qpus = working(qpus, units);
    let uniforms = (0..qpus).map(|qpu| {
        let at = data + UNIT as u32 * qpu;
        let counter = first.wrapping_add(32 * qpu);
        let units = units_of(qpu, qpus, units);
        memory.put_words(&[qpu, qpus, keys, rounds, at, at, units, counter, 32 * qpus, vectors])
    });
    (bitslice(None), uniforms.collect(), data + skipped as u32)
}

fn blocks(memory: &mut Memory, job: &Job<'_>, qpus: u32, kind: Blocks) -> (&'static Program, Vec<u32>, u32) {
    let decrypts = kind.decrypts;
    let rounds = job.keys.len() as u32 - 2;
    let keys = bitslice_keys(memory, job.keys, if decrypts { job.keys.len() - 1 } else { 0 });
    let bytes = job.input.len().next_multiple_of(UNIT);
    let units = (bytes / UNIT) as u32;
    let qpus = working(qpus, units);
    let margin = UNIT * qpus as usize;
    let input = memory.room(bytes);
    memory.0[input as usize..][..job.input.len()].copy_from_slice(job.input);
    memory.room(margin);
    let other = memory.room(if job.other.is_empty() { 0 } else { bytes });
    memory.0[other as usize..][..job.other.len()].copy_from_slice(job.other);
    memory.room(margin);
    let output = memory.room(bytes);
    let uniforms = (0..qpus).map(|qpu| {
        let at = UNIT as u32 * qpu;
        let units = units_of(qpu, qpus, units);
        memory.put_words(&[
            qpu,
            qpus,
            keys,
            rounds,
            input + at,
            output + at,
            other + at,
            units,
            UNIT as u32 * qpus,
        ])
    });
    (bitslice(Some(kind)), uniforms.collect(), output)
}

/// Round keys as blocks.
fn plain_keys(memory: &mut Memory, keys: &[Block]) -> u32 {
    let address = memory.room(16 * keys.len());
    for (place, key) in memory.0[address as usize..].chunks_exact_mut(16).zip(keys) {
        place.copy_from_slice(key);
    }
    address
}

/// Bytes as words.
fn bytes_as_words(memory: &mut Memory, bytes: &[u8], room: usize) -> u32 {
    let address = memory.room(4 * room);
    for (place, byte) in memory.0[address as usize..].chunks_exact_mut(4).zip(bytes) {
        place[0] = *byte;
    }
    address
}

fn packed(memory: &mut Memory, job: &Job<'_>, qpus: u32) -> (&'static Program, Vec<u32>, u32) {
    let rounds = job.keys.len() as u32 - 1;
    let keys = plain_keys(memory, job.keys);
    let table = bytes_as_words(memory, &SBOX, 256);
    // A vector is four blocks; the next one of each QPU is requested ahead.
    let step = 64 * qpus as usize;
    let bytes = job.input.len().next_multiple_of(step);
    let data = memory.room(bytes + step);
    memory.0[data as usize..][..job.input.len()].copy_from_slice(job.input);
    let words = bytes as u32 / 4;
    let uniforms =
        (0..qpus).map(|qpu| memory.put_words(&[qpu, qpus, data, keys, table, rounds, words])).collect();
    (&PACKED, uniforms, data)
}

fn packed_tuned(
    memory: &mut Memory,
    job: &Job<'_>,
    qpus: u32,
    decrypts: bool,
) -> (&'static Program, Vec<u32>, u32) {
    let keys = plain_keys(memory, job.keys);
    let (table, last_table) = if decrypts {
        (memory.put_words(&packed_tuned::INVERSE_TABLE), bytes_as_words(memory, &INVERSE_SBOX, 256))
    } else {
        let table = memory.put_words(&packed_tuned::TABLE);
        (table, table)
    };
    let unit = packed_tuned::UNIT;
    let bytes = job.input.len().next_multiple_of(unit as usize);
    let units = bytes as u32 / unit;
    let qpus = working(qpus, units);
    let data = memory.room(bytes + (unit * qpus) as usize + 64);
    memory.0[data as usize..][..job.input.len()].copy_from_slice(job.input);
    let uniforms = (0..qpus).map(|qpu| {
        let units = units_of(qpu, qpus, units);
        memory.put_words(&[qpu, qpus, data + unit * qpu, keys, table, last_table, units, unit * qpus])
    });
    // 11, 13 or 15 round keys.
    (&PACKED_TUNED[(job.keys.len() - 11) / 2][usize::from(decrypts)], uniforms.collect(), data)
}

fn naive(memory: &mut Memory, job: &Job<'_>, qpus: u32) -> (&'static Program, Vec<u32>, u32) {
    let rounds = job.keys.len() as u32 - 1;
    let keys = bytes_as_words(memory, job.keys.as_flattened(), 16 * job.keys.len());
    let table = bytes_as_words(memory, &SBOX, 256);
    let matrix = memory.put_words(&naive::MATRIX);
    let step = 16 * qpus as usize;
    let bytes = job.input.len().next_multiple_of(step);
    let data = bytes_as_words(memory, job.input, bytes + step);
    let uniforms = (0..qpus)
        .map(|qpu| memory.put_words(&[qpu, qpus, data, keys, table, matrix, rounds, bytes as u32]))
        .collect();
    (&NAIVE, uniforms, data)
}
