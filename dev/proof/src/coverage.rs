//! Instructions of the kernels that no run has executed.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

use crate::decoder;
use crate::image::Image;
use crate::known;

/// The numbers of instructions of a function, without those that fill space between functions.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Coverage {
    /// Number of instructions. Words that the decoder does not know count.
    pub all: usize,
    /// The addresses of the instructions that no run has executed, except panics.
    pub missed: Vec<u64>,
    /// Number of instructions that no run has executed and from which each path ends in a panic. 0 for 64-bit Arm.
    pub panics: usize,
}

/// The largest number of instructions that no run executes in each function whose name has the form of a pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limit {
    /// The text of the line of the list.
    pub line: String,
    most: usize,
    pattern: String,
}

impl Limit {
    /// True if the limit permits what no run has executed of a function.
    pub fn permits(&self, function: &str, coverage: &Coverage) -> bool {
        self.applies(function) && coverage.missed.len() <= self.most
    }

    /// True if the limit is for a function.
    pub fn applies(&self, function: &str) -> bool {
        known::matches(&self.pattern, function)
    }
}

/// Reads a list of limits. A line is `N: function`, in which `*` stands for any text of a name. Lines that start with `#` state reasons.
///
/// # Errors
/// A message for a line of another form.
pub fn parse(text: &str) -> Result<Vec<Limit>, String> {
    known::lines(text)
        .map(|line| {
            let parts = line.split_once(": ").and_then(|(most, name)| Some((most.parse().ok()?, name)));
            let (most, pattern) = parts.ok_or_else(|| format!("not `N: function`: {line}"))?;
            Ok(Limit { line: line.into(), most, pattern: pattern.into() })
        })
        .collect()
}

/// The coverage of each function whose name contains `part`. Needs a file with symbols.
pub fn of_functions(image: &Image, part: &str, visited: &BTreeSet<u64>) -> BTreeMap<String, Coverage> {
    let mut found: BTreeMap<String, Coverage> = BTreeMap::new();
    let functions = image.symbols.iter().filter(|symbol| symbol.is_function && symbol.name.contains(part));
    for function in functions {
        let Some(code) = image.code_at(function.address) else { continue };
        let code = &code[..code.len().min(function.size as usize)];
        let coverage = found.entry(function.name.clone()).or_default();
        for (address, is_panic) in instructions(image, code, function.address) {
            coverage.all += 1;
            match visited.contains(&address) {
                true => {}
                false if is_panic => coverage.panics += 1,
                false => coverage.missed.push(address),
            }
        }
    }
    found
}

/// The addresses of the instructions of a function, without those that fill space between functions. True for those from which each path
/// ends in a panic.
fn instructions(image: &Image, code: &[u8], start: u64) -> Vec<(u64, bool)> {
    if image.is_arm {
        let words = code.chunks_exact(4).zip((start..).step_by(4));
        let is_filler =
            |word: &[u8]| decoder::decode(word).is_some_and(|i| i.opcode == decoder::Opcode::HINT);
        return words.filter(|(word, _)| !is_filler(word)).map(|(_, address)| (address, false)).collect();
    }
    let all: Vec<Instruction> = Decoder::with_ip(64, code, start, DecoderOptions::NONE).into_iter().collect();
    let is_filler = |i: &Instruction| matches!(i.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
    let panics = panics(&all);
    all.iter().filter(|i| !is_filler(i)).map(|i| (i.ip(), panics.contains(&i.ip()))).collect()
}

/// The addresses from which each path ends in UD2, INT3 or the end of the function. The compiler writes one of these after a call that does
/// not return.
fn panics(all: &[Instruction]) -> BTreeSet<u64> {
    let mut found: BTreeSet<u64> = all.last().map(Instruction::next_ip).into_iter().collect();
    loop {
        let before = found.len();
        for instruction in all.iter().rev() {
            let is_panic = match instruction.flow_control() {
                FlowControl::Exception | FlowControl::Interrupt => true,
                FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => {
                    found.contains(&instruction.next_ip())
                }
                FlowControl::UnconditionalBranch => found.contains(&instruction.near_branch_target()),
                FlowControl::ConditionalBranch => {
                    found.contains(&instruction.next_ip())
                        && found.contains(&instruction.near_branch_target())
                }
                _ => false,
            };
            if is_panic {
                found.insert(instruction.ip());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

#[cfg(test)]
mod tests;
