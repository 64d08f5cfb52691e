//! Changes of one instruction.

use std::fmt;

use iced_x86::{
    Code, ConstantOffsets, Decoder, DecoderOptions, Encoder, FlowControl, Instruction, Mnemonic, OpKind,
    Register,
};

use super::effects::{Effects, is_same_operation};
use crate::image::Image;
use crate::machine::{Change, text};
use crate::random::Random;
use crate::semantics;
use crate::taint::Taint;

/// The kind of a change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A register operand is replaced by another register of the same size.
    Register,
    /// A bit of an immediate operand or of a displacement is inverted.
    Constant,
    /// The operation is replaced by another operation with operands of the same kinds.
    Opcode,
    /// The instruction and the next one are exchanged.
    Order,
    /// The instruction is removed.
    Dropped,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 5] = [Kind::Register, Kind::Constant, Kind::Opcode, Kind::Order, Kind::Dropped];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Register => "register",
            Kind::Constant => "constant",
            Kind::Opcode => "opcode",
            Kind::Order => "order",
            Kind::Dropped => "dropped",
        })
    }
}

/// A program with one change. The changed code has as many bytes as the code that it replaces.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The kind of the change.
    pub kind: Kind,
    /// The address of the first changed instruction.
    pub address: u64,
    /// The bytes at this address after the change.
    pub code: Vec<u8>,
    /// The instructions before the change: one, or two that are exchanged.
    pub before: Vec<Instruction>,
}

impl Mutant {
    /// The change, for an analysis of its effect.
    pub(super) fn change(&self) -> Change {
        Change { before: self.before.clone(), after: decode(&self.code, self.address) }
    }

    /// The instructions after the change, without those that fill space.
    pub fn after(&self) -> Vec<Instruction> {
        decode(&self.code, self.address).into_iter().filter(|i| i.mnemonic() != Mnemonic::Nop).collect()
    }

    /// The change as text: instructions before and after.
    pub fn text(&self) -> String {
        let join = |code: &[Instruction]| code.iter().map(text).collect::<Vec<_>>().join("; ");
        let after = self.after();
        let after = if after.is_empty() { "nothing".into() } else { join(&after) };
        format!("{} -> {after}", join(&self.before))
    }
}

/// The instructions of code.
pub(super) fn decode(code: &[u8], address: u64) -> Vec<Instruction> {
    Decoder::with_ip(64, code, address, DecoderOptions::NONE).into_iter().collect()
}

/// Makes changes of the instructions of an image.
pub(super) struct Changer<'a> {
    image: &'a Image,
    encoder: Encoder,
    /// The operations that the table of instructions contains.
    codes: Vec<Code>,
}

impl<'a> Changer<'a> {
    /// A changer for the instructions of an image.
    pub(super) fn new(image: &'a Image) -> Self {
        let has_semantics = |code: &Code| semantics::of::<Taint>(code.mnemonic()).is_some();
        let codes = Code::values().filter(|code| code.op_code().mode64()).filter(has_semantics).collect();
        Changer { image, encoder: Encoder::new(64), codes }
    }

    /// A random change of the instruction at an address. `None` if the instruction has no change of this kind.
    pub(super) fn change(&mut self, kind: Kind, address: u64, random: &mut Random) -> Option<Mutant> {
        let code = self.image.code_at(address)?;
        let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        let bytes = &code[..instruction.len()];
        let mut before = vec![instruction];
        let code = match kind {
            Kind::Register => self.other_register(&instruction, random)?,
            Kind::Constant => {
                other_constant(&instruction, decoder.get_constant_offsets(&instruction), bytes, random)?
            }
            Kind::Opcode => self.other_operation(&instruction, random)?,
            Kind::Order => {
                let next = decoder.decode();
                before.push(next);
                self.exchanged(&instruction, &next)?
            }
            Kind::Dropped => Vec::new(),
        };
        let len: usize = before.iter().map(Instruction::len).sum();
        let code = filled(code, len)?;
        let mutant = Mutant { kind, address, code, before };
        is_change(&mutant).then_some(mutant)
    }

    fn encoded(&mut self, instruction: &Instruction, address: u64) -> Option<Vec<u8>> {
        self.encoder.encode(instruction, address).ok()?;
        Some(self.encoder.take_buffer())
    }

    /// The instruction with one of its registers replaced by another one of the same class. The stack pointer is left as it is.
    fn other_register(&mut self, instruction: &Instruction, random: &mut Random) -> Option<Vec<u8>> {
        let mut changed = *instruction;
        let places = instruction.op_count() + 3;
        let place = random.below(places as usize) as u32;
        let register = match place {
            place if place < instruction.op_count() => match instruction.op_kind(place) {
                OpKind::Register => instruction.op_register(place),
                _ => return None,
            },
            place if place == instruction.op_count() => instruction.memory_base(),
            place if place == instruction.op_count() + 1 => instruction.memory_index(),
            _ => instruction.op_mask(),
        };
        let other = replacement(register, random)?;
        match place {
            place if place < instruction.op_count() => changed.try_set_op_register(place, other).ok()?,
            place if place == instruction.op_count() => changed.set_memory_base(other),
            place if place == instruction.op_count() + 1 => changed.set_memory_index(other),
            _ => changed.set_op_mask(other),
        }
        self.encoded(&changed, instruction.ip())
    }

