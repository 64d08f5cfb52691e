//! The instructions of sm_90 that the kernels use, for one lane. Every other instruction, modifier and form of operands is an error.

use super::code::{Instruction, Operand, PT, Place, RZ, URZ};
use super::warp::{SECRET, Warp};
use super::word::{self, Word, ZERO};
use crate::gpu::expressions::Bit;

type Done = Result<(), String>;

/// The instructions, and the modifiers that each of them may have. Those for uniform registers, whose names start with U, have the same
/// modifiers.
const MODIFIERS: [(&str, &[&str]); 31] = [
    ("BRA", &["DIV"]),
    ("BREAK", &[]),
    ("BSSY", &[]),
    ("BSYNC", &[]),
    ("CS2R", &["32"]),
    ("EXIT", &[]),
    ("IADD3", &["X"]),
    ("IMAD", &["IADD", "MOV", "SHL", "U32", "WIDE", "X"]),
    ("ISETP", &["AND", "EQ", "EX", "GE", "GT", "LE", "LT", "NE", "OR", "U32"]),
    ("LD", &["128", "64", "E", "U8"]),
    ("LDC", &["64"]),
    ("LDG", &["128", "64", "E", "U8"]),
    ("LDS", &["128", "64", "U8"]),
    ("LEA", &["HI", "X"]),
    ("LOP3", &["LUT", "PAND"]),
    ("MOV", &[]),
    ("NOP", &[]),
    ("PLOP3", &["LUT"]),
    ("PRMT", &[]),
    ("S2R", &[]),
    ("S2UR", &[]),
    ("SEL", &[]),
    ("SHF", &["HI", "L", "R", "S32", "U32", "U64", "W"]),
    ("SHFL", &["BFLY"]),
    ("ST", &["128", "64", "E", "U8"]),
    ("STG", &["128", "64", "E", "U8"]),
    ("STS", &["128", "64", "U8"]),
    ("VIADD", &[]),
    ("VIADDMNMX", &["U32"]),
    ("VIMNMX", &["U32"]),
    ("WARPSYNC", &["ALL"]),
];

/// The opcode of the same instruction for registers of lanes.
fn base(opcode: &str) -> &str {
    opcode.strip_prefix('U').unwrap_or(opcode)
}

/// An error if the table does not have the instruction or one of its modifiers.
pub(super) fn check(one: &Instruction) -> Done {
    let name = base(&one.opcode);
    let permitted = MODIFIERS.iter().find(|(opcode, _)| *opcode == name).map(|(_, permitted)| permitted);
    match permitted {
        Some(permitted) if one.modifiers.iter().all(|other| permitted.contains(&other.as_str())) => Ok(()),
        _ => unknown(),
    }
}

fn unknown<T>() -> Result<T, String> {
    Err("an instruction that the table does not have".into())
}

fn is_predicate(operand: &Operand) -> bool {
    matches!(operand.place, Place::Predicate(_))
}

/// The destination, the predicates written behind it, and the sources.
fn outputs(one: &Instruction) -> Result<(&Operand, &[Operand], &[Operand]), String> {
    let (to, rest) = one.operands.split_first().ok_or("no operands")?;
    let count = rest.iter().take_while(|operand| is_predicate(operand)).count();
    let (carries, sources) = rest.split_at(count);
    Ok((to, carries, sources))
}

