//! Windows as pictures: a column for four clocks, which an instruction takes; the add ALU above the mul ALU.

use std::fmt::Write;

use lockstep_qpu::isa::{AddOp, Alu, Instruction, MulOp, Signal, registers};
use lockstep_qpu::sim::timing::CLOCKS_PER_INSTRUCTION;

use super::window::Window;

/// The colours of the cells, with their meaning.
const COLOURS: [(&str, &str); 10] = [
    ("#4e79a7", "arithmetic, logic"),
    ("#76b7b2", "move"),
    ("#59a14f", "constant"),
    ("#edc948", "request to texture unit"),
    ("#f28e2b", "load of its result"),
    ("#b07aa1", "VPM, DMA"),
    ("#9c755f", "branch, semaphore"),
    ("#c9c9c9", "nop"),
    ("#e15759", "lost: texture unit"),
    ("#7b3f6e", "lost: DMA, other QPUs"),
];

const OPERATION: usize = 0;
const MOVE: usize = 1;
const CONSTANT: usize = 2;
const REQUEST: usize = 3;
const RESULT: usize = 4;
const TRANSFER: usize = 5;
const BRANCH: usize = 6;
const NOP: usize = 7;
const LOST_TEXTURE: usize = 8;
const LOST_OTHER: usize = 9;

const LANE: usize = 12;
const BETWEEN: usize = 4;
const GAP: usize = 8;
const LEFT: usize = 64;
const TOP: usize = 30;
const ROW: usize = 2 * LANE + BETWEEN + GAP;

/// Four clocks.
#[derive(Clone, Copy, PartialEq)]
struct Column {
    /// The colours of both ALUs. `None` for an ALU without an operation beside one with an operation.
    lanes: [Option<usize>; 2],
    /// True if both ALUs have an operation.
    is_dual: bool,
    /// True if a result of a texture unit is loaded beside operations.
    loads: bool,
}

impl Column {
    /// The same colour in both lanes.
    fn of(colour: usize) -> Column {
        Column { lanes: [Some(colour); 2], is_dual: false, loads: false }
    }

    fn of_instruction(instruction: &Instruction) -> Column {
        let alu = match instruction {
            Instruction::Alu(alu) => alu,
            Instruction::LoadImmediate(load) => {
                let is_access = [load.to.add, load.to.mul].into_iter().any(is_transfer);
                return Column::of(if is_access { TRANSFER } else { CONSTANT });
            }
            Instruction::Semaphore(_) | Instruction::Branch(_) => return Column::of(BRANCH),
        };
        let loads = matches!(alu.signal, Signal::LoadTmu0 | Signal::LoadTmu1);
        let lanes = [add_colour(alu), mul_colour(alu)];
        match lanes {
            [None, None] => Column::of(if loads { RESULT } else { NOP }),
            _ => Column { lanes, is_dual: lanes.iter().all(Option::is_some), loads },
        }
    }
}

/// True for a register of the VPM or of the DMA engines.
fn is_transfer(address: u8) -> bool {
    (registers::VPM..=registers::DMA_ADDRESS).contains(&address)
}

fn add_colour(alu: &Alu) -> Option<usize> {
    let is_move = alu.add == AddOp::Or && alu.add_inputs[0] == alu.add_inputs[1];
    (alu.add != AddOp::Nop).then(|| colour(alu, alu.to.add, is_move))
}

fn mul_colour(alu: &Alu) -> Option<usize> {
    let is_move = alu.mul == MulOp::V8min && alu.mul_inputs[0] == alu.mul_inputs[1];
    (alu.mul != MulOp::Nop).then(|| colour(alu, alu.to.mul, is_move))
}

/// The colour of an operation that writes to a register.
fn colour(alu: &Alu, to: u8, is_move: bool) -> usize {
    let reads_transfer =
        is_transfer(alu.read_a) || alu.small_immediate().is_none() && is_transfer(alu.read_b);
    match to {
        registers::TMU0_S.. => REQUEST,
        _ if is_transfer(to) || reads_transfer => TRANSFER,
        _ if is_move => MOVE,
        _ => OPERATION,
    }
}

