//! ECB: one launch.

use super::{Kind, Plan};
use crate::kernel::Part;

pub(super) static ENCRYPT: Plan = Plan {
    part: Part::EcbEncrypt,
    kind: Kind::Tiles,
    edges: false,
    tweaks: false,
    run: |batch| batch.work(Part::EcbEncrypt),
};

pub(super) static DECRYPT: Plan = Plan {
    part: Part::EcbDecrypt,
    kind: Kind::Tiles,
    edges: false,
    tweaks: false,
    run: |batch| batch.work(Part::EcbDecrypt),
};