    /// The instruction with another operation that takes operands of the same kinds.
    fn other_operation(&mut self, instruction: &Instruction, random: &mut Random) -> Option<Vec<u8>> {
        let (code, form) = (instruction.code(), instruction.op_code());
        let is_alike = |other: &&Code| {
            let form_of_other = other.op_code();
            let count = form.op_count();
            **other != code
                && form_of_other.encoding() == form.encoding()
                && form_of_other.op_count() == count
                && (0..count).all(|operand| form_of_other.op_kind(operand) == form.op_kind(operand))
                && other.flow_control() == code.flow_control()
                && !is_same_operation(other.mnemonic(), code.mnemonic())
        };
        let alike: Vec<Code> = self.codes.iter().filter(is_alike).copied().collect();
        let mut changed = *instruction;
        changed.set_code(*alike.get(random.below(alike.len().max(1)))?);
        self.encoded(&changed, instruction.ip())
    }

    /// Two instructions in the other order. `None` if their order does not matter, because no result of one instruction
    /// is used or overwritten by the other one.
    fn exchanged(&mut self, first: &Instruction, second: &Instruction) -> Option<Vec<u8>> {
        let is_plain =
            |i: &Instruction| i.flow_control() == FlowControl::Next && i.mnemonic() != Mnemonic::Nop;
        if !is_plain(first) || !is_plain(second) || !Effects::of(first).conflict(&Effects::of(second)) {
            return None;
        }
        let mut code = self.encoded(second, first.ip())?;
        let moved = self.encoded(first, first.ip() + code.len() as u64)?;
        code.extend(moved);
        Some(code)
    }
}

/// Fills the code with NOPs up to `len` bytes. `None` if the code is longer than `len`.
fn filled(mut code: Vec<u8>, len: usize) -> Option<Vec<u8>> {
    const NOP: u8 = 0x90;
    (code.len() <= len).then(|| {
        code.resize(len, NOP);
        code
    })
}

/// True if the mutant differs from the program, and each of its instructions can be decoded.
fn is_change(mutant: &Mutant) -> bool {
    let after = decode(&mutant.code, mutant.address);
    let is_same = |x: &Instruction, y: &Instruction| text(x) == text(y);
    let is_nop = |i: &Instruction| i.mnemonic() == Mnemonic::Nop;
    let (first, rest) = (&mutant.before[0], &after);
    !is_nop(first)
        && first.mnemonic() != Mnemonic::Ud2
        && rest.iter().all(|i| !i.is_invalid())
        && !(mutant.before.len() == 1 && rest.first().is_some_and(|i| is_same(i, first)))
}

/// Another register of the class of a register, except the stack pointer. All registers of a class are equally likely.
fn replacement(register: Register, random: &mut Random) -> Option<Register> {
    const STACK_POINTERS: [Register; 4] = [Register::RSP, Register::ESP, Register::SP, Register::SPL];
    let (first, count) = match register {
        _ if STACK_POINTERS.contains(&register) => return None,
        _ if register.is_gpr64() => (Register::RAX, 16),
        _ if register.is_gpr32() => (Register::EAX, 16),
        _ if register.is_gpr16() => (Register::AX, 16),
        _ if register.is_gpr8() => (Register::AL, 4),
        _ if register.is_xmm() => (Register::XMM0, 32),
        _ if register.is_ymm() => (Register::YMM0, 32),
        _ if register.is_zmm() => (Register::ZMM0, 32),
        _ if register.is_k() => (Register::K0, 8),
        _ => return None,
    };
    let other = first + random.below(count) as u32;
    (other != register && !STACK_POINTERS.contains(&other)).then_some(other)
}

/// The instruction with one bit of an immediate operand or of a displacement inverted. Only the lowest 12 bits are inverted, because a
/// change of a higher bit moves addresses far out of bounds.
fn other_constant(
    instruction: &Instruction,
    offsets: ConstantOffsets,
    bytes: &[u8],
    random: &mut Random,
) -> Option<Vec<u8>> {
    const MOST_BITS: usize = 12;
    if instruction.flow_control() != FlowControl::Next {
        return None;
    }
    let immediate = (offsets.immediate_offset(), offsets.immediate_size());
    let displacement = (offsets.displacement_offset(), offsets.displacement_size());
    let (offset, size) = if random.below(2) == 0 { immediate } else { displacement };
    let bit = random.below((8 * size).clamp(1, MOST_BITS));
    let mut code = bytes.to_vec();
    if size == 0 {
        return None;
    }
    code[offset + bit / 8] ^= 1 << (bit % 8);
    Some(code)
}
