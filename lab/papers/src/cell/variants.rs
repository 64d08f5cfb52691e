//! Variants: kernels with a loop over the rounds, and an SPU with other timing rules.

use lockstep_spu::isa::Class;
use lockstep_spu::kernels::measure::{clocks, clocks_by};
use lockstep_spu::kernels::{Columns, Loop, Mode, RoundLoop, Substitution, Way};
use lockstep_spu::schedule::Effort;
use lockstep_spu::sim::Rules;
use serde_json::{Value, json};

use super::measured::Measured;
use super::report::number;
use super::{Error, kernel};
use lockstep_report::Table;

/// A loop over the rounds, an unrolled loop with the same number of blocks in flight, and a kernel whose iterations
/// overlap.
pub(super) struct Rolled {
    what: &'static str,
    blocks: u32,
    /// Clocks per round of a block.
    kept: f64,
    unrolled: f64,
    kernel: &'static str,
    kernel_in_flight: u64,
    kernel_round: f64,
}

/// The operations of `spu/ctr4`.
const BALANCED: Way = Way::Columns(Substitution::LookupBalanced, Columns::FewestEven);

const ROLLED: [(&str, Way, u32, &str); 3] = [
    ("lookups in registers, a chain", Way::Lookup, 1, "spu/cbc2"),
    ("lookups in registers, pipes balanced", BALANCED, 4, "spu/ctr4"),
    ("tables of 64 KiB", Way::Tables, 2, "spu/tab4"),
];

/// Compares loops over the rounds with unrolled loops.
///
/// # Errors
/// [`Error::Kernel`] if a kernel does not run, which is a bug.
pub(super) fn rolled(measured: &[Measured]) -> Result<Vec<Rolled>, Error> {
    let one = |(what, way, blocks, name): (_, Way, u32, _)| {
        let kept = RoundLoop::compile(way, blocks).and_then(|one| one.clocks()).map_err(Error::Kernel)?;
        let kernel = measured.iter().find(|one| one.kernel.name == name).expect("all kernels are measured");
        let unrolled = match kernel.of.mode.is_chain() {
            true => kernel.clocks,
            false => clocks(Loop { way, mode: Mode::Ctr, blocks, overlaps: false }, Effort::Full)
                .map_err(Error::Kernel)?,
        };
        Ok(Rolled {
            what,
            blocks,
            kept,
            unrolled: unrolled.round,
            kernel: name,
            kernel_in_flight: kernel.in_flight,
            kernel_round: kernel.clocks.round,
        })
    };
    ROLLED.into_iter().map(one).collect()
}

pub(super) fn rolled_table(rolled: &[Rolled]) -> Table {
    let head = [
        "",
        "in flight",
        "one round per iteration",
        "all rounds per iteration",
        "kernel",
        "its blocks in flight",
        "its clocks",
    ];
    let mut table =
        Table::new("The loop over the rounds, kept and unrolled: clocks per round of a block", &head, 1);
    for one in rolled {
        table.rows.push(vec![
            one.what.into(),
            one.blocks.to_string(),
            number(one.kept),
            number(one.unrolled),
            one.kernel.into(),
            one.kernel_in_flight.to_string(),
            number(one.kernel_round),
        ]);
    }
    table
}

impl Rolled {
    pub(super) fn json(&self) -> Value {
        json!({
            "what": self.what,
            "in_flight": self.blocks,
            "a_round_a_turn": self.kept,
            "all_rounds_a_turn": self.unrolled,
            "kernel": self.kernel,
            "kernel_in_flight": self.kernel_in_flight,
            "kernel_round": self.kernel_round,
        })
    }
}

/// The kernels that are measured with other timing rules.
const OTHER_RULES_KERNELS: [&str; 3] = ["spu/ctr0", "spu/cbc2", "spu/ctr4"];

/// Clocks per block with a 128-bit key, of the kernels in [`OTHER_RULES_KERNELS`], with one set of timing rules.
pub(super) struct OtherRules {
    what: &'static str,
    clocks: [f64; 3],
}

/// Measures the clocks on machines with other timing rules. The programs were scheduled for the SPU's rules.
///
/// # Errors
/// [`Error::Kernel`] if a kernel does not run, which is a bug.
pub(super) fn other_rules() -> Result<Vec<OtherRules>, Error> {
    let rules = Rules::default();
    let class = |class, more| Rules { slower: Some((class, more)), ..rules };
    let variants = [
        ("SPU rules", rules),
        ("a branch costs 19", Rules { penalty: 19, ..rules }),
        ("arithmetic takes 3", class(Class::Fx, 1)),
        ("word shifts take 3", class(Class::Ws, -1)),
        ("shuffles take 3", class(Class::Sh, -1)),
        ("shuffles take 5", class(Class::Sh, 1)),
        ("loads take 5", class(Class::Ls, -1)),
        ("loads take 7", class(Class::Ls, 1)),
    ];
    let one = |(what, rules)| {
        let mut clocks = [0.0; 3];
        for (clocks, name) in clocks.iter_mut().zip(OTHER_RULES_KERNELS) {
            let of = kernel(name)?.loops[0].1;
            *clocks = clocks_by(of, Effort::Full, rules).map_err(Error::Kernel)?.block[0];
        }
        Ok(OtherRules { what, clocks })
    };
    variants.into_iter().map(one).collect()
}

pub(super) fn other_rules_table(all: &[OtherRules]) -> Table {
    let mut head = vec![""];
    head.extend(OTHER_RULES_KERNELS);
    let mut table = Table::new("With other rules: clocks per block, 128-bit keys", &head, 1);
    for one in all {
        let mut row = vec![one.what.to_string()];
        row.extend(one.clocks.map(number));
        table.rows.push(row);
    }
    table
}

impl OtherRules {
    pub(super) fn json(&self) -> Value {
        let clocks: serde_json::Map<String, Value> = OTHER_RULES_KERNELS
            .iter()
            .zip(self.clocks)
            .map(|(name, clocks)| ((*name).into(), clocks.into()))
            .collect();
        json!({ "rules": self.what, "clocks": clocks })
    }
}
