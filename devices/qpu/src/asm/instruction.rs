//! Parses the operations of a line, and combines them into one instruction.

use std::borrow::Cow;

use super::operands::{File, Input, Output, Register, Source, register, small_immediate};
use super::setup::setup;
use crate::isa::{
    AddOp, Alu, Branch, BranchCondition, Condition, Destination, ELEMENTS, ImmediateKind, Instruction,
    LoadImmediate, MulOp, Mux, Semaphore, Signal, SmallImmediate, registers,
};

/// An instruction, or a branch to a label whose address is not known yet.
pub(super) struct Parsed {
    pub(super) instruction: Instruction,
    pub(super) label: Option<String>,
}

/// The parts of an operation in the text.
struct Operation<'t> {
    name: &'t str,
    suffixes: Vec<&'t str>,
    /// The operands. A call of a function has been replaced by its value.
    operands: Vec<Cow<'t, str>>,
}

const PACK: [&str; 16] = [
    "", "16a", "16b", "8abcd", "8a", "8b", "8c", "8d", "32s", "16as", "16bs", "8abcds", "8as", "8bs", "8cs",
    "8ds",
];
const UNPACK: [&str; 8] = ["", "16a", "16b", "8dr", "8a", "8b", "8c", "8d"];

/// Parses the instruction of a line. The label and the comment have been removed from the line.
pub(super) fn parse(line: &str) -> Result<Parsed, String> {
    let texts = line.split(';').map(str::trim).filter(|text| !text.is_empty());
    let operations: Vec<Operation<'_>> = texts.map(Operation::split).collect::<Result<_, _>>()?;
    let [first, ..] = &operations[..] else { return Err("an instruction is missing".into()) };
    if let Some(directive) = operations.iter().find(|operation| operation.name.is_empty()) {
        return Err(format!("the directive `.{}` is not supported", directive.suffixes.join(".")));
    }
    let alone = |parsed: Result<Parsed, String>| match operations.len() {
        1 => parsed,
        _ => Err(format!("`{}` is an instruction of its own", first.name)),
    };
    match first.name {
        "bra" | "brr" => alone(branch(first)),
        "sacq" | "srel" => alone(semaphore(first)),
        "ldi" | "ldipes" | "ldipeu" => alone(load_immediate(first)),
        "mov" if operations.len() == 1 && first.needs_load() => load_immediate(first),
        _ => alu(&operations),
    }
}

