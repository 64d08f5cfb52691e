//! The report for a terminal, section by section.

use super::paper::{TABLE_1, TABLE_2, TABLE_3};
use super::{Error, Report};
use lockstep_report::Table;
use lockstep_report::text::{WIDTH, wrap};

/// What the columns hold.
const INTRODUCTION: &str = "\
AES on one SPE of the Cell, simulated to the clock, beside D. Canright and others, Implementing AES on the CellBE \
(2009). Clocks are of a block in the steady state, for keys of 128, 192 and 256 bits; `round` is the slope over the \
key sizes, `last` what is left of a block; Gbit/s are at 3.192 GHz. `ours %`: ours less theirs, in percent of \
theirs, for the three sizes. `off the line`: how far a rate is from what `round` and `last` give, in percent, at most.";

/// A table, and what must have been measured before.
struct Section {
    measure: fn(&mut Report) -> Result<(), Error>,
    table: fn(&Report) -> Table,
}

static TABLES: [Section; 9] = [
    Section { measure: |report| report.measure_rows(TABLE_1), table: Report::table_1 },
    Section { measure: |report| report.measure_rows(TABLE_2), table: Report::table_2 },
    Section { measure: |report| report.measure_rows(TABLE_3), table: Report::table_3 },
    Section { measure: Report::measure_kernels, table: Report::further },
    Section { measure: |_| Ok(()), table: Report::composed },
    Section { measure: |_| Ok(()), table: Report::besides },
    Section { measure: |_| Ok(()), table: Report::cycles },
    Section { measure: Report::measure_rolled, table: Report::rolled },
    Section { measure: Report::measure_other_rules, table: Report::other_rules },
];

/// The sections of the report for a terminal. A section is made when it is asked for: the first one explains the
/// columns and needs no measurement; each table is there as soon as what it shows has been measured.
pub struct Sections {
    report: Report,
    introduced: bool,
    rest: std::slice::Iter<'static, Section>,
}

/// The report for a terminal.
pub fn sections() -> Sections {
    Sections { report: Report::empty(), introduced: false, rest: TABLES.iter() }
}

impl Sections {
    /// What has been measured so far.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl Iterator for Sections {
    /// Lines of at most [`WIDTH`] characters, or [`Error::Kernel`] if a kernel does not run: a mistake of ours.
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
