//! CFB decryption: as CBC decryption, with the cipher for encryption.

use super::{Kind, Plan};
use crate::kernel::Part;

pub(super) static DECRYPT: Plan = Plan {
    part: Part::CfbDecrypt,
    kind: Kind::Tiles,
    edges: true,
    tweaks: false,
    run: |batch| {
        batch.edges()?;
        batch.work(Part::CfbDecrypt)
    },
};
