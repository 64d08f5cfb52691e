//! The paper's tables, compared with Lockstep's kernels.

use serde_json::{Value, json};

use super::ideas::{self, Effect};
use super::measured::{self, BLOCKS, Measured};
use super::paper::{Row, TABLE_1, TABLE_2, TABLE_3};
use super::published::{self, Published};
use super::variants::{self, OtherRules, Rolled};
use super::{Error, paper};
use lockstep_core::work::Pass;
use lockstep_report::Table;
use lockstep_spu::sim::CLOCK_HZ;

/// All kernels, measured.
pub struct Report {
    measured: Vec<Measured>,
    published: Vec<Published>,
    effects: Vec<Effect>,
    rolled: Vec<Rolled>,
    other_rules: Vec<OtherRules>,
}

/// Columns of the tables of rates.
const RATES: [&str; 13] = [
    "",
    "whose",
    "blocks",
    "clocks 128",
    "clocks 192",
    "clocks 256",
    "round",
    "last",
    "Gbit/s 128",
    "Gbit/s 192",
    "Gbit/s 256",
    "ours %",
    "off the line",
];

/// Modes that are composed of passes, with kernels that support these passes.
const COMPOSED: [(&str, &str, &[Pass]); 4] = [
    ("spu/vperm", "GCM", &[Pass::Ctr32, Pass::Ghash]),
    ("spu/gcm", "GCM", &[Pass::Ctr32, Pass::Ghash]),
    ("spu/vperm", "CCM", &[Pass::Ctr, Pass::CbcMac]),
    ("spu/vperm", "CMAC", &[Pass::CbcMac]),
];

/// True if another kernel also has this loop. This is the case for all loops of `spu/gcm` except GHASH.
fn is_repeated(one: &Measured) -> bool {
    one.kernel.name == "spu/gcm" && one.pass != Pass::Ghash
}

fn gigabits(clocks: f64) -> f64 {
    128.0 * CLOCK_HZ / 1e9 / clocks
}

impl Report {
    /// Measures every kernel, which takes some seconds.
    ///
    /// # Errors
    /// [`Error::Kernel`] if a kernel does not run, which is a bug.
    pub fn measure() -> Result<Report, Error> {
        let mut report = Report::empty();
        report.measure_kernels()?;
        report.measure_published()?;
        report.measure_ideas()?;
        report.measure_rolled()?;
        report.measure_other_rules()?;
        Ok(report)
    }

    /// A report without measurements.
    pub(super) fn empty() -> Report {
        Report {
            measured: Vec::new(),
            published: Vec::new(),
            effects: Vec::new(),
            rolled: Vec::new(),
            other_rules: Vec::new(),
        }
    }

    /// Measures all kernels.
    pub(super) fn measure_kernels(&mut self) -> Result<(), Error> {
        self.measure_loops(|_, _| true)
    }

    /// Measures the figures of [`Report::causes`]. This table also needs the measurements of the kernels of Table 2.
    pub(super) fn measure_published(&mut self) -> Result<(), Error> {
        self.published = published::measure()?;
        Ok(())
    }

    /// Measures the figures of [`Report::ideas`].
    pub(super) fn measure_ideas(&mut self) -> Result<(), Error> {
        self.effects = ideas::measure()?;
        Ok(())
    }

    /// Measures the figures of [`Report::rolled`]. All kernels must have been measured before.
    pub(super) fn measure_rolled(&mut self) -> Result<(), Error> {
        self.rolled = variants::rolled(&self.measured)?;
        Ok(())
    }

    /// Measures the figures of [`Report::other_rules`].
    pub(super) fn measure_other_rules(&mut self) -> Result<(), Error> {
        self.other_rules = variants::other_rules()?;
        Ok(())
    }

    /// Measures the kernels of these rows.
    pub(super) fn measure_rows(&mut self, rows: &[Row]) -> Result<(), Error> {
        self.measure_loops(|kernel, pass| rows.iter().any(|row| row.kernel == kernel && row.pass == pass))
    }

