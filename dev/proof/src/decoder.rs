//! The decoder of 64-bit Arm.

pub use yaxpeax_arm::armv8::a64::{Instruction, Opcode, Operand};

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::InstDecoder;

/// Decodes the word at the start of `code`. `None` if it is not an instruction.
pub fn decode(code: &[u8]) -> Option<Instruction> {
    InstDecoder::default().decode(&mut U8Reader::new(code.get(..4)?)).ok()
}

/// An instruction in the syntax of Arm's manual.
pub fn text(instruction: Option<&Instruction>) -> String {
    instruction.map_or("an undefined word".into(), ToString::to_string)
}
