//! The tables of the report.

use lockstep_report::Table;

use super::compile::Compiled;
use super::measured::{KEY_BITS, Measured, QPU_COUNTS, Spent};
use super::model::rate;
use super::report::Report;
use super::{Named, paper};

/// A difference from a figure of the thesis, in percent of that figure.
fn difference(ours: f64, thesis: f64) -> String {
    match format!("{:+.1}", 100.0 * (ours / thesis - 1.0)) {
        // A difference that is rounded to zero is shown without a sign.
        none if none == "-0.0" || none == "+0.0" => "0.0".into(),
        some => some,
    }
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

/// A rate as text. A missing rate is shown as a dash.
fn known(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), whole)
}

/// Three cells: the figure of the thesis, the figure of the model, and the difference.
fn compared(thesis: Option<f64>, model: f64, show: fn(f64) -> String) -> [String; 3] {
    let percent = thesis.map_or_else(|| "-".into(), |thesis| difference(model, thesis));
    [thesis.map_or_else(|| "-".into(), show), show(model), percent]
}

fn milliseconds(value: f64) -> String {
    format!("{value:.1}")
}

impl Report {
    /// Table 5.1 (encryption): rates by the length of a call, of the thesis and of the model.
    pub fn table_5_1(&self) -> Table {
        let head = [
            "bytes",
            "kernel thesis",
            "kernel model",
            "kernel %",
            "12 QPUs thesis",
            "12 QPUs model",
            "12 QPUs %",
            "1 QPU thesis",
            "1 QPU model",
            "1 QPU %",
            "OpenSSL thesis",
            "bitslice kernel",
            "bitslice / thesis",
        ];
        let mut table = Table::new("Table 5.1: encryption, kB/s", &head, 1);
        for (row, model) in &self.encryption {
            let mut cells = vec![row.bytes.to_string()];
            cells.extend(compared(Some(row.kernel), model.kernel, whole));
            cells.extend(compared(Some(row.twelve), model.twelve, whole));
            cells.extend(compared(row.one, model.one, whole));
            cells.extend([known(row.openssl), whole(model.bitslice)]);
            cells.push(format!("{:.2}", model.bitslice / row.kernel));
            table.rows.push(cells);
        }
        table
    }

    /// Table 5.2 (decryption): rates by the length of a call, of the thesis and of the model.
    pub fn table_5_2(&self) -> Table {
        let head = [
            "bytes",
            "12 QPUs thesis",
            "12 QPUs model",
            "12 QPUs %",
            "1 QPU thesis",
            "1 QPU model",
            "1 QPU %",
            "OpenSSL thesis",
            "kernel model",
            "bitslice kernel",
            "bitslice / model",
        ];
        let mut table = Table::new("Table 5.2: decryption, kB/s", &head, 1);
        for (row, model) in &self.decryption {
            let mut cells = vec![row.bytes.to_string()];
            cells.extend(compared(Some(row.twelve), model.twelve, whole));
            cells.extend(compared(row.one, model.one, whole));
            cells.extend([known(row.openssl), whole(model.kernel), whole(model.bitslice)]);
            cells.push(format!("{:.2}", model.bitslice / model.kernel));
            table.rows.push(cells);
        }
        table
    }

    /// Makes a table of the rates at 500 MHz, to which the QPUs are overclocked. It compares the thesis with the model.
    pub fn overclocked_table(&self) -> Table {
        let head = ["", "", "thesis", "model", "%"];
        let title = format!("12 QPUs at 500 MHz, {} MiB, kB/s", paper::FAST_BYTES >> 20);
        let mut table = Table::new(&title, &head, 2);
        let operations = ["encryption", "decryption"];
        for (operation, (thesis, model)) in operations.iter().zip(paper::FAST.iter().zip(self.overclocked)) {
            for (what, (thesis, model)) in ["with copies", "kernel"].iter().zip(thesis.iter().zip(model)) {
                let mut cells = vec![(*operation).into(), (*what).into()];
                cells.extend(compared(Some(*thesis), model, whole));
                table.rows.push(cells);
            }
        }
        table
    }

