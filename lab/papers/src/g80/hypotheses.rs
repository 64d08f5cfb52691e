//! Possible explanations of the measured times, and the figures that confirm or refute each of them.

use super::boards::{GS, GS_G98, GT};
use super::model::{Fit, Machine, Traces, table_1};
use super::multiprocessor::ISSUE;
use super::program::{ASSUMPTIONS, Assumptions, Grain, KERNELS, Kernel, Tables};
use super::thesis::Traffic;
use crate::cuda::paper::{FIGURE_7, SIZES};

/// An explanation, and the verdict that follows from the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Hypothesis {
    /// The explanation as a sentence.
    pub words: &'static str,
    /// Who states the explanation: `paper`, `-` for nobody, or `not stated` for a question that the paper leaves open.
    pub stated_by: &'static str,
    /// `confirmed`, `refuted`, `in part` or `open`.
    pub verdict: &'static str,
    /// The figures of the paper and of the model from which the verdict follows, as a sentence.
    pub reason: String,
}

/// The rates of copies over PCI Express 2.0 in bytes per second: the highest rate from pageable memory, and the rate from page-locked
/// memory.
pub const COPY_RATES: [f64; 2] = [3e9, 6e9];

/// Bytes of Table 1's largest message.
const LARGE: f64 = SIZES[3] as f64;

/// Seconds in which the 8800 GT encrypts the largest message of Table 1.
pub fn whole_run() -> f64 {
    8e-6 * LARGE / table_1(&GT)[3]
}

/// Seconds of the copies of the largest message to the card and back, at a rate in bytes per second.
pub fn copies(rate: f64) -> f64 {
    2.0 * LARGE / rate
}

/// The clocks of a multiprocessor of the 8800 GT that remain for an AES block if the time in Table 1 includes copies of page-locked memory.
fn clocks_after_copies() -> f64 {
    (whole_run() - copies(COPY_RATES[1])) * GT.clock * f64::from(GT.multiprocessors) / (LARGE / 16.0)
}

/// The clocks that a multiprocessor needs for the 160 lookups of an AES block and their bank conflicts, if each lookup has three other
/// instructions.
fn clocks_of_lookups(traces: &Traces) -> f64 {
    let passes = traces.of(KERNELS[1]).mean(256, ASSUMPTIONS.broadcast);
    160.0 * (3.0 * ISSUE as f64 + 4.0 * passes) / 32.0
}

/// By how much the 8800 GT can be faster than the 8400 GS: in computation (processors and clock), in bandwidth, and in waiting for latency
/// (number of multiprocessors).
pub fn ratios() -> [f64; 3] {
    let processors = f64::from(GT.multiprocessors) * GT.clock / (f64::from(GS.multiprocessors) * GS.clock);
    [processors, GT.memory / GS.memory, f64::from(GT.multiprocessors) / f64::from(GS.multiprocessors)]
}

/// For each board, a line through its times for 32 KiB and for 128 MiB: a fixed time and a rate. Returns by how many percent the times for
/// 128 KiB and for 32 MiB differ from this line.
pub fn line_errors() -> [[f64; 2]; 2] {
    [GT, GS].map(|board| {
        let rates = table_1(&board);
        let seconds = |at: usize| 8e-6 * SIZES[at] as f64 / rates[at];
        let slope = (seconds(3) - seconds(0)) / (SIZES[3] - SIZES[0]) as f64;
        let line = |at: usize| seconds(0) + slope * (SIZES[at] - SIZES[0]) as f64;
        [1, 2].map(|at| 100.0 * (seconds(at) / line(at) - 1.0))
    })
}

fn shared(grain: Grain) -> Kernel {
    Kernel { grain, tables: Tables::Shared }
}

/// The explanations that the model tests.
pub fn all(traces: &Traces, machine: &Machine<'_>, traffic: &Traffic) -> Vec<Hypothesis> {
    let mut all = of_the_times(traces, machine);
    all.extend(of_the_grains(traces, machine));
    all.extend(of_the_threads(traces, machine));
    let one = traffic.seconds_in_one_partition();
    all.push(Hypothesis {
        words: "the thesis's S-box has bytes in one memory partition",
        stated_by: "-",
        verdict: "refuted",
        reason: format!(
            "The lookups alone would take {one:.1} s instead of about 6 s, unless reads are merged."
        ),
    });
    all
}

