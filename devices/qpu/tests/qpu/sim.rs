//! Programs on the simulator.

use lockstep_qpu::asm::assemble;
use lockstep_qpu::sim::timing::CLOCKS_PER_INSTRUCTION;
use lockstep_qpu::sim::{Fault, FaultKind, Hazard, Machine, Program, QPUS, Run, Vector};

const END: &str = "\nnop; thrend\nnop\nnop\n";

/// Runs a program on QPUs that all read these uniforms.
fn run_on(qpus: usize, source: &str, uniforms: &[u32]) -> Result<(Machine<'static>, Run), Fault> {
    let program = assemble(&format!("{source}{END}")).unwrap_or_else(|error| panic!("{source}: {error}"));
    // The program is leaked, because the returned machine refers to it.
    let program = &*Box::leak(Box::new(Program::new(&program.instructions)));
    let mut memory: Vec<u8> = uniforms.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut machine = Machine::new(program, &vec![0; qpus]);
    let run = machine.run(&mut memory, 100_000)?;
    Ok((machine, run))
}

fn run(source: &str) -> (Machine<'static>, Run) {
    run_on(1, source, &[]).unwrap_or_else(|fault| panic!("{source}: {fault}"))
}

fn fault(source: &str) -> Fault {
    run_on(1, source, &[]).err().expect(source)
}

fn elements(of: impl Fn(u32) -> u32) -> Vector {
    std::array::from_fn(|index| of(index as u32))
}

#[test]
fn both_operations_of_an_instruction_read_what_was_there_before() {
    let (machine, run) = run("ldi r0, 5\nldi r1, 7\nadd r0, r0, r1; v8min r1, r0, r0");
    assert_eq!((machine.accumulator(0, 0)[3], machine.accumulator(0, 1)[15]), (12, 5));
    // Three instructions, and the three instructions that end the program.
    assert_eq!((run.instructions, run.clocks), (6, 6 * CLOCKS_PER_INSTRUCTION));
}

#[test]
fn uniforms_and_numbers() {
    let source = "mov ra1, unif\nadd r0, unif, elem_num\nadd r1, ra1, qpu_num\nmov r2, unif; mov r3, unif";
    let (machine, _) = run_on(3, source, &[100, 200, 300]).unwrap();
    assert_eq!(*machine.accumulator(2, 0), elements(|index| 200 + index));
    assert_eq!(*machine.accumulator(2, 1), [102; 16]);
    // Each instruction takes one uniform.
    assert_eq!((*machine.accumulator(1, 2), *machine.accumulator(1, 3)), ([300; 16], [300; 16]));
    let moved = "ldi r0, 8\nmov unif_addr, r0\nnop\nnop\nmov r1, unif";
    assert_eq!(*run_on(1, moved, &[1, 2, 3]).unwrap().0.accumulator(0, 1), [3; 16]);
}

#[test]
fn a_branch_is_taken_after_three_instructions() {
    let source = "ldi r0, 3\nldi r1, 0\n:again\nsub.setf r0, r0, 1\nbrr.anynz -, :again\nadd r1, r1, 1\nadd r1, r1, 1\nadd r1, r1, 1";
    let (machine, run) = run(source);
    assert_eq!((machine.accumulator(0, 0)[0], machine.accumulator(0, 1)[0]), (0, 9));
    assert_eq!(run.instructions, 2 + 3 * 5 + 3);
    // The program writes the return address, and branches to it.
    let call = "brr ra1, :function\nnop\nnop\nnop\nbrr -, :end\nnop\nnop\nnop\n\
                :function ldi r0, 7\nbra -, ra1\nnop\nnop\nnop\n:end mov r1, r0";
    assert_eq!(*run_on(1, call, &[]).unwrap().0.accumulator(0, 1), [7; 16]);
}

