//! Incremental GCM and CCM: CTR, and a MAC over the associated data and the data. A message is processed in pieces, or as a
//! whole in a batch of messages.

use lockstep_core::chaining::counter_after;
use lockstep_core::data::{Data, HostData, Span};
use lockstep_core::gcm::lengths_block;
use lockstep_core::wiping::wipe;
use lockstep_core::work::Pass;
use lockstep_core::{Block, Error, Key};
use zeroize::Zeroizing;

use super::{Mac, MacExecutor, StreamState};
use crate::absorb::{self, Side};
use crate::composed::{Pair, State};
use crate::executor::Executor;
use crate::message::Direction;
use crate::run_pass;

/// Data are encrypted and authenticated in pieces of this size, so that a piece stays in the first-level cache between the two
/// steps.
const PIECE: usize = 16 * 1024;

/// The state of a message of GCM or CCM. The order of the calls is: associated data, [`pad`](CtrMac::pad), data, tag.
#[derive(Clone)]
pub struct CtrMac {
    /// The state of CTR, with the pass `Ctr32` for GCM, and `Ctr` for CCM.
    keystream: StreamState,
    mac: Mac,
    /// The counter block whose encryption masks the tag. In GCM, this block may be secret.
    first: Block,
}

impl CtrMac {
    /// Starts a message of GCM. `first` is the counter block that is derived from the nonce.
    pub fn gcm(first: Zeroizing<Block>) -> CtrMac {
        let keystream = StreamState::new(Pass::Ctr32, counter_after(Pass::Ctr32, &first, 1));
        CtrMac { keystream, mac: Mac::new(Pass::Ghash, [0; 16]), first: *first }
    }

    /// Starts a message of CCM with a nonce of 7 to 13 bytes. The caller must then call [`CtrMac::ccm_header`].
    #[inline]
    pub fn ccm(nonce: &[u8]) -> CtrMac {
        let mut first = [0; 16];
        // Counter block 0 masks the tag, so the data start with counter block 1 (SP 800-38C, A.3).
        first[0] = (14 - nonce.len()) as u8;
        first[1..=nonce.len()].copy_from_slice(nonce);
        let second = (u128::from_be_bytes(first) + 1).to_be_bytes();
        let keystream = StreamState::new(Pass::Ctr, second);
        CtrMac { keystream, mac: Mac::new(Pass::CbcMac, [0; 16]), first }
    }

    /// Returns the input of CCM's MAC that precedes the associated data, in a buffer, and the number of its bytes (SP 800-38C,
    /// A.2.1 and A.2.2). This input consists of the first block and the encoded length of the associated data. The first block
    /// differs from counter block 0 in the flags of the first byte and in the length at the end.
    pub(crate) fn ccm_prefix(&self, tag_len: usize, aad: u64, data: u64) -> ([u8; 26], usize) {
        let mut header = [0; 26];
        let (block, length) = header.split_at_mut(16);
        let flags = u128::from(aad > 0) << 6 | ((tag_len as u128 - 2) / 2) << 3;
        let first = u128::from_be_bytes(self.first) | flags << 120 | u128::from(data);
        block.copy_from_slice(&first.to_be_bytes());
        let bytes = if aad == 0 {
            0
        } else if aad < 0xff00 {
            length[..2].copy_from_slice(&(aad as u16).to_be_bytes());
            2
        } else if let Ok(aad) = u32::try_from(aad) {
            length[..2].copy_from_slice(&[0xff, 0xfe]);
            length[2..6].copy_from_slice(&aad.to_be_bytes());
            6
        } else {
            length[..2].copy_from_slice(&[0xff, 0xff]);
            length[2..].copy_from_slice(&aad.to_be_bytes());
            10
        };
        (header, 16 + bytes)
    }

    /// Adds the nonce and the lengths of a message of CCM to the MAC. The caller must have checked the lengths.
    ///
    /// # Errors
    /// Errors of the executor.
    #[inline]
    pub fn ccm_header<E: MacExecutor>(
        &mut self,
        executor: &mut E,
        tag_len: usize,
        aad_len: u64,
        data_len: u64,
    ) -> Result<(), E::Error> {
        let (header, len) = self.ccm_prefix(tag_len, aad_len, data_len);
        self.mac.update(executor, &header[..len], false)
    }

