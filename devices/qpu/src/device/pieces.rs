//! Passes whose blocks can be processed in parallel. The segments are processed one after the other, in pieces of the size of a
//! run. In PCBC decryption, the QPUs decrypt the blocks. This module then XORs each block with the blocks before it, block
//! after block.

use lockstep_core::chaining::ChainingState;
use lockstep_core::work::{Pass, Segment};
use lockstep_core::{Block, Error};
use zeroize::Zeroizing;

use super::Call;
use super::chains::xor;
use crate::kernels::bitslice::UNIT;
use crate::launch::{Job, Launch, MAX_RUN_BYTES};

/// Executes a pass over a segment.
pub(super) fn run(
    call: &mut Call<'_>,
    launch: Launch,
    pass: Pass,
    segment: &mut Segment<'_>,
) -> Result<(), Error> {
    let keys = segment.key.round_keys();
    let mut host = segment.data.reborrow().into_host(call.device)?;
    let len = host.input().len();
    let rule = ChainingState::of(pass);
    let mut state = Zeroizing::new(*segment.state);
    let mut at = 0;
    while at < len {
        let end = at + piece_bytes(pass, &state, len - at);
        let piece = end - at;
        // The vector is allocated with its full capacity, because growing would leave a copy of the data.
        let mut input = Zeroizing::new(Vec::with_capacity(piece.next_multiple_of(16)));
        input.extend_from_slice(&host.input()[at..end]);
        if pass == Pass::Cfb128Decrypt {
            input.resize(piece.next_multiple_of(16), 0);
        }
        // CBC and CFB decryption also require, for each block of the input, the ciphertext block before it.
        let mut before = Zeroizing::new(Vec::with_capacity(input.len()));
        if matches!(pass, Pass::CbcDecrypt | Pass::Cfb128Decrypt) {
            before.extend_from_slice(&*state);
            before.extend_from_slice(&input[..input.len() - 16]);
        }
        let (blocks, other): (&[u8], &[u8]) = match pass {
            Pass::CbcDecrypt => (&input, &before),
            Pass::Cfb128Decrypt => (&before, &input),
            _ => (&input, &[]),
        };
        let mut output = call.run(
            launch,
            &Job { keys, counter: *state, input: blocks, other },
            qpus_for(launch, piece, call.qpus),
        )?;
        let last = input[..piece].as_chunks::<16>().0.last().copied();
        *state = rule.after(*state, piece, last);
        if pass == Pass::PcbcDecrypt {
            let ciphertext = input.as_chunks::<16>().0;
            for (block, ciphertext) in output.as_chunks_mut::<16>().0.iter_mut().zip(ciphertext) {
                xor(block, &state);
                *state = *block;
                xor(&mut state, ciphertext);
            }
        }
        host.output()[at..end].copy_from_slice(&output[..piece]);
        call.done.bytes += piece as u64;
        at = end;
    }
    *segment.state = *state;
    Ok(())
}

/// Returns the number of QPUs that are used for this number of bytes. Each QPU of the published kernels processes at least one
/// vector, even if there are no blocks for it.
fn qpus_for(launch: Launch, bytes: usize, most: u8) -> u8 {
    let vectors = match launch {
        Launch::Packed { .. } | Launch::PackedFastDecryption => bytes.div_ceil(64),
        Launch::Naive { .. } => bytes.div_ceil(16),
        Launch::Blocks(_) | Launch::Ctr | Launch::PackedTuned { .. } => return most,
    };
    vectors.clamp(1, usize::from(most)) as u8
}

/// Returns the number of bytes of the next run. A run increments only the last 32 bits of a counter, which must not overflow
/// during the run.
fn piece_bytes(pass: Pass, state: &Block, left: usize) -> usize {
    // A run of CTR starts at a multiple of 32 blocks, which may precede the first block of the data.
    let most = left.min(MAX_RUN_BYTES - UNIT);
    if !matches!(pass, Pass::Ctr | Pass::Ctr32) {
        return most;
    }
    let low = u32::from_be_bytes(state[12..].try_into().expect("four bytes"));
    let until_wrap = ((1u64 << 32) - u64::from(low)) * 16;
    until_wrap.min(most as u64) as usize
}
