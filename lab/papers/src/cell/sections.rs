//! Generates the report for a terminal, section by section.

use super::paper::{TABLE_1, TABLE_2, TABLE_3};
use super::{Error, Report};
use lockstep_report::Table;
use lockstep_report::text::{WIDTH, wrap};

/// Explanation of the columns.
const INTRODUCTION: &str = "\
AES on one SPE of the Cell, simulated with exact clock counts, compared with D. Canright and others, Implementing AES on the CellBE \
(2009). Clocks are per block in the steady state, for keys of 128, 192 and 256 bits; `round` is the slope over the \
key sizes, `last` the remaining clocks of a block; Gbit/s are at 3.192 GHz. `ours %`: difference of Lockstep's rate \
from the rate in this row, in percent of the latter, for the three sizes. `off the line`: the largest deviation of a rate \
from the model by `round` and `last`, in percent.";

/// A table, and the measurements that it needs.
struct Section {
    measure: fn(&mut Report) -> Result<(), Error>,
    table: fn(&Report) -> Table,
}

static TABLES: [Section; 11] = [
    Section { measure: |report| report.measure_rows(TABLE_1), table: Report::table_1 },
    Section { measure: |report| report.measure_rows(TABLE_2), table: Report::table_2 },
    Section { measure: Report::measure_published, table: Report::causes },
    Section { measure: Report::measure_ideas, table: Report::ideas },
    Section { measure: |report| report.measure_rows(TABLE_3), table: Report::table_3 },
    Section { measure: Report::measure_kernels, table: Report::further },
    Section { measure: |_| Ok(()), table: Report::composed },
    Section { measure: |_| Ok(()), table: Report::besides },
    Section { measure: |_| Ok(()), table: Report::cycles },
    Section { measure: Report::measure_rolled, table: Report::rolled },
    Section { measure: Report::measure_other_rules, table: Report::other_rules },
];

/// An iterator over the sections of the report for a terminal. A section is computed when it is requested. The first section explains the
/// columns and needs no measurement. Each table needs its own measurements only.
pub struct Sections {
    report: Report,
    introduced: bool,
    rest: std::slice::Iter<'static, Section>,
}

/// Returns the report for a terminal.
pub fn sections() -> Sections {
    Sections { report: Report::empty(), introduced: false, rest: TABLES.iter() }
}

impl Sections {
    /// The measurements so far.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl Iterator for Sections {
    /// A section, in lines of at most [`WIDTH`] characters; or [`Error::Kernel`] if a kernel does not run, which is a bug.
    type Item = Result<String, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.introduced {
            self.introduced = true;
            return Some(Ok(wrap(INTRODUCTION, WIDTH).join("\n") + "\n"));
        }
        let section = self.rest.next()?;
        let text = (section.measure)(&mut self.report)
            .map(|()| format!("\n{}", (section.table)(&self.report).text()));
        Some(text)
    }
}
