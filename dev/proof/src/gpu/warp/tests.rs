//! Small programs in the form of the disassembler, with errors that a proof must find.

use super::*;
use crate::gpu::code;
use crate::gpu::expressions::Bit;
use crate::gpu::memory::{Access, Byte, known};
use crate::gpu::{Kernel, LIMITS};

/// Each lane exchanges a word of data with its neighbour through shared memory, and clears its place.
const EXCHANGE: &str = "
    S2R R0, SR_TID.X
    LDC.64 R2, c[0x0][0x210]
    LDC.64 R4, c[0x0][0x218]
    IMAD.WIDE.U32 R2, R0, 0x4, R2
    IMAD.WIDE.U32 R4, R0, 0x4, R4
    IMAD.SHL.U32 R6, R0, 0x4, RZ
    LOP3.LUT R7, R6, 0x4, RZ, 0x3c, !PT
    LDG.E R8, desc[UR4][R2.64]
    STS [R6+0x400], R8
    WARPSYNC.ALL
    LDS R9, [R7+0x400]
    NOP
    STS [R6+0x400], RZ
    STG.E desc[UR4][R4.64], R9
    EXIT";

/// Runs a program on words of data, whose owners are the lanes. Returns the error, or the expected output and the output.
fn run_program(text: &str) -> Result<[Vec<Byte>; 2], String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines = lines.enumerate().map(|(i, line)| format!("/*{:04x}*/ {line} ;\n", 16 * i));
    let text = format!("Function : test\n{}", lines.collect::<String>());
    let code = code::functions(&text)?.remove("test").expect("the function");
    let kernel = Kernel { code, shared: 1024 + 4 * LANES };
    let expressions = &mut Expressions::new();
    let word: [[Expr; 8]; 4] = std::array::from_fn(|_| expressions.input(true));
    let owned = |lane: usize| word.map(|byte| byte.map(|expr| Bit { expr, owner: lane as u32 + 1 }));
    let data: Vec<Byte> = (0..LANES).flat_map(owned).collect();
    let right = (0..LANES).flat_map(|lane| owned(lane ^ 1)).collect();
    let mut memory = Memory::default();
    let addresses = [
        memory.add("the input", Access::Read, data, 0),
        memory.add("the output", Access::Write, vec![known(0); 4 * LANES], 0),
    ];
    let parameters = addresses.map(u64::to_le_bytes);
    let launch = Launch::of_warp(parameters.as_flattened(), kernel.shared);
    Run::new(&kernel, LIMITS).warp(&kernel, &launch, &mut memory, expressions)?;
    memory.unwritten()?;
    Ok([right, memory.buffer("the output").bytes.clone()])
}

#[test]
fn a_right_program_has_no_error() {
    let [right, found] = run_program(EXCHANGE).expect("no error");
    assert!(right == found);
}

#[test]
fn a_wrong_program_has_an_error() {
    for (before, after, error) in [
        ("WARPSYNC.ALL", "BSYNC B0", "no barrier before a read of shared memory"),
        ("NOP", "BSYNC B0", "no barrier before a write of shared memory"),
        ("STS [R6+0x400], RZ", "", "shared memory holds a secret"),
        ("LDS R9, [R7+0x400]", "LDS R9, [R7+0x404]", "out of bounds: 4 bytes of shared memory"),
        ("LDS R9, [R7+0x400]", "LDS R9, [R7]", "out of bounds: 4 bytes of shared memory"),
        ("[R4.64], R9", "[R4.64+0x4], R9", "out of bounds: 4 bytes at"),
        ("[R2.64]", "[R2.64+-0x4]", "out of bounds: 4 bytes at"),
        ("[R4.64], R9", "[R4.64+0x2], R9", "not a multiple of 4"),
        ("[R4.64], R9", "[R2.64], R9", "a write to the input"),
        ("[R2.64]", "[R4.64]", "that are not written"),
        ("LDS R9, [R7+0x400]", "LDS R9, [R8+0x400]", "an address depends on a secret"),
        ("NOP", "NOP\n ISETP.EQ.AND P0, PT, R9, RZ, PT", "an operand depends on a secret"),
        ("NOP", "NOP\n SHF.L.U32 R9, R9, R8, RZ", "an operand depends on a secret"),
        ("STG.E", "ISETP.NE.AND P0, PT, R0, RZ, PT\n @P0 STG.E", "byte 0 of `the output` is not written"),
        (
            "WARPSYNC.ALL",
            "ISETP.EQ.AND P0, PT, R0, RZ, PT\n @P0 BRA 0xc0\n WARPSYNC.ALL",
            "some lanes are at a barrier and others are not",
        ),
        ("NOP", "FADD R9, R9, R9", "an instruction that the table does not have"),
        ("NOP", "@P1 EXIT", "a predicate that has not been written"),
        ("EXIT", "BRA 0xe0", "more than"),
    ] {
        let found = run_program(&EXCHANGE.replacen(before, after, 1)).err().unwrap_or("no error".into());
        assert!(found.contains(error), "{before} -> {after}: {found}");
    }
}