    /// Measures the loops of these kernels and passes, except the loops that are already measured.
    fn measure_loops(&mut self, is_wanted: impl Fn(&str, Pass) -> bool) -> Result<(), Error> {
        let loops = measured::loops();
        for &one in &loops {
            if is_wanted(one.0.name, one.1) && self.find(one.0.name, one.1).is_none() {
                self.measured.push(measured::measure(one, &self.measured)?);
            }
        }
        let place =
            |of: &Measured| loops.iter().position(|one| (one.0.name, one.1) == (of.kernel.name, of.pass));
        self.measured.sort_by_key(place);
        Ok(())
    }

    /// The measured kernels.
    pub fn measured(&self) -> &[Measured] {
        &self.measured
    }

    /// Returns Lockstep's counterpart of a row of the paper.
    ///
    /// # Panics
    /// If the row names an unknown kernel.
    pub fn ours(&self, row: &Row) -> &Measured {
        self.find(row.kernel, row.pass).expect("rows name kernels that there are")
    }

    /// Returns the measurement of a loop of a kernel.
    pub fn find(&self, kernel: &str, pass: Pass) -> Option<&Measured> {
        self.measured.iter().find(|one| one.kernel.name == kernel && one.pass == pass)
    }

    /// Table 1 of the paper (IBM's kernels), with Lockstep's kernels.
    pub fn table_1(&self) -> Table {
        self.rates("Table 1: IBM's rates, and Lockstep's default kernels", TABLE_1, "IBM")
    }

    /// Table 2 of the paper (the paper's own kernels), with Lockstep's kernels.
    pub fn table_2(&self) -> Table {
        self.rates("Table 2: the paper's kernels, and Lockstep's of the same design", TABLE_2, "paper")
    }

    /// A table of the steps that lead from the paper's rows of Table 2 to Lockstep's kernels.
    pub fn causes(&self) -> Table {
        published::table(&self.published, |row| self.ours(row))
    }

    /// Table 3 of the paper, with a row of Lockstep's for each mode.
    pub fn table_3(&self) -> Table {
        let mut table = Table::new("Table 3: the two modes that both have", &RATES, 2);
        for pair in TABLE_3.chunks(2) {
            let ours = self.ours(&pair[0]);
            let name = measured::name(ours.pass);
            for (row, whose) in pair.iter().zip(["paper", "IBM"]) {
                table.rows.push(theirs(name, whose, row, ours));
            }
            table.rows.push(own(name, ours));
        }
        table
    }

    fn rates(&self, title: &str, rows: &[Row], whose: &str) -> Table {
        let mut table = Table::new(title, &RATES, 2);
        for row in rows {
            let ours = self.ours(row);
            table.rows.push(theirs(row.name, whose, row, ours));
            table.rows.push(own(row.name, ours));
        }
        table
    }

    /// A table of the kernels that have no counterpart in the paper.
    pub fn further(&self) -> Table {
        let mut head = RATES.to_vec();
        head.remove(11);
        head[1] = "";
        let mut table = Table::new("Kernels that are not in the paper", &head, 2);
        for one in self.measured.iter().filter(|one| one.kernel.paper.is_none()) {
            if is_repeated(one) {
                continue;
            }
            let mut row = own(one.kernel.name, one);
            row.remove(11);
            row[1] = measured::name(one.pass).into();
            if one.of.way.is_hash() {
                // GHASH has no rounds.
                row[6] = "-".into();
                row[7] = "-".into();
            }
            table.rows.push(row);
        }
        table
    }

    /// A table of the modes that consist of several passes, with clocks per block in the steady state.
    pub fn composed(&self) -> Table {
        let head = [
            "",
            "mode",
            "passes",
            "clocks 128",
            "clocks 192",
            "clocks 256",
            "Gbit/s 128",
            "Gbit/s 192",
            "Gbit/s 256",
        ];
        let mut table = Table::new("Modes of several passes", &head, 3);
        for (name, mode, passes) in COMPOSED {
            let clocks = self.composed_clocks(name, passes);
            let words: Vec<&str> = passes.iter().map(|&pass| measured::name(pass)).collect();
            let mut row = vec![name.to_string(), mode.to_string(), words.join(", ")];
            row.extend(clocks.map(number));
            row.extend(clocks.map(|clocks| format!("{:.3}", gigabits(clocks))));
            table.rows.push(row);
        }
        table
    }

