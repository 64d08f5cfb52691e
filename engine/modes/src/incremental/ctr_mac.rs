//! GCM and CCM: CTR, and a MAC over the associated data and the data.

use lockstep_core::Block;
use lockstep_core::data::{HostData, Span};
use lockstep_core::work::Pass;
use zeroize::Zeroizing;

use super::{Keystream, Mac, MacExecutor};
use crate::message::Direction;
use crate::{ccm, gcm};

/// Data are encrypted and hashed in pieces of this size, so that they stay in the first-level cache.
const PIECE: usize = 16 * 1024;

/// The state of a message of GCM or CCM: associated data, [`pad`](CtrMac::pad), data, tag.
#[derive(Clone)]
pub struct CtrMac {
    keystream: Keystream,
    mac: Mac,
    /// The counter block that masks the tag, and the pass that encrypts it.
    mask: (Pass, Zeroizing<Block>),
}

impl CtrMac {
    /// A message of GCM. `first` is the counter block that is made from the nonce.
    pub fn gcm(first: Zeroizing<Block>) -> CtrMac {
        let keystream = Keystream::new(Pass::Ctr32, *gcm::data_counter(&first));
        CtrMac { keystream, mac: Mac::new(Pass::Ghash, [0; 16]), mask: (Pass::Ctr32, first) }
    }

    /// A message of CCM with a nonce of 7 to 13 bytes. [`CtrMac::ccm_header`] must follow.
    pub fn ccm(nonce: &[u8]) -> CtrMac {
        let keystream = Keystream::new(Pass::Ctr, ccm::counter_block(nonce, 1));
        let first = Zeroizing::new(ccm::counter_block(nonce, 0));
        CtrMac { keystream, mac: Mac::new(Pass::CbcMac, [0; 16]), mask: (Pass::Ctr, first) }
    }

    /// Adds the nonce and the lengths of a message of CCM to the MAC. The caller has checked them.
    ///
    /// # Errors
    /// Errors of the executor.
    pub fn ccm_header<E: MacExecutor>(
        &mut self,
        executor: &mut E,
        nonce: &[u8],
        tag_len: usize,
        aad_len: u64,
        data_len: u64,
    ) -> Result<(), E::Error> {
        self.mac.update(executor, &ccm::first_block(nonce, tag_len, aad_len > 0, data_len), false)?;
        if aad_len > 0 {
            let (length, bytes) = ccm::aad_length(aad_len);
            self.mac.update(executor, &length[..bytes], false)?;
        }
        Ok(())
    }

    /// Adds associated data.
    ///
    /// # Errors
    /// Errors of the executor.
    pub fn aad<E: MacExecutor>(&mut self, executor: &mut E, aad: &[u8]) -> Result<(), E::Error> {
        self.mac.update(executor, aad, false)
    }

    /// Ends the associated data, or the data.
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
        let mac_of_input = (self.mask.0 == Pass::Ctr32) == (direction == Direction::Decrypt);
        while !data.is_empty() {
            let at = data.len().min(PIECE);
            let (mut piece, rest) = data.split_at(at);
            if mac_of_input {
                self.mac.update(executor, piece.input(), false)?;
            }
            self.keystream.apply(executor, piece.reborrow().into_span())?;
            if !mac_of_input {
                self.mac.update(executor, piece.output(), false)?;
            }
            data = rest;
        }
        Ok(())
    }

    /// Ends the data and returns the tag. `lengths` is the last block of GCM's hash.
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
        Keystream::new(self.mask.0, *self.mask.1).apply(executor, Span::in_place(&mut *tag))?;
        Ok(tag)
    }
}
