//! Pipe diagrams as pictures. A row stands for a round and a column for a cycle. The even pipe is above the odd one.

use lockstep_spu::isa::Class;

use super::window::{Cycle, Lost, Window};
use crate::pipes::{Bar, Column, Picture};

/// The colours of the cells, with their meaning.
const COLOURS: [(&str, &str); 9] = [
    ("#4e79a7", "arithmetic, logic"),
    ("#76b7b2", "word shift"),
    ("#59a14f", "shuffle, quadword shift"),
    ("#edc948", "load"),
    ("#f28e2b", "store"),
    ("#9c755f", "branch, hint"),
    ("#c9c9c9", "nop, lnop"),
    ("#e15759", "lost: dependency, hint"),
    ("#7b3f6e", "lost: branch"),
];

/// The colour of a class. The classes of byte operations, products and channels have no colour, because no picture contains them.
fn colour(class: Class) -> usize {
    match class {
        Class::Fx | Class::Bo | Class::Fi => 0,
        Class::Ws => 1,
        Class::Sh => 2,
        Class::Ls => 3,
        Class::St | Class::Ch => 4,
        Class::Br | Class::Hb => 5,
        Class::Nop | Class::Lnop => 6,
    }
}

fn column(cycle: &Cycle) -> Column {
    let lanes = match cycle.lost {
        Some(Lost::Branch) => [Some(8); 2],
        Some(_) => [Some(7); 2],
        None => cycle.pipes.map(|issue| issue.map(|issue| colour(issue.op.class()))),
    };
    Column { lanes, bar: cycle.is_dual().then_some(Bar::Dual) }
}

/// A window as SVG, with `row` cycles in a row.
pub(super) fn svg(window: &Window, row: usize) -> String {
    let columns: Vec<Column> = window.cycles.iter().map(column).collect();
    let numbers = window.cycles.chunks(row).map(|cycles| cycles[0].number - window.cycles[0].number);
    let rows: Vec<_> = numbers.zip(columns.chunks(row)).collect();
    let (title, summary) = (&window.title, window.summary());
    Picture { title, summary, colours: &COLOURS, dual: Some("dual issue"), row }.svg(&rows)
}
