//! Formats instructions in the syntax of the GNU assembler.

use std::fmt;

use super::{Format, Inst, Reg};

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}", self.number())
    }
}

impl Inst {
    /// Formats the instruction. Relative addresses are printed as absolute addresses, which are computed from the address of the
    /// instruction.
    pub fn show(&self, address: u32) -> String {
        self.show_with(|words| {
            let target = address.wrapping_add((words as u32) << 2) & 0x3_ffff;
            format!("{target:#x}")
        })
    }

    /// Formats the instruction. `relative` formats relative addresses.
    fn show_with(&self, relative: impl Fn(i32) -> String) -> String {
        use Format::*;
        let Inst { rt, ra, rb, rc, imm, .. } = *self;
        let absolute = |imm: i32| format!("{:#x}", ((imm as u32) << 2) & 0x3_ffff);
        let branch = relative(i32::from(self.to_branch));
        let operands = match self.op.format() {
            Rrr => format!("{rt},{ra},{rb},{rc}"),
            Rr | RrInOut | RrStore => format!("{rt},{ra},{rb}"),
            RrA | IndirectIf => format!("{rt},{ra}"),
            Ri7 | Ri10 | Ri10Byte => format!("{rt},{ra},{imm}"),
            Ri7Offset => format!("{rt},{imm}({ra})"),
            Ri10Quad | Ri10QuadStore => format!("{rt},{}({ra})", imm * 16),
            Ri16 | Ri16InOut | Ri18 => format!("{rt},{imm}"),
            Ri16Absolute | Ri16AbsoluteStore => format!("{rt},{}", absolute(imm)),
            Ri16Relative | Ri16RelativeStore | BranchIf => format!("{rt},{}", relative(imm)),
            Branch => relative(imm),
            Indirect => ra.to_string(),
            ReadChannel => format!("{rt},$ch{imm}"),
            WriteChannel => format!("$ch{imm},{rt}"),
            HintIndirect => format!("{branch},{ra}"),
            HintAbsolute => format!("{branch},{}", absolute(imm)),
            HintRelative => format!("{branch},{}", relative(imm)),
            Bare => return self.op.mnemonic().into(),
            StopCode => format!("{imm:#x}"),
        };
        format!("{} {operands}", self.op.mnemonic())
    }
}

impl fmt::Display for Inst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.show_with(|words| match words * 4 {
            bytes if bytes < 0 => format!(".-{}", -bytes),
            bytes => format!(".+{bytes}"),
        }))
    }
}
