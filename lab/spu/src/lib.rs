//! The Cell's SPU: instruction set, assembler, cycle-accurate simulator, instruction scheduler, AES kernels written as
//! dataflow, and a Lockstep device that runs them.
#![forbid(unsafe_code)]

pub mod asm;
pub mod device;
pub mod isa;
pub mod kernels;
pub mod schedule;
pub mod sim;
