//! The semantics of the instructions. A register is a 128-bit integer, and byte 0 is its most significant byte.

use super::decoded::{Decoded, form_mask};
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
    /// Reads a channel, or its count, into a register.
    Read,
    /// Writes a value to a channel.
    Write {
        channel: u32,
        value: u32,
    },
    Stop(u32),
}

type Registers = [u128; 256];

/// Returns the word in the preferred slot of a register.
fn scalar(value: u128) -> u32 {
    (value >> 96) as u32
}

/// Returns the words of a register, the least significant first. The order is irrelevant for operations that treat all words alike.
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

fn two_halves(a: u128, b: u128, f: impl Fn(u16, u16) -> u16) -> u128 {
    let both = |a: u32, b: u32| {
        u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16 | u32::from(f(a as u16, b as u16))
    };
    two_words(a, b, both)
}

fn two_bytes(a: u128, b: u128, f: impl Fn(u8, u8) -> u8) -> u128 {
    let (a, b) = (a.to_ne_bytes(), b.to_ne_bytes());
    u128::from_ne_bytes(std::array::from_fn(|i| f(a[i], b[i])))
}

/// Compares the words of two registers. All bits of an element are set if the condition holds, as in the results of
/// comparisons.
fn compare_words(a: u128, b: u128, f: impl Fn(u32, u32) -> bool) -> u128 {
    two_words(a, b, |a, b| if f(a, b) { u32::MAX } else { 0 })
}

fn compare_halves(a: u128, b: u128, f: impl Fn(u16, u16) -> bool) -> u128 {
    two_halves(a, b, |a, b| if f(a, b) { u16::MAX } else { 0 })
}

fn compare_bytes(a: u128, b: u128, f: impl Fn(u8, u8) -> bool) -> u128 {
    two_bytes(a, b, |a, b| if f(a, b) { u8::MAX } else { 0 })
}

/// Returns the sum of two words and a carry, in 33 bits.
fn sum(a: u32, b: u32, carry: u32) -> u64 {
    u64::from(a) + u64::from(b) + u64::from(carry & 1)
}

/// Applies a function to the words of three registers, element by element.
fn three_words(a: u128, b: u128, c: u128, f: impl Fn(u32, u32, u32) -> u32) -> u128 {
    let (a, b, c) = (words(a), words(b), words(c));
    from_words(std::array::from_fn(|i| f(a[i], b[i], c[i])))
}

/// The product of the low halves of two words, signed.
fn low_product(a: u32, b: u32) -> u32 {
    (i32::from(a as i16) * i32::from(b as i16)) as u32
}

/// The product of the low halves of two words, unsigned.
fn low_product_unsigned(a: u32, b: u32) -> u32 {
    (a & 0xffff) * (b & 0xffff)
}

fn shift_left_word(word: u32, count: u32) -> u32 {
    if count & 63 > 31 { 0 } else { word << (count & 31) }
}

/// Shifts a word to the right by the negated count.
fn shift_right_word(word: u32, count: u32) -> u32 {
    let count = count.wrapping_neg() & 63;
    if count > 31 { 0 } else { word >> count }
}

fn shift_right_word_signed(word: u32, count: u32) -> u32 {
    ((word as i32) >> (count.wrapping_neg() & 63).min(31)) as u32
}

fn shift_left_half(half: u16, count: u16) -> u16 {
    if count & 31 > 15 { 0 } else { half << (count & 15) }
}

fn shift_right_half(half: u16, count: u16) -> u16 {
    let count = count.wrapping_neg() & 31;
    if count > 15 { 0 } else { half >> count }
}

fn shift_right_half_signed(half: u16, count: u16) -> u16 {
    ((half as i16) >> (count.wrapping_neg() & 31).min(15)) as u16
}

fn shift_left_bytes(a: u128, bytes: u32) -> u128 {
    if bytes & 31 > 15 { 0 } else { a << (8 * (bytes & 31)) }
}

/// Shifts a register to the right by the negated number of bytes.
fn shift_right_bytes(a: u128, bytes: u32) -> u128 {
    let bytes = bytes.wrapping_neg() & 31;
    if bytes > 15 { 0 } else { a >> (8 * bytes) }
}

