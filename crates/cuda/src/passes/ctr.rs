//! CTR: one launch. The chaining state of a segment is the counter of its first block.

use super::{Kind, Plan};
use crate::kernel::Part;

pub(super) static CTR: Plan = Plan {
    part: Part::Ctr,
    kind: Kind::Tiles,
    edges: false,
    tweaks: false,
    run: |batch| batch.work(Part::Ctr),
};

pub(super) static CTR32: Plan = Plan {
    part: Part::Ctr32,
    kind: Kind::Tiles,
    edges: false,
    tweaks: false,
    run: |batch| batch.work(Part::Ctr32),
};