#[test]
fn rotations() {
    let (machine, _) = run(
        "mov r0, elem_num\nnop\nnop; mov r1, r0 >> 3\nnop; mov r2, r0 << 2\nldi r5, 5\nnop\nnop; mov r3, r0 << r5",
    );
    assert_eq!(*machine.accumulator(0, 1), elements(|index| (index + 13) % 16));
    assert_eq!(*machine.accumulator(0, 2), elements(|index| (index + 2) % 16));
    assert_eq!(*machine.accumulator(0, 3), elements(|index| (index + 11) % 16));
    // An input from a file is rotated within quads.
    let (machine, _) = run("mov ra0, elem_num\nnop\nnop; mov r1, ra0 >> 1");
    assert_eq!(*machine.accumulator(0, 1), elements(|index| (index & !3) | ((index + 3) % 4)));
    // `r5quad` copies the first element of each quad to the elements of this quad. `r5rep` copies element 0 to all elements.
    let (machine, _) = run("mov r5quad, elem_num\nmov r0, r5\nmov r5rep, elem_num\nmov r1, r5");
    assert_eq!(*machine.accumulator(0, 0), elements(|index| index & !3));
    assert_eq!(*machine.accumulator(0, 1), [0; 16]);
}

#[test]
fn conditions_and_flags() {
    // A shift by n sets N to bit 31 - n of its input, and C to bit 32 - n. With these flags, a program selects the rows of an AES state
    // whose elements are single bytes.
    let (machine, _) = run("ldi r0, 0\nldi r1, 0\nshl.setf -, elem_num, -1\nmov.ifn r0, 1; mov.ifc r1, 1\n\
         and.setf -, elem_num, 3\nmov.ifz r2, 1\nmov.ifnz r2, 2");
    assert_eq!(*machine.accumulator(0, 0), elements(|index| index & 1));
    assert_eq!(*machine.accumulator(0, 1), elements(|index| index >> 1 & 1));
    assert_eq!(*machine.accumulator(0, 2), elements(|index| if index % 4 == 0 { 1 } else { 2 }));
    // Conditions use the flags from before the instruction. Flags change only in elements that meet the condition.
    let (machine, _) =
        run("ldi r0, 0\nldi r1, 0\nand.setf -, elem_num, 1\nmov.setf.ifz r0, 1\nmov.ifz r1, 1");
    assert_eq!(*machine.accumulator(0, 0), elements(|index| 1 - index % 2));
    assert_eq!(*machine.accumulator(0, 1), [0; 16]);
    // The mul ALU sets the flags if the add ALU has no operation.
    let (machine, _) = run("ldi r0, 5\nnop; v8subs.setf r1, r0, r0\nmov.ifz r2, 1");
    assert_eq!(*machine.accumulator(0, 2), [1; 16]);
}

#[test]
fn packing_and_unpacking() {
    let (machine, _) = run(
        "ldi ra0, 0x11223344\nldi r0, 0x55\nmov r1, ra0.8b\nmov ra0.8c, r0\nnop\nmov r2, ra0\nmov r3, ra0.16a",
    );
    assert_eq!([1, 2, 3].map(|number| machine.accumulator(0, number)[9]), [0x33, 0x1155_3344, 0x3344]);
    // A move is not a sum, so its result is not limited.
    let (machine, _) = run("ldi r0, 5\nmov ra0.32s, r0\nnop\nmov r1, ra0");
    assert_eq!(machine.accumulator(0, 1)[0], 5);
    // A sum that is limited to 32 bits.
    let (machine, _) = run("ldi r0, 0x7fffffff\nadd ra1.32s, r0, r0\nadd rb1, r0, r0");
    assert_eq!(
        (machine.register(0, false, 1)[0], machine.register(0, true, 1)[0]),
        (0x7fff_ffff, 0xffff_fffe)
    );
}

#[test]
fn constants_of_elements() {
    let (machine, _) =
        run("ldi r0, [0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3]\nldi r1, [-2,-1,0,1,0,0,0,0,0,0,0,0,0,0,0,1]");
    assert_eq!(*machine.accumulator(0, 0), elements(|index| index % 4));
    assert_eq!(machine.accumulator(0, 1)[..4], [-2i32 as u32, -1i32 as u32, 0, 1]);
}

