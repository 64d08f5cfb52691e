//! CFB decryption: as CBC decryption, with the cipher for encryption.

use super::{Kind, Plan, Register};
use crate::kernel::Part;

pub(super) static DECRYPT: Plan = Plan {
    part: Part::CfbDecrypt,
    kind: Kind::Tiles,
    register: Register::LastCiphertext,
    edges: true,
    tweaks: false,
    run: |batch| {
        batch.edges()?;
        batch.work(Part::CfbDecrypt)
    },
};
