//! The assembler for Rust code. It has one method for each instruction, generated from the table of the instruction set.

use super::{AsmError, Image, set_branch, set_target};
use crate::isa::{Inst, LOCAL_STORE, Op, Reg, with_table};

/// A label is a name for a position in a program. An instruction may refer to a label before the label is bound to its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label(usize);

/// Builds a program, one instruction after the other.
#[derive(Debug, Default)]
pub struct Assembler {
    words: Vec<Item>,
    labels: Vec<Option<usize>>,
    names: Vec<(String, Label)>,
    code_end: Option<usize>,
    origin: u32,
}

#[derive(Debug, Clone, Copy)]
enum Item {
    Inst { inst: Inst, target: Option<Label>, branch: Option<Label> },
    Data(u32),
}

impl Assembler {
    /// Creates an empty program at address 0.
    pub fn new() -> Assembler {
        Assembler::default()
    }

    /// Creates an empty program at an address, a multiple of 16.
    pub fn at(origin: u32) -> Assembler {
        assert!(origin.is_multiple_of(16), "quadwords of data are aligned");
        Assembler { origin, ..Assembler::default() }
    }

    /// Creates a label that has no position yet.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Binds a label to the current position.
    pub fn bind(&mut self, label: Label) {
        self.labels[label.0] = Some(self.words.len());
    }

    /// Binds a label to the current position and adds it to the image's symbols as `name`.
    pub fn bind_named(&mut self, label: Label, name: &str) {
        self.bind(label);
        self.names.push((name.into(), label));
    }

    /// The address of the next instruction.
    pub fn here(&self) -> u32 {
        self.origin + self.words.len() as u32 * 4
    }

    /// Adds an instruction whose operands are all known.
    pub fn push(&mut self, inst: Inst) {
        self.words.push(Item::Inst { inst, target: None, branch: None });
    }

    fn push_to(&mut self, inst: Inst, target: Option<Label>, branch: Option<Label>) {
        self.words.push(Item::Inst { inst, target, branch });
    }

    /// Pads with `nop` and `lnop` to a multiple of 8 bytes, so that the next instruction can be the first of a pair.
    pub fn align_pair(&mut self) {
        if self.words.len() % 2 == 1 {
            self.push(Inst::bare(Op::Lnop));
        }
    }

    /// Ends the code and starts the data, at a multiple of 16 bytes.
    pub fn begin_data(&mut self) {
        self.code_end = Some(self.words.len());
        while !self.words.len().is_multiple_of(4) {
            self.words.push(Item::Data(0));
        }
    }

    /// Adds a quadword of data.
    pub fn quadword(&mut self, bytes: [u8; 16]) {
        for word in bytes.chunks_exact(4) {
            self.words.push(Item::Data(u32::from_be_bytes(word.try_into().expect("four bytes"))));
        }
    }

    /// Assembles the program.
    ///
    /// # Errors
    /// For unbound labels, labels that are too far away or share a name, immediates out of range, and programs larger
    /// than the local store.
    pub fn finish(self) -> Result<Image, AsmError> {
        let error = |message| AsmError { file: "builder".into(), line: 0, message };
        let place = |label: Label| {
            let at = self.labels[label.0];
            at.map(|at| self.origin + at as u32 * 4).ok_or_else(|| error("a label was never bound".into()))
        };
        let mut bytes = Vec::with_capacity(self.words.len() * 4);
        for (i, &item) in self.words.iter().enumerate() {
            let at = self.origin + i as u32 * 4;
            let word = match item {
                Item::Data(word) => word,
                Item::Inst { mut inst, target, branch } => {
                    if let Some(label) = target {
                        set_target(&mut inst, at, place(label)?).map_err(error)?;
                    }
                    if let Some(label) = branch {
                        set_branch(&mut inst, at, place(label)?).map_err(error)?;
                    }
                    let (low, high) = inst.op.range();
                    if !(low..=high).contains(&inst.imm) {
                        let what = format!(
                            "{} at {at:#x}: {} is out of range, expected {low} to {high}",
                            inst.op.mnemonic(),
                            inst.imm
                        );
                        return Err(error(what));
                    }
                    inst.encode()
                }
            };
            bytes.extend(word.to_be_bytes());
        }
        let code_end = self.origin + self.code_end.unwrap_or(self.words.len()) as u32 * 4;
        let mut symbols = std::collections::BTreeMap::new();
        for (name, label) in &self.names {
            if symbols.insert(name.clone(), place(*label)?).is_some() {
                return Err(error(format!("two labels are named `{name}`")));
            }
        }
        let end = self.origin as usize + bytes.len();
        if end > LOCAL_STORE {
            return Err(error(format!("the program ends at {end}: the local store has {LOCAL_STORE} bytes")));
        }
        let code = self.origin..code_end;
        Ok(Image { origin: self.origin, bytes, code, entry: self.origin, symbols, constants: Vec::new() })
    }
}

