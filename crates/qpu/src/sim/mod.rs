//! A simulator: what instructions compute, and which sequences of them are refused. Values are the 32 bits of an element.
//!
//! Sources of the flags and of the modes of packing: the addendum, and vc4asm's table of operations. Floats have no denormals
//! (they are zero) and neither infinities nor NaN: the simulator uses those of the host.

mod alu;
mod fault;
mod hazards;
mod machine;
mod pack;
mod qpu;
mod shared;

pub use fault::{Fault, FaultKind};
pub use hazards::{Hazard, Hazards};
pub use machine::{Machine, QPUS, Run};
pub use pack::{pack_file_a, pack_mul, unpack, unpack_r4};
pub use qpu::{CLOCKS_PER_INSTRUCTION, Vector};

/// The result of an operation for one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The result.
    pub value: u32,
    /// The flag C. The flags Z and N are those of the value.
    pub carry: bool,
}
