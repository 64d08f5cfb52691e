//! Circuits of 3-input lookup tables. They are parsed from `aes.circuit`, evaluated, and translated to the languages of
//! kernels by [`cuda()`], [`wgsl()`] and [`glsl()`]. Only tests use this crate; the translated files are checked in with
//! the kernels.
#![forbid(unsafe_code)]

use std::collections::HashMap;

mod cuda;
mod expression;
mod glsl;
mod wgsl;

pub use cuda::cuda;
pub use expression::cheapest;
pub use glsl::glsl;
pub use wgsl::wgsl;

/// The circuit file.
pub const AES: &str = include_str!("../aes.circuit");

/// The circuits of AES.
///
/// # Panics
/// Does not panic: the file is part of the crate, and a test parses it.
pub fn aes() -> Vec<Circuit> {
    parse(AES).unwrap_or_else(|error| panic!("aes.circuit: {error}"))
}

/// An operation: `name = lop3(operands, table)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lop3 {
    /// The name of the result.
    pub name: String,
    /// Names of earlier operations or of inputs; `None` if the table does not depend on the operand.
    pub operands: [Option<String>; 3],
    /// The truth table: bit 4a + 2b + c is the value for the operands a, b and c.
    pub table: u8,
}

/// Operations in an order in which they can be evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circuit {
    /// The name in the file.
    pub name: String,
    /// The operations, each after the operations whose results it uses.
    pub operations: Vec<Lop3>,
}

/// Parses a file of circuits.
///
/// # Errors
/// A message with the first line that is not a valid operation, or that defines a name twice.
pub fn parse(text: &str) -> Result<Vec<Circuit>, String> {
    let mut circuits: Vec<Circuit> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let at = |problem: &str| format!("line {}: {problem}: {line}", number + 1);
        if let Some(name) = line.strip_prefix("circuit ") {
            circuits.push(Circuit { name: name.to_owned(), operations: Vec::new() });
            continue;
        }
        let circuit = circuits.last_mut().ok_or_else(|| at("no circuit yet"))?;
        let operation = parse_operation(line).ok_or_else(|| at("not an operation"))?;
        if circuit.operations.iter().any(|other| other.name == operation.name) {
            return Err(at("this name is taken"));
        }
        for (index, operand) in operation.operands.iter().enumerate() {
            if depends_on(operation.table, index) != operand.is_some() {
                return Err(at("0 must stand for exactly the operands that do not matter"));
            }
        }
        circuit.operations.push(operation);
    }
    Ok(circuits)
}

fn parse_operation(line: &str) -> Option<Lop3> {
    let (name, right) = line.split_once(" = lop3(")?;
    let parts: Vec<&str> = right.strip_suffix(')')?.split(", ").collect();
    let [a, b, c, table] = parts[..] else { return None };
    let operand = |text: &str| (text != "0").then(|| text.to_owned());
    Some(Lop3 {
        name: name.to_owned(),
        operands: [operand(a), operand(b), operand(c)],
        table: u8::from_str_radix(table.strip_prefix("0x")?, 16).ok()?,
    })
}

/// True if the value of the table depends on this operand. Operand 0 is a, the highest bit of the index.
fn depends_on(table: u8, operand: usize) -> bool {
    let bit = 4 >> operand;
    (0..8).any(|index| (table >> index ^ table >> (index ^ bit)) & 1 == 1)
}

impl Circuit {
    /// Evaluates all operations for 64 inputs at once; `input` returns the values of an input by its name.
    pub fn evaluate(&self, input: impl Fn(&str) -> u64) -> HashMap<&str, u64> {
        let mut values: HashMap<&str, u64> = HashMap::new();
        for operation in &self.operations {
            let [a, b, c] = operation.operands.each_ref().map(|operand| match operand {
                None => 0,
                Some(name) => values.get(name.as_str()).copied().unwrap_or_else(|| input(name)),
            });
            let value = (0..8).filter(|index| operation.table >> index & 1 == 1).fold(0, |sum, index| {
                let literal = |bit: u8, plane: u64| if index & bit != 0 { plane } else { !plane };
                sum | literal(4, a) & literal(2, b) & literal(1, c)
            });
            values.insert(&operation.name, value);
        }
        values
    }

    /// True if the circuit processes a column and a round key; false if it processes a single byte.
    fn is_column(&self) -> bool {
        self.operations.iter().any(|operation| operation.name == "o0x0")
    }
}

/// The variable in kernel code that a name in the circuit file stands for. In kernel code, bit 0 of a byte is the least
/// significant.
enum Place {
    Input { row: usize, bit: usize },
    Key { row: usize, bit: usize },
    Output { row: usize, bit: usize },
    Inner,
}

fn place(name: &str) -> Place {
    let digit = |index: usize| name.as_bytes().get(index).map_or(0, |c| usize::from(c.wrapping_sub(b'0')));
    let bytes = name.as_bytes();
    let is_digits = |indices: &[usize]| indices.iter().all(|&i| bytes.get(i).is_some_and(u8::is_ascii_digit));
    match (bytes[0], bytes.len()) {
        (b'U', 2) if is_digits(&[1]) => Place::Input { row: 0, bit: 7 - digit(1) },
        (b'U', 4) if is_digits(&[1, 3]) => Place::Input { row: digit(3), bit: 7 - digit(1) },
        (b'S', 2) if is_digits(&[1]) => Place::Output { row: 0, bit: 7 - digit(1) },
        (b'K', 4) if is_digits(&[1, 3]) => Place::Key { row: digit(1), bit: digit(3) },
        (b'o', 4) if is_digits(&[1, 3]) => Place::Output { row: digit(1), bit: digit(3) },
        _ => Place::Inner,
    }
}
