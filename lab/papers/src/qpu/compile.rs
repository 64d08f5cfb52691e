//! The times of the compilers for the kernels. These times depend on the machine, so the page of the lab does not contain them.

use std::time::Instant;

use lockstep_qpu::compiler::scheduled::{self, Hints};
use lockstep_qpu::compiler::{Code, CompileError, sequential};
use lockstep_qpu::isa::Instruction;
use lockstep_qpu::kernels::bitslice::PROGRAMS;
use lockstep_qpu::kernels::{naive, packed, packed_tuned};

/// Times of the compiler for a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// The name of the program.
    pub program: String,
    /// Seconds of the sequential compiler, which translates one operation after the other as the thesis's compiler did, and the
    /// number of instructions. `None` if the program needs more registers than this compiler finds.
    pub sequential: Option<(f64, usize)>,
    /// Seconds of the scheduling compiler, and the number of instructions. `None` for the thesis's kernels, which are never
    /// scheduled.
    pub scheduled: Option<(f64, usize)>,
}

/// The rounds of a key of 128 bits.
const ROUNDS: u8 = 10;

/// Compiles all programs, and measures the times.
pub(super) fn measure() -> Vec<Compiled> {
    let mut all = Vec::new();
    for program in PROGRAMS {
        all.push(compiled(&format!("bitslice, {}", program.name), &program.code(), Some(program.hints())));
    }
    for (name, decrypts) in [("packed-tuned, encryption", false), ("packed-tuned, decryption", true)] {
        all.push(compiled(name, &packed_tuned::blocks(ROUNDS, decrypts), Some(Hints::default())));
    }
    for (name, code) in [
        ("packed, encryption", packed::encrypt_as_published()),
        ("packed, decryption", packed::decrypt_as_published()),
        ("naive, encryption", naive::encrypt_as_published()),
    ] {
        all.push(compiled(name, &code, None));
    }
    all
}

fn compiled(name: &str, code: &Code, hints: Option<Hints>) -> Compiled {
    Compiled {
        program: name.into(),
        sequential: timed(|| sequential::compile(code)),
        scheduled: hints.and_then(|hints| timed(|| scheduled::compile(code, &hints))),
    }
}

/// Seconds of a compilation, and the number of instructions.
fn timed(compile: impl FnOnce() -> Result<Vec<Instruction>, CompileError>) -> Option<(f64, usize)> {
    let start = Instant::now();
    let instructions = compile().ok()?;
    Some((start.elapsed().as_secs_f64(), instructions.len()))
}
