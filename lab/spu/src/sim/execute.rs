//! The semantics of the instructions. A register is a 128-bit integer, and byte 0 is its most significant byte.

use super::decoded::{Decoded, spread};
use super::{ADDRESS_MASK, LOCAL_STORE};
use crate::isa::Op;

/// The effect of an instruction on the control flow or the memory.
pub(super) enum Next {
    Follow,
    /// A branch, with its target if it was taken.
    Branch {
        taken: Option<u32>,
    },
    Hint {
        branch: u32,
        target: u32,
    },
    /// A store to the quadword at this address. The caller performs it after a check that it does not overwrite code.
    Store {
        at: u32,
        value: u128,
    },
    Stop(u32),
}

type Registers = [u128; 256];

/// The preferred slot.
fn scalar(value: u128) -> u32 {
    (value >> 96) as u32
}

/// The words of a register, the least significant first. The order is irrelevant for operations that treat all words
/// alike.
fn words(value: u128) -> [u32; 4] {
    [value as u32, (value >> 32) as u32, (value >> 64) as u32, (value >> 96) as u32]
}

fn from_words(words: [u32; 4]) -> u128 {
    words.iter().rev().fold(0, |all, &word| all << 32 | u128::from(word))
}

fn each_word(a: u128, f: impl Fn(u32) -> u32) -> u128 {
    from_words(words(a).map(f))
}

fn two_words(a: u128, b: u128, f: impl Fn(u32, u32) -> u32) -> u128 {
    let (a, b) = (words(a), words(b));
    from_words(std::array::from_fn(|i| f(a[i], b[i])))
}

fn halves(word: u32, f: impl Fn(u16) -> u16) -> u32 {
    u32::from(f((word >> 16) as u16)) << 16 | u32::from(f(word as u16))
}

fn two_bytes(a: u128, b: u128, f: impl Fn(u8, u8) -> bool) -> u128 {
    let (a, b) = (a.to_ne_bytes(), b.to_ne_bytes());
    u128::from_ne_bytes(std::array::from_fn(|i| if f(a[i], b[i]) { 0xff } else { 0 }))
}

fn mask(condition: bool) -> u32 {
    if condition { u32::MAX } else { 0 }
}

fn shift_left_bytes(a: u128, bytes: u32) -> u128 {
    if bytes & 31 > 15 { 0 } else { a << (8 * (bytes & 31)) }
}

/// The top bit of each byte.
const TOPS: u128 = 0x8080_8080_8080_8080_8080_8080_8080_8080;

/// 0xff in each byte of `tops` whose top bit is set. The seven lower bits of each byte must be zero.
fn spread_tops(tops: u128) -> u128 {
    tops | (tops - (tops >> 7))
}

fn shufb(a: u128, b: u128, control: u128) -> u128 {
    let mut table = [0; 32];
    table[..16].copy_from_slice(&a.to_be_bytes());
    table[16..].copy_from_slice(&b.to_be_bytes());
    let out = u128::from_be_bytes(control.to_be_bytes().map(|pick| table[usize::from(pick & 31)]));
    let constant = control & TOPS;
    if constant == 0 {
        return out;
    }
    // The first three bits of a control byte select the constant: 100 and 101 give 00, 110 gives FF, and 111 gives 80.
    let nonzero = spread_tops(control << 1 & TOPS);
    let small = spread_tops(control << 2 & TOPS);
    let constants = nonzero & (!small | TOPS);
    let places = spread_tops(constant);
    out & !places | constants & places
}

fn load(memory: &[u8; LOCAL_STORE], address: u32) -> u128 {
    let at = (address & ADDRESS_MASK & !15) as usize;
    u128::from_be_bytes(memory[at..at + 16].try_into().expect("a quadword"))
}

fn store(address: u32, value: u128) -> Next {
    Next::Store { at: address & ADDRESS_MASK & !15, value }
}

