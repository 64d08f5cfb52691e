//! The assembler: [`Assembler`] for Rust code, [`assemble`] for text in GNU syntax; both produce an [`Image`].

mod builder;
mod export;
mod expression;
mod operands;
mod text;

use std::collections::BTreeMap;
use std::ops::Range;

pub use builder::{Assembler, Label};
pub use text::assemble;

use crate::isa::Inst;

/// A program as it is placed in the local store.
#[derive(Debug, Clone, Default)]
pub struct Image {
    /// The address of the first byte.
    pub origin: u32,
    /// The bytes of code and data, from `origin` on.
    pub bytes: Vec<u8>,
    /// The addresses of the instructions. All other bytes are data.
    pub code: Range<u32>,
    /// The address at which execution starts.
    pub entry: u32,
    /// The address of each label, by its name.
    pub symbols: BTreeMap<String, u32>,
    /// Ranges of data within the code, in order. Stores to these data are allowed unless the data have been executed as
    /// instructions.
    pub constants: Vec<Range<u32>>,
}

impl Image {
    /// Returns the first address after the image.
    pub fn end(&self) -> u32 {
        self.origin + self.bytes.len() as u32
    }

    /// Returns the word at an address, if the address is inside the image.
    pub fn word(&self, address: u32) -> Option<u32> {
        let at = address.checked_sub(self.origin)? as usize;
        let bytes = self.bytes.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().expect("four bytes")))
    }

    /// Returns the words of the code with their addresses. A word is decoded, or `None` if it is not an instruction.
    pub fn instructions(&self) -> impl Iterator<Item = (u32, Option<Inst>)> {
        self.code.clone().step_by(4).map(|at| (at, self.word(at).and_then(Inst::decode)))
    }
}

/// An error in a program, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsmError {
    /// The name of the file, as passed by the caller.
    pub file: String,
    /// The line, counted from 1; 0 for programs built in Rust.
    pub line: usize,
    /// The error, and what was expected.
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

/// Returns the number of words from `from` to `to`, for relative addresses.
fn words_between(from: u32, to: u32) -> i32 {
    (to as i32 - from as i32) >> 2
}

/// Sets the immediate of an instruction that refers to an address.
///
/// Distances wrap at the size of the local store, as in the hardware.
fn set_target(inst: &mut Inst, at: u32, target: u32) -> Result<(), String> {
    use crate::isa::Format::*;
    if target & 3 != 0 {
        return Err(format!("{target:#x} is no address of a word: expected a multiple of 4"));
    }
    let words = match inst.op.format() {
        Ri16Absolute | Ri16AbsoluteStore | HintAbsolute => (target >> 2) as i32,
        _ => words_between(at, target),
    };
    // 16 bits are enough for the number of any word of the local store.
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
