//! The kernels by name, with their loops and passes.

use lockstep_core::work::Pass;

use super::{Columns, Hints, Loop, Mode, Substitution, Way};

/// A kernel with its name.
#[derive(Debug)]
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// A description for lists.
    pub description: &'static str,
    /// False if addresses depend on data.
    pub constant_time: bool,
    /// Values from the paper: clocks per round of a block, and additional clocks for the last round.
    pub paper: Option<(f64, f64)>,
    /// The loops; the first one is used for measurements.
    pub loops: &'static [(Pass, Loop)],
}

const fn one(way: Way, mode: Mode, blocks: u32) -> Loop {
    Loop { way, mode, blocks, overlaps: true }
}

/// A loop without overlapping iterations.
const fn exclusive(way: Way, mode: Mode, blocks: u32) -> Loop {
    Loop { way, mode, blocks, overlaps: false }
}

macro_rules! ctr {
    ($kind:ident, $way:expr, $blocks:literal) => {
        &[(Pass::Ctr, $kind($way, Mode::Ctr, $blocks)), (Pass::Ctr32, $kind($way, Mode::Ctr, $blocks))]
    };
}

macro_rules! cbc {
    ($way:expr) => {
        &[(Pass::CbcEncrypt, one($way, Mode::CbcEncrypt, 1)), (Pass::CbcMac, one($way, Mode::CbcEncrypt, 1))]
    };
}

/// The paper's MixColumns of version 2, with Lockstep's SubBytes.
const ROWS: Way = Way::Columns(Substitution::Lookup, Columns::Rows);

/// [`ROWS`] with alternatives for both pipes.
const ROWS_BALANCED: Way = Way::Columns(Substitution::LookupBalanced, Columns::Rows);

/// The paper's MixColumns of version 4, with Lockstep's SubBytes.
const BALANCED: Way = Way::Columns(Substitution::LookupBalanced, Columns::FewestEven);

const FAST_CTR: Loop = one(Way::Vperm, Mode::Ctr, 4);
const FAST_CBC: Loop = one(Way::Lookup, Mode::CbcEncrypt, 1);

