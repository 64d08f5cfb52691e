//! Compares the figures of the papers with the figures of the model, and states the relation between the two.

use super::boards::{Board, GS, GT};
use super::model::{Fit, Machine, table_1};
use super::program::{Grain, Kernel, Tables};
use crate::cuda::paper::{BREAK_EVEN, FIGURE_7, SIZES, THREADS};

/// The relation of a figure of the model to the figure of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The figure determines a constant: it agrees by construction.
    Fitted,
    /// An assumption was chosen such that the figure agrees.
    Tuned,
    /// No constant depends on the figure, and the model agrees within the limit of the table.
    Predicted,
    /// No constant depends on the figure, and the model contradicts it.
    Refuted,
}

impl Status {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Status::Fitted => "fitted",
            Status::Tuned => "tuned",
            Status::Predicted => "predicted",
            Status::Refuted => "refuted",
        }
    }
}

/// A figure of a paper and of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What was measured.
    pub what: String,
    /// The figure of the paper.
    pub paper: f64,
    /// The figure of the model.
    pub model: f64,
    /// The relation of both.
    pub status: Status,
}

impl Row {
    /// A figure on which no constant depends. It is refuted if the model differs from the paper by more than `limit` percent.
    fn new(what: &str, paper: f64, model: f64, limit: f64) -> Row {
        let mut row = Row { what: what.into(), paper, model, status: Status::Refuted };
        // If the model has no figure, `model` is NaN and the comparison is false.
        if row.percent().abs() <= limit {
            row.status = Status::Predicted;
        }
        row
    }

    /// The difference between model and paper, in percent of the paper.
    pub fn percent(&self) -> f64 {
        100.0 * (self.model / self.paper - 1.0)
    }
}

/// The limit for figures of Table 1, in percent.
pub const LIMIT_OF_TABLE_1: f64 = 4.0;

/// The limit for all other figures, in percent.
pub const LIMIT: f64 = 15.0;

/// Formats a size in bytes in the units of the paper.
pub fn size(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{} KB", bytes >> 10) } else { format!("{} MB", bytes >> 20) }
}

/// Returns Table 1: Mbit/s of both boards.
pub fn of_table_1(machine: &Machine<'_>) -> Vec<Row> {
    let row = |board: &Board, at: usize| {
        let name = format!("{}, {}", board.name, size(SIZES[at] as u64));
        let mut row =
            Row::new(&name, table_1(board)[at], machine.fastest(board, SIZES[at] as u64), LIMIT_OF_TABLE_1);
        if at == 3 || (at == 0 && *board == GT) {
            row.status = Status::Fitted;
        }
        row
    };
    [GT, GS].iter().flat_map(|board| (0..4).map(move |at| row(board, at))).collect()
}

/// Returns Table 1 of the 8400 GS without the fitted clock.
pub fn at_nominal_clock(machine: &Machine<'_>) -> Vec<Row> {
    let machine = machine.with_fit(Fit { clock: 1.0, ..machine.fit });
    let row = |at: usize| {
        let bytes = SIZES[at] as u64;
        Row::new(
            &format!("8400 GS, {}", size(bytes)),
            table_1(&GS)[at],
            machine.fastest(&GS, bytes),
            LIMIT_OF_TABLE_1,
        )
    };
    let ratio = machine.fastest(&GT, SIZES[3] as u64) / machine.fastest(&GS, SIZES[3] as u64);
    let paper = table_1(&GT)[3] / table_1(&GS)[3];
    (0..4).map(row).chain([Row::new("8800 GT / 8400 GS, 128 MB", paper, ratio, LIMIT_OF_TABLE_1)]).collect()
}

/// Returns the Mbit/s of a kernel in Figure 7, for each number of [`THREADS`] whose blocks fit on a multiprocessor.
pub fn by_threads(machine: &Machine<'_>, kernel: Kernel, bytes: usize) -> Vec<(u32, f64)> {
    let rate = |&threads: &u32| Some((threads, machine.by_threads(kernel, threads, bytes as u64)?));
    // The paper measures coarse grain with at most 256 threads per block.
    let threads = THREADS.iter().filter(|&&threads| threads <= 256 || kernel.grain == Grain::Fine);
    threads.filter_map(rate).collect()
}

