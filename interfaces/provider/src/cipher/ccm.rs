//! CCM (SP 800-38C), and its TLS 1.2 records (RFC 6655). All data of a message must be passed in one update, because
//! the length of the data is authenticated before the data.

use std::sync::Arc;

use lockstep::aead::{Aead, Direction, HostData, Status, Tag};
use lockstep::hazmat::mode::gcm::settle;
use lockstep::hazmat::mode::incremental::{BlockIo, CtrMac};
use zeroize::Zeroize;

use super::aead::{AeadContext, AeadMode, IvState, TLS_EXPLICIT_IV, TLS_FIXED_IV, record_parts};
use crate::instance::Instance;
use crate::key::{ContextKey, Runner};
use crate::libcrypto::{Buffers, GetParam, Param, Parameters, SetParam, list};
use crate::reason::{Outcome, Reason};
use crate::resources::Resources;

/// The rules of CCM. The state of the IV is only ever `Missing` or `Fresh`, because all data come in one update and this update
/// uses up the nonce.
#[derive(Clone, Copy, Default)]
pub(crate) struct CcmMode;

pub(crate) struct CcmKey {
    key: ContextKey,
    /// The current message.
    message: Option<Message>,
}

/// A message whose length is known.
#[derive(Clone)]
struct Message {
    len: usize,
    tag_len: usize,
    /// True once the additional data have been processed, or the empty additional data if there are none.
    has_aad: bool,
    state: CtrMac,
}

impl AeadMode for CcmMode {
    type Key = CcmKey;

    const AEAD: Aead = Aead::Ccm;
    const GETTABLE: Parameters = list!(KeyLen IvLen TagLen Iv UpdatedIv Tag TlsAadPad);
    const SETTABLE: Parameters = list!(IvLen Tag TlsAad TlsIvFixed);
    const IV_LEN: usize = 7;
    const IV_LEN_COMES_FIRST: bool = true;
    const TAG_LEN: usize = 12;

    fn new_key(instance: &Instance, key: &[u8]) -> Outcome<CcmKey> {
        Ok(CcmKey { key: ContextKey::new(&instance.resources, key, false)?, message: None })
    }

    fn set_key(old: &mut CcmKey, _instance: &Instance, key: &[u8]) -> bool {
        old.message = None;
        old.key.set(key, false)
    }

    fn holds_text(key: &CcmKey) -> bool {
        key.message.is_some()
    }

    fn duplicate_key(key: &CcmKey) -> Outcome<impl FnOnce() -> CcmKey> {
        Ok(|| CcmKey { key: key.key.clone(), message: key.message.clone() })
    }

    fn after_init(context: &mut AeadContext<Self>, iv_is_new: bool) {
        if iv_is_new {
            // The tag of the previous encryption is discarded. A tag that was set for the decryption of this message is kept.
            context.tag_is_set &= !context.common.encrypts;
            context.tag_is_made = false;
            context.end_message();
        }
    }

    fn update(context: &mut AeadContext<Self>, data: Buffers<'_>) -> Outcome<usize> {
        context.key.as_ref().ok_or(Reason::NoKey)?;
        // The additional data are valid for one record: a second record with the same sequence number would reuse the nonce.
        if let Some(aad) = context.record_aad.take() {
            return context.record(&aad, data);
        }
        // As in the default provider, an update with a null input is a final call, which returns no bytes.
        if data.has_no_input() { Ok(0) } else { context.run(data) }
    }

    fn aad(context: &mut AeadContext<Self>, aad: &[u8]) -> Outcome<()> {
        let (CcmKey { key, message }, resources) = context.key_with_iv()?;
        if aad.is_empty() {
            return Ok(());
        }
        let message = message.as_mut().ok_or(Reason::NoLength)?;
        if message.has_aad {
            return Err(Reason::SecondAad);
        }
        message.absorb_aad(key.with(resources), aad)
    }

    fn set_message_len(context: &mut AeadContext<Self>, len: usize) -> Outcome<()> {
        context.key_with_iv()?;
        context.check_len(len)?;
        let Some(key) = &mut context.key else { return Err(Reason::NoKey) };
        // The old message is dropped first. Otherwise it would have to be kept until the new message is complete, so the new
        // message could not be constructed in its place.
        key.message = None;
        key.message = Some(Message::new(&context.iv[..context.iv_len], len, context.tag_len));
        Ok(())
    }

    fn finish(context: &mut AeadContext<Self>, output: Buffers<'_>) -> Outcome<usize> {
        context.key.as_ref().ok_or(Reason::NoKey)?;
        // If a message has no data, the program may have made no update. The empty message is therefore processed here.
        if context.iv_state == IvState::Fresh && context.record_aad.is_none() {
            context.run(output)?;
        }
        Ok(0)
    }

    fn set_tag(context: &mut AeadContext<Self>, param: &SetParam<'_>) -> Outcome<()> {
        let (tag, len) = param.octets_or_len()?;
        if !const { Self::AEAD.row().tags }.contains(len) {
            return Err(Reason::TagLength);
        }
        if let Some(tag) = tag {
            if context.common.encrypts {
                return Err(Reason::TagNotNeeded);
            }
            context.expect_tag(tag);
        }
        context.tag_len = len;
        Ok(())
    }

    #[inline(always)]
    fn get(context: &mut AeadContext<Self>, param: &mut GetParam<'_>) -> Outcome<()> {
        match param.name() {
            Param::TlsAadPad => param.number(context.record_growth as u64),
            Param::Tag => {
                context.get_common(param)?;
                // The tag can be read once, as in OpenSSL. Reading it ends the message.
                context.tag_is_made = false;
                context.end_message();
                Ok(())
            }
            _ => context.get_common(param),
        }
    }

