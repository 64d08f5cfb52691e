//! The division of operations among the threads of a device.

use lockstep_core::work::{FusedAead, Operation, Pass};

/// How an operation is divided among threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A pass in tiles, which run in parallel. A segment may be cut at the border of any tile.
    Tiles(Tiles),
    /// GHASH in several levels, of tiles that are counted from the end of each message. The data are read and not changed.
    Ghash,
    /// POLYVAL, in the same levels as GHASH. The key of a segment is the hash key itself.
    Polyval,
    /// A serial pass: one lane processes a message from its beginning to its end.
    Chain(Chain),
    /// Whole messages of GCM: the data are processed by CTR in tiles and by GHASH.
    Gcm {
        /// True for decryption.
        opens: bool,
    },
    /// Whole messages of OCB3: whole blocks are processed in tiles, and each tile gives a checksum.
    Ocb {
        /// True for decryption.
        opens: bool,
    },
}

/// The passes in tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are those of `Pass`")]
pub enum Tiles {
    EcbEncrypt,
    EcbDecrypt,
    Ctr,
    Ctr32,
    CtrLittle32,
    CbcDecrypt,
    Cfb128Decrypt,
    XtsEncrypt,
    XtsDecrypt,
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
    /// The kind of an operation. `None` for fused GCM-SIV, which modes compose of passes.
    pub const fn of(operation: Operation) -> Option<Kind> {
        Some(match operation {
            Operation::Pass(pass) => Kind::of_pass(pass),
            Operation::Fused(fused) => match fused {
                FusedAead::GcmSeal | FusedAead::GcmOpen => Kind::Gcm { opens: fused.opens() },
                FusedAead::OcbSeal | FusedAead::OcbOpen => Kind::Ocb { opens: fused.opens() },
                FusedAead::GcmSivSeal | FusedAead::GcmSivOpen => return None,
            },
        })
    }

    /// The kind of a pass.
    pub const fn of_pass(pass: Pass) -> Kind {
        match pass {
            Pass::EcbEncrypt => Kind::Tiles(Tiles::EcbEncrypt),
            Pass::EcbDecrypt => Kind::Tiles(Tiles::EcbDecrypt),
            Pass::Ctr => Kind::Tiles(Tiles::Ctr),
            Pass::Ctr32 => Kind::Tiles(Tiles::Ctr32),
            Pass::CtrLittle32 => Kind::Tiles(Tiles::CtrLittle32),
            Pass::CbcDecrypt => Kind::Tiles(Tiles::CbcDecrypt),
            Pass::Cfb128Decrypt => Kind::Tiles(Tiles::Cfb128Decrypt),
            Pass::XtsEncrypt => Kind::Tiles(Tiles::XtsEncrypt),
            Pass::XtsDecrypt => Kind::Tiles(Tiles::XtsDecrypt),
            Pass::CbcEncrypt => Kind::Chain(Chain::CbcEncrypt),
            Pass::Cfb128Encrypt => Kind::Chain(Chain::Cfb128Encrypt),
            Pass::Cfb8Encrypt => Kind::Chain(Chain::Cfb8Encrypt),
            Pass::Cfb8Decrypt => Kind::Chain(Chain::Cfb8Decrypt),
            Pass::Cfb1Encrypt => Kind::Chain(Chain::Cfb1Encrypt),
            Pass::Cfb1Decrypt => Kind::Chain(Chain::Cfb1Decrypt),
            Pass::Ofb => Kind::Chain(Chain::Ofb),
            Pass::PcbcEncrypt => Kind::Chain(Chain::PcbcEncrypt),
            Pass::PcbcDecrypt => Kind::Chain(Chain::PcbcDecrypt),
            Pass::CbcMac => Kind::Chain(Chain::CbcMac),
            Pass::Ghash => Kind::Ghash,
            Pass::Polyval => Kind::Polyval,
        }
    }

    /// True if messages are hashed, by GHASH or by POLYVAL.
    pub const fn hashes(self) -> bool {
        matches!(self, Kind::Ghash | Kind::Polyval | Kind::Gcm { .. })
    }

    /// True for XTS, where the chaining states are first encrypted under a second key.
    pub const fn tweaks(self) -> bool {
        matches!(self, Kind::Tiles(Tiles::XtsEncrypt | Tiles::XtsDecrypt))
    }

    /// True for CBC and CFB decryption: a tile reads the last ciphertext block of the preceding tile. In place, the
    /// preceding tile overwrites this block.
    pub const fn looks_back(self) -> bool {
        matches!(self, Kind::Tiles(Tiles::CbcDecrypt | Tiles::Cfb128Decrypt))
    }
}

impl Chain {
    /// True if the pass uses the inverse cipher.
    pub const fn decrypts(self) -> bool {
        matches!(self, Chain::PcbcDecrypt)
    }
}

#[cfg(test)]
mod tests;
