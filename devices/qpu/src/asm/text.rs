//! Programs as text.

use std::collections::HashMap;

use super::instruction::{Parsed, parse};
use crate::isa::{INSTRUCTION_BYTES, Instruction};

/// An assembled program, with the lines of its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The instructions in order. The first instruction is at address 0.
    pub instructions: Vec<Instruction>,
    /// The line of each instruction, counted from 1.
    pub lines: Vec<usize>,
}

impl Program {
    /// The instructions, each encoded as a word of 64 bits.
    pub fn words(&self) -> Vec<u64> {
        self.instructions.iter().map(Instruction::encode).collect()
    }
}

/// A mistake in the source of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsmError {
    /// The number of the line in the source, counted from 1.
    pub line: usize,
    /// The mistake, in most cases with the text that was expected.
    pub message: String,
}

impl std::fmt::Display for AsmError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for AsmError {}

/// Assembles a program.
///
/// # Errors
/// The first mistake.
pub fn assemble(source: &str) -> Result<Program, AsmError> {
    let mut labels = HashMap::new();
    let mut parsed: Vec<(Parsed, usize)> = Vec::new();
    for (text, line) in source.lines().zip(1..) {
        let at = |message| AsmError { line, message };
        let (label, rest) = split_label(text.split('#').next().unwrap_or_default().trim());
        if let Some(name) = label {
            let is_name = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
            if name.is_empty() || !is_name || name.starts_with(|first: char| first.is_ascii_digit()) {
                return Err(at(format!("`{name}` is no name of a label")));
            }
            if labels.insert(name.to_owned(), address(parsed.len())).is_some() {
                return Err(at(format!("the label `{name}` is defined twice")));
            }
        }
        if !rest.is_empty() && !includes_functions(rest) {
            parsed.push((parse(rest).map_err(at)?, line));
        }
    }
    let mut program = Program { instructions: Vec::new(), lines: Vec::new() };
    for (number, (mut parsed, line)) in parsed.into_iter().enumerate() {
        if let (Some(label), Instruction::Branch(branch)) = (&parsed.label, &mut parsed.instruction) {
            let unknown = || AsmError { line, message: format!("unknown label `{label}`") };
            let target = *labels.get(label).ok_or_else(unknown)?;
            let from = if branch.is_relative { address(number) + 4 * INSTRUCTION_BYTES } else { 0 };
            branch.offset = branch.offset.wrapping_add(target.wrapping_sub(from) as i32);
        }
        program.instructions.push(parsed.instruction);
        program.lines.push(line);
    }
    Ok(program)
}

/// True for the inclusion of `vc4.qinc`, whose functions the assembler has.
fn includes_functions(line: &str) -> bool {
    line.strip_prefix(".include").is_some_and(|file| file.trim_end_matches(['"', '>']).ends_with("vc4.qinc"))
}

/// The address of an instruction in bytes.
fn address(number: usize) -> u32 {
    number as u32 * INSTRUCTION_BYTES
}

/// Returns the label at the start of a line, if there is one, and the text after the label.
fn split_label(line: &str) -> (Option<&str>, &str) {
    if let Some(rest) = line.strip_prefix(':') {
        let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        return (Some(name), rest.trim());
    }
    match line.split_once(':') {
        // The condition excludes `brr -, r:label`, in which a colon does not end a label.
        Some((name, rest)) if !name.contains(char::is_whitespace) => (Some(name), rest.trim()),
        _ => (None, line),
    }
}
