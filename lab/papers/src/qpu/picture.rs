//! Pictures of windows. A column stands for four clocks, the time of an instruction. The add ALU is above the mul
//! ALU.

use lockstep_qpu::isa::{AddOp, Alu, Instruction, MulOp, Signal, registers};
use lockstep_qpu::sim::timing::CLOCKS_PER_INSTRUCTION;

use super::window::Window;
use crate::pipes::{Bar, Column, Picture};

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

/// A column of the same colour in both lanes.
fn uniform(colour: usize) -> Column {
    Column { lanes: [Some(colour); 2], bar: None }
}

fn of_instruction(instruction: &Instruction) -> Column {
    let alu = match instruction {
        Instruction::Alu(alu) => alu,
        Instruction::LoadImmediate(load) => {
            let is_access = [load.to.add, load.to.mul].into_iter().any(is_transfer);
            return uniform(if is_access { TRANSFER } else { CONSTANT });
        }
        Instruction::Semaphore(_) | Instruction::Branch(_) => return uniform(BRANCH),
    };
    let loads = matches!(alu.signal, Signal::LoadTmu0 | Signal::LoadTmu1);
    let lanes = [add_colour(alu), mul_colour(alu)];
    let bar = match lanes {
        [None, None] => return uniform(if loads { RESULT } else { NOP }),
        // The result of a texture unit is loaded by an instruction that also has operations.
        _ if loads => Some(Bar::Colour(RESULT)),
        _ => lanes.iter().all(Option::is_some).then_some(Bar::Dual),
    };
    Column { lanes, bar }
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

fn columns(window: &Window) -> Vec<Column> {
    let mut columns = Vec::new();
    for event in &window.events {
        let lost = |clocks: u64| clocks.div_ceil(CLOCKS_PER_INSTRUCTION) as usize;
        let texture = event.stalls.texture;
        columns.extend(vec![uniform(LOST_TEXTURE); lost(texture)]);
        columns.extend(vec![uniform(LOST_OTHER); lost(event.stalls.total() - texture)]);
        columns.push(of_instruction(window.instruction(event)));
    }
    columns
}

/// A window as SVG, with `row` columns in a row.
pub(super) fn svg(window: &Window, row: usize) -> String {
    let columns = columns(window);
    let clocks = (0..).step_by(row * CLOCKS_PER_INSTRUCTION as usize);
    let rows: Vec<_> = clocks.zip(columns.chunks(row)).collect();
    let (title, summary) = (&window.title, window.summary());
    Picture { title, summary, colours: &COLOURS, dual: None, row }.svg(&rows)
}
