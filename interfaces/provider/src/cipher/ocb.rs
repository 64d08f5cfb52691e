//! OCB3 (RFC 7253).

use lockstep::aead::Aead;
use lockstep::hazmat::inline::{Block, InlineKey, InlineOcb, Span};
use lockstep::hazmat::mode;
use lockstep::hazmat::mode::incremental::{BlockBuffer, BlockIo, Hold, KeyedExecutor};
use lockstep::hazmat::work::Pass;
use zeroize::Zeroizing;

use super::aead::{AeadContext, AeadMode, IvState, Rules};
use crate::algorithm::Mode;
use crate::instance::Instance;
use crate::libcrypto::buffers::Buffers;
use crate::libcrypto::param::{SetParam, list};
use crate::reason::{Outcome, Reason};

/// The state of OCB.
pub(crate) struct OcbState {
    ocb: Option<InlineOcb>,
    /// A partial block between two updates.
    buffer: BlockBuffer,
    /// True if a partial block has been processed, after which only the tag follows.
    data_has_ended: bool,
}

/// Lets the buffer process whole blocks by OCB: a pass that the buffer requests (always ECB) is replaced by OCB's
/// encryption of masked blocks.
struct MaskedBlocks<'o>(&'o mut InlineOcb);

impl KeyedExecutor for MaskedBlocks<'_> {
    type Error = Reason;

    fn run(&mut self, _: Pass, _: &mut Block, data: Span<'_>) -> Outcome<()> {
        self.0.blocks(data);
        Ok(())
    }
}

impl AeadMode for OcbState {
    const MODE: Mode = Mode::Ocb;
    const RULES: Rules = Rules {
        gettable: list!(KEYLEN IVLEN TAGLEN IV UPDATED_IV TAG),
        settable: list!(KEYLEN IVLEN TAG),
        iv_lengths: Some(Aead::Ocb.row().nonces),
        iv_len: 12,
        has_iv_params: true,
        iv_len_comes_first: false,
        tag_len: 16,
        tag_may_be_cut: false,
        checks_key_len: true,
    };

    fn new() -> Self {
        let buffer = BlockBuffer::new(mode::Cipher::Ecb, [0; 16]);
        OcbState { ocb: None, buffer, data_has_ended: false }
    }

    fn duplicate(&self) -> Outcome<Self> {
        let ocb = match &self.ocb {
            Some(ocb) => Some(ocb.duplicate().ok_or(Reason::OutOfMemory)?),
            None => None,
        };
        Ok(OcbState { ocb, buffer: self.buffer.clone(), data_has_ended: self.data_has_ended })
    }

    fn has_key(&self) -> bool {
        self.ocb.is_some()
    }

    fn set_key(&mut self, instance: &Instance, key: &[u8]) -> Outcome<()> {
        self.ocb = None;
        let key = InlineKey::new(instance.resources.kernel()?, key).ok_or(Reason::OutOfMemory)?;
        self.ocb = Some(InlineOcb::new(key));
        Ok(())
    }

    fn after_init(context: &mut AeadContext<Self>, _key_is_new: bool, iv_is_new: bool) {
        context.mode.buffer.discard();
        // A tag that was set for this message is kept; the tag of the previous encryption is discarded.
        context.tag_is_made &= !iv_is_new;
    }

    fn update(context: &mut AeadContext<Self>, mut data: Buffers<'_>) -> Outcome<usize> {
        if data.len() > 0 {
            context.check_data_may_follow()?;
        }
        let direction = context.direction();
        let OcbState { ocb, buffer, .. } = context.started()?;
        let ocb = ocb.as_mut().ok_or(Reason::NoKey)?;
        buffer.update(&mut MaskedBlocks(ocb), direction, Hold::Part, &mut data)
    }

    fn aad(context: &mut AeadContext<Self>, aad: &[u8]) -> Outcome<()> {
        context.started()?.ocb.as_mut().ok_or(Reason::NoKey)?.aad(aad);
        Ok(())
    }

    fn finish(context: &mut AeadContext<Self>, mut output: Buffers<'_>) -> Outcome<usize> {
        let len = context.started()?.buffer.pending().len();
        if output.room() < len {
            return Err(Reason::OutputTooSmall);
        }
        if !context.encrypts && !context.tag_is_set {
            return Err(Reason::TagNotSet);
        }
        let OcbState { ocb, buffer, .. } = &mut context.mode;
        let ocb = ocb.as_mut().ok_or(Reason::NoKey)?;
        let mut last = Zeroizing::new([0; 16]);
        last[..len].copy_from_slice(buffer.pending());
        if len > 0 {
            ocb.last(Span::in_place(&mut last[..len]));
        }
        buffer.discard();
        // The message has ended, even if the tag is wrong.
        context.iv_state = IvState::Used;
        context.tag_is_set = false;
        if context.encrypts {
            context.tag = ocb.finish_seal();
            context.tag_is_made = true;
        } else if !ocb.finish_open(&context.tag[..context.tag_len]) {
            return Err(Reason::TagMismatch);
        }
        output.write(0, &last[..len]);
        Ok(len)
    }

    /// Processes all bytes at once. A partial block ends the data.
    fn one_shot(context: &mut AeadContext<Self>, mut data: Buffers<'_>) -> Outcome<usize> {
        let len = data.len();
        if data.room() < len {
            return Err(Reason::OutputTooSmall);
        }
        context.check_data_may_follow()?;
        let OcbState { ocb, buffer, data_has_ended } = context.started()?;
        if !buffer.pending().is_empty() {
            return Err(Reason::WrongFinalBlockLength);
        }
        let ocb = ocb.as_mut().ok_or(Reason::NoKey)?;
        let (blocks, last) = data.whole()?.split_at(len & !15);
        ocb.blocks(blocks);
        if !last.is_empty() {
            ocb.last(last);
            *data_has_ended = true;
        }
        Ok(len)
    }

    fn set_tag(context: &mut AeadContext<Self>, param: &SetParam<'_>) -> Outcome<()> {
        let (tag, len) = param.octets_or_len()?;
        // The length of the tag is part of the input of the cipher, so it is set before the IV is used. A tag of OCB is not
        // the beginning of a longer tag of the same message.
        let is_fixed = tag.is_some() || context.iv_state == IvState::InUse || context.tag_is_made;
        match tag {
            Some(_) if context.encrypts => return Err(Reason::TagNotNeeded),
            _ if !Aead::Ocb.row().tags.contains(len) => return Err(Reason::TagLength),
            _ if is_fixed && len != context.tag_len => return Err(Reason::TagLength),
            Some(tag) => context.expect_tag(tag),
            None => context.tag_len = len,
        }
        Ok(())
    }
}

impl AeadContext<OcbState> {
    /// Refuses data after a partial block.
    fn check_data_may_follow(&self) -> Outcome<()> {
        let has_ended = self.iv_state == IvState::InUse && self.mode.data_has_ended;
        if has_ended { Err(Reason::Finished) } else { Ok(()) }
    }

    /// Starts the message if it has not started.
    fn started(&mut self) -> Outcome<&mut OcbState> {
        let ocb = self.mode.ocb.as_mut().ok_or(Reason::NoKey)?;
        match self.iv_state {
            IvState::Missing => return Err(Reason::NoIv),
            IvState::Used => return Err(Reason::Finished),
            IvState::Fresh => {
                ocb.start(self.encrypts, &self.iv[..self.iv_len], self.tag_len);
                self.iv_state = IvState::InUse;
                self.mode.data_has_ended = false;
            }
            IvState::InUse => {}
        }
        Ok(&mut self.mode)
    }
}