/// One method for each instruction. Its parameters are the operands of the format, in the order of the assembly syntax.
macro_rules! methods {
    ($($name:ident $mnemonic:ident $opcode:literal $format:ident $class:ident,)*) => {
        #[allow(missing_docs, reason = "named as in the manual")]
        impl Assembler {
            $(methods!(@one $format $name $mnemonic);)*
        }
    };
    (@one Rrr $name:ident $f:ident) => {
        pub fn $f(&mut self, rt: Reg, ra: Reg, rb: Reg, rc: Reg) {
            self.push(Inst { rt, ra, rb, rc, ..Inst::bare(Op::$name) });
        }
    };
    (@one Rr $name:ident $f:ident) => { methods!(@three $name $f); };
    (@one RrInOut $name:ident $f:ident) => { methods!(@three $name $f); };
    (@one RrStore $name:ident $f:ident) => { methods!(@three $name $f); };
    (@three $name:ident $f:ident) => {
        pub fn $f(&mut self, rt: Reg, ra: Reg, rb: Reg) {
            self.push(Inst { rt, ra, rb, ..Inst::bare(Op::$name) });
        }
    };
    (@one RrA $name:ident $f:ident) => { methods!(@two $name $f); };
    (@one IndirectIf $name:ident $f:ident) => { methods!(@two $name $f); };
    (@two $name:ident $f:ident) => {
        pub fn $f(&mut self, rt: Reg, ra: Reg) {
            self.push(Inst { rt, ra, ..Inst::bare(Op::$name) });
        }
    };
    (@one Ri7 $name:ident $f:ident) => { methods!(@with_imm $name $f); };
    (@one Ri7Offset $name:ident $f:ident) => {
        pub fn $f(&mut self, rt: Reg, offset: i32, ra: Reg) {
            self.push(Inst { rt, ra, imm: offset, ..Inst::bare(Op::$name) });
        }
    };
    (@one Ri10 $name:ident $f:ident) => { methods!(@with_imm $name $f); };
    (@one Ri10Byte $name:ident $f:ident) => { methods!(@with_imm $name $f); };
    (@one Ri10Quad $name:ident $f:ident) => { methods!(@quad $name $f); };
    (@one Ri10QuadStore $name:ident $f:ident) => { methods!(@quad $name $f); };
    (@with_imm $name:ident $f:ident) => {
        pub fn $f(&mut self, rt: Reg, ra: Reg, imm: i32) {
            self.push(Inst { rt, ra, imm, ..Inst::bare(Op::$name) });
        }
    };
    (@quad $name:ident $f:ident) => {
        /// The offset is in bytes, a multiple of 16.
        pub fn $f(&mut self, rt: Reg, offset: i32, ra: Reg) {
            self.push(Inst { rt, ra, imm: offset >> 4, ..Inst::bare(Op::$name) });
        }
    };
    (@one Ri16 $name:ident $f:ident) => { methods!(@constant $name $f); };
    (@one Ri16InOut $name:ident $f:ident) => { methods!(@constant $name $f); };
    (@one Ri18 $name:ident $f:ident) => { methods!(@constant $name $f); };
    (@constant $name:ident $f:ident) => {
        pub fn $f(&mut self, rt: Reg, imm: i32) {
            self.push(Inst { rt, imm, ..Inst::bare(Op::$name) });
        }
    };
    (@one Ri16Absolute $name:ident $f:ident) => { methods!(@at $name $f); };
    (@one Ri16AbsoluteStore $name:ident $f:ident) => { methods!(@at $name $f); };
    (@one Ri16Relative $name:ident $f:ident) => { methods!(@at $name $f); };
    (@one Ri16RelativeStore $name:ident $f:ident) => { methods!(@at $name $f); };
    (@one BranchIf $name:ident $f:ident) => { methods!(@at $name $f); };
    (@at $name:ident $f:ident) => {
        pub fn $f(&mut self, rt: Reg, target: Label) {
            self.push_to(Inst { rt, ..Inst::bare(Op::$name) }, Some(target), None);
        }
    };
    (@one Branch $name:ident $f:ident) => {
        pub fn $f(&mut self, target: Label) {
            self.push_to(Inst::bare(Op::$name), Some(target), None);
        }
    };
    (@one Indirect $name:ident $f:ident) => {
        pub fn $f(&mut self, ra: Reg) {
            self.push(Inst { ra, ..Inst::bare(Op::$name) });
        }
    };
    (@one HintIndirect $name:ident $f:ident) => {
        pub fn $f(&mut self, branch: Label, ra: Reg) {
            self.push_to(Inst { ra, ..Inst::bare(Op::$name) }, None, Some(branch));
        }
    };
    (@one HintAbsolute $name:ident $f:ident) => { methods!(@hint $name $f); };
    (@one HintRelative $name:ident $f:ident) => { methods!(@hint $name $f); };
    (@hint $name:ident $f:ident) => {
        pub fn $f(&mut self, branch: Label, target: Label) {
            self.push_to(Inst::bare(Op::$name), Some(target), Some(branch));
        }
    };
    (@one ReadChannel $name:ident $f:ident) => { methods!(@constant $name $f); };
    (@one WriteChannel $name:ident $f:ident) => {
        pub fn $f(&mut self, channel: i32, rt: Reg) {
            self.push(Inst { rt, imm: channel, ..Inst::bare(Op::$name) });
        }
    };
    (@one Bare $name:ident $f:ident) => {
        pub fn $f(&mut self) {
            self.push(Inst::bare(Op::$name));
        }
    };
    (@one StopCode $name:ident $f:ident) => {
        pub fn $f(&mut self, imm: i32) {
            self.push(Inst { imm, ..Inst::bare(Op::$name) });
        }
    };
}
with_table!(methods);
