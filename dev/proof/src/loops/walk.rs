//! Execution of a part of a run for every number of iterations.
//!
//! The machine executes the instructions for the least number of iterations. In addition, a word of 64 bits may have a [`Slope`], which
//! states its value for all other numbers. Moves and linear operations keep slopes. For any other operation on such a word, the bits that
//! differ between iterations become unknown: they are marked like secrets, or become new symbols. The flags are treated in the same way
//! if they are not the same for all numbers of iterations. A branch or an address that depends on them is therefore reported.

use std::collections::BTreeMap;

use iced_x86::{ConditionCode, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use super::linear::{Linear, Slope};
use crate::machine::{Kind, Machine, Step};
use crate::memory::Denied;
use crate::semantics::{are_same, is_legacy};
use crate::value::{Domain, Flag, Number};

/// Registers have places below all addresses: 8 bytes for each general register, 64 for each vector register, and 8 for each mask.
pub(super) const VECTORS: u64 = 8 * 16;
pub(super) const MASKS: u64 = VECTORS + 64 * 32;
pub(super) const REGISTERS: u64 = MASKS + 8 * 8;

/// The number of bytes of a block.
pub(crate) const BLOCK: usize = 16;

/// A range of places.
pub(super) type Range = (u64, usize);

/// A buffer of data, whose length grows with the number of iterations.
#[derive(Clone, Debug)]
pub(super) struct Data {
    pub(super) address: u64,
    pub(super) len: Linear,
    /// The bytes that have been written.
    pub(super) written: Vec<bool>,
}

/// The state of a run.
#[derive(Clone)]
pub(crate) struct Walk<D: Domain> {
    pub(crate) machine: Machine<D>,
    /// The slopes of words, by their places.
    pub(super) slopes: BTreeMap<u64, Slope>,
    /// The greatest sum of both counts of iterations.
    pub(super) most: i64,
    pub(super) data: Vec<Data>,
    /// The slope of addresses of data. Bytes of data with equal offsets therefore have the same place relative to the iteration.
    pub(super) advance: Slope,
    /// For a state at a head: the bits that are unknown.
    pub(super) unknown: BTreeMap<u64, [u8; 8]>,
    /// The slopes of the registers that a function preserves, at the calls of the functions that have not returned.
    frames: Vec<Vec<Slope>>,
}

/// What a linear operation yields: its result, and the flags that are the same for all numbers of iterations.
struct Outcome {
    result: Linear,
    /// Whether the carry is set, if this is the same for all numbers of iterations. `None` if the operation does not change the carry.
    carry: Option<Option<bool>>,
    sets_flags: bool,
}

/// Makes bits of a byte unknown.
fn unknown<D: Domain>(domain: &mut D, byte: D::Byte, bits: u8) -> D::Byte {
    let any = domain.opaque(D::value(byte), 0xff);
    let (any, kept) = (domain.and(any, D::constant(bits)), domain.and(byte, D::constant(!bits)));
    domain.xor(any, kept)
}

/// The place of a register, and the size of its full register.
fn place(register: Register) -> Option<Range> {
    if register.is_gpr() {
        return Some((8 * register.full_register().number() as u64, 8));
    }
    register.is_vector_register().then(|| (VECTORS + 64 * register.number() as u64, 64))
}

impl<D: Domain> Walk<D> {
    /// The state at the start of a call, which has been prepared.
    pub(super) fn new(machine: Machine<D>, data: Vec<Data>, most: i64) -> Self {
        let (slopes, unknown, frames) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let mut walk = Walk { machine, slopes, most, data, advance: Slope::default(), unknown, frames };
        walk.frames.push(walk.preserved());
        walk
    }

    fn preserved(&self) -> Vec<Slope> {
        self.machine.convention().preserved.iter().map(|number| self.slope(8 * *number as u64)).collect()
    }

    /// The slope of the word at a place.
    pub(super) fn slope(&self, place: u64) -> Slope {
        self.slopes.get(&place).copied().unwrap_or_default()
    }

    pub(super) fn set_slope(&mut self, place: u64, slope: Slope) {
        if slope.is_zero() {
            self.slopes.remove(&place);
        } else {
            self.slopes.insert(place, slope);
        }
    }

    /// The places of words with slopes that overlap a range.
    pub(super) fn sloped(&self, (start, len): Range) -> Vec<u64> {
        self.slopes.range(start.saturating_sub(7)..start + len as u64).map(|(place, _)| *place).collect()
    }

    /// Makes the rest of each word with a slope unknown that a range covers only in part.
    fn forget_parts(&mut self, (start, len): Range) {
        for place in self.sloped((start, len)) {
            if place < start || place + 8 > start + len as u64 {
                self.forget(place, self.slope(place).changing());
            }
        }
    }

    fn clear(&mut self, range: Range) {
        for place in self.sloped(range) {
            self.slopes.remove(&place);
        }
    }

    /// The bytes of the register at a place.
    fn register(&mut self, place: u64) -> Option<&mut [D::Byte]> {
        let index = place as usize;
        let machine = &mut self.machine;
        let all = match place {
            ..VECTORS => &mut machine.general.as_flattened_mut()[index..],
            VECTORS..MASKS => &mut machine.vectors.as_flattened_mut()[index - VECTORS as usize..],
            MASKS..REGISTERS => &mut machine.masks.as_flattened_mut()[index - MASKS as usize..],
            _ => return None,
        };
        Some(&mut all[..8])
    }

    /// The bytes of the word at a place.
    pub(crate) fn word(&self, place: u64) -> [D::Byte; 8] {
        let mut bytes = [D::constant(0); 8];
        let index = place as usize;
        let all = match place {
            ..VECTORS => &self.machine.general.as_flattened()[index..],
            VECTORS..MASKS => &self.machine.vectors.as_flattened()[index - VECTORS as usize..],
            MASKS..REGISTERS => &self.machine.masks.as_flattened()[index - MASKS as usize..],
            _ => {
                self.machine.memory.read(place, &mut bytes).expect("a word of a region");
                return bytes;
            }
        };
        *all.first_chunk().expect("8 bytes")
    }

    pub(crate) fn set_word(&mut self, place: u64, bytes: [D::Byte; 8]) {
        match self.register(place) {
            Some(register) => register.copy_from_slice(&bytes),
            None => self.machine.memory.write(place, &bytes, 0).expect("a word of a writable region"),
        }
    }

    /// Makes bits of a word unknown.
    pub(super) fn forget(&mut self, place: u64, bits: [u8; 8]) {
        let mut bytes = self.word(place);
        for (byte, bits) in bytes.iter_mut().zip(bits).filter(|(_, bits)| *bits != 0) {
            *byte = unknown(&mut self.machine.domain, *byte, bits);
        }
        self.set_word(place, bytes);
    }

    /// The range of an operand that is a register or is in memory.
    fn range(&mut self, i: &Instruction, operand: u32) -> Option<Range> {
        match i.op_kind(operand) {
            OpKind::Register => {
                let register = i.op_register(operand);
                let size = if register.is_gpr() { 8 } else { register.size() };
                place(register).map(|(start, _)| (start, size))
            }
            OpKind::Memory => {
                let address = self.machine.effective_address(i);
                Some((Number::of::<D>(&address).value, i.memory_size().size()))
            }
            _ => None,
        }
    }

    /// The address of the memory operand, with its slope.
    fn address(&mut self, i: &Instruction) -> Linear {
        let value = self.machine.effective_address(i);
        let slope = |register: Register| match register {
            Register::None | Register::RIP => Slope::default(),
            register => self.slope(8 * register.full_register().number() as u64),
        };
        let slope = slope(i.memory_base()) + slope(i.memory_index()) * i.memory_index_scale().into();
        Linear::of(Number::of::<D>(&value).value, slope)
    }

    /// Checks an access for all numbers of iterations. The machine checks it for the least number.
    fn access(&mut self, address: Linear, size: usize, writes: bool) -> Step {
        let (start, most) = (address.least as u64, self.most);
        let index = self
            .data
            .iter()
            .position(|data| (data.address..data.address + data.len.least as u64).contains(&start));
        let is_inside = match index {
            _ if size == 0 => true,
            None => address.slope.is_zero(),
            Some(index) => {
                let Data { address: base, len, written } = &mut self.data[index];
                let offset = address - Linear::of(*base, Slope::default());
                let rest = *len - offset - Linear::of(size as u64, Slope::default());
                let places = offset.least as usize..offset.least as usize + size;
                if let Some(written) = written.get_mut(places).filter(|_| writes) {
                    written.fill(true);
                }
                // The last block may be addressed from the end of the data. It has no address from their start as long as steps are left.
                let from_end = Slope { left: len.slope.left, ..self.advance };
                let is_last = rest.least + (size as i128) <= BLOCK as i128;
                let is_place = match len.slope.left {
                    0 => address.slope == self.advance,
                    _ if is_last => address.slope == from_end,
                    _ => address.slope == self.advance && rest.least >= BLOCK as i128,
                };
                address.is_small(most)
                    && is_place
                    && offset.is_negative(most) == Some(false)
                    && rest.is_negative(most) == Some(false)
            }
        };
        if is_inside {
            return Ok(());
        }
        let name = format!("the data, for some number of iterations (slope {:?})", address.slope);
        let near = self.data.get(index.unwrap_or(0)).map(|data| (name.into(), start - data.address));
        Err(self.machine.deny(&Denied { address: start, len: size, writes, near }))
    }

    /// Stops if the stack pointer, or a part of a register in an address, depends on the number of iterations.
    fn check_registers(&mut self, i: &Instruction) -> Step {
        let is_part = |register: &Register| register.is_gpr() && register.size() < 8;
        let parts = [i.memory_base(), i.memory_index()].into_iter().filter(is_part).chain([Register::RSP]);
        let mut slopes = parts.map(|register| self.slope(8 * register.full_register().number() as u64));
        if slopes.all(Slope::is_zero) {
            return Ok(());
        }
        Err(self
            .machine
            .stop("the stack pointer or an address of 32 bits depends on the number of iterations"))
    }

    /// Checks the access of a memory operand.
    fn check_operand(&mut self, i: &Instruction, info: &mut InstructionInfoFactory) -> Step {
        if i.is_string_instruction() {
            let number = |register: Register| Number::of::<D>(&self.machine.register(register)[..8]).value;
            let count = if i.has_rep_prefix() { number(Register::RCX) } else { 1 };
            let size = count as usize * i.memory_size().size();
            let [from, to] = [Register::RSI, Register::RDI]
                .map(|register| Linear::of(number(register), self.slope(8 * register.number() as u64)));
            self.access(to, size, true)?;
            if !matches!(i.mnemonic(), Mnemonic::Movsb | Mnemonic::Movsd | Mnemonic::Movsq) {
                return Ok(());
            }
            if !self.sloped((from.least as u64, size)).is_empty() {
                return Err(self.machine.stop("a copy of words that depend on the number of iterations"));
            }
            return self.access(from, size, false);
        }
        let Some(operand) = (0..i.op_count()).find(|operand| i.op_kind(*operand) == OpKind::Memory) else {
            return Ok(());
        };
        let access = info.info(i).op_access(operand);
        if matches!(access, OpAccess::None | OpAccess::NoMemAccess) || i.mnemonic() == Mnemonic::Lea {
            return Ok(());
        }
        let writes = !matches!(access, OpAccess::Read | OpAccess::CondRead);
        let mut address = self.address(i);
        let mut size = i.memory_size().size();
        if i.is_broadcast() {
            size = i.memory_size().element_size();
        } else if i.has_op_mask() {
            // The range from the first to the last selected element.
            let mask = Number::of::<D>(&self.machine.masks[i.op_mask().number()]).value;
            let element = i.memory_size().element_size();
            let mask = mask & u64::MAX.checked_shr(64 - (size / element) as u32).unwrap_or(0);
            let (first, end) = (mask.trailing_zeros() as usize, 64 - mask.leading_zeros() as usize);
            size = element * end.saturating_sub(first);
            address.least += (element * first) as i128;
        }
        self.access(address, size, writes)
    }

    /// Executes an instruction, or answers the call of an imported function.
    pub(super) fn step(&mut self, info: &mut InstructionInfoFactory) -> Step {
        let at = self.machine.next;
        let Some(i) = self.machine.instruction(at) else { return self.import() };
        self.check_registers(&i)?;
        self.check_operand(&i, info)?;
        let (writes, reads) = (self.writes(&i, info), self.reads(&i, info));
        if let Some((from, to, len)) = self.copied(&i) {
            return self.copy(&i, (from, to, len), &writes);
        }
        if reads.is_empty() {
            return self.execute(&i, &writes);
        }
        if let Some(outcome) = self.linear(&i) {
            return self.execute_linear(&i, &outcome, &writes);
        }
        // The words are unknown for this instruction only.
        let before: Vec<_> = reads.iter().map(|place| (*place, self.word(*place))).collect();
        for place in &reads {
            self.forget(*place, self.slope(*place).changing());
        }
        self.execute(&i, &writes)?;
        for (place, bytes) in before {
            if self.slopes.contains_key(&place) {
                self.set_word(place, bytes);
            }
        }
        Ok(())
    }

    fn execute(&mut self, i: &Instruction, writes: &[Range]) -> Step {
        if i.mnemonic() == Mnemonic::Call {
            self.frames.push(self.preserved());
        } else if i.mnemonic() == Mnemonic::Ret {
            self.leave()?;
        }
        writes.iter().for_each(|range| self.forget_parts(*range));
        self.machine.execute(i.ip())?;
        writes.iter().for_each(|range| self.clear(*range));
        Ok(())
    }

    /// Checks at the end of a function that the preserved registers have the slopes that they had at the call.
    fn leave(&mut self) -> Step {
        match self.frames.pop() {
            Some(frame) if frame == self.preserved() => Ok(()),
            _ => {
                self.machine.find(Kind::Preserved, "a register, for some number of iterations");
                Ok(())
            }
        }
    }

    /// The ranges of words that an instruction writes.
    fn writes(&mut self, i: &Instruction, info: &mut InstructionInfoFactory) -> Vec<Range> {
        use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
        let is_write = |access| matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite);
        let (mut ranges, info) = (Vec::new(), info.info(i));
        let registers = info.used_registers().iter().filter(|used| is_write(used.access()));
        ranges.extend(
            registers.filter(|used| used.register().is_gpr()).filter_map(|used| place(used.register())),
        );
        for operand in 0..i.op_count() {
            if !is_write(info.op_access(operand)) {
                continue;
            }
            let Some((start, size)) = self.range(i, operand) else { continue };
            // The encodings VEX and EVEX clear the rest of a vector register.
            let clears = (VECTORS..MASKS).contains(&start) && !is_legacy(i);
            ranges.push((start, if clears { 64 } else { size }));
        }
        let word = |register| self.word(8 * Register::number(register) as u64);
        let number = |register| Number::of::<D>(&word(register)).value;
        match i.mnemonic() {
            Mnemonic::Push | Mnemonic::Call => ranges.push((number(Register::RSP).wrapping_sub(8), 8)),
            Mnemonic::Vzeroupper => ranges.extend((0..16).map(|index| (VECTORS + 64 * index + 16, 48))),
            Mnemonic::Vzeroall => ranges.push((VECTORS, 64 * 16)),
            _ if i.is_string_instruction() => {
                let count = if i.has_rep_prefix() { number(Register::RCX) } else { 1 };
                ranges.push((number(Register::RDI), count as usize * i.memory_size().size()));
            }
            _ => {}
        }
        ranges
    }

    /// The places of words with slopes that an instruction reads, except to compute the address of an operand.
    fn reads(&mut self, i: &Instruction, info: &mut InstructionInfoFactory) -> Vec<u64> {
        let (mut places, info) = (Vec::new(), info.info(i));
        for operand in 0..i.op_count() {
            let access = info.op_access(operand);
            // A write of one or two bytes, or a write under a condition, keeps other bytes.
            let is_part = i.op_kind(operand) == OpKind::Register
                && (i.op_register(operand).size() < 4 || access == OpAccess::CondWrite);
            let is_none = matches!(access, OpAccess::None | OpAccess::NoMemAccess);
            if is_none || access == OpAccess::Write && !is_part {
                continue;
            }
            if let Some(range) = self.range(i, operand) {
                places.extend(self.sloped(range));
            }
        }
        // LEA accesses no memory. The others may read a register of the address for another purpose, too.
        let has_implicit = {
            use Mnemonic::{Cmpxchg, Div, Idiv, Imul, Lea, Mul, Mulx};
            matches!(i.mnemonic(), Lea | Mul | Mulx | Imul | Div | Idiv | Cmpxchg)
        };
        let is_address = |register| {
            !has_implicit
                && !i.is_string_instruction()
                && [i.memory_base(), i.memory_index()].contains(&register)
        };
        for used in info.used_registers() {
            let is_read = !matches!(used.access(), OpAccess::Write | OpAccess::None);
            if is_read && !is_address(used.register()) {
                places.extend(place(used.register()).into_iter().flat_map(|range| self.sloped(range)));
            }
        }
        places.sort_unstable();
        places.dedup();
        places
    }

    /// The source, the destination and the length of a move.
    fn copied(&mut self, i: &Instruction) -> Option<(u64, u64, usize)> {
        use Mnemonic::*;
        let stack = Number::of::<D>(&self.machine.register(Register::RSP)[..8]).value;
        let pair = |walk: &mut Self, len| Some((walk.range(i, 1)?.0, walk.range(i, 0)?.0, len));
        let is_word = |operand| match i.op_kind(operand) {
            OpKind::Register => i.op_register(operand).size() == 8,
            _ => i.memory_size().size() == 8,
        };
        match i.mnemonic() {
            Push if i.op0_kind() == OpKind::Register || i.op0_kind() == OpKind::Memory => {
                Some((self.range(i, 0)?.0, stack.wrapping_sub(8), 8))
            }
            Pop => Some((stack, self.range(i, 0)?.0, 8)),
            Mov if is_word(0) => pair(self, 8),
            Movq | Vmovq => pair(self, 8),
            Movups | Movaps | Movdqu | Movdqa | Vmovups | Vmovaps | Vmovdqu | Vmovdqa | Vmovdqu64
            | Vmovdqa64 | Vmovdqu8 | Vmovdqu32 | Vmovdqa32
                if !i.has_op_mask() =>
            {
                let size = (0..2).filter(|operand| i.op_kind(*operand) == OpKind::Register);
                let size = size.map(|operand| i.op_register(operand).size()).min()?;
                pair(self, size)
            }
            _ => None,
        }
    }

    fn copy(&mut self, i: &Instruction, (from, to, len): (u64, u64, usize), writes: &[Range]) -> Step {
        let sloped = self.sloped((from, len));
        if sloped.iter().any(|place| *place < from || place + 8 > from + len as u64) {
            return Err(self
                .machine
                .stop("a move of a part of a word that depends on the number of iterations"));
        }
        let slopes: Vec<_> = sloped.into_iter().map(|place| (place - from, self.slope(place))).collect();
        self.execute(i, writes)?;
        for (offset, slope) in slopes {
            self.slopes.insert(to + offset, slope);
        }
        Ok(())
    }

    /// An operand of 64 bits.
    fn operand(&mut self, i: &Instruction, operand: u32) -> Option<Linear> {
        let Some((start, size)) = self.range(i, operand) else {
            return Some(Linear::of(i.immediate(operand), Slope::default()));
        };
        let is_part = i.op_kind(operand) == OpKind::Register && i.op_register(operand).size() != 8;
        let sloped = self.sloped((start, size));
        if size != 8 || is_part || sloped.iter().any(|place| *place != start) {
            return None;
        }
        let number = Number::of::<D>(&self.word(start));
        (!number.is_secret()).then(|| Linear::of(number.value, self.slope(start)))
    }

    /// The outcome of a linear operation on words of 64 bits. `None` for another operation, or if a number may wrap around.
    fn linear(&mut self, i: &Instruction) -> Option<Outcome> {
        use Mnemonic::*;
        let most = self.most;
        let unchanged = |result| Outcome { result, carry: None, sets_flags: false };
        if i.mnemonic() == Lea {
            let address = self.address(i);
            return Some(unchanged(address))
                .filter(|_| i.op0_register().size() == 8 && address.is_small(most));
        }
        let first = self.operand(i, 0)?;
        let second = if i.op_count() > 1 { self.operand(i, 1)? } else { first };
        if [first, second].iter().any(|operand| !operand.slope.is_zero() && !operand.is_small(most)) {
            return None;
        }
        let one = Linear::of(1, Slope::default());
        let constant = if second.slope.is_zero() { second.least as u64 } else { 0 };
        let (fixed, count) = (first.slope.fixed_bits(), constant as u32);
        let above = first - Linear { least: (!constant).into(), slope: Slope::default() } - one;
        let signs = (first.is_negative(most), second.is_negative(most));
        let carry = if matches!(i.mnemonic(), Adc | Sbb) {
            self.machine.flags.carry
        } else {
            Flag::new(false, false)
        };
        let carry_in = Linear::of(carry.value.into(), Slope::default());
        let (result, carry) = match i.mnemonic() {
            _ if carry.secret || !carry.defined => return None,
            code if i.condition_code() != ConditionCode::None => {
                let is_move = format!("{code:?}").starts_with("Cmov");
                let flag = self.machine.condition(i.condition_code()).ok()?;
                let chosen = if flag.value { second } else { first };
                return (is_move && !flag.secret).then(|| unchanged(chosen));
            }
            Add | Adc => {
                // The carry is set if the sum of two unsigned numbers is not less than 2^64.
                let sum = first + second + carry_in;
                let carry = match signs {
                    (Some(x), Some(y)) if x == y => Some(x),
                    (None, _) | (_, None) => None,
                    _ => sum.is_negative(most).map(|is_negative| !is_negative),
                };
                (sum, Some(carry))
            }
            Sub | Sbb | Cmp => {
                // The borrow is set if the first number is less than the second, both unsigned.
                let difference = first - second - carry_in;
                let borrow = match signs {
                    (Some(x), Some(y)) if x != y => Some(!x),
                    (None, _) | (_, None) => None,
                    _ => difference.is_negative(most),
                };
                (difference, Some(borrow))
            }
            Inc => (first + one, None),
            Dec => (first - one, None),
            Neg => (-first, Some(first.is_zero(most).map(|is_zero| !is_zero))),
            Shl if (1..16).contains(&constant) => (first * (1 << count), Some(None)),
            Shr if (1..=u64::from(fixed)).contains(&constant) && signs.0 == Some(false) => {
                let carry = first.least >> (count - 1) & 1 == 1;
                let slope = first.slope.shifted_right(count);
                (Linear { least: first.least >> count, slope }, Some(Some(carry)))
            }
            And if second.slope.is_zero()
                && constant | (1u64.checked_shl(fixed).unwrap_or(0).wrapping_sub(1)) == u64::MAX =>
            {
                (Linear::of(first.least as u64 & constant, first.slope), Some(Some(false)))
            }
            // The result is positive if the number is above the complement of the mask.
            Test if above.is_negative(most) == Some(false) => (above + one, Some(Some(false))),
            Test if are_same(i, 0, 1) => (first, Some(Some(false))),
            _ => return None,
        };
        Some(Outcome { result, carry, sets_flags: true }).filter(|_| result.is_small(most))
    }

    /// Executes a linear operation, and makes the flags unknown that are not the same for all numbers of iterations.
    fn execute_linear(&mut self, i: &Instruction, outcome: &Outcome, writes: &[Range]) -> Step {
        let Outcome { result, carry, sets_flags } = outcome;
        let target = self.range(i, 0);
        self.execute(i, writes)?;
        if let Some((start, _)) = target.filter(|_| !matches!(i.mnemonic(), Mnemonic::Cmp | Mnemonic::Test)) {
            if Number::of::<D>(&self.word(start)).value != result.least as u64 {
                return Err(self
                    .machine
                    .stop("the rules of linear numbers disagree with the table of instructions"));
            }
            self.set_slope(start, result.slope);
        }
        if *sets_flags {
            let flags = &mut self.machine.flags;
            flags.zero.secret |= result.is_zero(self.most).is_none();
            flags.sign.secret |= result.is_negative(self.most).is_none();
            flags.parity.secret |= result.slope.fixed_bits() < 8;
            flags.carry.secret |= *carry == Some(None);
            let known = [
                (flags.zero.value, result.is_zero(self.most)),
                (flags.sign.value, result.is_negative(self.most)),
                (flags.carry.value, carry.flatten()),
            ];
            if known.into_iter().any(|(value, known)| known.is_some_and(|known| known != value)) {
                return Err(self.machine.stop("the rules of flags disagree with the table of instructions"));
            }
        }
        Ok(())
    }

    /// Answers the call of an imported function.
    fn import(&mut self) -> Step {
        let name = self.machine.image().imports.get(&self.machine.next).cloned().unwrap_or_default();
        let places = [0, 1, 2].map(|index| 8 * self.machine.convention().arguments[index] as u64);
        let [to, from, len] =
            places.map(|place| Linear::of(Number::of::<D>(&self.word(place)).value, self.slope(place)));
        let (copies, fills) = (matches!(&*name, "memcpy" | "memmove"), name == "memset");
        let has_one = matches!(&*name, "malloc" | "free");
        if !copies && !fills && !has_one {
            return Err(self
                .machine
                .stop("a function that may read or write words that depend on the number of iterations"));
        }
        let is_constant = |argument: Linear| argument.slope.is_zero();
        let size = len.least as usize;
        if copies || fills {
            self.access(to, size, true)?;
        } else if !is_constant(to) {
            return Err(self.machine.stop("an argument depends on the number of iterations"));
        }
        if copies {
            self.access(from, size, false)?;
        }
        if !has_one && !is_constant(len) || fills && !is_constant(from) {
            return Err(self.machine.stop("a length or a value depends on the number of iterations"));
        }
        let from = if copies { self.sloped((from.least as u64, size)) } else { Vec::new() };
        if !from.is_empty() {
            return Err(self.machine.stop("a copy of words that depend on the number of iterations"));
        }
        self.leave()?;
        if copies || fills {
            self.forget_parts((to.least as u64, size));
        }
        let at = self.machine.next;
        self.machine.execute(at)?;
        for number in self.machine.convention().scratch {
            self.clear((8 * *number as u64, 8));
        }
        if copies || fills {
            self.clear((to.least as u64, size));
            self.set_slope(0, to.slope);
        }
        Ok(())
    }
}
