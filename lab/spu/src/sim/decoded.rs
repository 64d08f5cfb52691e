//! Decoded instructions, in the form that the simulator's loop uses.

use crate::isa::{Format, Inst, Op, Pipe};

/// Means "no register" in sources and targets. The value and the ready cycle at this index are always zero.
pub(super) const NO_REGISTER: u8 = 255;

#[derive(Clone, Copy)]
pub(super) struct Decoded {
    /// True if decoded; false for words that were never executed.
    pub known: bool,
    pub op: Op,
    pub odd: bool,
    pub branch: bool,
    pub latency: u8,
    pub rt: u8,
    pub ra: u8,
    pub rb: u8,
    pub rc: u8,
    /// The source registers. The instruction issues only after they are ready.
    pub sources: [u8; 3],
    /// The target register; [`NO_REGISTER`] if there is none.
    pub target: u8,
    /// The immediate. Relative addresses are converted to absolute addresses, and offsets are in bytes.
    pub imm: u32,
    /// For hints: the address of the branch.
    pub hinted: u32,
    /// The immediate in every element, for instructions that use it in this form. For calls: the return address.
    pub wide: u128,
}

impl Default for Decoded {
    fn default() -> Self {
        Decoded {
            known: false,
            op: Op::Stop,
            odd: false,
            branch: false,
            latency: 0,
            rt: 0,
            ra: 0,
            rb: 0,
            rc: 0,
            sources: [NO_REGISTER; 3],
            target: NO_REGISTER,
            imm: 0,
            hinted: 0,
            wide: 0,
        }
    }
}

impl Decoded {
    pub(super) fn new(inst: &Inst, pc: u32) -> Decoded {
        let mut sources = [NO_REGISTER; 3];
        for (place, reg) in sources.iter_mut().zip(inst.sources()) {
            *place = reg.number();
        }
        let words = |from: u32, words: i32| from.wrapping_add((words as u32) << 2) & super::ADDRESS_MASK;
        let imm = match inst.op.format() {
            Format::Ri16Relative | Format::Ri16RelativeStore => words(pc, inst.imm),
            Format::Branch | Format::BranchIf | Format::HintRelative => words(pc, inst.imm),
            Format::Ri16Absolute | Format::Ri16AbsoluteStore | Format::HintAbsolute => words(0, inst.imm),
            Format::Ri10Quad | Format::Ri10QuadStore => (inst.imm as u32) << 4,
            _ => inst.imm as u32,
        };
        Decoded {
            known: true,
            op: inst.op,
            odd: inst.op.pipe() == Pipe::Odd,
            branch: inst.op.is_branch(),
            latency: inst.op.latency() as u8,
            rt: inst.rt.number(),
            ra: inst.ra.number(),
            rb: inst.rb.number(),
            rc: inst.rc.number(),
            sources,
            target: inst.target().map_or(NO_REGISTER, |reg| reg.number()),
            imm,
            hinted: words(pc, i32::from(inst.to_branch)),
            wide: wide(inst, pc),
        }
    }
}

/// Computes the field [`Decoded::wide`].
fn wide(inst: &Inst, pc: u32) -> u128 {
    let bytes = |byte: u32| u128::from(byte & 0xff) * 0x0101_0101_0101_0101_0101_0101_0101_0101;
    let words = |word: u32| u128::from(word) * 0x1_0000_0001_0000_0001_0000_0001;
    let halves = |half: u32| words((half & 0xffff) * 0x1_0001);
    let imm = inst.imm as u32;
    match inst.op {
        Op::Fsmbi => form_mask(imm, 8),
        Op::Brsl | Op::Brasl | Op::Bisl => u128::from(pc.wrapping_add(4) & super::ADDRESS_MASK) << 96,
        Op::Ahi | Op::Sfhi | Op::Andhi | Op::Orhi | Op::Xorhi | Op::Ceqhi | Op::Cgthi | Op::Clgthi => {
            halves(imm)
        }
        Op::Shlhi | Op::Rothi | Op::Rothmi | Op::Rotmahi => halves(imm),
        Op::Ilh => halves(imm),
        Op::Ilhu => words(imm << 16),
        Op::Iohl => words(imm & 0xffff),
        _ if inst.op.format() == Format::Ri10Byte => bytes(imm),
        _ => words(imm),
    }
}

/// Expands each of the low bits to an element of `size` bits, all of which equal this bit.
pub(super) fn form_mask(bits: u32, size: u32) -> u128 {
    let ones = (1u128 << size) - 1;
    (0..128 / size).rev().fold(0, |all, i| all << size | if bits >> i & 1 == 1 { ones } else { 0 })
}