/// Returns two speed-ups over 8 threads per block: with the best number of threads up to 256, and with 256 threads.
fn growth(machine: &Machine<'_>, kernel: Kernel, bytes: usize) -> [f64; 2] {
    let rates = by_threads(machine, kernel, bytes);
    let of =
        |wanted| rates.iter().find(|(threads, _)| *threads == wanted).map_or(f64::NAN, |(_, rate)| *rate);
    let best = rates.iter().filter(|(threads, _)| *threads <= 256).map(|(_, rate)| *rate).fold(0.0, f64::max);
    [best / of(8), of(256) / of(8)]
}

/// The paper's speed-ups of 256 threads over 8 threads, for both sizes of Figure 7, with T-boxes in shared memory.
pub const GROWTH: [f64; 2] = [8.0, 16.0];

/// The paper's speed-up of 256 threads over 8 threads, with T-boxes in constant memory.
const GROWTH_OF_CONSTANT: f64 = 2.0;

/// Returns the statements of the paper's text about Figure 7.
pub fn of_figure_7(machine: &Machine<'_>) -> Vec<Row> {
    let kernel = |grain, tables| Kernel { grain, tables };
    let mut rows = Vec::new();
    for (at, bytes) in FIGURE_7.into_iter().enumerate() {
        let name = format!("shared: 256 threads / 8 threads, {}", size(bytes as u64));
        let [_, last] = growth(machine, kernel(Grain::Fine, Tables::Shared), bytes);
        let mut row = Row::new(&name, GROWTH[at], last, LIMIT);
        if at == 0 {
            row.status = Status::Tuned;
        }
        rows.push(row);
    }
    for bytes in FIGURE_7 {
        let name = format!("constant: best / 8 threads, {}", size(bytes as u64));
        let [best, _] = growth(machine, kernel(Grain::Fine, Tables::Constant), bytes);
        rows.push(Row::new(&name, GROWTH_OF_CONSTANT, best, LIMIT));
    }
    for bytes in FIGURE_7 {
        let name = format!("threads from which fine is ahead, {}", size(bytes as u64));
        rows.push(Row::new(&name, 128.0, f64::from(fine_is_ahead_from(machine, bytes)), LIMIT));
    }
    rows
}

/// Returns the smallest number of threads per block from which on fine grain is faster than coarse grain, with T-boxes in shared memory.
fn fine_is_ahead_from(machine: &Machine<'_>, bytes: usize) -> u32 {
    let [fine, coarse] = [Grain::Fine, Grain::Coarse]
        .map(|grain| by_threads(machine, Kernel { grain, tables: Tables::Shared }, bytes));
    let behind = fine.iter().zip(&coarse).rev().find(|(fine, coarse)| fine.1 <= coarse.1);
    behind.map_or(THREADS[0], |(fine, _)| 2 * fine.0)
}

/// Returns the statements of the paper's text about Figures 5 and 6.
pub fn of_figures_5_and_6(machine: &Machine<'_>) -> Vec<Row> {
    let break_even = |board: &Board, paper: usize| {
        let name = format!("break-even of coarse grain, {}, KB", board.name);
        Row::new(&name, (paper >> 10) as f64, (machine.break_even(board) >> 10) as f64, LIMIT)
    };
    let large = SIZES[3] as u64;
    let best = |tables| {
        let rate = |grain| machine.by_size(&GT, Kernel { grain, tables }, large);
        rate(Grain::Fine).max(rate(Grain::Coarse))
    };
    let constant = best(Tables::Constant) / best(Tables::Shared);
    vec![
        break_even(&GT, BREAK_EVEN[1]),
        break_even(&GS, BREAK_EVEN[0]),
        // Section 5 of the paper states that the implementation [22], with T-boxes in constant memory, has half of the throughput of the
        // other implementations.
        Row::new("constant / shared, large sizes", 0.5, constant, LIMIT),
    ]
}

#[cfg(test)]
mod tests;
