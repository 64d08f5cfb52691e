//! Incremental GCM and CCM.

use std::sync::Arc;

use zeroize::Zeroizing;

use crate::executor::Executor;
use crate::incremental::{Keystream, Mac, Planned};
use crate::{Direction, ccm, gcm};
use lockstep_core::data::{HostData, Span};
use lockstep_core::error::{Error, Result};
use lockstep_core::key::{Block, Key};
use lockstep_core::work::{Pass, Status, Tag};

/// Data are encrypted and hashed in pieces of this size, so that they stay in the first-level cache.
const PIECE: usize = 16 * 1024;

/// The common state of both modes.
struct Parts {
    executor: Arc<dyn Executor>,
    direction: Direction,
    key: Key,
    keystream: Keystream,
    mac: Mac,
    /// The counter block that masks the tag.
    first: Zeroizing<Block>,
    aad: u64,
    data: u64,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Aad,
    Data,
    /// A device has failed during a call. The message cannot continue, because keystream could then be used twice.
    Failed,
}

impl Parts {
    /// Runs a step whose failure ends the message.
    fn attempt<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let phase = self.phase;
        if phase == Phase::Failed {
            return Err(Error::Order { what: "this message has failed: start it again" });
        }
        self.phase = Phase::Failed;
        let done = step(self)?;
        self.phase = phase;
        Ok(done)
    }

    /// Adds associated data. `check` checks their total length.
    fn aad(&mut self, aad: &[u8], check: impl FnOnce(u64) -> Result<()>) -> Result<()> {
        if self.phase == Phase::Data {
            return Err(Error::Order { what: "associated data must come before the data" });
        }
        let total = self.aad.saturating_add(aad.len() as u64);
        check(total)?;
        self.attempt(|parts| parts.mac.update(&mut Planned::new(&*parts.executor, &parts.key), aad, false))?;
        self.aad = total;
        Ok(())
    }

    /// Ends the associated data and starts the data.
    fn enter_data(&mut self) -> Result<()> {
        if self.phase == Phase::Aad {
            self.attempt(|parts| parts.mac.pad(&mut Planned::new(&*parts.executor, &parts.key)))?;
            self.phase = Phase::Data;
        }
        Ok(())
    }

    /// Runs CTR before or after the MAC. The MAC of GCM is computed over the ciphertext, and the MAC of CCM over the
    /// plaintext.
    fn update(&mut self, data: HostData<'_>, mac_of_ciphertext: bool) -> Result<()> {
        let total = self.data.saturating_add(data.len() as u64);
        self.attempt(|parts| parts.run(data, mac_of_ciphertext))?;
        self.data = total;
        Ok(())
    }

    fn run(&mut self, mut data: HostData<'_>, mac_of_ciphertext: bool) -> Result<()> {
        let mac_of_input = mac_of_ciphertext == (self.direction == Direction::Decrypt);
        let mut executor = Planned::new(&*self.executor, &self.key);
        while !data.is_empty() {
            let (mut piece, rest) = data.split_at_most(PIECE);
            if mac_of_input {
                self.mac.update(&mut executor, piece.input(), false)?;
            }
            self.keystream.apply(&mut executor, piece.reborrow().into_span())?;
            if !mac_of_input {
                self.mac.update(&mut executor, piece.output(), false)?;
            }
            data = rest;
        }
        Ok(())
    }

    /// Masks the MAC.
    fn tag(&mut self, pass: Pass) -> Result<Zeroizing<Block>> {
        let mut tag = Zeroizing::new(*self.mac.state());
        let mut executor = Planned::new(&*self.executor, &self.key);
        Keystream::new(pass, *self.first).apply(&mut executor, Span::in_place(&mut *tag))?;
        Ok(tag)
    }
}

fn settle(mut tag: Tag<'_>, computed: &Block) -> Result<()> {
    let status = gcm::settle(&mut tag, computed);
    if status == Status::Done { Ok(()) } else { Err(Error::AuthenticationFailed) }
}

/// GCM (SP 800-38D): associated data first, then data, in any split.
pub struct GcmStream(Parts);