/// All kernels.
pub const KERNELS: &[Named] = &[
    Named {
        name: "spu/vperm",
        description: "most modes; S-box by vector permutation, chains by lookups in registers, GHASH bit by bit",
        constant_time: true,
        paper: None,
        loops: &[
            (Pass::Ctr, FAST_CTR),
            (Pass::Ctr32, FAST_CTR),
            (Pass::EcbEncrypt, one(Way::Vperm, Mode::Ecb, 4)),
            (Pass::EcbDecrypt, one(Way::VpermInverse, Mode::Ecb, 4)),
            (Pass::CbcEncrypt, FAST_CBC),
            (Pass::CbcMac, FAST_CBC),
            (Pass::CbcDecrypt, one(Way::VpermInverse, Mode::CbcDecrypt, 4)),
            (Pass::Cfb128Encrypt, one(Way::Lookup, Mode::CfbEncrypt, 1)),
            (Pass::Cfb128Decrypt, one(Way::Vperm, Mode::CfbDecrypt, 4)),
            (Pass::Ofb, one(Way::Lookup, Mode::Ofb, 1)),
            (Pass::Ghash, one(Way::GhashBits, Mode::Ecb, 1)),
        ],
    },
    Named {
        name: "spu/gcm",
        description: "GCM; CTR by vector permutation, GHASH by 16 tables",
        constant_time: false,
        paper: None,
        loops: &[
            (Pass::Ghash, one(Way::Ghash, Mode::Ecb, 1)),
            (Pass::Ctr32, FAST_CTR),
            (Pass::Ctr, FAST_CTR),
            (Pass::EcbEncrypt, one(Way::Vperm, Mode::Ecb, 4)),
        ],
    },
    Named {
        name: "spu/ctr-vperm",
        description: "CTR, S-box by vector permutation, 4 blocks per iteration, iterations overlap",
        constant_time: true,
        paper: None,
        loops: ctr!(one, Way::Vperm, 4),
    },
    Named {
        name: "spu/ctr0",
        description: "CTR without scheduling",
        constant_time: true,
        paper: Some((85.0, -26.0)),
        loops: ctr!(exclusive, Way::Plain(Hints::None), 1),
    },
    Named {
        name: "spu/ctr1",
        description: "CTR by lookups in registers, scheduled",
        constant_time: true,
        paper: Some((44.0, 31.0)),
        loops: ctr!(exclusive, Way::Lookup, 1),
    },
    Named {
        name: "spu/ctr2",
        description: "CTR by lookups in registers, 2 blocks in flight",
        constant_time: true,
        paper: Some((28.0, 5.5)),
        loops: ctr!(exclusive, ROWS, 2),
    },
    Named {
        name: "spu/ctr4a",
        description: "CTR by lookups in registers, 4 blocks in flight",
        constant_time: true,
        paper: Some((22.25, -4.25)),
        loops: ctr!(exclusive, ROWS, 4),
    },
    Named {
        name: "spu/ctr4",
        description: "CTR by lookups in registers, pipes balanced, 4 blocks per iteration, iterations overlap",
        constant_time: true,
        paper: Some((20.0, -2.75)),
        loops: ctr!(one, BALANCED, 4),
    },
    Named {
        name: "spu/tab1",
        description: "CTR by tables of 64 KiB",
        constant_time: false,
        paper: Some((48.0, 14.0)),
        loops: ctr!(exclusive, Way::Tables, 1),
    },
    Named {
        name: "spu/tab2",
        description: "CTR by tables of 64 KiB, 2 blocks in flight",
        constant_time: false,
        paper: Some((35.0, 27.0)),
        loops: ctr!(exclusive, Way::Tables, 2),
    },
    Named {
        name: "spu/tab4",
        description: "CTR by tables of 64 KiB, 2 blocks per iteration, iterations overlap",
        constant_time: false,
        paper: None,
        loops: ctr!(one, Way::Tables, 2),
    },
    Named {
        name: "spu/tab4-cached",
        description: "CTR by tables of 64 KiB, most of the first round cached, 2 blocks per iteration, iterations overlap",
        constant_time: false,
        paper: None,
        loops: &[
            (Pass::Ctr, one(Way::Tables, Mode::CtrCached, 2)),
            (Pass::Ctr32, one(Way::Tables, Mode::CtrCached, 2)),
        ],
    },
    Named {
        name: "spu/tab4-decrypt",
        description: "decryption by tables of 64 KiB, 2 blocks per iteration, iterations overlap",
        constant_time: false,
        paper: None,
        loops: &[
            (Pass::EcbDecrypt, one(Way::TablesInverse, Mode::Ecb, 2)),
            (Pass::CbcDecrypt, one(Way::TablesInverse, Mode::CbcDecrypt, 2)),
        ],
    },
    Named {
        name: "spu/cbc1",
        description: "CBC encryption by lookups in registers, fewest instructions",
        constant_time: true,
        paper: Some((44.0, 15.0)),
        loops: cbc!(ROWS_BALANCED),
    },
    Named {
        name: "spu/cbc2",
        description: "CBC encryption by lookups in registers, shortest latency",
        constant_time: true,
        paper: Some((35.0, -7.0)),
        loops: cbc!(Way::Lookup),
    },
    Named {
        name: "spu/ecb1",
        description: "ECB encryption by lookups in registers",
        constant_time: true,
        paper: Some((38.0, 6.0)),
        loops: &[(Pass::EcbEncrypt, exclusive(Way::Lookup, Mode::Ecb, 1))],
    },
    Named {
        name: "spu/ecb4a",
        description: "ECB encryption by lookups in registers, 4 blocks in flight",
        constant_time: true,
        paper: Some((21.25, -5.75)),
        loops: &[(Pass::EcbEncrypt, exclusive(ROWS, Mode::Ecb, 4))],
    },
    Named {
        name: "spu/ecb4",
        description: "ECB encryption by lookups in registers, pipes balanced, 4 blocks per iteration, iterations overlap",
        constant_time: true,
        paper: Some((20.0, -4.75)),
        loops: &[(Pass::EcbEncrypt, one(BALANCED, Mode::Ecb, 4))],
    },
    Named {
        name: "spu/ecb-decrypt",
        description: "ECB decryption by vector permutation, 4 blocks per iteration, iterations overlap",
        constant_time: true,
        paper: None,
        loops: &[(Pass::EcbDecrypt, one(Way::VpermInverse, Mode::Ecb, 4))],
    },
    Named {
        name: "spu/cbc-decrypt",
        description: "CBC decryption by vector permutation, 4 blocks per iteration, iterations overlap",
        constant_time: true,
        paper: None,
        loops: &[(Pass::CbcDecrypt, one(Way::VpermInverse, Mode::CbcDecrypt, 4))],
    },
];

