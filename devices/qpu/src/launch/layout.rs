//! The layout in memory of the keys, tables and data of the kernels, and the uniforms that contain their addresses.

use lockstep_core::Block;
use zeroize::Zeroizing;

use super::memory::Memory;
use super::{Job, programs};
use crate::kernels::bitslice::{Blocks, KEY_STRIDE, UNIT};
use crate::kernels::{INVERSE_SBOX, SBOX, naive as naive_kernel, packed_tuned as tuned_kernel};
use crate::sim::Program;

/// The alignment of the round keys of the bitsliced kernels.
pub(super) const KEYS_ALIGNMENT: usize = 4096;

/// A prepared run: the program, the addresses of the uniforms of each QPU, and the address of the output.
pub(super) struct Layout {
    pub(super) program: &'static Program,
    pub(super) uniforms: Vec<u32>,
    pub(super) output: u32,
}

/// Writes the round keys to memory in the form that the bitsliced kernels read: the highest eight bits of each word contain one
/// byte of the key. The S-box of these kernels omits the constant of SubBytes. Therefore the constant is XORed into all round
/// keys except the key with the index `without_constant`.
fn bitslice_keys(memory: &mut Memory, keys: &[Block], without_constant: usize) -> u32 {
    let stride = KEY_STRIDE as usize;
    let address = memory.aligned_room(KEYS_ALIGNMENT, stride * keys.len());
    for (round, (place, key)) in memory.from(address).chunks_exact_mut(stride).zip(keys).enumerate() {
        let constant = if round == without_constant { 0 } else { lockstep_core::sbox::AFFINE };
        for (word, byte) in place.chunks_exact_mut(4).zip(key) {
            word[3] = byte ^ constant;
        }
    }
    address
}

/// The number of units of a QPU.
fn units_of(qpu: u32, qpus: u32, units: u32) -> u32 {
    units.saturating_sub(qpu).div_ceil(qpus)
}

/// The number of QPUs that have at least one unit.
fn working(qpus: u32, units: u32) -> u32 {
    qpus.min(units.max(1))
}

pub(super) fn ctr(memory: &mut Memory, job: &Job<'_>, qpus: u32) -> Layout {
    let round_keys = job.keys.as_blocks();
    let keys = bitslice_keys(memory, round_keys, 0);
    let rounds = round_keys.len() as u32 - 2;
    let low = u32::from_be_bytes([job.counter[12], job.counter[13], job.counter[14], job.counter[15]]);
    // The first counter of a unit must be a multiple of 32, so the run may start with blocks whose output is not needed.
    let (first, skipped) = (low & !31, (low % 32) as usize * 16);
    let mut vectors = Zeroizing::new([0u32; 48]);
    for byte in 0..16 {
        let known = if byte < 12 { job.counter[byte] } else { 0 };
        vectors[byte] = u32::from(known ^ round_keys[0][byte]) << 24;
        vectors[16 + byte] = 8 * (byte as u32).saturating_sub(12);
        vectors[32 + byte] = if byte < 12 { 0 } else { 0xff00_0000 };
    }
    let vectors = memory.put_words(&*vectors);
    memory.room(UNIT * qpus as usize);
    let bytes = (skipped + job.input.len()).next_multiple_of(UNIT);
    let data = memory.room(bytes);
    memory.from(data)[skipped..][..job.input.len()].copy_from_slice(job.input);
    let units = (bytes / UNIT) as u32;
    let qpus = working(qpus, units);
    let uniforms = (0..qpus).map(|qpu| {
        let at = data + UNIT as u32 * qpu;
        let counter = first.wrapping_add(32 * qpu);
        let units = units_of(qpu, qpus, units);
        memory.put_words(&[qpu, qpus, keys, rounds, at, at, units, counter, 32 * qpus, vectors])
    });
    let uniforms = uniforms.collect();
    Layout { program: programs::bitslice(None), uniforms, output: data + skipped as u32 }
}