impl GcmStream {
    /// Starts a message. Nonces have any length except 0; 12 bytes are recommended.
    ///
    /// # Errors
    /// [`Error::IvLength`], and errors of devices.
    pub fn new(executor: Arc<dyn Executor>, direction: Direction, key: Key, nonce: &[u8]) -> Result<Self> {
        gcm::check(nonce.len(), 16, 0)?;
        let first = gcm::first_counter(&executor, &key, nonce)?;
        Ok(GcmStream(Parts {
            executor,
            direction,
            key,
            keystream: Keystream::new(Pass::Ctr32, *gcm::data_counter(&first)),
            mac: Mac::new(Pass::Ghash, [0; 16]),
            first,
            aad: 0,
            data: 0,
            phase: Phase::Aad,
        }))
    }

    /// Adds associated data.
    ///
    /// # Errors
    /// [`Error::Order`] after the first data, [`Error::TooLong`] beyond 2^61 - 1 bytes, and errors of devices.
    pub fn aad(&mut self, aad: &[u8]) -> Result<()> {
        self.0.aad(aad, gcm::check_aad)
    }

    /// Processes the next bytes; the output has the same length. Decrypted bytes are unauthenticated until
    /// [`GcmStream::verify`].
    ///
    /// # Errors
    /// [`Error::OutputLength`], [`Error::TooLong`] beyond 2^36 - 32 bytes, and errors of devices.
    pub fn update(&mut self, input: &[u8], output: &mut [u8]) -> Result<()> {
        self.update_data(HostData::copy(input, output)?)
    }

    /// Processes the next bytes in place.
    ///
    /// # Errors
    /// The errors of [`GcmStream::update`].
    pub fn update_in_place(&mut self, data: &mut [u8]) -> Result<()> {
        self.update_data(HostData::InPlace(data))
    }

    fn update_data(&mut self, data: HostData<'_>) -> Result<()> {
        gcm::check(12, 16, self.0.data.saturating_add(data.len() as u64))?;
        self.0.enter_data()?;
        self.0.update(data, true)
    }

    /// Ends an encryption, and writes its tag of 4, 8 or 12 to 16 bytes.
    ///
    /// # Errors
    /// [`Error::TagLength`], [`Error::Order`] for a decryption, and errors of devices.
    pub fn finish(self, tag: &mut [u8]) -> Result<()> {
        self.end(Direction::Encrypt, Tag::Write(tag))
    }

    /// Ends a decryption, and compares its tag in constant time.
    ///
    /// # Errors
    /// [`Error::AuthenticationFailed`]: discard the decrypted data. [`Error::TagLength`], [`Error::Order`] for an
    /// encryption, and errors of devices.
    pub fn verify(self, tag: &[u8]) -> Result<()> {
        self.end(Direction::Decrypt, Tag::Expect(tag))
    }

    fn end(mut self, direction: Direction, tag: Tag<'_>) -> Result<()> {
        gcm::check(12, tag.len(), 0)?;
        check_direction(&self.0, direction)?;
        let computed = self.0.attempt(|parts| {
            parts.mac.pad(&mut Planned::new(&*parts.executor, &parts.key))?;
            let lengths = gcm::lengths_block(parts.aad, parts.data);
            parts.mac.update(&mut Planned::new(&*parts.executor, &parts.key), &lengths, false)?;
            parts.tag(Pass::Ctr32)
        })?;
        settle(tag, &computed)
    }
}

/// CCM (SP 800-38C). All lengths must be known at the start.
pub struct CcmStream {
    parts: Parts,
    aad_len: u64,
    data_len: u64,
    tag_len: usize,
}