#[inline(always)]
/// Executes one instruction. A single match covers all operations, because splitting it would only add a second
/// dispatch.
pub(super) fn step(inst: &Decoded, r: &mut Registers, memory: &[u8; LOCAL_STORE]) -> Next {
    let Decoded { imm, wide, .. } = *inst;
    let a = r[usize::from(inst.ra)];
    let b = r[usize::from(inst.rb)];
    let t = r[usize::from(inst.rt)];
    let c = r[usize::from(inst.rc)];
    let branch = |condition: bool, to: u32| Next::Branch { taken: condition.then_some(to) };
    let result = match inst.op {
        Op::A => two_words(a, b, u32::wrapping_add),
        Op::Ai => two_words(a, wide, u32::wrapping_add),
        Op::Sf => two_words(b, a, u32::wrapping_sub),
        Op::Sfi => two_words(wide, a, u32::wrapping_sub),
        Op::Addx => {
            let sum = two_words(a, b, u32::wrapping_add);
            two_words(sum, t, |sum, carry| sum.wrapping_add(carry & 1))
        }
        Op::Cg => two_words(a, b, |a, b| u32::from(a.overflowing_add(b).1)),
        Op::Ah => two_words(a, b, |a, b| {
            let high = (a >> 16).wrapping_add(b >> 16) << 16;
            high | a.wrapping_add(b) & 0xffff
        }),
        Op::And => a & b,
        Op::Andc => a & !b,
        Op::Andi | Op::Andbi => a & wide,
        Op::Or => a | b,
        Op::Ori | Op::Orbi => a | wide,
        Op::Xor => a ^ b,
        Op::Xorbi => a ^ wide,
        Op::Nor => !(a | b),
        Op::Selb => (c & b) | (!c & a),
        Op::Il | Op::Ilh | Op::Ilhu | Op::Ila | Op::Fsmbi => wide,
        Op::Iohl => t | wide,
        Op::Shli => each_word(a, |word| if imm & 0x20 != 0 { 0 } else { word << (imm & 31) }),
        Op::Roti => each_word(a, |word| word.rotate_left(imm & 31)),
        Op::Rotmi => {
            let count = imm.wrapping_neg() & 0x3f;
            each_word(a, |word| if count > 31 { 0 } else { word >> count })
        }
        Op::Rotmai => {
            let count = (imm.wrapping_neg() & 0x3f).min(31);
            each_word(a, |word| ((word as i32) >> count) as u32)
        }
        Op::Rothi => each_word(a, |word| halves(word, |half| half.rotate_left(imm & 15))),
        Op::Shlhi => {
            let count = imm & 0x1f;
            each_word(a, |word| halves(word, |half| if count > 15 { 0 } else { half << count }))
        }
        Op::Rothmi => {
            let count = imm.wrapping_neg() & 0x1f;
            each_word(a, |word| halves(word, |half| if count > 15 { 0 } else { half >> count }))
        }
        Op::Shlqbi => a << (scalar(b) & 7),
        Op::Shlqbii => a << (imm & 7),
        Op::Shlqby => shift_left_bytes(a, scalar(b)),
        Op::Shlqbyi => shift_left_bytes(a, imm),
        Op::Rotqby => a.rotate_left(8 * (scalar(b) & 15)),
        Op::Rotqbyi => a.rotate_left(8 * (imm & 15)),
        Op::Rotqbii => a.rotate_left(imm & 7),
        Op::Rotqmbyi => {
            let bytes = imm.wrapping_neg() & 31;
            if bytes > 15 { 0 } else { a >> (8 * bytes) }
        }
        Op::Rotqmbii => a >> (imm.wrapping_neg() & 7),
        Op::Shufb => shufb(a, b, c),
        Op::Gbb => {
            let bits = a.to_be_bytes().iter().fold(0u32, |bits, byte| bits << 1 | u32::from(byte & 1));
            u128::from(bits) << 96
        }
        Op::Fsmb => spread(scalar(a)),
        Op::Ceq => two_words(a, b, |a, b| mask(a == b)),
        Op::Ceqi => two_words(a, wide, |a, b| mask(a == b)),
        Op::Ceqb => two_bytes(a, b, |a, b| a == b),
        Op::Ceqbi => two_bytes(a, wide, |a, b| a == b),
        Op::Cgti => two_words(a, wide, |a, b| mask(a as i32 > b as i32)),
        Op::Clgtbi => two_bytes(a, wide, |a, b| a > b),
        Op::Cgtbi => two_bytes(a, wide, |a, b| a as i8 > b as i8),
        Op::Lqd => load(memory, scalar(a).wrapping_add(imm)),
        Op::Lqx => load(memory, scalar(a).wrapping_add(scalar(b))),
        Op::Lqa | Op::Lqr => load(memory, imm),
        Op::Stqd => return store(scalar(a).wrapping_add(imm), t),
        Op::Stqx => return store(scalar(a).wrapping_add(scalar(b)), t),
        Op::Stqa | Op::Stqr => return store(imm, t),
        Op::Br => return branch(true, imm),
        Op::Brnz => return branch(scalar(t) != 0, imm),
        Op::Brz => return branch(scalar(t) == 0, imm),
        Op::Bi => return branch(true, scalar(a) & ADDRESS_MASK & !3),
        Op::Biz => return branch(scalar(t) == 0, scalar(a) & ADDRESS_MASK & !3),
        Op::Binz => return branch(scalar(t) != 0, scalar(a) & ADDRESS_MASK & !3),
        Op::Hbr => return Next::Hint { branch: inst.hinted, target: scalar(a) & ADDRESS_MASK & !3 },
        Op::Hbra | Op::Hbrr => return Next::Hint { branch: inst.hinted, target: imm },
        Op::Nop | Op::Lnop => return Next::Follow,
        Op::Stop => return Next::Stop(imm),
    };
    r[usize::from(inst.rt)] = result;
    Next::Follow
}
