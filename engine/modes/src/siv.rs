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
use crate::composed::{self, Authenticated};
use crate::executor::Executor;
use crate::lengths::FULL_TAGS;
use crate::{Direction, run_mode};
use lockstep_core::ocb::{double, xor};
use lockstep_core::work::{AeadMessage, Pass, Tag};
use lockstep_core::{Block, Error, Key, Result};

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
/// [`Error::TagLength`], [`Error::TooLong`] and [`Error::Order`], with all messages unchanged; [`Error::AuthenticationFailed`];
/// errors of devices.
pub(crate) fn run(
    executor: &dyn Executor,
    direction: Direction,
    messages: &mut [AeadMessage<'_>],
    sources: &[Source<'_>],
) -> Result<()> {
    let check = |message: &AeadMessage<'_>| FULL_TAGS.check_tag("SIV", message.tag.len());
    if sources.iter().any(|source| source.strings.len() > MAX_STRINGS) {
        let limit = MAX_STRINGS as u64;
        return Err(Error::TooLong { mode: "SIV", what: "strings of associated data", limit });
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
        composed::run(executor, direction, Pass::Ctr, Authenticated::Plaintext, messages, states)
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

    /// Computes S2V of each message (RFC 5297, section 2.4). The plaintext is the last string of S2V.
    fn compute_tags(
        executor: &dyn Executor,
        messages: &mut [AeadMessage<'_>],
        states: &mut [Self],
        text: Side,
    ) -> Result<()> {
        // D starts as the CMAC of a block of zeros. For each string, D is doubled, and the CMAC of the string is XORed with D.
        let of_zeros = messages.iter().zip(&mut *states);
        let of_zeros = of_zeros.map(|(message, state)| CmacMessage {
            key: message.key,
            data: &[0; 16],
            mac: &mut state.d,
        });
        cmac::part_of_mode(executor, &mut of_zeros.collect::<Vec<_>>())?;
        let longest = states.iter().map(|state| state.source.strings.len()).max().unwrap_or(0);
        for i in 0..longest {
            let mut macs = Zeroizing::new(vec![[0; 16]; messages.len()]);
            let strings =
                messages.iter().zip(&*states).zip(&mut *macs).filter_map(|((message, state), mac)| {
                    Some(CmacMessage { key: message.key, data: state.source.strings.get(i)?, mac })
                });
            cmac::part_of_mode(executor, &mut strings.collect::<Vec<_>>())?;
            for (state, mac) in states.iter_mut().zip(&*macs) {
                if i < state.source.strings.len() {
                    *state.d = double(&state.d);
                    xor(&mut state.d, mac);
                }
            }
        }
        add_plaintext(executor, messages, states, text)
    }
}

/// Makes the last step of S2V: computes the CMAC of the plaintext, with the last 16 bytes of the plaintext masked with D. A
/// plaintext of less than 16 bytes is padded, and masked with the double of D.
fn add_plaintext(
    executor: &dyn Executor,
    messages: &mut [AeadMessage<'_>],
    states: &mut [State<'_>],
    plaintext: Side,
) -> Result<()> {
    let mut ivs = Zeroizing::new(vec![[0; 16]; messages.len()]);
    cmac::of_data(executor, plaintext, messages, &mut ivs, |number, end, len| {
        let d = &mut states[number].d;
        if len < 16 {
            **d = double(d);
            end[len] = 0x80;
        }
        let len = len.max(16);
        end[..len].last_chunk_mut().into_iter().for_each(|last| xor(last, d));
        len
    })?;
    for (state, iv) in states.iter_mut().zip(&*ivs) {
        *state.d = *iv;
        state.set_iv(iv);
    }
    Ok(())
}
