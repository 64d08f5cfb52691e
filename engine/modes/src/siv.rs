//! AES-SIV (RFC 5297): the function S2V computes the synthetic IV from CMACs of the associated data and the plaintext. The
//! first counter of CTR is derived from the synthetic IV.
//!
//! Messages are processed by [`Aead::seal`](crate::Aead::seal) and [`Aead::open`](crate::Aead::open). A key consists of two AES
//! keys: the first half is the key of S2V, and the second half is the key of CTR. A nonce is optional, and is processed as the
//! last string of associated data. Without a nonce, an observer learns which messages are equal. The synthetic IV depends on
//! the whole plaintext, so a message cannot be encrypted in pieces, and it cannot be authenticated before it has been
//! decrypted. CMAC is serial within a message and parallel across messages.

use zeroize::Zeroizing;

use crate::absorb::Side;
use crate::cmac::{self, CmacMessage};
use crate::composed::{self, Pair};
use crate::executor::Executor;
use crate::{Direction, run_mode};
use lockstep_core::lengths::{FULL_TAGS, check_limit};
use lockstep_core::ocb::{double, xor};
use lockstep_core::work::{AeadMessage, Pass, Tag};
use lockstep_core::{Block, Key, Result};

/// The maximum number of strings of associated data of a message (RFC 5297, section 2.6).
pub const MAX_STRINGS: usize = 126;

/// The parts of a message that [`AeadMessage`] does not contain: the key of CTR, and the strings of associated data.
pub(crate) struct Source<'d> {
    pub(crate) ctr: &'d Key,
    pub(crate) strings: Vec<&'d [u8]>,
}

/// Seals or opens messages. The key of each message is its key of S2V. The key of CTR, and the strings of associated data
/// including the nonce, are in the source of the message.
///
/// # Errors
/// [`lockstep_core::Error::TagLength`], [`lockstep_core::Error::TooLong`], [`lockstep_core::Error::Order`] before anything is done;
/// [`lockstep_core::Error::AuthenticationFailed`]; errors of devices.
pub(crate) fn run(
    executor: &dyn Executor,
    direction: Direction,
    messages: &mut [AeadMessage<'_>],
    sources: &[Source<'_>],
) -> Result<()> {
    let check = |message: &AeadMessage<'_>| FULL_TAGS.check_tag("SIV", message.tag.len());
    for source in sources {
        let count = source.strings.len() as u64;
        check_limit("SIV", "strings of associated data", count, MAX_STRINGS as u64)?;
    }
    run_mode(executor, direction, messages, check, |messages| {
        let size = messages.first().map(|message| message.key.size());
        let of_size = sources.iter().filter(|source| Some(source.ctr.size()) == size);
        let mut states: Vec<State<'_>> = of_size.map(State::new).collect();
        for (message, state) in messages.iter().zip(&mut states) {
            if let Tag::Expect(tag) = &message.tag {
                state.set_iv(tag);
            }
        }
        composed::run(executor, direction, Pass::Ctr, Side::Input, messages, states)
    })
}

struct State<'d> {
    source: &'d Source<'d>,
    /// First the value D of S2V, later the synthetic IV.
    d: Zeroizing<Block>,
    counter: Zeroizing<Block>,
}

impl<'d> State<'d> {
    fn new(source: &'d Source<'d>) -> State<'d> {
        State { source, d: Zeroizing::new([0; 16]), counter: Zeroizing::new([0; 16]) }
    }

    /// Sets the first counter, which is derived from the synthetic IV of 16 bytes (RFC 5297, section 2.5).
    fn set_iv(&mut self, iv: &[u8]) {
        self.counter.copy_from_slice(iv);
        // Two bits are cleared so that an implementation may add to the last 32 or 64 bits of the counter without a carry.
        self.counter[8] &= 0x7f;
        self.counter[12] &= 0x7f;
    }
}

impl composed::State for State<'_> {
    fn parts<'s>(&'s mut self, _: &'s Key) -> (&'s Key, &'s mut Block, &'s Block) {
        (self.source.ctr, &mut self.counter, &self.d)
    }

    /// S2V (RFC 5297, section 2.4) of each message, with the plaintext as the last string.
    fn compute_tags(executor: &dyn Executor, pairs: &mut [Pair<'_, '_, Self>], text: Side) -> Result<()> {
        // D starts as the CMAC of a block of zeros. The CMACs of the strings are added to it, each after a doubling.
        let of_zeros = pairs.iter_mut().map(|Pair { message, state }| CmacMessage {
            key: message.key,
            data: &[0; 16],
            mac: &mut state.d,
        });
        cmac::finish(executor, &mut of_zeros.collect::<Vec<_>>())?;
        let longest = pairs.iter().map(|pair| pair.state.source.strings.len()).max().unwrap_or(0);
        for i in 0..longest {
            let mut macs = Zeroizing::new(vec![[0; 16]; pairs.len()]);
            let strings = pairs.iter().zip(&mut *macs).filter_map(|(Pair { message, state }, mac)| {
                Some(CmacMessage { key: message.key, data: state.source.strings.get(i)?, mac })
            });
            cmac::finish(executor, &mut strings.collect::<Vec<_>>())?;
            for (Pair { state, .. }, mac) in pairs.iter_mut().zip(&*macs) {
                if i < state.source.strings.len() {
                    *state.d = double(&state.d);
                    xor(&mut state.d, mac);
                }
            }
        }
        add_plaintext(executor, pairs, text)
    }
}

/// Makes the last step of S2V: computes the CMAC of the plaintext, with the last 16 bytes of the plaintext masked with D. A
/// plaintext of less than 16 bytes is padded, and masked with the double of D.
fn add_plaintext(
    executor: &dyn Executor,
    pairs: &mut [Pair<'_, '_, State<'_>>],
    plaintext: Side,
) -> Result<()> {
    let mut ivs = Zeroizing::new(vec![[0; 16]; pairs.len()]);
    cmac::of_data(executor, plaintext, pairs, &mut ivs, |state, end, len| {
        if len < 16 {
            *state.d = double(&state.d);
            end[len] = 0x80;
        }
        let len = len.max(16);
        end[..len].last_chunk_mut().into_iter().for_each(|last| xor(last, &state.d));
        len
    })?;
    for (Pair { state, .. }, iv) in pairs.iter_mut().zip(&*ivs) {
        *state.d = *iv;
        state.set_iv(iv);
    }
    Ok(())
}
