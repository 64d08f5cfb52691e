//! Serial passes. Each block of a message depends on the block before it, so each QPU processes 32 messages at once.
//!
//! All serial passes use the program of CBC encryption, which computes `y[i] = E(x[i] ^ y[i - 1])` with `y[-1] = 0`. The
//! chaining state is XORed with the first block. For OFB, the input is zeros. The ciphertext of CFB is `c[i] = p[i] ^ E(c[i -
//! 1])`. With the input `x[i] = p[i - 1]`, the program computes `y[i] = E(c[i - 1])`. The ciphertext of PCBC is `c[i] = E(p[i]
//! ^ p[i - 1] ^ c[i - 1])`. With the input `x[i] = p[i] ^ p[i - 1]`, the program computes `y[i] = c[i]`.

use std::ops::Range;

use lockstep_core::data::HostData;
use lockstep_core::key::Key;
use lockstep_core::work::{Pass, Segment};
use lockstep_core::{Block, Error};
use zeroize::Zeroizing;

use super::Call;
use crate::kernels::bitslice::UNIT;
use crate::launch::{Job, Launch, MAX_RUN_BYTES};

/// The number of messages in a unit.
const LANES: usize = UNIT / 16;

/// A message of a serial pass, and its state during the pass.
struct Chain<'s> {
    host: HostData<'s>,
    state: &'s mut Block,
}

impl Chain<'_> {
    /// The number of blocks of the message. The last block may be partial.
    fn blocks(&self) -> usize {
        self.host.input().len().div_ceil(16)
    }

    /// The bytes of a block.
    fn range(&self, block: usize) -> Range<usize> {
        16 * block..(16 * block + 16).min(self.host.input().len())
    }

    /// A block of the message. A partial block is filled up with zeros.
    fn block(&self, number: usize) -> Block {
        let mut block = [0; 16];
        let part = &self.host.input()[self.range(number)];
        block[..part.len()].copy_from_slice(part);
        block
    }

    /// Returns the input of the program for block `number`, in a run that starts with block `first`.
    fn input(&self, pass: Pass, number: usize, first: usize) -> Block {
        let mut block = match pass {
            Pass::Ofb => [0; 16],
            Pass::Cfb128Encrypt if number == first => [0; 16],
            Pass::Cfb128Encrypt => self.block(number - 1),
            _ => self.block(number),
        };
        if number == first {
            xor(&mut block, self.state);
        } else if pass == Pass::PcbcEncrypt {
            xor(&mut block, &self.block(number - 1));
        }
        block
    }

    /// Processes the program's output for a block.
    fn take(&mut self, pass: Pass, number: usize, output: &Block) {
        let range = self.range(number);
        let mut result = *output;
        if matches!(pass, Pass::Cfb128Encrypt | Pass::Ofb) {
            xor(&mut result, &self.block(number));
        }
        // The next chaining state of OFB is the keystream. That of PCBC is the XOR of plaintext and ciphertext. In all other
        // passes, it is the result.
        *self.state = if pass == Pass::Ofb { *output } else { result };
        if pass == Pass::PcbcEncrypt {
            xor(self.state, &self.block(number));
        }
        if pass != Pass::CbcMac {
            let len = range.len();
            self.host.output()[range].copy_from_slice(&result[..len]);
        }
    }
}

pub(super) fn xor(block: &mut Block, other: &Block) {
    block.iter_mut().zip(other).for_each(|(byte, other)| *byte ^= other);
}

/// Executes a serial pass. Successive segments with the same key are processed together.
pub(super) fn run(
    call: &mut Call<'_>,
    launch: Launch,
    pass: Pass,
    segments: &mut [Segment<'_>],
) -> Result<(), Error> {
    for group in segments.chunk_by_mut(|a, b| std::ptr::eq(a.key, b.key)) {
        for batch in group.chunks_mut(LANES * usize::from(call.qpus)) {
            let key = batch[0].key;
            let mut chains = Vec::with_capacity(batch.len());
            for segment in batch {
                let host = segment.data.reborrow().into_host(call.device)?;
                chains.push(Chain { host, state: segment.state });
            }
            run_batch(call, launch, pass, key, &mut chains)?;
        }
    }
    Ok(())
}

/// Executes a pass over at most as many messages as there are lanes.
fn run_batch(
    call: &mut Call<'_>,
    launch: Launch,
    pass: Pass,
    key: &Key,
    chains: &mut [Chain<'_>],
) -> Result<(), Error> {
    let qpus = chains.len().div_ceil(LANES);
    // Number of blocks of each message in a run.
    let most = MAX_RUN_BYTES / UNIT / qpus;
    let longest = chains.iter().map(Chain::blocks).max().unwrap_or(0);
    for first in (0..longest).step_by(most) {
        let blocks = first..(first + most).min(longest);
        // The memory contains the first blocks of all messages, then the second blocks of all messages, and so on. Each QPU
        // processes one unit of each of these groups.
        let step = qpus * UNIT;
        let mut input = Zeroizing::new(vec![0; step * blocks.len()]);
        for (lane, chain) in chains.iter().enumerate() {
            for number in blocks.start..blocks.end.min(chain.blocks()) {
                let place = step * (number - first) + 16 * lane;
                input[place..place + 16].copy_from_slice(&chain.input(pass, number, first));
            }
        }
        let job = Job { keys: key.round_keys(), counter: [0; 16], input: &input, other: &[] };
        let output = call.run(launch, &job, qpus as u8)?;
        for (lane, chain) in chains.iter_mut().enumerate() {
            for number in blocks.start..blocks.end.min(chain.blocks()) {
                let place = step * (number - first) + 16 * lane;
                let block = output[place..].first_chunk().expect("a whole block");
                chain.take(pass, number, block);
                call.done.bytes += chain.range(number).len() as u64;
            }
        }
    }
    Ok(())
}
