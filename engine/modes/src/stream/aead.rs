//! Incremental GCM and CCM.

use std::sync::Arc;

use crate::executor::Executor;
use crate::incremental::{CtrMac, Planned};
use crate::{Aead, AeadKey, Direction, ccm, gcm};
use lockstep_core::data::HostData;
use lockstep_core::work::{Status, Tag};
use lockstep_core::{Error, Key, Result};

/// A message of GCM or CCM that is encrypted in pieces.
pub type Sealer = Pieces<true>;

/// A message of GCM or CCM that is decrypted in pieces.
///
/// **The output of [`update`](Pieces::update) is not authenticated. Use no part of it before [`finish`](Opener::finish) has
/// succeeded, and discard it if `finish` fails, because an attacker may have chosen it.**
pub type Opener = Pieces<false>;

/// A message of GCM or CCM in pieces: associated data first, then data, in any split, then the tag. [`Sealer`] or [`Opener`].
pub struct Pieces<const SEALS: bool> {
    executor: Arc<dyn Executor>,
    key: Key,
    state: CtrMac,
    /// The lengths that were set for CCM; `None` in GCM.
    lengths: Option<MessageLengths>,
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

/// The lengths of a message in bytes.
#[derive(Debug, Clone, Copy)]
pub struct MessageLengths {
    /// The length of the associated data.
    pub aad: u64,
    /// The length of the data.
    pub data: u64,
    /// The length of the tag.
    pub tag: usize,
}

impl<const SEALS: bool> Pieces<SEALS> {
    /// Starts a message of the mode of the key: GCM, or CCM, which needs `lengths`.
    ///
    /// # Errors
    /// [`Error::IvLength`], [`Error::TagLength`], [`Error::TooLong`], and errors of devices. [`Error::Order`] for CCM without
    /// lengths, and for modes that process a message in one call.
    pub fn new(
        executor: impl Into<Arc<dyn Executor>>,
        key: &AeadKey,
        nonce: &[u8],
        lengths: Option<MessageLengths>,
    ) -> Result<Self> {
        let (mode, Some(key)) = (key.mode(), key.key()) else { return Err(NOT_IN_PIECES) };
        let executor = executor.into();
        let (state, lengths) = match (mode, lengths) {
            (Aead::Gcm, _) => {
                gcm::check(nonce.len(), 16, 0)?;
                (CtrMac::gcm(gcm::first_counter(&*executor, key, nonce)?), None)
            }
            (Aead::Ccm, Some(MessageLengths { aad, data, tag })) => {
                ccm::check(nonce.len(), tag, data)?;
                let mut state = CtrMac::ccm(nonce);
                state.ccm_header(&mut Planned::new(&*executor, key), tag, aad, data)?;
                (state, lengths)
            }
            (Aead::Ccm, None) => {
                return Err(Error::Order { what: "CCM needs the lengths of a message at its start" });
            }
            _ => return Err(NOT_IN_PIECES),
        };
        Ok(Pieces { executor, key: key.clone(), state, lengths, aad: 0, data: 0, phase: Phase::Aad })
    }

