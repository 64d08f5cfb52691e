//! Evaluates calls of the functions that return words for the setup of the VPM and DMA. The names and parameters are those of
//! `vc4.qinc`, which is a part of vc4asm; the fields are in Broadcom's guide, tables 32 to 37.

use super::instruction::{split_operands, value};

/// A parameter of a function, and the field of the word that contains its value.
struct Field {
    first: i64,
    last: i64,
    /// The value must be a multiple of this number.
    multiple: i64,
    /// The bits of the value that are kept. For example, a field of four bits stores the value 16 as 0.
    mask: u32,
    shift: u32,
}

impl Field {
    const fn new(first: i64, last: i64, mask: u32, shift: u32) -> Field {
        Field { first, last, multiple: 1, mask, shift }
    }

    /// A field for all values from 0 to `last`.
    const fn all(last: u32, shift: u32) -> Field {
        Field::new(0, last as i64, last, shift)
    }

    /// A field for a number of rows, words or vectors. The field stores the largest number as 0.
    const fn count(last: u32, shift: u32) -> Field {
        Field::new(0, last as i64, last - 1, shift)
    }

    /// The first row of a column: a multiple of 16.
    const fn row_of_column(shift: u32) -> Field {
        Field { multiple: 16, ..Field::new(0, 48, 0x30, shift) }
    }

    /// Returns the bits of the field for a value. `text` is the value in the source, for the error.
    fn of(&self, value: i64, text: &str, function: &str) -> Result<u32, String> {
        if !(self.first..=self.last).contains(&value) || value % self.multiple != 0 {
            let kind = if self.multiple == 1 { "a number" } else { "a multiple of 16" };
            return Err(format!(
                "`{function}`: {text} is out of range, expected {kind} from {} to {}",
                self.first, self.last
            ));
        }
        Ok((value as u32 & self.mask) << self.shift)
    }
}

/// A function: its name, the bits that do not depend on the parameters, and the parameters.
type Function = (&'static str, u32, &'static [Field]);

static FUNCTIONS: [Function; 22] = [
    // Reads and writes of the VPM: the number of vectors, the step of the address, and the first vector.
    ("vpm_setup", 0, &[Field::count(16, 20), Field::new(-64, 64, 63, 12), Field::all(0xfff, 0)]),
    ("h32", 0xa00, &[Field::all(63, 0)]),
    ("h16p", 0x900, &[Field::all(63, 1), Field::all(1, 0)]),
    ("h16l", 0xd00, &[Field::all(63, 1), Field::all(1, 0)]),
    ("h8p", 0x800, &[Field::all(63, 2), Field::all(3, 0)]),
    ("h8l", 0xc00, &[Field::all(63, 2), Field::all(3, 0)]),
    ("v32", 0x200, &[Field::row_of_column(0), Field::all(15, 0)]),
    ("v16p", 0x100, &[Field::row_of_column(1), Field::all(15, 1), Field::all(1, 0)]),
    ("v16l", 0x500, &[Field::row_of_column(1), Field::all(15, 1), Field::all(1, 0)]),
    ("v8p", 0, &[Field::row_of_column(2), Field::all(15, 2), Field::all(3, 0)]),
    ("v8l", 0x400, &[Field::row_of_column(2), Field::all(15, 2), Field::all(3, 0)]),
    // DMA stores: the number of rows, the words of a row, and the first word.
    ("vdw_setup_0", 0x8000_0000, &[Field::count(128, 23), Field::count(128, 16), Field::all(0x7fff, 0)]),
    ("vdw_setup_1", 0xc000_0000, &[Field::all(0xffff, 0)]),
    ("vdw_setup_1p", 0xc001_0000, &[Field::all(0xffff, 0)]),
    ("dma_h32", 0x4000, &[Field::all(127, 7), Field::all(15, 3)]),
    ("dma_h16p", 0x4002, &[Field::all(127, 7), Field::all(15, 3), Field::all(1, 0)]),
    ("dma_h8p", 0x4004, &[Field::all(127, 7), Field::all(15, 3), Field::all(3, 0)]),
    ("dma_v32", 0, &[Field::all(127, 7), Field::all(15, 3)]),
    // DMA loads: the distance of rows of memory, the words of a row, the number of rows, and the first word.
    (
        "vdr_setup_0",
        0x8000_0000,
        &[Field::all(15, 24), Field::count(16, 20), Field::count(16, 16), Field::all(0xffff, 0)],
    ),
    ("vdr_setup_1", 0x9000_0000, &[Field::all(0x1fff, 0)]),
    ("vdr_h32", 0, &[Field::count(16, 12), Field::all(63, 4), Field::all(15, 0)]),
    ("vdr_v32", 0x800, &[Field::count(16, 12), Field::all(63, 4), Field::all(15, 0)]),
];

/// The maximum depth of calls. Only calls whose arguments are calls without further calls have a meaning.
const MAX_DEPTH: usize = 2;

/// Returns the word of a call such as `vpm_setup(1, 1, h32(0))`. Returns `None` if the text is not a call.
pub(super) fn setup(text: &str) -> Option<Result<u32, String>> {
    text.contains('(').then(|| call(text, 1))
}

fn call(text: &str, depth: usize) -> Result<u32, String> {
    let parts = text.strip_suffix(')').and_then(|text| text.split_once('('));
    let (name, arguments) = parts.ok_or_else(|| format!("`{text}` is no call: a `)` is missing"))?;
    let (name, base, fields) = FUNCTIONS
        .iter()
        .find(|function| function.0 == name.trim())
        .ok_or_else(|| format!("unknown function `{name}`: there are {}", names()))?;
    let arguments = split_operands(arguments);
    if arguments.len() != fields.len() {
        return Err(format!("`{name}` has {} parameters, not {}", fields.len(), arguments.len()));
    }
    let mut word = *base;
    for (field, argument) in fields.iter().zip(arguments) {
        let number = match value(argument) {
            Some(number) if argument.starts_with('-') => i64::from(number as i32),
            Some(number) => i64::from(number),
            None if argument.contains('(') && depth < MAX_DEPTH => i64::from(call(argument, depth + 1)?),
            None => return Err(format!("`{name}`: `{argument}` is no number")),
        };
        word |= field.of(number, argument, name)?;
    }
    Ok(word)
}

fn names() -> String {
    FUNCTIONS.map(|function| function.0).join(", ")
}
