//! A language for programs of QPUs, as text: the language that is embedded in Rust ([`lockstep_qpu::lang`]), with functions, pointers
//! and types. The page docs/qpu-language.md describes it.
//!
//! A text is divided into tokens (`lexer`), which become a syntax tree (`parser`, `tree`). From the tree, `generate` builds a program
//! of the embedded language, and checks names and types. The program is compiled by the scheme of the thesis's compiler.

mod generate;
mod lexer;
mod operators;
mod parser;
mod tree;
mod value;
mod variables;

use std::collections::BTreeMap;

use lockstep_qpu::compiler::sequential::compile_with_places;
use lockstep_qpu::compiler::{CompileError, Input, Item, Read};
use lockstep_qpu::isa::{INSTRUCTION_BYTES, Instruction};

pub use tree::{Element, Type};

/// A mistake in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The number of the line, counted from 1.
    pub line: usize,
    /// The number of the character in the line, counted from 1.
    pub column: usize,
    /// The rule that the text breaks, and the remedy.
    pub message: String,
}

/// A statement `Print` of a program.
#[derive(Debug, Clone)]
pub struct Print {
    /// The number of the line, counted from 1.
    pub line: usize,
    /// The text that is printed before the value.
    pub text: Option<String>,
    /// The type of the value.
    pub kind: Type,
}

/// A compiled program. Its first two uniforms are the number of the QPU in the run, and the number of QPUs. The parameters follow.
#[derive(Debug, Clone)]
pub struct Program {
    /// The types and names of the parameters of `kernel`.
    pub parameters: Vec<(Type, String)>,
    /// The instructions. The first one is at address 0.
    pub instructions: Vec<Instruction>,
    /// For each sequence of instructions of the same line: the index of its first instruction, and the line.
    lines: BTreeMap<usize, usize>,
    /// The instructions that print, by their addresses.
    prints: BTreeMap<u32, Print>,
}

impl Program {
    /// The line of the text to which the instruction at an address belongs.
    pub fn line(&self, address: u32) -> Option<usize> {
        let index = (address / INSTRUCTION_BYTES) as usize;
        let (_, line) = self.lines.range(..=index).next_back()?;
        (index < self.instructions.len()).then_some(*line)
    }

    /// The `Print` of the instruction at an address.
    pub fn print(&self, address: u32) -> Option<&Print> {
        self.prints.get(&address)
    }
}

/// Compiles the text of a kernel.
///
/// # Errors
/// The first mistake in the text.
pub fn compile(text: &str) -> Result<Program, Mistake> {
    let functions = parser::parse(text)?;
    let generated = generate::generate(&functions)?;
    let parameters = generated.parameters.iter().map(|(kind, name)| (*kind, name.text.clone())).collect();
    let code = generated.kernel.finish();
    let (instructions, places) = compile_with_places(&code).map_err(|error| {
        let message = match error {
            CompileError::Registers => {
                "the program needs more than 64 registers at once: use fewer variables at the same time"
            }
            CompileError::Unwritten => "the program reads a variable that has no value yet",
        };
        Mistake { line: 1, column: 1, message: message.into() }
    })?;
    // The program starts with instructions that set up stores and loads. They do not belong to an operation of the text.
    let is_start = |item: &Item| matches!(item, Item::Op(op) if op.inputs[0] == Input::Read(Read::Uniform));
    let start = code.items.iter().position(is_start).unwrap_or(0);
    let place = |item: usize| places.get(start + item).copied();
    let lines = generated.lines.into_iter().filter_map(|(item, line)| Some((place(item)?, line))).collect();
    // The compiler may insert instructions without effect before the instruction that prints. So the last instruction of the operation
    // prints.
    let prints = generated.prints.into_iter().filter_map(|(item, print)| {
        let last = place(item + 1)? as u32 - 1;
        Some((last * INSTRUCTION_BYTES, print))
    });
    Ok(Program { parameters, lines, prints: prints.collect(), instructions })
}
