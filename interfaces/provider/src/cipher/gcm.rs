//! GCM (SP 800-38D), and its TLS 1.2 records (RFC 5288).

use lockstep::aead::Aead;
use lockstep::hazmat::inline::{InlineGcm, Span};
use lockstep::hazmat::mode::incremental::BlockIo;
use lockstep::hazmat::work::Pass;
use zeroize::Zeroize;

use super::aead::{AeadContext, AeadMode, IvState, MAX_IV, TLS_EXPLICIT_IV, TLS_FIXED_IV, record_parts};
use crate::ahead::KeystreamAhead;
use crate::instance::Instance;
use crate::key::ContextKey;
use crate::libcrypto::{Buffers, GetParam, Param, Parameters, SetParam, list};
use crate::reason::{Outcome, Reason};
use crate::system::object::{self, Object};
use crate::system::stack::run_and_wipe;

const TLS_TAG: usize = 16;

/// The number of the message under one key before which all powers of H are computed.
const MANY_MESSAGES: u32 = 256;

/// The rules of GCM, and the origin of the current IV.
#[derive(Clone, Copy, Default)]
pub(crate) struct GcmMode {
    /// True if a message was started with the current IV.
    iv_is_used: bool,
    /// True if a part of the IV was set for decryption. A message that was encrypted earlier may have used the same IV.
    iv_is_received: bool,
    /// True if the IV was generated at random.
    iv_is_random: bool,
    /// True if the IVs of records consist of a fixed part and a counter.
    pub(super) iv_counts: bool,
}

/// A computation of the CTR part of GCM that is separate from GHASH: by a named device, or ahead.
struct SeparateCtr {
    /// The same key, expanded a second time, because this computation needs round keys in another form than [`InlineGcm`].
    key: ContextKey,
    keystream: KeystreamAhead,
}

pub(crate) struct GcmKey {
    gcm: InlineGcm,
    /// `None` if no device is named and no keystream is computed ahead, as in most contexts. It is in memory of its own, so that these
    /// contexts have no unused memory for it.
    ctr: Option<Box<Object<SeparateCtr>>>,
    /// Number of messages under this key. A copy begins with [`MANY_MESSAGES`], because it has all powers of H.
    messages: u32,
}

impl GcmKey {
    /// Makes the separate computation of CTR, if the settings require it.
    #[inline(always)]
    fn new_ctr(instance: &Instance, key: &[u8]) -> Outcome<Option<Box<Object<SeparateCtr>>>> {
        let is_separate = instance.keystream_pool.is_some() || instance.resources.device_is_named;
        is_separate.then(|| GcmKey::ctr_with(ContextKey::new(&instance.resources, key, false)?)).transpose()
    }

    fn ctr_with(key: ContextKey) -> Outcome<Box<Object<SeparateCtr>>> {
        object::allocate(|| SeparateCtr { key, keystream: KeystreamAhead::new(Pass::Ctr32) })
    }

    /// Ends the message: the keystream computed for it is dropped.
    fn stop(&mut self) {
        self.ctr.iter_mut().for_each(|ctr| ctr.0.keystream.stop());
    }
}

impl AeadMode for GcmMode {
    type Key = GcmKey;

    const AEAD: Aead = Aead::Gcm;
    const GETTABLE: Parameters = list!(KeyLen IvLen TagLen Iv UpdatedIv Tag TlsAadPad TlsIvGen IvGenerated);
    const SETTABLE: Parameters = list!(IvLen Tag TlsAad TlsIvFixed TlsIvInv);
    const TAG_MAY_BE_CUT: bool = true;

    #[inline(always)]
    fn new_key(instance: &Instance, key: &[u8]) -> Outcome<GcmKey> {
        let gcm = InlineGcm::new(instance.resources.kernel()?, key).ok_or(Reason::OutOfMemory)?;
        Ok(GcmKey { gcm, ctr: GcmKey::new_ctr(instance, key)?, messages: 0 })
    }

    #[inline(always)]
    fn duplicate_key(key: &GcmKey) -> Outcome<impl FnOnce() -> GcmKey> {
        let gcm = key.gcm.duplicate().ok_or(Reason::OutOfMemory)?;
        // Keystream is not copied: the copy of the context computes its own keystream when needed.
        let ctr = key.ctr.as_ref().map(|ctr| GcmKey::ctr_with(ctr.0.key.clone())).transpose()?;
        Ok(|| GcmKey { gcm, ctr, messages: MANY_MESSAGES })
    }

