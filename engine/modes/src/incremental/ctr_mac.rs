//! Incremental GCM and CCM: CTR, and a MAC over the associated data and the data. A message is processed in pieces, or as a
//! whole in a batch of messages.

use lockstep_core::chaining::counter_after;
use lockstep_core::data::{Data, HostData, Span};
use lockstep_core::gcm::lengths_block;
use lockstep_core::wiping::wipe;
use lockstep_core::work::Pass;
use lockstep_core::{Block, Error, Key};
use zeroize::Zeroizing;

use super::mac::number;
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
    pub(crate) mac: Mac,
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
        // Counter block 0 masks the tag, so the data start with counter block 1 (SP 800-38C, A.3).
        let len_bytes = 15 - nonce.len();
        let first = (len_bytes as u128 - 1) << 120 | number(nonce) << (8 * len_bytes);
        let keystream = StreamState::new(Pass::Ctr, (first + 1).to_be_bytes());
        CtrMac { keystream, mac: Mac::new(Pass::CbcMac, [0; 16]), first: first.to_be_bytes() }
    }

    /// Returns the input of CCM's MAC that precedes the associated data: the first block, and the encoded length of the associated data (SP
    /// 800-38C, A.2.1 and A.2.2), which is the last bytes of a block; their number is the last result. The first block differs from counter
    /// block 0 in the flags of the first byte and in the length at the end.
    #[inline]
    pub(crate) fn ccm_prefix(&self, tag_len: usize, aad: u64, data: u64) -> (Block, Block, usize) {
        let flags = u128::from(aad > 0) << 6 | ((tag_len as u128 - 2) / 2) << 3;
        let first = u128::from_be_bytes(self.first) | flags << 120 | u128::from(data);
        let (marker, bytes) = match aad {
            0 => (0, 0),
            1..0xff00 => (0, 2),
            0xff00..=0xffff_ffff => (0xfffe << 32, 6),
            _ => (0xffff << 64, 10),
        };
        (first.to_be_bytes(), (marker | u128::from(aad)).to_be_bytes(), bytes)
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
        let (first, length, bytes) = self.ccm_prefix(tag_len, aad_len, data_len);
        (self.mac.state, self.mac.len) = (first, 16);
        self.mac.update(executor, &length[16 - bytes..])
    }

    /// Adds associated data.
    ///
    /// # Errors
    /// Errors of the executor.
    pub fn aad<E: MacExecutor>(&mut self, executor: &mut E, aad: &[u8]) -> Result<(), E::Error> {
        self.mac.update(executor, aad)
    }

    /// Ends the associated data by padding them to whole blocks in the MAC.
    #[inline]
    pub fn pad(&mut self) {
        self.mac.pad();
    }

    /// Encrypts or decrypts all data of a message of CCM, and returns its tag of 16 bytes: in one call of the executor, if
    /// [`MacExecutor::ccm`] supports the length.
    ///
    /// # Errors
    /// Errors of the executor.
    #[inline]
    pub fn ccm_data<E: MacExecutor>(
        &mut self,
        executor: &mut E,
        direction: Direction,
        mut data: HostData<'_>,
    ) -> Result<&Block, E::Error> {
        let encrypts = direction == Direction::Encrypt;
        if executor.ccm(encrypts, &mut self.mac.state, &self.first, data.reborrow().into_span()) {
            return Ok(&self.mac.state);
        }
        // A device is efficient only in large calls, so the data are not divided into pieces.
        self.apply_piece(executor, encrypts, data)?;
        self.tag(executor, None)
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
        while data.len() > PIECE {
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
            self.mac.update(executor, piece.input())?;
        }
        self.keystream.apply(executor, piece.reborrow().into_span())?;
        if !mac_of_input {
            self.mac.update(executor, piece.output())?;
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
    ) -> Result<&Block, E::Error> {
        self.mac.pad();
        if let Some(lengths) = lengths {
            self.mac.update(executor, lengths)?;
        }
        self.mac.flush(executor)?;
        executor.run(self.keystream.pass, &mut self.first, Span::in_place(&mut self.mac.state))?;
        Ok(&self.mac.state)
    }
}

impl Drop for CtrMac {
    #[inline(always)]
    fn drop(&mut self) {
        wipe(&mut self.first);
    }
}

/// A whole message in a batch. Its associated data have already been added, and no block is held back.
impl State for CtrMac {
    fn parts<'s>(&'s mut self, key: &'s Key) -> (&'s Key, &'s mut Block, &'s Block) {
        (key, self.keystream.state_mut(), &self.mac.state)
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
