//! Operands: registers, constants and addresses.

use std::array::from_fn;

use yaxpeax_arm::armv8::a64::{Instruction, Operand, SIMDSizeCode, ShiftStyle, SizeCode};

use crate::machine::{Kind, Machine, Stop};
use crate::value::{Domain, Flag, Shift};

/// The content of a general register.
pub(super) type Word<D> = [<D as Domain>::Byte; 8];
/// The content of a vector register.
pub(super) type Block<D> = [<D as Domain>::Byte; 16];

/// A vector register as an operand.
#[derive(Clone, Copy)]
pub(super) struct Lanes {
    /// The number of the register.
    pub(super) register: usize,
    /// Number of bytes that the instruction uses.
    pub(super) size: usize,
    /// Number of bytes of an element.
    pub(super) element: usize,
    /// The index of the element, if the operand is one element.
    pub(super) index: usize,
}

/// The number of bytes of a register or an element.
fn bytes_of(size: SIMDSizeCode) -> usize {
    match size {
        SIMDSizeCode::B => 1,
        SIMDSizeCode::H => 2,
        SIMDSizeCode::S => 4,
        SIMDSizeCode::D => 8,
        SIMDSizeCode::Q => 16,
    }
}

/// The vector register of an operand, if it is one.
pub(super) fn lanes(operand: Operand) -> Option<Lanes> {
    let (register, size, element, index) = match operand {
        Operand::SIMDRegister(size, register) => (register, size, size, 0),
        Operand::SIMDRegisterElements(size, register, element) => (register, size, element, 0),
        Operand::SIMDRegisterElementsLane(size, register, element, index) => (register, size, element, index),
        _ => return None,
    };
    let (size, element) = (bytes_of(size), bytes_of(element));
    Some(Lanes { register: register.into(), size, element, index: index.into() })
}

/// The vector registers of a list, and the number of registers.
pub(super) fn list(operand: Operand) -> Option<(Lanes, usize)> {
    let (register, size, element, number, index) = match operand {
        Operand::SIMDRegisterGroup(size, register, element, number) => (register, size, element, number, 0),
        Operand::SIMDRegisterGroupLane(register, element, number, index) => {
            (register, SIMDSizeCode::Q, element, number, index)
        }
        _ => return None,
    };
    let (size, element) = (bytes_of(size), bytes_of(element));
    Some((Lanes { register: register.into(), size, element, index: index.into() }, number.into()))
}

/// The number of bytes of a general register operand; `None` for other operands.
pub(super) fn width(operand: Operand) -> Option<usize> {
    let size = match operand {
        Operand::Register(size, _) | Operand::RegisterOrSP(size, _) => size,
        _ => return None,
    };
    Some(if size == SizeCode::X { 8 } else { 4 })
}

/// A constant of an operand.
pub(super) fn constant(operand: Operand) -> Option<u64> {
    Some(match operand {
        Operand::Immediate(value) => value.into(),
        Operand::Imm64(value) => value,
        Operand::Imm16(value) => value.into(),
        Operand::ImmShift(value, count) => u64::from(value) << count,
        _ => return None,
    })
}

/// The lowest `size` bytes of a word, with zeros above them.
pub(super) fn truncated<D: Domain>(word: Word<D>, size: usize) -> Word<D> {
    from_fn(|place| if place < size { word[place] } else { D::constant(0) })
}

impl<D: Domain> Machine<D> {
    /// The value of an operand of a form that the table does not have.
    pub(super) fn no_form<T>(&self, i: &Instruction) -> Result<T, Stop> {
        Err(self.stop(format!("this form of `{i}` has no semantics")))
    }

    /// A public word.
    pub(super) fn word(value: u64) -> Word<D> {
        value.to_le_bytes().map(D::constant)
    }

    /// A general register, where number 31 is the zero register.
    pub(super) fn general_or_zero(&self, number: u16) -> Word<D> {
        if number == 31 { Self::word(0) } else { self.general_number(number.into()) }
    }

    /// The value of an operand of an operation on `size` bytes.
    pub(super) fn value(&mut self, i: &Instruction, operand: usize, size: usize) -> Result<Word<D>, Stop> {
        let operand = i.operands[operand];
        let word = match operand {
            Operand::Register(_, number) => self.general_or_zero(number),
            Operand::RegisterOrSP(_, number) => self.general_number(number.into()),
            Operand::RegShift(style, count, register_size, number) => {
                let word = self.general_or_zero(number);
                let word = if register_size == SizeCode::W { truncated::<D>(word, 4) } else { word };
                self.modified(style, count.into(), word, size)?
            }
            _ => match constant(operand) {
                Some(value) => Self::word(value),
                None => return self.no_form(i),
            },
        };
        Ok(truncated::<D>(word, size))
    }

    /// A register that is shifted or extended within `size` bytes.
    fn modified(
        &mut self,
        style: ShiftStyle,
        count: u32,
        mut word: Word<D>,
        size: usize,
    ) -> Result<Word<D>, Stop> {
        let kind = match style {
            ShiftStyle::LSL => Shift::Left,
            ShiftStyle::LSR => Shift::Right,
            ShiftStyle::ASR => Shift::Arithmetic,
            ShiftStyle::ROR => return Ok(self.extracted(word, word, count, size)),
            ShiftStyle::UXTH | ShiftStyle::UXTW => {
                word = truncated::<D>(word, if style == ShiftStyle::UXTH { 2 } else { 4 });
                Shift::Left
            }
            _ => return Err(self.stop("this extension of a register has no semantics")),
        };
        self.domain.shift(&mut word[..size], kind, count);
        Ok(word)
    }

