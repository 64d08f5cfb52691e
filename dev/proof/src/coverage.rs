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
    /// Number of instructions that no run has executed and from which each path ends in a panic or in cleanup after a panic. 0 for 64-bit
    /// Arm.
    pub panics: usize,
}

/// The largest number of instructions that no run executes, in all functions whose name has the form of a pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limit {
    most: usize,
    pattern: String,
}

/// Compares instructions that no run has executed with limits. Each function belongs to the first limit whose pattern its name has. Returns a
/// text for each function without a limit and each limit that is exceeded or belongs to no function, and a text for each limit that is too
/// high.
pub fn compare(functions: &BTreeMap<String, Coverage>, limits: &[Limit]) -> (Vec<String>, Vec<String>) {
    let (mut faults, mut hints) = (Vec::new(), Vec::new());
    let mut counts: Vec<(usize, &str)> = vec![(0, ""); limits.len()];
    for (name, Coverage { missed, .. }) in
        functions.iter().filter(|(_, coverage)| !coverage.missed.is_empty())
    {
        match limits.iter().position(|limit| known::matches(&limit.pattern, name)) {
            Some(place) => counts[place] = (counts[place].0 + missed.len(), name),
            None => faults.push(format!("no run executes {} instructions of {name}", missed.len())),
        }
    }
    for (Limit { most, pattern }, (count, last)) in limits.iter().zip(counts) {
        match count {
            0 => faults
                .push(format!("no function with instructions that no run executes has the name {pattern}")),
            _ if count > *most => faults.push(format!(
                "no run executes {count} instructions of {pattern} (limit {most}), the last of them in {last}"
            )),
            _ if count < *most => hints.push(format!("the limit {most} can be {count}: {pattern}")),
            _ => {}
        }
    }
    (faults, hints)
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
            Ok(Limit { most, pattern: pattern.into() })
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

/// The addresses from which each path ends in UD2, in INT3, or in a call at the end of the function. A call that does not return is followed
/// by one of these, or by code that leads to one of these. Cleanup after a panic is included if it ends in this way.
fn panics(all: &[Instruction]) -> BTreeSet<u64> {
    let end = all.last().map(Instruction::next_ip);
    let mut found = BTreeSet::new();
    loop {
        let before = found.len();
        for instruction in all.iter().rev() {
            let next = instruction.next_ip();
            let is_panic = match instruction.flow_control() {
                _ if matches!(instruction.mnemonic(), Mnemonic::Ud2 | Mnemonic::Int3) => true,
                FlowControl::Call | FlowControl::IndirectCall => found.contains(&next) || Some(next) == end,
                FlowControl::Next => found.contains(&next),
                FlowControl::UnconditionalBranch => found.contains(&instruction.near_branch_target()),
                FlowControl::ConditionalBranch => {
                    found.contains(&next) && found.contains(&instruction.near_branch_target())
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
