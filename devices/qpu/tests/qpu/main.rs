//! Tests of the QPUs.

mod alu;
mod asm;
mod board;
mod device;
mod gates;
mod hazards;
mod isa;
mod kernels;
mod lang;
mod memory;
mod observe;
mod sim;
mod suite;
