//! Pictures of the layouts and of the parts of the chip that the thesis's figures show.

use lockstep_qpu::sim::QPUS;

use crate::canvas::{BLOCKS, Canvas, EMPTY, MARKED, PART};

/// The number of elements of a vector, and the number of bytes of an element.
const ELEMENTS: usize = 16;
const BYTES: usize = 4;

/// The names and the SVG of the pictures.
pub(super) fn all() -> [(String, String); 4] {
    [("layout.svg", layouts()), ("chip.svg", chip()), ("vpm.svg", vpm()), ("round.svg", round())]
        .map(|(name, svg)| (name.into(), svg))
}

/// A byte of the blocks, by its block, row and column. `None` if no byte of the blocks is at the place.
type Place = Option<(usize, usize, usize)>;

/// Maps a place in a vector to the byte of the blocks that is stored there. The arguments are the number of the element and the number
/// of the byte in the element.
type Layout = fn(usize, usize) -> Place;

/// True for the words of a vector, by row and column of the VPM.
type Words = fn(usize, usize) -> bool;

/// The packed layout: an element is a column, and its lowest byte is row 0.
fn packed(element: usize, byte: usize) -> Place {
    Some((element / 4, byte, element % 4))
}

/// The layout after a rotation of row r of the whole vector by r elements, which mixes blocks.
fn rotated(element: usize, byte: usize) -> Place {
    packed((element + byte) % ELEMENTS, byte)
}

/// The layout after ShiftRows: row r of each block moves by r columns.
fn shifted(element: usize, byte: usize) -> Place {
    packed(element / 4 * 4 + (element + byte) % 4, byte)
}

/// The layout of the first kernel: an element has one byte, in the order of the bytes of the block.
fn single(element: usize, byte: usize) -> Place {
    (byte == 0).then_some((0, element % 4, element / 4))
}

fn layouts() -> String {
    const CELL: (usize, usize) = (40, 20);
    const LEFT: usize = 70;
    let panels: [(&str, Layout); 4] = [
        ("The first kernel: one block, one byte in an element", single),
        ("The second kernel: four blocks, a column in an element", packed),
        ("Row r rotated by r elements of the whole vector: bytes of other blocks in three columns", rotated),
        ("ShiftRows: these bytes replaced by a rotation in the other direction", shifted),
    ];
    let each = 44 + BYTES * CELL.1;
    let mut canvas = Canvas::new(LEFT + ELEMENTS * CELL.0 + 10, 26 + panels.len() * each);
    canvas.words((10, 18), "A cell is a byte: its row and column in the block. A colour is a block.");
    for (number, (words, of)) in panels.into_iter().enumerate() {
        let top = 40 + number * each;
        canvas.words((10, top + 4), words);
        for byte in 0..BYTES {
            let y = top + 12 + byte * CELL.1;
            canvas.words((10, y + 14), &format!("byte {}", ["a", "b", "c", "d"][byte]));
            for element in 0..ELEMENTS {
                let (fill, words) = match of(element, byte) {
                    Some((block, row, column)) => (BLOCKS[block], format!("{row},{column}")),
                    None => (EMPTY, String::new()),
                };
                canvas.cell((LEFT + element * CELL.0, y), CELL, fill, &words);
            }
        }
    }
    canvas.svg("Layouts of blocks in a vector of 16 elements")
}

