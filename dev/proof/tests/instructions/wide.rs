//! Instructions of AVX-512, which many processors lack: values from the operation sections of Intel's manual, and results of 512 bits
//! compared with those of 128 bits.

use iced_x86::{Code, Register};
use lockstep_proof::taint::Taint;
use lockstep_proof::value::Domain;

use crate::assemble::{assemble, encodings};
use crate::state::{Random, State, execute, machine, read};

const MEMORY: u64 = 0x2000;
/// The state after an instruction of registers: operand 0 is register 1, operand 1 register 4, operand 2 register 7.
fn after(code: Code, constant: u64, state: &State) -> State {
    try_after(code, constant, state).unwrap_or_else(|| panic!("{code:?} has no semantics"))
}

/// `None` if the table has no semantics of this form.
fn try_after(code: Code, constant: u64, state: &State) -> Option<State> {
    let (_, bytes) = assemble(code, false, constant)?;
    let mut machine = machine(&bytes, state, &State::ZERO);
    execute(&mut machine).ok()?;
    Some(read(&machine, MEMORY, Taint::value, |flag| flag.value))
}

fn quadword(bytes: &[u8; 64], index: usize) -> u64 {
    u64::from_le_bytes(bytes[8 * index..8 * index + 8].try_into().expect("8 bytes"))
}

fn state() -> State {
    Random(3).state(MEMORY)
}

#[test]
fn ternary_logic_takes_bits_from_the_table() {
    let state = state();
    for table in [0x96, 0xca, 0xd8, 0x7f, 0x00, 0xff, 0x1b] {
        let result = after(Code::EVEX_Vpternlogq_zmm_k1z_zmm_zmmm512b64_imm8, table, &state).vectors[1];
        for bit in 0..512 {
            let of = |register: usize| u64::from(state.vectors[register][bit / 8] >> (bit % 8) & 1);
            let index = 4 * of(1) + 2 * of(4) + of(7);
            assert_eq!(u64::from(result[bit / 8] >> (bit % 8) & 1), table >> index & 1, "table {table:#x}");
        }
    }
}

#[test]
fn lanes_move_as_the_constant_states() {
    let state = state();
    let (x, y) = (&state.vectors[4], &state.vectors[7]);
    let result = after(Code::EVEX_Vshufi64x2_zmm_k1z_zmm_zmmm512b64_imm8, 0b11_00_10_01, &state).vectors[1];
    let expected = [&x[16..32], &x[32..48], &y[..16], &y[48..]].concat();
    assert_eq!(result[..], expected[..]);
    let result = after(Code::EVEX_Valignq_zmm_k1z_zmm_zmmm512b64_imm8, 3, &state).vectors[1];
    assert_eq!(result[..], [&y[24..], &x[..24]].concat()[..]);
    let result = after(Code::EVEX_Vpermq_zmm_k1z_zmmm512b64_imm8, 0b00_01_10_11, &state).vectors[1];
    for (place, from) in [(0, 3), (1, 2), (2, 1), (3, 0), (4, 7), (5, 6), (6, 5), (7, 4)] {
        assert_eq!(quadword(&result, place), quadword(x, from));
    }
    let result = after(Code::EVEX_Vprold_zmm_k1z_zmmm512b32_imm8, 7, &state).vectors[1];
    for index in 0..16 {
        let word =
            |bytes: &[u8; 64]| u32::from_le_bytes(bytes[4 * index..][..4].try_into().expect("4 bytes"));
        assert_eq!(word(&result), word(x).rotate_left(7));
    }
    let result = after(Code::EVEX_Vinserti32x4_zmm_k1z_zmm_xmmm128_imm8, 2, &state).vectors[1];
    assert_eq!(result[..], [&x[..32], &y[..16], &x[48..]].concat()[..]);
    let result = after(Code::EVEX_Vinserti64x4_zmm_k1z_zmm_ymmm256_imm8, 1, &state).vectors[1];
    assert_eq!(result[..], [&x[..32], &y[..32]].concat()[..]);
    let result = after(Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8, 1, &state).vectors[1];
    assert_eq!(result[..], [&x[32..], &[0; 32]].concat()[..]);
    let result = after(Code::EVEX_Vextracti32x4_xmmm128_k1z_zmm_imm8, 3, &state).vectors[1];
    assert_eq!(result[..], [&x[48..], &[0; 48]].concat()[..]);
}

