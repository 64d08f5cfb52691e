//! Counter mode: SP 800-38A, section 6.5, with two increment functions.

use crate::{Aes, Block};

/// CTR encryption of data of any length; decryption is the same operation (SP 800-38A, section 6.5).
///
/// The counter block is one big-endian integer of 128 bits and wraps modulo 2^128 (the standard incrementing
/// function of appendix B.1, with m = 128). `counter` is T_1, the first counter block.
pub fn apply(aes: &Aes, counter: &Block, data: &[u8]) -> Vec<u8> {
    apply_with(aes, counter, data, |t| u128::from_be_bytes(t).wrapping_add(1).to_be_bytes())
}

/// CTR with GCM's increment function: GCTR (SP 800-38D, section 6.5, algorithm 3).
///
/// Only the last four bytes are incremented, as a big-endian integer that wraps modulo 2^32: inc_32 (SP 800-38D, section
/// 6.2). `counter` is ICB, the initial counter block.
pub fn apply32(aes: &Aes, counter: &Block, data: &[u8]) -> Vec<u8> {
    apply_with(aes, counter, data, inc32)
}

/// inc_32 (SP 800-38D, section 6.2).
pub(crate) fn inc32(mut t: Block) -> Block {
    let (_, last) = t.split_last_chunk_mut::<4>().expect("a block has 16 bytes");
    *last = u32::from_be_bytes(*last).wrapping_add(1).to_be_bytes();
    t
}

fn apply_with(aes: &Aes, counter: &Block, data: &[u8], increment: impl Fn(Block) -> Block) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut t = *counter;
    for chunk in data.chunks(16) {
        let o = aes.encrypt(t);
        out.extend(chunk.iter().zip(o).map(|(d, o)| d ^ o));
        t = increment(t);
    }
    out
}