    fn composed_clocks(&self, kernel: &str, passes: &[Pass]) -> [f64; 3] {
        let one = |pass| {
            let measured = self.find(kernel, pass).or_else(|| {
                // CTR with 32-bit counters has the loop of CTR, and CBC-MAC has the loop of CBC encryption.
                let same = if pass == Pass::Ctr32 { Pass::Ctr } else { Pass::CbcEncrypt };
                self.find(kernel, same)
            });
            measured.expect("kernels have the passes of their modes").clocks.block
        };
        std::array::from_fn(|size| passes.iter().map(|&pass| one(pass)[size]).sum())
    }

    /// A table of the costs that do not belong to a block: loading, and the start and the end of a call.
    pub fn besides(&self) -> Table {
        let head = ["kernel", "", "code, constants, keys", "tables", "clocks to load", "once a call", "in %"];
        let mut table = Table::new("Loading and fixed costs: bytes and clocks, 128-bit keys", &head, 2);
        for one in &self.measured {
            if is_repeated(one) {
                continue;
            }
            let call = one.once_a_call();
            table.rows.push(vec![
                one.kernel.name.into(),
                measured::name(one.pass).into(),
                one.loaded[0].to_string(),
                one.loaded[1].to_string(),
                format!("{:.0}", one.load_clocks()),
                format!("{call:.0}"),
                format!("{:.2}", 100.0 * call / (one.clocks.block[0] * BLOCKS as f64)),
            ]);
        }
        table
    }

    /// A table that divides the cycles of each kernel by use.
    pub fn cycles(&self) -> Table {
        let head = [
            "kernel",
            "",
            "in flight",
            "clocks",
            "even",
            "odd",
            "idle",
            "dual %",
            "lost: dependency",
            "lost: branch",
            "lost: hint",
        ];
        let mut table =
            Table::new("Breakdown of the cycles: per block, 128-bit keys, a call of 16 KiB", &head, 2);
        for one in &self.measured {
            if is_repeated(one) {
                continue;
            }
            let a_block = |count: u64| format!("{:.2}", count as f64 / BLOCKS as f64);
            let [even, odd] = one.summary.useful;
            table.rows.push(vec![
                one.kernel.name.into(),
                measured::name(one.pass).into(),
                one.in_flight.to_string(),
                a_block(one.summary.cycles()),
                a_block(even),
                a_block(odd),
                a_block(one.summary.idle),
                format!("{:.1}", 100.0 * one.summary.dual_rate()),
                format!("{:.2}", one.lost("dependency")),
                format!("{:.2}", one.lost("branch")),
                format!("{:.2}", one.lost("hint")),
            ]);
        }
        table
    }

    /// A chart of Table 2: clocks of a block with a 128-bit key.
    pub fn chart(&self) -> String {
        published::chart(&self.published, |row| self.ours(row))
    }

    /// A table of the paper's ideas, and Lockstep's, with their effects.
    pub fn ideas(&self) -> Table {
        ideas::table(&self.effects)
    }

    /// A table that compares loops over the rounds with unrolled loops.
    pub fn rolled(&self) -> Table {
        variants::rolled_table(&self.rolled)
    }

    /// A table of the clocks with timing rules other than the SPU's.
    pub fn other_rules(&self) -> Table {
        variants::other_rules_table(&self.other_rules)
    }

