//! CCM (SP 800-38C), and its TLS 1.2 records (RFC 6655). All data of a message must be passed in one update, because
//! the length of the data is authenticated before the data.

use lockstep::aead::{Aead, Direction, HostData, Status, Tag};
use lockstep::hazmat::mode::gcm::settle;
use lockstep::hazmat::mode::incremental::{BlockIo, CtrMac};
use zeroize::Zeroize;

use super::aead::{AeadContext, AeadMode, IvState, TLS_EXPLICIT_IV, TLS_FIXED_IV, record_parts};
use crate::instance::Instance;
use crate::key::{ContextKey, PlannedKey};
use crate::libcrypto::{Buffers, GetParam, Parameters, SetParam, list};
use crate::reason::{Outcome, Reason};

/// The state of CCM. The state of the IV is `Missing` or `Fresh`: a nonce is used up by the data, which come in one piece.
#[derive(Default)]
pub(crate) struct CcmState {
    key: Option<ContextKey>,
    /// The current message.
    message: Option<Message>,
}

/// A message whose length is known.
#[derive(Clone)]
struct Message {
    len: usize,
    /// The nonce: the first `nonce_len` bytes.
    nonce: [u8; 13],
    nonce_len: usize,
    tag_len: usize,
    /// The state after the additional data; `None` before.
    state: Option<CtrMac>,
}

impl AeadMode for CcmState {
    const AEAD: Aead = Aead::Ccm;
    const GETTABLE: Parameters = list!(KEYLEN IVLEN TAGLEN IV UPDATED_IV TAG TLS_AAD_PAD);
    const SETTABLE: Parameters = list!(IVLEN TAG TLS_AAD TLS_IV_FIXED);
    const IV_LEN: usize = 7;
    const IV_LEN_COMES_FIRST: bool = true;
    const TAG_LEN: usize = 12;

    fn duplicate(&self) -> Outcome<Self> {
        let key = self.key.as_ref().map(ContextKey::duplicate).transpose()?;
        Ok(CcmState { key, message: self.message.clone() })
    }

    fn has_key(&self) -> bool {
        self.key.is_some()
    }

    fn set_key(&mut self, instance: &Instance, key: &[u8]) -> Outcome<()> {
        self.key = None;
        self.key = Some(ContextKey::new(PlannedKey::new(&instance.resources, key))?);
        Ok(())
    }

    fn after_init(context: &mut AeadContext<Self>, key_is_new: bool, iv_is_new: bool) {
        if iv_is_new {
            // A tag that was set for this message is kept; the tag of the previous encryption is discarded.
            context.tag_is_set &= !context.common.encrypts;
            context.tag_is_made = false;
        }
        if key_is_new || iv_is_new {
            context.mode.message = None;
        }
    }

    fn update(context: &mut AeadContext<Self>, data: Buffers<'_>) -> Outcome<usize> {
        context.mode.key.as_ref().ok_or(Reason::NoKey)?;
        // The additional data are valid for one record: a second record with the same sequence number would reuse the nonce.
        if let Some(aad) = context.record_aad.take() {
            return context.record(&aad, data);
        }
        // A null input is a call of EVP_EncryptFinal or EVP_DecryptFinal, which returns no bytes.
        if data.has_no_input() { Ok(0) } else { context.run(data) }
    }

    fn aad(context: &mut AeadContext<Self>, aad: &[u8]) -> Outcome<()> {
        context.check_key_and_iv()?;
        if aad.is_empty() {
            return Ok(());
        }
        let CcmState { key: Some(key), message } = &mut context.mode else { return Err(Reason::NoKey) };
        let message = message.as_mut().ok_or(Reason::NoLength)?;
        if message.state.is_some() {
            return Err(Reason::SecondAad);
        }
        message.absorb_aad(key, aad)
    }

    fn set_message_len(context: &mut AeadContext<Self>, len: usize) -> Outcome<()> {
        context.check_key_and_iv()?;
        context.mode.message = Some(context.begin(len)?);
        Ok(())
    }

    fn finish(context: &mut AeadContext<Self>, output: Buffers<'_>) -> Outcome<usize> {
        context.mode.key.as_ref().ok_or(Reason::NoKey)?;
        // A message without data may have had no update, so it is processed here.
        if context.iv_state == IvState::Fresh && context.record_aad.is_none() {
            context.run(output)?;
        }
        Ok(0)
    }

