//! Expressions of assembly text: integers, symbols, and the operators of the GNU assembler. The precedence of the
//! operators follows the GNU assembler and differs from C: shifts have the precedence of products, and `|`, `^` and `&`
//! have a higher precedence than sums.

use std::cell::Cell;
use std::collections::HashMap;

/// The value of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Value {
    pub number: i64,
    /// Number of added addresses minus number of subtracted addresses: 1 for an address, 0 for a number.
    pub addresses: i32,
    /// For an address, the run that contains it: see [`Place::run`].
    run: usize,
}

impl Value {
    fn number(number: i64) -> Value {
        Value { number, addresses: 0, run: 0 }
    }
}

/// The position of an expression.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    pub section: usize,
    pub offset: u32,
    /// The number of the run that contains the position. A run is a part of the program in which the distance between
    /// two positions is known while the program is being read. An alignment starts a new run, even if it adds no
    /// padding.
    pub run: usize,
    /// Number of statements before this position.
    pub order: usize,
}

/// A value that `.set` assigns to a name. It is valid from the position of the `.set` on.
#[derive(Debug, Clone)]
pub(super) struct Definition {
    pub place: Place,
    pub line: usize,
    pub text: String,
    /// True if the value was known when the `.set` was read. In this case `text` is a number.
    pub known: bool,
}

/// The values of symbols.
pub(super) struct Symbols<'a> {
    pub labels: &'a HashMap<String, Place>,
    /// For each name, its definitions by `.set`, in the order of the program.
    pub sets: &'a HashMap<String, Vec<Definition>>,
    /// Start addresses of the sections, or `None` while the program is being read. Without start addresses, only
    /// numbers and differences within a run have a value, and addresses are relative to their section.
    pub bases: Option<&'a [u32]>,
}

/// Evaluates the text of an expression at a position of the program.
pub(super) fn evaluate(text: &str, symbols: &Symbols<'_>, place: Place) -> Result<Value, String> {
    Parser { rest: text.trim(), symbols, place, depth: 0, atoms: &Cell::new(0) }.whole()
}

struct Parser<'a> {
    rest: &'a str,
    symbols: &'a Symbols<'a>,
    place: Place,
    depth: u32,
    /// Number of atoms evaluated so far, including those in definitions by `.set`.
    atoms: &'a Cell<u32>,
}

/// The operators by precedence, lowest first. If an operator is a prefix of a longer one, the longer one comes first.
const LEVELS: [&[&str]; 6] = [
    &["||"],
    &["&&"],
    &["==", "!=", "<>", "<=", ">=", "<", ">"],
    &["+", "-"],
    &["|", "^", "&", "!"],
    &["*", "/", "%", "<<", ">>"],
];

/// Maximum nesting depth. This limit also detects cycles of `.set`.
const MAX_DEPTH: u32 = 64;

/// Maximum number of atoms. The limit is needed because chains of `.set` can grow exponentially.
const MAX_ATOMS: u32 = 100_000;

