//! Assembler for text in the syntax of vc4asm, without its macros, conditional assembly and expressions. The words are those of
//! vc4asm (`make qpu-vc4asm`), but for `mov` of a small constant, which vc4asm turns into `ldi` if it is alone.
//!
//! A line is an instruction: one operation for each ALU, and a signal, separated by semicolons. `#` begins a comment. A label is
//! defined by `:name` or `name:`, and named by `:name`, `r:name` or `name`. Numbers are decimal, hexadecimal (`0x`), or floats
//! with a point.
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
mod text;

pub use text::{AsmError, Program, assemble};