#[test]
fn indexes_select_lanes_of_two_registers() {
    let state = state();
    let word = |bytes: &[u8; 64], lane: usize| {
        u32::from_le_bytes(bytes[4 * lane..][..4].try_into().expect("4 bytes"))
    };
    // VPERMI2D overwrites the indexes, VPERMT2D the first table.
    for (code, indexes, low) in [
        (Code::EVEX_Vpermi2d_zmm_k1z_zmm_zmmm512b32, 1, 4),
        (Code::EVEX_Vpermt2d_zmm_k1z_zmm_zmmm512b32, 4, 1),
    ] {
        let result = after(code, 0, &state).vectors[1];
        for lane in 0..16 {
            let index = word(&state.vectors[indexes], lane) as usize % 32;
            let source = if index < 16 { low } else { 7 };
            assert_eq!(
                word(&result, lane),
                word(&state.vectors[source], index % 16),
                "{code:?}, lane {lane}"
            );
        }
    }
}

#[test]
fn indexes_select_quadwords_of_a_register() {
    let state = state();
    let result = after(Code::EVEX_Vpermq_zmm_k1z_zmm_zmmm512b64, 0, &state).vectors[1];
    for lane in 0..8 {
        let index = usize::from(state.vectors[4][8 * lane] % 8);
        assert_eq!(result[8 * lane..][..8], state.vectors[7][8 * index..][..8], "lane {lane}");
    }
}

#[test]
fn a_mask_selects_bytes_and_memory_outside_of_it_is_not_accessed() {
    let mut state = state();
    state.masks[3] = 0x0f0f_0000_0000_8001;
    let mut instruction = iced_x86::Instruction::default();
    instruction.set_code(Code::EVEX_Vmovdqu8_zmm_k1z_zmmm512);
    instruction.set_op0_register(Register::ZMM1);
    instruction.set_op_kind(1, iced_x86::OpKind::Memory);
    instruction.set_memory_base(Register::RDI);
    instruction.set_op_mask(Register::K3);
    for zeroing in [false, true] {
        instruction.set_zeroing_masking(zeroing);
        let mut encoder = iced_x86::Encoder::new(64);
        encoder.encode(&instruction, 0).expect("an instruction");
        let mut machine = machine(&encoder.take_buffer(), &state, &State::ZERO);
        execute(&mut machine).expect("an instruction of the table");
        let result = read(&machine, MEMORY, Taint::value, |flag| flag.value).vectors[1];
        for (byte, found) in result.iter().enumerate().take(64) {
            let kept = if zeroing { 0 } else { state.vectors[1][byte] };
            let expected = if state.masks[3] >> byte & 1 == 1 { state.memory[byte] } else { kept };
            assert_eq!(*found, expected, "byte {byte}");
        }
    }
    // The mask selects the first byte only, and the memory ends after this byte. The other bytes must not be accessed.
    state.masks[3] = 1;
    let mut encoder = iced_x86::Encoder::new(64);
    instruction.set_memory_displ_size(1);
    instruction.set_memory_displacement64(63);
    encoder.encode(&instruction, 0).expect("an instruction");
    let mut machine = machine(&encoder.take_buffer(), &state, &State::ZERO);
    execute(&mut machine).expect("bytes that the mask does not select are not accessed");
}

#[test]
fn comparisons_give_a_bit_for_each_lane() {
    let mut state = state();
    // Two lanes are equal, and one pair has no common bit.
    let first = state.vectors[4];
    state.vectors[7][..16].copy_from_slice(&first[..16]);
    state.vectors[7][16..24].copy_from_slice(&first[16..24]);
    state.vectors[7][16..24].iter_mut().for_each(|byte| *byte = !*byte);
    let mask_of = |holds: &dyn Fn(u64, u64) -> bool| {
        (0..8).fold(0, |mask, lane| {
            let (x, y) = (quadword(&state.vectors[4], lane), quadword(&state.vectors[7], lane));
            mask | u64::from(holds(x, y)) << lane
        })
    };
    let predicates: [&dyn Fn(u64, u64) -> bool; 8] = [
        &|x, y| x == y,
        &|x, y| x < y,
        &|x, y| x <= y,
        &|_, _| false,
        &|x, y| x != y,
        &|x, y| x >= y,
        &|x, y| x > y,
        &|_, _| true,
    ];
    for (predicate, holds) in predicates.iter().enumerate() {
        let result = after(Code::EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8, predicate as u64, &state);
        assert_eq!(result.masks[1], mask_of(holds), "predicate {predicate}");
    }
    let result = after(Code::EVEX_Vptestmq_kr_k1_zmm_zmmm512b64, 0, &state);
    assert_eq!(result.masks[1], mask_of(&|x, y| x & y != 0));
    let result = after(Code::EVEX_Vptestnmq_kr_k1_zmm_zmmm512b64, 0, &state);
    assert_eq!(result.masks[1], mask_of(&|x, y| x & y == 0));
    let result = after(Code::EVEX_Vpminuq_zmm_k1z_zmm_zmmm512b64, 0, &state);
    for lane in 0..8 {
        let smaller = quadword(&state.vectors[4], lane).min(quadword(&state.vectors[7], lane));
        assert_eq!(quadword(&result.vectors[1], lane), smaller);
    }
}