impl Warp<'_> {
    /// A word of a source; `index` is the number of the register of a pair. The sign is not applied.
    fn plain_word(&self, lane: usize, operand: &Operand, index: usize) -> Result<Word, String> {
        Ok(match operand.place {
            Place::Register((false, RZ)) | Place::Register((true, URZ)) => ZERO,
            Place::Register((false, number)) => self.lanes[lane].registers[number + index].clone(),
            Place::Register((true, number)) => self.uniform[number + index].clone(),
            Place::Number(number) => Word::Known((number >> (32 * index)) as u32),
            Place::Constant(bank, None, offset) => self.constant(bank, offset + 4 * index as i64)?,
            _ => return Err("an operand of unknown kind".into()),
        })
    }

    /// A word of a source.
    pub(super) fn word(&mut self, lane: usize, operand: &Operand, index: usize) -> Result<Word, String> {
        let word = self.plain_word(lane, operand, index)?;
        if !operand.is_negated && !operand.is_inverted {
            return Ok(word);
        }
        // The sign of a pair does not apply to each of its words.
        if index > 0 {
            return unknown();
        }
        let inverted = word.not(self.expressions);
        Ok(match operand.is_negated {
            true => word::add(self.expressions, &inverted, &ZERO, true),
            false => inverted,
        })
    }

    /// A source that must be a number.
    pub(super) fn number(&mut self, lane: usize, operand: &Operand, index: usize) -> Result<u32, String> {
        self.word(lane, operand, index)?.number().ok_or_else(|| format!("an operand {SECRET}"))
    }

    /// An addend as a number. The negative of x is the sum of x's complement and one, which has 33 bits if x is 0.
    fn addend(&self, lane: usize, operand: &Operand) -> Result<Option<u64>, String> {
        let Some(number) = self.plain_word(lane, operand, 0)?.number() else { return Ok(None) };
        Ok(Some(match (operand.is_negated, operand.is_inverted) {
            (true, _) => u64::from(!number) + 1,
            (_, true) => u64::from(!number),
            _ => u64::from(number),
        }))
    }

    pub(super) fn truth(&self, lane: usize, operand: &Operand) -> Result<bool, String> {
        let value = match operand.place {
            Place::Predicate((false, number)) => self.lanes[lane].predicates[number],
            Place::Predicate((true, number)) => self.uniform_predicates[number],
            _ => return unknown(),
        };
        Ok(value.ok_or("a predicate that has not been written")? != operand.is_negated)
    }

    /// The number of true predicates.
    fn count(&self, lane: usize, predicates: &[&Operand]) -> Result<u32, String> {
        predicates.iter().map(|predicate| self.truth(lane, predicate).map(u32::from)).sum()
    }

    fn set_truth(&mut self, lane: usize, to: &Operand, value: bool) -> Done {
        match to.place {
            Place::Predicate((_, PT)) => {}
            Place::Predicate((false, number)) => self.lanes[lane].predicates[number] = Some(value),
            Place::Predicate((true, number)) => self.uniform_predicates[number] = Some(value),
            _ => return unknown(),
        }
        Ok(())
    }

    /// Executes an instruction that does not jump.
    pub(super) fn execute(&mut self, one: &Instruction, lane: usize) -> Done {
        match base(&one.opcode) {
            "LDG" | "LD" | "LDS" | "STG" | "ST" | "STS" => self.access(one, lane),
            "LOP3" => self.lop3(one, lane),
            "IADD3" | "VIADD" => self.add(one, lane),
            "IMAD" => self.multiply_add(one, lane),
            "SHF" => self.shift(one, lane),
            "PRMT" => self.permute(one, lane),
            "ISETP" => self.compare(one, lane),
            "LEA" => self.lea(one, lane),
            "SEL" => self.select(one, lane),
            "VIMNMX" | "VIADDMNMX" => self.minimum(one, lane),
            "PLOP3" => self.logic_of_predicates(one, lane),
            "MOV" | "LDC" => self.copy(one, lane),
            "S2R" | "S2UR" | "CS2R" => self.special(one, lane),
            _ => unknown(),
        }
    }

    fn lop3(&mut self, one: &Instruction, lane: usize) -> Done {
        let (truth, rest) = match &one.operands[..] {
            [first, rest @ ..] if is_predicate(first) => (Some(first), rest),
            all => (None, all),
        };
        let [to, a, b, c, Operand { place: Place::Number(table), .. }, last] = rest else { return unknown() };
        let inputs = [self.word(lane, a, 0)?, self.word(lane, b, 0)?, self.word(lane, c, 0)?];
        let result = word::logic(self.expressions, *table as u8, inputs.each_ref());
        if let Some(truth) = truth {
            let number = result.number().ok_or_else(|| format!("a predicate {SECRET}"))?;
            let (is_not_zero, last) = (number != 0, self.truth(lane, last)?);
            let value = if one.has("PAND") { is_not_zero && last } else { is_not_zero || last };
            self.set_truth(lane, truth, value)?;
        }
        self.set(lane, to, 0, result)
    }

    /// Additions of up to three words. Up to two predicates are the carry.
    fn add(&mut self, one: &Instruction, lane: usize) -> Done {
        let (to, carries, sources) = outputs(one)?;
        let (predicates, words): (Vec<_>, Vec<_>) = sources.iter().partition(|operand| is_predicate(operand));
        let carry_in = match one.has("X") {
            true => self.count(lane, &predicates)?,
            false => 0,
        };
        let numbers: Result<Option<Vec<u64>>, String> = words
            .iter()
            .map(|operand| self.addend(lane, operand).transpose())
            .map(Option::transpose)
            .collect();
        if let Some(numbers) = numbers? {
            let total = numbers.iter().sum::<u64>() + u64::from(carry_in);
            self.set(lane, to, 0, Word::Known(total as u32))?;
            let mut limits = [1, 2].into_iter().zip(carries);
            return limits.try_for_each(|(limit, carry)| self.set_truth(lane, carry, total >> 32 >= limit));
        }
        if carries.iter().any(|carry| carry.place != Place::Predicate((false, PT))) {
            return Err(format!("a carry {SECRET}"));
        }
        let mut sum = Word::Known(carry_in);
        for operand in words {
            let word = self.word(lane, operand, 0)?;
            sum = word::add(self.expressions, &sum, &word, false);
        }
        self.set(lane, to, 0, sum)
    }

    fn multiply_add(&mut self, one: &Instruction, lane: usize) -> Done {
        let (to, carries, sources) = outputs(one)?;
        let [x, y, z, rest @ ..] = sources else { return unknown() };
        if !carries.is_empty() || one.has("WIDE") && (one.has("X") || !one.has("U32")) {
            return unknown();
        }
        let (x, y) = (self.word(lane, x, 0)?, self.word(lane, y, 0)?);
        let low = self.word(lane, z, 0)?;
        let high = if one.has("WIDE") { self.word(lane, z, 1)? } else { ZERO };
        let mut result = word::multiply_add(self.expressions, &x, &y, [&low, &high]);
        if one.has("X") {
            let carry = self.count(lane, &rest.iter().collect::<Vec<_>>())? > 0;
            result[0] = word::add(self.expressions, &result[0], &ZERO, carry);
        }
        let [low, high] = result;
        self.set(lane, to, 0, low)?;
        if one.has("WIDE") { self.set(lane, to, 1, high) } else { Ok(()) }
    }

    fn shift(&mut self, one: &Instruction, lane: usize) -> Done {
        let [to, low, count, high] = &one.operands[..] else { return unknown() };
        let (low, high) = (self.word(lane, low, 0)?, self.word(lane, high, 0)?);
        if one.has("W") && one.has("U64") {
            return unknown();
        }
        let count = self.number(lane, count, 0)?;
        let most = if one.has("U64") { 63 } else { 32 };
        let count = if one.has("W") { count & 31 } else { count.min(most) };
        let fill = if one.has("S32") { high.bit(31) } else { Bit::default() };
        let [low, high] = word::shifted([&low, &high], count as usize, one.has("L"), fill);
        self.set(lane, to, 0, if one.has("HI") { high } else { low })
    }

    fn permute(&mut self, one: &Instruction, lane: usize) -> Done {
        let [to, low, digits, high] = &one.operands[..] else { return unknown() };
        let (low, high) = (self.word(lane, low, 0)?, self.word(lane, high, 0)?);
        let digits = self.number(lane, digits, 0)?;
        self.set(lane, to, 0, word::permuted(&low, &high, digits))
    }

    fn compare(&mut self, one: &Instruction, lane: usize) -> Done {
        let [first, second, x, y, last, rest @ ..] = &one.operands[..] else { return unknown() };
        let (x, y) = (self.number(lane, x, 0)?, self.number(lane, y, 0)?);
        let sign = if one.has("U32") { 0 } else { 1 << 31 };
        let (x, y) = (x ^ sign, y ^ sign);
        // With EX, the last operand is the comparison of the low words.
        let equal = match (one.has("EX"), rest) {
            (true, [low]) => Some(self.truth(lane, low)?),
            (false, []) => None,
            _ => return unknown(),
        };
        let result = match one.modifiers.first().map(String::as_str) {
            Some("LT") => x < y || x == y && equal.unwrap_or(false),
            Some("LE") => x < y || x == y && equal.unwrap_or(true),
            Some("GT") => x > y || x == y && equal.unwrap_or(false),
            Some("GE") => x > y || x == y && equal.unwrap_or(true),
            Some("EQ") => x == y && equal.unwrap_or(true),
            Some("NE") => x != y || equal.unwrap_or(false),
            _ => return unknown(),
        };
        let last = self.truth(lane, last)?;
        let joined = |result: bool| match () {
            _ if one.has("AND") => Ok(result && last),
            _ if one.has("OR") => Ok(result || last),
            _ => unknown(),
        };
        self.set_truth(lane, first, joined(result)?)?;
        self.set_truth(lane, second, joined(!result)?)
    }

    fn lea(&mut self, one: &Instruction, lane: usize) -> Done {
        let (to, carries, sources) = outputs(one)?;
        let (predicates, words): (Vec<_>, Vec<_>) = sources.iter().partition(|operand| is_predicate(operand));
        let mut numbers = Vec::new();
        for (index, operand) in words.iter().enumerate() {
            let plain = Operand { is_negated: operand.is_negated && index > 0, ..(*operand).clone() };
            numbers.push(u64::from(self.number(lane, &plain, 0)?));
        }
        let is_negated = words.first().is_some_and(|first| first.is_negated);
        if is_negated && one.has("HI") {
            return unknown();
        }
        // The number that is shifted, and the addend. The sign applies to the shifted number.
        let (shifted, addend) = match (one.has("HI"), &numbers[..]) {
            (false, [x, y, shift]) if is_negated => (u64::from(!((x << shift) as u32)) + 1, *y),
            (false, [x, y, shift]) => (x << shift & 0xffff_ffff, *y),
            (true, [low, y, high, shift]) => ((high << 32 | low) << shift >> 32, *y),
            _ => return unknown(),
        };
        let carry = one.has("X") && self.count(lane, &predicates)? > 0;
        let total = shifted + addend + u64::from(carry);
        self.set(lane, to, 0, Word::Known(total as u32))?;
        carries.iter().try_for_each(|carry| self.set_truth(lane, carry, total >> 32 != 0))
    }

    fn select(&mut self, one: &Instruction, lane: usize) -> Done {
        let [to, x, y, predicate] = &one.operands[..] else { return unknown() };
        let chosen = if self.truth(lane, predicate)? { x } else { y };
        let word = self.word(lane, chosen, 0)?;
        self.set(lane, to, 0, word)
    }

    /// The minimum or maximum of a number, to which another one may be added before, and another number.
    fn minimum(&mut self, one: &Instruction, lane: usize) -> Done {
        let [to, sources @ .., predicate] = &one.operands[..] else { return unknown() };
        let mut numbers = Vec::new();
        for operand in sources {
            numbers.push(self.number(lane, operand, 0)?);
        }
        let (x, y) = match (one.opcode.as_str(), &numbers[..]) {
            ("VIMNMX", [x, y]) => (*x, *y),
            ("VIADDMNMX", [x, added, y]) => (x.wrapping_add(*added), *y),
            _ => return unknown(),
        };
        if !one.has("U32") {
            return unknown();
        }
        let result = if self.truth(lane, predicate)? { x.min(y) } else { x.max(y) };
        self.set(lane, to, 0, Word::Known(result))
    }

    fn logic_of_predicates(&mut self, one: &Instruction, lane: usize) -> Done {
        let [first, second, x, y, z, tables @ ..] = &one.operands[..] else { return unknown() };
        let mut index = 0;
        for input in [x, y, z] {
            index = 2 * index + u32::from(self.truth(lane, input)?);
        }
        for (to, table) in [first, second].into_iter().zip(tables) {
            let Place::Number(table) = table.place else { return unknown() };
            self.set_truth(lane, to, table >> index & 1 == 1)?;
        }
        Ok(())
    }

    fn copy(&mut self, one: &Instruction, lane: usize) -> Done {
        let [to, source] = &one.operands[..] else { return unknown() };
        for index in 0..one.width() {
            let word = self.word(lane, source, index)?;
            self.set(lane, to, index, word)?;
        }
        Ok(())
    }

    fn special(&mut self, one: &Instruction, lane: usize) -> Done {
        let [to, Operand { place: Place::Special(name), .. }] = &one.operands[..] else { return unknown() };
        let value = match name.as_str() {
            "SR_TID.X" => self.launch.first + lane as u32,
            "SR_CTAID.X" => self.launch.block,
            // Launches have no clusters.
            "SRZ" | "SR_CgaCtaId" => 0,
            _ => return unknown(),
        };
        let count = if one.opcode == "CS2R" && !one.has("32") { 2 } else { 1 };
        (0..count).try_for_each(|index| self.set(lane, to, index, Word::Known(value)))
    }
}
