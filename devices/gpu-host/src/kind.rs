//! How devices with many threads execute an operation.

use lockstep_core::work::{FusedAead, Operation, Pass};

/// How an operation is divided among threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// This pass in tiles. A segment may be cut at the border of any tile.
    Tiles(Pass),
    /// GHASH in several levels, in tiles that are counted from the end of each message. The data are only read.
    Ghash,
    /// POLYVAL, in the same levels. The key of a segment is the hash key itself.
    Polyval,
    /// A serial pass: one lane for each message, from its beginning to its end.
    Chain(Chain),
    /// Whole messages of GCM: CTR in tiles, and GHASH.
    Gcm {
        /// True for decryption.
        opens: bool,
    },
    /// Whole messages of OCB3: whole blocks in tiles, each with a checksum.
    Ocb {
        /// True for decryption.
        opens: bool,
    },
}

/// The serial passes, with the numbers that identify them in kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs, reason = "they are those of `Pass`")]
pub enum Chain {
    CbcEncrypt = 0,
    Cfb128Encrypt = 1,
    Cfb8Encrypt = 2,
    Cfb8Decrypt = 3,
    Cfb1Encrypt = 4,
    Cfb1Decrypt = 5,
    Ofb = 6,
    PcbcEncrypt = 7,
    PcbcDecrypt = 8,
    CbcMac = 9,
}

impl Kind {
    /// The kind of an operation.
    ///
    /// # Panics
    /// For fused GCM-SIV, which modes compose of passes.
    pub const fn of(operation: Operation) -> Kind {
        let pass = match operation {
            Operation::Fused(fused) => match fused {
                FusedAead::GcmSeal | FusedAead::GcmOpen => return Kind::Gcm { opens: fused.opens() },
                FusedAead::OcbSeal | FusedAead::OcbOpen => return Kind::Ocb { opens: fused.opens() },
                FusedAead::GcmSivSeal | FusedAead::GcmSivOpen => {
                    panic!("GPUs do not offer GCM-SIV as one operation")
                }
            },
            Operation::Pass(pass) => pass,
        };
        Kind::Chain(match pass {
            Pass::CbcEncrypt => Chain::CbcEncrypt,
            Pass::Cfb128Encrypt => Chain::Cfb128Encrypt,
            Pass::Cfb8Encrypt => Chain::Cfb8Encrypt,
            Pass::Cfb8Decrypt => Chain::Cfb8Decrypt,
            Pass::Cfb1Encrypt => Chain::Cfb1Encrypt,
            Pass::Cfb1Decrypt => Chain::Cfb1Decrypt,
            Pass::Ofb => Chain::Ofb,
            Pass::PcbcEncrypt => Chain::PcbcEncrypt,
            Pass::PcbcDecrypt => Chain::PcbcDecrypt,
            Pass::CbcMac => Chain::CbcMac,
            Pass::Ghash => return Kind::Ghash,
            Pass::Polyval => return Kind::Polyval,
            _ => return Kind::Tiles(pass),
        })
    }

    /// True if messages are hashed, by GHASH or by POLYVAL.
    pub const fn hashes(self) -> bool {
        matches!(self, Kind::Ghash | Kind::Polyval | Kind::Gcm { .. })
    }

    /// True for XTS, where the chaining states are first encrypted under a second key.
    pub const fn tweaks(self) -> bool {
        matches!(self, Kind::Tiles(pass) if pass.is_xts())
    }

    /// True for CBC and CFB decryption: a tile reads the last ciphertext block of the preceding tile. In place, the
    /// preceding tile overwrites this block.
    pub const fn looks_back(self) -> bool {
        matches!(self, Kind::Tiles(Pass::CbcDecrypt | Pass::Cfb128Decrypt))
    }
}

impl Chain {
    /// True if the pass uses the inverse cipher.
    pub const fn decrypts(self) -> bool {
        matches!(self, Chain::PcbcDecrypt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_agree_with_passes() {
        for pass in Pass::ALL {
            let kind = Kind::of(Operation::Pass(pass));
            assert_eq!(kind == Kind::Tiles(pass), lockstep_core::share::can_cut(pass), "{pass:?}");
            assert_eq!(matches!(kind, Kind::Chain(_)), pass.is_serial(), "{pass:?}");
        }
    }
}
