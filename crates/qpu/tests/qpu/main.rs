//! Tests of the QPUs.

mod alu;
mod asm;
mod hazards;
mod isa;
mod kernels;
mod memory;
mod sim;
