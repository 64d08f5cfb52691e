//! The ideas that lead from the paper's first kernel to its last kernels, and to Lockstep's kernels. For each idea, this module measures
//! the clocks of two programs that differ only in this idea.

use lockstep_report::Table;
use lockstep_spu::kernels::measure::clocks;
use lockstep_spu::kernels::{Columns, Hints, Loop, Mode, Substitution, Way};
use lockstep_spu::schedule::Effort;
use serde_json::{Value, json};

use super::Error;
use super::report::number;

/// A sequence of programs. Each program differs from the one before it in one idea.
struct Sequence {
    first: Loop,
    ideas: &'static [Idea],
}

/// An idea.
struct Idea {
    words: &'static str,
    /// The origin of the idea: [`PAPER`] or [`OURS`].
    whose: &'static str,
    /// The program in which the effect is measured.
    program: &'static str,
    with: Loop,
}

/// The clocks of a block with a 128-bit key: first without an idea and then with it.
pub(super) struct Effect {
    idea: &'static Idea,
    clocks: [f64; 2],
}

const PAPER: &str = "paper";
const OURS: &str = "Lockstep";

const fn ctr(way: Way, blocks: u32) -> Loop {
    Loop { way, mode: Mode::Ctr, blocks, overlaps: false }
}

/// CTR with four blocks per iteration and overlapping iterations.
const fn four(way: Way) -> Loop {
    Loop { way, mode: Mode::Ctr, blocks: 4, overlaps: true }
}

const fn cbc(way: Way) -> Loop {
    Loop { way, mode: Mode::CbcEncrypt, blocks: 1, overlaps: true }
}

/// The paper's SubBytes with one of its versions of MixColumns.
const fn paper(columns: Columns) -> Way {
    Way::Columns(Substitution::Selections, columns)
}

/// The paper's MixColumns with the fewest instructions of the even pipe, and one of our versions of SubBytes.
const fn ours(substitution: Substitution) -> Way {
    Way::Columns(substitution, Columns::FewestEven)
}

const fn tables(balanced: bool) -> Loop {
    ctr(Way::PublishedTables { balanced }, 1)
}

const fn plain(hints: Hints) -> Loop {
    ctr(Way::Plain(hints), 1)
}

const fn idea(words: &'static str, whose: &'static str, program: &'static str, with: Loop) -> Idea {
    Idea { words, whose, program, with }
}

static SEQUENCES: [Sequence; 5] = [
    Sequence {
        first: plain(Hints::None),
        ideas: &[
            idea("hints for the branches of both loops", PAPER, "CTR0", plain(Hints::Fixed)),
            idea("a table of hints, also for the last round", PAPER, "CTR0 with hints", plain(Hints::Table)),
        ],
    },
    Sequence {
        first: ctr(paper(Columns::Direct), 1),
        ideas: &[
            idea(
                "MixColumns adds two rows first (version 2)",
                PAPER,
                "CTR, 1 block",
                ctr(paper(Columns::Rows), 1),
            ),
            idea("2 blocks in flight", PAPER, "CTR, version 2", ctr(paper(Columns::Rows), 2)),
            idea("4 blocks in flight instead of 2", PAPER, "CTR, version 2", ctr(paper(Columns::Rows), 4)),
            idea(
                "reduction by instructions of the odd pipe",
                PAPER,
                "CTR, 4 blocks",
                ctr(paper(Columns::FewEven), 4),
            ),
            idea(
                "the mask by `gbb` and `fsmb`, for one of four blocks",
                PAPER,
                "CTR, 4 blocks",
                ctr(paper(Columns::FewestEven), 4),
            ),
            idea("overlapping iterations", OURS, "CTR4", four(paper(Columns::FewestEven))),
            idea(
                "SubBytes adds two lookups instead of a selection",
                OURS,
                "CTR4, overlapping",
                four(ours(Substitution::Lookup)),
            ),
            idea(
                "masks of SubBytes by either pipe",
                OURS,
                "CTR4, overlapping",
                four(ours(Substitution::LookupBalanced)),
            ),
        ],
    },
    Sequence {
        first: cbc(paper(Columns::Rows)),
        ideas: &[idea("MixColumns for feedback", PAPER, "CBC, version 2", cbc(paper(Columns::Feedback)))],
    },
    Sequence {
        first: cbc(Way::Columns(Substitution::Lookup, Columns::Feedback)),
        ideas: &[idea("Lockstep's MixColumns", OURS, "CBC2, our SubBytes", cbc(Way::Lookup))],
    },
    Sequence { first: tables(false), ideas: &[idea("addresses by both pipes", PAPER, "Tab1", tables(true))] },
];

/// Measures the effects of all ideas.
///
/// # Errors
/// [`Error::Kernel`] if a kernel does not run, which is a bug.
pub(super) fn measure() -> Result<Vec<Effect>, Error> {
    let block = |of| clocks(of, Effort::Full).map(|clocks| clocks.block[0]).map_err(Error::Kernel);
    let mut effects = Vec::new();
    for Sequence { first, ideas } in &SEQUENCES {
        let mut without = block(*first)?;
        for idea in *ideas {
            let with = block(idea.with)?;
            effects.push(Effect { idea, clocks: [without, with] });
            without = with;
        }
    }
    Ok(effects)
}

/// Makes a table of the effects.
pub(super) fn table(effects: &[Effect]) -> Table {
    let head = ["idea", "whose", "in", "clocks without", "clocks with", "%"];
    let mut table = Table::new("Ideas one by one: clocks of a block, 128-bit keys", &head, 1);
    for Effect { idea, clocks: [without, with] } in effects {
        table.rows.push(vec![
            idea.words.into(),
            idea.whose.into(),
            idea.program.into(),
            number(*without),
            number(*with),
            format!("{:+.1}", 100.0 * (with / without - 1.0)),
        ]);
    }
    table
}

impl Effect {
    pub(super) fn json(&self) -> Value {
        let Idea { words, whose, program, .. } = self.idea;
        json!({"idea": words, "whose": whose, "program": program, "clocks": self.clocks})
    }
}
