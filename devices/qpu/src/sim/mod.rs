//! A simulator of the QPUs. It computes the results of instructions, and reports a fault for invalid sequences of instructions.
//! A value is the 32 bits of an element.
//!
//! The rules for flags and for modes of packing come from vc4asm's addendum and from vc4asm's table of operations. Floats of
//! the hardware have no infinities, no NaN and no denormals; denormals become zero. The simulator uses the infinities and NaN
//! of the host.

mod alu;
mod cache;
mod counters;
mod dma;
mod execute;
mod fault;
mod flags;
mod hazards;
mod machine;
mod memory;
mod observe;
mod pack;
mod program;
mod qpu;
mod shared;
pub mod timing;
mod tmu;
mod vpm;

pub use counters::Counters;
pub use fault::{Fault, FaultKind};
pub use hazards::{Hazard, Hazards};
pub use machine::{Leftovers, Machine, Run};
pub use observe::{Event, Observer, Stalls};
pub use pack::{pack_file_a, pack_mul, unpack, unpack_r4};
pub use program::Program;
pub use qpu::Vector;

/// The number of QPUs of the chip.
pub const QPUS: u8 = (SLICES * QPUS_PER_SLICE) as u8;

/// Number of slices of the chip. The QPUs of a slice share two texture units, and caches for instructions and uniforms.
const SLICES: usize = 3;
const QPUS_PER_SLICE: usize = 4;

/// The result of an operation for one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The 32 bits of the result.
    pub value: u32,
    /// The flag C. The flags Z and N follow from the value.
    pub carry: bool,
}
