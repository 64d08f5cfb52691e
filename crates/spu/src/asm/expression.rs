//! Expressions of assembly text: integers, symbols, the operators of C with C's precedence.

use std::cell::Cell;
use std::collections::HashMap;

/// What symbols stand for while a program is laid out.
pub(super) struct Symbols<'a> {
    /// Labels: addresses.
    pub labels: &'a HashMap<String, i64>,
    /// `.set`: the text, evaluated when used so that it may name later labels.
    pub sets: &'a HashMap<String, String>,
}

/// Evaluates an expression; `here` is the value of `.`.
pub(super) fn evaluate(text: &str, symbols: &Symbols<'_>, here: i64) -> Result<i64, String> {
    Parser { rest: text.trim(), symbols, here, depth: 0, atoms: &Cell::new(0) }.whole()
}

struct Parser<'a> {
    rest: &'a str,
    symbols: &'a Symbols<'a>,
    here: i64,
    depth: u32,
    /// Numbers and symbols so far, those behind a `.set` too.
    atoms: &'a Cell<u32>,
}

/// Operators by how tightly they bind, loosest first.
const LEVELS: [&[&str]; 5] = [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"]];
const PRODUCTS: &[&str] = &["*", "/", "%"];

/// Deeper nesting is a loop of `.set` or nonsense.
const DEEPEST: u32 = 64;

/// A `.set` that names others many times over grows beyond any patience.
const MOST_ATOMS: u32 = 100_000;

impl Parser<'_> {
    fn whole(mut self) -> Result<i64, String> {
        let value = self.level(0)?;
        if self.rest.is_empty() {
            Ok(value)
        } else {
            Err(format!("unexpected `{}` in an expression", self.rest))
        }
    }

    fn level(&mut self, level: usize) -> Result<i64, String> {
        let operators = match level {
            5 => PRODUCTS,
            6 => return self.unary(),
            _ => LEVELS[level],
        };
        let mut left = self.level(level + 1)?;
        'next: loop {
            self.rest = self.rest.trim_start();
            for operator in operators {
                if let Some(rest) = self.rest.strip_prefix(operator) {
                    self.rest = rest;
                    let right = self.level(level + 1)?;
                    left = apply(operator, left, right)?;
                    continue 'next;
                }
            }
            return Ok(left);
        }
    }

    fn unary(&mut self) -> Result<i64, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("an expression is nested too deeply".into());
        }
        self.rest = self.rest.trim_start();
        let mut chars = self.rest.chars();
        let first = chars.next().ok_or("an expression is missing: expected a number or a symbol")?;
        let value = match first {
            '-' => {
                self.rest = chars.as_str();
                self.unary()?.wrapping_neg()
            }
            '~' => {
                self.rest = chars.as_str();
                !self.unary()?
            }
            '+' => {
                self.rest = chars.as_str();
                self.unary()?
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

    fn atom(&mut self) -> Result<i64, String> {
        let end = self.rest.find(|c: char| !is_symbol(c)).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(end);
        if token.is_empty() {
            return Err(format!("unexpected `{}`: expected a number or a symbol", self.rest));
        }
        self.rest = rest;
        self.atoms.set(self.atoms.get() + 1);
        if self.atoms.get() > MOST_ATOMS {
            return Err(format!("an expression has more than {MOST_ATOMS} parts, those of .set included"));
        }
        if token == "." {
            return Ok(self.here);
        }
        if token.starts_with(|c: char| c.is_ascii_digit()) {
            let value = number(token)?;
            // Up to 64 bits, with or without sign.
            let value = i64::try_from(value).or_else(|_| u64::try_from(value).map(|value| value as i64));
            return value.map_err(|_| format!("`{token}` does not fit: expected 64 bits"));
        }
        if let Some(&address) = self.symbols.labels.get(token) {
            return Ok(address);
        }
        let Some(text) = self.symbols.sets.get(token) else {
            return Err(format!("unknown symbol `{token}`: expected a label or a name set by .set"));
        };
        let depth = self.depth + 1;
        if depth > DEEPEST {
            return Err(format!("`{token}` is defined by itself"));
        }
        Parser { rest: text, symbols: self.symbols, here: self.here, depth, atoms: self.atoms }.whole()
    }
}

/// An integer in decimal, hexadecimal, octal or binary.
pub(super) fn number(token: &str) -> Result<i128, String> {
    let lower = token.to_ascii_lowercase();
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', ..] => (&lower[2..], 16),
        [b'0', b'b', ..] => (&lower[2..], 2),
        [b'0', _, ..] => (&lower[1..], 8),
        _ => (&lower[..], 10),
    };
    u128::from_str_radix(digits, radix)
        .map(|value| value as i128)
        .map_err(|_| format!("`{token}` is no number"))
}

fn apply(operator: &str, left: i64, right: i64) -> Result<i64, String> {
    Ok(match operator {
        "|" => left | right,
        "^" => left ^ right,
        "&" => left & right,
        "<<" => count(right).and_then(|count| left.checked_shl(count)).unwrap_or(0),
        ">>" => count(right).and_then(|count| left.checked_shr(count)).unwrap_or(0),
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        "*" => left.wrapping_mul(right),
        "/" => left.checked_div(right).ok_or("division by zero")?,
        _ => left.checked_rem(right).ok_or("division by zero")?,
    })
}

/// How far to shift.
fn count(right: i64) -> Option<u32> {
    u32::try_from(right).ok()
}

pub(super) fn is_symbol(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}