impl<'t> Operation<'t> {
    fn split(text: &'t str) -> Result<Operation<'t>, String> {
        let (name, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let mut suffixes = name.split('.');
        let name = suffixes.next().unwrap_or_default();
        let operand = |text: &'t str| match setup(text) {
            Some(word) => word.map(|word| Cow::Owned(format!("{word:#x}"))),
            None => Ok(Cow::Borrowed(text)),
        };
        let operands = split_operands(operands).into_iter().map(operand).collect::<Result<_, _>>()?;
        Ok(Operation { name, suffixes: suffixes.collect(), operands })
    }

    /// True for `mov` with a constant that is not a small immediate.
    fn needs_load(&self) -> bool {
        let Some(source) = self.operands.last() else { return false };
        source.starts_with('[') || value(source).is_some_and(|value| small_immediate(value).is_none())
    }

    /// Returns the condition of the suffixes, and true if the operation sets the flags.
    fn suffixes(&self) -> Result<(Condition, bool), String> {
        let (mut condition, mut sets_flags) = (Condition::Always, false);
        for suffix in &self.suffixes {
            match *suffix {
                "setf" => sets_flags = true,
                suffix => {
                    condition = condition_of(suffix).ok_or_else(|| format!("unknown suffix `.{suffix}`"))?
                }
            }
        }
        Ok((condition, sets_flags))
    }

    fn has_operands(&self, count: usize) -> Result<(), String> {
        match self.operands.len() == count {
            true => Ok(()),
            false => Err(format!("`{}` has {count} operands, not {}", self.name, self.operands.len())),
        }
    }
}

/// Splits operands at commas outside brackets and parentheses.
pub(super) fn split_operands(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let parts = text.split(|letter| {
        match letter {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn condition_of(suffix: &str) -> Option<Condition> {
    Condition::ALL.iter().copied().find(|condition| condition.text().strip_prefix('.') == Some(suffix))
}

/// A number: decimal, hexadecimal, or a float with a point.
pub(super) fn value(text: &str) -> Option<u32> {
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if digits.contains('.') {
        return text.parse::<f32>().ok().map(f32::to_bits);
    }
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    match is_negative {
        false => Some(value),
        true => (value <= 1 << 31).then(|| value.wrapping_neg()),
    }
}

/// Parses an operand that is written, such as `ra3.8a`. Returns the output, and the condition if the operand has one.
fn output(text: &str) -> Result<(Output, Option<Condition>), String> {
    let mut parts = text.split('.');
    let name = parts.next().unwrap_or_default();
    let register = match name {
        "-" => Register { file: File::Either, address: registers::NOP },
        // `r5` without the suffix for quads means that all elements of r5 get the value of element 0.
        "r5" => Register { file: File::B, address: registers::R5 },
        name => register(name, true).ok_or_else(|| format!("unknown register `{name}` to write to"))?,
    };
    let (mut pack, mut condition) = (0, None);
    for suffix in parts {
        match PACK.iter().position(|mode| *mode == suffix) {
            Some(mode) => pack = mode as u8,
            None => {
                condition = Some(condition_of(suffix).ok_or_else(|| format!("unknown suffix `.{suffix}`"))?)
            }
        }
    }
    Ok((Output { register, pack }, condition))
}

/// Parses an operand that is read, such as `ra3.8a` or `r0 << 3`.
fn input(text: &str) -> Result<Input, String> {
    let (text, rotation) = match (text.split_once("<<"), text.split_once(">>")) {
        (Some((source, by)), _) => (source.trim(), Some(rotation(by.trim(), false)?)),
        (_, Some((source, by))) => (source.trim(), Some(rotation(by.trim(), true)?)),
        _ => (text, None),
    };
    if let Some(value) = value(text) {
        return Ok(Input { source: Source::Value(value), unpack: 0, rotation });
    }
    let (name, suffix) = text.split_once('.').unwrap_or((text, ""));
    let unpack = UNPACK
        .iter()
        .position(|mode| *mode == suffix)
        .ok_or_else(|| format!("unknown suffix `.{suffix}`"))?;
    let accumulator = Mux::ALL[..6].iter().find(|mux| mux.text() == name);
    let source = match (accumulator, register(name, false)) {
        (Some(mux), _) => Source::Accumulator(*mux),
        (None, Some(register)) => Source::Register(register),
        (None, None) => return Err(format!("unknown register `{name}` to read")),
    };
    Ok(Input { source, unpack: unpack as u8, rotation })
}

fn rotation(by: &str, is_right: bool) -> Result<SmallImmediate, String> {
    if by == "r5" {
        // A rotation by r5 can only be towards higher elements. vc4asm writes this rotation as `<<`, although it writes
        // rotations by constants towards higher elements as `>>`.
        return Ok(SmallImmediate::RotateByR5);
    }
    match by.parse::<u8>() {
        // `>>` rotates towards higher elements.
        Ok(count @ 1..16) => Ok(SmallImmediate::Rotate(if is_right { count } else { 16 - count })),
        _ => Err(format!("`{by}` is no rotation: expected 1 to 15, or r5")),
    }
}

/// The operations of the ALUs and a signal.
fn alu(operations: &[Operation<'_>]) -> Result<Parsed, String> {
    let mut alu = Alu::NOP;
    let (mut outputs, mut inputs) = ([None; 2], [[None; 2]; 2]);
    let mut is_used = [false; 2];
    for operation in operations {
        if let Some(signal) = signal_of(operation.name) {
            if alu.signal != Signal::None {
                return Err("an instruction has one signal".into());
            }
            operation.has_operands(0)?;
            alu.signal = signal;
            continue;
        }
        let is_mul = choose_alu(operation, is_used)?;
        is_used[usize::from(is_mul)] = true;
        if operation.name == "nop" {
            operation.has_operands(0)?;
            continue;
        }
        let count = if is_mul { set_mul(&mut alu, operation) } else { set_add(&mut alu, operation) };
        operation.has_operands(1 + count)?;
        let (condition, sets_flags) = operation.suffixes()?;
        let (to, of_output) = output(&operation.operands[0])?;
        // An operation without a destination still sets the flags.
        let writes = to.register.address != registers::NOP;
        let condition = of_output.unwrap_or(condition);
        alu.to.set_condition(is_mul, if writes || sets_flags { condition } else { Condition::Never });
        if sets_flags && is_mul && alu.add != AddOp::Nop {
            return Err("the flags are those of the add ALU".into());
        }
        alu.to.sets_flags |= sets_flags;
        outputs[usize::from(is_mul)] = Some(to);
        let places = &mut inputs[usize::from(is_mul)];
        for (place, text) in places.iter_mut().zip(&operation.operands[1..]) {
            *place = Some(input(text)?);
        }
        if count == 1 {
            places[1] = places[0];
        }
    }
    if alu.to.sets_flags && alu.add == AddOp::Nop {
        // The add ALU writes nothing, so its condition has no effect. The condition is set nevertheless, because the words must
        // be equal to those of vc4asm.
        alu.to.set_condition(false, Condition::Always);
    }
    alu.to.set_outputs(outputs)?;
    alu.set_inputs(&inputs)?;
    Ok(Parsed { instruction: Instruction::Alu(alu), label: None })
}

fn signal_of(name: &str) -> Option<Signal> {
    Signal::ALL.iter().copied().find(|signal| !signal.text().is_empty() && signal.text() == name)
}

fn add_op(name: &str) -> Option<AddOp> {
    AddOp::ALL.iter().copied().find(|op| op.text() == name)
}

fn mul_op(name: &str) -> Option<MulOp> {
    MulOp::ALL.iter().copied().find(|op| op.text() == name)
}

/// Returns true if the mul ALU executes the operation. This is the case if the add ALU does not have the operation or is in
/// use, or if the operation rotates.
fn choose_alu(operation: &Operation<'_>, is_used: [bool; 2]) -> Result<bool, String> {
    let name = operation.name;
    let rotates = operation.operands.iter().skip(1).any(|text| text.contains("<<") || text.contains(">>"));
    let is_move = name == "mov";
    let can = [(is_move || add_op(name).is_some()) && !rotates, is_move || mul_op(name).is_some()];
    if !can[0] && !can[1] {
        return Err(format!("unknown instruction `{name}`"));
    }
    match (can[0] && !is_used[0], can[1] && !is_used[1]) {
        (true, _) => Ok(false),
        (false, true) => Ok(true),
        (false, false) => Err(format!("no ALU is left for `{name}`")),
    }
}

/// Sets the operation of the add ALU. Returns the number of inputs in the text of the operation.
fn set_add(alu: &mut Alu, operation: &Operation<'_>) -> usize {
    if operation.name == "mov" {
        alu.add = AddOp::Or;
        return 1;
    }
    alu.add = add_op(operation.name).expect("chosen for this ALU");
    alu.add.inputs()
}

/// Sets the operation of the mul ALU. Returns the number of inputs in the text of the operation.
fn set_mul(alu: &mut Alu, operation: &Operation<'_>) -> usize {
    if operation.name == "mov" {
        alu.mul = MulOp::V8min;
        return 1;
    }
    alu.mul = mul_op(operation.name).expect("chosen for this ALU");
    alu.mul.inputs()
}

/// The outputs of an instruction that has no ALU operations.
fn set_outputs(operation: &Operation<'_>, texts: &[Cow<'_, str>]) -> Result<Destination, String> {
    let (condition, sets_flags) = operation.suffixes()?;
    let mut to = Destination { sets_flags, ..Destination::NONE };
    if texts.len() > 2 {
        return Err(format!("`{}` writes to two registers at most", operation.name));
    }
    if texts.len() == 2 && condition != Condition::Always {
        return Err("write the condition after each of the registers".into());
    }
    let mut outputs = [None; 2];
    for ((place, text), is_mul) in outputs.iter_mut().zip(texts).zip([false, true]) {
        let (output, of_output) = output(text)?;
        let writes = output.register.address != registers::NOP;
        let condition = of_output.unwrap_or(condition);
        to.set_condition(is_mul, if writes || sets_flags { condition } else { Condition::Never });
        *place = Some(output);
    }
    to.set_outputs(outputs)?;
    Ok(to)
}

fn load_immediate(operation: &Operation<'_>) -> Result<Parsed, String> {
    let [outputs @ .., constant] = &operation.operands[..] else {
        return Err(format!("`{}` has no operands", operation.name));
    };
    let to = set_outputs(operation, outputs)?;
    let (kind, value) = match constant.strip_prefix('[').and_then(|list| list.strip_suffix(']')) {
        Some(list) => elements(list, operation.name)?,
        None => (ImmediateKind::Word, value(constant).ok_or_else(|| format!("`{constant}` is no number"))?),
    };
    let instruction = Instruction::LoadImmediate(LoadImmediate { kind, to, value });
    Ok(Parsed { instruction, label: None })
}

/// Returns the bits of a constant that is a list with one number for each element.
fn elements(list: &str, name: &str) -> Result<(ImmediateKind, u32), String> {
    let numbers: Vec<i8> = list
        .split(',')
        .map(|number| number.trim().parse())
        .collect::<Result<_, _>>()
        .map_err(|_| format!("`[{list}]` is no list of numbers"))?;
    if numbers.len() != ELEMENTS {
        return Err(format!("a list has {ELEMENTS} numbers, not {}", numbers.len()));
    }
    let is_signed = name == "ldipes" || (name != "ldipeu" && numbers.iter().any(|number| *number < 0));
    let (kind, range) =
        if is_signed { (ImmediateKind::PairsSigned, -2..=1) } else { (ImmediateKind::PairsUnsigned, 0..=3) };
    let mut value = 0;
    for (index, number) in numbers.into_iter().enumerate() {
        if !range.contains(&number) {
            return Err(format!("{number} is out of range, expected {} to {}", range.start(), range.end()));
        }
        let bits = u32::from(number as u8);
        value |= (bits >> 1 & 1) << (16 + index) | (bits & 1) << index;
    }
    Ok((kind, value))
}

fn semaphore(operation: &Operation<'_>) -> Result<Parsed, String> {
    let [outputs @ .., number] = &operation.operands[..] else {
        return Err(format!("`{}` has no operands", operation.name));
    };
    let to = set_outputs(operation, outputs)?;
    let value = value(number).and_then(|value| u8::try_from(value).ok()).filter(|value| *value < 16);
    let number = value.ok_or_else(|| format!("`{number}` is no semaphore: expected 0 to 15"))?;
    let decrements = operation.name == "sacq";
    Ok(Parsed { instruction: Instruction::Semaphore(Semaphore { to, number, decrements }), label: None })
}

fn branch(operation: &Operation<'_>) -> Result<Parsed, String> {
    let mut condition = BranchCondition::Always;
    for suffix in &operation.suffixes {
        let found = BranchCondition::ALL.iter().find(|one| one.text().strip_prefix('.') == Some(suffix));
        condition = *found.ok_or_else(|| format!("unknown suffix `.{suffix}`"))?;
    }
    let is_relative = operation.name == "brr";
    let mut branch = Branch {
        condition,
        is_relative,
        register: None,
        is_swapped: false,
        link_add: registers::NOP,
        link_mul: registers::NOP,
        offset: 0,
    };
    let [link, target @ ..] = &operation.operands[..] else {
        return Err(format!(
            "`{}` has no operands: write `-` where no return address is kept",
            operation.name
        ));
    };
    let (link, _) = output(link)?;
    (branch.link_add, branch.is_swapped) = (link.register.address, link.register.file == File::B);
    if target.is_empty() {
        return Err(format!("`{}` has no target", operation.name));
    }
    let mut label = None;
    for text in target {
        if let Some(number) = value(text) {
            branch.offset = number as i32;
        } else if let Some(Register { file: File::A, address: address @ 0..32 }) = register(text, false) {
            branch.register = Some(address);
        } else if let Some(Register { .. }) = register(text, false) {
            return Err(format!("`{text}` is no target: expected a register from ra0 to ra31"));
        } else {
            label = Some(text.trim_start_matches("r:").trim_start_matches(':').to_owned());
        }
    }
    Ok(Parsed { instruction: Instruction::Branch(branch), label })
}
