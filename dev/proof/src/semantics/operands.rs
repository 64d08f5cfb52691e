//! Operands: registers, memory and constants.

use iced_x86::{EncodingKind, Instruction, Mnemonic, OpKind, Register};

use crate::machine::{Bytes, Kind, Machine, Step, Stop};
use crate::value::{Domain, Flag, Shift};

impl<D: Domain> Machine<D> {
    /// The sum of the parts of an address, before truncation to the address size.
    fn address_sum(
        &mut self,
        base: &[D::Byte],
        index: &[D::Byte],
        scale: u32,
        displacement: u64,
    ) -> [D::Byte; 8] {
        let mut scaled: [D::Byte; 8] = std::array::from_fn(|place| index[place]);
        self.domain.shift(&mut scaled, Shift::Left, scale.trailing_zeros());
        let (mut sum, none) = ([D::constant(0); 8], Flag::new(false, false));
        self.domain.add(base, &scaled, none, &mut sum);
        let partial = sum;
        self.domain.add(&partial, &displacement.to_le_bytes().map(D::constant), none, &mut sum);
        sum
    }

    /// The address of a memory operand, as a value.
    pub(crate) fn effective_address(&mut self, i: &Instruction) -> [D::Byte; 8] {
        if i.is_ip_rel_memory_operand() {
            return i.ip_rel_memory_address().to_le_bytes().map(D::constant);
        }
        let part = |register| match register {
            Register::None => [D::constant(0); 64],
            register => self.register(register),
        };
        let (base, index) = (part(i.memory_base()), part(i.memory_index()));
        self.address_sum(&base[..8], &index[..8], i.memory_index_scale(), i.memory_displacement64())
    }

    /// The address of a memory operand.
    pub(super) fn address(&mut self, i: &Instruction) -> Result<u64, Stop> {
        if matches!(i.segment_prefix(), Register::FS | Register::GS) {
            return Err(self.stop("data of a thread are not supported"));
        }
        let address = self.effective_address(i);
        self.public(Kind::Address, "address", &address)
    }

    /// The address and the number of bytes of a memory operand. The run stops if the instruction requires an aligned
    /// address and the address is not aligned.
    fn accessed(&mut self, i: &Instruction) -> Result<(u64, usize), Stop> {
        let (address, size) = (self.address(i)?, i.memory_size().size());
        if must_be_aligned(i) && !address.is_multiple_of(size as u64) {
            return Err(self.stop("the address is not aligned"));
        }
        Ok((address, size))
    }

    /// The value of an operand with zeros above it. Constants have 8 bytes with the sign extended.
    pub(super) fn read(&mut self, i: &Instruction, operand: u32) -> Result<Bytes<D>, Stop> {
        match i.op_kind(operand) {
            OpKind::Register => {
                let register = i.op_register(operand);
                if !(register.is_gpr() || register.is_vector_register() || register.is_k()) {
                    return Err(self.stop("a register of another kind has no semantics"));
                }
                Ok(self.register(register))
            }
            OpKind::Memory => {
                let (address, size) = self.accessed(i)?;
                if !i.is_broadcast() {
                    return self.load(address, size);
                }
                let size = i.memory_size().element_size();
                let element = self.load(address, size)?;
                Ok(std::array::from_fn(|place| element[place % size]))
            }
            _ => {
                let mut bytes = [D::constant(0); 64];
                bytes[..8].copy_from_slice(&i.immediate(operand).to_le_bytes().map(D::constant));
                Ok(bytes)
            }
        }
    }

    /// The bytes of the result of an operation for which the domain has no method, with zeros above it.
    pub(super) fn opaque(&mut self, value: u64, is_secret: bool) -> Bytes<D> {
        let mut bytes = [D::constant(0); 64];
        for (byte, value) in bytes.iter_mut().zip(value.to_le_bytes()) {
            *byte = self.domain.opaque(value, if is_secret { 0xff } else { 0 });
        }
        bytes
    }

    /// Number of bytes of an operand.
    pub(super) fn size(&self, i: &Instruction, operand: u32) -> usize {
        match i.op_kind(operand) {
            OpKind::Register => i.op_register(operand).size(),
            OpKind::Memory if i.is_broadcast() => i.op_register(0).size(),
            OpKind::Memory => i.memory_size().size(),
            _ => 8,
        }
    }

    /// Writes an operand. Instructions with a VEX or EVEX prefix clear the higher bytes of a vector register.
    pub(super) fn write(&mut self, i: &Instruction, operand: u32, bytes: &Bytes<D>) -> Step {
        if i.has_op_mask() {
            return Err(self.stop("this instruction with a mask has no semantics"));
        }
        match i.op_kind(operand) {
            OpKind::Register => {
                let register = i.op_register(operand);
                if !(register.is_gpr() || register.is_vector_register()) {
                    return Err(self.stop("this form, whose result is a mask or in a register of another kind, has no semantics"));
                }
                if register.is_vector_register() {
                    self.set_vector(register, bytes, is_legacy(i));
                } else {
                    self.set_general(register, bytes);
                }
                Ok(())
            }
            _ => {
                let (address, size) = self.accessed(i)?;
                self.store(address, &bytes[..size])
            }
        }
    }

    /// The two sources of a vector instruction: the destination and operand 1 in the encoding of SSE, otherwise operands 1 and 2.
    pub(super) fn sources(&mut self, i: &Instruction) -> Result<(Bytes<D>, Bytes<D>), Stop> {
        let first = first_source(i);
        Ok((self.read(i, first)?, self.read(i, first + 1)?))
    }

    /// The last operand, a constant of 8 bits.
    pub(super) fn constant(&self, i: &Instruction) -> Result<usize, Stop> {
        let last = i.op_count() - 1;
        if i.op_kind(last) != OpKind::Immediate8 {
            return Err(self.stop("this form, whose last operand is no constant, has no semantics"));
        }
        Ok(i.immediate(last) as usize & 0xff)
    }
}

/// A value of `size` bytes with zeros above it.
#[inline(always)]
pub(super) fn filled<D: Domain>(size: usize, mut byte: impl FnMut(usize) -> D::Byte) -> Bytes<D> {
    let mut bytes = [D::constant(0); 64];
    for (place, result) in bytes[..size].iter_mut().enumerate() {
        *result = byte(place);
    }
    bytes
}

/// True if a memory operand must be aligned to its size: for moves whose names say so, and for operands of 16 bytes in the encoding of SSE
/// except those of unaligned moves (Intel's manual, volume 1, section 4.1.1).
fn must_be_aligned(i: &Instruction) -> bool {
    use Mnemonic::*;
    match i.mnemonic() {
        Vmovdqa | Vmovaps | Vmovapd | Vmovdqa32 | Vmovdqa64 | Vmovntdq | Vmovntps => true,
        Movdqu | Movups | Movupd | Lddqu => false,
        _ => is_legacy(i) && i.memory_size().size() == 16,
    }
}

/// The index of the first source of a vector instruction.
pub(super) fn first_source(i: &Instruction) -> u32 {
    u32::from(!is_legacy(i))
}

/// True for the encoding of SSE and of general registers.
pub(crate) fn is_legacy(i: &Instruction) -> bool {
    i.encoding() == EncodingKind::Legacy
}

/// True if two register operands are the same register. The XOR of these operands then does not depend on the register.
pub(crate) fn are_same(i: &Instruction, x: u32, y: u32) -> bool {
    i.op_kind(x) == OpKind::Register
        && i.op_kind(y) == OpKind::Register
        && i.op_register(x) == i.op_register(y)
}
