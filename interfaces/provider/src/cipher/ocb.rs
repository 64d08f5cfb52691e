//! OCB3 (RFC 7253).

use std::sync::Arc;

use lockstep::hazmat::inline::{Block, InlineKey, InlineOcb, Span};
use lockstep::hazmat::mode::incremental::{BlockBuffer, Hold, KeyedExecutor};
use lockstep::hazmat::mode::{self, Direction};
use lockstep::hazmat::work::Pass;
use zeroize::Zeroizing;

use super::Cipher;
use crate::algorithm::Algorithm;
use crate::instance::Instance;
use crate::libcrypto::buffers::Buffers;
use crate::libcrypto::param::{GetParam, Kind, Parameters, SIZE, SetParam, entry, list};
use crate::reason::{Outcome, Reason};

/// The longest IV (RFC 7253, section 4.2).
const MAX_IV: usize = 15;

/// The state of an IV. No IV is used for two messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IvState {
    Missing,
    /// Set, and not used yet.
    Fresh,
    /// The message has started.
    InUse,
    /// The message has ended.
    Used,
}

/// A context of OCB.
pub(crate) struct Ocb {
    instance: Arc<Instance>,
    algorithm: &'static Algorithm,
    encrypts: bool,
    ocb: Option<InlineOcb>,
    iv: [u8; MAX_IV],
    iv_len: usize,
    iv_state: IvState,
    /// A partial block between two updates.
    buffer: BlockBuffer,
    /// The tag: the result of encryption, or the tag to compare with.
    tag: Block,
    tag_len: usize,
    /// True if `tag` is the tag to compare with.
    tag_is_set: bool,
    /// True if `tag` is the tag of the last encrypted message and no other message has been started.
    tag_is_made: bool,
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

    fn absorb(&mut self, _: Pass, _: &mut Block, _: &[u8]) -> Outcome<()> {
        unreachable!("the buffer of a cipher hashes nothing")
    }
}

impl Cipher for Ocb {
    const GETTABLE: Parameters = list!(
        entry(c"keylen", Kind::Unsigned, SIZE),
        entry(c"ivlen", Kind::Unsigned, SIZE),
        entry(c"taglen", Kind::Unsigned, SIZE),
        entry(c"iv", Kind::Octets, 0),
        entry(c"updated-iv", Kind::Octets, 0),
        entry(c"tag", Kind::Octets, 0),
    );
    const SETTABLE: Parameters = list!(
        entry(c"keylen", Kind::Unsigned, SIZE),
        entry(c"ivlen", Kind::Unsigned, SIZE),
        entry(c"tag", Kind::Octets, 0),
    );

    fn new(instance: &Arc<Instance>, algorithm: &'static Algorithm) -> Self {
        Ocb {
            instance: Arc::clone(instance),
            algorithm,
            encrypts: true,
            ocb: None,
            iv: [0; MAX_IV],
            iv_len: 12,
            iv_state: IvState::Missing,
            buffer: BlockBuffer::new(mode::Cipher::Ecb, [0; 16]),
            tag: [0; 16],
            tag_len: 16,
            tag_is_set: false,
            tag_is_made: false,
            data_has_ended: false,
        }
    }

