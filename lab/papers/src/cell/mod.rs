//! The paper *Implementing AES on the CellBE* (Canright, Dinolt, Garfinkel, Herzog and Allen, Naval Postgraduate School,
//! 2009), reproduced on the simulated SPU: the paper's tables, a breakdown of the cycles, and the documentation page.

mod ideas;
mod measured;
mod page;
pub mod paper;
mod picture;
mod program;
mod published;
mod report;
mod sections;
mod variants;
mod window;

use lockstep_core::work::{Operation, Pass};
use lockstep_spu::kernels::{KERNELS, Loop, Mode, Named, PUBLISHED, Refused};
use lockstep_spu::sim::Fault;

pub use measured::{BLOCKS, Measured, name};
pub use page::page;
pub use program::{Finished, Setup, listing, run};
pub use report::Report;
pub use sections::{Sections, sections};
pub use window::{Cycle, Lost, Window};

/// An error of this module.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No kernel has this name.
    #[error("the Cell has no kernel {name}: there are {}", names().join(", "))]
    UnknownKernel {
        /// The requested name.
        name: String,
    },
    /// The kernel does not support this pass.
    #[error("{kernel} does not support {requested}: it supports {}", passes(kernel).join(", "))]
    UnknownPass {
        /// The kernel.
        kernel: &'static str,
        /// The requested pass.
        requested: String,
    },
    /// A key size that AES does not have.
    #[error("keys of AES have 128, 192 or 256 bits, not {bits}")]
    KeySize {
        /// The requested size.
        bits: u32,
    },
    /// A kernel cannot be compiled or stops with a fault.
    #[error("{0}")]
    Kernel(String),
    /// A program cannot be assembled.
    #[error("{file}:{line}:{column}: {message}")]
    Assembly {
        /// The name of the file.
        file: String,
        /// The number of the line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// The mistake, and what was expected.
        message: String,
    },
    /// The data of a program cannot be placed.
    #[error("{0}")]
    Setup(String),
    /// A program has caused a fault.
    #[error("{file}: {fault}")]
    Fault {
        /// The name of the program.
        file: String,
        /// The fault and its address.
        fault: Fault,
    },
}

impl From<Refused> for Error {
    fn from(why: Refused) -> Error {
        Error::Kernel(why.to_string())
    }
}

/// Returns the kernels of the device, and the paper's kernels as published.
fn all() -> impl Iterator<Item = &'static Named> {
    KERNELS.iter().chain(PUBLISHED)
}

/// The names of all kernels.
pub fn names() -> Vec<&'static str> {
    all().map(|kernel| kernel.name).collect()
}

/// Finds a kernel by its name; the prefix `spu/` is optional.
///
/// # Errors
/// [`Error::UnknownKernel`].
pub fn kernel(name: &str) -> Result<&'static Named, Error> {
    let same = |kernel: &&Named| kernel.name == name || kernel.name.strip_prefix("spu/") == Some(name);
    all().find(same).ok_or_else(|| Error::UnknownKernel { name: name.into() })
}

/// The passes of a kernel, as arguments of `--pass`.
fn passes(name: &str) -> Vec<String> {
    let kernel = all().find(|kernel| kernel.name == name);
    kernel
        .into_iter()
        .flat_map(|kernel| kernel.loops)
        .map(|&(pass, _)| Operation::Pass(pass).to_string())
        .collect()
}

/// Returns the loop of a kernel for the named pass, or the first loop if no pass is given.
///
/// # Errors
/// [`Error::UnknownPass`].
pub fn the_loop(kernel: &'static Named, pass: Option<&str>) -> Result<(Pass, Loop), Error> {
    let Some(requested) = pass else { return Ok(kernel.loops[0]) };
    let same = |entry: &&(Pass, Loop)| Operation::Pass(entry.0).to_string().eq_ignore_ascii_case(requested);
    let found = kernel.loops.iter().find(same).copied();
    found.ok_or_else(|| Error::UnknownPass { kernel: kernel.name, requested: requested.into() })
}

/// Returns the default name of the function of a kernel, which depends on the kernel's mode.
pub fn function_name(kernel: &Named) -> &'static str {
    match kernel.loops[0].1.mode {
        Mode::Ctr => "aes_ctr",
        Mode::CbcEncrypt => "aes_cbc",
        Mode::Ecb => "aes_ecb",
        _ => "aes",
    }
}

/// A kernel as a function with the calling convention of the SPU, as source in GNU syntax.
///
/// # Errors
/// [`Error::Kernel`] if the kernel has no such form.
pub fn function(kernel: &'static Named, rounds: usize, name: &str) -> Result<String, Error> {
    let the_loop = kernel.loops[0].1;
    let function = the_loop.function(rounds, name);
    let function = function.map_err(|why| Error::Kernel(format!("{}: {why}", kernel.name)))?;
    let groups = match function.group {
        1 => String::new(),
        group => format!(
            "# The number of blocks is rounded up to a multiple of {group}: the data must have room for them.\n"
        ),
    };
    let state = match the_loop.mode {
        Mode::Ctr if function.group == 1 => {
            "# $6: the first counter block. The result in $3 is the next counter block, of which the last 32 bits are incremented.\n"
        }
        Mode::Ctr => {
            "# $6: the first counter block. The result in $3 is the counter block after the rounded number of blocks, of which the last\n\
             # 32 bits are incremented: only the last call of a message may have another number of blocks.\n"
        }
        Mode::CbcEncrypt => "# $6: the IV. The result in $3 is the last ciphertext block.\n",
        _ => "# $6 is not used, and there is no result.\n",
    };
    let Named { name: of, description, .. } = kernel;
    Ok(format!(
        "# {of}: {description}, for {rounds} rounds.\n\
         # $3: address of the data, which are processed in place. $4: address of the round keys. $5: number of blocks.\n\
         {state}{groups}{}",
        function.source()
    ))
}

/// Returns the number of rounds of AES for keys of this number of bits.
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