fn chip() -> String {
    const SLICES: usize = 3;
    let of_slice = usize::from(QPUS) / SLICES;
    let mut canvas = Canvas::new(740, 330);
    for slice in 0..SLICES {
        let left = 10 + slice * 245;
        canvas.cell((left, 10), (230, 150), "#fff", "");
        canvas.words((left + 6, 26), &format!("slice {slice}"));
        for number in 0..of_slice {
            let qpu = slice * of_slice + number;
            canvas.cell((left + 8 + number * 54, 34), (50, 30), PART, &format!("QPU {qpu}"));
        }
        for unit in 0..2 {
            canvas.cell((left + 8 + unit * 108, 72), (104, 24), PART, &format!("texture unit {unit}"));
        }
        canvas.cell((left + 8, 102), (104, 24), PART, "instruction cache");
        canvas.cell((left + 116, 102), (104, 24), PART, "uniforms cache");
        canvas.cell((left + 8, 130), (212, 24), PART, "special functions");
    }
    canvas.cell((10, 175), (350, 30), PART, "L2 cache: reads of texture units, instructions, uniforms");
    canvas.cell((375, 175), (355, 30), PART, "VPM: 64 rows of 16 words for the QPUs");
    canvas.cell((375, 215), (172, 30), PART, "DMA load engine");
    canvas.cell((558, 215), (172, 30), PART, "DMA store engine");
    canvas.cell((10, 255), (720, 30), EMPTY, "memory, which the host copies data to and from");
    canvas.words((10, 312), "QPUs 0 and 1 of a slice, and QPUs 2 and 3, share a unit, because the numbers of the units are exchanged for two of them.");
    canvas.svg("The parts of VideoCore IV that run programs, as they are simulated")
}

fn vpm() -> String {
    const CELL: (usize, usize) = (18, 14);
    const ROWS: usize = 16;
    let mut canvas = Canvas::new(700, 300);
    let panels: [(&str, Words); 2] = [
        ("horizontal, 32 bits: row Y = 5", |row, _| row == 5),
        ("vertical, 32 bits: rows Y = 0 to 15, column X = 3", |_, column| column == 3),
    ];
    for (number, (words, is_marked)) in panels.into_iter().enumerate() {
        let left = 30 + number * 340;
        canvas.words((left, 22), words);
        for row in 0..ROWS {
            for column in 0..ELEMENTS {
                let fill = if is_marked(row, column) { MARKED } else { EMPTY };
                canvas.cell((left + column * CELL.0, 34 + row * CELL.1), CELL, fill, "");
            }
        }
    }
    canvas.words((30, 284), "A vector of a QPU is a row or a column of 16 words. QPULib stores columns: X is the number of the QPU.");
    canvas.svg("Vectors in the VPM")
}

/// The four steps of a round of AES (FIPS 197, section 5.1). A cell has the row and the column that its byte had before the round.
fn round() -> String {
    const CELL: (usize, usize) = (40, 24);
    const STEP: usize = 176;
    const TOP: usize = 50;
    let steps = ["state", "SubBytes", "ShiftRows", "MixColumns", "AddRoundKey"];
    let mut canvas = Canvas::new(10 + steps.len() * STEP, 195);
    canvas.words((10, 18), "A round of AES. A colour is a column of the state before the round.");
    for (number, words) in steps.into_iter().enumerate() {
        let left = 10 + number * STEP;
        canvas.words((left, TOP - 8), words);
        for row in 0..4 {
            for column in 0..4 {
                // ShiftRows moves row r to the left by r columns.
                let from = if number < 2 { column } else { (column + row) % 4 };
                let byte = format!("{row},{from}");
                let (fill, words) = match number {
                    0 => (BLOCKS[from], byte),
                    1 | 2 => (BLOCKS[from], format!("S {byte}")),
                    3 => (EMPTY, format!("m{row},{column}")),
                    _ => (EMPTY, "m + k".into()),
                };
                let at = (left + column * CELL.0, TOP + row * CELL.1);
                canvas.cell(at, CELL, fill, &words);
            }
        }
    }
    canvas.words((10, 166), "S is the S-box. m is the sum of the four bytes of the column after ShiftRows, times 2, 3, 1 and 1 in GF(2^8), from the row of m on downwards");
    canvas.words((10, 182), "and then from the top. k is the byte of the round key at the same place. The last round has no MixColumns.");
    canvas.svg("The steps of a round of AES")
}