    fn set_tag(context: &mut AeadContext<Self>, param: &SetParam<'_>) -> Outcome<()> {
        let (tag, len) = param.octets_or_len()?;
        if !Self::AEAD.row().tags.contains(len) {
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

    fn get(context: &mut AeadContext<Self>, name: &[u8], param: &mut GetParam<'_>) -> Outcome<()> {
        match name {
            b"tlsaadpad" => param.number(context.record_growth as u64),
            b"tag" => {
                context.get_common(name, param)?;
                // The tag can be read once, as in OpenSSL. Reading it ends the message.
                context.tag_is_made = false;
                context.mode.message = None;
                Ok(())
            }
            _ => context.get_common(name, param),
        }
    }

    fn set(context: &mut AeadContext<Self>, param: &SetParam<'_>) -> Outcome<()> {
        match param.name() {
            b"tlsaad" => context.set_record_aad(param.octets()?, context.tag_len),
            b"tlsivfixed" => {
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

impl AeadContext<CcmState> {
    fn check_key_and_iv(&self) -> Outcome<()> {
        match self.iv_state {
            _ if !self.mode.has_key() => Err(Reason::NoKey),
            IvState::Fresh => Ok(()),
            _ => Err(Reason::NoIv),
        }
    }

    /// Starts a message of this length.
    fn begin(&self, len: usize) -> Outcome<Message> {
        let bits = 8 * (15 - self.iv_len);
        if bits < 64 && (len as u64) >> bits != 0 {
            return Err(Reason::MessageTooLong);
        }
        let mut nonce = [0; 13];
        nonce[..self.iv_len].copy_from_slice(&self.iv[..self.iv_len]);
        Ok(Message { len, nonce, nonce_len: self.iv_len, tag_len: self.tag_len, state: None })
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
        let encrypts = self.common.encrypts;
        if self.mode.message.is_none() {
            self.mode.message = Some(self.begin(len)?);
        }
        let CcmState { key: Some(key), message: Some(message) } = &mut self.mode else {
            return Err(Reason::NoKey);
        };
        if message.len != len {
            return Err(Reason::WrongLength);
        }
        // The nonce must not be used again, even if this call fails.
        self.iv_state = IvState::Missing;
        let tag = match encrypts {
            true => Tag::Write(&mut self.tag),
            false => Tag::Expect(&self.tag[..self.tag_len]),
        };
        let outcome = message.run(key, data.whole()?.into_host(), tag);
        self.mode.message = None;
        self.tag_is_set = false;
        self.tag_is_made |= encrypts && outcome.is_ok();
        outcome.map(|()| len)
    }

    /// Processes a TLS 1.2 record in place: explicit IV, data, tag.
    fn record(&mut self, aad: &[u8], mut data: Buffers<'_>) -> Outcome<usize> {
        let len = data.len();
        let (explicit_iv, text, tag) = record_parts(&mut data, self.tag_len)?;
        if self.common.encrypts {
            // The explicit IV is the sequence number, which is unique per record.
            explicit_iv.copy_from_slice(&aad[..TLS_EXPLICIT_IV]);
        }
        if self.iv_len != TLS_FIXED_IV + TLS_EXPLICIT_IV {
            return Err(Reason::TlsIv);
        }
        self.iv[TLS_FIXED_IV..self.iv_len].copy_from_slice(explicit_iv);
        let mut message = self.begin(text.len())?;
        let key = self.mode.key.as_ref().ok_or(Reason::NoKey)?;
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
    /// Starts CCM, and adds all additional data.
    fn absorb_aad(&mut self, mut key: &ContextKey, aad: &[u8]) -> Outcome<()> {
        let nonce = &self.nonce[..self.nonce_len];
        let state = self.state.insert(CtrMac::ccm(nonce));
        state.ccm_header(&mut key, nonce, self.tag_len, aad.len() as u64, self.len as u64)?;
        state.aad(&mut key, aad)?;
        state.pad(&mut key)
    }

    /// Processes all data: encrypts them if the tag is to be written. The output is zeroed if the tag is wrong or a device fails.
    fn run(&mut self, mut key: &ContextKey, mut data: HostData<'_>, mut tag: Tag<'_>) -> Outcome<()> {
        if self.state.is_none() {
            self.absorb_aad(key, &[])?;
        }
        let state = self.state.as_mut().ok_or(Reason::Internal)?;
        let direction = if let Tag::Write(_) = tag { Direction::Encrypt } else { Direction::Decrypt };
        let processed = state.apply(&mut key, direction, data.reborrow());
        let computed = processed.and_then(|()| state.tag(&mut key, None));
        let outcome = computed.and_then(|computed| match settle(&mut tag, &computed) {
            Status::Done => Ok(()),
            _ => Err(Reason::TagMismatch),
        });
        outcome.inspect_err(|_| data.output().zeroize())
    }
}
