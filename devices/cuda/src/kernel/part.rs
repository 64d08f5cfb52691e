//! The functions that a family of kernels has, and their names in the machine code.

use lockstep_gpu_host::{Kind, Tiles};

use crate::machine::Entry;

/// A function that a family of kernels has for each key size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    EcbEncrypt,
    EcbDecrypt,
    Ctr,
    Ctr32,
    CtrLittle32,
    CbcDecrypt,
    CfbDecrypt,
    XtsEncrypt,
    XtsDecrypt,
    OcbEncrypt,
    OcbDecrypt,
}

impl Part {
    /// Returns the function that every tiling of a family must have if the family offers work of this kind.
    pub(crate) fn needed_by(kind: Kind) -> Part {
        match kind {
            Kind::Tiles(tiles) => Part::of(tiles),
            Kind::Gcm { .. } => Part::Ctr32,
            Kind::Ocb { opens: false } => Part::OcbEncrypt,
            Kind::Ocb { opens: true } => Part::OcbDecrypt,
            // Serial modes, GHASH and POLYVAL use kernels that all families share. Requiring `EcbEncrypt` excludes no family,
            // because every family has it.
            Kind::Chain(_) | Kind::Ghash | Kind::Polyval => Part::EcbEncrypt,
        }
    }

    /// The function of a pass in tiles.
    pub(crate) fn of(tiles: Tiles) -> Part {
        match tiles {
            Tiles::EcbEncrypt => Part::EcbEncrypt,
            Tiles::EcbDecrypt => Part::EcbDecrypt,
            Tiles::Ctr => Part::Ctr,
            Tiles::Ctr32 => Part::Ctr32,
            Tiles::CtrLittle32 => Part::CtrLittle32,
            Tiles::CbcDecrypt => Part::CbcDecrypt,
            Tiles::Cfb128Decrypt => Part::CfbDecrypt,
            Tiles::XtsEncrypt => Part::XtsEncrypt,
            Tiles::XtsDecrypt => Part::XtsDecrypt,
        }
    }
}

/// Entry points, by [`Part`] and key size.
pub(crate) type Entries = [[Entry; 3]; 11];
