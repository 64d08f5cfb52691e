//! Encoding and decoding of instructions.

use std::sync::LazyLock;

use super::{Format, Inst, Op, Reg};

impl Format {
    /// Number of bits of the opcode.
    const fn opcode_bits(self) -> u32 {
        use Format::*;
        match self {
            Rrr => 4,
            Rr | RrInOut | RrStore | RrA | Ri7 | Ri7Offset | Indirect | IndirectIf | HintIndirect
            | ReadChannel | WriteChannel | Bare | StopCode => 11,
            Ri10 | Ri10Byte | Ri10Quad | Ri10QuadStore => 8,
            Ri16 | Ri16InOut | Ri16Absolute | Ri16AbsoluteStore | Ri16Relative | Ri16RelativeStore => 9,
            Branch | BranchIf => 9,
            Ri18 | HintAbsolute | HintRelative => 7,
        }
    }

    /// The lowest bit of the immediate, and its number of bits.
    const fn immediate(self) -> (u32, u32) {
        use Format::*;
        match self {
            Ri7 | Ri7Offset => (14, 7),
            ReadChannel | WriteChannel => (7, 7),
            Ri10 | Ri10Byte | Ri10Quad | Ri10QuadStore => (14, 10),
            Ri16 | Ri16InOut | Ri16Absolute | Ri16AbsoluteStore | Ri16Relative | Ri16RelativeStore => (7, 16),
            Branch | BranchIf | HintAbsolute | HintRelative => (7, 16),
            Ri18 => (7, 18),
            StopCode => (0, 14),
            _ => (0, 0),
        }
    }
}

impl Op {
    /// The valid immediates: those that the GNU assembler accepts without a warning. If a field can be signed or
    /// unsigned, the range covers both.
    pub(crate) const fn range(self) -> (i32, i32) {
        use Format::*;
        match (self, self.format()) {
            (Op::Il, _) => (-0x8000, 0x7fff),
            (Op::Shli, _) => (0, 63),
            (Op::Shlhi | Op::Shlqbyi, _) => (0, 31),
            (Op::Rotmi | Op::Rotmai, _) => (-63, 0),
            (Op::Rothmi | Op::Rotmahi | Op::Rotqmbyi, _) => (-31, 0),
            (_, Ri7) => (-64, 127),
            (_, Ri7Offset | ReadChannel | WriteChannel) => (0, 127),
            (_, Ri10 | Ri10Quad | Ri10QuadStore) => (-512, 511),
            (_, Ri10Byte) => (-128, 255),
            (_, Ri16 | Ri16InOut) => (-0x8000, 0xffff),
            (_, Ri16Absolute | Ri16AbsoluteStore | Ri16Relative | Ri16RelativeStore) => (-0x8000, 0x7fff),
            (_, Branch | BranchIf | HintAbsolute | HintRelative) => (-0x8000, 0x7fff),
            (_, Ri18) => (0, 0x3ffff),
            (_, StopCode) => (0, 0x3fff),
            _ => (0, 0),
        }
    }
}

/// Returns the operand fields of a format, as a mask of the bits that may be set.
fn field_mask(format: Format) -> u32 {
    use Format::*;
    let (start, bits) = format.immediate();
    let immediate = ((1u64 << bits) - 1) as u32;
    let mut mask = immediate << start;
    if format == Rrr {
        return 0x0fff_ffff;
    }
    if matches!(format, HintAbsolute | HintRelative) {
        return mask | 3 << 23 | 0x7f;
    }
    if format == HintIndirect {
        return 3 << 14 | 0x7f << 7 | 0x7f;
    }
    if format == Indirect {
        return 0x7f << 7;
    }
    if format.reads_rb() {
        mask |= 0x7f << 14;
    }
    if format.reads_ra() {
        mask |= 0x7f << 7;
    }
    if format.writes_rt() || format.reads_rt() {
        mask |= 0x7f;
    }
    mask
}

