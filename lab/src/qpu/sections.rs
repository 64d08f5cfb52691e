//! The report for a terminal, section by section.

use lockstep_report::Table;
use lockstep_report::text::{WIDTH, wrap};

use super::{Error, Report};

/// Explanation of the columns.
const INTRODUCTION: &str = "\
AES on the QPUs of VideoCore IV, the GPU of the Raspberry Pi 1 to 3, simulated with exact clock counts, compared with a thesis that \
measured AES-128-ECB on a Raspberry Pi 2. The clock is 250 MHz. `kernel` is a call without the copies by the host: 73.7 us and the \
simulated clocks. The columns of QPUs add the work of the host: 141 us a call, and 10 ns a byte. These three times are fitted to \
Table 5.1; the clocks of the texture units and of the DMA are fitted to Tables 5.1 and 7.1. `%`: difference of the model from the \
thesis, in percent of the thesis. `bitslice`: Lockstep's kernel `qpu/bitslice` with 12 QPUs, without copies.";

/// A table, and the measurements that it needs.
struct Section {
    measure: fn(&mut Report) -> Result<(), Error>,
    table: fn(&Report) -> Table,
}

static TABLES: [Section; 12] = [
    Section { measure: Report::measure_encryption, table: Report::table_5_1 },
    Section { measure: Report::measure_decryption, table: Report::table_5_2 },
    Section { measure: Report::measure_overclocked, table: Report::overclocked_table },
    Section { measure: Report::measure_one_block, table: Report::one_block_table },
    Section { measure: Report::measure_compiler, table: Report::compile_table },
    Section { measure: Report::measure_table_7_1, table: Report::table_7_1 },
    Section { measure: Report::measure_table_7_2, table: Report::table_7_2 },
    Section { measure: Report::measure_table_7_3, table: Report::table_7_3 },
    Section { measure: Report::measure_table_7_4, table: Report::table_7_4 },
    Section { measure: Report::measure_kernels, table: Report::kernel_table },
    Section { measure: |_| Ok(()), table: Report::spent_table },
    Section { measure: |_| Ok(()), table: Report::chain_table },
];

/// Iterator over the sections of the report for a terminal. A section is computed when it is requested: the first one
/// explains the columns and needs no measurement; each table only needs its own measurements.
pub struct Sections {
    report: Report,
    introduced: bool,
    rest: std::slice::Iter<'static, Section>,
}

/// The report for a terminal.
pub fn sections() -> Sections {
    Sections { report: Report::default(), introduced: false, rest: TABLES.iter() }
}

impl Sections {
    /// The measurements so far.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl Iterator for Sections {
    /// Lines of at most [`WIDTH`] characters, or [`Error::Kernel`] if a kernel does not run, which is a bug.
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
