//! Instructions of the kernels that no run has executed.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};

use crate::decoder;
use crate::image::Image;

/// The number of instructions of a function, and the number of those that have been executed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Coverage {
    /// Number of instructions, without those that fill space between functions. Words that the decoder does not know count.
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
        for address in instructions(image, code, function.address) {
            coverage.all += 1;
            coverage.visited += usize::from(visited.contains(&address));
        }
    }
    found
}

/// The addresses of the instructions of a function, without those that fill space between functions.
fn instructions(image: &Image, code: &[u8], start: u64) -> Vec<u64> {
    if image.is_arm {
        let words = code.chunks_exact(4).zip((start..).step_by(4));
        let is_filler =
            |word: &[u8]| decoder::decode(word).is_some_and(|i| i.opcode == decoder::Opcode::HINT);
        return words.filter(|(word, _)| !is_filler(word)).map(|(_, address)| address).collect();
    }
    let decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let is_filler = |i: &Instruction| matches!(i.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
    decoder.into_iter().filter(|i| !is_filler(i)).map(|i| i.ip()).collect()
}
