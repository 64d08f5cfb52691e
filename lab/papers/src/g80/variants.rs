//! The model with other assumptions. Each variant is fitted separately, and shows which figures depend on an assumption.

use super::boards::{Board, GS, GT};
use super::model::{Fit, Machine, Traces};
use super::program::{ASSUMPTIONS, Assumptions, Broadcast};
use super::rows::{Row, Status, of_figure_7, of_table_1};

/// A machine with other assumptions, and its predictions.
#[derive(Debug, Clone)]
pub struct Variant {
    /// The difference from the model, as text.
    pub name: &'static str,
    /// The fitted constants.
    pub fit: Fit,
    /// The largest difference of a predicted figure of Table 1 from the paper, in percent.
    pub worst: f64,
    /// The rows of Figure 7.
    pub figure_7: Vec<Row>,
    /// The break-even of the 8800 GT and of the 8400 GS, in bytes.
    pub break_even: [u64; 2],
}

impl Variant {
    fn new(traces: &Traces, name: &'static str, with: Assumptions) -> Variant {
        let machine = Machine::fitted(traces, with);
        let rows = of_table_1(&machine);
        let predicted = rows.iter().filter(|row| row.status != Status::Fitted);
        Variant {
            name,
            fit: machine.fit,
            worst: predicted.map(|row| row.percent().abs()).fold(0.0, f64::max),
            figure_7: of_figure_7(&machine),
            break_even: [GT, GS].map(|board: Board| machine.break_even(&board)),
        }
    }
}

/// The variant with the instructions of fine grain of Lockstep's kernels for sm_90.
pub const MANY_INSTRUCTIONS: &str = "2.28 times as many fine instructions";

/// Fits and simulates all variants.
pub fn run(traces: &Traces) -> Vec<Variant> {
    let base = ASSUMPTIONS;
    let all = [
        ("as in the model", base),
        ("every bank broadcasts its word", Assumptions { broadcast: Broadcast::EveryBank, ..base }),
        ("32 bytes of state, coarse grain", Assumptions { state: [8, 32], ..base }),
        ("4 % fewer fine instructions", Assumptions { fine_instructions: 0.96, ..base }),
        ("8 % fewer fine instructions", Assumptions { fine_instructions: 0.92, ..base }),
        (MANY_INSTRUCTIONS, Assumptions { fine_instructions: 2.28, ..base }),
        ("no barriers in fine grain", Assumptions { barriers: false, ..base }),
        ("T-boxes not copied by each block", Assumptions { copies_tables: false, ..base }),
        ("1 load in flight", Assumptions { loads_in_flight: 1, ..base }),
        ("4 loads in flight", Assumptions { loads_in_flight: 4, ..base }),
        ("300 clocks of global memory", Assumptions { global: 300, ..base }),
        ("600 clocks of global memory", Assumptions { global: 600, ..base }),
        ("24 clocks of a lookup", Assumptions { lookup: 24, ..base }),
        ("4 clocks for a constant word", Assumptions { constant_word: 4, ..base }),
    ];
    all.into_iter().map(|(name, with)| Variant::new(traces, name, with)).collect()
}
