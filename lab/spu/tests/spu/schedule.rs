//! Tests of the scheduler with small loops, and of its guarantees for all kernels.

use lockstep_spu::isa::{Class, Pipe};
use lockstep_spu::kernels::{Hints, KERNELS, Way};
use lockstep_spu::schedule::{Effort, Flow, Program, compile};
use lockstep_spu::sim::{Machine, Run};

const FROM: usize = 0x1000;
const TO: usize = 0x8000;

/// Makes a flow that copies quadwords and XORs each with a mask.
fn copy_with_mask() -> Flow {
    let mut f = Flow::new();
    let (source, from) = f.carried();
    let (target, to) = f.carried();
    let mask = f.bytes(0x5a);
    let data = f.load_at(from, 0);
    let masked = f.xor(data, mask);
    f.store_at(masked, to, 0);
    let next = f.add_to_words(from, 16);
    f.carry(source, next);
    let next = f.add_to_words(to, 16);
    f.carry(target, next);
    f
}

fn run(program: &Program, iterations: u64) -> (Run, Vec<u8>) {
    let mut machine = Machine::new();
    machine.load(&program.image);
    let mut word = |at: u32, value: u32| {
        machine.memory_mut(at as usize..at as usize + 4).copy_from_slice(&value.to_be_bytes());
    };
    word(program.parameters[0], FROM as u32);
    word(program.parameters[1], TO as u32);
    word(program.iterations_at, (iterations - (program.stages - 1)) as u32);
    let len = 16 * iterations as usize;
    for (i, byte) in machine.memory_mut(FROM..FROM + len).iter_mut().enumerate() {
        *byte = i as u8;
    }
    let run = machine.run(1_000_000).unwrap();
    (run, machine.memory(TO..TO + len).to_vec())
}

#[test]
fn a_short_loop() {
    for effort in [Effort::Off, Effort::Straight, Effort::Full] {
        let program = compile(&copy_with_mask(), effort, 0).unwrap();
        for iterations in [program.stages, 5, 100] {
            let (_, data) = run(&program, iterations);
            assert!(
                data.iter().enumerate().all(|(i, &byte)| byte == i as u8 ^ 0x5a),
                "{effort:?} {iterations}"
            );
        }
    }
}

#[test]
fn overlapping_iterations_hides_latencies() {
    let clocks = |effort| {
        let program = compile(&copy_with_mask(), effort, 0).unwrap();
        (run(&program, 200).0.cycles - run(&program, 100).0.cycles) / 100
    };
    let [off, straight, full] = [Effort::Off, Effort::Straight, Effort::Full].map(clocks);
    // A load followed by a sum takes 8 cycles, and a branch without a hint takes 18.
    assert!(full < 8);
    assert!(straight > full && off > straight, "{off} {straight} {full}");
}

#[test]
fn execution_follows_the_schedule() {
    for kernel in KERNELS {
        let (_, of) = kernel.loops[0];
        if of.way == Way::Plain(Hints::None) {
            continue;
        }
        let compiled = of.compiled(10, Effort::Full).unwrap();
        let keys = [[1; 16]; 11];
        let mut machine = Machine::new();
        compiled.load(&mut machine, &keys).unwrap();
        let mut cycles = |blocks: usize| {
            compiled.run(&mut machine, &keys, &[0; 16], &mut vec![0; 16 * blocks]).unwrap().cycles
        };
        let turns = 128 / u64::from(of.blocks);
        let (found, scheduled) = (cycles(256) - cycles(128), turns * compiled.program.interval);
        // A loop never takes longer than scheduled. It takes less time if a cycle without planned instructions passes without a wait.
        assert!(found <= scheduled && found * 100 >= scheduled * 97, "{}: {found}, {scheduled}", kernel.name);
        assert!(compiled.program.registers <= 128);
    }
}

#[test]
fn pairs_are_even_then_odd() {
    for kernel in KERNELS {
        let (_, of) = kernel.loops[0];
        if of.way == Way::Plain(Hints::None) {
            continue;
        }
        let image = of.compiled(12, Effort::Full).unwrap().program.image.clone();
        let start = image.symbols["loop"];
        let end = image.symbols["loop_branch"];
        assert_eq!((start % 8, end % 8), (0, 4));
        for (at, inst) in image.instructions().filter(|(at, _)| (start..=end).contains(at)) {
            let op = inst.unwrap().op;
            let expected = if at % 8 == 0 { Pipe::Even } else { Pipe::Odd };
            assert_eq!(op.pipe(), expected, "{} at {at:#x}: {op:?}", kernel.name);
        }
        let hints = image.instructions().filter(|(_, inst)| inst.unwrap().op.class() == Class::Hb);
        assert_eq!(hints.count(), 1, "{}", kernel.name);
    }
}

#[test]
fn too_many_values_are_refused_in_words() {
    let mut f = Flow::new();
    let (pointer, from) = f.carried();
    let values: Vec<_> = (0..200).map(|i| f.constant([i; 16])).collect();
    let sum = f.sum(&values);
    f.store_at(sum, from, 0);
    let next = f.add_to_words(from, 16);
    f.carry(pointer, next);
    let error = compile(&f, Effort::Full, 0).unwrap_err();
    // The 202 values are the 200 constants, the pointer and the iteration count.
    assert_eq!(error, "202 values at once: the SPU has 126 registers for them");
}
