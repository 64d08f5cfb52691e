//! OCB3 (RFC 7253).

use lockstep::aead::Aead;
use lockstep::hazmat::inline::{InlineOcb, Span};
use lockstep::hazmat::mode;
use lockstep::hazmat::mode::incremental::{BlockBuffer, BlockIo, Hold};
use lockstep::hazmat::work::Pass;
use zeroize::{Zeroize, Zeroizing};

use super::aead::{AeadContext, AeadMode, IvState};
use crate::instance::Instance;
use crate::key::{ContextKey, PassFn, Runner};
use crate::libcrypto::{Buffers, Parameters, SetParam, list};
use crate::reason::{Outcome, Reason};

#[derive(Clone, Copy, Default)]
pub(crate) struct OcbMode;

pub(crate) struct OcbKey {
    ocb: InlineOcb,
    /// The key for calls that are passed to the planner: the same key, expanded a second time. `None` if no device is named.
    planned: Option<ContextKey>,
    /// Contains the bytes of a partial block between two updates.
    buffer: BlockBuffer,
    /// True if a partial block has been processed. Only the tag may follow it.
    data_has_ended: bool,
}

impl AeadMode for OcbMode {
    type Key = OcbKey;

    const AEAD: Aead = Aead::Ocb;
    const GETTABLE: Parameters = list!(KeyLen IvLen TagLen Iv UpdatedIv Tag);
    const SETTABLE: Parameters = list!(KeyLen IvLen Tag);
    const CHECKS_KEY_LEN: bool = true;

    fn new_key(instance: &Instance, key: &[u8]) -> Outcome<OcbKey> {
        let resources = &instance.resources;
        let planned = resources.device_is_named.then(|| ContextKey::new(resources, key, true)).transpose()?;
        let ocb = InlineOcb::new(resources.kernel()?, key).ok_or(Reason::OutOfMemory)?;
        let buffer = BlockBuffer::new(mode::Cipher::Ecb, [0; 16]);
        Ok(OcbKey { ocb, planned, buffer, data_has_ended: false })
    }

    fn duplicate_key(key: &OcbKey) -> Outcome<impl FnOnce() -> OcbKey> {
        let ocb = key.ocb.duplicate().ok_or(Reason::OutOfMemory)?;
        Ok(|| OcbKey { ocb, planned: key.planned.clone(), buffer: key.buffer.clone(), ..*key })
    }

    fn after_init(context: &mut AeadContext<Self>, iv_is_new: bool) {
        context.key.iter_mut().for_each(|key| key.buffer.discard());
        // If a new IV is given, the tag of the previous encryption is discarded. A tag that was set for decryption is kept.
        context.tag_is_made &= !iv_is_new;
    }

    fn start(context: &mut AeadContext<Self>) -> Outcome<()> {
        let OcbKey { ocb, data_has_ended, .. } = context.key.as_mut().ok_or(Reason::NoKey)?;
        ocb.start(context.common.encrypts, &context.iv[..context.iv_len], context.tag_len);
        (context.iv_state, *data_has_ended) = (IvState::InUse, false);
        Ok(())
    }

    fn update(context: &mut AeadContext<Self>, mut data: Buffers<'_>) -> Outcome<usize> {
        if data.len() > 0 {
            context.check_data_may_follow()?;
        }
        let direction = context.common.direction();
        let (OcbKey { ocb, planned, buffer, .. }, resources) = context.started()?;
        let planned = planned.as_ref().map(|key| key.with(resources));
        // The buffer requests a pass of ECB. The function runs OCB's encryption of masked blocks instead.
        let mut masked_blocks = PassFn(|ecb, _, blocks| run_blocks(ocb, planned, ecb, blocks));
        let outcome = buffer.update(&mut masked_blocks, direction, Hold::Part, &mut data);
        if outcome == Err(Reason::Device) {
            data.zero_output(buffer.output_len(data.len(), Hold::Part));
        }
        context.end_after_failure(outcome)
    }

    fn aad(context: &mut AeadContext<Self>, aad: &[u8]) -> Outcome<()> {
        context.started()?.0.ocb.aad(aad);
        Ok(())
    }

