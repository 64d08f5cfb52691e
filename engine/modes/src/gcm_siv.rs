//! AES-GCM-SIV (RFC 8452): the tag is the encrypted POLYVAL hash of the plaintext. The tag, with one bit set, is also the
//! first counter block.
//!
//! If a nonce is used twice with the same key, an observer learns only whether the two messages are equal. The nonces should
//! nevertheless differ: the limits in section 6 of the RFC are for distinct nonces. The tag depends on the whole plaintext, so
//! a message cannot be encrypted in pieces, and can only be authenticated after it has been decrypted.

use zeroize::Zeroizing;

use crate::absorb::{self, Side};
use crate::composed::{self, Pair};
use crate::executor::Executor;
use crate::message::Direction;
use crate::{encrypt_blocks, run_fused, run_pass};
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Pass, Tag};
use lockstep_core::{Block, Key, Result};

pub use lockstep_core::gcm::MAX_GCM_SIV as MAX_DATA;

/// The fused AEADs of GCM-SIV: sealing and opening.
pub(crate) const FUSED: [FusedAead; 2] = [FusedAead::GcmSivSeal, FusedAead::GcmSivOpen];

/// Seals or opens messages. Their keys must have the same size, and their lengths must have been checked. Keys have 16 or 32
/// bytes, as RFC 8452 defines, or 24 bytes, as in OpenSSL. Uses the fused AEAD if the executor supports it, otherwise passes.
///
/// # Errors
/// Errors of devices.
pub fn run(executor: &dyn Executor, direction: Direction, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    if run_fused(executor, FUSED[direction as usize], messages)? {
        return Ok(());
    }
    let states = State::derive(executor, messages)?;
    composed::run(executor, direction, Pass::CtrLittle32, Side::Input, messages, states)
}

/// The keys of a message, and its tag.
struct State {
    /// The message-authentication key, which is a key of POLYVAL.
    authentication: Key,
    /// The message-encryption key.
    encryption: Key,
    /// First the hash, later the tag.
    tag: Zeroizing<Block>,
    /// The counter block, which is derived from the tag.
    counter: Zeroizing<Block>,
}

impl State {
    /// Derives the keys of all messages (RFC 8452, section 4). All keys have the same size.
    fn derive(executor: &dyn Executor, messages: &[AeadMessage<'_>]) -> Result<Vec<State>> {
        let Some(size) = messages.first().map(|message| message.key.size()) else { return Ok(Vec::new()) };
        // Only half of each block is used. The first two blocks provide the authentication key, and all later blocks the
        // encryption key.
        let count = 2 + size.bytes() / 8;
        let mut blocks = Zeroizing::new(vec![[0; 16]; count * messages.len()]);
        for (message, blocks) in messages.iter().zip(blocks.chunks_mut(count)) {
            for (number, block) in (0u32..).zip(blocks) {
                block[..4].copy_from_slice(&number.to_le_bytes());
                block[4..].copy_from_slice(message.nonce);
            }
        }
        encrypt_blocks(executor, messages.iter().map(|message| message.key), &mut blocks)?;
        let states = messages.iter().zip(blocks.chunks(count)).map(|(message, blocks)| {
            let mut bytes = Zeroizing::new([0; 48]);
            for (half, block) in bytes.chunks_mut(8).zip(blocks) {
                half.copy_from_slice(&block[..8]);
            }
            let counter = if let Tag::Expect(tag) = &message.tag { counter_of(tag) } else { [0; 16] };
            Ok(State {
                authentication: Key::new(&bytes[..16])?,
                encryption: Key::new(&bytes[16..8 * count])?,
                tag: Zeroizing::new([0; 16]),
                counter: Zeroizing::new(counter),
            })
        });
        states.collect()
    }
}

/// Returns the first counter block of a message with this tag of 16 bytes.
fn counter_of(tag: &[u8]) -> Block {
    let mut counter = Block::default();
    counter.copy_from_slice(tag);
    counter[15] |= 0x80;
    counter
}

/// The tag is computed from the plaintext, and the first counter block from the tag (RFC 8452, section 4).
impl composed::State for State {
    fn parts<'s>(&'s mut self, _: &'s Key) -> (&'s Key, &'s mut Block, &'s Block) {
        (&self.encryption, &mut self.counter, &self.tag)
    }

    fn compute_tags(executor: &dyn Executor, pairs: &mut [Pair<'_, '_, Self>], text: Side) -> Result<()> {
        for Pair { message, state } in &mut *pairs {
            absorb::bytes(executor, Pass::Polyval, &state.authentication, &mut state.tag, message.aad)?;
        }
        let data = pairs.iter_mut().map(|Pair { message, state }| {
            let bits = |len: usize| u128::from(8 * len as u64);
            let lengths = (bits(message.data.len()) << 64 | bits(message.aad.len())).to_le_bytes();
            (&state.authentication, &mut *state.tag, &mut message.data, Some(lengths))
        });
        absorb::data(executor, Pass::Polyval, text, data)?;
        for Pair { message, state } in &mut *pairs {
            state.tag.iter_mut().zip(message.nonce).for_each(|(byte, nonce)| *byte ^= nonce);
            state.tag[15] &= 0x7f;
        }
        let tags = pairs.iter_mut().map(|Pair { state, .. }| {
            (&state.encryption, &mut *state.counter, Data::in_place(&mut *state.tag))
        });
        run_pass(executor, Pass::EcbEncrypt, tags)?;
        pairs.iter_mut().for_each(|pair| *pair.state.counter = counter_of(&*pair.state.tag));
        Ok(())
    }
}
