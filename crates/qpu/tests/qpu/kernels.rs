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
    let run = Machine::new(&program, &uniforms)
        .run(&mut memory.0, u64::MAX)
        .unwrap_or_else(|fault| panic!("{fault}"));
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
            run_packed(
                &instructions,
                qpus,
                &aes,
                &lockstep_qpu::kernels::SBOX,
                &mut bytes(64 * vectors * qpus as usize),
            )
            .clocks
        };
        let each = (clocks(60) - clocks(20)) / 40;
        println!("{qpus} {each} {expected} {}", instructions.len());
        assert!(
            each.abs_diff(expected) * 50 <= expected,
            "{each} clocks with {qpus} QPUs, measured {expected}"
        );
    }
}

#[test]
fn packed_scheduled() {
    let instructions = scheduled::compile(&packed::encrypt_as_published(), &Hints::default()).unwrap();
    let aes = Aes::new(&key(128));
    let plain = bytes(12 * 64 * 2);
    let mut data = plain.clone();
    println!("{}", instructions.len());
    println!(
        "{}",
        lockstep_qpu::isa::disassemble(&instructions.iter().map(|i| i.encode()).collect::<Vec<u64>>())
    );
    run_packed(&instructions, 12, &aes, &lockstep_qpu::kernels::SBOX, &mut data);
    assert_eq!(data, encrypted(&aes, &plain));
}

/// Runs the bitsliced CTR kernel from a counter that is a multiple of 32.
fn run_ctr(
    instructions: &[Instruction],
    qpus: u32,
    aes: &Aes,
    nonce: [u8; 12],
    counter: u32,
    data: &mut [u8],
) -> Run {
    let round_keys = aes.round_keys();
    let mut memory = Memory(vec![0; 8192]);
    let mut keys = vec![0u32; 64 * 15];
    for (round, key) in round_keys.iter().enumerate() {
        for (byte, value) in key.iter().enumerate() {
            // The S-box of the kernel omits its constant.
            let constant = if round == 0 { 0 } else { 0x63 };
            keys[64 * round + byte] = u32::from(value ^ constant) << 24;
        }
    }
    let address = memory.put_words(&keys);
    assert_eq!(address % 4096, 0);
    let mut vectors = vec![0u32; 48];
    for byte in 0..16 {
        let known = if byte < 12 { nonce[byte] } else { 0 };
        vectors[byte] = u32::from(known ^ round_keys[0][byte]) << 24;
        vectors[16 + byte] = 8 * (byte as u32).saturating_sub(12);
        vectors[32 + byte] = if byte < 12 { 0 } else { 0xff00_0000 };
    }
    let vectors = memory.put_words(&vectors);
    memory.put(&vec![0; 512 * qpus as usize]);
    let blocks = memory.put(data);
    let units = data.len() as u32 / 512;
    let uniforms: Vec<u32> = (0..qpus)
        .map(|qpu| {
            let mine = (units + qpus - 1 - qpu) / qpus;
            let first = blocks + 512 * qpu;
            memory.put_words(&[
                qpu,
                qpus,
                address,
                round_keys.len() as u32 - 2,
                first,
                first,
                mine,
                counter + 32 * qpu,
                32 * qpus,
                vectors,
            ])
        })
        .collect();
    let program = Program::new(instructions);
    let run = Machine::new(&program, &uniforms)
        .run(&mut memory.0, 100_000_000)
        .unwrap_or_else(|fault| panic!("{fault}"));
    data.copy_from_slice(&memory.0[blocks as usize..blocks as usize + data.len()]);
    run
}

#[test]
fn bitslice_ctr() {
    let code = lockstep_qpu::kernels::bitslice::ctr();
    if std::env::var("QPU_SHOW").is_ok() { println!("{}", lockstep_qpu::isa::disassemble(&scheduled::compile(&code, &Hints::default()).unwrap().iter().map(|i| i.encode()).collect::<Vec<u64>>())); }
    for instructions in
        [sequential::compile(&code).unwrap(), scheduled::compile(&code, &Hints::default()).unwrap()]
    {
        for bits in [128, 192, 256] {
            let aes = Aes::new(&key(bits));
            let nonce: [u8; 12] = bytes(12).try_into().unwrap();
            let plain = bytes(512 * 5);
            let mut data = plain.clone();
            run_ctr(&instructions, 2, &aes, nonce, 0x0102_0300, &mut data);
            let mut expected = plain;
            for (block, chunk) in expected.chunks_mut(16).enumerate() {
                let counter = 0x0102_0300 + block as u32;
                let stream = aes.encrypt([&nonce[..], &counter.to_be_bytes()].concat().try_into().unwrap());
                chunk.iter_mut().zip(stream).for_each(|(byte, key)| *byte ^= key);
            }
            assert!(data == expected, "{bits}");
        }
        let aes = Aes::new(&key(128));
        for qpus in [1, 12] {
            let clocks = |units: usize| {
                run_ctr(&instructions, qpus, &aes, [0; 12], 0, &mut bytes(512 * units * qpus as usize)).clocks
            };
            println!(
                "{} instructions, {qpus}: {:.2} clocks a byte",
                instructions.len(),
                (clocks(30) - clocks(10)) as f64 / 20.0 / 512.0
            );
        }
    }
}
