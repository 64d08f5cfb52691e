//! Contexts of SIV (RFC 5297) and GCM-SIV (RFC 8452). One update is the whole message, because the counter starts at a value
//! that is derived from the tag, and the tag depends on the whole plaintext.

use lockstep::aead::{Aead, AeadKey, Message, Status, Tag};
use lockstep::hazmat::Key;
use lockstep::hazmat::inline::Block;
use lockstep::hazmat::mode::incremental::BlockIo;
use lockstep::hazmat::mode::siv::MAX_STRINGS;
use lockstep::hazmat::planner::Planner;

use super::aead::{AeadContext, AeadMode, IvState};
use crate::executor::run_message;
use crate::instance::Instance;
use crate::libcrypto::{Buffers, Param, Parameters, SetParam, list};
use crate::reason::{Outcome, Reason};

/// SIV or GCM-SIV. Each init begins a message, even an init without a key and without an IV. This is allowed because a repeated
/// nonce reveals only whether two messages are equal.
///
/// The rules are those of OpenSSL's default provider. In SIV, each update of additional data adds a separate string, and an
/// update of data with a wrong tag returns an error. In GCM-SIV, the final call returns this error. If there was no update, the
/// final call of GCM-SIV processes an empty message.
#[derive(Clone, Copy, Default)]
pub(crate) struct SyntheticIv<const SIV: bool> {
    /// True if each further update processes another message with the same additional data. Programs that measure speed set
    /// this parameter.
    repeats: bool,
}

pub(crate) struct SyntheticIvKey {
    key: AeadKey,
    /// The strings of additional data.
    aad: Vec<Vec<u8>>,
    /// True if the message has been processed.
    has_ended: bool,
    /// The result of the message: an error if the tag was wrong.
    result: Option<Outcome<()>>,
}

impl<const SIV: bool> AeadMode for SyntheticIv<SIV> {
    type Key = SyntheticIvKey;

    const AEAD: Aead = if SIV { Aead::Siv } else { Aead::GcmSiv };
    const GETTABLE: Parameters = list!(KeyLen TagLen Tag);
    const SETTABLE: Parameters = list!(KeyLen Speed Tag);
    const IGNORES_IV: bool = SIV;
    const HAS_IV_PARAMS: bool = false;
    const CHECKS_KEY_LEN: bool = true;

    fn new_key(instance: &Instance, key: &[u8]) -> Outcome<SyntheticIvKey> {
        instance.resources.kernel()?;
        let key = if SIV { AeadKey::new(Aead::Siv, key) } else { Key::new(key).map(AeadKey::gcm_siv) };
        let key = key.map_err(|_| Reason::KeyLength)?;
        Ok(SyntheticIvKey { key, aad: Vec::new(), has_ended: false, result: None })
    }

    fn duplicate_key(key: &SyntheticIvKey) -> Outcome<impl FnOnce() -> SyntheticIvKey> {
        let mut aad = Vec::new();
        key.aad.iter().try_for_each(|string| push(&mut aad, string))?;
        Ok(|| SyntheticIvKey { key: key.key.clone(), aad, ..*key })
    }

    /// The tag to compare with is kept, because programs may set it before the key.
    fn after_init(context: &mut AeadContext<Self>, _iv_is_new: bool) {
        context.tag_is_made = false;
        if let Some(SyntheticIvKey { aad, has_ended, result, .. }) = &mut context.key {
            aad.clear();
            (*has_ended, *result) = (false, None);
        }
    }

    /// Processes the whole message. If the tag is wrong, the output is zeroed.
    fn update(context: &mut AeadContext<Self>, data: Buffers<'_>) -> Outcome<usize> {
        if data.has_no_input() {
            return Self::finish(context, data);
        }
        let len = data.len();
        match context.process(data) {
            // In GCM-SIV, programs expect the error of a wrong tag in the final call.
            Err(Reason::TagMismatch) if !SIV => Ok(len),
            outcome => outcome.map(|()| len),
        }
    }

    fn aad(context: &mut AeadContext<Self>, aad: &[u8]) -> Outcome<()> {
        let SyntheticIvKey { aad: strings, has_ended, .. } = context.key.as_mut().ok_or(Reason::NoKey)?;
        if *has_ended {
            return Err(Reason::AadAfterData);
        }
        if !SIV && let Some(string) = strings.first_mut() {
            return append(string, aad);
        }
        if strings.len() == MAX_STRINGS {
            return Err(Reason::SivStrings);
        }
        push(strings, aad)
    }

