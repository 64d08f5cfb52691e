//! Explanations of differences between the model and the thesis, each with the figures that confirm or refute it.

use lockstep_qpu::launch::Launch;
use lockstep_qpu::sim::timing::{CLOCKS_PER_INSTRUCTION, TMU_LATENCY};
use lockstep_report::Table;
use lockstep_report::text::{WIDTH, hang};
use serde_json::{Value, json};

use super::Error;
use super::appendix::{FirstKernel, Times, milliseconds};
use super::kernels::Named;
use super::model::{CLOCK_HZ, HOST_BYTE, HOST_CALL, HOST_LONG_CALL, LONG_CALL, Lengths, kernel_seconds};
use super::paper::{self, TABLE_5_1, TABLE_7_1, TABLE_7_2, TRANSFER_VECTORS, VECTORS};
use super::programs::{
    Access, Multiplication, clocks_of_turn, instructions, multiplication, products, products_by_bits, sums,
};
use super::throughput::ALL;
use crate::g80::hypotheses::Verdict;

/// An explanation of a difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Hypothesis {
    /// The explanation in words.
    pub words: &'static str,
    /// The tables whose figures it explains.
    pub tables: &'static str,
    /// The verdict that follows from the figures.
    pub verdict: Verdict,
    /// The figures from which the verdict is computed.
    pub reason: String,
}

/// Words that the instruction cache of a slice holds: 4 KiB of 8 bytes each.
const CACHED_INSTRUCTIONS: usize = 512;

/// Instructions of a line of this cache, which has 64 bytes.
const LINE: usize = 8;

/// The mean of the absolute differences in percent of the figures of the thesis.
fn error(pairs: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let differences: Vec<f64> =
        pairs.into_iter().map(|(model, thesis)| 100.0 * (model / thesis - 1.0).abs()).collect();
    differences.iter().sum::<f64>() / differences.len() as f64
}

/// The verdict on an explanation that changes the mean difference of predicted figures.
fn of_errors(before: f64, after: f64) -> Verdict {
    match after / before {
        ratio if ratio < 0.5 => Verdict::Confirmed,
        ratio if ratio < 0.95 => Verdict::InPart,
        _ => Verdict::Refuted,
    }
}

/// The explanations that the model tests. The arguments are tables that the model has computed.
///
/// # Errors
/// [`Error::Kernel`] if a program does not run, which is a bug.
pub(super) fn all(
    table_7_1: &Times<2>,
    table_7_2: &Times<2>,
    first: &[FirstKernel],
) -> Result<Vec<Hypothesis>, Error> {
    let calls = Calls::measure()?;
    let mut all = vec![calls.long_calls(), calls.copies()];
    all.push(fixed_cost(table_7_2));
    all.push(instruction_cache(table_7_2)?);
    all.extend(of_transfers(table_7_1, table_7_2)?);
    all.push(counted(table_7_2)?);
    all.push(texture_latency(first)?);
    Ok(all)
}

/// The times of calls in Table 5.1, by one QPU and by 12.
struct Calls {
    one: Vec<Row>,
    twelve: Vec<Row>,
}

/// A row of a table.
#[derive(Debug, Clone, Copy)]
struct Row {
    bytes: u64,
    /// Seconds of the QPUs and their invocation, by the model.
    kernel: f64,
    /// Seconds of the call in the thesis.
    thesis: f64,
}

impl Row {
    /// Seconds of the call by the model, with [`HOST_LONG_CALL`] or without it.
    fn model(&self, with_long: bool) -> f64 {
        let long = if with_long && self.kernel > LONG_CALL { HOST_LONG_CALL } else { 0.0 };
        self.kernel + HOST_CALL + long + HOST_BYTE * self.bytes as f64
    }

    /// The time of the thesis minus the time of the model without [`HOST_LONG_CALL`].
    fn excess(&self) -> f64 {
        self.thesis - self.model(false)
    }
}