    fn set_key(GcmKey { gcm, ctr, messages }: &mut GcmKey, instance: &Instance, key: &[u8]) -> bool {
        (*ctr, *messages) = (None, 0);
        gcm.set_key(key) && GcmKey::new_ctr(instance, key).map(|new| *ctr = new).is_ok()
    }

    /// OpenSSL's limit applies, which is smaller than the limit of GCM.
    fn accepts_iv_len(len: usize) -> bool {
        (1..=MAX_IV).contains(&len)
    }

    #[inline(always)]
    fn after_init(context: &mut AeadContext<Self>, iv_is_new: bool) {
        if iv_is_new {
            context.iv_is_fresh();
        } else if context.common.encrypts && context.mode.iv_is_received {
            context.iv_state = IvState::Used;
            context.mode.iv_counts = false;
        }
    }

    /// False: the state of the message is copied from heap to heap, not through the stack.
    fn holds_text(_key: &GcmKey) -> bool {
        false
    }

    /// Generates a random IV (SP 800-38D, 8.2.2), which must have at least 96 bits.
    fn draw_iv(context: &mut AeadContext<Self>) -> Outcome<()> {
        if !context.common.encrypts || context.record_aad.is_some() || context.iv_len < 12 {
            return Err(Reason::NoIv);
        }
        getrandom::fill(&mut context.iv[..context.iv_len]).map_err(|_| Reason::Random)?;
        context.iv_is_fresh();
        context.mode.iv_is_random = true;
        Ok(())
    }

    #[inline(always)]
    fn start(context: &mut AeadContext<Self>) -> Outcome<()> {
        let key = context.key.as_mut().ok_or(Reason::NoKey)?;
        key.messages = key.messages.saturating_add(1);
        if key.messages == MANY_MESSAGES {
            // With all powers, messages of 1 KiB take less time.
            run_and_wipe(context.common.instance.resources.leaves_keys(), || key.gcm.compute_all_powers());
        }
        if !key.gcm.start(context.common.encrypts, &context.iv[..context.iv_len]) {
            return Err(Reason::IvLength);
        }
        key.stop();
        context.iv_state = IvState::InUse;
        context.mode.iv_is_used = true;
        context.tag_is_made = false;
        Ok(())
    }

    #[inline(always)]
    fn update(context: &mut AeadContext<Self>, mut data: Buffers<'_>) -> Outcome<usize> {
        if context.record_aad.is_some() {
            return context.record(data);
        }
        let len = data.len();
        if len == 0 {
            return Ok(0);
        }
        if data.room() < len {
            return Err(Reason::OutputTooSmall);
        }
        context.started()?;
        context.process(data.whole()?).map(|()| len)
    }

    fn aad(context: &mut AeadContext<Self>, aad: &[u8]) -> Outcome<()> {
        if aad.is_empty() {
            return Ok(());
        }
        if context.record_aad.is_some() {
            return Err(Reason::NotInPlace);
        }
        if context.started()?.0.gcm.aad(aad) { Ok(()) } else { Err(Reason::AadAfterData) }
    }

    /// Accepts any length, because GCM does not need the length in advance.
    fn set_message_len(_context: &mut AeadContext<Self>, _len: usize) -> Outcome<()> {
        Ok(())
    }

    #[inline(always)]
    fn finish(context: &mut AeadContext<Self>, _output: Buffers<'_>) -> Outcome<usize> {
        if context.record_aad.take().is_some() {
            context.iv_state = IvState::Used;
            return Err(Reason::NotInPlace);
        }
        context.started()?;
        context.check_tag_is_set()?;
        let key = context.key.as_mut().ok_or(Reason::NoKey)?;
        key.stop();
        // The message has ended, even if the tag is wrong.
        context.iv_state = IvState::Used;
        if context.common.encrypts {
            if !key.gcm.finish_seal_into(&mut context.tag) {
                return Err(Reason::Internal);
            }
            context.tag_len = 16;
            // As in the default provider, a later decryption compares its tag with this tag, until another tag is set.
            (context.tag_is_set, context.tag_is_made) = (true, true);
        } else if !key.gcm.finish_open(&context.tag[..context.tag_len]) {
            return Err(Reason::TagMismatch);
        }
        Ok(0)
    }

