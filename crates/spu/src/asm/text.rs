//! The assembler from text in GNU syntax: statements, labels, directives, registers by name.
//!
//! Sections are laid out in the order `.text`, then all others, from a multiple of 16 bytes on.

use std::collections::HashMap;

use super::expression::{Symbols, evaluate, is_symbol, number};
use super::{AsmError, Image, set_branch, set_target};
use crate::isa::{Format, Inst, Op, Reg};
use crate::sim::LOCAL_STORE;

/// Assembles a file's text. `file` is its name, for messages.
///
/// # Errors
/// What is wrong, in which line, and what was expected.
pub fn assemble(file: &str, source: &str) -> Result<Image, AsmError> {
    let mut program = Program::default();
    let at_line = |line: usize| move |message: String| AsmError { file: file.to_string(), line, message };
    let mut in_comment = false;
    for (i, line) in source.lines().enumerate() {
        let code = strip_comments(line, &mut in_comment);
        for statement in code.split(';') {
            program.statement(statement, i + 1).map_err(at_line(i + 1))?;
        }
    }
    program.lay_out().map_err(|(line, message)| at_line(line)(message))
}

/// What a line says without its comments: from `#` on, and between `/*` and `*/`.
fn strip_comments(line: &str, in_comment: &mut bool) -> String {
    let mut code = String::new();
    let mut rest = line;
    loop {
        if *in_comment {
            let Some(end) = rest.find("*/") else { return code };
            rest = &rest[end + 2..];
            *in_comment = false;
        }
        let Some(start) = rest.find(['#', '/']) else {
            return code + rest;
        };
        code.push_str(&rest[..start]);
        rest = &rest[start..];
        if rest.starts_with('#') || rest.starts_with("//") {
            return code;
        }
        if let Some(after) = rest.strip_prefix("/*") {
            *in_comment = true;
            rest = after;
        } else {
            code.push('/');
            rest = &rest[1..];
        }
    }
}

#[derive(Default)]
struct Program {
    sections: [Section; 2],
    current: usize,
    labels: HashMap<String, (usize, u32)>,
    sets: HashMap<String, String>,
}

#[derive(Default)]
struct Section {
    size: u32,
    items: Vec<(u32, usize, Item)>,
}

enum Item {
    Inst(Op, Vec<String>),
    /// Bytes of an integer, and the expression.
    Data(u32, String),
    Octa(u128),
    /// Nothing, or in code `nop` and `lnop`.
    Fill(u32),
}

impl Program {
    fn statement(&mut self, text: &str, line: usize) -> Result<(), String> {
        let mut text = text.trim();
        while let Some(colon) = text.find(':') {
            let name = text[..colon].trim();
            if name.is_empty() || !name.chars().all(is_symbol) {
                return Err(format!("`{name}` is no label: expected letters, digits, `_` and `.`"));
            }
            let place = (self.current, self.sections[self.current].size);
            if self.labels.insert(name.into(), place).is_some() {
                return Err(format!("label `{name}` is defined twice"));
            }
            text = text[colon + 1..].trim();
        }
        if text.is_empty() {
            return Ok(());
        }
        let (word, operands) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
        let operands = split_operands(operands);
        match word.strip_prefix('.') {
            Some(directive) => self.directive(directive, &operands, line),
            None => self.instruction(word, operands, line),
        }
    }

    fn instruction(&mut self, mnemonic: &str, mut operands: Vec<String>, line: usize) -> Result<(), String> {
        let (op, wanted) = match mnemonic {
            // The assembler's own names for moves and returns.
            "lr" if operands.len() == 2 => {
                operands.push("0".into());
                (Op::Ori, 3)
            }
            _ => {
                let op = Op::by_mnemonic(mnemonic);
                let op = op.ok_or_else(|| {
                    format!("unknown instruction `{mnemonic}`: expected one of the SPU's, such as `shufb`")
                })?;
                (op, shape(op.format()).len())
            }
        };
        if operands.len() != wanted {
            return Err(format!("`{mnemonic}` has {} operands: expected {wanted}", operands.len()));
        }
        if self.current != 0 {
            return Err(format!("`{mnemonic}` in a data section: expected .text before it"));
        }
        if !self.sections[0].size.is_multiple_of(4) {
            return Err(format!("`{mnemonic}` at an address that is no multiple of 4: expected .align 2"));
        }
        self.add(line, 4, Item::Inst(op, operands))
    }

    fn add(&mut self, line: usize, size: u32, item: Item) -> Result<(), String> {
        let section = &mut self.sections[self.current];
        section.items.push((section.size, line, item));
        section.size += size;
        if section.size > LOCAL_STORE as u32 {
            return Err(format!("the program has more than the local store's {LOCAL_STORE} bytes"));
        }
        Ok(())
    }

