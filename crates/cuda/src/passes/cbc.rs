//! CBC decryption: the block before each tile is saved first, because in place the tile before overwrites it; then one
//! launch.

use super::{Kind, Plan};
use crate::kernel::Part;

pub(super) static DECRYPT: Plan = Plan {
    part: Part::CbcDecrypt,
    kind: Kind::Tiles,
    edges: true,
    tweaks: false,
    run: |batch| {
        batch.edges()?;
        batch.work(Part::CbcDecrypt)
    },
};
