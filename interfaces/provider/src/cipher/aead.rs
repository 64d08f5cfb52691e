//! Contexts of authenticated encryption. A context contains the key, the IV, and the state of the additional data, the data and
//! the tag.
//!
//! All modes of authenticated encryption share one type of context. The modes differ as they do in OpenSSL's default provider;
//! the constants and functions of [`AeadMode`] define these differences.

use std::sync::Arc;

use lockstep::aead::Aead;
use lockstep::hazmat::inline::Block;
use lockstep::hazmat::mode::incremental::BlockIo;

use super::{Cipher, Common, copy_iv};
use crate::instance::Instance;
use crate::libcrypto::{Buffers, GetParam, Param, Parameters, SetParam};
use crate::reason::{Outcome, Reason};
use crate::resources::Resources;

/// The longest IV, as in OpenSSL.
pub(super) const MAX_IV: usize = 128;

/// Bytes of the additional data of a TLS 1.2 record: sequence number, type, version, length.
pub(super) const TLS_AAD: usize = 13;
/// Bytes of the IV that are sent in a record.
pub(super) const TLS_EXPLICIT_IV: usize = 8;
/// Bytes of the IV that are not sent.
pub(super) const TLS_FIXED_IV: usize = 4;

/// The state of an IV. Except in GCM-SIV, no IV is used for two messages, unless the caller sets it again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IvState {
    /// Not set. Encryption by GCM then generates a random IV.
    Missing,
    /// Set, and not used yet.
    Fresh,
    /// The message has started.
    InUse,
    /// The message has ended.
    Used,
}

/// The rules of a mode. A value of this type contains the settings that are kept when the key is replaced.
pub(crate) trait AeadMode: Copy + Default + Send + Sync {
    /// The expanded key, with the state of the current message.
    type Key: Send + Sync;

    const AEAD: Aead;
    const GETTABLE: Parameters;
    const SETTABLE: Parameters;
    /// True if an IV has no effect.
    const IGNORES_IV: bool = false;
    /// Bytes of the IV if no other IV length is set.
    const IV_LEN: usize = 12;
    /// True if there are parameters for the IV and its length.
    const HAS_IV_PARAMS: bool = true;
    /// True if the length of the IV must be set before the IV.
    const IV_LEN_COMES_FIRST: bool = false;
    /// Bytes of the tag if no other tag length is set.
    const TAG_LEN: usize = 16;
    /// True if a caller may read a part of the tag.
    const TAG_MAY_BE_CUT: bool = false;
    /// True if the parameter for the key length can be set. Only the length of the current key is accepted.
    const CHECKS_KEY_LEN: bool = false;

    fn new_key(instance: &Instance, key: &[u8]) -> Outcome<Self::Key>;

    /// See [`Cipher::duplicate`].
    fn duplicate_key(key: &Self::Key) -> Outcome<impl FnOnce() -> Self::Key>;

    /// Replaces the key in its place, and ends its message. Returns false if this mode cannot replace a key in its place, or if
    /// memory cannot be allocated.
    fn set_key(_old: &mut Self::Key, _instance: &Instance, _key: &[u8]) -> bool {
        false
    }

    /// True if an IV may have this number of bytes.
    fn accepts_iv_len(len: usize) -> bool {
        // A constant, so that the compiler unrolls the comparisons with the ranges.
        const { Self::AEAD.row().nonces }.contains(len)
    }

    /// Called at the end of each successful init.
    fn after_init(context: &mut AeadContext<Self>, iv_is_new: bool);

    /// True if [`AeadMode::duplicate_key`] may leave a part of the message on the stack.
    fn holds_text(_key: &Self::Key) -> bool {
        true
    }

    /// Called if a message starts although no IV has been set. A mode may generate an IV; all other modes return an error.
    fn draw_iv(_context: &mut AeadContext<Self>) -> Outcome<()> {
        Err(Reason::NoIv)
    }

    /// Starts a message with the current IV. Modes that require all data of a message in one update do not call this function.
    fn start(_context: &mut AeadContext<Self>) -> Outcome<()> {
        Ok(())
    }