    fn set(context: &mut AeadContext<Self>, param: &SetParam<'_>) -> Outcome<()> {
        match param.name() {
            Param::TlsAad => context.set_record_aad(param.octets()?, context.tag_len),
            Param::TlsIvFixed => {
                let fixed = param.octets()?;
                if fixed.len() != TLS_FIXED_IV {
                    return Err(Reason::IvLength);
                }
                context.iv[..TLS_FIXED_IV].copy_from_slice(fixed);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl AeadContext<CcmMode> {
    fn key_with_iv(&mut self) -> Outcome<(&mut CcmKey, &Arc<Resources>)> {
        let key = self.key.as_mut().ok_or(Reason::NoKey)?;
        if self.iv_state != IvState::Fresh {
            return Err(Reason::NoIv);
        }
        Ok((key, &self.common.instance.resources))
    }

    /// Discards the current message.
    fn end_message(&mut self) {
        self.key.iter_mut().for_each(|key| key.message = None);
    }

    /// Checks the length of a message. In CCM, the length field and the IV together have 15 bytes, so the length of the IV
    /// limits the length of the message.
    fn check_len(&self, len: usize) -> Outcome<()> {
        let bits = 8 * (15 - self.iv_len);
        if bits < 64 && (len as u64) >> bits != 0 { Err(Reason::MessageTooLong) } else { Ok(()) }
    }

    /// Processes all data of a message.
    fn run(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let len = data.len();
        if self.iv_state != IvState::Fresh {
            return Err(Reason::NoIv);
        }
        if data.room() < len {
            return Err(Reason::OutputTooSmall);
        }
        self.check_tag_is_set()?;
        let fits = self.check_len(len);
        let Some(CcmKey { key, message }) = &mut self.key else { return Err(Reason::NoKey) };
        let mut new = None;
        let message = match message {
            Some(message) if message.len != len => return Err(Reason::WrongLength),
            Some(message) => message,
            None => fits.map(|()| new.insert(Message::new(&self.iv[..self.iv_len], len, self.tag_len)))?,
        };
        // The nonce must not be used again, even if this call fails.
        self.iv_state = IvState::Missing;
        let encrypts = self.common.encrypts;
        let tag = if encrypts { Tag::Write(&mut self.tag) } else { Tag::Expect(&self.tag[..self.tag_len]) };
        let key = key.with(&self.common.instance.resources);
        let outcome = message.run(key, data.whole()?.into_host(), tag);
        self.end_message();
        self.tag_is_set = false;
        self.tag_is_made |= encrypts && outcome.is_ok();
        outcome.map(|()| len)
    }

    /// Processes a TLS 1.2 record in place: explicit IV, data, tag.
    fn record(&mut self, aad: &[u8], mut data: Buffers<'_>) -> Outcome<usize> {
        let len = data.len();
        let (explicit_iv, text, tag) = record_parts(&mut data, self.tag_len)?;
        if self.common.encrypts {
            // The explicit IV is the sequence number, which is different in each record.
            explicit_iv.copy_from_slice(&aad[..TLS_EXPLICIT_IV]);
        }
        if self.iv_len != TLS_FIXED_IV + TLS_EXPLICIT_IV {
            return Err(Reason::TlsIv);
        }
        self.iv[TLS_FIXED_IV..self.iv_len].copy_from_slice(explicit_iv);
        self.check_len(text.len())?;
        let mut message = Message::new(&self.iv[..self.iv_len], text.len(), self.tag_len);
        let CcmKey { key, .. } = self.key.as_ref().ok_or(Reason::NoKey)?;
        let key = key.with(&self.common.instance.resources);
        message.absorb_aad(key, aad)?;
        let (tag, len) = match self.common.encrypts {
            true => (Tag::Write(tag), len),
            false => (Tag::Expect(tag), text.len()),
        };
        message.run(key, HostData::InPlace(text), tag)?;
        Ok(len)
    }
}

impl Message {
    #[inline(always)]
    fn new(iv: &[u8], len: usize, tag_len: usize) -> Message {
        Message { len, tag_len, has_aad: false, state: CtrMac::ccm(iv) }
    }

    /// Adds all additional data.
    fn absorb_aad(&mut self, mut key: Runner<'_>, aad: &[u8]) -> Outcome<()> {
        self.has_aad = true;
        self.state.ccm_header(&mut key, self.tag_len, aad.len() as u64, self.len as u64)?;
        self.state.aad(&mut key, aad)?;
        self.state.pad();
        Ok(())
    }

    /// Encrypts all data if the tag is to be written; otherwise decrypts them. The output is zeroed if the tag is wrong or a
    /// device fails.
    fn run(&mut self, mut key: Runner<'_>, mut data: HostData<'_>, mut tag: Tag<'_>) -> Outcome<()> {
        if !self.has_aad {
            self.absorb_aad(key, &[])?;
        }
        let direction = if let Tag::Write(_) = tag { Direction::Encrypt } else { Direction::Decrypt };
        let computed = self.state.ccm_data(&mut key, direction, data.reborrow());
        let outcome = computed.and_then(|computed| match settle(&mut tag, computed) {
            Status::Done => Ok(()),
            _ => Err(Reason::TagMismatch),
        });
        outcome.inspect_err(|_| data.output().zeroize())
    }
}