impl Calls {
    fn measure() -> Result<Calls, Error> {
        let rows = |qpus: u8, of: fn(&paper::Encryption) -> Option<f64>| {
            let mut lengths = Lengths::of(Named::of(Launch::Packed { decrypts: false }), qpus);
            let mut rows = Vec::new();
            for row in &TABLE_5_1 {
                let Some(rate) = of(row) else { continue };
                let kernel = kernel_seconds(lengths.clocks(row.bytes)?, CLOCK_HZ);
                rows.push(Row { bytes: row.bytes, kernel, thesis: row.bytes as f64 / rate / 1e3 });
            }
            Ok::<_, Error>(rows)
        };
        Ok(Calls { one: rows(1, |row| row.one)?, twelve: rows(ALL, |row| Some(row.twelve))? })
    }

    /// Tests the part of the model that is fitted to Table 5.2 with the times of Table 5.1.
    fn long_calls(&self) -> Hypothesis {
        let is_long = |row: &&Row| row.kernel > LONG_CALL;
        let of = |with: bool| error(self.one.iter().filter(is_long).map(|row| (row.model(with), row.thesis)));
        let (before, after) = (of(false), of(true));
        Hypothesis {
            words: "a call takes 150 us longer if the QPUs work for more than 0.37 ms",
            tables: "5.1, 5.2",
            verdict: of_errors(before, after),
            reason: format!(
                "Fitted to Table 5.2 (12 QPUs), by which the limit is between 0.28 and 0.47 ms. For one QPU in Table 5.1, from 1 KiB on, \
                 the mean difference changes from {before:.1} to {after:.1} %."
            ),
        }
    }

    /// For the rows in which 12 QPUs are slower than in the model, tests whether the QPUs or the host are the cause.
    fn copies(&self) -> Hypothesis {
        let sizes = [1 << 14, 1 << 16, 1 << 18];
        let of = |rows: &[Row]| {
            sizes.map(|bytes| {
                let row = rows.iter().find(|row| row.bytes == bytes).expect("the table has this row");
                1e6 * row.excess()
            })
        };
        let [one, twelve] = [of(&self.one), of(&self.twelve)];
        let ratio = one.iter().sum::<f64>() / twelve.iter().sum::<f64>();
        let differences = one.iter().zip(twelve).map(|(one, twelve)| 100.0 * (one / twelve - 1.0).abs());
        let most = differences.fold(0.0, f64::max);
        let list = |times: [f64; 3]| times.map(|time| format!("{time:.0}")).join(", ");
        Hypothesis {
            words: "the 12 QPUs cause the long times of the middle rows",
            tables: "5.1",
            verdict: if (0.8..1.25).contains(&ratio) { Verdict::Refuted } else { Verdict::Open },
            reason: format!(
                "With 16, 64 and 256 KiB, calls of 12 QPUs take {} us more than the model without the 150 us, and calls of one QPU {} us. \
                 These times differ by at most {most:.0} %, so the time is the host's, and depends on the length. The column without copies \
                 does not have it.",
                list(twelve),
                list(one)
            ),
        }
    }
}

/// Differences of Table 7.2 in milliseconds: the thesis minus the model.
fn differences(model: &Times<2>, column: usize) -> Vec<f64> {
    TABLE_7_2.iter().zip(model).map(|(thesis, model)| thesis[column] - model[column]).collect()
}

/// Tests whether a fixed cost for both columns, fitted to the rows with an odd number of QPUs, predicts the other rows.
fn fixed_cost(model: &Times<2>) -> Hypothesis {
    let odd: Vec<f64> =
        [0, 1].into_iter().flat_map(|column| differences(model, column).into_iter().step_by(2)).collect();
    let fitted = odd.iter().sum::<f64>() / odd.len() as f64;
    let errors = [0.0, fitted].map(|cost| {
        let even = TABLE_7_2.iter().zip(model).skip(1).step_by(2);
        error(even.flat_map(|(thesis, model)| [0, 1].map(|column| (model[column] + cost, thesis[column]))))
    });
    let range = |column| {
        let all = differences(model, column);
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        format!("{least:.0} to {most:.0}")
    };
    Hypothesis {
        words: "a call has a fixed cost that the model lacks",
        tables: "7.2",
        verdict: of_errors(errors[0], errors[1]),
        reason: format!(
            "The differences are {} ms with blocking access, and {} ms ahead. A cost of {fitted:.0} ms, fitted to the rows with an odd \
             number of QPUs, changes the mean difference of the other rows from {:.1} to {:.1} %.",
            range(0),
            range(1),
            errors[0],
            errors[1]
        ),
    }
}

