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
use super::paper::{self, TABLE_5_1, TABLE_7_1, TABLE_7_2, TABLE_7_3, TABLE_7_4, TRANSFER_VECTORS, VECTORS};
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

/// The tables by the number of QPUs, by the model.
pub(super) struct Tables<'t> {
    pub(super) sums: &'t Times<2>,
    pub(super) products: &'t Times<2>,
    pub(super) multiplications: &'t Times<3>,
    pub(super) first: &'t [FirstKernel],
}

/// The explanations that the model tests.
///
/// # Errors
/// [`Error::Kernel`] if a program does not run, which is a bug.
pub(super) fn all(tables: &Tables<'_>) -> Result<Vec<Hypothesis>, Error> {
    let Tables { sums, products, multiplications, first } = tables;
    let waits: Vec<[f64; 1]> = first.iter().map(|row| [row.milliseconds[1]]).collect();
    let thesis_waits = TABLE_7_4.map(|thesis| [thesis]);
    let calls = Calls::measure()?;
    let mut all = vec![calls.long_calls(), calls.copies(), calls.fixed_cost()];
    const ODD: &str = "the rows with an odd number of QPUs";
    all.push(fixed_cost("7.1", ODD, &TABLE_7_1, *sums));
    all.push(fixed_cost("7.2", ODD, &TABLE_7_2, *products));
    all.push(fixed_cost("7.3", ODD, &TABLE_7_3, *multiplications));
    all.push(fixed_cost("7.4", ODD, &thesis_waits, &waits));
    all.push(instruction_cache(&calls, products)?);
    all.extend(of_transfers(sums, products)?);
    all.push(counted(products)?);
    let ahead = Length::of("7.2, ahead", TRANSFER_VECTORS, &TABLE_7_2, *products, 1);
    all.extend([ahead.hypothesis(), ahead.blocking(products)]);
    for (name, column) in [("7.3, exchanged", 1), ("7.3, small", 2)] {
        all.push(Length::of(name, VECTORS, &TABLE_7_3, *multiplications, column).hypothesis());
    }
    all.push(Length::of("7.4", VECTORS, &thesis_waits, &waits, 0).hypothesis());
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

    /// A further fixed cost, tested with the rows of 12 QPUs in which the model is too fast.
    fn fixed_cost(&self) -> Hypothesis {
        let (thesis, model): (Vec<_>, Vec<_>) =
            self.middle().map(|row| ([1e3 * row.thesis], [1e3 * row.model(true)])).unzip();
        let fit = fixed_cost("5.1", "the rows with 16 KiB, 256 KiB and 4 MiB", &thesis, &model);
        // The milliseconds that the model lacks in the fitted rows. With a fixed cost, they would be equal.
        let lacking: Vec<f64> =
            thesis.iter().zip(&model).step_by(2).map(|([thesis], [model])| thesis - model).collect();
        if lacking[lacking.len() - 1] < 2.0 * lacking[0] {
            return fit;
        }
        let list = lacking.iter().map(|time| format!("{time:.2}")).collect::<Vec<_>>().join(", ");
        Hypothesis {
            verdict: Verdict::Refuted,
            reason: format!(
                "{} However, the model lacks {list} ms in the fitted rows. This time grows with the length, so it is not a fixed cost.",
                fit.reason
            ),
            ..fit
        }
    }

    /// The rows of 12 QPUs from 16 KiB to 16 MiB, in which the model is too fast.
    fn middle(&self) -> impl Iterator<Item = &Row> {
        self.twelve.iter().filter(|row| (1 << 14..=1 << 24).contains(&row.bytes))
    }

    /// Tests whether the QPUs or the host are the cause in the rows in which 12 QPUs are slower than in the model.
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

/// A fixed cost for all columns of a table, fitted to every second row from the first one on (`fitted_rows`), predicts the other rows.
/// The fit minimizes the squares of the relative differences, because [`error`] compares relative differences. The times are in
/// milliseconds.
fn fixed_cost<const COLUMNS: usize>(
    tables: &'static str,
    fitted_rows: &str,
    thesis: &[[f64; COLUMNS]],
    model: &[[f64; COLUMNS]],
) -> Hypothesis {
    // Pairs of the model and the thesis.
    let rows = |first: usize| {
        let rows = model.iter().zip(thesis).skip(first).step_by(2);
        rows.flat_map(|(model, thesis)| model.iter().copied().zip(thesis.iter().copied())).collect::<Vec<_>>()
    };
    let (fit, predicted) = (rows(0), rows(1));
    let (lacking, weights) = fit.iter().fold((0.0, 0.0), |(lacking, weights), (model, thesis)| {
        let weight = 1.0 / (thesis * thesis);
        (lacking + weight * (thesis - model), weights + weight)
    });
    let cost = lacking / weights;
    let [before, after] =
        [0.0, cost].map(|cost| error(predicted.iter().map(|(model, thesis)| (model + cost, *thesis))));
    Hypothesis {
        words: "a call has a fixed cost that the model lacks",
        tables,
        verdict: if cost < 0.0 { Verdict::Refuted } else { of_errors(before, after) },
        reason: if cost < 0.0 {
            format!("Fitted to {fitted_rows}, the cost is negative: {cost:.2} ms.")
        } else {
            format!(
                "A cost of {cost:.2} ms, fitted to {fitted_rows}, changes the mean difference of the other rows from {before:.1} to \
                 {after:.1} %."
            )
        },
    }
}

fn instruction_cache(calls: &Calls, products_model: &Times<2>) -> Result<Hypothesis, Error> {
    let mut small = 0;
    for access in [Access::Blocking, Access::Ahead] {
        small = small.max(instructions(&sums(access))?).max(instructions(&products(access))?);
    }
    for of in [Multiplication::Any, Multiplication::Exchanged, Multiplication::Small] {
        small = small.max(instructions(&multiplication(of))?);
    }
    let words = |launch| Ok::<_, Error>(Named::of(launch).words(128)?.len());
    let packed = words(Launch::Packed { decrypts: false })?;
    let naive = words(Launch::Naive { decrypts: false })?;
    let table_7_2 = TABLE_7_2.as_flattened().iter().zip(products_model.as_flattened());
    let most = |differences: &mut dyn Iterator<Item = f64>| differences.fold(0.0, f64::max);
    let most_7_2 = most(&mut table_7_2.map(|(thesis, model)| thesis - model));
    let most_5_1 = most(&mut calls.middle().map(|row| 1e3 * (row.thesis - row.model(true))));
    // Microseconds of a miss, if each line is missed once.
    let each = |milliseconds: f64, words: usize| 1e3 * milliseconds / words.div_ceil(LINE) as f64;
    let fits = [small, packed, naive].iter().all(|words| *words <= CACHED_INSTRUCTIONS);
    Ok(Hypothesis {
        words: "instruction-cache misses",
        tables: "5.1, 7.1 to 7.4",
        verdict: if fits { Verdict::Refuted } else { Verdict::Open },
        reason: format!(
            "The programs of Tables 7.1 to 7.3 have at most {small} instructions, the kernel of Table 5.1 has {packed}, and the first \
             kernel {naive}. The cache holds {CACHED_INSTRUCTIONS}, so each line is missed once in a call. For the largest differences, \
             {most_7_2:.0} ms in Table 7.2 and {most_5_1:.0} ms in Table 5.1, a miss would have to take {:.0} and {:.0} us. In Table 7.4 \
             the model is too slow, and misses would make it slower.",
            each(most_7_2, small),
            each(most_5_1, packed)
        ),
    })
}

/// A program that is longer or shorter than the model's by a number of instructions, which is fitted to the rows with an odd number of
/// QPUs. The times are in milliseconds.
struct Length {
    tables: &'static str,
    thesis: Vec<f64>,
    model: Vec<f64>,
    /// Instructions for a vector that the measured program has in addition to those of the model's program.
    instructions: f64,
    /// The time of these instructions with one QPU.
    more: f64,
    /// The shortest time that the DMA engines allow.
    least: f64,
}

impl Length {
    fn of<const COLUMNS: usize>(
        tables: &'static str,
        vectors: u32,
        thesis: &[[f64; COLUMNS]],
        model: &[[f64; COLUMNS]],
        column: usize,
    ) -> Length {
        let [thesis, model] =
            [thesis, model].map(|rows| rows.iter().map(|row| row[column]).collect::<Vec<_>>());
        let one = model[0];
        // If the program alone determines the time, 12 QPUs are 12 times as fast as one.
        let least = if model[11] > 1.01 * one / 12.0 { model[11] } else { 0.0 };
        // Least squares, where the program determines the time: the time of n QPUs is that of one QPU, divided by n.
        let odd = (1..).zip(&thesis).step_by(2).map(|(qpus, time)| (f64::from(qpus), time));
        let by_program = odd.filter(|(qpus, _)| one / qpus > least);
        let (products, squares) = by_program.fold((0.0, 0.0), |(products, squares), (qpus, time)| {
            (products + time / qpus, squares + 1.0 / (qpus * qpus))
        });
        let instruction = CLOCKS_PER_INSTRUCTION as f64 * f64::from(vectors) / CLOCK_HZ * 1e3;
        let instructions = ((products / squares - one) / instruction).round();
        Length { tables, thesis, model, instructions, more: instructions * instruction, least }
    }

    fn words(&self) -> String {
        let how = if self.instructions < 0.0 { "fewer" } else { "more" };
        format!("{:.0} {how} instructions for a vector", self.instructions.abs())
    }

    fn hypothesis(&self) -> Hypothesis {
        let even = || (1..).zip(self.model.iter().zip(&self.thesis)).skip(1).step_by(2);
        let before = error(even().map(|(_, (model, thesis))| (*model, *thesis)));
        let after = error(even().map(|(qpus, (_, thesis))| {
            let time = (self.model[0] + self.more) / f64::from(qpus);
            (time.max(self.least), *thesis)
        }));
        Hypothesis {
            words: "the measured program has another number of instructions, or waits for as many clocks",
            tables: self.tables,
            verdict: of_errors(before, after),
            reason: format!(
                "{}, fitted to the rows with an odd number of QPUs, change the mean difference of the other rows from {before:.1} to \
                 {after:.1} %.",
                self.words()
            ),
        }
    }

    /// Applies the number of instructions, which is fitted to the other column, to the column *blocking* of Table 7.2.
    fn blocking(&self, model: &Times<2>) -> Hypothesis {
        let least = model[11][0];
        let rows = (1..).zip(model.iter().zip(&TABLE_7_2)).filter(|(_, (model, _))| model[0] > 1.01 * least);
        let pairs: Vec<(f64, f64, f64)> = rows
            .map(|(qpus, (model, thesis))| (model[0], model[0] + self.more / f64::from(qpus), thesis[0]))
            .collect();
        let before = error(pairs.iter().map(|(before, _, thesis)| (*before, *thesis)));
        let after = error(pairs.iter().map(|(_, after, thesis)| (*after, *thesis)));
        Hypothesis {
            words: "the program with blocking access has the same additional instructions",
            tables: "7.2, blocking",
            verdict: of_errors(before, after),
            reason: format!(
                "{}, fitted to the column *ahead*, change the mean difference of the column *blocking* from {before:.1} to {after:.1} % \
                 with 1 to {} QPUs. With more QPUs, the DMA engine determines the time.",
                self.words(),
                pairs.len()
            ),
        }
    }
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
    let thesis = TABLE_7_4[0] * 1e-3 * CLOCK_HZ / f64::from(VECTORS);
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
