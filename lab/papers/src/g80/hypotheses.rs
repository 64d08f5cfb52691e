//! Explanations that the papers state, and other explanations, each with the figures that confirm or refute it.

use super::boards::{Board, GS, GS_G98, GT};
use super::model::{Fit, Machine, Traces, table_1};
use super::multiprocessor::{ISSUE, LIMITS};
use super::program::{Assumptions, Grain, KERNELS, Kernel, Tables};
use super::rows::LIMIT;
use super::thesis::{CONFIGURATIONS, Traffic};
use crate::cuda::paper::{FIGURE_7, SIZES};

/// The verdict of the model on an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The figures agree with the explanation.
    Confirmed,
    /// The cause explains only a part of the effect, or explains the effect on one board only.
    InPart,
    /// The figures contradict the explanation.
    Refuted,
    /// The figures do not decide.
    Open,
}

impl Verdict {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Confirmed => "confirmed",
            Verdict::InPart => "in part",
            Verdict::Refuted => "refuted",
            Verdict::Open => "open",
        }
    }

    /// Returns the verdict on an explanation that figures can contradict but cannot confirm.
    fn refuted_if(is_contradicted: bool) -> Verdict {
        if is_contradicted { Verdict::Refuted } else { Verdict::Open }
    }

    /// The verdict on a cause that explains this fraction of an effect: confirmed if the fraction is at least 1 minus [`LIMIT`] percent,
    /// refuted if it is at most [`LIMIT`] percent, and otherwise in part.
    fn of_part(part: f64) -> Verdict {
        let limit = LIMIT / 100.0;
        match part {
            part if part >= 1.0 - limit => Verdict::Confirmed,
            part if part > limit => Verdict::InPart,
            _ => Verdict::Refuted,
        }
    }
}

/// An explanation.
#[derive(Debug, Clone, PartialEq)]
pub struct Hypothesis {
    /// The explanation in words.
    pub words: &'static str,
    /// `paper` if the paper states the explanation, otherwise `-`.
    pub stated_by: &'static str,
    /// The verdict that follows from the figures.
    pub verdict: Verdict,
    /// The figures from which the verdict is computed.
    pub reason: String,
}

/// The rates of copies over PCI Express 2.0 in bytes per second: the highest rate from pageable memory, and the rate from page-locked
/// memory.
pub const COPY_RATES: [f64; 2] = [3e9, 6e9];

/// Instructions of coarse grain for an AES block in Lockstep's kernel for sm_90.
const TODAY: u32 = 832;

/// Processors of a multiprocessor.
const PROCESSORS: u32 = 8;

/// Lookups of an AES block.
const LOOKUPS: f64 = 160.0;

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

/// The largest ratios of the boards that these causes explain: processors and clock; bandwidth; and the number of
/// multiprocessors, which limits the ratio of programs that wait for latency.
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

/// Returns the machine with other assumptions or traces and the same constants.
fn changed<'t>(traces: &'t Traces, machine: &Machine<'_>, with: Assumptions) -> Machine<'t> {
    Machine::with_assumptions(traces, with).with_fit(machine.fit)
}

/// The explanations that the model tests.
pub fn all(traces: &Traces, machine: &Machine<'_>, traffic: &Traffic) -> Vec<Hypothesis> {
    let mut all = of_transfers(traces, machine);
    all.extend(of_the_boards(machine));
    all.extend(of_the_grains(traces, machine));
    all.push(of_round_keys());
    all.extend(of_the_threads(traces, machine));
    all.push(of_constant_memory(traces, machine));
    all.push(of_the_thesis(traffic));
    all
}

/// Tests whether the times of Table 1 contain the transfers. The paper does not state this.
fn of_transfers(traces: &Traces, machine: &Machine<'_>) -> Vec<Hypothesis> {
    let [pageable, _] = COPY_RATES.map(copies);
    let left = clocks_after_copies();
    // `instruction` is the clocks of a multiprocessor for an instruction of each lookup, and `alone` is the clocks for the passes of all
    // lookups.
    let instruction = LOOKUPS * ISSUE as f64 / 32.0;
    let alone = instruction * traces.of(KERNELS[1]).mean(256, machine.with.broadcast);
    let others = (left - alone) / instruction;
    vec![
        Hypothesis {
            words: "the times contain copies from pageable memory",
            stated_by: "-",
            verdict: Verdict::refuted_if(pageable > whole_run()),
            reason: format!(
                "These copies take at least {:.1} ms for 128 MB to the card and back. The whole run takes {:.1} ms.",
                1e3 * pageable,
                1e3 * whole_run()
            ),
        },
        Hypothesis {
            words: "the times contain copies from page-locked memory",
            stated_by: "-",
            verdict: Verdict::refuted_if(others < 0.0),
            reason: format!(
                "{left:.0} clocks per AES block remain. Its {LOOKUPS} lookups with their bank conflicts need {alone:.0}, so the copies fit \
                 if a lookup has at most {others:.1} other instructions. Today's code (sm_90) has {:.1}.",
                f64::from(TODAY) / LOOKUPS - 1.0
            ),
        },
    ]
}