/// Doubles the four bytes of each element in GF(2^8) with `v8adds` and `v8muld`, as `kernels/packed.rs` does.
#[test]
fn bytes_are_doubled_in_the_field_of_aes() {
    let words = [0x8040_2010, 0xff00_01fe, 0x1b36_7f80];
    for word in words {
        // 0xff in the bytes whose highest bit is set: the product of 0x80 and 0xfd is 0x7f, and 2 * 0x7f + 1 is 0xff.
        let source = "mov ra0, unif\nldi r1, 0x80808080\nldi r2, 0xfdfdfdfd\nand r0, r1, ra0; v8adds r3, ra0, ra0\n\
                      ldi rb1, 0x1b1b1b1b\nnop; v8muld r2, r0, r2\nnop; v8adds r0, r0, r2\nldi r2, 0x7f7f7f7f\n\
                      and r2, r2, ra0\nand r0, r0, rb1; v8adds r2, r2, r2\nxor r0, r0, r2";
        let (machine, _) = run_on(1, source, &[word]).unwrap();
        let double = |byte: u8| byte << 1 ^ if byte >= 0x80 { 0x1b } else { 0 };
        let expected = u32::from_le_bytes(word.to_le_bytes().map(double));
        assert_eq!(machine.accumulator(0, 0)[5], expected, "{word:#x}");
    }
}

#[test]
fn semaphores_and_interrupts() {
    // QPU 0 waits until the three other QPUs have incremented the semaphore.
    let source = "mov.setf -, qpu_num\nbrr.allz -, :first\nnop\nnop\nnop\nsrel -, 3\nbrr -, :end\nnop\nnop\nnop\n\
                  :first sacq -, 3\nsacq -, 3\nsacq -, 3\nmov irq, 1\n:end nop";
    let (_, run) = run_on(4, source, &[]).unwrap();
    assert_eq!(run.interrupts, 1);
    assert_eq!(
        run_on(3, source, &[]).err().map(|fault| (fault.qpu, fault.kind)),
        Some((0, FaultKind::Deadlock))
    );
    // Writing zero to `irq` causes no interrupt. The sixteenth increment of a semaphore waits for a decrement, which never comes.
    assert_eq!(run_on(1, "mov irq, 0", &[]).unwrap().1.interrupts, 0);
    assert_eq!(fault(&"srel -, 1\n".repeat(16)).kind, FaultKind::Deadlock);
    assert!(std::panic::catch_unwind(|| run_on(usize::from(QPUS) + 1, "nop", &[])).is_err());
}

#[test]
fn faults_state_where_and_why() {
    for (source, address, kind) in [
        (
            "mov ra0, r0\nmov r1, ra0",
            8,
            FaultKind::Hazard(Hazard::ReadAfterWrite { is_b: false, register: 0 }),
        ),
        ("nop\nmov r0, unif", 8, FaultKind::Memory(0)),
        (":loop brr -, :loop\nnop\nnop\nnop", 0, FaultKind::Budget(100_000)),
        ("brr -, 0x1000\nnop\nnop\nnop", 0x1020, FaultKind::OutsideProgram),
        ("bra -, 4\nnop\nnop\nnop", 4, FaultKind::OutsideProgram),
        ("mov r0, -", 0, FaultKind::NoInput),
        ("mov t0t, r0", 0, FaultKind::NotSimulated("a texture unit with coordinates")),
        ("mov t0s, 2", 0, FaultKind::Memory(2)),
        ("nop; ldtmu0", 0, FaultKind::NoRequest),
        ("mov vpm, r0", 0, FaultKind::NoSetup),
        ("mov -, vpm", 0, FaultKind::NoSetup),
        ("mov vw_addr, r0", 0, FaultKind::NoSetup),
        ("ldi vw_setup, 0x300", 0, FaultKind::Setup(0x300)),
        ("mov mutex, 0", 0, FaultKind::Mutex),
        ("mov -, mutex\nmov -, mutex", 8, FaultKind::Mutex),
        ("mov r0, vary", 0, FaultKind::NotSimulated("a register of shaders")),
        ("nop; thrsw", 0, FaultKind::NotSimulated("a signal of shaders and debuggers")),
        ("mov r0, unif.8a", 0, FaultKind::Memory(0)),
    ] {
        let fault = fault(source);
        assert_eq!((fault.qpu, fault.address, fault.kind), (0, address, kind), "{source}");
    }
    assert_eq!(run_on(1, "mov r0, elem_num.8a", &[]).err().map(|fault| fault.kind), Some(FaultKind::Pack(4)));
    let text = fault("mov ra0, r0\nmov r1, ra0").to_string();
    assert_eq!(
        text,
        "QPU 0 at 0x0008: the instruction has an undefined result: it reads ra0, which the instruction before it writes"
    );
    // The program has no end.
    let program = Program::new(&assemble("nop").unwrap().instructions);
    let mut machine = Machine::new(&program, &[0]);
    assert_eq!(machine.run(&mut [], 100).err().map(|fault| fault.address), Some(8));
}

