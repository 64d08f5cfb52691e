//! Tests of the QPUs.

mod alu;
mod asm;
mod isa;