/// The operation for each value of the leftmost eleven bits.
static BY_OPCODE: LazyLock<Vec<Option<Op>>> = LazyLock::new(|| {
    let mut table = vec![None; 1 << 11];
    for &op in Op::ALL {
        let free = 11 - op.format().opcode_bits();
        for low in 0..1 << free {
            table[(op.opcode() | low) as usize] = Some(op);
        }
    }
    table
});

fn sign_extend(value: u32, bits: u32) -> i32 {
    ((value << (32 - bits)) as i32) >> (32 - bits)
}

impl Inst {
    /// True if the instruction can be written in assembly text: some words have immediates without a textual form.
    pub(crate) fn is_writable(&self) -> bool {
        let (low, high) = self.op.range();
        (low..=high).contains(&self.imm)
    }

    /// Encodes the instruction as a word of 32 bits.
    pub fn encode(&self) -> u32 {
        let format = self.op.format();
        let reg = |reg: Reg, at: u32| u32::from(reg.number()) << at;
        let mut word = self.op.opcode() << 21;
        let branch = self.to_branch as u32 & 0x1ff;
        let (start, bits) = format.immediate();
        word |= (self.imm as u32 & ((1u64 << bits) - 1) as u32) << start;
        match format {
            Format::Rrr => {
                return word | reg(self.rt, 21) | reg(self.rb, 14) | reg(self.ra, 7) | reg(self.rc, 0);
            }
            Format::HintAbsolute | Format::HintRelative => {
                return word | (branch >> 7) << 23 | branch & 0x7f;
            }
            Format::HintIndirect => {
                return word | (branch >> 7) << 14 | reg(self.ra, 7) | branch & 0x7f;
            }
            _ => {}
        }
        if format.reads_rb() {
            word |= reg(self.rb, 14);
        }
        if format.reads_ra() {
            word |= reg(self.ra, 7);
        }
        if format.writes_rt() || format.reads_rt() {
            word |= reg(self.rt, 0);
        }
        word
    }

    /// Decodes a word, if it is an instruction. Bits outside the fields must be zero.
    pub fn decode(word: u32) -> Option<Inst> {
        let op = BY_OPCODE[(word >> 21) as usize]?;
        let format = op.format();
        let opcode = u32::MAX << (32 - format.opcode_bits());
        // `br`, `nop` and `lnop` ignore their register fields, in which assemblers may set bits.
        let ignored = if matches!(format, Format::Branch | Format::Bare) { 0x7f } else { 0 };
        if word & !opcode & !field_mask(format) & !ignored != 0 {
            return None;
        }
        let reg = |at: u32| Reg::new((word >> at & 0x7f) as u8);
        let mut inst = Inst::bare(op);
        let (start, bits) = format.immediate();
        if bits > 0 {
            inst.imm = match format {
                Format::Ri18 | Format::StopCode | Format::ReadChannel | Format::WriteChannel => {
                    (word >> start & ((1 << bits) - 1)) as i32
                }
                // The offsets and the counts of left shifts are unsigned.
                Format::Ri7 | Format::Ri7Offset if op.range().0 == 0 => (word >> start & 0x7f) as i32,
                _ => sign_extend(word >> start & ((1 << bits) - 1), bits),
            };
        }
        match format {
            Format::Rrr => {
                inst.rt = reg(21);
                inst.rb = reg(14);
                inst.ra = reg(7);
                inst.rc = reg(0);
                return Some(inst);
            }
            Format::HintAbsolute | Format::HintRelative => {
                inst.to_branch = sign_extend((word >> 23 & 3) << 7 | word & 0x7f, 9) as i16;
                return Some(inst);
            }
            Format::HintIndirect => {
                inst.to_branch = sign_extend((word >> 14 & 3) << 7 | word & 0x7f, 9) as i16;
                inst.ra = reg(7);
                return Some(inst);
            }
            _ => {}
        }
        if format.reads_rb() {
            inst.rb = reg(14);
        }
        if format.reads_ra() {
            inst.ra = reg(7);
        }
        if format.writes_rt() || format.reads_rt() {
            inst.rt = reg(0);
        }
        Some(inst)
    }
}
