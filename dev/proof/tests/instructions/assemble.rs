//! Encodings of all instructions of the table.

use iced_x86::{Code, Encoder, Instruction, Mnemonic, OpCodeOperandKind, OpKind, Register};
use lockstep_proof::semantics;
use lockstep_proof::taint::Taint;

/// True for an instruction that needs a stack, a target or certain values in registers. The test in `secrets.rs` executes divisions. Only
/// the analysis of kernels executes the other instructions.
fn needs_more(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        Push | Pop
            | Call
            | Ret
            | Leave
            | Jmp
            | Ud2
            | Int3
            | Cpuid
            | Xgetbv
            | Div
            | Idiv
            | Stosb
            | Stosd
            | Stosq
            | Movsb
            | Movsq
    ) || is_jump_on_condition(mnemonic)
}

fn is_jump_on_condition(mnemonic: Mnemonic) -> bool {
    format!("{mnemonic:?}").starts_with('J')
}

/// The operand that is chosen for an operand of an encoding.
enum Operand {
    Register(Register),
    Memory,
    Constant(OpKind),
}

/// Chooses an operand of this kind. Returns `None` if the table has no instruction with such an operand.
fn operand(kind: OpCodeOperandKind, index: u32, prefers_memory: bool) -> Option<Operand> {
    use OpCodeOperandKind::*;
    let either = |register| if prefers_memory { Operand::Memory } else { Operand::Register(register) };
    // Each operand has its own register. RDI (the base of memory) and RSP are not used.
    let general = |size: Register| {
        let base = [3, 6, 8, 9][index as usize];
        Operand::Register(size + base)
    };
    let vector = |first: Register| Operand::Register(first + [1, 4, 7, 10][index as usize]);
    Some(match kind {
        r8_reg | r8_opcode => {
            Operand::Register([Register::BL, Register::R9L, Register::R10L][index as usize])
        }
        r16_reg | r16_opcode | r16_rm => general(Register::AX),
        r32_reg | r32_opcode | r32_rm | r32_vvvv => general(Register::EAX),
        r64_reg | r64_opcode | r64_rm | r64_vvvv => general(Register::RAX),
        r8_or_mem => either([Register::BL, Register::R9L, Register::R10L][index as usize]),
        r16_or_mem if prefers_memory => Operand::Memory,
        r16_or_mem => general(Register::AX),
        r32_or_mem if prefers_memory => Operand::Memory,
        r32_or_mem => general(Register::EAX),
        r64_or_mem if prefers_memory => Operand::Memory,
        r64_or_mem => general(Register::RAX),
        xmm_reg | xmm_rm | xmm_vvvv | xmm_is4 => vector(Register::XMM0),
        ymm_reg | ymm_rm | ymm_vvvv | ymm_is4 => vector(Register::YMM0),
        zmm_reg | zmm_rm | zmm_vvvv => vector(Register::ZMM0),
        xmm_or_mem if prefers_memory => Operand::Memory,
        xmm_or_mem => vector(Register::XMM0),
        ymm_or_mem if prefers_memory => Operand::Memory,
        ymm_or_mem => vector(Register::YMM0),
        zmm_or_mem if prefers_memory => Operand::Memory,
        zmm_or_mem => vector(Register::ZMM0),
        k_reg | k_rm | k_vvvv => Operand::Register(Register::K1 + index),
        k_or_mem => either(Register::K1 + index),
        mem => Operand::Memory,
        imm8 => Operand::Constant(OpKind::Immediate8),
        imm8sex16 => Operand::Constant(OpKind::Immediate8to16),
        imm8sex32 => Operand::Constant(OpKind::Immediate8to32),
        imm8sex64 => Operand::Constant(OpKind::Immediate8to64),
        imm16 => Operand::Constant(OpKind::Immediate16),
        imm32 => Operand::Constant(OpKind::Immediate32),
        imm32sex64 => Operand::Constant(OpKind::Immediate32to64),
        imm64 => Operand::Constant(OpKind::Immediate64),
        imm8_const_1 => Operand::Constant(OpKind::Immediate8),
        cl => Operand::Register(Register::CL),
        al => Operand::Register(Register::AL),
        ax => Operand::Register(Register::AX),
        eax => Operand::Register(Register::EAX),
        rax => Operand::Register(Register::RAX),
        _ => return Option::None,
    })
}

/// An instruction with this constant; `None` if the encoding has operands of other kinds.
pub(crate) fn assemble(code: Code, prefers_memory: bool, constant: u64) -> Option<(Instruction, Vec<u8>)> {
    let mut instruction = Instruction::default();
    instruction.set_code(code);
    let op_code = code.op_code();
    for (index, kind) in op_code.op_kinds().iter().enumerate() {
        let index = index as u32;
        match operand(*kind, index, prefers_memory)? {
            Operand::Register(register) => {
                instruction.set_op_kind(index, OpKind::Register);
                instruction.set_op_register(index, register);
            }
            Operand::Memory => {
                instruction.set_op_kind(index, OpKind::Memory);
                instruction.set_memory_base(Register::RDI);
            }
            Operand::Constant(op_kind) => {
                let constant = if *kind == OpCodeOperandKind::imm8_const_1 { 1 } else { constant };
                let constant = match op_kind {
                    OpKind::Immediate8 => constant & 0xff,
                    OpKind::Immediate16 => constant & 0xffff,
                    OpKind::Immediate32 => constant & 0xffff_ffff,
                    OpKind::Immediate32to64 => constant as i32 as u64,
                    OpKind::Immediate64 => constant,
                    _ => constant as i8 as u64,
                };
                instruction.set_op_kind(index, op_kind);
                instruction.set_immediate_u64(index, constant);
            }
        }
    }
    let mut encoder = Encoder::new(64);
    encoder.encode(&instruction, 0).ok()?;
    Some((instruction, encoder.take_buffer()))
}

/// All encodings of the table for 64-bit code that work on registers and memory.
pub(crate) fn encodings() -> impl Iterator<Item = Code> {
    Code::values().filter(|code| {
        code.op_code().mode64()
            && semantics::of::<Taint>(code.mnemonic()).is_some()
            && !needs_more(code.mnemonic())
    })
}
