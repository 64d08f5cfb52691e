//! The rules of slopes are compared with runs for other numbers of iterations.

use std::rc::Rc;
use std::sync::Arc;

use iced_x86::{Code, Encoder, Instruction, InstructionInfoFactory, MemoryOperand, Register};

use super::linear::Slope;
use super::walk::{REGISTERS, Walk};
use crate::contracts;
use crate::image::Image;
use crate::machine::{Machine, Program};
use crate::random::Random;
use crate::semantics;
use crate::taint::Taint;
use crate::value::{Domain, Flag, Number};

/// The number of general registers that random programs use, from RAX on. RSP is left out.
const GENERAL: usize = 4;
/// Words of the stack that random programs use.
const WORDS: std::ops::Range<i64> = -10..-2;

/// A random instruction.
fn instruction(random: &mut Random) -> Instruction {
    use Code::*;
    const REGISTERS: [Code; 17] = [
        Mov_r64_rm64,
        Add_r64_rm64,
        Adc_r64_rm64,
        Sub_r64_rm64,
        Sbb_r64_rm64,
        Cmp_r64_rm64,
        Test_rm64_r64,
        And_r64_rm64,
        Or_r64_rm64,
        Xor_r64_rm64,
        Imul_r64_rm64,
        Cmovb_r64_rm64,
        Cmove_r64_rm64,
        Cmovl_r64_rm64,
        Cmova_r64_rm64,
        Cmovns_r64_rm64,
        Xchg_rm64_r64,
    ];
    const LOADS: [Code; 6] =
        [Mov_r64_rm64, Add_r64_rm64, Sub_r64_rm64, Cmp_r64_rm64, And_r64_rm64, Cmovle_r64_rm64];
    const STORES: [Code; 4] = [Mov_rm64_r64, Mov_rm64_r64, Add_rm64_r64, Cmp_rm64_r64];
    const CONSTANTS: [Code; 7] = [
        Add_rm64_imm8,
        Sub_rm64_imm8,
        Cmp_rm64_imm8,
        Adc_rm64_imm8,
        Sbb_rm64_imm8,
        Test_rm64_imm32,
        Or_rm64_imm8,
    ];
    const SHIFTS: [Code; 3] = [Shl_rm64_imm8, Shr_rm64_imm8, Sar_rm64_imm8];
    const MASKS: [Code; 2] = [And_rm64_imm32, Test_rm64_imm32];
    const SINGLE: [Code; 5] = [Inc_rm64, Dec_rm64, Neg_rm64, Not_rm64, Bswap_r64];
    const SETS: [Code; 6] = [Setb_rm8, Sete_rm8, Sets_rm8, Setle_rm8, Setbe_rm8, Setp_rm8];
    let mut below = |bound| random.below(bound);
    let (x, y) = (below(GENERAL) as u32, below(GENERAL) as u32);
    let [wide, other] = [x, y].map(|number| Register::RAX + number);
    let [half, other_half] = [x, y].map(|number| Register::EAX + number);
    let [byte, other_byte] = [x, y].map(|number| Register::AL + number);
    let place = 8 * (WORDS.start + below(8) as i64);
    let memory = MemoryOperand::with_base_displ(Register::RSP, place);
    let within = MemoryOperand::with_base_displ(Register::RSP, (place + below(4) as i64).min(-8));
    let scaled =
        MemoryOperand::new(wide, other, 1 << below(4), below(64) as i64 - 32, 1, false, Register::None);
    let (small, count, mask) = (below(64) as i32 - 32, 1 + below(6) as i32, -1i32 << below(8));
    let bytes = MemoryOperand::with_base_displ(Register::RSP, place + below(8) as i64);
    let instruction = match below(22) {
        0..5 => Instruction::with2(REGISTERS[below(REGISTERS.len())], wide, other),
        5..7 => Instruction::with2(LOADS[below(LOADS.len())], wide, memory),
        7..9 => Instruction::with2(STORES[below(STORES.len())], memory, wide),
        9..11 => Instruction::with2(CONSTANTS[below(CONSTANTS.len())], wide, small),
        11 => Instruction::with1(SINGLE[below(SINGLE.len())], wide),
        12 => Instruction::with2(SHIFTS[below(SHIFTS.len())], wide, count),
        13 => Instruction::with2(MASKS[below(MASKS.len())], wide, mask),
        14 => Instruction::with2(Lea_r64_m, wide, scaled),
        15 => Instruction::with2(Lea_r32_m, half, scaled),
        16 => Instruction::with1(SETS[below(SETS.len())], byte),
        17 => Instruction::with2([Mov_r32_rm32, Add_r32_rm32, Xor_r32_rm32][below(3)], half, other_half),
        18 if count > 3 => Instruction::with2(Movzx_r32_rm8, half, other_byte),
        18 => Instruction::with2(Mov_r32_rm32, half, within),
        // Stores of parts of words.
        19 => match below(5) {
            0 => Instruction::with2(Mov_rm8_r8, bytes, byte),
            1 => Instruction::with2(Mov_rm32_r32, bytes, half),
            2 => Instruction::with2(Mov_rm64_r64, bytes, wide),
            3 => Instruction::with1(SETS[below(SETS.len())], bytes),
            _ => Instruction::with2(Movups_xmmm128_xmm, bytes, Register::XMM0),
        },
        _ if count < 3 => Instruction::with2(Movq_xmm_rm64, Register::XMM0, memory),
        _ if count < 5 => Instruction::with2(Movups_xmm_xmmm128, Register::XMM0, memory),
        _ => Instruction::with2(Movups_xmmm128_xmm, memory, Register::XMM0),
    };
    instruction.expect("the operands have the kinds of the encoding")
}