    fn finish(context: &mut AeadContext<Self>, _output: Buffers<'_>) -> Outcome<usize> {
        if !SIV && context.key.as_ref().is_none_or(|key| !key.has_ended) {
            // Without an update, the message is empty. The code below returns the error of a wrong tag.
            match context.process(Buffers::in_place_of(&mut [])) {
                Ok(()) | Err(Reason::TagMismatch) => {}
                Err(reason) => return Err(reason),
            }
        }
        match context.key.as_ref().and_then(|key| key.result) {
            Some(Err(reason)) if !SIV => Err(reason),
            Some(Ok(())) => Ok(0),
            // As in the default provider, SIV requires an update even for an empty message.
            _ => Err(Reason::SivNoUpdate),
        }
    }

    fn set_tag(context: &mut AeadContext<Self>, param: &SetParam<'_>) -> Outcome<()> {
        // As in the default provider, a tag that is set for encryption is ignored. GCM-SIV nevertheless checks its length.
        if context.common.encrypts && SIV {
            return Ok(());
        }
        let tag: Block = param.octets()?.try_into().map_err(|_| Reason::TagLength)?;
        if !context.common.encrypts {
            context.expect_tag(&tag);
        }
        Ok(())
    }

    fn set(context: &mut AeadContext<Self>, param: &SetParam<'_>) -> Outcome<()> {
        if param.name() == Param::Speed {
            let speed = param.number::<u32>()?;
            context.mode.repeats = if SIV { speed == 1 } else { speed != 0 };
            context.key.iter_mut().for_each(|key| key.has_ended &= !SIV);
        }
        Ok(())
    }
}

impl<const SIV: bool> AeadContext<SyntheticIv<SIV>> {
    /// Processes the message, and stores the result.
    fn process(&mut self, mut data: Buffers<'_>) -> Outcome<()> {
        let tag_is_set = self.check_tag_is_set();
        let SyntheticIvKey { key, aad, has_ended, result } = self.key.as_mut().ok_or(Reason::NoKey)?;
        if SIV {
            *result = None;
        }
        if *has_ended && !self.mode.repeats {
            return Err(if SIV { Reason::SivSecondUpdate } else { Reason::Finished });
        }
        if !SIV && self.iv_state == IvState::Missing {
            return Err(Reason::NoIv);
        }
        tag_is_set?;
        let data = data.whole()?.into_host();
        let aad: &[&[u8]] = match &aad[..] {
            // An array needs no allocation.
            [string] => &[string],
            strings => &strings.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        };
        let nonce = if SIV { &[][..] } else { &self.iv[..self.iv_len] };
        let (encrypts, direction, tag) = (self.common.encrypts, self.common.direction(), &mut self.tag);
        let mode = key.mode();
        let supports = |planner: &Planner| {
            mode.is_supported(direction, key.size(), |operation, size| planner.supports(operation, size))
        };
        let outcome = run_message(&self.common.instance.resources, data, supports, |executor, data| {
            let tag = if encrypts { Tag::Write(&mut tag[..]) } else { Tag::Expect(&tag[..]) };
            let message = Message { key, nonce, aad, data, tag, status: Status::Pending };
            mode.run(executor, direction, &mut [message])
        });
        (*has_ended, *result) = (true, Some(outcome));
        // After a successful message, its tag can be read. After a failed message of SIV, the tag of the previous message can
        // still be read.
        self.tag_is_made = outcome.is_ok() || self.tag_is_made && SIV;
        outcome
    }
}

/// Appends bytes without aborting the process if memory cannot be allocated.
fn append(to: &mut Vec<u8>, bytes: &[u8]) -> Outcome<()> {
    to.try_reserve(bytes.len()).map_err(|_| Reason::OutOfMemory)?;
    to.extend_from_slice(bytes);
    Ok(())
}

/// Appends a copy of a string.
fn push(to: &mut Vec<Vec<u8>>, string: &[u8]) -> Outcome<()> {
    let mut copy = Vec::new();
    append(&mut copy, string)?;
    to.try_reserve(1).map_err(|_| Reason::OutOfMemory)?;
    to.push(copy);
    Ok(())
}