pub(super) fn blocks(memory: &mut Memory, job: &Job<'_>, qpus: u32, kind: Blocks) -> Layout {
    let rounds = job.keys.as_blocks().len() as u32 - 2;
    let keys = match kind.decrypts {
        true => bitslice_keys(memory, job.keys.inverse().as_blocks(), rounds as usize + 1),
        false => bitslice_keys(memory, job.keys.as_blocks(), 0),
    };
    let bytes = job.input.len().next_multiple_of(UNIT);
    let units = (bytes / UNIT) as u32;
    let qpus = working(qpus, units);
    let margin = UNIT * qpus as usize;
    let input = memory.put(job.input, bytes);
    memory.room(margin);
    let other = memory.put(job.other, if job.other.is_empty() { 0 } else { bytes });
    // Reserves the margin between the tweaks and the output, which the program may access.
    memory.room(margin);
    let output = memory.room(bytes);
    let step = UNIT as u32 * qpus;
    let uniforms = (0..qpus).map(|qpu| {
        let [input, output, other] = [input, output, other].map(|start| start + UNIT as u32 * qpu);
        let units = units_of(qpu, qpus, units);
        memory.put_words(&[qpu, qpus, keys, rounds, input, output, other, units, step])
    });
    let uniforms = uniforms.collect();
    Layout { program: programs::bitslice(Some(kind)), uniforms, output }
}

pub(super) fn packed(
    memory: &mut Memory,
    job: &Job<'_>,
    qpus: u32,
    decrypts: bool,
    program: &'static Program,
) -> Layout {
    let rounds = job.keys.as_blocks().len() as u32 - 1;
    // The published decryption uses the same round keys as encryption.
    let keys = memory.put_keys(job.keys.as_blocks());
    let table = memory.put_bytes_as_words(if decrypts { &INVERSE_SBOX } else { &SBOX }, 256);
    // A vector contains four blocks. Each QPU requests its next vector before it is needed, so there is memory after the data.
    let step = 64 * qpus as usize;
    let bytes = job.input.len().next_multiple_of(step);
    let data = memory.put(job.input, bytes + step);
    let words = bytes as u32 / 4;
    let uniforms =
        (0..qpus).map(|qpu| memory.put_words(&[qpu, qpus, data, keys, table, rounds, words])).collect();
    Layout { program, uniforms, output: data }
}

pub(super) fn packed_tuned(memory: &mut Memory, job: &Job<'_>, qpus: u32, decrypts: bool) -> Layout {
    let (keys, table, last_table);
    if decrypts {
        keys = memory.put_keys(job.keys.inverse().as_blocks());
        table = memory.put_words(&tuned_kernel::INVERSE_TABLE);
        last_table = memory.put_bytes_as_words(&INVERSE_SBOX, 256);
    } else {
        keys = memory.put_keys(job.keys.as_blocks());
        table = memory.put_words(&tuned_kernel::TABLE);
        last_table = table;
    }
    let unit = tuned_kernel::UNIT;
    let bytes = job.input.len().next_multiple_of(unit as usize);
    let units = bytes as u32 / unit;
    let qpus = working(qpus, units);
    let data = memory.put(job.input, bytes + (unit * qpus) as usize + 64);
    let uniforms = (0..qpus).map(|qpu| {
        let units = units_of(qpu, qpus, units);
        memory.put_words(&[qpu, qpus, data + unit * qpu, keys, table, last_table, units, unit * qpus])
    });
    let uniforms = uniforms.collect();
    // There are 11, 13 or 15 round keys.
    let program = &programs::PACKED_TUNED[(job.keys.as_blocks().len() - 11) / 2][usize::from(decrypts)];
    Layout { program, uniforms, output: data }
}

pub(super) fn naive(memory: &mut Memory, job: &Job<'_>, qpus: u32, decrypts: bool) -> Layout {
    let round_keys = job.keys.as_blocks();
    let keys = memory.put_bytes_as_words(round_keys.as_flattened(), 16 * round_keys.len());
    let rounds = round_keys.len() as u32 - 1;
    let (table, matrix) = match decrypts {
        true => (&INVERSE_SBOX, &naive_kernel::INVERSE_MATRIX),
        false => (&SBOX, &naive_kernel::MATRIX),
    };
    let table = memory.put_bytes_as_words(table, 256);
    let matrix = memory.put_words(matrix);
    let step = 16 * qpus as usize;
    let bytes = job.input.len().next_multiple_of(step);
    let data = memory.put_bytes_as_words(job.input, bytes + step);
    let uniforms = (0..qpus)
        .map(|qpu| memory.put_words(&[qpu, qpus, data, keys, table, matrix, rounds, bytes as u32]))
        .collect();
    Layout { program: &programs::NAIVE[usize::from(decrypts)], uniforms, output: data }
}
