//! Reproduces a thesis on AES on the GPU of the Raspberry Pi with the simulated QPUs of VideoCore IV: the thesis's tables, the clocks of
//! Lockstep's kernels, and the documentation page.

mod appendix;
mod compile;
mod figures;
mod hypotheses;
mod kernel_run;
mod kernels;
pub mod language;
mod measured;
mod model;
mod page;
pub mod paper;
mod picture;
mod plots;
mod program;
mod programs;
mod report;
mod sections;
mod tables;
mod throughput;
mod window;

use lockstep_qpu::sim::Fault;

pub use appendix::{FirstKernel, Times};
pub use compile::Compiled;
pub use hypotheses::Hypothesis;
pub use kernel_run::{Data, Finished, kernel_listing, run_kernel};
pub use kernels::{KERNELS, Named};
pub use measured::{KEY_BITS, Measured, QPU_COUNTS, Spent};
pub use model::{CLOCK_HZ, HOST_BYTE, HOST_CALL, HOST_LONG_CALL, INVOCATION, LONG_CALL, Lengths};
pub use page::page;
pub use program::{MEMORY_BYTES, Ran, Setup, Uniform, listing, run};
pub use programs::{Access, Multiplication};
pub use report::{Chain, Report};
pub use sections::{Sections, sections};
pub use throughput::Rates;
pub use window::Window;

/// An error of this module.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No kernel has this name.
    #[error("the QPUs have no kernel {name}: there are {}", names().join(", "))]
    UnknownKernel {
        /// The name that was requested.
        name: String,
    },
    /// The kernel does not have this mode.
    #[error("{kernel} does not have the mode {requested}: it has {}", modes(kernel).join(", "))]
    UnknownMode {
        /// The name of the kernel.
        kernel: &'static str,
        /// The mode that was requested.
        requested: String,
    },
    /// A key size that AES does not have.
    #[error("keys of AES have 128, 192 or 256 bits, not {bits}")]
    KeySize {
        /// The size that was requested, in bits.
        bits: u32,
    },
    /// A kernel cannot be compiled or stops with a fault.
    #[error("{0}")]
    Kernel(String),
    /// A program has an instruction with an undefined result, or fails while it runs.
    #[error("{file}:{line}: {message}")]
    Program {
        /// The name of the file.
        file: String,
        /// The number of the line, counted from 1.
        line: usize,
        /// The mistake, or the rule that the instruction breaks.
        message: String,
    },
    /// A mistake in the text of a kernel or of a program.
    #[error("{file}:{line}:{column}: {message}")]
    Text {
        /// The name of the file.
        file: String,
        /// The number of the line, counted from 1.
        line: usize,
        /// The number of the character in the line, counted from 1.
        column: usize,
        /// The rule that the text breaks, and the remedy.
        message: String,
    },
    /// The data of a program cannot be placed.
    #[error("{0}")]
    Setup(String),
    /// A program continued at an address where it has no instruction.
    #[error("{file}: {fault}")]
    Fault {
        /// The name of the file.
        file: String,
        /// The fault and its address.
        fault: Fault,
    },
}

/// The names of all kernels.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = KERNELS.iter().map(|named| named.kernel).collect();
    names.dedup();
    names
}

/// The modes of a kernel, as arguments of `--mode`.
fn modes(kernel: &str) -> Vec<String> {
    KERNELS.iter().filter(|named| named.kernel == kernel).map(Named::argument).collect()
}

/// Finds a kernel by its name and its mode. The prefix `qpu/` of the name is optional. If no mode is given, the first mode is used.
///
/// # Errors
/// [`Error::UnknownKernel`] or [`Error::UnknownMode`].
pub fn kernel(name: &str, mode: Option<&str>) -> Result<&'static Named, Error> {
    let is_named = |named: &&Named| named.kernel == name || named.kernel.strip_prefix("qpu/") == Some(name);
    let mut found = KERNELS.iter().filter(is_named).peekable();
    let first = *found.peek().ok_or_else(|| Error::UnknownKernel { name: name.into() })?;
    let Some(mode) = mode else { return Ok(first) };
    let unknown = || Error::UnknownMode { kernel: first.kernel, requested: mode.into() };
    found.find(|named| named.argument().eq_ignore_ascii_case(mode)).ok_or_else(unknown)
}