    fn set_tag(context: &mut AeadContext<Self>, param: &SetParam<'_>) -> Outcome<()> {
        let tag = param.octets()?;
        match tag.len() {
            17.. => return Err(Reason::TagLength),
            _ if context.common.encrypts => return Err(Reason::TagNotNeeded),
            0 => return Err(Reason::TagEmpty),
            len => context.tag_len = len,
        }
        context.expect_tag(tag);
        Ok(())
    }

    fn iv_len_changed(context: &mut AeadContext<Self>) -> IvState {
        context.mode.iv_counts = false;
        if context.iv_state == IvState::Missing { IvState::Missing } else { IvState::Used }
    }

    #[inline(always)]
    fn get(context: &mut AeadContext<Self>, param: &mut GetParam<'_>) -> Outcome<()> {
        match param.name() {
            // Usual programs request nothing else for each message.
            Param::Tag => context.get_tag(param),
            Param::Iv | Param::UpdatedIv if context.iv_state == IvState::Missing => {
                Self::draw_iv(context)?;
                context.get_common(param)
            }
            Param::TlsAadPad => param.number(context.record_growth as u64),
            Param::TlsIvGen => {
                let made = param.space(context.iv_len).and_then(|part| context.next_iv(part));
                made.map_err(|reason| if reason == Reason::ParameterType { Reason::TlsIv } else { reason })
            }
            Param::IvGenerated => param.number(u64::from(context.mode.iv_is_random)),
            _ => context.get_common(param),
        }
    }

    #[inline(always)]
    fn set(context: &mut AeadContext<Self>, param: &SetParam<'_>) -> Outcome<()> {
        match param.name() {
            Param::TlsAad => context.set_record_aad(param.octets()?, TLS_TAG),
            Param::TlsIvFixed => context.set_fixed_iv(param),
            Param::TlsIvInv => context.set_invocation(param.octets().map_err(|_| Reason::TlsIv)?),
            _ => Ok(()),
        }
    }
}

impl AeadContext<GcmMode> {
    /// Encrypts or decrypts the next bytes of the message. After a failure of a device, the output is zeroed, and the message cannot
    /// continue.
    #[inline(always)]
    fn process(&mut self, data: Span<'_>) -> Outcome<()> {
        let GcmKey { gcm, ctr, .. } = self.key.as_mut().ok_or(Reason::NoKey)?;
        let Instance { resources, keystream_pool } = self.common.instance;
        // If no keystream is computed ahead, small updates use the kernel's fused loop of CTR and GHASH.
        let is_used = |ctr: &&mut SeparateCtr| keystream_pool.is_some() || ctr.key.is_large(data.len());
        let Some(SeparateCtr { key, keystream }) = ctr.as_mut().map(|ctr| &mut *ctr.0).filter(is_used) else {
            return if gcm.update(data) { Ok(()) } else { Err(Reason::MessageTooLong) };
        };
        let key = key.with(resources);
        let (mut data, mut outcome) = (data.into_host(), Ok(()));
        let update = || {
            let span = data.reborrow().into_span();
            gcm.update_by(span, &mut |counter, blocks, is_data| match keystream_pool {
                _ if is_data && key.key.is_large(blocks.len()) => {
                    key.run_in_callback(Pass::Ctr32, counter, blocks, &mut outcome)
                }
                Some(pool) => keystream.apply(pool, key, counter, blocks),
                None => Some(blocks),
            })
        };
        // If the IV does not have 12 bytes, the counter is a GHASH value under the secret H. The update may copy the counter to
        // the stack.
        if !run_and_wipe(self.iv_len != 12, update) {
            return Err(Reason::MessageTooLong);
        }
        if outcome.is_err() {
            data.output().zeroize();
            self.iv_state = IvState::Used;
        }
        outcome
    }

    /// Replaces the bytes of the IV from offset `at` on.
    fn set_iv(&mut self, at: usize, part: &[u8]) {
        self.iv[at..at + part.len()].copy_from_slice(part);
        self.iv_is_fresh();
    }

