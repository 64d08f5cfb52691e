//! How the chaining state advances over a segment, for devices that cut segments into pieces.

use crate::key::Block;
use crate::work::{Operation, Pass};

/// The rule that gives the chaining state after a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ChainingState {
    /// The state does not change.
    Keep = 0,
    /// A counter of 128 bits.
    Counter = 1,
    /// A counter of 32 bits in the last four bytes.
    Counter32 = 2,
    /// The last whole block of the input, which is ciphertext.
    LastCiphertext = 3,
    /// A result that only the device computes.
    DeviceComputed = 4,
    /// A little-endian counter of 32 bits in the first four bytes.
    CounterLittle32 = 5,
}

impl ChainingState {
    /// The rule of a pass.
    pub const fn of(pass: Pass) -> ChainingState {
        match pass {
            Pass::EcbEncrypt | Pass::EcbDecrypt | Pass::XtsEncrypt | Pass::XtsDecrypt => ChainingState::Keep,
            Pass::Ctr => ChainingState::Counter,
            Pass::Ctr32 => ChainingState::Counter32,
            Pass::CtrLittle32 => ChainingState::CounterLittle32,
            Pass::CbcDecrypt | Pass::Cfb128Decrypt => ChainingState::LastCiphertext,
            Pass::CbcEncrypt | Pass::PcbcEncrypt | Pass::PcbcDecrypt => ChainingState::DeviceComputed,
            Pass::Cfb128Encrypt | Pass::Cfb8Encrypt | Pass::Cfb8Decrypt => ChainingState::DeviceComputed,
            Pass::Cfb1Encrypt | Pass::Cfb1Decrypt | Pass::Ofb => ChainingState::DeviceComputed,
            Pass::CbcMac | Pass::Ghash | Pass::Polyval => ChainingState::DeviceComputed,
        }
    }

    /// The rule of an operation. Messages of a fused AEAD have no chaining state.
    pub const fn of_operation(operation: Operation) -> ChainingState {
        match operation {
            Operation::Pass(pass) => ChainingState::of(pass),
            Operation::Fused(_) => ChainingState::Keep,
        }
    }

    /// The chaining state after `bytes` of input. `last` is the last whole block of the input, if there is one. A state that
    /// only the device computes is returned unchanged.
    pub fn after(self, state: Block, bytes: usize, last: Option<Block>) -> Block {
        let blocks = bytes.div_ceil(16) as u128;
        match self {
            ChainingState::Keep | ChainingState::DeviceComputed => state,
            ChainingState::Counter => counter_after(Pass::Ctr, &state, blocks),
            ChainingState::Counter32 => counter_after(Pass::Ctr32, &state, blocks),
            ChainingState::CounterLittle32 => counter_after(Pass::CtrLittle32, &state, blocks),
            ChainingState::LastCiphertext => last.unwrap_or(state),
        }
    }
}

/// The counter of a CTR pass after a number of blocks.
pub fn counter_after(pass: Pass, counter: &Block, blocks: u128) -> Block {
    if pass == Pass::CtrLittle32 {
        // RFC 8452, section 4: the first 32 bits, little-endian.
        let mut after = *counter;
        let first = u32::from_le_bytes([counter[0], counter[1], counter[2], counter[3]]);
        after[..4].copy_from_slice(&first.wrapping_add(blocks as u32).to_le_bytes());
        return after;
    }
    let counter = u128::from_be_bytes(*counter);
    let next = counter.wrapping_add(blocks);
    // GCM increments the last 32 bits only (SP 800-38D, 6.2).
    let counting = if pass == Pass::Ctr32 { u128::from(u32::MAX) } else { u128::MAX };
    ((counter & !counting) | (next & counting)).to_be_bytes()
}

#[cfg(test)]
mod tests;
