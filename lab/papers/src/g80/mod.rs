//! A model of the chips of the G80 family. Its times are compared with those that the CUDA paper (2009) measured on an 8800 GT and an 8400
//! GS, and with those that the thesis (2007) measured on an 8800 GTS.
//!
//! The emulator runs Lockstep's kernels of the papers' designs, and records their lookups and memory accesses ([`trace`]). By the
//! rules of compute capability 1.0 and 1.1 ([`rules`]), these accesses become the programs of warps ([`program`]). An
//! event-driven multiprocessor runs the programs ([`multiprocessor`]). Three constants are fitted to three figures of Table 1
//! ([`model`]). [`rows`] compares all other figures, [`hypotheses`] tests explanations, and [`variants`] changes the assumptions.

pub mod boards;
mod figures;
pub mod hypotheses;
pub mod model;
pub mod multiprocessor;
mod page;
mod plots;
pub mod program;
mod report;
pub mod rows;
pub mod rules;
pub mod thesis;
pub mod trace;
pub mod variants;

use lockstep_core::Error;

use boards::{Board, GS, GT};
use hypotheses::Hypothesis;
use model::{FIGURE_SIZES, Fit, Machine, Traces};
use program::{ASSUMPTIONS, KERNELS};
use rows::Row;
use thesis::Traffic;
use variants::Variant;

pub use page::page;
pub use report::{json, text};

use crate::cuda::paper::FIGURE_7;

/// The results of the model.
pub struct Results {
    /// The fitted constants.
    pub fit: Fit,
    /// For each of [`KERNELS`], the mean number of passes of a lookup: with half-warps of 16 threads, and with half-warps of 8 threads.
    pub passes: [[f64; 2]; 4],
    /// The statements of the paper about Figure 7, each with the figure of the model.
    pub figure_7: Vec<Row>,
    /// The statements of the paper about Figures 5 and 6, each with the figure of the model.
    pub figures_5_and_6: Vec<Row>,
    /// The figures of Table 1, each with the figure of the model.
    pub table_1: Vec<Row>,
    /// Table 1 of the 8400 GS, with the nominal clock in the model instead of the fitted one.
    pub nominal: Vec<Row>,
    /// For each of [`FIGURE_7`] and of [`KERNELS`]: Mbit/s by threads per block.
    pub by_threads: [[Vec<(u32, f64)>; 4]; 2],
    /// For the 8400 GS and the 8800 GT, and each of [`KERNELS`]: Mbit/s at each of [`FIGURE_SIZES`].
    pub by_size: [[Vec<f64>; 4]; 2],
    /// Mbit/s of fine and of coarse grain on the 8800 GT, by size in bytes. The sizes are so close to each other that each additional block
    /// of threads is visible.
    pub steps: Vec<(u64, [f64; 2])>,
    /// The explanations with their verdicts.
    pub hypotheses: Vec<Hypothesis>,
    /// The memory traffic of the thesis's kernel.
    pub traffic: Traffic,
    /// The memory traffic of the algorithm of GPU Gems 3 in CUDA.
    pub gems: Traffic,
    /// The figures of Tables A1 to A4 of the thesis, each with the figure of the model.
    pub thesis: Vec<thesis::Row>,
    /// The model with other assumptions.
    pub variants: Vec<Variant>,
}

impl Results {
    /// Traces, fits and simulates, which takes seconds.
    ///
    /// # Errors
    /// The error of the emulator.
    pub fn run() -> Result<Results, Error> {
        let traces = Traces::new()?;
        let machine = Machine::fitted(&traces, ASSUMPTIONS);
        let traffic = Traffic::traced()?;
        let by_size = |board: Board| {
            KERNELS.map(|kernel| FIGURE_SIZES.map(|bytes| machine.by_size(&board, kernel, bytes)).into())
        };
        let step =
            |bytes: u64| (bytes, [KERNELS[0], KERNELS[1]].map(|kernel| machine.by_size(&GT, kernel, bytes)));
        Ok(Results {
            fit: machine.fit,
            passes: KERNELS
                .map(|kernel| [16, 8].map(|threads| traces.of(kernel).mean(threads, ASSUMPTIONS.broadcast))),
            figure_7: rows::of_figure_7(&machine),
            figures_5_and_6: rows::of_figures_5_and_6(&machine),
            table_1: rows::of_table_1(&machine),
            nominal: rows::at_nominal_clock(&machine),
            by_threads: FIGURE_7.map(|bytes| KERNELS.map(|kernel| rows::by_threads(&machine, kernel, bytes))),
            by_size: [GS, GT].map(by_size),
            steps: (6..=44).map(|fours| step(fours << 12)).collect(),
            hypotheses: hypotheses::all(&traces, &machine, &traffic),
            thesis: traffic.rows(),
            variants: variants::run(&traces),
            traffic,
            gems: Traffic::of_gems()?,
        })
    }
}
