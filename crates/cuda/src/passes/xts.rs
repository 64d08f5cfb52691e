//! XTS: ECB encrypts the tweaks and they are written to the segments; then one launch.

use super::{Kind, Plan};
use crate::kernel::Part;

pub(super) static ENCRYPT: Plan = Plan {
    part: Part::XtsEncrypt,
    kind: Kind::Tiles,
    edges: false,
    tweaks: true,
    run: |batch| {
        batch.tweaks()?;
        batch.work(Part::XtsEncrypt)
    },
};

pub(super) static DECRYPT: Plan = Plan {
    part: Part::XtsDecrypt,
    kind: Kind::Tiles,
    edges: false,
    tweaks: true,
    run: |batch| {
        batch.tweaks()?;
        batch.work(Part::XtsDecrypt)
    },
};