    /// Adds associated data.
    ///
    /// # Errors
    /// Errors of the executor.
    pub fn aad<E: MacExecutor>(&mut self, executor: &mut E, aad: &[u8]) -> Result<(), E::Error> {
        self.mac.update(executor, aad, false)
    }

    /// Ends the associated data, or the data, by padding them to whole blocks in the MAC.
    ///
    /// # Errors
    /// Errors of the executor.
    pub fn pad<E: MacExecutor>(&mut self, executor: &mut E) -> Result<(), E::Error> {
        self.mac.pad(executor)
    }

    /// Encrypts or decrypts the next bytes. The MAC of GCM is computed over the ciphertext, and the MAC of CCM over the
    /// plaintext.
    ///
    /// # Errors
    /// Errors of the executor.
    pub fn apply<E: MacExecutor>(
        &mut self,
        executor: &mut E,
        direction: Direction,
        mut data: HostData<'_>,
    ) -> Result<(), E::Error> {
        let mac_of_input = (self.keystream.pass == Pass::Ctr32) == (direction == Direction::Decrypt);
        while data.len() > PIECE && !executor.takes_whole(data.len()) {
            let (piece, rest) = data.split_at(PIECE);
            self.apply_piece(executor, mac_of_input, piece)?;
            data = rest;
        }
        self.apply_piece(executor, mac_of_input, data)
    }

    fn apply_piece<E: MacExecutor>(
        &mut self,
        executor: &mut E,
        mac_of_input: bool,
        mut piece: HostData<'_>,
    ) -> Result<(), E::Error> {
        if piece.is_empty() {
            return Ok(());
        }
        if mac_of_input {
            self.mac.update(executor, piece.input(), false)?;
        }
        self.keystream.apply(executor, piece.reborrow().into_span())?;
        if !mac_of_input {
            self.mac.update(executor, piece.output(), false)?;
        }
        Ok(())
    }

    /// Ends the data and returns the tag. `lengths` is the block of lengths that GCM hashes last; `None` for CCM.
    ///
    /// # Errors
    /// Errors of the executor.
    pub fn tag<E: MacExecutor>(
        &mut self,
        executor: &mut E,
        lengths: Option<&Block>,
    ) -> Result<Zeroizing<Block>, E::Error> {
        self.mac.pad(executor)?;
        if let Some(lengths) = lengths {
            self.mac.update(executor, lengths, false)?;
        }
        let mut tag = Zeroizing::new(*self.mac.state());
        executor.run(self.keystream.pass, &mut self.first, Span::in_place(&mut *tag))?;
        Ok(tag)
    }
}

impl Drop for CtrMac {
    #[inline(always)]
    fn drop(&mut self) {
        wipe(&mut self.first);
    }
}

/// A whole message in a batch. Its associated data have already been added.
impl State for CtrMac {
    fn parts<'s>(&'s mut self, key: &'s Key) -> (&'s Key, &'s mut Block, &'s Block) {
        (key, self.keystream.state_mut(), self.mac.state())
    }

    fn compute_tags(
        executor: &dyn Executor,
        pairs: &mut [Pair<'_, '_, Self>],
        text: Side,
    ) -> Result<(), Error> {
        let Some(Pair { state: CtrMac { keystream, mac, .. }, .. }) = pairs.first() else { return Ok(()) };
        let (ctr, mac) = (keystream.pass, mac.pass);
        let data = pairs.iter_mut().map(|Pair { message, state }| {
            let lengths = lengths_block(message.aad.len() as u64, message.data.len() as u64);
            let last = (ctr == Pass::Ctr32).then_some(lengths);
            (message.key, &mut state.mac.state, &mut message.data, last)
        });
        absorb::data(executor, mac, text, data)?;
        let masks = pairs.iter_mut().map(|Pair { message, state }| {
            (message.key, &mut state.first, Data::in_place(&mut state.mac.state))
        });
        run_pass(executor, ctr, masks)
    }
}