    /// Called after the IV has been replaced.
    fn iv_is_fresh(&mut self) {
        self.iv_state = IvState::Fresh;
        (self.mode.iv_is_used, self.mode.iv_is_received, self.mode.iv_is_random) = (false, false, false);
    }

    /// Sets the fixed part of the IVs of records. All bytes of the IV after the fixed part are a counter. For encryption, the
    /// counter starts at a random value.
    fn set_fixed_iv(&mut self, param: &SetParam<'_>) -> Outcome<()> {
        if let Some(iv) = param.octets_without_len(self.iv_len)? {
            // With length -1, `EVP_CTRL_GCM_SET_IV_FIXED` sets the whole IV.
            self.set_iv(0, iv);
        } else {
            let (part, encrypts) = (param.octets()?, self.common.encrypts);
            if part.len() < TLS_FIXED_IV || self.iv_len < part.len() + TLS_EXPLICIT_IV {
                return Err(Reason::TlsFixedIv);
            }
            if encrypts {
                getrandom::fill(&mut self.iv[part.len()..self.iv_len]).map_err(|_| Reason::Random)?;
            }
            self.set_iv(0, part);
            (self.mode.iv_is_random, self.mode.iv_is_received) = (encrypts, !encrypts);
        }
        self.mode.iv_counts = true;
        Ok(())
    }

    /// Starts a message with the next IV, and writes the last bytes of that IV to `part`.
    fn next_iv(&mut self, part: &mut [u8]) -> Outcome<()> {
        if !self.mode.iv_counts || self.key.is_none() || part.is_empty() || self.iv_len < TLS_EXPLICIT_IV {
            return Err(Reason::TlsIv);
        }
        if self.common.encrypts && self.mode.iv_is_used {
            // This IV has already been used: another function has started a message with it.
            self.increment_iv();
        }
        GcmMode::start(self)?;
        let iv = &self.iv[..self.iv_len];
        let len = part.len().min(iv.len());
        part[..len].copy_from_slice(&iv[iv.len() - len..]);
        self.increment_iv();
        Ok(())
    }

    /// Increments the last 8 bytes of the IV as a counter. The counter does not overflow in practice.
    fn increment_iv(&mut self) {
        let counter = &mut self.iv[self.iv_len - TLS_EXPLICIT_IV..self.iv_len];
        let next = u64::from_be_bytes((&*counter).try_into().expect("8 bytes")).wrapping_add(1);
        counter.copy_from_slice(&next.to_be_bytes());
        self.mode.iv_is_used = false;
    }

    /// Starts a message with an IV whose last bytes are `part`. The bytes of `part` were received in a record.
    fn set_invocation(&mut self, part: &[u8]) -> Outcome<()> {
        if !self.mode.iv_counts || self.key.is_none() || self.common.encrypts || part.len() > self.iv_len {
            return Err(Reason::TlsIv);
        }
        self.set_iv(self.iv_len - part.len(), part);
        self.mode.iv_is_received = true;
        GcmMode::start(self)
    }

    /// Processes a TLS 1.2 record in place: explicit IV, data, tag. A record is a complete message. The IV of the record is not
    /// used again, even if this call fails.
    #[inline(never)]
    fn record(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let aad = self.record_aad.take().ok_or(Reason::TlsAad)?;
        let len = data.len();
        self.iv_state = IvState::Used;
        self.key.as_ref().ok_or(Reason::NoKey)?;
        let (explicit_iv, text, tag) = record_parts(&mut data, TLS_TAG)?;
        let encrypts = self.common.encrypts;
        let started = if encrypts { self.next_iv(explicit_iv) } else { self.set_invocation(explicit_iv) };
        self.iv_state = IvState::Used;
        started?;
        let GcmKey { gcm, .. } = self.key.as_mut().ok_or(Reason::NoKey)?;
        if !gcm.aad(&aad) {
            return Err(Reason::MessageTooLong);
        }
        self.process(Span::in_place(text))?;
        let GcmKey { gcm, .. } = self.key.as_mut().ok_or(Reason::NoKey)?;
        if self.common.encrypts {
            tag.copy_from_slice(&gcm.finish_seal().ok_or(Reason::Internal)?);
            return Ok(len);
        }
        if !gcm.finish_open(tag) {
            text.zeroize();
            return Err(Reason::TagMismatch);
        }
        Ok(text.len())
    }
}