    /// All results as JSON.
    pub fn json(&self) -> Value {
        let rows = |rows: &[Row]| -> Value { rows.iter().map(|row| self.row_json(row)).collect() };
        json!({
            "clock_hz": CLOCK_HZ,
            "table_1": rows(TABLE_1),
            "table_2": rows(TABLE_2),
            "table_3": rows(TABLE_3),
            "composed": COMPOSED
                .iter()
                .map(|&(kernel, mode, passes)| {
                    let clocks = self.composed_clocks(kernel, passes);
                    json!({
                        "kernel": kernel,
                        "mode": mode,
                        "clocks": clocks,
                        "gigabits_per_second": clocks.map(gigabits),
                    })
                })
                .collect::<Value>(),
            "as_published": self.published.iter().map(Published::json).collect::<Value>(),
            "ideas": self.effects.iter().map(Effect::json).collect::<Value>(),
            "rolled": self.rolled.iter().map(Rolled::json).collect::<Value>(),
            "other_rules": self.other_rules.iter().map(OtherRules::json).collect::<Value>(),
            "kernels": self.measured.iter().map(measured_json).collect::<Value>(),
        })
    }

    fn row_json(&self, row: &Row) -> Value {
        let ours = self.ours(row);
        json!({
            "name": row.name,
            "theirs": {
                "gigabits_per_second": row.gigabits,
                "blocks": row.blocks,
                "clocks": row.clocks(),
                "round": row.round,
                "last": row.last,
            },
            "ours": measured_json(ours),
            "difference_percent": differences(row, ours),
        })
    }
}

fn measured_json(one: &Measured) -> Value {
    json!({
        "kernel": one.kernel.name,
        "pass": measured::name(one.pass),
        "constant_time": one.kernel.constant_time,
        "in_flight": one.in_flight,
        "clocks": one.clocks.block,
        "round": one.clocks.round,
        "last": one.clocks.last,
        "gigabits_per_second": one.clocks.gigabits(),
        "load": {
            "program_bytes": one.loaded[0],
            "table_bytes": one.loaded[1],
            "clocks": one.load_clocks(),
        },
        "once_a_call_clocks": one.once_a_call(),
        "call": {
            "blocks": BLOCKS,
            "cycles": one.summary.cycles(),
            "even": one.summary.useful[0],
            "odd": one.summary.useful[1],
            "idle": one.summary.idle,
            "dual": one.summary.dual,
            "dual_rate": one.summary.dual_rate(),
            "lost": one.summary.stalls,
            "classes": one.summary.classes,
        },
    })
}

/// The differences between Lockstep's rates and the paper's, in percent of the paper's.
pub(super) fn differences(row: &paper::Row, ours: &Measured) -> [f64; 3] {
    let rates = ours.clocks.gigabits();
    std::array::from_fn(|i| 100.0 * (rates[i] / row.gigabits[i] - 1.0))
}

pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

fn theirs(name: &str, whose: &str, row: &Row, ours: &Measured) -> Vec<String> {
    let mut cells = vec![name.into(), whose.into(), row.blocks.to_string()];
    cells.extend(row.clocks().map(number));
    cells.extend([number(row.round), number(row.last)]);
    cells.extend(row.gigabits.map(|rate| format!("{rate:.3}")));
    // A difference that is rounded to zero has no minus sign.
    let signed = |difference: f64| match format!("{difference:+.1}") {
        none if none == "-0.0" => "+0.0".into(),
        some => some,
    };
    cells.push(differences(row, ours).map(signed).join(" "));
    cells.push(format!("{:.2}", 100.0 * row.error()));
    cells
}

fn own(name: &str, ours: &Measured) -> Vec<String> {
    let clocks = ours.clocks;
    let mut cells = vec![name.into(), "ours".into(), ours.in_flight.to_string()];
    cells.extend(clocks.block.map(number));
    cells.extend([number(clocks.round), number(clocks.last)]);
    cells.extend(clocks.gigabits().map(|rate| format!("{rate:.3}")));
    cells.push(String::new());
    let line = [10.0, 12.0, 14.0].map(|rounds| rounds * clocks.round + clocks.last);
    let off =
        clocks.block.iter().zip(line).map(|(block, line)| (line / block - 1.0).abs()).fold(0.0, f64::max);
    cells.push(format!("{:.2}", 100.0 * off));
    cells
}