/// The initial values of registers can be set, because on hardware a program finds the values that the previous program has left.
#[test]
fn registers_may_have_any_value_at_the_start() {
    let program =
        Program::new(&assemble("mov r0, ra7\nmov r1, rb31; thrend\nnop\nnop").unwrap().instructions);
    let mut machine = Machine::new(&program, &[0, 0]).with_registers(7);
    machine.run(&mut [], 100).unwrap();
    assert!((0..6).all(|number| *machine.accumulator(1, number) == [7; 16]));
}

/// Any sequence of instructions ends, either with a result or with a fault.
#[test]
fn any_program_ends() {
    let lines = [
        "nop",
        "mov r0, unif",
        "mov r1, elem_num; mov r2, 4",
        "shl r0, elem_num, 2; mov r3, r0",
        "add.setf r1, r1, -1",
        "mov t0s, r0",
        "mov t1s, r0",
        "nop; ldtmu0",
        "nop; ldtmu1",
        "mov r0, r4",
        "mov.ifn ra3, r1; mov rb5, r2",
        "add r2, ra3, rb5; v8adds r1, r1, r2",
        "mov r1, r0 << 5",
        "mov r5rep, r1",
        "ldi r3, 0x80000000",
        "mov unif_addr, r0",
        "ldi vr_setup, 0x83041000",
        "ldi vr_setup, 0x901",
        "ldi vr_addr, 64",
        "mov vr_addr, r3",
        "mov -, vr_wait",
        "ldi vw_setup, 0x82104000",
        "ldi vw_setup, 0xa00",
        "mov vw_setup, r1",
        "mov vpm, r1",
        "mov r1, vpm",
        "ldi vw_addr, 256",
        "mov -, vw_wait",
        "sacq -, 1",
        "srel -, 1",
        "mov -, mutex",
        "mov mutex, 0",
        "mov irq, 1",
        "recip r4, r1",
        "brr.anynz -, -72",
        "brr.allz ra4, 16",
        "brr.anyc -, 0x7ffffff0",
        "bra -, ra3",
        "nop; thrend",
    ];
    let lines: Vec<&str> = lines.into_iter().filter(|line| assemble(line).is_ok()).collect();
    assert!(lines.len() > 35, "{}", lines.len());
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize
    };
    let (mut ended, mut longest) = (0, 0);
    for _ in 0..5_000 {
        let mut source = String::new();
        for _ in 0..1 + next() % 24 {
            source += lines[next() % lines.len()];
            // Without hazards, programs run longer before a fault.
            source += if next() % 4 == 0 { "\n" } else { "\nnop\nnop\nnop\n" };
        }
        let program = assemble(&format!("{source}nop; thrend\nnop\nnop")).unwrap();
        let program = Program::new(&program.instructions);
        let mut memory: Vec<u8> = (0..1024u32).flat_map(|word| (4 * word).to_le_bytes()).collect();
        let qpus = vec![0; 1 + next() % 12];
        if let Ok(run) = Machine::new(&program, &qpus).run(&mut memory, 20_000) {
            ended += 1;
            longest = longest.max(run.instructions / qpus.len() as u64);
        }
    }
    assert!(ended > 100 && longest > 40, "{ended} programs ended, the longest after {longest} instructions");
}
