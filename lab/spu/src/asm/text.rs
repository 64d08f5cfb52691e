//! The assembler for text in GNU syntax: statements, labels, directives, registers by name.
//!
//! Sections are laid out with `.text` first, then all others in the order of their first appearance. Each section
//! starts at a multiple of its largest `.align`, which is at least 16 bytes.

use std::collections::HashMap;
use std::ops::Range;

use super::expression::{Definition, Place, Symbols, evaluate, is_name, number};
use super::operands::{OperandText, instruction, shape};
use super::{AsmError, Image};
use crate::isa::{Inst, LOCAL_STORE, Op};

/// Assembles the text of a file. `file` is its name, for messages.
///
/// Text that the GNU assembler would interpret differently is refused. An accepted program has the same meaning for
/// both assemblers.
///
/// # Errors
/// The error, its line, and what was expected.
pub fn assemble(file: &str, source: &str) -> Result<Image, AsmError> {
    let mut program = Program::new();
    let at_line = |line: usize| move |message: String| AsmError { file: file.to_string(), line, message };
    let mut in_comment = false;
    let mut begun = String::new();
    let mut last = 1;
    for (i, line) in source.lines().enumerate() {
        last = i + 1;
        let statements = statements(std::mem::take(&mut begun), line, &mut in_comment);
        let mut statements = statements.map_err(at_line(last))?;
        // A comment that spans several lines does not end the statement.
        if in_comment {
            begun = statements.pop().unwrap_or_default();
        }
        for statement in statements {
            program.statement(&statement, last).map_err(at_line(last))?;
        }
    }
    if in_comment {
        return Err(at_line(last)("a comment is not closed: expected `*/`".into()));
    }
    program.lay_out().map_err(|(line, message)| at_line(line)(message))
}

/// Splits a line into statements at `;` and removes comments. Comments start with `#` or are enclosed in `/*` and `*/`.
/// The first statement continues `begun`, the unfinished statement of the previous line.
fn statements(begun: String, line: &str, in_comment: &mut bool) -> Result<Vec<String>, String> {
    let mut found = vec![begun];
    let mut in_string = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        if *in_comment {
            if c == '*' && next == Some('/') {
                chars.next();
                *in_comment = false;
            }
            continue;
        }
        let statement = found.last_mut().expect("one at least");
        match c {
            _ if in_string => {
                statement.push(c);
                if c == '\\' {
                    statement.extend(chars.next());
                }
                in_string = c != '"';
            }
            '#' => break,
            '/' if next == Some('*') => {
                chars.next();
                *in_comment = true;
                // A comment separates words.
                statement.push(' ');
            }
            ';' => found.push(String::new()),
            _ => {
                in_string = c == '"';
                statement.push(c);
            }
        }
    }
    // The GNU assembler would continue the string on the next line, so this assembler refuses it.
    if in_string { Err("a string is not closed on its line: expected `\"`".into()) } else { Ok(found) }
}

struct Program {
    sections: Vec<Section>,
    current: usize,
    labels: HashMap<String, Place>,
    sets: HashMap<String, Vec<Definition>>,
    /// The current value of [`Place::run`].
    run: usize,
    /// Number of statements so far.
    order: usize,
}

struct Section {
    name: String,
    size: u32,
    align: u32,
    items: Vec<Placed>,
}

struct Placed {
    place: Place,
    line: usize,
    item: Item,
}

enum Item {
    Inst(Op, Vec<OperandText>),
    /// The number of bytes of an integer, and the expression for its value.
    Data(u32, String),
    Bytes([u8; 16]),
    /// The number of bytes, and the value of each byte.
    Space(u32, u8),
    /// The number of bytes of padding before an alignment. In code the padding consists of `nop` and `lnop`.
    Fill(u32),
}

impl Program {
    fn new() -> Program {
        let mut program = Program {
            sections: Vec::new(),
            current: 0,
            labels: HashMap::new(),
            sets: HashMap::new(),
            run: 0,
            order: 0,
        };
        program.enter(".text");
        program
    }

