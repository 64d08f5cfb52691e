//! Tests of the assembler, and of the text of instructions.

use lockstep_qpu::asm::assemble;
use lockstep_qpu::isa::{AddOp, Alu, Condition, Instruction, MulOp, Mux, Signal, registers};

fn one(text: &str) -> Instruction {
    let program = assemble(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(program.instructions.len(), 1, "{text}");
    program.instructions[0]
}

fn alu(text: &str) -> Alu {
    match one(text) {
        Instruction::Alu(alu) => alu,
        other => panic!("{text}: {other}"),
    }
}

/// Text that, after it has been assembled, is shown exactly as it was written.
const CANONICAL: [&str; 33] = [
    "nop",
    "nop;  thrend",
    "nop;  ldtmu0",
    "add r0, r1, r2",
    "add.setf ra3, ra7.8a, r1",
    "sub.ifz r0, r0, 1",
    "sub.setf.ifnn -, ra1, rb2",
    "mov r0, unif;  mov rb5, r1;  ldtmu1",
    "xor r0, r2, r3;  mov.ifnz ra9.8b, r1 >> 3",
    "nop;  mov r0, r1 << 5",
    "nop;  mov r0, r1 << r5",
    "nop;  v8muld r3, r1, ra2",
    "nop;  mul24.setf.ifc ra4, r0, r1",
    "and r0, ra1.16b, rb3;  v8adds rb2, ra1.16b, rb3",
    "shl.setf -, elem_num, -1",
    "not ra2.8d, r0",
    "mov t0s, r1",
    "mov vpm, ra2.8c",
    "xor vpm, vpm, r1",
    "mov vr_setup, ra1",
    "mov vw_addr, unif",
    "mov -, vw_wait",
    "mov r5quad, r1",
    "mov r0, r4.8a",
    "nop;  fmul r0.8abcds, r1, r2",
    "ldi ra3, 0x12345678",
    "ldi.setf.ifz ra3.16a, -5",
    "ldi ra3.ifz, rb7.ifnn, -5",
    "ldipes r0, [-2,-1,0,1,0,0,0,0,0,0,0,0,0,0,0,1]",
    "ldipeu r0, [3,2,1,0,0,0,0,0,0,0,0,0,0,0,0,3]",
    "sacq -, 15",
    "srel ra0, 3",
    "bra.anynz ra2, ra1, 0x20",
];

#[test]
fn text_is_shown_as_it_is_written() {
    for text in CANONICAL {
        assert_eq!(one(text).to_string(), text);
        assert_eq!(Instruction::decode(one(text).encode()), Ok(one(text)), "{text}");
    }
}

#[test]
fn operations_take_the_alu_that_is_left() {
    let both = alu("mov r0, ra1; mov r1, rb2");
    assert_eq!((both.add, both.mul), (AddOp::Or, MulOp::V8min));
    assert_eq!((both.add_inputs, both.mul_inputs), ([Mux::A; 2], [Mux::B; 2]));
    let swapped = alu("v8adds r1, r2, r3; av8adds r0, r1, r2");
    assert_eq!((swapped.add, swapped.mul), (AddOp::V8adds, MulOp::V8adds));
    // The operation of the mul ALU may come first. If the add ALU has no operation, the mul ALU sets the flags.
    let turned = alu("mul24 r0, r1, r2; add r1, r2, 7");
    assert_eq!((turned.add, turned.mul, turned.signal), (AddOp::Add, MulOp::Mul24, Signal::SmallImmediate));
    assert!(alu("nop; mov.setf r0, r1").to.sets_flags);
}

#[test]
fn registers_of_either_file_go_where_there_is_room() {
    let first = alu("add r0, unif, ra3");
    assert_eq!((first.read_a, first.read_b), (3, registers::UNIFORM));
    let second = alu("add r0, unif, rb3");
    assert_eq!((second.read_a, second.read_b), (registers::UNIFORM, 3));
    // One read provides both inputs.
    let both = alu("add r0, unif, unif");
    assert_eq!((both.read_a, both.read_b), (registers::UNIFORM, registers::NOP));
    // The ALUs write their outputs to different files.
    assert!(!alu("add ra0, r0, r1; v8min rb0, r1, r2").to.is_swapped);
    assert!(alu("add rb0, r0, r1; v8min ra0, r1, r2").to.is_swapped);
    assert!(alu("add r2, r0, r1; v8min ra0, r1, r2").to.is_swapped);
}

#[test]
fn unused_results_and_flags() {
    assert_eq!(alu("add -, r0, r1").to.add_condition, Condition::Never);
    assert_eq!(alu("add.setf -, r0, r1").to.add_condition, Condition::Always);
    assert_eq!(alu("add r2.ifn, r0, r1"), alu("add.ifn r2, r0, r1"));
}

#[test]
fn labels_and_comments() {
    let program = assemble(
        "# a loop\n:start mov r0, 3\nagain: sub.setf r0, r0, 1 # one less\nbrr.anynz -, :again\nnop\nnop\nnop\n\nbra -, start\n\
         brr ra1, r:start\n",
    )
    .unwrap();
    assert_eq!(program.lines, [2, 3, 4, 5, 6, 7, 9, 10]);
    let branches: Vec<i32> =
        (program.instructions.iter())
            .filter_map(|instruction| {
                if let Instruction::Branch(branch) = instruction { Some(branch.offset) } else { None }
            })
            .collect();
    // Distances count from 32 bytes after the branch. The first branch is at 16 and its target is at 8, so the distance is -40. The second
    // target is absolute. The third branch is at 56 and its target is at 0, so the distance is -88.
    assert_eq!(branches, [-40, 0, -88]);
    assert_eq!(program.instructions[2].show(16), "brr.anynz -, 0x8");
}

#[test]
fn constants() {
    for (text, expected) in [
        ("mov r0, 0x12345", "ldi r0, 0x12345"),
        ("mov r0, -17", "ldi r0, -17"),
        ("mov r0, 15", "mov r0, 15"),
        ("mov r0, [0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3]", "ldipeu r0, [0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3]"),
        ("ldi r0, 1.5", "ldi r0, 0x3fc00000"),
        ("mov r0, 0.5", "mov r0, 0x3f000000"),
        ("mov vw_setup, vpm_setup(1, 1, h32(0))", "ldi vw_setup, 0x101a00"),
        ("mov vw_setup, vpm_setup(4, -1, v16p(16, 3, 1))", "ldi vw_setup, 0x43f127"),
        ("ldi vr_setup, vdr_setup_0(0, 16, 4, vdr_h32(2, 1, 0))", "ldi vr_setup, 0x80042010"),
        ("mov vw_setup, vdw_setup_0(4, 16, dma_h32(8,0))", "ldi vw_setup, 0x82104400"),
        ("mov ra1, vdw_setup_1(0)", "ldi ra1, 0xc0000000"),
    ] {
        assert_eq!(one(text).to_string(), expected);
    }
    // The code of a rotation is also a small immediate value, which the other operation may use (vc4asm's addendum).
    let both = alu("shl.setf -, elem_num, -2; mov r0, r0 << 2");
    assert_eq!((both.read_b, both.add_inputs[1]), (62, Mux::B));
}

#[test]
fn the_inclusion_of_the_functions_is_ignored() {
    let program = assemble(".include \"../share/vc4inc/vc4.qinc\"\nmov r0, 1\n").unwrap();
    assert_eq!((program.instructions.len(), &program.lines[..]), (1, &[2][..]));
}

#[test]
fn mistakes_have_a_line_and_a_reason() {
    for (source, expected) in [
        ("nop\nfrob r0, r1", "line 2: unknown instruction `frob`"),
        ("add r0, r1", "line 1: `add` has 3 operands, not 2"),
        ("add r0, rx7, r1", "line 1: unknown register `rx7` to read"),
        ("add ra64, r0, r1", "line 1: unknown register `ra64` to write to"),
        ("add r0, ra1, ra2", "line 1: the instruction reads two registers of file A"),
        ("add r0, rb1, 3", "line 1: a constant or a rotation takes the place of file B"),
        ("add r0, 1, 2", "line 1: the instruction has two constants or rotations"),
        ("add r0, r1, 16", "line 1: 0x10 is no small constant: use ldi"),
        ("add r0, r1, 3; ldtmu0", "line 1: a constant or a rotation takes the place of the signal"),
        ("nop; ldtmu0; thrend", "line 1: an instruction has one signal"),
        ("add ra0, r0, r1; v8min ra1, r1, r2", "line 1: both operations write to the same register file"),
        ("add r0, r0, r1; sub r1, r1, r2", "line 1: no ALU is left for `sub`"),
        ("add r0.8a, r0, r1", "line 1: the add ALU packs only what it writes to file A"),
        ("add r0, rb1.8a, r1", "line 1: only registers of file A and r4 are unpacked"),
        ("add r0, ra1.8a, r4.8b", "line 1: the modes of packing and unpacking do not fit"),
        ("add.ifx r0, r0, r1", "line 1: unknown suffix `.ifx`"),
        ("mov r0, r1 << 16", "line 1: `16` is no rotation"),
        ("nop; v8min r0, r1 >> 3, r2", "line 1: a rotation is that of the result"),
        ("brr -, :nowhere", "line 1: unknown label `nowhere`"),
        ("bra -, rb3", "line 1: `rb3` is no target: expected a register from ra0 to ra31"),
        ("brr -", "line 1: `brr` has no target"),
        ("brr -, 8; nop", "line 1: `brr` is an instruction of its own"),
        (":a\n:a nop", "line 2: the label `a` is defined twice"),
        (":\nnop", "line 1: `` is no name of a label"),
        (".include \"a\"", "line 1: the directive `.include` is not supported"),
        ("nop; .set a, 1", "line 1: the directive `.set` is not supported"),
        (":1a nop", "line 1: `1a` is no name of a label"),
        ("sacq -, 16", "line 1: `16` is no semaphore: expected 0 to 15"),
        ("ldi r0, [1,2]", "line 1: a list has 16 numbers, not 2"),
        ("ldipes r0, [2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]", "line 1: 2 is out of range, expected -2 to 1"),
        ("ldi r0, ra1", "line 1: `ra1` is no number"),
        ("add.setf r0, r0, r1; mov.setf r1, r2", "line 1: the flags are those of the add ALU"),
        ("ldi.ifz ra1, rb1, 1", "line 1: write the condition after each of the registers"),
        ("ldi", "line 1: `ldi` has no operands"),
        ("; ;", "line 1: an instruction is missing"),
        ("mov ra0, vpm_setup(1, 1)", "line 1: `vpm_setup` has 3 parameters, not 2"),
        ("mov ra0, vpm_setup(1, 1, h32(0)", "line 1: `h32(0` is no call: a `)` is missing"),
        (
            "mov ra0, vpm_setup(17, 1, h32(0))",
            "line 1: `vpm_setup`: 17 is out of range, expected a number from 0 to 16",
        ),
        (
            "mov ra0, vpm_setup(1, 1.5, h32(0))",
            "line 1: `vpm_setup`: 1.5 is out of range, expected a number from -64 to 64",
        ),
        (
            "mov ra0, vpm_setup(dma_h32(0, 0), 1, 0)",
            "line 1: `vpm_setup`: dma_h32(0, 0) is out of range, expected a number from 0 to 16",
        ),
        ("mov ra0, v32(8, 0)", "line 1: `v32`: 8 is out of range, expected a multiple of 16 from 0 to 48"),
        ("mov ra0, vpm_setup(1, 1, ra1)", "line 1: `vpm_setup`: `ra1` is no number"),
        ("mov ra0, h32(h32(h32(0)))", "line 1: `h32`: `h32(0)` is no number"),
        ("mov ra0, frob(1)", "line 1: unknown function `frob`: there are vpm_setup, h32,"),
        (".include \"vc4.inc\"", "line 1: the directive `.include` is not supported"),
    ] {
        let error = assemble(source).expect_err(source).to_string();
        assert!(error.starts_with(expected), "{source}: {error}");
    }
}

#[test]
fn any_text_is_a_program_or_a_mistake() {
    let pieces = [
        "add", "mov", "r0", "ra1", ".", "8a", ",", " ", "<<", ";", "[", "]", ":", "-", "0x", "brr", "ldi",
        "\u{e9}", "\n", "9",
    ];
    let mut state = 7u32;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..12 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text += pieces[(state >> 16) as usize % pieces.len()];
        }
        let _ = assemble(&text);
    }
}

