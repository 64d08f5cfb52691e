//! The same otherwise: with a loop over the rounds, and by other rules than the SPU's.

use lockstep_spu::isa::Class;
use lockstep_spu::kernels::measure::clocks_by;
use lockstep_spu::kernels::{RoundLoop, Way};
use lockstep_spu::schedule::Effort;
use lockstep_spu::sim::Rules;

use super::report::number;
use super::{Error, Report, kernel};
use crate::Table;

/// What is rolled, and the unrolled kernel beside it.
const ROLLED: [(&str, Way, u32, &str); 3] = [
    ("lookups in registers, a chain", Way::Lookup, 1, "spu/cbc2"),
    ("lookups in registers, pipes balanced", Way::LookupBalanced, 4, "spu/ctr4"),
    ("tables of 64 KiB", Way::Tables, 2, "spu/tab4"),
];

/// Loops over the rounds beside unrolled ones.
///
/// # Errors
/// [`Error::Kernel`] if one does not run: a mistake of ours.
pub(super) fn rolled(report: &Report) -> Result<Table, Error> {
    let head = ["", "unrolled", "blocks a turn", "a round a turn", "unrolled", "gain"];
    let mut table =
        Table::new("The loop over the rounds, kept and unrolled: clocks of a round of a block", &head, 2);
    for (what, way, blocks, unrolled) in ROLLED {
        let rolled = RoundLoop::compile(way, blocks).and_then(|one| one.clocks()).map_err(Error::Kernel)?;
        let pass = kernel(unrolled)?.loops[0].0;
        let ours = report.find(unrolled, pass).expect("the report has all kernels").clocks.round;
        table.rows.push(vec![
            what.into(),
            unrolled.into(),
            blocks.to_string(),
            number(rolled),
            number(ours),
            number(rolled - ours),
        ]);
    }
    Ok(table)
}

/// Kernels of which it is asked what other rules would do to them.
const ASKED: [&str; 3] = ["spu/ctr0", "spu/cbc2", "spu/ctr4"];

/// Clocks of programs that were scheduled by the SPU's rules on a machine with others.
///
/// # Errors
/// [`Error::Kernel`] if one does not run: a mistake of ours.
pub(super) fn sensitivity() -> Result<Table, Error> {
    let rules = Rules::default();
    let class = |class, more| Rules { slower: Some((class, more)), ..rules };
    let variants = [
        ("as it is", rules),
        ("a branch costs 19", Rules { penalty: 19, ..rules }),
        ("arithmetic takes 3", class(Class::Fx, 1)),
        ("word shifts take 3", class(Class::Ws, -1)),
        ("shuffles take 3", class(Class::Sh, -1)),
        ("shuffles take 5", class(Class::Sh, 1)),
        ("loads take 5", class(Class::Ls, -1)),
        ("loads take 7", class(Class::Ls, 1)),
    ];
    let mut head = vec![""];
    head.extend(ASKED.iter().flat_map(|name| [*name, "last"]));
    let mut table = Table::new("By other rules: round and last", &head, 1);
    for (what, rules) in variants {
        let mut row = vec![what.to_string()];
        for name in ASKED {
            let clocks = clocks_by(kernel(name)?.loops[0].1, Effort::Full, rules).map_err(Error::Kernel)?;
            row.extend([number(clocks.round), number(clocks.last)]);
        }
        table.rows.push(row);
    }
    Ok(table)
}
