//! The ideas that lead from the paper's first kernel to its last kernels, and to Lockstep's kernels. For each idea, this module measures
//! the clocks of two programs that differ only in this idea.

use lockstep_report::Table;
use lockstep_spu::kernels::measure::clocks;
use lockstep_spu::kernels::{Columns, Hints, Loop, Mode, Substitution, Way};
use lockstep_spu::schedule::Effort;
use serde_json::{Value, json};

use super::Error;
use super::report::number;

/// An idea.
struct Idea {
    words: &'static str,
    /// The origin of the idea: [`PAPER`] or [`OURS`].
    whose: &'static str,
    /// The program in which the effect is measured.
    program: &'static str,
    without: Loop,
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

const fn tables(balanced: bool) -> Loop {
    ctr(Way::PublishedTables { balanced }, 1)
}

const fn plain(hints: Hints) -> Loop {
    ctr(Way::Plain(hints), 1)
}

static IDEAS: [Idea; 13] = [
    Idea {
        words: "hints for the branches of both loops",
        whose: PAPER,
        program: "CTR0",
        without: plain(Hints::None),
        with: plain(Hints::Fixed),
    },
    Idea {
        words: "a table of hints, also for the last round",
        whose: PAPER,
        program: "CTR0 with hints",
        without: plain(Hints::Fixed),
        with: plain(Hints::Table),
    },
    Idea {
        words: "MixColumns adds two rows first (version 2)",
        whose: PAPER,
        program: "CTR, 1 block",
        without: ctr(paper(Columns::Direct), 1),
        with: ctr(paper(Columns::Rows), 1),
    },
    Idea {
        words: "2 blocks in flight",
        whose: PAPER,
        program: "CTR, version 2",
        without: ctr(paper(Columns::Rows), 1),
        with: ctr(paper(Columns::Rows), 2),
    },
    Idea {
        words: "4 blocks in flight instead of 2",
        whose: PAPER,
        program: "CTR, version 2",
        without: ctr(paper(Columns::Rows), 2),
        with: ctr(paper(Columns::Rows), 4),
    },
    Idea {
        words: "reduction by instructions of the odd pipe",
        whose: PAPER,
        program: "CTR, 4 blocks",
        without: ctr(paper(Columns::Rows), 4),
        with: ctr(paper(Columns::FewEven), 4),
    },
    Idea {
        words: "the mask by `gbb` and `fsmb`, for one of four blocks",
        whose: PAPER,
        program: "CTR, 4 blocks",
        without: ctr(paper(Columns::FewEven), 4),
        with: ctr(paper(Columns::FewestEven), 4),
    },
    Idea {
        words: "overlapping iterations",
        whose: OURS,
        program: "CTR4",
        without: ctr(paper(Columns::FewestEven), 4),
        with: four(paper(Columns::FewestEven)),
    },
    Idea {
        words: "SubBytes adds two lookups instead of a selection",
        whose: OURS,
        program: "CTR4, overlapping",
        without: four(paper(Columns::FewestEven)),
        with: four(Way::Columns(Substitution::Lookup, Columns::FewestEven)),
    },
    Idea {
        words: "masks of SubBytes by either pipe",
        whose: OURS,
        program: "CTR4, overlapping",
        without: four(Way::Columns(Substitution::Lookup, Columns::FewestEven)),
        with: four(Way::Columns(Substitution::LookupBalanced, Columns::FewestEven)),
    },
    Idea {
        words: "MixColumns for feedback",
        whose: PAPER,
        program: "CBC, version 2",
        without: cbc(paper(Columns::Rows)),
        with: cbc(paper(Columns::Feedback)),
    },
    Idea {
        words: "Lockstep's MixColumns",
        whose: OURS,
        program: "CBC2, our SubBytes",
        without: cbc(Way::Columns(Substitution::Lookup, Columns::Feedback)),
        with: cbc(Way::Lookup),
    },
    Idea {
        words: "addresses by both pipes",
        whose: PAPER,
        program: "Tab1",
        without: tables(false),
        with: tables(true),
    },
];

/// Measures the effects of all ideas.
///
/// # Errors
/// [`Error::Kernel`] if a kernel does not run, which is a bug.
pub(super) fn measure() -> Result<Vec<Effect>, Error> {
    let block = |of| clocks(of, Effort::Full).map(|clocks| clocks.block[0]).map_err(Error::Kernel);
    IDEAS.iter().map(|idea| Ok(Effect { idea, clocks: [block(idea.without)?, block(idea.with)?] })).collect()
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
