//! The operands of instructions in assembly text: registers, immediates and addresses.

use super::expression::{Place, Symbols, Value, evaluate};
use super::{set_branch, set_target};
use crate::isa::{Format, Inst, Op, Reg};

pub(super) struct OperandText {
    pub text: String,
    /// True if the value was known when the operand was read.
    pub known: bool,
}

/// The type of an operand.
#[derive(Clone, Copy)]
pub(super) enum Operand {
    Rt,
    Ra,
    Rb,
    Rc,
    Value,
    /// `offset(ra)`
    Memory,
    /// A channel: `$ch0` to `$ch127`.
    Channel,
    /// An address.
    Target,
    /// The branch that a hint refers to.
    Hinted,
}

/// Returns the kinds of the operands of a format, in the order of the syntax.
pub(super) fn shape(format: Format) -> &'static [Operand] {
    use Operand::*;
    match format {
        Format::Rrr => &[Rt, Ra, Rb, Rc],
        Format::Rr | Format::RrInOut | Format::RrStore => &[Rt, Ra, Rb],
        Format::RrA | Format::IndirectIf => &[Rt, Ra],
        Format::Ri7 | Format::Ri10 | Format::Ri10Byte => &[Rt, Ra, Value],
        Format::Ri7Offset | Format::Ri10Quad | Format::Ri10QuadStore => &[Rt, Memory],
        Format::ReadChannel => &[Rt, Channel],
        Format::WriteChannel => &[Channel, Rt],
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

/// Encodes the operands of an instruction at address `at`.
pub(super) fn instruction(
    op: Op,
    operands: &[OperandText],
    at: u32,
    place: Place,
    symbols: &Symbols<'_>,
) -> Result<Inst, String> {
    let mut inst = Inst::bare(op);
    let value = |text: &str| evaluate(text, symbols, place);
    let is_absolute =
        matches!(op.format(), Format::Ri16Absolute | Format::Ri16AbsoluteStore | Format::HintAbsolute);
    // A number is a distance if `distances` is set, and an address otherwise.
    let address = |OperandText { text, known }: &OperandText, distances: bool| {
        let found = match value(text)? {
            // The GNU assembler treats a value that is not known yet as an address, so this assembler refuses such a value.
            Value { addresses: 0, .. } if distances && !known => {
                return Err(format!(
                    "`{text}` is not known yet: expected a number set before, or an address"
                ));
            }
            Value { number, addresses: 0, .. } if distances => match number {
                -0x4_0000..=0x3_ffff => (i64::from(at) + number) & 0x3_ffff,
                _ => {
                    return Err(format!("{number} is too far: expected -262144 to 262143 bytes, or a label"));
                }
            },
            // A negative address, such as `.-8` in the first word, wraps at the size of the local store.
            Value { number: number @ -0x4_0000..=-1, addresses: 1, .. } if distances => number & 0x3_ffff,
            Value { number, addresses: 0 | 1, .. } => number,
            _ => return Err(format!("`{text}` is neither a number nor an address")),
        };
        match found {
            address @ 0..=0x3_ffff => Ok(address as u32),
            other => Err(format!("{other:#x} lies outside of the local store: expected 0 to 0x3ffff")),
        }
    };
    let number = |text: &str, unit| match value(text)? {
        Value { number, addresses: 0 | 1, .. } => in_range(op, number, unit),
        _ => Err(format!("`{text}` is neither a number nor an address")),
    };
    for (operand, written) in shape(op.format()).iter().zip(operands) {
        let text = &written.text;
        match operand {
            Operand::Rt => inst.rt = register(text, place, symbols)?,
            Operand::Ra => inst.ra = register(text, place, symbols)?,
            Operand::Rb => inst.rb = register(text, place, symbols)?,
            Operand::Rc => inst.rc = register(text, place, symbols)?,
            Operand::Value => inst.imm = number(text, 1)?,
            Operand::Target => set_target(&mut inst, at, address(written, !is_absolute)?)?,
            Operand::Hinted => set_branch(&mut inst, at, address(written, true)?)?,
            Operand::Channel => inst.imm = channel(text)?,
            Operand::Memory => {
                let inner =
                    text.strip_suffix(')').and_then(|text| text.rfind('$').map(|at| text.split_at(at)));
                let Some((offset, base)) = inner.and_then(|(o, b)| Some((o.trim().strip_suffix('(')?, b)))
                else {
                    return Err(format!("`{text}` is no place in memory: expected offset($register)"));
                };
                inst.ra = register(base, place, symbols)?;
                let unit = if op.format() == Format::Ri7Offset { 1 } else { 16 };
                inst.imm = if offset.trim().is_empty() { 0 } else { number(offset, unit)? };
            }
        }
    }
    Ok(inst)
}

fn in_range(op: Op, value: i64, unit: i64) -> Result<i32, String> {
    let (low, high) = op.range();
    let (low, high) = (i64::from(low) * unit, i64::from(high) * unit);
    if value % unit != 0 {
        return Err(format!("`{}`: {value} is no multiple of {unit}", op.mnemonic()));
    }
    if !(low..=high).contains(&value) {
        return Err(format!("`{}`: {value} is out of range, expected {low} to {high}", op.mnemonic()));
    }
    Ok((value / unit) as i32)
}

/// Parses the number of a channel.
fn channel(text: &str) -> Result<i32, String> {
    let digits = text.strip_prefix("$ch").filter(|digits| digits.starts_with(|c: char| c.is_ascii_digit()));
    let number = digits.and_then(|digits| digits.parse().ok()).filter(|number| *number < 128);
    number.ok_or_else(|| format!("`{text}` is no channel: expected $ch0 to $ch127"))
}

fn register(text: &str, place: Place, symbols: &Symbols<'_>) -> Result<Reg, String> {
    let expected = || format!("`{text}` is no register: expected $0 to $127 or $name");
    let name = text.trim().strip_prefix('$').ok_or_else(expected)?.trim();
    let number = match name.to_ascii_lowercase().as_str() {
        "lr" => 0,
        "sp" => 1,
        // The GNU assembler recognises `lr` and `sp` by their first two letters, so this assembler refuses longer
        // names.
        lower if lower.starts_with("lr") || lower.starts_with("sp") => {
            return Err(format!(
                "`{text}` is no register: names that begin with lr or sp stand for $lr and $sp"
            ));
        }
        _ => match evaluate(name, symbols, place) {
            Ok(Value { number, addresses: 0, .. }) => number,
            Ok(_) => return Err(expected()),
            Err(error) => return Err(format!("{}: {error}", expected())),
        },
    };
    u8::try_from(number).ok().filter(|&number| number < 128).map(Reg::new).ok_or_else(expected)
}
