//! The list of mutants that no run refutes because they are equivalent to the program.

use super::change::decode;
use super::{Mutant, Verdict};
use crate::image::Image;
use crate::known::{lines, matches};
use crate::machine::text;

/// A line of the list. ` after ` and a pattern may follow, for the instruction before those that are changed, and then ` before ` and a
/// pattern, for the instruction after them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Equivalence {
    /// The text of the line, in which `*` stands for any text.
    pub line: String,
}

impl Equivalence {
    /// True if the line describes the mutant.
    pub fn describes(&self, image: &Image, mutant: &Mutant) -> bool {
        let (rest, next) = self.line.split_once(" before ").unwrap_or((&self.line, "*"));
        let (change, previous) = rest.split_once(" after ").unwrap_or((rest, "*"));
        let code = |start: u64, end: u64| {
            let code = image.code_at(start).unwrap_or_default();
            decode(&code[..code.len().min((end - start) as usize)], start)
        };
        let function = image.symbol_at(mutant.address).map_or(mutant.address, |symbol| symbol.address);
        let end = mutant.address + mutant.code.len() as u64;
        let instruction_before = code(function, mutant.address).last().map(text).unwrap_or_default();
        let instruction_after = code(end, end + LONGEST_INSTRUCTION).first().map(text).unwrap_or_default();
        matches(change, &description(image, mutant))
            && matches(previous, &instruction_before)
            && matches(next, &instruction_after)
    }
}

/// The greatest number of bytes of an instruction.
const LONGEST_INSTRUCTION: u64 = 15;

/// Prints the lines of the list that described no mutant.
pub(super) fn print_unused(image: &Image, list: &[Equivalence], verdicts: &[(&Mutant, Verdict)]) {
    let listed =
        verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Listed)).map(|(mutant, _)| mutant);
    for line in list.iter().filter(|line| !listed.clone().any(|mutant| line.describes(image, mutant))) {
        println!("this line of the list describes none of these mutants: {}", line.line);
    }
}

/// A mutant in the format of the list: `kind: function: instructions before -> instructions after`.
pub(super) fn description(image: &Image, mutant: &Mutant) -> String {
    format!("{}: {}: {}", mutant.kind, image.function_at(mutant.address), mutant.text())
}

/// The code around a mutant, for reports: five instructions before it and after it.
pub(super) fn context(image: &Image, mutant: &Mutant) -> String {
    const AROUND: usize = 5;
    let function = image.symbol_at(mutant.address).map_or(mutant.address, |symbol| symbol.address);
    let end = mutant.address + mutant.code.len() as u64;
    let Some(code) = image.code_at(function) else { return String::new() };
    let len = ((end - function) as usize + 16 * AROUND).min(code.len());
    let code = decode(&code[..len], function);
    let first = code.iter().position(|i| i.ip() == mutant.address).unwrap_or_default();
    let lines = code.iter().skip(first.saturating_sub(AROUND)).take(mutant.before.len() + 2 * AROUND);
    lines
        .map(|i| {
            let mark = if (mutant.address..end).contains(&i.ip()) { "->" } else { "  " };
            format!("    {mark} +{:#x}: {}\n", i.ip() - function, text(i))
        })
        .collect()
}

/// Reads the list. Lines that start with `#` state reasons.
///
/// # Errors
/// A message for a line without a kind, a function and instructions.
pub fn parse(text: &str) -> Result<Vec<Equivalence>, String> {
    lines(text)
        .map(|line| {
            if line.split(": ").count() < 3 || !line.contains(" -> ") {
                return Err(format!("not `kind: function: before -> after`: {line}"));
            }
            Ok(Equivalence { line: line.into() })
        })
        .collect()
}

#[cfg(test)]
mod tests;
