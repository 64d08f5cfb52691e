//! Instructions of the kernels that no run has executed.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Decoder, DecoderOptions, Mnemonic};

use crate::image::Image;

/// The number of instructions of a function, and the number of those that have been executed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Coverage {
    /// Number of instructions, without those that fill space between functions.
    pub all: usize,
    /// Number of executed instructions.
    pub visited: usize,
}

/// The coverage of each function whose name contains `part`. Needs a file with symbols.
pub fn of_functions(image: &Image, part: &str, visited: &BTreeSet<u64>) -> BTreeMap<String, Coverage> {
    let mut found: BTreeMap<String, Coverage> = BTreeMap::new();
    let functions = image.symbols.iter().filter(|symbol| symbol.is_function && symbol.name.contains(part));
    for function in functions {
        let Some(code) = image.code_at(function.address) else { continue };
        let code = &code[..code.len().min(function.size as usize)];
        let coverage = found.entry(function.name.clone()).or_default();
        for instruction in Decoder::with_ip(64, code, function.address, DecoderOptions::NONE) {
            if matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3) {
                continue;
            }
            coverage.all += 1;
            coverage.visited += usize::from(visited.contains(&instruction.ip()));
        }
    }
    found
}