    /// The lowest `from` bytes of a word, extended to 8 bytes by zeros or by the sign.
    pub(super) fn extended(&mut self, word: Word<D>, from: usize, is_signed: bool) -> Word<D> {
        let mut word = truncated::<D>(word, from);
        if is_signed {
            let unused = 64 - 8 * from as u32;
            self.domain.shift(&mut word, Shift::Left, unused);
            self.domain.shift(&mut word, Shift::Arithmetic, unused);
        }
        word
    }

    /// `size` bytes, from bit `count`, of the concatenation of two words of `size` bytes.
    pub(super) fn extracted(&mut self, high: Word<D>, low: Word<D>, count: u32, size: usize) -> Word<D> {
        let (mut high, mut low) = (high, low);
        self.domain.shift(&mut high[..size], Shift::Left, 8 * size as u32 - count);
        self.domain.shift(&mut low[..size], Shift::Right, count);
        truncated::<D>(from_fn(|place| self.domain.or(high[place], low[place])), size)
    }

    /// Sets a general register operand. Bytes above the operand are cleared.
    pub(super) fn set(&mut self, i: &Instruction, operand: usize, word: Word<D>) -> Result<(), Stop> {
        let operand = i.operands[operand];
        let Some(size) = width(operand) else { return self.no_form(i) };
        match operand {
            Operand::Register(_, 31) => {}
            Operand::Register(_, number) | Operand::RegisterOrSP(_, number) => {
                self.set_general_number(number.into(), truncated::<D>(word, size));
            }
            _ => unreachable!("`width` accepts only registers"),
        }
        Ok(())
    }

    /// Sets the lowest `size` bytes of a vector register, and clears the bytes above them.
    pub(super) fn set_lanes(&mut self, lanes: Lanes, block: &Block<D>) {
        let cleared = from_fn(|place| if place < lanes.size { block[place] } else { D::constant(0) });
        self.set_vector_number(lanes.register, cleared);
    }

    /// A number of 64 bits that depends on a secret or not.
    pub(super) fn opaque_word(&mut self, value: u64, is_secret: bool) -> Word<D> {
        value.to_le_bytes().map(|byte| self.domain.opaque(byte, if is_secret { 0xff } else { 0 }))
    }

    /// The base register of an address as a public number. The stack pointer must be a multiple of 16.
    fn base(&mut self, number: u16) -> Result<u64, Stop> {
        let word = self.general_number(number.into());
        let base = self.public(Kind::Address, "address", &word)?;
        if number == 31 && base % 16 != 0 {
            return Err(self.stop("the stack pointer is not a multiple of 16"));
        }
        Ok(base)
    }

    /// The address of a memory operand. Updates the base register if the operand states this.
    pub(super) fn address_of(&mut self, i: &Instruction, operand: usize) -> Result<u64, Stop> {
        let (number, address, after) = match i.operands[operand] {
            Operand::RegPreIndex(number, offset, is_updated) => {
                let address = self.base(number)?.wrapping_add_signed(offset.into());
                (number, address, is_updated.then_some(address))
            }
            Operand::RegPostIndex(number, offset) => {
                let base = self.base(number)?;
                (number, base, Some(base.wrapping_add_signed(offset.into())))
            }
            Operand::RegRegOffset(number, index, size, style, count) => {
                let base = self.base(number)?;
                let word = self.general_or_zero(index);
                let word = if size == SizeCode::W { truncated::<D>(word, 4) } else { word };
                let word = self.modified(style, count.into(), word, 8)?;
                let index = self.public(Kind::Address, "address", &word)?;
                (number, base.wrapping_add(index), None)
            }
            _ => return self.no_form(i),
        };
        if let Some(after) = after {
            self.set_general_number(number.into(), Self::word(after));
        }
        Ok(address)
    }

    /// The value of a condition of the encoding (DDI 0487, C1.2.4).
    ///
    /// # Errors
    /// If the condition depends on an undefined flag.
    pub(super) fn holds(&self, condition: u8) -> Result<Flag, Stop> {
        let flags = &self.flags;
        let combined = |x: Flag, y: Flag, value| {
            let (secret, defined) = (x.secret || y.secret, x.defined && y.defined);
            Flag { value, secret, defined }
        };
        let not = |flag: Flag| Flag { value: !flag.value, ..flag };
        let greater_or_equal = combined(flags.sign, flags.overflow, flags.sign.value == flags.overflow.value);
        let flag = match condition >> 1 {
            0 => flags.zero,
            1 => flags.carry,
            2 => flags.sign,
            3 => flags.overflow,
            4 => combined(flags.carry, flags.zero, flags.carry.value && !flags.zero.value),
            5 => greater_or_equal,
            6 => combined(greater_or_equal, flags.zero, greater_or_equal.value && !flags.zero.value),
            _ => return Ok(Flag::new(true, false)),
        };
        self.defined(if condition & 1 == 1 { not(flag) } else { flag })
    }
}