/// Explanations of the other figures of Table 1.
fn of_the_boards(machine: &Machine<'_>) -> Vec<Hypothesis> {
    let large = SIZES[3] as u64;
    let all = ratios();
    let [processors, bandwidth, multiprocessors] = all;
    let [gt, gs] = [GT, GS].map(|board| table_1(&board)[3]);
    let g98 = machine.fastest(&GS_G98, large);
    let nominal = machine.with_fit(Fit { clock: 1.0, ..machine.fit }).fastest(&GS, large);
    let [of_gs, of_g98] = [GS, GS_G98].map(|board| PROCESSORS * board.multiprocessors);
    let short = machine.with_fit(Fit { instructions: TODAY, ..machine.fit }).fastest(&GT, large);
    vec![
        Hypothesis {
            words: "the 8800 GT is more than 13 times as fast because of its clock",
            stated_by: "paper",
            verdict: Verdict::refuted_if(all.iter().all(|ratio| *ratio < gt / gs)),
            reason: format!(
                "The ratio is {:.2}. Processors and clocks give {processors:.2}, bandwidth {bandwidth:.1}, latency at most \
                 {multiprocessors:.0}. No combination of these causes exceeds the largest of them.",
                gt / gs
            ),
        },
        Hypothesis {
            words: "the 8400 GS is a G98 (1 multiprocessor, 1400 MHz)",
            stated_by: "-",
            verdict: Verdict::refuted_if(of_gs != of_g98),
            reason: format!(
                "Table 1 of the paper states {of_gs} processors, and a G98 has {of_g98}. The throughput does not decide: the paper has \
                 {gs:.0} Mbit/s, the model {g98:.0} with a G98 and {nominal:.0} with {of_gs} processors at 900 MHz."
            ),
        },
        Hypothesis {
            words: "the paper's code is as short as today's",
            stated_by: "-",
            verdict: Verdict::refuted_if(100.0 * (short / gt - 1.0).abs() > LIMIT),
            reason: format!(
                "With {TODAY} instructions for an AES block (sm_90), the 8800 GT gives {short:.0} Mbit/s instead of {gt:.0}. The paper's \
                 code has about {:.1} times as many.",
                f64::from(machine.fit.instructions) / f64::from(TODAY)
            ),
        },
    ]
}

/// Explanations of Figures 5 and 6.
fn of_the_grains(traces: &Traces, machine: &Machine<'_>) -> Vec<Hypothesis> {
    // Percent by which fine grain is faster.
    let ahead = |machine: &Machine<'_>, board: &Board, bytes: usize| {
        let rate = |grain| machine.by_size(board, shared(grain), bytes as u64);
        100.0 * (rate(Grain::Fine) / rate(Grain::Coarse) - 1.0)
    };
    let equal_passes = traces.with_equal_passes();
    let free = Assumptions { barriers: false, ..machine.with };
    let no_copies = Assumptions { copies_tables: false, ..free };
    let free = changed(traces, machine, free);
    let equal = changed(&equal_passes, machine, free.with);
    let no_copies = changed(&equal_passes, machine, no_copies);
    let [with, without, equal, no_copies] =
        [machine, &free, &equal, &no_copies].map(|machine| -ahead(machine, &GT, SIZES[3]));
    let [gt, gs] = [GT, GS].map(|board| ahead(machine, &board, SIZES[0]));
    vec![
        Hypothesis {
            words: "coarse grain is faster at large sizes because it needs no barriers",
            stated_by: "paper",
            verdict: Verdict::of_part(1.0 - without / with),
            reason: format!(
                "Fine grain is {with:.1} % slower with barriers, and {without:.1} % without. Without barriers and with the bank conflicts of \
                 coarse grain, it is {equal:.1} % slower; if blocks also do not copy the T-boxes, {no_copies:.1} %."
            ),
        },
        Hypothesis {
            words: "fine grain is faster at small sizes because it has more threads",
            stated_by: "paper",
            verdict: match [gt, gs].map(|percent| percent > 0.0) {
                [true, true] => Verdict::Confirmed,
                [false, false] => Verdict::Refuted,
                _ => Verdict::InPart,
            },
            reason: format!(
                "At 32 KB, fine grain is {gt:+.0} % ahead on the 8800 GT, whose {} multiprocessors get whole blocks of threads, and \
                 {gs:+.0} % on the 8400 GS.",
                GT.multiprocessors
            ),
        },
    ]
}