    fn finish(context: &mut AeadContext<Self>, mut output: Buffers<'_>) -> Outcome<usize> {
        let len = context.started()?.0.buffer.pending().len();
        if output.room() < len {
            return Err(Reason::OutputTooSmall);
        }
        context.check_tag_is_set()?;
        // The message has ended, even if the tag is wrong.
        let OcbKey { ocb, buffer, .. } = context.key.as_mut().ok_or(Reason::NoKey)?;
        (context.iv_state, context.tag_is_set) = (IvState::Used, false);
        let mut last = Zeroizing::new([0; 16]);
        last[..len].copy_from_slice(buffer.pending());
        if len > 0 {
            ocb.last(Span::in_place(&mut last[..len]));
        }
        buffer.discard();
        if context.common.encrypts {
            context.tag = ocb.finish_seal();
            context.tag_is_made = true;
        } else if !ocb.finish_open(&context.tag[..context.tag_len]) {
            return Err(Reason::TagMismatch);
        }
        output.write(0, &last[..len]);
        Ok(len)
    }

    /// Processes the whole input in one call. If the input ends with a partial block, no more data may follow.
    fn one_shot(context: &mut AeadContext<Self>, mut data: Buffers<'_>) -> Outcome<usize> {
        let len = data.len();
        if data.room() < len {
            return Err(Reason::OutputTooSmall);
        }
        context.check_data_may_follow()?;
        let ecb = mode::Cipher::Ecb.pass(context.common.direction());
        let (OcbKey { ocb, planned, buffer, data_has_ended }, resources) = context.started()?;
        let planned = planned.as_ref().map(|key| key.with(resources));
        if !buffer.pending().is_empty() {
            return Err(Reason::WrongFinalBlockLength);
        }
        let (blocks, last) = data.whole()?.split_at(len & !15);
        let outcome = run_blocks(ocb, planned, ecb, blocks);
        if outcome.is_ok() && !last.is_empty() {
            ocb.last(last);
            *data_has_ended = true;
        }
        context.end_after_failure(outcome.map(|()| len))
    }

    fn set_tag(context: &mut AeadContext<Self>, param: &SetParam<'_>) -> Outcome<()> {
        let (tag, len) = param.octets_or_len()?;
        // OCB processes the tag length together with the nonce, so the tag length must be set before the message starts. A
        // shorter tag of OCB is not a prefix of a longer tag of the same message.
        let is_fixed = tag.is_some() || context.iv_state == IvState::InUse || context.tag_is_made;
        match tag {
            Some(_) if context.common.encrypts => return Err(Reason::TagNotNeeded),
            _ if !Self::AEAD.row().tags.contains(len) => return Err(Reason::TagLength),
            _ if is_fixed && len != context.tag_len => return Err(Reason::TagLength),
            Some(tag) => context.expect_tag(tag),
            None => context.tag_len = len,
        }
        Ok(())
    }
}

impl AeadContext<OcbMode> {
    /// Refuses data after a partial block.
    fn check_data_may_follow(&self) -> Outcome<()> {
        let has_ended = self.key.as_ref().is_some_and(|key| key.data_has_ended);
        if has_ended && self.iv_state == IvState::InUse { Err(Reason::Finished) } else { Ok(()) }
    }

    /// Ends the message after a failure of a device.
    fn end_after_failure(&mut self, outcome: Outcome<usize>) -> Outcome<usize> {
        if outcome == Err(Reason::Device) {
            self.iv_state = IvState::Used;
        }
        outcome
    }
}

/// Encrypts or decrypts whole blocks. In large calls, a named device computes the ECB part of OCB. If the device fails, the
/// output is zeroed.
fn run_blocks(ocb: &mut InlineOcb, planned: Option<Runner<'_>>, ecb: Pass, blocks: Span<'_>) -> Outcome<()> {
    let Some(key) = planned.filter(|key| key.key.is_large(blocks.len())) else {
        ocb.blocks(blocks);
        return Ok(());
    };
    let (mut blocks, mut outcome) = (blocks.into_host(), Ok(()));
    ocb.blocks_by(blocks.reborrow().into_span(), &mut |masked| {
        key.run_in_callback(ecb, &mut [0; 16], masked, &mut outcome)
    });
    if outcome.is_err() {
        blocks.output().zeroize();
    }
    outcome
}
