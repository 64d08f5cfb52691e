//! Kernels compute AES, and take the clocks that were measured or derived.

use lockstep_qpu::compiler::scheduled::{self, Hints};
use lockstep_qpu::compiler::sequential;
use lockstep_qpu::isa::Instruction;
use lockstep_qpu::kernels::packed;
use lockstep_qpu::sim::{Machine, Program, Run};
use lockstep_reference::Aes;

/// Bytes that differ from each other.
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

/// Memory in which things get addresses one after the other.
struct Memory(Vec<u8>);

impl Memory {
    fn put(&mut self, bytes: &[u8]) -> u32 {
        self.0.resize(self.0.len().next_multiple_of(64), 0);
        let address = self.0.len();
        self.0.extend(bytes);
        address as u32
    }

    fn put_words(&mut self, words: &[u32]) -> u32 {
        self.put(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
    }
}

/// Runs a packed kernel in place.
fn run_packed(instructions: &[Instruction], qpus: u32, aes: &Aes, table: &[u8; 256], data: &mut [u8]) -> Run {
    let mut memory = Memory(Vec::new());
    let keys = memory.put(&aes.round_keys().concat());
    let table = memory.put_words(&table.map(u32::from));
    let blocks = memory.put(data);
    // What is loaded ahead.
    memory.put(&vec![0; 64 * 13]);
    let rounds = aes.round_keys().len() as u32 - 1;
    let uniforms: Vec<u32> = (0..qpus)
        .map(|qpu| memory.put_words(&[qpu, qpus, blocks, keys, table, rounds, data.len() as u32 / 4]))
        .collect();
    let program = Program::new(instructions);
    let run = Machine::new(&program, &uniforms).run(&mut memory.0, u64::MAX).unwrap_or_else(|fault| panic!("{fault}"));
    data.copy_from_slice(&memory.0[blocks as usize..blocks as usize + data.len()]);
    run
}

fn encrypted(aes: &Aes, data: &[u8]) -> Vec<u8> {
    data.chunks_exact(16).flat_map(|block| aes.encrypt(block.try_into().unwrap())).collect()
}

#[test]
fn packed_as_published() {
    let instructions = sequential::compile(&packed::encrypt_as_published()).unwrap();
    for bits in [128, 192, 256] {
        let aes = Aes::new(&key(bits));
        let plain = bytes(12 * 64 * 2);
        let mut data = plain.clone();
        let run = run_packed(&instructions, 12, &aes, &lockstep_qpu::kernels::SBOX, &mut data);
        assert_eq!(data, encrypted(&aes, &plain), "{bits}");
        assert_eq!(run.interrupts, 1);
    }
    let aes = Aes::new(&key(128));
    // The clocks of 64 bytes, from the difference of two lengths. The thesis: 5429 (1 QPU) and 5735 (12).
    for (qpus, expected) in [(1, 5429), (12, 5735)] {
        let clocks = |vectors: usize| {
            run_packed(&instructions, qpus, &aes, &lockstep_qpu::kernels::SBOX, &mut bytes(64 * vectors * qpus as usize)).clocks
        };
        let each = (clocks(60) - clocks(20)) / 40;
        println!("{qpus} {each} {expected} {}", instructions.len());
        assert!(each.abs_diff(expected) * 50 <= expected, "{each} clocks with {qpus} QPUs, measured {expected}");
    }
}

#[test]
fn packed_scheduled() {
    let instructions = scheduled::compile(&packed::encrypt_as_published(), &Hints::default()).unwrap();
    let aes = Aes::new(&key(128));
    let plain = bytes(12 * 64 * 2);
    let mut data = plain.clone();
    println!("{}", instructions.len());
    println!("{}", lockstep_qpu::isa::disassemble(&instructions.iter().map(|i| i.encode()).collect::<Vec<u64>>()));
    run_packed(&instructions, 12, &aes, &lockstep_qpu::kernels::SBOX, &mut data);
    assert_eq!(data, encrypted(&aes, &plain));
}