fn instruction_cache(model: &Times<2>) -> Result<Hypothesis, Error> {
    let mut words = 0;
    for access in [Access::Blocking, Access::Ahead] {
        words = words.max(instructions(&sums(access))?).max(instructions(&products(access))?);
    }
    for of in [Multiplication::Any, Multiplication::Exchanged, Multiplication::Small] {
        words = words.max(instructions(&multiplication(of))?);
    }
    let most = [0, 1].into_iter().flat_map(|column| differences(model, column)).fold(0.0, f64::max);
    let each = 1e3 * most / words.div_ceil(LINE) as f64;
    Ok(Hypothesis {
        words: "instruction-cache misses",
        tables: "7.1 to 7.3",
        verdict: if words <= CACHED_INSTRUCTIONS { Verdict::Refuted } else { Verdict::Open },
        reason: format!(
            "The programs have at most {words} instructions, and the cache holds {CACHED_INSTRUCTIONS}, so each line is missed once in a \
             call. For the largest difference of Table 7.2, {most:.0} ms, a miss would have to take {each:.0} us."
        ),
    })
}

/// Explanations of the times of blocking access with one QPU.
fn of_transfers(table_7_1: &Times<2>, table_7_2: &Times<2>) -> Result<Vec<Hypothesis>, Error> {
    let time = |code| Ok::<_, Error>(milliseconds(clocks_of_turn(&code, 1)?, TRANSFER_VECTORS, 1));
    let thesis = [TABLE_7_1[0][0], TABLE_7_2[0][0]];
    let model = [table_7_1[0][0], table_7_2[0][0]];
    let lazy = [time(sums(Access::BlockingLoads))?, time(products(Access::BlockingLoads))?];
    let percent = |model: f64, thesis: f64| 100.0 * (model / thesis - 1.0);
    let both = |model: [f64; 2]| error(model.into_iter().zip(thesis));
    // The model agrees exactly with Table 7.1 if each of the two loads of a vector ends earlier by this time.
    let earlier = (model[0] - thesis[0]) / 2.0;
    let clocks = earlier * 1e-3 * CLOCK_HZ / f64::from(TRANSFER_VECTORS);
    let predicted = model[1] - 2.0 * earlier;
    Ok(vec![
        Hypothesis {
            words: "a program waits for a store only before the next store",
            tables: "7.1, 7.2",
            verdict: of_errors(both(model), both(lazy)),
            reason: format!(
                "With one QPU and blocking access, the differences are then {:+.1} % (7.1) and {:+.1} % (7.2) instead of {:+.1} and \
                 {:+.1} %.",
                percent(lazy[0], thesis[0]),
                percent(lazy[1], thesis[1]),
                percent(model[0], thesis[0]),
                percent(model[1], thesis[1])
            ),
        },
        Hypothesis {
            words: "a DMA load ends before its engine is free for the next one",
            tables: "7.1, 7.2",
            verdict: of_errors((model[1] / thesis[1] - 1.0).abs(), (predicted / thesis[1] - 1.0).abs()),
            reason: format!(
                "{clocks:.0} clocks are fitted to Table 7.1 with one QPU. They predict {predicted:.0} ms for Table 7.2 with one QPU \
                 ({:+.1} %). Without them, the difference of the model is {:+.1} %.",
                percent(predicted, thesis[1]),
                percent(model[1], thesis[1])
            ),
        },
    ])
}

