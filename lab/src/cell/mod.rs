//! Implementing AES on the CellBE (Canright, Dinolt, Garfinkel, Herzog and Allen, Naval Postgraduate School, 2009)
//! on the simulated SPU: the paper's tables, where each cycle goes, and the page of the documentation about it.

mod measured;
mod page;
pub mod paper;
mod picture;
mod program;
mod report;
mod sections;
mod variants;
mod window;

use lockstep_core::work::{Operation, Pass};
use lockstep_spu::asm::AsmError;
use lockstep_spu::kernels::{KERNELS, Loop, Named, Refused};
use lockstep_spu::sim::Fault;

pub use measured::{BLOCKS, Measured, name};
pub use page::{Page, page};
pub use program::{listing, run};
pub use report::Report;
pub use sections::{Sections, sections};
pub use window::{Cycle, Lost, Window};

/// What cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such kernel.
    #[error("the Cell has no kernel {name}: there are {}", names().join(", "))]
    UnknownKernel {
        /// What was asked for.
        name: String,
    },
    /// A kernel does not do this.
    #[error("{kernel} does not do {asked}: it does {}", passes(kernel).join(", "))]
    UnknownPass {
        /// The kernel.
        kernel: &'static str,
        /// What was asked for.
        asked: String,
    },
    /// A key size that AES has not.
    #[error("keys of AES have 128, 192 or 256 bits, not {bits}")]
    KeySize {
        /// What was asked for.
        bits: u32,
    },
    /// A kernel does not compile or stops.
    #[error("{0}")]
    Kernel(String),
    /// A program does not assemble.
    #[error("{0}")]
    Assembly(#[from] AsmError),
    /// A program does what the hardware would not.
    #[error("{file}: {fault}")]
    Fault {
        /// The program's name.
        file: String,
        /// Where, and what.
        fault: Fault,
    },
}

impl From<Refused> for Error {
    fn from(why: Refused) -> Error {
        Error::Kernel(why.to_string())
    }
}

/// The names of all kernels.
pub fn names() -> Vec<&'static str> {
    KERNELS.iter().map(|kernel| kernel.name).collect()
}

/// A kernel by its name, which may lack `spu/`.
///
/// # Errors
/// [`Error::UnknownKernel`].
pub fn kernel(name: &str) -> Result<&'static Named, Error> {
    let same = |kernel: &&Named| kernel.name == name || kernel.name.strip_prefix("spu/") == Some(name);
    KERNELS.iter().find(same).ok_or_else(|| Error::UnknownKernel { name: name.into() })
}

/// What a kernel does, in the words of `--pass`.
fn passes(name: &str) -> Vec<String> {
    let kernel = KERNELS.iter().find(|kernel| kernel.name == name);
    kernel
        .into_iter()
        .flat_map(|kernel| kernel.loops)
        .map(|&(pass, _)| Operation::Pass(pass).to_string())
        .collect()
}

/// A kernel's loop for what it does, by the name of the pass; its first one if there is none given.
///
/// # Errors
/// [`Error::UnknownPass`].
pub fn the_loop(kernel: &'static Named, pass: Option<&str>) -> Result<(Pass, Loop), Error> {
    let Some(asked) = pass else { return Ok(kernel.loops[0]) };
    let same = |entry: &&(Pass, Loop)| Operation::Pass(entry.0).to_string().eq_ignore_ascii_case(asked);
    let found = kernel.loops.iter().find(same).copied();
    found.ok_or_else(|| Error::UnknownPass { kernel: kernel.name, asked: asked.into() })
}

/// Rounds of AES with keys of so many bits.
///
/// # Errors
/// [`Error::KeySize`].
pub fn rounds(bits: u32) -> Result<usize, Error> {
    match bits {
        128 => Ok(10),
        192 => Ok(12),
        256 => Ok(14),
        bits => Err(Error::KeySize { bits }),
    }
}
