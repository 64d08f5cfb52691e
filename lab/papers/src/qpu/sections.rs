//! The report for a terminal, section by section.

use lockstep_report::Table;
use lockstep_report::text::{WIDTH, wrap};

use super::model::{CLOCK_HZ, HOST_BYTE, HOST_CALL, HOST_LONG_CALL, INVOCATION, LONG_CALL};
use super::{Error, Report, hypotheses};

/// The text before the tables, which explains the columns.
fn introduction() -> String {
    format!(
        "AES on the QPUs of VideoCore IV, the GPU of the Raspberry Pi 1 to 3, simulated with exact clock counts, compared with a thesis \
         that measured AES-128-ECB on a Raspberry Pi 2. The clock is {:.0} MHz. `kernel` is a call without the copies by the host: \
         {:.1} us and the simulated clocks. The columns of QPUs add the work of the host: {:.0} us a call, and {:.0} ns a byte. These \
         three times are fitted to Table 5.1. A call of more than {:.2} ms has {:.0} us more, fitted to Table 5.2. The clocks of the \
         texture units and of the DMA are fitted to Tables 5.1, 7.1 and 7.2. `%`: difference of the model from the thesis, in percent of \
         the thesis. `bitslice`: Lockstep's kernel `qpu/bitslice` with 12 QPUs, without copies.",
        CLOCK_HZ / 1e6,
        INVOCATION * 1e6,
        HOST_CALL * 1e6,
        HOST_BYTE * 1e9,
        LONG_CALL * 1e3,
        HOST_LONG_CALL * 1e6
    )
}

/// A table, the measurements that it needs, and a text about its differences from the thesis.
struct Section {
    measure: fn(&mut Report) -> Result<(), Error>,
    table: fn(&Report) -> Table,
    note: &'static str,
}

static TABLES: [Section; 12] = [
    Section {
        measure: Report::measure_encryption,
        table: Report::table_5_1,
        note: "In the thesis, the time of the host is not proportional to the bytes, so the model is too fast in the middle rows of 12 \
               QPUs. Each QPU processes at least one vector of 64 bytes.",
    },
    Section { measure: Report::measure_decryption, table: Report::table_5_2, note: "" },
    Section { measure: Report::measure_overclocked, table: Report::overclocked_table, note: "" },
    Section { measure: Report::measure_one_block, table: Report::one_block_table, note: "" },
    Section { measure: Report::measure_compiler, table: Report::compile_table, note: "" },
    Section {
        measure: Report::measure_table_7_1,
        table: Report::table_7_1,
        note: "The thesis's program with blocking access is not known. If the loop of the model's program had 21 instructions fewer, \
               the times with one QPU would be equal.",
    },
    Section {
        measure: Report::measure_table_7_2,
        table: Report::table_7_2,
        note: "The thesis's program is not known. The model does not explain the 202 ms.",
    },
    Section {
        measure: Report::measure_table_7_3,
        table: Report::table_7_3,
        note: "The thesis rounds to milliseconds. Its loops are not known.",
    },
    Section {
        measure: Report::measure_table_7_4,
        table: Report::table_7_4,
        note: "The program that the thesis measured waited less for the texture unit than the model's program, or was shorter.",
    },
    Section { measure: Report::measure_kernels, table: Report::kernel_table, note: "" },
    Section { measure: |_| Ok(()), table: Report::spent_table, note: "" },
    Section {
        measure: |_| Ok(()),
        table: Report::chain_table,
        note: "The thesis expects a quarter of the rate of one QPU for modes whose blocks depend on each other. This holds for one \
               message; chains of several messages fill the vectors.",
    },
];

/// An iterator over the sections of the report for a terminal. A section is computed when it is requested. The first section explains the
/// columns and needs no measurement. Each table needs its own measurements only.
pub struct Sections {
    report: Report,
    introduced: bool,
    rest: std::slice::Iter<'static, Section>,
    explained: bool,
}

/// The report for a terminal.
pub fn sections() -> Sections {
    Sections { report: Report::default(), introduced: false, rest: TABLES.iter(), explained: false }
}

impl Sections {
    /// The measurements that the sections so far have needed.
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
            return Some(Ok(wrap(&introduction(), WIDTH).join("\n") + "\n"));
        }
        let Some(section) = self.rest.next() else {
            if std::mem::replace(&mut self.explained, true) {
                return None;
            }
            // The last section. The tables that it needs have been measured.
            let measured = self.report.measure_hypotheses();
            return Some(measured.map(|()| format!("\n{}", hypotheses::text(self.report.hypotheses()))));
        };
        let text = (section.measure)(&mut self.report).map(|()| {
            let note = match section.note {
                "" => String::new(),
                note => format!("\n{}\n", wrap(note, WIDTH).join("\n")),
            };
            format!("\n{}{note}", (section.table)(&self.report).text())
        });
        Some(text)
    }
}