/// The columns of a window.
fn columns(window: &Window) -> Vec<Column> {
    let mut columns = Vec::new();
    for event in &window.events {
        let lost = |clocks: u64| clocks.div_ceil(CLOCKS_PER_INSTRUCTION) as usize;
        let texture = event.stalls.texture;
        columns.extend(vec![Column::of(LOST_TEXTURE); lost(texture)]);
        columns.extend(vec![Column::of(LOST_OTHER); lost(event.stalls.total() - texture)]);
        columns.push(Column::of_instruction(window.instruction(event)));
    }
    columns
}

/// A window as SVG, with `row` columns in a row.
pub(super) fn svg(window: &Window, row: usize) -> String {
    let columns = columns(window);
    let rows: Vec<&[Column]> = columns.chunks(row).collect();
    let cell = (860 / row).clamp(6, 20);
    let width = (LEFT + row * cell + 10).max(760);
    let height = TOP + rows.len() * ROW + 56;
    let mut paths: Vec<String> = vec![String::new(); COLOURS.len()];
    let (mut dual, mut names) = (String::new(), String::new());
    for (number, columns) in rows.iter().enumerate() {
        let y = TOP + number * ROW;
        let first = number * row * CLOCKS_PER_INSTRUCTION as usize;
        // Writing to a string cannot fail.
        let _ =
            writeln!(names, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{first}</text>", LEFT - 6, y + 18);
        for lane in 0..2 {
            let y = y + lane * (LANE + BETWEEN);
            for (start, len, colour) in runs(columns, |column| column.lanes[lane]) {
                rectangle(&mut paths[colour], LEFT + start * cell, y, len * cell, LANE);
            }
        }
        let between = y + LANE + 1;
        for (start, len, ()) in runs(columns, |column| (column.is_dual && !column.loads).then_some(())) {
            rectangle(&mut dual, LEFT + start * cell, between, len * cell, BETWEEN - 2);
        }
        for (start, len, ()) in runs(columns, |column| column.loads.then_some(())) {
            rectangle(&mut paths[RESULT], LEFT + start * cell, between, len * cell, BETWEEN - 2);
        }
    }
    let title = &window.title;
    let mut out = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"
  font-family="sans-serif" font-size="11">
<title>{title}</title>
<desc>{}</desc>
<rect width="{width}" height="{height}" fill="#fff"/>
<text x="10" y="18" font-size="13">{title}</text>
"##,
        window.summary()
    );
    for (path, (fill, _)) in paths.iter().zip(COLOURS).filter(|(path, _)| !path.is_empty()) {
        let _ = writeln!(out, "<path fill=\"{fill}\" d=\"{path}\"/>");
    }
    let _ = writeln!(out, "<path fill=\"#000\" d=\"{dual}\"/>");
    // Thin lines between the columns, across all rows.
    let mut lines = String::new();
    for column in 1..row {
        let _ = write!(lines, "M{} {TOP}v{}", LEFT + column * cell, rows.len() * ROW - GAP);
    }
    let _ = writeln!(out, "<path stroke=\"#fff\" stroke-width=\"0.8\" d=\"{lines}\"/>");
    out += &names;
    legend(&mut out, TOP + rows.len() * ROW + 14);
    out += "</svg>\n";
    out
}

fn legend(out: &mut String, y: usize) {
    for (number, (fill, words)) in COLOURS.iter().enumerate() {
        let (x, y) = (LEFT + number % 5 * 138, y + number / 5 * 18);
        let _ = write!(out, "<rect x=\"{x}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{fill}\"/>", y - 9);
        let _ = writeln!(out, "<text x=\"{}\" y=\"{y}\">{words}</text>", x + 14);
    }
}

fn rectangle(path: &mut String, x: usize, y: usize, width: usize, height: usize) {
    let _ = write!(path, "M{x} {y}h{width}v{height}h-{width}z");
}

/// Runs of equal neighbours; columns without a value are skipped.
fn runs<T: PartialEq>(columns: &[Column], of: impl Fn(&Column) -> Option<T>) -> Vec<(usize, usize, T)> {
    let mut runs: Vec<(usize, usize, T)> = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        let Some(what) = of(column) else { continue };
        match runs.last_mut() {
            Some((start, len, same)) if *start + *len == at && *same == what => *len += 1,
            _ => runs.push((at, 1, what)),
        }
    }
    runs
}