    fn enter(&mut self, name: &str) {
        self.current = self.sections.iter().position(|section| section.name == name).unwrap_or_else(|| {
            // Data are loaded as quadwords, which are aligned to 16 bytes.
            self.sections.push(Section { name: name.into(), size: 0, align: 16, items: Vec::new() });
            self.sections.len() - 1
        });
        self.run += 1;
    }

    fn here(&self) -> Place {
        Place {
            section: self.current,
            offset: self.sections[self.current].size,
            run: self.run,
            order: self.order,
        }
    }

    fn statement(&mut self, text: &str, line: usize) -> Result<(), String> {
        self.order += 1;
        let mut text = text.trim();
        loop {
            let end = text.find(|c: char| c.is_whitespace() || c == ':' || c == '=' || c == '"');
            let (name, rest) = text.split_at(end.unwrap_or(text.len()));
            let rest = rest.trim_start();
            if let Some(value) = rest.strip_prefix('=').filter(|value| !value.starts_with('=')) {
                return self.set(name, value.trim(), line);
            }
            let Some(rest) = rest.strip_prefix(':') else { break };
            if !is_name(name) {
                return Err(format!(
                    "`{name}` is no label: expected letters, digits, `_` and `.`, no digit first"
                ));
            }
            if self.sets.contains_key(name) {
                return Err(format!("`{name}` is set and a label"));
            }
            let place = self.here();
            if self.labels.insert(name.into(), place).is_some() {
                return Err(format!("label `{name}` is defined twice"));
            }
            text = rest.trim_start();
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

    /// Assigns a value to a name, from this position on.
    fn set(&mut self, name: &str, text: &str, line: usize) -> Result<(), String> {
        if !is_name(name) {
            return Err(format!("`{name}` cannot be set: expected a name of letters, digits, `_` and `.`"));
        }
        if self.labels.contains_key(name) {
            return Err(format!("`{name}` is a label and set"));
        }
        if text.is_empty() {
            return Err(format!("`{name}` is set to nothing: expected a number or a symbol"));
        }
        // A known value is stored as a number. Addresses and names that are defined later are evaluated at the end.
        let evaluate_now = self.evaluate_now(text).map(|number| number.to_string());
        let known = evaluate_now.is_ok();
        let text = evaluate_now.unwrap_or_else(|_| text.to_string());
        let definition = Definition { place: self.here(), line, text, known };
        self.sets.entry(name.into()).or_default().push(definition);
        Ok(())
    }

    fn instruction(&mut self, mnemonic: &str, mut operands: Vec<String>, line: usize) -> Result<(), String> {
        let (op, wanted) = match mnemonic {
            // Aliases of the assembler for moves and returns.
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
            let section = &self.sections[self.current].name;
            return Err(format!("`{mnemonic}` in section {section}: expected .text before it"));
        }
        if !self.sections[0].size.is_multiple_of(4) {
            return Err(format!("`{mnemonic}` at an address that is no multiple of 4: expected .align 2"));
        }
        let written = |text: String| OperandText { known: self.evaluate_now(&text).is_ok(), text };
        let operands = operands.into_iter().map(written).collect();
        self.add(line, 4, Item::Inst(op, operands))
    }

    fn add(&mut self, line: usize, size: u32, item: Item) -> Result<(), String> {
        let place = self.here();
        let section = &mut self.sections[self.current];
        section.items.push(Placed { place, line, item });
        section.size += size;
        if section.size > LOCAL_STORE as u32 {
            return Err(format!("the program has more than the local store's {LOCAL_STORE} bytes"));
        }
        Ok(())
    }

    fn directive(&mut self, name: &str, operands: &[String], line: usize) -> Result<(), String> {
        let need = |counts: std::ops::RangeInclusive<usize>| {
            let (got, least, most) = (operands.len(), counts.start(), counts.end());
            match counts.contains(&got) {
                true => Ok(()),
                false if *most == usize::MAX => Err(format!(".{name} has no operands: expected a number")),
                false if least == most => Err(format!(".{name} has {got} operands: expected {least}")),
                false => Err(format!(".{name} has {got} operands: expected {least} to {most}")),
            }
        };
        match name {
            "text" | "data" => {
                need(0..=0)?;
                self.enter(&format!(".{name}"));
            }
            "section" => {
                need(1..=5)?;
                self.enter(&operands[0]);
            }
            "set" | "equ" => {
                need(2..=2)?;
                self.set(&operands[0], &operands[1], line)?;
            }
            "align" | "p2align" | "balign" => {
                need(1..=1)?;
                let value = self.evaluate_now(&operands[0])?;
                let power = || u32::try_from(value).ok().and_then(|bits| 1i64.checked_shl(bits)).unwrap_or(0);
                let to = if name == "balign" { value } else { power() };
                if !(1..=0x10000).contains(&to) || to & (to - 1) != 0 {
                    return Err(format!(".{name} {value}: expected an alignment of at most 65536 bytes"));
                }
                let section = &mut self.sections[self.current];
                section.align = section.align.max(to as u32);
                let fill = section.size.next_multiple_of(to as u32) - section.size;
                self.add(line, fill, Item::Fill(fill))?;
                self.run += 1;
            }
            "space" | "skip" | "zero" => {
                need(1..=2)?;
                let size = self.evaluate_now(&operands[0])?;
                if !(0..=0x4_0000).contains(&size) {
                    return Err(format!(".{name} {size}: expected at most the local store, 262144 bytes"));
                }
                let value = operands.get(1).map_or(Ok(0), |text| self.evaluate_now(text))?;
                let byte = u8::try_from(value).map_err(|_| format!(".{name}: {value} is no byte"))?;
                self.add(line, size as u32, Item::Space(size as u32, byte))?;
            }
            "fill" => {
                need(1..=3)?;
                let number =
                    |at: usize, other| operands.get(at).map_or(Ok(other), |text| self.evaluate_now(text));
                let (repeat, size, value) = (number(0, 0)?, number(1, 1)?, number(2, 0)?);
                if !(0..=0x4_0000).contains(&repeat) || ![1, 2, 4, 8].contains(&size) {
                    return Err(".fill: expected a count, a size of 1, 2, 4 or 8, and a value".into());
                }
                // For a size of 8 the last four bytes are always zero, as in the GNU assembler.
                let value = if size < 8 { value } else { in_bits(value, 32)? << 32 };
                for _ in 0..repeat {
                    self.add(line, size as u32, Item::Data(size as u32, value.to_string()))?;
                }
            }
            "octa" => {
                need(1..=usize::MAX)?;
                for operand in operands {
                    let value = match operand.strip_prefix('-') {
                        Some(digits) => number(digits)?.wrapping_neg(),
                        None => number(operand)?,
                    };
                    self.add(line, 16, Item::Bytes(value.to_be_bytes()))?;
                }
            }
            "byte" | "short" | "hword" | "half" | "long" | "int" | "word" | "quad" => {
                let size = match name {
                    "byte" => 1,
                    "short" | "hword" | "half" => 2,
                    "quad" => 8,
                    _ => 4,
                };
                need(1..=usize::MAX)?;
                for operand in operands {
                    self.add(line, size, Item::Data(size, operand.clone()))?;
                }
            }
            // These directives describe symbols for a linker, and this assembler needs no linker.
            "global" | "globl" | "type" | "size" | "file" | "ident" | "extern" | "local" => {}
            _ => {
                return Err(format!("unknown directive `.{name}`: expected .set, .align, .long, .octa, ..."));
            }
        }
        Ok(())
    }

    /// Returns the value of an expression that is needed immediately. The value must not be an address.
    fn evaluate_now(&self, text: &str) -> Result<i64, String> {
        let symbols = Symbols { labels: &self.labels, sets: &self.sets, bases: None };
        let value = evaluate(text, &symbols, self.here())?;
        match value.addresses {
            0 => Ok(value.number),
            _ => Err(format!(
                "`{text}` is an address, which is not known yet: expected a number or a name set before"
            )),
        }
    }

    fn lay_out(self) -> Result<Image, (usize, String)> {
        let mut bases = Vec::new();
        let mut end = 0u32;
        for section in &self.sections {
            let base = end.next_multiple_of(section.align);
            bases.push(base);
            end = base + section.size;
            if end > LOCAL_STORE as u32 {
                let line = section.items.last().map_or(0, |last| last.line);
                let name = &section.name;
                return Err((
                    line,
                    format!("{name} ends at {end}: the local store has {LOCAL_STORE} bytes for all sections"),
                ));
            }
        }
        let symbols = Symbols { labels: &self.labels, sets: &self.sets, bases: Some(&bases) };
        let mut bytes = vec![0; end as usize];
        let mut constants: Vec<Range<u32>> = Vec::new();
        for (number, section) in self.sections.iter().enumerate() {
            for Placed { place, line, item } in &section.items {
                let at = bases[number] + place.offset;
                let here = &mut bytes[at as usize..];
                let fail = |message| (*line, message);
                let size = match item {
                    Item::Inst(op, operands) => {
                        let inst = instruction(*op, operands, at, *place, &symbols).map_err(fail)?;
                        here[..4].copy_from_slice(&inst.encode().to_be_bytes());
                        continue;
                    }
                    Item::Fill(size) => {
                        if number == 0 {
                            fill_with_code(&mut here[..*size as usize], at);
                        }
                        continue;
                    }
                    Item::Data(size, text) => {
                        let value =
                            evaluate(text, &symbols, *place).and_then(|value| match value.addresses {
                                0 | 1 => in_bits(value.number, size * 8),
                                _ => Err(format!("`{text}` is neither a number nor an address")),
                            });
                        let value = value.map_err(fail)?;
                        here[..*size as usize].copy_from_slice(&value.to_be_bytes()[8 - *size as usize..]);
                        *size
                    }
                    Item::Bytes(value) => {
                        here[..16].copy_from_slice(value);
                        16
                    }
                    Item::Space(size, byte) => {
                        here[..*size as usize].fill(*byte);
                        *size
                    }
                };
                match constants.last_mut() {
                    _ if number != 0 => {}
                    Some(last) if last.end == at => last.end += size,
                    _ => constants.push(at..at + size),
                }
            }
        }
        // Unused definitions are checked too.
        let mut definitions: Vec<&Definition> = self.sets.values().flatten().collect();
        definitions.sort_by_key(|definition| definition.place.order);
        for Definition { place, line, text, .. } in definitions {
            let before = Place { order: place.order - 1, ..*place };
            evaluate(text, &symbols, before).map_err(|message| (*line, message))?;
        }
        let symbols = self
            .labels
            .iter()
            .map(|(name, place)| (name.clone(), bases[place.section] + place.offset))
            .collect();
        Ok(Image { origin: 0, bytes, code: 0..self.sections[0].size & !3, entry: 0, symbols, constants })
    }
}

/// Fills a place with zeros up to a word boundary, and then with `nop` and `lnop`.
fn fill_with_code(bytes: &mut [u8], at: u32) {
    let first = bytes.len() % 4;
    for (i, word) in bytes[first..].chunks_exact_mut(4).enumerate() {
        let even = (at + (first + 4 * i) as u32).is_multiple_of(8);
        let filler = Inst::bare(if even { Op::Nop } else { Op::Lnop });
        word.copy_from_slice(&filler.encode().to_be_bytes());
    }
}

/// Returns the value if it fits into this number of bits, signed or unsigned.
fn in_bits(value: i64, bits: u32) -> Result<i64, String> {
    if bits < 64 && (value >= 1 << bits || value < -(1 << (bits - 1))) {
        return Err(format!("{value} does not fit: expected {bits} bits"));
    }
    Ok(value)
}

/// Splits a text at the commas outside parentheses.
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
