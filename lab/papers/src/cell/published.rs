//! The paper's kernels with the paper's operations. They show which changes lead from a row of the paper to a kernel of Lockstep.

use lockstep_report::Table;
use lockstep_report::bars::Bars;
use lockstep_spu::kernels::measure::{Clocks, clocks};
use lockstep_spu::kernels::{Loop, Named, PUBLISHED, Substitution, Way};
use lockstep_spu::schedule::Effort;
use serde_json::{Value, json};

use super::Error;
use super::measured::Measured;
use super::paper::{Row, TABLE_2};

/// A row of Table 2, and the kernels that lead from it to Lockstep's kernel.
pub(super) struct Published {
    row: &'static Row,
    /// The clocks of the paper's operations, if Lockstep's scheduler arranges them.
    clocks: Clocks,
    /// The clocks if Lockstep's SubBytes also replaces the paper's. `None` for kernels with tables.
    with_own_substitution: Option<Clocks>,
}

/// Measures all of [`PUBLISHED`].
///
/// # Errors
/// [`Error::Kernel`] if a kernel does not run, which is a bug.
pub(super) fn measure() -> Result<Vec<Published>, Error> {
    PUBLISHED.iter().map(Published::of).collect()
}

impl Published {
    fn of(kernel: &'static Named) -> Result<Published, Error> {
        let name = kernel.name.strip_prefix("published/").expect("all of these names have it");
        let row = TABLE_2.iter().find(|row| row.name.eq_ignore_ascii_case(name)).expect("a row of Table 2");
        let of = kernel.loops[0].1;
        let clocks = |of| clocks(of, Effort::Full).map_err(Error::Kernel);
        let own = match of.way {
            Way::Columns(_, columns) => {
                // The SubBytes of Lockstep's kernel for this row.
                let own = match super::kernel(row.kernel)?.loops[0].1.way {
                    Way::Columns(own, _) => own,
                    _ => Substitution::Lookup,
                };
                Some(clocks(Loop { way: Way::Columns(own, columns), ..of })?)
            }
            _ => None,
        };
        Ok(Published { row, clocks: clocks(of)?, with_own_substitution: own })
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "name": self.row.name,
            "clocks": self.clocks.block,
            "with_own_substitution": self.with_own_substitution.map(|clocks| clocks.block),
        })
    }
}

/// A chart with three clock counts for each row of Table 2: those of the paper, those of the paper's operations in the order of Lockstep's
/// scheduler, and those of Lockstep's kernel.
pub(super) fn chart<'m>(published: &[Published], ours: impl Fn(&Row) -> &'m Measured) -> String {
    let mut bars = Bars { title: "Table 2: clocks of a block, 128-bit keys".into(), ..Bars::default() };
    for one in published {
        let clocks = [
            ("paper", one.row.clocks()[0]),
            ("as published", one.clocks.block[0]),
            ("Lockstep", ours(one.row).clocks.block[0]),
        ];
        bars.push(one.row.name, clocks.map(|(name, clocks)| (name, clocks, (clocks, clocks))));
    }
    bars.svg()
}

/// Makes a table of the steps, each with the percentage by which the step changes the clocks.
pub(super) fn table<'m>(published: &[Published], ours: impl Fn(&Row) -> &'m Measured) -> Table {
    let head = [
        "",
        "paper 128",
        "192",
        "256",
        "as published 128",
        "192",
        "256",
        "schedule %",
        "our SubBytes 128",
        "%",
        "our kernel 128",
        "%",
    ];
    let mut table = Table::new("Table 2 by cause: clocks of a block", &head, 1);
    let change = |from: f64, to: f64| format!("{:+.1}", 100.0 * (to / from - 1.0));
    for one in published {
        let (theirs, clocks, last) = (one.row.clocks(), one.clocks.block, ours(one.row).clocks.block[0]);
        let mut row = vec![one.row.name.to_string()];
        row.extend(theirs.into_iter().chain(clocks).map(super::report::number));
        row.push(change(theirs[0], clocks[0]));
        let own = one.with_own_substitution.map(|clocks| clocks.block[0]);
        row.push(own.map_or("-".into(), super::report::number));
        row.push(own.map_or("-".into(), |own| change(clocks[0], own)));
        row.push(super::report::number(last));
        row.push(change(own.unwrap_or(clocks[0]), last));
        table.rows.push(row);
    }
    table
}