/// Explanations of Table 1.
fn of_the_times(traces: &Traces, machine: &Machine<'_>) -> Vec<Hypothesis> {
    let [processors, bandwidth, multiprocessors] = ratios();
    let paper = table_1(&GT)[3] / table_1(&GS)[3];
    let [pageable, _] = COPY_RATES.map(|rate| 1e3 * copies(rate));
    let (left, needed) = (clocks_after_copies(), clocks_of_lookups(traces));
    let g98 = machine.fastest(&GS_G98, SIZES[3] as u64);
    let ours =
        machine.with_fit(Fit { instructions: 832, call: 12e-6, clock: 1.0 }).fastest(&GT, SIZES[3] as u64);
    vec![
        Hypothesis {
            words: "the times contain the transfers",
            stated_by: "not stated",
            verdict: "refuted",
            reason: format!(
                "Pageable copies of 128 MB take {pageable:.0} ms, the whole run {:.1} ms. With page-locked copies, {left:.0} clocks per \
                 AES block remain; 160 lookups, each with three other instructions, need {needed:.0}.",
                1e3 * whole_run()
            ),
        },
        Hypothesis {
            words: "the 8800 GT is more than 13 times as fast because of its clock",
            stated_by: "paper",
            verdict: "refuted",
            reason: format!(
                "The ratio is {paper:.2}. Processors and clocks give {processors:.2}, bandwidth {bandwidth:.1}, latency at most \
                 {multiprocessors:.0}; no mixture exceeds the largest."
            ),
        },
        Hypothesis {
            words: "the 8400 GS is a G98 (1 multiprocessor, 1400 MHz)",
            stated_by: "-",
            verdict: "refuted",
            reason: format!(
                "It would give {g98:.0} Mbit/s instead of 909, a ratio of {:.1}.",
                table_1(&GT)[3] / g98
            ),
        },
        Hypothesis {
            words: "the paper's code is as short as today's",
            stated_by: "-",
            verdict: "refuted",
            reason: format!(
                "With 832 instructions for an AES block (sm_90) and 12 us per call, the 8800 GT gives {ours:.0} Mbit/s instead of 12412. \
                 The paper's code has about {:.1} times as many.",
                f64::from(machine.fit.instructions) / 832.0
            ),
        },
    ]
}

/// The machine with other assumptions and the same constants.
fn changed<'t>(traces: &'t Traces, machine: &Machine<'t>, with: Assumptions) -> Machine<'t> {
    Machine::with_assumptions(traces, with).with_fit(machine.fit)
}

/// Explanations of Figures 5 and 6.
fn of_the_grains(traces: &Traces, machine: &Machine<'_>) -> Vec<Hypothesis> {
    let of = |machine: &Machine<'_>, board, bytes| {
        let rate = |grain| machine.by_size(board, shared(grain), bytes);
        100.0 * (rate(Grain::Fine) / rate(Grain::Coarse) - 1.0)
    };
    let free = changed(traces, machine, Assumptions { barriers: false, ..ASSUMPTIONS });
    let [with, without] = [machine, &free].map(|machine| -of(machine, &GT, SIZES[3] as u64));
    let [fine, coarse] = [0, 1].map(|at| traces.of(KERNELS[at]).mean(256, ASSUMPTIONS.broadcast));
    vec![
        Hypothesis {
            words: "coarse grain is faster at large sizes because it needs no barriers",
            stated_by: "paper",
            verdict: "in part",
            reason: format!(
                "Fine grain is {with:.1} % slower with barriers and {without:.1} % slower without. The rest are bank conflicts: {fine:.2} \
                 passes per lookup of a half-warp against {coarse:.2}."
            ),
        },
        Hypothesis {
            words: "fine grain is faster at small sizes because it has more threads",
            stated_by: "paper",
            verdict: "in part",
            reason: format!(
                "At 32 KB, fine grain is {:+.0} % ahead on the 8800 GT, whose 14 multiprocessors get whole blocks of threads, and {:+.0} % \
                 on the 8400 GS.",
                of(machine, &GT, SIZES[0] as u64),
                of(machine, &GS, SIZES[0] as u64)
            ),
        },
        Hypothesis {
            words: "round keys are in global memory, as in Lockstep's kernels",
            stated_by: "-",
            verdict: "refuted",
            reason: format!(
                "44 reads of 32 bytes per AES block would need {:.0} GB/s at 12412 Mbit/s; the card has {:.1}.",
                table_1(&GT)[3] * 1e6 / 128.0 * 44.0 * 32.0 / 1e9,
                GT.memory / 1e9
            ),
        },
    ]
}

/// Explanations of Figure 7.
fn of_the_threads(traces: &Traces, machine: &Machine<'_>) -> Vec<Hypothesis> {
    let fine = shared(Grain::Fine);
    let rate = |machine: &Machine<'_>, threads| {
        machine.by_threads(fine, threads, FIGURE_7[1] as u64).unwrap_or(f64::NAN)
    };
    let not_copied = changed(traces, machine, Assumptions { copies_tables: false, ..ASSUMPTIONS });
    let resident = [8, 32, 64].map(|threads| traces.of(fine).resident(threads, &ASSUMPTIONS));
    let words = traces.of(KERNELS[3]).mean(256, ASSUMPTIONS.broadcast);
    vec![
        Hypothesis {
            words: "from 32 to 64 threads per block, throughput rises because twice as many warps are ready",
            stated_by: "paper",
            verdict: "confirmed",
            reason: format!(
                "{} warps are resident with 32 threads and {} with 64; 6 hide the latency. Fine grain grows by a factor of {:.1} at 128 KB.",
                resident[1],
                2 * resident[2],
                rate(machine, 64) / rate(machine, 32)
            ),
        },
        Hypothesis {
            words: "8 threads per block are slow because only 8 blocks are resident",
            stated_by: "paper",
            verdict: "refuted",
            reason: format!(
                "Shared memory has room for {} blocks. Each block copies the T-boxes: without these copies, fine grain with 8 threads has \
                 {:.0} Mbit/s at 128 KB instead of {:.0}.",
                resident[0],
                rate(&not_copied, 8),
                rate(machine, 8)
            ),
        },
        Hypothesis {
            words: "constant memory is slow because of its one port",
            stated_by: "paper",
            verdict: "confirmed",
            reason: format!("A half-warp reads {words:.1} different words per lookup, one after the other."),
        },
    ]
}