    /// Microseconds of calls with one block, of the thesis and of the model.
    pub fn one_block_table(&self) -> Table {
        let head = ["", "thesis", "1 QPU model", "1 QPU %", "12 QPUs model", "12 QPUs %"];
        let mut table = Table::new("Section 5.3: a call with one block, us without copies", &head, 1);
        let operations = ["encryption", "decryption"];
        let rows = paper::CALL_MICROSECONDS.into_iter().zip(self.one_block());
        for (operation, (thesis, model)) in operations.iter().zip(rows) {
            let mut cells = vec![(*operation).into(), whole(thesis)];
            cells.extend(model.into_iter().flat_map(|model| [whole(model), difference(model, thesis)]));
            table.rows.push(cells);
        }
        table
    }

    /// The times of the compiler on this machine.
    pub fn compile_table(&self) -> Table {
        let head = ["program", "sequential ms", "sequential words", "scheduled ms", "scheduled words"];
        let [encryption, decryption] = paper::COMPILE_MILLISECONDS;
        let title = format!(
            "Section 5.3: times of the compiler on this machine; the thesis's compiler took at least {encryption} ms for its \
             encryption and {decryption} ms for its decryption on the board"
        );
        let mut table = Table::new(&title, &head, 1);
        let cells = |(seconds, words): (f64, usize)| [format!("{:.2}", 1e3 * seconds), words.to_string()];
        for Compiled { program, sequential, scheduled } in &self.compiled {
            let mut row = vec![program.clone()];
            for times in [sequential, scheduled] {
                row.extend(times.map_or_else(|| ["-".into(), "-".into()], cells));
            }
            table.rows.push(row);
        }
        table
    }

    /// Table 7.1 (sums of two arrays): milliseconds of the thesis and of the model.
    pub fn table_7_1(&self) -> Table {
        let title = "Table 7.1: sums of two arrays, ms for 1.6 million values";
        times(title, ["blocking", "ahead"], &paper::TABLE_7_1, &self.table_7_1)
    }

    /// Table 7.2 (products in the field of AES): milliseconds of the thesis and of the model.
    pub fn table_7_2(&self) -> Table {
        let title =
            "Table 7.2: products in the field of AES with their loads and stores, ms for 1.6 million values";
        times(title, ["blocking", "ahead"], &paper::TABLE_7_2, &self.table_7_2)
    }

    /// Table 7.3 (products by three programs): milliseconds of the thesis and of the model.
    pub fn table_7_3(&self) -> Table {
        let title =
            "Table 7.3: products in the field of AES without loads and stores, ms for 1.0 million values";
        times(title, ["any", "exchanged", "small"], &paper::TABLE_7_3, &self.table_7_3)
    }

    /// Table 7.4 (the first kernel): milliseconds and clocks of the thesis and of the model.
    pub fn table_7_4(&self) -> Table {
        let head = [
            "QPUs",
            "ms thesis",
            "ms instructions",
            "ms %",
            "ms with waits",
            "ms %",
            "kB/s thesis",
            "kB/s instructions",
            "kB/s with waits",
            "clocks instructions",
            "clocks with waits",
        ];
        let title = "Table 7.4: the first kernel, ms for 1.0 million bytes, and clocks of a block";
        let mut table = Table::new(title, &head, 1);
        let thesis = paper::TABLE_7_4.into_iter().zip(paper::TABLE_7_4_RATES);
        for ((model, (thesis, thesis_rate)), qpus) in self.table_7_4.iter().zip(thesis).zip(1..) {
            let mut cells: Vec<String> = vec![i32::to_string(&qpus), whole(thesis)];
            for time in model.milliseconds {
                cells.extend([milliseconds(time), difference(time, thesis)]);
            }
            cells.push(whole(thesis_rate));
            let bytes = 16 * u64::from(paper::VECTORS);
            cells.extend(model.milliseconds.map(|time| whole(rate(bytes, time / 1e3))));
            cells.extend(model.clocks.map(whole));
            table.rows.push(cells);
        }
        table
    }

