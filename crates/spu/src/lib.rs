//! The Cell's SPU: its instruction set, an assembler, a simulator that counts every cycle, a scheduler that finds
//! the issue slots, AES kernels written as plain dataflow, and all of it as a device of Lockstep.
#![forbid(unsafe_code)]

pub mod asm;
pub mod device;
pub mod isa;
pub mod kernels;
pub mod schedule;
pub mod sim;