    fn duplicate(&self) -> Outcome<Self> {
        let ocb = match &self.ocb {
            Some(ocb) => Some(ocb.duplicate().ok_or(Reason::OutOfMemory)?),
            None => None,
        };
        let (instance, buffer) = (Arc::clone(&self.instance), self.buffer.clone());
        Ok(Ocb { instance, ocb, buffer, ..*self })
    }

    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        if self.encrypts != encrypts && self.iv_state == IvState::InUse {
            // A message cannot change direction.
            self.iv_state = IvState::Used;
        }
        self.encrypts = encrypts;
        self.buffer.discard();
        if let Some(iv) = iv {
            if !(1..=MAX_IV).contains(&iv.len()) {
                return Err(Reason::IvLength);
            }
            self.iv[..iv.len()].copy_from_slice(iv);
            self.iv_len = iv.len();
            self.iv_state = IvState::Fresh;
            // A tag that was set for this message is kept; the tag of the previous encryption is discarded.
            self.tag_is_made = false;
        }
        if let Some(key) = key {
            self.ocb = None;
            let key = InlineKey::new(self.instance.resources.kernel()?, key).ok_or(Reason::OutOfMemory)?;
            self.ocb = Some(InlineOcb::new(key));
            if self.iv_state == IvState::InUse {
                // The message has ended. Its IV is not used again, because the new key may be the same.
                self.iv_state = IvState::Used;
            }
        }
        Ok(())
    }

    fn has_key(&self) -> bool {
        self.ocb.is_some()
    }

    fn encrypts(&self) -> bool {
        self.encrypts
    }

    fn update(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        if data.len() > 0 {
            self.check_data_may_follow()?;
        }
        self.ensure_started()?;
        let direction = if self.encrypts { Direction::Encrypt } else { Direction::Decrypt };
        let ocb = self.ocb.as_mut().ok_or(Reason::NoKey)?;
        self.buffer.update(&mut MaskedBlocks(ocb), direction, Hold::Part, &mut data)
    }

    fn aad(&mut self, aad: &[u8]) -> Outcome<()> {
        self.ensure_started()?.aad(aad);
        Ok(())
    }

    fn set_message_len(&mut self, _len: usize) -> Outcome<()> {
        // OCB does not need the length in advance.
        if self.has_key() { Ok(()) } else { Err(Reason::NoKey) }
    }

    fn finish(&mut self, mut output: Buffers<'_>) -> Outcome<usize> {
        self.ensure_started()?;
        let len = self.buffer.pending().len();
        if output.room() < len {
            return Err(Reason::OutputTooSmall);
        }
        if !self.encrypts && !self.tag_is_set {
            return Err(Reason::TagNotSet);
        }
        let ocb = self.ocb.as_mut().ok_or(Reason::NoKey)?;
        let mut last = Zeroizing::new([0; 16]);
        last[..len].copy_from_slice(self.buffer.pending());
        if len > 0 {
            ocb.last(Span::in_place(&mut last[..len]));
        }
        self.buffer.discard();
        // The message has ended, even if the tag is wrong.
        self.iv_state = IvState::Used;
        if self.encrypts {
            self.tag = ocb.finish_seal();
            (self.tag_is_set, self.tag_is_made) = (false, true);
        } else {
            self.tag_is_set = false;
            if !ocb.finish_open(&self.tag[..self.tag_len]) {
                return Err(Reason::TagMismatch);
            }
        }
        output.write(0, &last[..len]);
        Ok(len)
    }

    /// Processes all bytes at once. A partial block ends the data.
    fn one_shot(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let len = data.len();
        if data.room() < len {
            return Err(Reason::OutputTooSmall);
        }
        self.check_data_may_follow()?;
        self.ensure_started()?;
        if !self.buffer.pending().is_empty() {
            return Err(Reason::WrongFinalBlockLength);
        }
        let ocb = self.ocb.as_mut().ok_or(Reason::NoKey)?;
        let (blocks, last) = data.whole()?.split_at(len & !15);
        ocb.blocks(blocks);
        if !last.is_empty() {
            ocb.last(last);
            self.data_has_ended = true;
        }
        Ok(len)
    }

    fn get(&mut self, param: &mut GetParam<'_>) -> Outcome<()> {
        match param.name() {
            b"keylen" => param.number(self.algorithm.key_len as u64),
            b"ivlen" => param.number(self.iv_len as u64),
            b"taglen" => param.number(self.tag_len as u64),
            b"iv" | b"updated-iv" => {
                if !param.is_size_query() && param.room() < self.iv_len {
                    return Err(Reason::IvLength);
                }
                param.octets(&self.iv[..self.iv_len])
            }
            b"tag" => {
                if !self.encrypts || !self.tag_is_made {
                    return Err(Reason::NoTag);
                }
                if param.is_size_query() || param.room() != self.tag_len {
                    return Err(Reason::TagLength);
                }
                param.octets(&self.tag[..self.tag_len])
            }
            _ => Ok(()),
        }
    }

    fn set(&mut self, param: &SetParam<'_>) -> Outcome<()> {
        match param.name() {
            b"keylen" if param.size()? != self.algorithm.key_len => return Err(Reason::KeyLength),
            b"tag" => {
                let (tag, len) = param.octets_or_len()?;
                match tag {
                    Some(_) if self.encrypts => return Err(Reason::TagNotNeeded),
                    _ if !(1..=16).contains(&len) => return Err(Reason::TagLength),
                    // The length of the tag is part of the input of the cipher, so it is set before the IV is used.
                    Some(_) if len != self.tag_len => return Err(Reason::TagLength),
                    Some(tag) => {
                        self.tag[..len].copy_from_slice(tag);
                        (self.tag_is_set, self.tag_is_made) = (true, false);
                    }
                    None if self.iv_state == IvState::InUse && len != self.tag_len => {
                        return Err(Reason::TagLength);
                    }
                    // A tag of OCB is not the beginning of a longer tag of the same message.
                    None if self.tag_is_made && len != self.tag_len => return Err(Reason::TagLength),
                    None => self.tag_len = len,
                }
            }
            b"ivlen" => {
                let len = param.size()?;
                if !(1..=MAX_IV).contains(&len) {
                    return Err(Reason::IvLength);
                }
                if len != self.iv_len {
                    self.iv_len = len;
                    self.iv_state = IvState::Missing;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Ocb {
    /// Refuses data after a partial block.
    fn check_data_may_follow(&self) -> Outcome<()> {
        if self.iv_state == IvState::InUse && self.data_has_ended { Err(Reason::Finished) } else { Ok(()) }
    }

    /// Starts the message if it has not started.
    fn ensure_started(&mut self) -> Outcome<&mut InlineOcb> {
        let ocb = self.ocb.as_mut().ok_or(Reason::NoKey)?;
        match self.iv_state {
            IvState::Missing => return Err(Reason::NoIv),
            IvState::Used => return Err(Reason::Finished),
            IvState::Fresh => {
                ocb.start(self.encrypts, &self.iv[..self.iv_len], self.tag_len);
                self.iv_state = IvState::InUse;
                self.data_has_ended = false;
            }
            IvState::InUse => {}
        }
        Ok(ocb)
    }
}