const fn as_published(columns: Columns) -> Way {
    Way::Columns(Substitution::Selections, columns)
}

const fn published(
    name: &'static str,
    description: &'static str,
    paper: (f64, f64),
    constant_time: bool,
    loops: &'static [(Pass, Loop)],
) -> Named {
    Named { name, description, constant_time, paper: Some(paper), loops }
}

/// The paper's kernels with the paper's operations, for measurements. The device does not offer these kernels.
pub const PUBLISHED: &[Named] = &[
    published(
        "published/ctr1",
        "CTR, MixColumns in version 1",
        (44.0, 31.0),
        true,
        &[(Pass::Ctr, exclusive(as_published(Columns::Direct), Mode::Ctr, 1))],
    ),
    published(
        "published/ctr2",
        "CTR, MixColumns in version 2, 2 blocks in flight",
        (28.0, 5.5),
        true,
        &[(Pass::Ctr, exclusive(as_published(Columns::Rows), Mode::Ctr, 2))],
    ),
    published(
        "published/ctr4a",
        "CTR, MixColumns in version 2, 4 blocks in flight",
        (22.25, -4.25),
        true,
        &[(Pass::Ctr, exclusive(as_published(Columns::Rows), Mode::Ctr, 4))],
    ),
    published(
        "published/ctr4",
        "CTR, MixColumns in version 4, iterations overlap",
        (20.0, -2.75),
        true,
        &[(Pass::Ctr, one(as_published(Columns::FewestEven), Mode::Ctr, 4))],
    ),
    published(
        "published/tab1",
        "CTR by tables of 64 KiB, a rotation for each address",
        (48.0, 14.0),
        false,
        &[(Pass::Ctr, exclusive(Way::PublishedTables { balanced: false }, Mode::Ctr, 1))],
    ),
    published(
        "published/tab2",
        "CTR by tables of 64 KiB, addresses by both pipes",
        (35.0, 27.0),
        false,
        &[(Pass::Ctr, exclusive(Way::PublishedTables { balanced: true }, Mode::Ctr, 1))],
    ),
    published(
        "published/cbc1",
        "CBC encryption, MixColumns in version 1",
        (44.0, 15.0),
        true,
        &[(Pass::CbcEncrypt, one(as_published(Columns::Direct), Mode::CbcEncrypt, 1))],
    ),
    published(
        "published/cbc2",
        "CBC encryption, MixColumns for feedback",
        (35.0, -7.0),
        true,
        &[(Pass::CbcEncrypt, one(as_published(Columns::Feedback), Mode::CbcEncrypt, 1))],
    ),
    published(
        "published/ecb1",
        "ECB encryption, MixColumns in version 2",
        (38.0, 6.0),
        true,
        &[(Pass::EcbEncrypt, exclusive(as_published(Columns::Rows), Mode::Ecb, 1))],
    ),
    published(
        "published/ecb4a",
        "ECB encryption, MixColumns in version 2, 4 blocks in flight",
        (21.25, -5.75),
        true,
        &[(Pass::EcbEncrypt, exclusive(as_published(Columns::Rows), Mode::Ecb, 4))],
    ),
    published(
        "published/ecb4",
        "ECB encryption, MixColumns in version 4, iterations overlap",
        (20.0, -4.75),
        true,
        &[(Pass::EcbEncrypt, one(as_published(Columns::FewestEven), Mode::Ecb, 4))],
    ),
];

impl Named {
    /// Returns the loop for a pass.
    pub fn loop_for(&self, pass: Pass) -> Option<Loop> {
        self.loops.iter().find(|entry| entry.0 == pass).map(|entry| entry.1)
    }
}