    fn directive(&mut self, name: &str, operands: &[String], line: usize) -> Result<(), String> {
        let need = |count: usize| match operands.len() {
            got if got < count => Err(format!(".{name} has {got} operands: expected {count}")),
            _ => Ok(()),
        };
        match name {
            "text" => self.current = 0,
            "data" | "rodata" => self.current = 1,
            "section" => {
                need(1)?;
                self.current = usize::from(operands[0] != ".text");
            }
            "set" | "equ" => {
                need(2)?;
                self.sets.insert(operands[0].clone(), operands[1].clone());
            }
            "align" | "p2align" | "balign" => {
                need(1)?;
                let value = self.now(&operands[0])?;
                let power = || u32::try_from(value).ok().and_then(|bits| 1i64.checked_shl(bits)).unwrap_or(0);
                let to = if name == "balign" { value } else { power() };
                if !(1..=0x10000).contains(&to) || to & (to - 1) != 0 {
                    return Err(format!(".{name} {value}: expected an alignment of at most 65536 bytes"));
                }
                let size = self.sections[self.current].size;
                let fill = size.next_multiple_of(to as u32) - size;
                self.add(line, fill, Item::Fill(fill))?;
            }
            "space" | "skip" | "zero" => {
                need(1)?;
                let size = self.now(&operands[0])?;
                if !(0..=0x4_0000).contains(&size) {
                    return Err(format!(".{name} {size}: expected at most the local store, 262144 bytes"));
                }
                self.add(line, size as u32, Item::Fill(size as u32))?;
            }
            "fill" => {
                need(1)?;
                let number = |at: usize, other| operands.get(at).map_or(Ok(other), |text| self.now(text));
                let (repeat, size, value) = (number(0, 0)?, number(1, 1)?, number(2, 0)?);
                if !(0..=0x4_0000).contains(&repeat) || ![1, 2, 4, 8].contains(&size) {
                    return Err(".fill: expected a count, a size of 1, 2, 4 or 8, and a value".into());
                }
                for _ in 0..repeat {
                    self.add(line, size as u32, Item::Data(size as u32, value.to_string()))?;
                }
            }
            "octa" => {
                for operand in operands {
                    let (sign, digits) = match operand.strip_prefix('-') {
                        Some(digits) => (-1, digits),
                        None => (1, operand.as_str()),
                    };
                    let value = number(digits)?;
                    self.add(line, 16, Item::Octa(value.wrapping_mul(sign) as u128))?;
                }
            }
            "byte" | "short" | "hword" | "half" | "long" | "int" | "word" | "quad" => {
                let size = match name {
                    "byte" => 1,
                    "short" | "hword" | "half" => 2,
                    "quad" => 8,
                    _ => 4,
                };
                for operand in operands {
                    self.add(line, size, Item::Data(size, operand.clone()))?;
                }
            }
            // About symbols for a linker, which there is none of here.
            "global" | "globl" | "type" | "size" | "file" | "ident" | "extern" | "local" | "brinfo" => {}
            _ => {
                return Err(format!("unknown directive `.{name}`: expected .set, .align, .long, .octa, ..."));
            }
        }
        Ok(())
    }

    /// The value of an expression that shapes the layout, so that it may not name labels.
    fn now(&self, text: &str) -> Result<i64, String> {
        let symbols = Symbols { labels: &HashMap::new(), sets: &self.sets };
        evaluate(text, &symbols, 0)
    }

    fn lay_out(self) -> Result<Image, (usize, String)> {
        let text_size = self.sections[0].size;
        let data = text_size.next_multiple_of(16);
        let bases = [0, data];
        let end = data + self.sections[1].size;
        if end > LOCAL_STORE as u32 {
            return Err((0, format!("the program has {end} bytes: the local store has {LOCAL_STORE}")));
        }
        let labels: HashMap<String, i64> = self
            .labels
            .into_iter()
            .map(|(name, (section, at))| (name, i64::from(bases[section] + at)))
            .collect();
        let symbols = Symbols { labels: &labels, sets: &self.sets };
        let mut bytes = vec![0; end as usize];
        for (section, (base, is_code)) in self.sections.iter().zip([(0, true), (data, false)]) {
            for (at, line, item) in &section.items {
                let at = base + at;
                let here = &mut bytes[at as usize..];
                let fail = |message| (*line, message);
                match item {
                    Item::Inst(op, operands) => {
                        let inst = instruction(*op, operands, at, &symbols).map_err(fail)?;
                        here[..4].copy_from_slice(&inst.encode().to_be_bytes());
                    }
                    Item::Data(size, text) => {
                        let value = evaluate(text, &symbols, i64::from(at)).map_err(fail)?;
                        let bits = size * 8;
                        if *size < 8 && (value >= 1 << bits || value < -(1 << (bits - 1))) {
                            return Err(fail(format!("{value} does not fit: expected {bits} bits")));
                        }
                        here[..*size as usize].copy_from_slice(&value.to_be_bytes()[8 - *size as usize..]);
                    }
                    Item::Octa(value) => here[..16].copy_from_slice(&value.to_be_bytes()),
                    Item::Fill(size) if is_code && at % 4 == 0 && size % 4 == 0 => {
                        for offset in (0..*size).step_by(4) {
                            let even = (at + offset) % 8 == 0;
                            let filler = Inst::bare(if even { Op::Nop } else { Op::Lnop });
                            here[offset as usize..][..4].copy_from_slice(&filler.encode().to_be_bytes());
                        }
                    }
                    Item::Fill(_) => {}
                }
            }
        }
        let symbols = labels.into_iter().map(|(name, at)| (name, at as u32)).collect();
        Ok(Image { origin: 0, bytes, code: 0..text_size & !3, entry: 0, symbols })
    }
}

