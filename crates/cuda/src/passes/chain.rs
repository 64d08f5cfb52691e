//! Serial modes: bit planes of all round keys, then one launch in which each bit of a thread's planes is a message.

use lockstep_core::KeySize;
use lockstep_core::work::Pass;

use super::{Batch, Kind, Plan};
use crate::kernel::{CHAIN_LANES, CHAIN_MESSAGES, Part, helper};
use crate::machine::Shape;

/// enum Chain of kernels/chain/chain.cu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Chain {
    CbcEncrypt,
    Cfb128Encrypt,
    Cfb8Encrypt,
    Cfb8Decrypt,
    Cfb1Encrypt,
    Cfb1Decrypt,
    Ofb,
    PcbcEncrypt,
    PcbcDecrypt,
    CbcMac,
}

impl Chain {
    pub(crate) fn decrypts(self) -> bool {
        self == Chain::PcbcDecrypt
    }

    /// Warps for this many messages.
    fn warps(messages: usize) -> usize {
        messages.div_ceil(CHAIN_MESSAGES * CHAIN_LANES)
    }

    /// Bytes of the bit planes of all round keys: 128 words for each round and thread, of whole warps.
    pub(crate) fn scratch(messages: usize, size: KeySize) -> Option<usize> {
        Chain::warps(messages).checked_mul((size.rounds() + 1) * 128 * 4 * CHAIN_LANES)
    }
}

macro_rules! plans {
    ($($pass:ident),*) => {
        /// The plan of a serial pass.
        pub(super) fn plan(pass: Pass) -> Option<&'static Plan> {
            match pass {
                $(Pass::$pass => {
                    static PLAN: Plan = Plan {
                        // Chains have their own kernel; every family has this one.
                        part: Part::EcbEncrypt,
                        kind: Kind::Chain(Chain::$pass),
                        edges: false,
                        tweaks: false,
                        run: |batch| run(batch, Chain::$pass),
                    };
                    Some(&PLAN)
                })*
                _ => None,
            }
        }
    };
}

plans!(
    CbcEncrypt,
    Cfb128Encrypt,
    Cfb8Encrypt,
    Cfb8Decrypt,
    Cfb1Encrypt,
    Cfb1Decrypt,
    Ofb,
    PcbcEncrypt,
    PcbcDecrypt,
    CbcMac
);

fn run(batch: &Batch<'_>, chain: Chain) -> lockstep_core::Result<()> {
    let grid = u32::try_from(Chain::warps(batch.work.count as usize)).ok();
    let shape = grid.map(|grid| Shape { grid, threads: CHAIN_LANES as u32, shared: 0 });
    let option = chain as u32 | (batch.size.rounds() as u32) << 8;
    let parameters = batch.parameters(&batch.work, option);
    let with_keys = parameters.clone().word(batch.family.schedule(batch.size) as u32);
    batch.launch(helper::CHAIN_KEYS, shape, &with_keys, 0)?;
    let entry = if chain.decrypts() { helper::CHAIN_DECRYPT } else { helper::CHAIN_ENCRYPT };
    batch.launch(entry, shape, &parameters, batch.bytes)
}