fn of_round_keys() -> Hypothesis {
    let rate = table_1(&GT)[3];
    let needed = rate * 1e6 / 128.0 * 44.0 * 32.0;
    Hypothesis {
        words: "round keys are in global memory, as in Lockstep's kernels",
        stated_by: "-",
        verdict: Verdict::refuted_if(needed > GT.memory),
        reason: format!(
            "44 reads of 32 bytes per AES block would need {:.0} GB/s at {rate:.0} Mbit/s; the card has {:.1}.",
            needed / 1e9,
            GT.memory / 1e9
        ),
    }
}

/// Explanations of Figure 7.
fn of_the_threads(traces: &Traces, machine: &Machine<'_>) -> Vec<Hypothesis> {
    let fine = shared(Grain::Fine);
    let rate = |machine: &Machine<'_>, threads| {
        machine.by_threads(fine, threads, FIGURE_7[1] as u64).unwrap_or(f64::NAN)
    };
    let not_copied = changed(traces, machine, Assumptions { copies_tables: false, ..machine.with });
    let [growth, of_warps] = [machine, &not_copied].map(|machine| rate(machine, 64) / rate(machine, 32));
    let resident = [8, 32, 64].map(|threads| traces.of(fine).resident(threads, &machine.with));
    vec![
        Hypothesis {
            words: "from 32 to 64 threads per block, throughput rises because twice as many warps are ready",
            stated_by: "paper",
            verdict: Verdict::of_part((of_warps - 1.0) / (growth - 1.0)),
            reason: format!(
                "{} warps are resident with 32 threads and {} with 64; 6 warps hide the latency. The throughput of fine grain grows by a \
                 factor of {growth:.2} at 128 KB. Half as many blocks also copy half as many T-boxes: without copies, the factor is \
                 {of_warps:.2}.",
                resident[1],
                2 * resident[2]
            ),
        },
        Hypothesis {
            words: "8 threads per block are slow because only 8 blocks are resident",
            stated_by: "paper",
            verdict: if resident[0] < LIMITS.blocks { Verdict::Refuted } else { Verdict::Confirmed },
            reason: format!(
                "Shared memory has room for {} blocks. Each block copies the T-boxes: without these copies, fine grain with 8 threads has \
                 {:.0} Mbit/s at 128 KB instead of {:.0}.",
                resident[0],
                rate(&not_copied, 8),
                rate(machine, 8)
            ),
        },
    ]
}

fn of_constant_memory(traces: &Traces, machine: &Machine<'_>) -> Hypothesis {
    let [shared, constant] = [KERNELS[1], KERNELS[3]];
    let at_once = changed(traces, machine, Assumptions { constant_word: 0, ..machine.with });
    let rate = |machine: &Machine<'_>, kernel| machine.by_size(&GT, kernel, SIZES[3] as u64);
    let (fast, slow, free) = (rate(machine, shared), rate(machine, constant), rate(&at_once, constant));
    Hypothesis {
        words: "constant memory is slow because of its one port",
        stated_by: "paper",
        verdict: Verdict::of_part((free - slow) / (fast - slow)),
        reason: format!(
            "A half-warp reads {:.1} different words per lookup, one after the other. Coarse grain has {slow:.0} Mbit/s at 128 MB, and \
             {fast:.0} with shared memory. If the port served all words at once, coarse grain would have {free:.0} Mbit/s.",
            traces.of(constant).mean(256, machine.with.broadcast)
        ),
    }
}

fn of_the_thesis(traffic: &Traffic) -> Hypothesis {
    let one = traffic.seconds_in_one_partition();
    let rows = traffic.rows();
    let row = rows.iter().find(|row| row.table == CONFIGURATIONS[0].table).expect("the table has a row");
    let (_, longest) = row.range;
    Hypothesis {
        words: "the thesis's S-box has bytes in one memory partition",
        stated_by: "-",
        verdict: Verdict::refuted_if(one > longest),
        reason: format!(
            "The lookups alone would take {one:.1} s, unless reads are merged. The longest run of Table {} takes {longest:.1} s.",
            row.table
        ),
    }
}
