//! The passes: what programs each takes, in order.

use lockstep_core::register::Register;
use lockstep_core::work::Pass;

use crate::kernel::{FAMILIES, Family, Part, Program};

/// How a pass is done on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    /// What the register is afterwards.
    pub(crate) register: Register,
}

/// How work is shared out among invocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In tiles; a segment may be cut at any.
    Tiles(Part),
    /// In runs from the end of each message, level upon level. Data are only read.
    Ghash,
    /// A message a lane, from its beginning to its end: a number of `shaders/chain.wgsl`.
    Chain(u32),
}

/// CBC-MAC and PCBC decryption among the chains.
const PCBC_DECRYPT: u32 = 8;
const CBC_MAC: u32 = 9;

impl Kind {
    /// True if there is no output but the register.
    pub(crate) fn only_reads(self) -> bool {
        matches!(self, Kind::Ghash | Kind::Chain(CBC_MAC))
    }
}

/// The plan of a pass.
pub(crate) fn plan(pass: Pass) -> Plan {
    let kind = match pass {
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
        Pass::Cfb8Encrypt => Kind::Chain(2),
        Pass::Cfb8Decrypt => Kind::Chain(3),
        Pass::Cfb1Encrypt => Kind::Chain(4),
        Pass::Cfb1Decrypt => Kind::Chain(5),
        Pass::Ofb => Kind::Chain(6),
        Pass::PcbcEncrypt => Kind::Chain(7),
        Pass::PcbcDecrypt => Kind::Chain(PCBC_DECRYPT),
        Pass::CbcMac => Kind::Chain(CBC_MAC),
    };
    Plan { kind, register: Register::of(pass) }
}

impl Plan {
    /// Key schedules hold both directions; chains have planes of one.
    pub(crate) fn chain_decrypts(self) -> bool {
        self.kind == Kind::Chain(PCBC_DECRYPT)
    }

    /// `Launch::option` of tiles: which bits of a counter count.
    pub(crate) fn counter_mask(self) -> u32 {
        if self.register == Register::Counter32 { 0 } else { u32::MAX }
    }

    /// The programs that a family needs for it, in one shape.
    pub(crate) fn programs(self, family: &Family, wide: bool) -> Vec<Program> {
        match self.kind {
            Kind::Tiles(part) if part.tweaks() => {
                vec![(family.program)(Part::EcbEncrypt, false), (family.program)(part, wide)]
            }
            Kind::Tiles(part) => vec![(family.program)(part, wide)],
            Kind::Ghash => {
                vec![(family.program)(Part::EcbEncrypt, false), Program::GhashPowers, Program::GhashRuns]
            }
            Kind::Chain(_) => {
                let decrypts = self.chain_decrypts();
                vec![Program::ChainKeys { decrypts }, Program::ChainSteps { decrypts }]
            }
        }
    }
}

/// Every program there is.
#[cfg_attr(not(test), expect(dead_code, reason = "what tests go through"))]
pub(crate) fn all_programs() -> Vec<Program> {
    let mut all: Vec<Program> = Vec::new();
    for family in &FAMILIES {
        for pass in Pass::ALL {
            for wide in [false, true] {
                for program in plan(pass).programs(family, wide) {
                    if !all.contains(&program) {
                        all.push(program);
                    }
                }
            }
        }
    }
    all
}
