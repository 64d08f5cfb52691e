//! The passes: how the device does each.

use lockstep_core::work::{FusedAead, Operation, Pass};

use crate::kernel::Part;

/// How work is divided among invocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In tiles; a segment may be cut at the border of any.
    Tiles(Part),
    /// In runs counted from the end of each message, in levels. Data are only read.
    Ghash,
    /// One lane for each message, from its beginning to its end; the number is that of `shaders/chain.wgsl`.
    Chain(u32),
    /// Whole messages of GCM.
    Gcm { opens: bool },
}

/// Numbers of chains that the host treats in a special way.
pub(crate) const CFB8_ENCRYPT: u32 = 2;
pub(crate) const CFB8_DECRYPT: u32 = 3;
pub(crate) const CFB1_ENCRYPT: u32 = 4;
pub(crate) const CFB1_DECRYPT: u32 = 5;
const PCBC_DECRYPT: u32 = 8;

impl Kind {
    /// True if hash keys are needed.
    pub(crate) fn hashes(self) -> bool {
        matches!(self, Kind::Ghash | Kind::Gcm { .. })
    }

    /// The kind of an operation.
    pub(crate) fn of(operation: Operation) -> Kind {
        match operation {
            Operation::Fused(fused) => Kind::Gcm { opens: fused == FusedAead::GcmOpen },
            Operation::Pass(pass) => Kind::of_pass(pass),
        }
    }

    fn of_pass(pass: Pass) -> Kind {
        match pass {
            Pass::EcbEncrypt => Kind::Tiles(Part::EcbEncrypt),
            Pass::EcbDecrypt => Kind::Tiles(Part::EcbDecrypt),
            Pass::Ctr | Pass::Ctr32 => Kind::Tiles(Part::Ctr),
            Pass::CbcDecrypt => Kind::Tiles(Part::CbcDecrypt),
            Pass::Cfb128Decrypt => Kind::Tiles(Part::CfbDecrypt),
            Pass::XtsEncrypt => Kind::Tiles(Part::XtsEncrypt),
            Pass::XtsDecrypt => Kind::Tiles(Part::XtsDecrypt),
            Pass::Ghash => Kind::Ghash,
            Pass::CbcEncrypt => Kind::Chain(0),
            Pass::Cfb128Encrypt => Kind::Chain(1),
            Pass::Cfb8Encrypt => Kind::Chain(CFB8_ENCRYPT),
            Pass::Cfb8Decrypt => Kind::Chain(CFB8_DECRYPT),
            Pass::Cfb1Encrypt => Kind::Chain(CFB1_ENCRYPT),
            Pass::Cfb1Decrypt => Kind::Chain(CFB1_DECRYPT),
            Pass::Ofb => Kind::Chain(6),
            Pass::PcbcEncrypt => Kind::Chain(7),
            Pass::PcbcDecrypt => Kind::Chain(PCBC_DECRYPT),
            Pass::CbcMac => Kind::Chain(9),
        }
    }

    /// Key schedules hold both directions; chains use one.
    pub(crate) fn chain_decrypts(self) -> bool {
        self == Kind::Chain(PCBC_DECRYPT)
    }
}
