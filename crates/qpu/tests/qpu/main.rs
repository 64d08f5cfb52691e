//! Tests of the QPUs.

mod alu;
mod asm;
mod hazards;
mod isa;
mod memory;
mod sim;