impl Parser<'_> {
    fn whole(mut self) -> Result<Value, String> {
        let value = self.level(0)?;
        if self.rest.is_empty() {
            Ok(value)
        } else {
            Err(format!("unexpected `{}` in an expression", self.rest))
        }
    }

    fn level(&mut self, level: usize) -> Result<Value, String> {
        if level == LEVELS.len() {
            return self.unary();
        }
        let mut left = self.level(level + 1)?;
        loop {
            self.rest = self.rest.trim_start();
            let Some(operator) = self.operator().filter(|found| LEVELS[level].contains(found)) else {
                return Ok(left);
            };
            self.rest = &self.rest[operator.len()..];
            let right = self.level(level + 1)?;
            if self.symbols.bases.is_none() {
                known_now(operator, left, right)?;
            }
            left = apply(operator, left, right)?;
        }
    }

    /// Reads the longest operator at the current position.
    fn operator(&self) -> Option<&'static str> {
        let all = LEVELS.into_iter().flatten().copied();
        all.filter(|operator| self.rest.starts_with(operator)).max_by_key(|operator| operator.len())
    }

    fn unary(&mut self) -> Result<Value, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("an expression is nested too deeply".into());
        }
        self.rest = self.rest.trim_start();
        let mut chars = self.rest.chars();
        let first = chars.next().ok_or("an expression is missing: expected a number or a symbol")?;
        let value = match first {
            '-' | '~' | '+' | '!' => {
                self.rest = chars.as_str();
                let of = self.unary()?;
                match first {
                    '+' => of,
                    '-' if of.addresses == 0 || self.symbols.bases.is_some() => {
                        Value { number: of.number.wrapping_neg(), addresses: -of.addresses, run: 0 }
                    }
                    _ if of.addresses != 0 => {
                        return Err(format!("`{first}` of an address: expected a number"));
                    }
                    '~' => Value::number(!of.number),
                    _ => Value::number(i64::from(of.number == 0)),
                }
            }
            '(' => {
                self.rest = chars.as_str();
                let value = self.level(0)?;
                self.rest = self.rest.trim_start().strip_prefix(')').ok_or("expected `)`")?;
                value
            }
            _ => self.atom()?,
        };
        self.depth -= 1;
        Ok(value)
    }

    fn atom(&mut self) -> Result<Value, String> {
        let end = self.rest.find(|c: char| !is_symbol(c)).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(end);
        if token.is_empty() {
            return Err(format!("unexpected `{}`: expected a number or a symbol", self.rest));
        }
        self.rest = rest;
        self.atoms.set(self.atoms.get() + 1);
        if self.atoms.get() > MAX_ATOMS {
            return Err(format!("an expression has more than {MAX_ATOMS} parts, those of .set included"));
        }
        if token == "." {
            return Ok(self.address(self.place));
        }
        if token.starts_with(|c: char| c.is_ascii_digit()) {
            let value = number(token)?;
            // An integer has up to 64 bits, signed or unsigned.
            let value = u64::try_from(value).map(|value| Value::number(value as i64));
            return value.map_err(|_| format!("`{token}` does not fit: expected 64 bits"));
        }
        if let Some(&place) = self.symbols.labels.get(token) {
            return Ok(self.address(place));
        }
        let definition = self.definition(token)?;
        if self.symbols.bases.is_none() && !definition.known {
            return Err(format!(
                "`{token}` was set to a value that was not known at that point: expected a number"
            ));
        }
        let depth = self.depth + 1;
        if depth > MAX_DEPTH {
            return Err(format!("`{token}` is defined by itself"));
        }
        // Names in a definition have the values that are valid at the position of the definition.
        let place = Place { order: definition.place.order - 1, ..definition.place };
        let rest = &definition.text;
        Parser { rest, symbols: self.symbols, place, depth, atoms: self.atoms }.whole()
    }

    fn address(&self, place: Place) -> Value {
        let base = self.symbols.bases.map_or(0, |bases| bases[place.section]);
        Value { number: i64::from(base + place.offset), addresses: 1, run: place.run }
    }

    /// Finds the latest definition before this position. If there is none, and the only definition is a later one, returns the later one.
    fn definition(&self, name: &str) -> Result<&Definition, String> {
        let Some(all) = self.symbols.sets.get(name) else {
            return Err(format!("unknown symbol `{name}`: expected a label or a name set by .set"));
        };
        let before = all.iter().rev().find(|one| one.place.order <= self.place.order);
        match (before, all.as_slice()) {
            (Some(found), _) => Ok(found),
            (None, [only]) => Ok(only),
            (None, _) => Err(format!("`{name}` is used before it is set, and set more than once")),
        }
    }
}

/// Parses an integer in decimal, hexadecimal, octal or binary.
pub(super) fn number(token: &str) -> Result<u128, String> {
    let lower = token.to_ascii_lowercase();
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', ..] => (&lower[2..], 16),
        [b'0', b'b', ..] => (&lower[2..], 2),
        [b'0', _, ..] => (&lower[1..], 8),
        _ => (&lower[..], 10),
    };
    // `from_str_radix` accepts a plus sign, which is not allowed here.
    let value = u128::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with('+'));
    value.ok_or_else(|| format!("`{token}` is no number"))
}

/// Refuses an expression whose value is not known before the sections are laid out. The GNU assembler does the same: it accepts a distance
/// only if no later step can change it.
fn known_now(operator: &str, left: Value, right: Value) -> Result<(), String> {
    let known = match (left.addresses, right.addresses) {
        (_, 0) => true,
        (0, _) => operator == "+",
        _ => operator == "-" && left.run == right.run,
    };
    if known { Ok(()) } else { Err(format!("addresses with `{operator}`, which are not known yet")) }
}

fn apply(operator: &str, left: Value, right: Value) -> Result<Value, String> {
    let (a, b) = (left.number, right.number);
    let addresses = match operator {
        "+" => left.addresses.saturating_add(right.addresses),
        "-" => left.addresses.saturating_sub(right.addresses),
        _ if left.addresses == 0 && right.addresses == 0 => 0,
        _ => return Err(format!("an address with `{operator}`: expected numbers")),
    };
    // A comparison that is true gives -1.
    let truth = |is: bool| -i64::from(is);
    let number = match operator {
        "||" => i64::from(a != 0 || b != 0),
        "&&" => i64::from(a != 0 && b != 0),
        "==" => truth(a == b),
        "!=" | "<>" => truth(a != b),
        "<" => truth(a < b),
        "<=" => truth(a <= b),
        ">" => truth(a > b),
        ">=" => truth(a >= b),
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "!" => a | !b,
        "<<" => a.wrapping_shl(count(b)?),
        ">>" => (a as u64).wrapping_shr(count(b)?) as i64,
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" if b != 0 => a.wrapping_div(b),
        "%" if b != 0 => a.wrapping_rem(b),
        _ => return Err("division by zero".into()),
    };
    let run = if left.addresses == 0 { right.run } else { left.run };
    Ok(Value { number, addresses, run })
}

/// Checks a shift count, which is from 0 to 63.
fn count(right: i64) -> Result<u32, String> {
    let count = u32::try_from(right).ok().filter(|count| *count < 64);
    count.ok_or_else(|| format!("a shift by {right}: expected 0 to 63"))
}

pub(super) fn is_symbol(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

/// True for names that labels and `.set` may define.
pub(super) fn is_name(name: &str) -> bool {
    name != "."
        && name.chars().all(is_symbol)
        && name.chars().next().is_some_and(|first| !first.is_ascii_digit())
}
