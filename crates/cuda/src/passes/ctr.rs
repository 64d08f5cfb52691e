//! CTR: one launch. The register of a segment is the counter of its first block.

use super::{Kind, Plan, Register};
use crate::kernel::Part;

pub(super) static CTR: Plan = Plan {
    part: Part::Ctr,
    kind: Kind::Tiles,
    register: Register::Counter,
    edges: false,
    tweaks: false,
    run: |batch| batch.work(Part::Ctr),
};

pub(super) static CTR32: Plan = Plan {
    part: Part::Ctr32,
    kind: Kind::Tiles,
    register: Register::Counter32,
    edges: false,
    tweaks: false,
    run: |batch| batch.work(Part::Ctr32),
};
