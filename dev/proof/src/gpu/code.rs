//! Machine code as text, in the form of NVIDIA's disassembler `cuobjdump -sass`.

use std::collections::BTreeMap;

/// The numbers of the registers that are always zero, and of the predicate that is always true.
pub(super) const RZ: usize = 255;
pub(super) const URZ: usize = 63;
pub(super) const PT: usize = 7;

/// A register of a lane (false), or a uniform register (true).
pub(super) type Register = (bool, usize);

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Place {
    Register(Register),
    Predicate(Register),
    Number(i64),
    /// A constant: the bank, a register and an offset.
    Constant(u32, Option<Register>, i64),
    /// An address: a register of a lane, a uniform register, and an offset. True if the registers are pairs.
    Memory(Option<usize>, Option<usize>, i64, bool),
    Special(String),
    /// Barriers and other operands without data.
    Other,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Operand {
    pub(super) place: Place,
    /// `-` or `!`.
    pub(super) is_negated: bool,
    /// `~`.
    pub(super) is_inverted: bool,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Instruction {
    pub(super) address: u64,
    pub(super) text: String,
    pub(super) guard: Option<Operand>,
    pub(super) opcode: String,
    pub(super) modifiers: Vec<String>,
    pub(super) operands: Vec<Operand>,
}

impl Instruction {
    fn parse(address: u64, text: &str) -> Result<Instruction, String> {
        let wrong = || format!("an instruction of unknown form at {address:#x}: {text}");
        let (guard, rest) = match text.strip_prefix('@') {
            Some(rest) => {
                let (guard, rest) = rest.split_once(' ').ok_or_else(wrong)?;
                (Some(operand(guard).ok_or_else(wrong)?), rest)
            }
            None => (None, text),
        };
        let (name, arguments) = rest.split_once(' ').unwrap_or((rest, ""));
        let mut parts = name.split('.').map(str::to_string);
        let opcode = parts.next().ok_or_else(wrong)?;
        let operands = arguments.split(',').map(str::trim).filter(|part| !part.is_empty());
        Ok(Instruction {
            address,
            text: text.to_string(),
            guard,
            opcode,
            modifiers: parts.collect(),
            operands: operands.map(operand).collect::<Option<_>>().ok_or_else(wrong)?,
        })
    }

    /// Makes the instruction one without an effect. It is not `NOP`, which is a barrier.
    pub(super) fn drop(&mut self) {
        (self.opcode, self.guard) = ("BSYNC".into(), None);
        (self.modifiers, self.operands) = (Vec::new(), Vec::new());
    }

    pub(super) fn has(&self, modifier: &str) -> bool {
        self.modifiers.iter().any(|other| other == modifier)
    }

    /// The number of registers of a load, a store or a move.
    pub(super) fn width(&self) -> usize {
        if self.has("128") { 4 } else { 1 + usize::from(self.has("64")) }
    }

    /// True if it writes uniform registers or predicates.
    pub(super) fn is_uniform(&self) -> bool {
        let destination = self.operands.first().map(|operand| &operand.place);
        matches!(destination, Some(Place::Register((true, _)) | Place::Predicate((true, _))))
    }
}

fn number(text: &str) -> Option<i64> {
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let value = match digits.strip_prefix("0x") {
        Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if is_negative { -value } else { value })
}

/// A register or predicate by its name: whether it is uniform, and the number.
fn numbered(text: &str, letter: &str, last: &str, zero: [usize; 2]) -> Option<Register> {
    let (is_uniform, rest) = text.strip_prefix('U').map_or((false, text), |rest| (true, rest));
    let digits = rest.strip_prefix(letter)?;
    let number = if digits == last { zero[usize::from(is_uniform)] } else { digits.parse().ok()? };
    Some((is_uniform, number))
}

fn register(text: &str) -> Option<Register> {
    numbered(text, "R", "Z", [RZ, URZ])
}

fn operand(text: &str) -> Option<Operand> {
    let text = text.replace(".reuse", "");
    let is_number = number(&text).is_some();
    let name = text.trim_start_matches(|c| !is_number && "!-~".contains(c));
    let signs = &text[..text.len() - name.len()];
    let place = if let Some(value) = number(name) {
        Place::Number(value)
    } else if let Some(register) = register(name.trim_end_matches(".64")) {
        Place::Register(register)
    } else if let Some(predicate) = numbered(name, "P", "T", [PT, PT]) {
        Place::Predicate(predicate)
    } else if let Some(rest) = name.strip_prefix("c[") {
        let (bank, offset) = rest.strip_suffix(']')?.split_once("][")?;
        let (base, uniform, offset, _) = address(offset)?;
        let base = base.map(|number| (false, number)).or(uniform.map(|number| (true, number)));
        Place::Constant(number(bank)? as u32, base, offset)
    } else if name.ends_with(']') {
        let (_, inside) = name.rsplit_once('[')?;
        let (base, uniform, offset, is_pair) = address(&inside[..inside.len() - 1])?;
        Place::Memory(base, uniform, offset, is_pair)
    } else if name.starts_with("SR") {
        Place::Special(name.to_string())
    } else {
        Place::Other
    };
    let is_negated = signs.contains(['-', '!']);
    Some(Operand { place, is_negated, is_inverted: signs.contains('~') })
}

/// `R2.64+UR4+0x10`: the registers, the offset, and whether the registers are pairs.
fn address(inside: &str) -> Option<(Option<usize>, Option<usize>, i64, bool)> {
    let (mut base, mut uniform, mut offset, mut is_pair) = (None, None, 0, false);
    for part in inside.split('+') {
        let name = part.strip_suffix(".64").unwrap_or(part);
        match register(name) {
            Some((true, number)) => uniform = (number != URZ).then_some(number),
            Some((false, number)) => base = (number != RZ).then_some(number),
            None => offset += number(part)?,
        }
        is_pair |= name != part;
    }
    Some((base, uniform, offset, is_pair))
}

/// The instructions of each function.
pub(super) fn functions(text: &str) -> Result<BTreeMap<String, Vec<Instruction>>, String> {
    let mut found: BTreeMap<String, Vec<Instruction>> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some((_, name)) = line.split_once("Function : ") {
            current = name.trim().to_string();
        }
        // `        /*0010*/    S2R R15, SR_CTAID.X ;    /* 0x... */`
        let Some((address, rest)) = line.trim().strip_prefix("/*").and_then(|rest| rest.split_once("*/"))
        else {
            continue;
        };
        let Some((instruction, _)) = rest.split_once(';') else { continue };
        let words: Vec<&str> = instruction.split_whitespace().collect();
        let address = u64::from_str_radix(address, 16).map_err(|_| format!("not an address: {line}"))?;
        let code = found.entry(current.clone()).or_default();
        code.push(Instruction::parse(address, &words.join(" "))?);
    }
    for code in found.values_mut() {
        // Behind the last jump there are only `NOP`s.
        while code.last().is_some_and(|last| last.opcode == "NOP") {
            code.pop();
        }
    }
    Ok(found)
}