/// Splits at commas outside of parentheses.
fn split_operands(text: &str) -> Vec<String> {
    let mut operands = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                operands.push(text[start..i].trim().to_string());
                start = i + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() || start > 0 {
        operands.push(text[start..].trim().to_string());
    }
    operands
}

/// What an operand is.
#[derive(Clone, Copy)]
enum Operand {
    Rt,
    Ra,
    Rb,
    Rc,
    Value,
    /// `offset(ra)`
    Memory,
    /// An address.
    Target,
    /// The branch that a hint is about.
    Hinted,
}

/// The operands of a format, as they are written.
fn shape(format: Format) -> &'static [Operand] {
    use Operand::*;
    match format {
        Format::Rrr => &[Rt, Ra, Rb, Rc],
        Format::Rr | Format::RrInOut | Format::RrStore => &[Rt, Ra, Rb],
        Format::RrA | Format::IndirectIf => &[Rt, Ra],
        Format::Ri7 | Format::Ri10 | Format::Ri10Byte => &[Rt, Ra, Value],
        Format::Ri10Quad | Format::Ri10QuadStore => &[Rt, Memory],
        Format::Ri16 | Format::Ri16InOut | Format::Ri18 => &[Rt, Value],
        Format::Ri16Absolute | Format::Ri16AbsoluteStore => &[Rt, Target],
        Format::Ri16Relative | Format::Ri16RelativeStore | Format::BranchIf => &[Rt, Target],
        Format::Branch => &[Target],
        Format::Indirect => &[Ra],
        Format::HintIndirect => &[Hinted, Ra],
        Format::HintAbsolute | Format::HintRelative => &[Hinted, Target],
        Format::Bare => &[],
        Format::StopCode => &[Value],
    }
}

fn instruction(op: Op, operands: &[String], at: u32, symbols: &Symbols) -> Result<Inst, String> {
    let mut inst = Inst::bare(op);
    let value = |text: &str| evaluate(text, symbols, i64::from(at));
    let address = |text: &str| match value(text)? {
        address @ 0..=0x3_ffff => Ok(address as u32),
        other => Err(format!("{other:#x} lies outside of the local store: expected 0 to 0x3ffff")),
    };
    for (operand, text) in shape(op.format()).iter().zip(operands) {
        match operand {
            Operand::Rt => inst.rt = register(text, symbols)?,
            Operand::Ra => inst.ra = register(text, symbols)?,
            Operand::Rb => inst.rb = register(text, symbols)?,
            Operand::Rc => inst.rc = register(text, symbols)?,
            Operand::Value => inst.imm = in_range(op, value(text)?, 1)?,
            Operand::Target => set_target(&mut inst, at, address(text)?)?,
            Operand::Hinted => set_branch(&mut inst, at, address(text)?)?,
            Operand::Memory => {
                let inner =
                    text.strip_suffix(')').and_then(|text| text.rfind('$').map(|at| text.split_at(at)));
                let Some((offset, base)) = inner.and_then(|(o, b)| Some((o.trim().strip_suffix('(')?, b)))
                else {
                    return Err(format!("`{text}` is no place in memory: expected offset($register)"));
                };
                inst.ra = register(base, symbols)?;
                let offset = if offset.trim().is_empty() { 0 } else { value(offset)? };
                inst.imm = in_range(op, offset, 16)?;
            }
        }
    }
    Ok(inst)
}

fn in_range(op: Op, value: i64, unit: i64) -> Result<i32, String> {
    let (low, high) = op.format().range();
    let (low, high) = (i64::from(low) * unit, i64::from(high) * unit);
    if value % unit != 0 {
        return Err(format!("`{}`: {value} is no multiple of {unit}", op.mnemonic()));
    }
    if !(low..=high).contains(&value) {
        return Err(format!("`{}`: {value} is out of range, expected {low} to {high}", op.mnemonic()));
    }
    Ok((value / unit) as i32)
}

fn register(text: &str, symbols: &Symbols) -> Result<Reg, String> {
    let expected = || format!("`{text}` is no register: expected $0 to $127 or $name");
    let name = text.trim().strip_prefix('$').ok_or_else(expected)?.trim();
    let number = match name {
        "lr" => 0,
        "sp" | "SP" => 1,
        _ => evaluate(name, symbols, 0).map_err(|error| format!("{}: {error}", expected()))?,
    };
    u8::try_from(number).ok().filter(|&number| number < 128).map(Reg::new).ok_or_else(expected)
}