/// A machine before the call of a function with this code.
fn machine(code: &[u8]) -> Machine<Taint> {
    let image = Arc::new(Image::of_function(0x1000, code));
    let mut machine = Machine::new(Rc::new(Program::new(image, semantics::all(), contracts::answer)));
    machine.clear_scratch();
    machine.start("f", &[]).expect("a function");
    machine
}

/// The places of the words that random programs use, and of RSP.
fn places(machine: &Machine<Taint>) -> Vec<u64> {
    let stack = Number::of::<Taint>(&machine.general[4]).value;
    let words = WORDS.map(|word| stack.wrapping_add_signed(8 * word));
    (0..=GENERAL as u64).map(|number| 8 * number).chain(words).collect()
}

/// Compares a walk through random instructions with runs for random numbers of iterations. Returns the number of bits with a known value
/// in words that have a slope at the end.
fn compare(random: &mut Random) -> usize {
    let program: Vec<Instruction> = (0..1 + random.below(10)).map(|_| instruction(random)).collect();
    let mut encoder = Encoder::new(64);
    for instruction in &program {
        encoder.encode(instruction, 0x1000).expect("an encoding");
    }
    let mut code = encoder.take_buffer();
    code.push(0xc3);
    let start = machine(&code);
    let most = [1, 3, 1000, 1 << 40][random.below(4)];
    let mut walk = Walk::new(start.clone(), Vec::new(), most);
    for place in places(&start).into_iter().filter(|place| *place != 8 * 4) {
        let factor = 1 << random.below(10);
        let mut slope = || (random.below(5) as i64 - 2) * factor;
        let slope = Slope { done: slope(), left: slope() };
        // Some words may wrap around.
        let large = [0, 0, 0, 0, 0, i64::MAX - 2048, i64::MIN + 2048, -1][random.below(8)];
        let value = if slope.done < 0 { 1 << 55 } else { large };
        let value = value.wrapping_add(random.below(4096) as i64 - 1024);
        walk.set_word(place, value.to_le_bytes().map(Taint::constant));
        walk.set_slope(place, slope);
    }
    let before = walk.clone();
    let mut info = InstructionInfoFactory::new();
    for _ in &program {
        if walk.step(&mut info).is_err() {
            return 0;
        }
    }
    for _ in 0..8 {
        let done = random.below(most as usize + 1) as i64;
        let left = random.below((most - done) as usize + 1) as i64;
        let grown = |walk: &Walk<Taint>, place| {
            let Slope { done: by_done, left: by_left } = walk.slope(place);
            let value = Number::of::<Taint>(&walk.word(place)).value as i64;
            value.wrapping_add(by_done.wrapping_mul(done)).wrapping_add(by_left.wrapping_mul(left))
        };
        let mut other = Walk::new(start.clone(), Vec::new(), most);
        for place in places(&start) {
            other.set_word(place, grown(&before, place).to_le_bytes().map(Taint::constant));
        }
        for _ in &program {
            let address = other.machine.next;
            other.machine.execute(address).expect("the walk has executed it");
        }
        // A word with a slope that is not aligned overlaps two of these places.
        let is_whole = |place: &u64| walk.sloped((*place, 8)).iter().all(|sloped| sloped == place);
        for place in places(&start).into_iter().chain([8 * 16, 8 * 17]).filter(is_whole) {
            let known = !Number::of::<Taint>(&walk.word(place)).secret;
            let [is, expected] = [grown(&walk, place) as u64, Number::of::<Taint>(&other.word(place)).value];
            assert_eq!(
                is & known,
                expected & known,
                "{place:#x} after {:?}, {done} and {left} of {most}, {:?} {:x?} -> {:?}",
                program.iter().map(crate::machine::text).collect::<Vec<_>>(),
                before.slope(place),
                Number::of::<Taint>(&before.word(place)),
                walk.slope(place)
            );
        }
        let flags = |machine: &Machine<Taint>| {
            let flags = machine.flags;
            [flags.carry, flags.zero, flags.sign, flags.overflow, flags.parity]
        };
        let is_known = |flag: &Flag| flag.defined && !flag.secret;
        for (flag, other) in
            flags(&walk.machine).iter().zip(flags(&other.machine)).filter(|(flag, _)| is_known(flag))
        {
            assert_eq!(
                flag.value,
                other.value,
                "after {:?}, {done} and {left} of {most}",
                program.iter().map(crate::machine::text).collect::<Vec<_>>()
            );
        }
    }
    walk.slopes.keys().filter(|place| **place > REGISTERS || **place < 8 * 16).count()
}

#[test]
fn slopes_and_unknown_bits_describe_all_numbers_of_iterations() {
    let mut random = Random(1);
    let sloped: usize = (0..5_000).map(|_| compare(&mut random)).sum();
    assert!(sloped > 5_000, "slopes are kept: {sloped}");
}