    /// A table of the rates of chained modes by the thesis's kernel.
    pub fn chain_table(&self) -> Table {
        let head = ["QPUs", "messages in a vector", "messages", "kB/s of all", "kB/s of each", "/ 1 QPU"];
        let title = "Chains in the thesis's kernel: each message has one block in a vector";
        let mut table = Table::new(title, &head, 1);
        let chains = self.chains();
        let full = chains.iter().find(|chain| (chain.qpus, chain.in_vector) == (1, 4));
        let full = full.map_or(1.0, |chain| chain.rate);
        for chain in &chains {
            table.rows.push(vec![
                chain.qpus.to_string(),
                chain.in_vector.to_string(),
                chain.messages.to_string(),
                whole(chain.rate),
                whole(chain.rate / f64::from(chain.messages)),
                format!("{:.2}", chain.rate / full),
            ]);
        }
        table
    }

    /// A table of the clocks of all kernels.
    pub fn kernel_table(&self) -> Table {
        let head = [
            "kernel",
            "mode",
            "clocks 128",
            "clocks 192",
            "clocks 256",
            "12 QPUs 128",
            "12 QPUs 192",
            "12 QPUs 256",
            "MB/s 128",
            "MB/s 192",
            "MB/s 256",
        ];
        let title = "Clocks in which a QPU processes a byte, with one QPU and with 12, and the rate of 12 QPUs at 250 MHz";
        let mut table = Table::new(title, &head, 2);
        let each = KEY_BITS.len() * QPU_COUNTS.len();
        for of_kernel in self.measured.chunks(each) {
            let of = |qpus: u8| of_kernel.iter().filter(move |one| one.qpus == qpus);
            let mut cells = labels(of_kernel[0].named);
            for qpus in QPU_COUNTS {
                cells.extend(of(qpus).map(|one| format!("{:.2}", one.clocks_per_byte())));
            }
            cells.extend(of(12).map(|one| format!("{:.1}", one.megabytes())));
            table.rows.push(cells);
        }
        table
    }

    /// For each kernel, the shares of the clocks that are spent on operations and on each kind of waiting.
    pub fn spent_table(&self) -> Table {
        let head = [
            "kernel",
            "mode",
            "QPUs",
            "two operations",
            "one operation",
            "nop",
            "texture unit",
            "DMA load",
            "DMA store",
            "other QPUs",
        ];
        let title = "What the clocks are spent on, in percent, with keys of 128 bits";
        let mut table = Table::new(title, &head, 3);
        for one in self.measured.iter().filter(|one| one.bits == 128) {
            let Measured { named, qpus, spent, .. } = one;
            let all = spent.total() as f64;
            let Spent { both, one, nops, texture, loads, stores, synchronization } = spent;
            let mut cells = labels(named);
            cells.push(qpus.to_string());
            let parts = [both, one, nops, texture, loads, stores, synchronization];
            cells.extend(parts.map(|clocks| format!("{:.1}", 100.0 * *clocks as f64 / all)));
            table.rows.push(cells);
        }
        table
    }
}

fn labels(named: &Named) -> Vec<String> {
    vec![named.kernel.into(), named.mode_text()]
}

/// Milliseconds by the number of QPUs.
fn times<const COLUMNS: usize>(
    title: &str,
    names: [&str; COLUMNS],
    thesis: &[[f64; COLUMNS]; 12],
    model: &[[f64; COLUMNS]; 12],
) -> Table {
    let columns = names.iter().flat_map(|name| ["thesis", "model", "%"].map(|what| format!("{name} {what}")));
    let head: Vec<String> = std::iter::once("QPUs".into()).chain(columns).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new(title, &head, 1);
    for ((thesis, model), qpus) in thesis.iter().zip(model).zip(1..) {
        let mut cells: Vec<String> = vec![i32::to_string(&qpus)];
        for (thesis, model) in thesis.iter().zip(model) {
            cells.push(whole(*thesis));
            cells.extend([milliseconds(*model), difference(*model, *thesis)]);
        }
        table.rows.push(cells);
    }
    table
}