#[test]
fn masks_are_shifted_joined_and_tested() {
    let mut state = state();
    state.masks[2] = 0x0123_4567_89ab_cdef;
    state.masks[3] = 0xfedc_ba98_7654_3210;
    let join = after(Code::VEX_Kunpckbw_kr_kr_kr, 0, &state).masks[1];
    assert_eq!(join, 0xef10);
    assert_eq!(after(Code::VEX_Kunpckdq_kr_kr_kr, 0, &state).masks[1], 0x89ab_cdef_7654_3210);
    assert_eq!(after(Code::VEX_Kshiftrb_kr_kr_imm8, 3, &state).masks[1], 0xef >> 3);
    assert_eq!(after(Code::VEX_Kshiftlw_kr_kr_imm8, 5, &state).masks[1], 0xcdef << 5 & 0xffff);
    assert_eq!(after(Code::VEX_Kshiftrb_kr_kr_imm8, 8, &state).masks[1], 0);
    // CF, PF, ZF, SF and OF: only ZF and CF can be set.
    for (x, y, flags) in [(0, 0, 0x40), (0xff0f, 0x00f0, 0x01), (0x00ff, 0, 0)] {
        (state.masks[1], state.masks[2]) = (x, y);
        assert_eq!(after(Code::VEX_Kortestw_kr_kr, 0, &state).flags, flags, "{x:#x} and {y:#x}");
    }
}

/// Some instructions of 512 bits process each 16 bytes separately. For each 16 bytes, their result equals the result of their form of 128
/// bits.
#[test]
fn forms_of_512_bits_agree_with_forms_of_128_bits() {
    let mut compared = 0;
    for wide in encodings().filter(|code| format!("{code:?}").contains("_zmm_")) {
        let name = format!("{wide:?}");
        let narrow = name.replace("zmm", "xmm").replace("m512", "m128");
        let Some(narrow) = encodings().find(|code| format!("{code:?}") == narrow) else { continue };
        // These instructions move data between lanes of 16 bytes, or have a mask as their result, so they are not compared.
        if ["Valign", "Vshuf", "Vbroadcast", "Vpbroadcast", "Vpmovz", "Vpmovs", "Vperm", "_kr_"]
            .iter()
            .any(|part| name.contains(part))
        {
            continue;
        }
        let mut random = Random(compared);
        for _ in 0..4 {
            let (state, constant) = (random.state(MEMORY), random.next());
            let Some(all) = try_after(wide, constant, &state) else { continue };
            let all = all.vectors[1];
            for lane in 0..4 {
                let mut moved = state.clone();
                for (index, register) in moved.vectors.iter_mut().enumerate() {
                    // The last operand of a shift is not moved: the number of bits to shift by is in its low lane.
                    if !(is_shift(&name) && index == 7) {
                        register.copy_within(16 * lane..16 * lane + 16, 0);
                    }
                }
                let one = after(narrow, constant, &moved).vectors[1];
                assert_eq!(all[16 * lane..16 * lane + 16], one[..16], "{name}, lane {lane}");
                assert_eq!(one[16..], [0; 48], "{name} of 128 bits keeps upper bytes");
            }
            compared += 1;
        }
    }
    assert!(compared > 200, "only {compared} states were compared");
}

fn is_shift(name: &str) -> bool {
    ["Vpsll", "Vpsrl", "Vpsra"].iter().any(|part| name.contains(part)) && name.ends_with("xmmm128")
}