impl CcmStream {
    /// Starts a message with known lengths of associated data, data, and tag.
    ///
    /// # Errors
    /// [`Error::IvLength`], [`Error::TagLength`], [`Error::TooLong`], and errors of devices.
    pub fn new(
        executor: Arc<dyn Executor>,
        direction: Direction,
        key: Key,
        nonce: &[u8],
        aad_len: u64,
        data_len: u64,
        tag_len: usize,
    ) -> Result<Self> {
        ccm::check(nonce.len(), tag_len, data_len)?;
        let mut mac = Mac::new(Pass::CbcMac, [0; 16]);
        let first = ccm::first_block(nonce, tag_len, aad_len > 0, data_len);
        mac.update(&mut Planned::new(&*executor, &key), &first, false)?;
        if aad_len > 0 {
            let (length, bytes) = ccm::aad_length(aad_len);
            mac.update(&mut Planned::new(&*executor, &key), &length[..bytes], false)?;
        }
        let parts = Parts {
            executor,
            direction,
            key,
            keystream: Keystream::new(Pass::Ctr, ccm::counter_block(nonce, 1)),
            mac,
            first: Zeroizing::new(ccm::counter_block(nonce, 0)),
            aad: 0,
            data: 0,
            phase: Phase::Aad,
        };
        Ok(CcmStream { parts, aad_len, data_len, tag_len })
    }

    /// Adds associated data.
    ///
    /// # Errors
    /// [`Error::Order`] after the first data or beyond the length that was set; the message can then be continued. Errors of
    /// devices; the message cannot be continued.
    pub fn aad(&mut self, aad: &[u8]) -> Result<()> {
        let most = self.aad_len;
        self.parts.aad(aad, |total| {
            if total > most {
                return Err(Error::Order {
                    what: "more associated data than the length that was set for CCM",
                });
            }
            Ok(())
        })
    }

    /// Processes the next bytes; the output has the same length. Decrypted bytes are unauthenticated until
    /// [`CcmStream::verify`].
    ///
    /// # Errors
    /// [`Error::OutputLength`], [`Error::Order`] if the lengths differ from the lengths that were set at the start, and
    /// errors of devices.
    pub fn update(&mut self, input: &[u8], output: &mut [u8]) -> Result<()> {
        self.update_data(HostData::copy(input, output)?)
    }

    /// Processes the next bytes in place.
    ///
    /// # Errors
    /// The errors of [`CcmStream::update`].
    pub fn update_in_place(&mut self, data: &mut [u8]) -> Result<()> {
        self.update_data(HostData::InPlace(data))
    }

    fn update_data(&mut self, data: HostData<'_>) -> Result<()> {
        self.enter_data()?;
        if self.parts.data.saturating_add(data.len() as u64) > self.data_len {
            return Err(Error::Order { what: "more data than the length that was set for CCM" });
        }
        self.parts.update(data, false)
    }

    fn enter_data(&mut self) -> Result<()> {
        if self.parts.aad != self.aad_len {
            return Err(Error::Order { what: "less associated data than the length that was set for CCM" });
        }
        self.parts.enter_data()
    }

    /// Ends an encryption, and writes its tag. `tag` must have the length that was set at the start.
    ///
    /// # Errors
    /// [`Error::TagLength`], [`Error::Order`] if data are missing or for a decryption, and errors of devices.
    pub fn finish(self, tag: &mut [u8]) -> Result<()> {
        self.end(Direction::Encrypt, Tag::Write(tag))
    }

    /// Ends a decryption, and compares its tag in constant time.
    ///
    /// # Errors
    /// [`Error::AuthenticationFailed`]: discard the decrypted data. [`Error::TagLength`], [`Error::Order`], and errors
    /// of devices.
    pub fn verify(self, tag: &[u8]) -> Result<()> {
        self.end(Direction::Decrypt, Tag::Expect(tag))
    }

    fn end(mut self, direction: Direction, tag: Tag<'_>) -> Result<()> {
        if tag.len() != self.tag_len {
            return Err(Error::TagLength {
                mode: "CCM",
                expected: "the length that was set",
                got: tag.len(),
            });
        }
        check_direction(&self.parts, direction)?;
        self.enter_data()?;
        if self.parts.data != self.data_len {
            return Err(Error::Order { what: "less data than the length that was set for CCM" });
        }
        let computed = self.parts.attempt(|parts| {
            parts.mac.pad(&mut Planned::new(&*parts.executor, &parts.key))?;
            parts.tag(Pass::Ctr)
        })?;
        settle(tag, &computed)
    }
}

fn check_direction(parts: &Parts, direction: Direction) -> Result<()> {
    if parts.direction == direction {
        return Ok(());
    }
    Err(Error::Order { what: "an encryption is ended by finish, a decryption by verify" })
}