/// Gathers the lowest bit of each element of `size` bits in the preferred slot.
fn gather(a: u128, size: u32) -> u128 {
    (0..128 / size).rev().fold(0, |all, i| all << 1 | a >> (i * size) & 1) << 96
}

/// Returns the control word with which `shufb` inserts an element of `size` bytes at an address.
fn insertion(address: u32, size: u8) -> u128 {
    let at = address as u8 & 15 & !(size - 1);
    // Bytes, halfwords and words are at the end of the preferred slot.
    let element = if size == 8 { 0 } else { 4 - size };
    u128::from_be_bytes(std::array::from_fn(|i| match (i as u8).checked_sub(at) {
        Some(byte) if byte < size => element + byte,
        _ => 0x10 + i as u8,
    }))
}

/// The top bit of each byte.
const TOPS: u128 = 0x8080_8080_8080_8080_8080_8080_8080_8080;

/// Returns 0xff in each byte of `tops` whose top bit is set. The seven lower bits of each byte must be zero.
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
    let indirect = scalar(a) & ADDRESS_MASK & !3;
    let branch = |condition: bool, to: u32| Next::Branch { taken: condition.then_some(to) };
    let result = match inst.op {
        Op::A => two_words(a, b, u32::wrapping_add),
        Op::Ai => two_words(a, wide, u32::wrapping_add),
        Op::Ah => two_halves(a, b, u16::wrapping_add),
        Op::Ahi => two_halves(a, wide, u16::wrapping_add),
        Op::Sf => two_words(b, a, u32::wrapping_sub),
        Op::Sfi => two_words(wide, a, u32::wrapping_sub),
        Op::Sfh => two_halves(b, a, u16::wrapping_sub),
        Op::Sfhi => two_halves(wide, a, u16::wrapping_sub),
        Op::Addx => three_words(a, b, t, |a, b, t| sum(a, b, t) as u32),
        Op::Cg => two_words(a, b, |a, b| (sum(a, b, 0) >> 32) as u32),
        Op::Cgx => three_words(a, b, t, |a, b, t| (sum(a, b, t) >> 32) as u32),
        Op::Sfx => three_words(!a, b, t, |a, b, t| sum(a, b, t) as u32),
        Op::Bg => two_words(!a, b, |a, b| (sum(a, b, 1) >> 32) as u32),
        Op::Bgx => three_words(!a, b, t, |a, b, t| (sum(a, b, t) >> 32) as u32),
        Op::Clz => each_word(a, u32::leading_zeros),
        Op::Xsbh => two_halves(a, 0, |half, _| i16::from(half as i8) as u16),
        Op::Xshw => each_word(a, |word| i32::from(word as i16) as u32),
        Op::Xswd => {
            let double = |value: u128| u128::from(i64::from(value as i32) as u64);
            double(a >> 64) << 64 | double(a)
        }
        Op::And => a & b,
        Op::Andc => a & !b,
        Op::Andi | Op::Andhi | Op::Andbi => a & wide,
        Op::Nand => !(a & b),
        Op::Or => a | b,
        Op::Orc => a | !b,
        Op::Ori | Op::Orhi | Op::Orbi => a | wide,
        Op::Nor => !(a | b),
        Op::Xor => a ^ b,
        Op::Xori | Op::Xorhi | Op::Xorbi => a ^ wide,
        Op::Eqv => !(a ^ b),
        Op::Selb => (c & b) | (!c & a),
        Op::Il | Op::Ilh | Op::Ilhu | Op::Ila | Op::Fsmbi => wide,
        Op::Iohl => t | wide,
        Op::Shl => two_words(a, b, shift_left_word),
        Op::Shli => each_word(a, |word| shift_left_word(word, imm)),
        Op::Rot => two_words(a, b, |word, count| word.rotate_left(count & 31)),
        Op::Roti => each_word(a, |word| word.rotate_left(imm & 31)),
        Op::Rotm => two_words(a, b, shift_right_word),
        Op::Rotmi => each_word(a, |word| shift_right_word(word, imm)),
        Op::Rotma => two_words(a, b, shift_right_word_signed),
        Op::Rotmai => each_word(a, |word| shift_right_word_signed(word, imm)),
        Op::Shlh => two_halves(a, b, shift_left_half),
        Op::Shlhi => two_halves(a, wide, shift_left_half),
        Op::Roth => two_halves(a, b, |half, count| half.rotate_left(u32::from(count & 15))),
        Op::Rothi => two_halves(a, wide, |half, count| half.rotate_left(u32::from(count & 15))),
        Op::Rothm => two_halves(a, b, shift_right_half),
        Op::Rothmi => two_halves(a, wide, shift_right_half),
        Op::Rotmah => two_halves(a, b, shift_right_half_signed),
        Op::Rotmahi => two_halves(a, wide, shift_right_half_signed),
        Op::Cntb => two_bytes(a, 0, |byte, _| byte.count_ones() as u8),
        Op::Avgb => two_bytes(a, b, |a, b| (u16::from(a) + u16::from(b)).div_ceil(2) as u8),
        Op::Absdb => two_bytes(a, b, u8::abs_diff),
        Op::Sumb => two_words(a, b, |a, b| {
            let total = |word: u32| word.to_be_bytes().map(u32::from).iter().sum::<u32>();
            total(b) << 16 | total(a)
        }),
        Op::Mpy => two_words(a, b, low_product),
        Op::Mpyi => two_words(a, wide, low_product),
        Op::Mpyu => two_words(a, b, low_product_unsigned),
        Op::Mpyui => two_words(a, wide, low_product_unsigned),
        Op::Mpya => three_words(a, b, c, |a, b, c| low_product(a, b).wrapping_add(c)),
        Op::Mpyh => two_words(a, b, |a, b| low_product_unsigned(a >> 16, b) << 16),
        Op::Mpys => two_words(a, b, |a, b| ((low_product(a, b) as i32) >> 16) as u32),
        Op::Mpyhh => two_words(a, b, |a, b| low_product(a >> 16, b >> 16)),
        Op::Mpyhhu => two_words(a, b, |a, b| low_product_unsigned(a >> 16, b >> 16)),
        Op::Mpyhha => three_words(a, b, t, |a, b, t| low_product(a >> 16, b >> 16).wrapping_add(t)),
        Op::Mpyhhau => three_words(a, b, t, |a, b, t| low_product_unsigned(a >> 16, b >> 16).wrapping_add(t)),
        Op::Shlqbi => a << (scalar(b) & 7),
        Op::Shlqbii => a << (imm & 7),
        Op::Shlqby => shift_left_bytes(a, scalar(b)),
        Op::Shlqbyi => shift_left_bytes(a, imm),
        Op::Shlqbybi => shift_left_bytes(a, scalar(b) >> 3),
        Op::Rotqby => a.rotate_left(8 * (scalar(b) & 15)),
        Op::Rotqbyi => a.rotate_left(8 * (imm & 15)),
        Op::Rotqbybi => a.rotate_left(8 * (scalar(b) >> 3 & 15)),
        Op::Rotqbi => a.rotate_left(scalar(b) & 7),
        Op::Rotqbii => a.rotate_left(imm & 7),
        Op::Rotqmby => shift_right_bytes(a, scalar(b)),
        Op::Rotqmbyi => shift_right_bytes(a, imm),
        Op::Rotqmbybi => shift_right_bytes(a, scalar(b) >> 3),
        Op::Rotqmbi => a >> (scalar(b).wrapping_neg() & 7),
        Op::Rotqmbii => a >> (imm.wrapping_neg() & 7),
        Op::Orx => u128::from(words(a).iter().fold(0, |all, word| all | word)) << 96,
        Op::Gb => gather(a, 32),
        Op::Gbh => gather(a, 16),
        Op::Gbb => gather(a, 8),
        Op::Fsm => form_mask(scalar(a), 32),
        Op::Fsmh => form_mask(scalar(a), 16),
        Op::Fsmb => form_mask(scalar(a), 8),
        Op::Cbd => insertion(scalar(a).wrapping_add(imm), 1),
        Op::Chd => insertion(scalar(a).wrapping_add(imm), 2),
        Op::Cwd => insertion(scalar(a).wrapping_add(imm), 4),
        Op::Cdd => insertion(scalar(a).wrapping_add(imm), 8),
        Op::Cbx => insertion(scalar(a).wrapping_add(scalar(b)), 1),
        Op::Chx => insertion(scalar(a).wrapping_add(scalar(b)), 2),
        Op::Cwx => insertion(scalar(a).wrapping_add(scalar(b)), 4),
        Op::Cdx => insertion(scalar(a).wrapping_add(scalar(b)), 8),
        Op::Shufb => shufb(a, b, c),
        Op::Ceq => compare_words(a, b, |a, b| a == b),
        Op::Ceqi => compare_words(a, wide, |a, b| a == b),
        Op::Ceqh => compare_halves(a, b, |a, b| a == b),
        Op::Ceqhi => compare_halves(a, wide, |a, b| a == b),
        Op::Ceqb => compare_bytes(a, b, |a, b| a == b),
        Op::Ceqbi => compare_bytes(a, wide, |a, b| a == b),
        Op::Cgt => compare_words(a, b, |a, b| a as i32 > b as i32),
        Op::Cgti => compare_words(a, wide, |a, b| a as i32 > b as i32),
        Op::Cgth => compare_halves(a, b, |a, b| a as i16 > b as i16),
        Op::Cgthi => compare_halves(a, wide, |a, b| a as i16 > b as i16),
        Op::Cgtb => compare_bytes(a, b, |a, b| a as i8 > b as i8),
        Op::Cgtbi => compare_bytes(a, wide, |a, b| a as i8 > b as i8),
        Op::Clgt => compare_words(a, b, |a, b| a > b),
        Op::Clgti => compare_words(a, wide, |a, b| a > b),
        Op::Clgth => compare_halves(a, b, |a, b| a > b),
        Op::Clgthi => compare_halves(a, wide, |a, b| a > b),
        Op::Clgtb => compare_bytes(a, b, |a, b| a > b),
        Op::Clgtbi => compare_bytes(a, wide, |a, b| a > b),
        Op::Lqd => load(memory, scalar(a).wrapping_add(imm)),
        Op::Lqx => load(memory, scalar(a).wrapping_add(scalar(b))),
        Op::Lqa | Op::Lqr => load(memory, imm),
        Op::Stqd => return store(scalar(a).wrapping_add(imm), t),
        Op::Stqx => return store(scalar(a).wrapping_add(scalar(b)), t),
        Op::Stqa | Op::Stqr => return store(imm, t),
        Op::Br => return branch(true, imm),
        Op::Brnz => return branch(scalar(t) != 0, imm),
        Op::Brz => return branch(scalar(t) == 0, imm),
        Op::Brhnz => return branch(scalar(t) as u16 != 0, imm),
        Op::Brhz => return branch(scalar(t) as u16 == 0, imm),
        Op::Bi => return branch(true, indirect),
        Op::Biz => return branch(scalar(t) == 0, indirect),
        Op::Binz => return branch(scalar(t) != 0, indirect),
        Op::Bihz => return branch(scalar(t) as u16 == 0, indirect),
        Op::Bihnz => return branch(scalar(t) as u16 != 0, indirect),
        Op::Brsl | Op::Brasl => {
            r[usize::from(inst.rt)] = wide;
            return branch(true, imm);
        }
        Op::Bisl => {
            r[usize::from(inst.rt)] = wide;
            return branch(true, indirect);
        }
        Op::Hbr => return Next::Hint { branch: inst.hinted, target: indirect },
        Op::Hbra | Op::Hbrr => return Next::Hint { branch: inst.hinted, target: imm },
        Op::Rdch | Op::Rchcnt => return Next::Read,
        Op::Wrch => return Next::Write { channel: imm, value: scalar(t) },
        Op::Nop | Op::Lnop | Op::Sync | Op::Dsync => return Next::Follow,
        Op::Stop => return Next::Stop(imm),
    };
    r[usize::from(inst.rt)] = result;
    Next::Follow
}
