//! An assembler for text in the syntax of vc4asm, without its macros, conditional assembly and expressions. The functions of
//! `vc4.qinc` that set up the VPM and DMA, such as `vpm_setup`, are part of the assembler, so it ignores the inclusion of that
//! file. It generates the same words as vc4asm (`make qpu-vc4asm`), except for `mov` of a small constant: vc4asm converts it
//! into `ldi` if no other operation is in the instruction.
//!
//! A line is an instruction. It consists of one operation for each ALU and a signal, separated by semicolons. `#` begins a
//! comment. `:name` or `name:` defines a label, and `:name`, `r:name` or `name` refers to it. Numbers are decimal, hexadecimal
//! (`0x`), or floats with a point.
//!
//! ```text
//! :loop
//!   mov ra0, unif;  v8min rb1, r2, r2;  ldtmu0
//!   sub.setf r0, r0, 1
//!   brr.anynz -, :loop
//!   nop; nop
//! ```

mod instruction;
mod operands;
mod setup;
mod text;

pub use text::{AsmError, Program, assemble};
