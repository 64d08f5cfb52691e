//! EAX (Bellare, Rogaway and Wagner, "The EAX Mode of Operation", FSE 2004): CTR with CMACs of the nonce, the associated data
//! and the ciphertext. The first counter of CTR is the MAC of the nonce. The MACs are serial within a message and parallel
//! across messages.
//!
//! Nonces have any length; 16 random bytes are recommended. Tags have 1 to 16 bytes. A nonce must never be used twice with the
//! same key.

use zeroize::Zeroizing;

use crate::absorb::Side;
use crate::cmac::{self, CmacMessage};
use crate::composed::{self, Pair};
use crate::executor::Executor;
use crate::message::Direction;
use crate::run_pass;
use lockstep_core::data::Data;
use lockstep_core::lengths::ALL_TAGS;
use lockstep_core::ocb::xor;
use lockstep_core::work::{AeadMessage, Pass};
use lockstep_core::{Block, Key, Result};

/// Seals or opens messages. Their keys must have the same size, and their lengths must have been checked.
///
/// # Errors
/// Errors of devices.
pub fn run(executor: &dyn Executor, direction: Direction, messages: &mut [AeadMessage<'_>]) -> Result<()> {
    let states = State::of_all(executor, messages)?;
    composed::run(executor, direction, Pass::Ctr, Side::Output, messages, states)
}

/// Checks the length of the tag of a message.
pub(crate) fn check_message(message: &AeadMessage<'_>) -> Result<()> {
    ALL_TAGS.check_tag("EAX", message.tag.len())
}

/// The block that precedes the nonce (0), the associated data (1) or the ciphertext (2) in the computation of their MAC, which
/// is OMAC^t in the paper.
const fn prefix(number: u8) -> Block {
    (number as u128).to_be_bytes()
}

struct State {
    /// The counter. It starts as the MAC of the nonce.
    counter: Zeroizing<Block>,
    /// First the XOR of the MACs of the nonce and of the associated data; later the tag.
    tag: Zeroizing<Block>,
}

impl State {
    fn of_all(executor: &dyn Executor, messages: &[AeadMessage<'_>]) -> Result<Vec<State>> {
        let nonces = omac(executor, messages, 0, |message| message.nonce)?;
        let aads = omac(executor, messages, 1, |message| message.aad)?;
        let states = nonces.iter().zip(&*aads).map(|(nonce, aad)| {
            let mut tag = Zeroizing::new(*nonce);
            xor(&mut tag, aad);
            State { counter: Zeroizing::new(*nonce), tag }
        });
        Ok(states.collect())
    }
}

/// Computes OMAC^t of one string of each message. The strings are in host memory.
fn omac(
    executor: &dyn Executor,
    messages: &[AeadMessage<'_>],
    number: u8,
    string: for<'m> fn(&'m AeadMessage<'m>) -> &'m [u8],
) -> Result<Zeroizing<Vec<Block>>> {
    let strings: Vec<Vec<u8>> =
        messages.iter().map(|message| [&prefix(number), string(message)].concat()).collect();
    let mut macs = Zeroizing::new(vec![[0; 16]; messages.len()]);
    let parts = messages.iter().zip(&strings).zip(&mut *macs);
    let parts = parts.map(|((message, data), mac)| CmacMessage { key: message.key, data, mac });
    cmac::finish(executor, &mut parts.collect::<Vec<_>>())?;
    Ok(macs)
}

impl composed::State for State {
    fn parts<'s>(&'s mut self, key: &'s Key) -> (&'s Key, &'s mut Block, &'s Block) {
        (key, &mut self.counter, &self.tag)
    }

    fn compute_tags(executor: &dyn Executor, pairs: &mut [Pair<'_, '_, Self>], text: Side) -> Result<()> {
        const PREFIX: Block = prefix(2);
        let mut macs = Zeroizing::new(vec![[0; 16]; pairs.len()]);
        let with_data = pairs.iter().zip(&mut *macs).filter(|(pair, _)| !pair.message.data.is_empty());
        let prefixes = with_data.map(|(pair, mac)| (pair.message.key, mac, Data::read_only(&PREFIX)));
        run_pass(executor, Pass::CbcMac, prefixes)?;
        cmac::of_data(executor, text, pairs, &mut macs, |_, end, len| {
            if len > 0 {
                return len;
            }
            // The ciphertext is empty, so the prefix is the only block and therefore the last block.
            end[..16].copy_from_slice(&PREFIX);
            16
        })?;
        pairs.iter_mut().zip(&*macs).for_each(|(pair, mac)| xor(&mut pair.state.tag, mac));
        Ok(())
    }
}