/// The assembler generates the same words as vc4asm from the same text. The test needs the path of vc4asm in `LOCKSTEP_VC4ASM` (`make
/// qpu-vc4asm`).
#[test]
fn words_are_those_of_vc4asm() {
    let Some(program) = std::env::var_os("LOCKSTEP_VC4ASM") else {
        eprintln!("NOT TESTED: LOCKSTEP_VC4ASM is not set");
        return;
    };
    let folder = std::env::temp_dir().join(format!("lockstep-vc4asm-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, output) = (folder.join("text.qasm"), folder.join("words.bin"));
    for text in CANONICAL.iter().chain(&OF_VC4ASM) {
        // The instructions `nop` fill the delay slots after an instruction that branches or ends the program.
        std::fs::write(&source, format!("{text}\nnop\nnop\nnop\n")).unwrap();
        let ended =
            std::process::Command::new(&program).arg("-o").arg(&output).arg(&source).output().unwrap();
        assert!(ended.status.success(), "{text}: {}", String::from_utf8_lossy(&ended.stderr));
        let words = std::fs::read(&output).unwrap();
        let word = u64::from_le_bytes(words[..8].try_into().unwrap());
        let shown = Instruction::decode(word)
            .map_or_else(|error| error.to_string(), |instruction| instruction.to_string());
        assert_eq!(word, assemble(text).unwrap().words()[0], "{text}: vc4asm's word is {shown}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Further instructions for the comparison with vc4asm.
const OF_VC4ASM: [&str; 12] = [
    "mov ra0, unif; mov rb0, unif",
    "add ra1, ra2, rb3; v8adds rb4, r0, r1; ldtmu0",
    "fmin r0, r1, r2; fmul r3, r1, r2; sbwait",
    "asr.ifc ra5, ra6, 7",
    "ror r0, r0, -8",
    "clz r1, r2",
    "ftoi r0, 2.0",
    "itof r0, qpu_num",
    "max rb1, elem_num, r5",
    "av8subs r0, r1, ra4.8dr",
    "mov tmurs, r1",
    "mov irq, r0",
];
