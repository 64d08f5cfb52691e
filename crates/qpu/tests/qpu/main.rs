//! Tests of the QPUs.

mod alu;
mod asm;
mod gates;
mod hazards;
mod isa;
mod kernels;
mod memory;
mod sim;
mod suite;