    /// Runs a step. If the step fails, the message cannot be continued.
    fn attempt<T>(&mut self, step: impl FnOnce(&mut CtrMac, &mut Planned<'_>) -> Result<T>) -> Result<T> {
        check_order(self.phase != Phase::Failed, "this message has failed: start it again")?;
        let phase = std::mem::replace(&mut self.phase, Phase::Failed);
        let done = step(&mut self.state, &mut Planned::new(&*self.executor, &self.key))?;
        self.phase = phase;
        Ok(done)
    }

    /// Adds associated data.
    ///
    /// # Errors
    /// [`Error::Order`] if data have already been processed, or if the associated data of CCM exceed the length that was set;
    /// [`Error::TooLong`] if they exceed the limit of GCM, 2^61 - 1 bytes. After these errors, the message can be continued.
    /// After an error of a device, it cannot be continued.
    pub fn aad(&mut self, aad: &[u8]) -> Result<()> {
        check_order(self.phase != Phase::Data, "associated data must come before the data")?;
        let total = self.aad.saturating_add(aad.len() as u64);
        check_aad(self.lengths, total)?;
        self.attempt(|state, executor| state.aad(executor, aad))?;
        self.aad = total;
        Ok(())
    }

    /// Processes the next bytes; the output has the same length.
    ///
    /// **Decrypted bytes are not authenticated. Use no part of them before [`finish`](Opener::finish) has succeeded, and discard
    /// them if `finish` fails, because an attacker may have chosen them.**
    ///
    /// # Errors
    /// [`Error::OutputLength`]; [`Error::TooLong`] if the data exceed the limit of GCM, 2^36 - 32 bytes; [`Error::Order`] if
    /// the lengths differ from the lengths that were set for CCM; errors of devices.
    pub fn update(&mut self, input: &[u8], output: &mut [u8]) -> Result<()> {
        self.update_data(HostData::copy(input, output)?)
    }

    /// Processes the next bytes in place. **Decrypted bytes are not authenticated**: see [`update`](Pieces::update).
    ///
    /// # Errors
    /// The errors of [`update`](Pieces::update).
    pub fn update_in_place(&mut self, data: &mut [u8]) -> Result<()> {
        self.update_data(HostData::InPlace(data))
    }

    fn update_data(&mut self, data: HostData<'_>) -> Result<()> {
        let total = self.data.saturating_add(data.len() as u64);
        check_data(self.lengths, self.aad, total)?;
        self.enter_data();
        let direction = if SEALS { Direction::Encrypt } else { Direction::Decrypt };
        self.attempt(|state, executor| state.apply(executor, direction, data))?;
        self.data = total;
        Ok(())
    }

    /// Ends the associated data and starts the data.
    fn enter_data(&mut self) {
        if self.phase == Phase::Aad {
            self.state.pad();
            self.phase = Phase::Data;
        }
    }

    fn end(mut self, mut tag: Tag<'_>) -> Result<()> {
        check_tag(self.lengths, tag.len())?;
        check_data(self.lengths, self.aad, self.data)?;
        let is_complete = self.lengths.is_none_or(|set| self.data == set.data);
        check_order(is_complete, "less data than the length that was set for CCM")?;
        let lengths = self.lengths.is_none().then(|| gcm::lengths_block(self.aad, self.data));
        self.enter_data();
        let settle = |state: &mut CtrMac, executor: &mut Planned<'_>| {
            state.tag(executor, lengths.as_ref()).map(|computed| gcm::settle(&mut tag, computed))
        };
        if self.attempt(settle)? == Status::Done { Ok(()) } else { Err(Error::AuthenticationFailed) }
    }
}

impl Sealer {
    /// Ends the message, and writes its tag: 4, 8 or 12 to 16 bytes in GCM, the length that was set in CCM.
    ///
    /// # Errors
    /// [`Error::TagLength`]; [`Error::Order`] if data are missing; errors of devices.
    pub fn finish(self, tag: &mut [u8]) -> Result<()> {
        self.end(Tag::Write(tag))
    }
}

impl Opener {
    /// Ends the message, and compares its tag in constant time.
    ///
    /// # Errors
    /// [`Error::AuthenticationFailed`]: **discard the decrypted data, because an attacker may have chosen them**. [`Error::TagLength`]; [`Error::Order`] if data are missing;
    /// errors of devices.
    pub fn finish(self, tag: &[u8]) -> Result<()> {
        self.end(Tag::Expect(tag))
    }
}

const NOT_IN_PIECES: Error = Error::Order { what: "this mode processes a message in one call" };

/// Checks the total length of the associated data.
fn check_aad(lengths: Option<MessageLengths>, total: u64) -> Result<()> {
    let Some(set) = lengths else { return gcm::check_aad(total) };
    check_order(total <= set.aad, "more associated data than the length that was set for CCM")
}

/// Checks the total lengths of the associated data and of the data. Called when the data begin, continue or end.
fn check_data(lengths: Option<MessageLengths>, total_aad: u64, total: u64) -> Result<()> {
    let Some(set) = lengths else { return gcm::check(12, 16, total) };
    check_order(total_aad == set.aad, "less associated data than the length that was set for CCM")?;
    check_order(total <= set.data, "more data than the length that was set for CCM")
}

fn check_tag(lengths: Option<MessageLengths>, got: usize) -> Result<()> {
    match lengths {
        None => gcm::TAGS.check_tag("GCM", got),
        Some(set) if got == set.tag => Ok(()),
        Some(_) => Err(Error::TagLength { mode: "CCM", expected: "the length that was set", got }),
    }
}

pub(super) fn check_order(is_right: bool, what: &'static str) -> Result<()> {
    if is_right { Ok(()) } else { Err(Error::Order { what }) }
}
