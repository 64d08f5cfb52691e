//! The assembler: [`Assembler`] from Rust, [`assemble`] from text in GNU syntax; both give an [`Image`].

mod builder;
mod export;
mod expression;
mod text;

use std::collections::BTreeMap;
use std::ops::Range;

pub use builder::{Assembler, Label};
pub use text::assemble;

use crate::isa::Inst;

/// A program as it lies in the local store.
#[derive(Debug, Clone, Default)]
pub struct Image {
    /// The address of the first byte.
    pub origin: u32,
    /// Code and data.
    pub bytes: Vec<u8>,
    /// Where instructions are; the rest is data.
    pub code: Range<u32>,
    /// Where execution starts.
    pub entry: u32,
    /// Labels and their addresses.
    pub symbols: BTreeMap<String, u32>,
    /// Data among the code, in order: may be stored to as long as it is not executed.
    pub constants: Vec<Range<u32>>,
}

impl Image {
    /// The first address after it.
    pub fn end(&self) -> u32 {
        self.origin + self.bytes.len() as u32
    }

    /// The word at an address, if it is inside.
    pub fn word(&self, address: u32) -> Option<u32> {
        let at = address.checked_sub(self.origin)? as usize;
        let bytes = self.bytes.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().expect("four bytes")))
    }

    /// The instructions of the code, with their addresses; `None` where a word is none.
    pub fn instructions(&self) -> impl Iterator<Item = (u32, Option<Inst>)> {
        self.code.clone().step_by(4).map(|at| (at, self.word(at).and_then(Inst::decode)))
    }
}

/// What is wrong with a program, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsmError {
    /// The file's name as given.
    pub file: String,
    /// The line, counted from 1; 0 for programs made in Rust.
    pub line: usize,
    /// What is wrong and what was expected.
    pub message: String,
}

impl std::fmt::Display for AsmError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for AsmError {}

/// Words from `from` to `to`, for relative addresses.
fn words_between(from: u32, to: u32) -> i32 {
    (to as i32 - from as i32) >> 2
}

/// Sets the immediate of an instruction that names an address.
///
/// Distances wrap with the local store, as the hardware's do.
fn set_target(inst: &mut Inst, at: u32, target: u32) -> Result<(), String> {
    use crate::isa::Format::*;
    if target & 3 != 0 {
        return Err(format!("{target:#x} is no address of a word: expected a multiple of 4"));
    }
    let words = match inst.op.format() {
        Ri16Absolute | Ri16AbsoluteStore | HintAbsolute => (target >> 2) as i32,
        _ => words_between(at, target),
    };
    // Sixteen bits of words are the whole local store.
    inst.imm = words << 16 >> 16;
    Ok(())
}

/// Sets the distance from a hint to its branch.
fn set_branch(inst: &mut Inst, at: u32, branch: u32) -> Result<(), String> {
    let words = words_between(at, branch) << 16 >> 16;
    if !(-256..=255).contains(&words) || branch & 3 != 0 {
        return Err(format!("the branch is {words} words from its hint: expected -256 to 255"));
    }
    inst.to_branch = words as i16;
    Ok(())
}