/// Tests whether Table 7.2 is explained by a product that counts eight steps and compares with constants.
fn counted(model: &Times<2>) -> Result<Hypothesis, Error> {
    let mut pairs = [Vec::new(), Vec::new()];
    for (qpus, (thesis, model)) in (1..).zip(TABLE_7_2.iter().zip(model)) {
        for (column, access) in [Access::Blocking, Access::Ahead].into_iter().enumerate() {
            let clocks = clocks_of_turn(&products_by_bits(access), qpus)?;
            pairs[0].push((milliseconds(clocks, TRANSFER_VECTORS, qpus), thesis[column]));
            pairs[1].push((model[column], thesis[column]));
        }
    }
    let [before, after] = pairs.map(error);
    Ok(Hypothesis {
        words: "the product counts eight steps, and compares with constants",
        tables: "7.2",
        verdict: of_errors(before, after),
        reason: format!(
            "Tuned: the program was chosen by this table. With the product of Table 7.3, the mean difference is {before:.1} %. With such a program, which the model has, it is \
             {after:.1} %. In the rows from 4 QPUs on, the DMA engine limits the model to {:.1} ms.",
            model[11][0]
        ),
    })
}

/// Tests whether a shorter latency of texture units, fitted to Table 7.4, agrees with the kernel of Table 5.1.
fn texture_latency(first: &[FirstKernel]) -> Result<Hypothesis, Error> {
    let [instructions, _] = first[0].clocks;
    let thesis = paper::TABLE_7_4[0] * 1e-3 * CLOCK_HZ / f64::from(VECTORS);
    let naive = Named::of(Launch::Naive { decrypts: false });
    let packed = Named::of(Launch::Packed { decrypts: false });
    let none = naive.clocks_with_latency(1, 0)?;
    // The last row of Table 5.1 without copies, in clocks of a vector of each QPU.
    let kernel = f64::from(ALL) * 64.0 * CLOCK_HZ / (1e3 * TABLE_5_1[12].kernel);
    let [now, zero] = [TMU_LATENCY, 0].map(|latency| packed.clocks_with_latency(ALL, latency));
    let (now, zero) = (100.0 * (now? / kernel - 1.0), 100.0 * (zero? / kernel - 1.0));
    Ok(Hypothesis {
        words: "results of texture units are ready earlier",
        tables: "7.4",
        verdict: if none > thesis { Verdict::Refuted } else { Verdict::Open },
        reason: format!(
            "A block takes {thesis:.0} clocks in the thesis. Without any latency, the model's program takes {none:.0}, of which \
             {instructions:.0} are instructions, so the measured program has at least {:.0} instructions fewer. The kernel of Table 5.1 \
             would differ by {zero:+.1} % instead of {now:+.1} %.",
            ((instructions - thesis) / CLOCKS_PER_INSTRUCTION as f64).ceil()
        ),
    })
}

/// The explanations for a terminal.
pub(super) fn text(all: &[Hypothesis]) -> String {
    let mut text = "Explanations of the differences\n".to_owned();
    for one in all {
        let title = format!("{}: {} (tables {})", one.verdict.name(), one.words, one.tables);
        text += &format!("\n{}{}", hang(WIDTH, "  ", 2, &title), hang(WIDTH, "    ", 4, &one.reason));
    }
    text
}

/// A table of the explanations.
pub(super) fn table(all: &[Hypothesis]) -> Table {
    let head = ["explanation", "tables", "verdict", "figures"];
    let mut table = Table::new("Explanations of the differences", &head, 4);
    for one in all {
        table.rows.push(vec![
            one.words.into(),
            one.tables.into(),
            one.verdict.name().into(),
            one.reason.clone(),
        ]);
    }
    table
}

impl Hypothesis {
    pub(super) fn json(&self) -> Value {
        json!({
            "explanation": self.words,
            "tables": self.tables,
            "verdict": self.verdict.name(),
            "figures": self.reason,
        })
    }
}