    fn update(context: &mut AeadContext<Self>, data: Buffers<'_>) -> Outcome<usize>;

    fn aad(context: &mut AeadContext<Self>, aad: &[u8]) -> Outcome<()>;

    /// Sets the length of the message. Most modes ignore the length, because they do not need it in advance.
    fn set_message_len(context: &mut AeadContext<Self>, _len: usize) -> Outcome<()> {
        context.key.as_ref().map(|_| ()).ok_or(Reason::NoKey)
    }

    fn finish(context: &mut AeadContext<Self>, output: Buffers<'_>) -> Outcome<usize>;

    fn one_shot(context: &mut AeadContext<Self>, data: Buffers<'_>) -> Outcome<usize> {
        Self::update(context, data)
    }

    fn get(context: &mut AeadContext<Self>, param: &mut GetParam<'_>) -> Outcome<()> {
        context.get_common(param)
    }

    fn set_tag(context: &mut AeadContext<Self>, param: &SetParam<'_>) -> Outcome<()>;

    /// Returns the new state of the IV after the IV length has changed.
    fn iv_len_changed(_context: &mut AeadContext<Self>) -> IvState {
        IvState::Missing
    }

    /// Sets a parameter that only some modes have.
    fn set(_context: &mut AeadContext<Self>, _param: &SetParam<'_>) -> Outcome<()> {
        Ok(())
    }
}

/// A context of authenticated encryption.
pub(crate) struct AeadContext<M: AeadMode> {
    pub(super) common: Common,
    pub(super) mode: M,
    pub(super) key: Option<M::Key>,
    pub(super) iv: [u8; MAX_IV],
    pub(super) iv_len: usize,
    pub(super) iv_state: IvState,
    /// After encryption, the computed tag. For decryption, the tag to compare with.
    pub(crate) tag: Block,
    pub(super) tag_len: usize,
    /// True if `tag` is the tag to compare with.
    pub(super) tag_is_set: bool,
    /// True if `tag` is the tag of the last encrypted message and no other message has been started.
    pub(super) tag_is_made: bool,
    /// The additional data of the next TLS record.
    pub(super) record_aad: Option<[u8; TLS_AAD]>,
    /// The number of bytes of the tag of the next TLS record.
    pub(super) record_growth: usize,
}

impl<M: AeadMode> Cipher for AeadContext<M> {
    const GETTABLE: Parameters = M::GETTABLE;
    const SETTABLE: Parameters = M::SETTABLE;
    const HAS_SHORT_CALLS: bool = !matches!(M::AEAD, Aead::GcmSiv | Aead::Siv);

    fn new(common: Common) -> Self {
        AeadContext {
            common,
            mode: M::default(),
            key: None,
            iv: [0; MAX_IV],
            iv_len: M::IV_LEN,
            iv_state: IvState::Missing,
            tag: [0; 16],
            tag_len: M::TAG_LEN,
            tag_is_set: false,
            tag_is_made: false,
            record_aad: None,
            record_growth: 0,
        }
    }

    fn common(&self) -> &Common {
        &self.common
    }

    #[inline(always)]
    fn duplicate(&self) -> Outcome<impl FnOnce() -> Self> {
        let key = self.key.as_ref().map(M::duplicate_key).transpose()?;
        Ok(|| AeadContext { common: self.common.clone(), key: key.map(|key| key()), ..*self })
    }

    #[inline(always)]
    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        self.common.observe_init(key, iv);
        let iv = iv.filter(|_| !M::IGNORES_IV);
        if let Some(iv) = iv
            && (!M::accepts_iv_len(iv.len()) || M::IV_LEN_COMES_FIRST && iv.len() != self.iv_len)
        {
            return Err(Reason::IvLength);
        }
        if let Some(key) = key {
            let instance = &self.common.instance;
            if !self.key.as_mut().is_some_and(|old| M::set_key(old, instance, key)) {
                // This reference to the old key is dropped before the new key is expanded. The last reference wipes the key.
                self.key = None;
                self.key = Some(M::new_key(instance, key)?);
            }
        }
        if self.iv_state == IvState::InUse && (key.is_some() || self.common.encrypts != encrypts) {
            // A new key or another direction ends a message. The IV of the ended message is not used again, because the new key
            // may be the same.
            self.iv_state = IvState::Used;
        }
        self.common.encrypts = encrypts;
        if let Some(iv) = iv {
            self.iv_len = iv.len();
            copy_iv::<12>(iv, &mut self.iv);
            self.iv_state = IvState::Fresh;
        }
        M::after_init(self, iv.is_some());
        Ok(())
    }

    fn holds_text(&self) -> bool {
        self.key.as_ref().is_some_and(M::holds_text)
    }

    #[inline(always)]
    fn update(&mut self, data: Buffers<'_>) -> Outcome<usize> {
        M::update(self, data)
    }

    #[inline(always)]
    fn aad(&mut self, aad: &[u8]) -> Outcome<()> {
        M::aad(self, aad)
    }

    fn set_message_len(&mut self, len: usize) -> Outcome<()> {
        M::set_message_len(self, len)
    }

    #[inline(always)]
    fn finish(&mut self, output: Buffers<'_>) -> Outcome<usize> {
        M::finish(self, output)
    }

    fn one_shot(&mut self, data: Buffers<'_>) -> Outcome<usize> {
        M::one_shot(self, data)
    }

    #[inline(always)]
    fn get(&mut self, param: &mut GetParam<'_>) -> Outcome<()> {
        M::get(self, param)
    }

    #[inline(always)]
    fn set(&mut self, param: &SetParam<'_>) -> Outcome<()> {
        match param.name() {
            Param::KeyLen if M::CHECKS_KEY_LEN => self.common.set_key_len(param)?,
            Param::Tag => M::set_tag(self, param)?,
            Param::IvLen if M::HAS_IV_PARAMS => {
                let len = param.number::<usize>()?;
                if !M::accepts_iv_len(len) {
                    return Err(Reason::IvLength);
                }
                if len != self.iv_len {
                    self.iv_len = len;
                    self.iv_state = M::iv_len_changed(self);
                }
            }
            _ => M::set(self, param)?,
        }
        Ok(())
    }
}

impl<M: AeadMode> AeadContext<M> {
    /// Returns the key, which contains the state of the current message, and the resources. Starts the message if it has not
    /// started.
    #[inline(always)]
    pub(super) fn started(&mut self) -> Outcome<(&mut M::Key, &Arc<Resources>)> {
        if self.iv_state != IvState::InUse {
            self.begin()?;
        }
        Ok((self.key.as_mut().ok_or(Reason::NoKey)?, &self.common.instance.resources))
    }

    #[inline(never)]
    fn begin(&mut self) -> Outcome<()> {
        match self.iv_state {
            _ if self.key.is_none() => return Err(Reason::NoKey),
            IvState::Missing => M::draw_iv(self)?,
            IvState::Used => return Err(Reason::Finished),
            IvState::Fresh | IvState::InUse => {}
        }
        M::start(self)
    }

    /// Gets a parameter that most modes have.
    pub(super) fn get_common(&mut self, param: &mut GetParam<'_>) -> Outcome<()> {
        match param.name() {
            Param::KeyLen => param.number(self.common.algorithm.key_len as u64),
            Param::IvLen if M::HAS_IV_PARAMS => param.number(self.iv_len as u64),
            Param::TagLen => param.number(self.tag_len as u64),
            Param::Iv | Param::UpdatedIv if M::HAS_IV_PARAMS => {
                if param.room().is_some_and(|room| room < self.iv_len) {
                    return Err(Reason::IvLength);
                }
                param.octets(&self.iv[..self.iv_len])
            }
            Param::Tag => self.get_tag(param),
            _ => Ok(()),
        }
    }

    /// Gets the tag of the last encrypted message.
    #[inline(always)]
    pub(super) fn get_tag(&self, param: &mut GetParam<'_>) -> Outcome<()> {
        match (M::TAG_MAY_BE_CUT, param.room()) {
            _ if !self.common.encrypts || !self.tag_is_made => Err(Reason::NoTag),
            (true, None) => param.octets(&self.tag),
            (true, Some(room @ 1..=16)) => param.octets(&self.tag[..room]),
            (false, Some(room)) if room == self.tag_len => param.octets(&self.tag[..room]),
            _ => Err(Reason::TagLength),
        }
    }

    /// Refuses to decrypt without a tag to compare with.
    pub(super) fn check_tag_is_set(&self) -> Outcome<()> {
        if self.common.encrypts || self.tag_is_set { Ok(()) } else { Err(Reason::TagNotSet) }
    }

    /// Sets the tag to compare with.
    pub(super) fn expect_tag(&mut self, tag: &[u8]) {
        self.tag[..tag.len()].copy_from_slice(tag);
        (self.tag_is_set, self.tag_is_made) = (true, false);
    }

    /// Sets the additional data of a record. Their length field contains the length of the whole record. It is replaced by the
    /// length of the plaintext, which is the length that is authenticated. `tag` is the number of bytes of the tag.
    pub(super) fn set_record_aad(&mut self, aad: &[u8], tag: usize) -> Outcome<()> {
        let mut aad: [u8; TLS_AAD] = aad.try_into().map_err(|_| Reason::TlsAad)?;
        let len = usize::from(u16::from_be_bytes([aad[11], aad[12]]));
        let extra = if self.common.encrypts { TLS_EXPLICIT_IV } else { TLS_EXPLICIT_IV + tag };
        let len = len.checked_sub(extra).ok_or(Reason::TlsAad)? as u16;
        aad[11..].copy_from_slice(&len.to_be_bytes());
        (self.record_aad, self.record_growth) = (Some(aad), tag);
        Ok(())
    }
}

/// Splits a TLS 1.2 record, which is processed in place, into explicit IV, data and tag.
pub(super) fn record_parts<'d>(
    data: &'d mut Buffers<'_>,
    tag_len: usize,
) -> Outcome<(&'d mut [u8], &'d mut [u8], &'d mut [u8])> {
    let len = data.len();
    let inner = len.checked_sub(TLS_EXPLICIT_IV + tag_len).ok_or(Reason::TlsRecord)?;
    let (explicit_iv, rest) = data.as_in_place(len)?.split_at_mut(TLS_EXPLICIT_IV);
    let (text, tag) = rest.split_at_mut(inner);
    Ok((explicit_iv, text, tag))
}
