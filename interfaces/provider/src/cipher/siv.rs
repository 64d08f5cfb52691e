//! SIV (RFC 5297) and GCM-SIV (RFC 8452). One update is the whole message, because the tag of the whole plaintext is the
//! start of the counter.

use lockstep::aead::{Aead, Data, Direction, Lengths, Message, Status, Tag};
use lockstep::hazmat::inline::Block;
use lockstep::hazmat::mode::incremental::BlockIo;
use lockstep::hazmat::mode::siv::MAX_STRINGS;
use lockstep::hazmat::mode::{AeadKey, Executor};
use lockstep::hazmat::planner::Planner;
use lockstep::hazmat::work::AeadMessage;
use lockstep::hazmat::{Error, Key, KeySize};

use super::aead::{AeadContext, AeadMode, IvState, Rules};
use crate::algorithm::Mode;
use crate::executor::run_message;
use crate::instance::Instance;
use crate::libcrypto::buffers::Buffers;
use crate::libcrypto::param::{SetParam, list};
use crate::reason::{Outcome, Reason};

/// The key of SIV or of GCM-SIV. The constants are the rules of OpenSSL's default provider, where the two modes differ.
pub(crate) trait SyntheticIvKey: Clone + Send + Sync + Sized {
    const MODE: Mode;
    const AEAD: Aead;
    /// Bytes of an IV. SIV ignores its IV: a nonce is the last string of additional data.
    const IV_LENGTHS: Option<Lengths>;
    /// True if each update of additional data is a string of its own.
    const HAS_STRINGS: bool;
    /// True if the final call processes an empty message without an update, and returns the error of a wrong tag. Otherwise
    /// the update returns this error.
    const FINAL_CHECKS: bool;
    /// The reason of a second update.
    const SECOND_UPDATE: Reason;

    /// # Errors
    /// If the key has a wrong length.
    fn new(key: &[u8]) -> Result<Self, Error>;

    fn size(&self) -> KeySize;

    /// Processes a message: encrypts it if the tag is to be written.
    ///
    /// # Errors
    /// [`Error::AuthenticationFailed`] if the tag is wrong: the output is zeroed then. Other errors of modes and devices.
    fn run(
        &self,
        executor: &dyn Executor,
        nonce: &[u8],
        aad: &[&[u8]],
        data: Data<'_>,
        tag: Tag<'_>,
    ) -> Result<(), Error>;
}

impl SyntheticIvKey for AeadKey {
    const MODE: Mode = Mode::Siv;
    const AEAD: Aead = Aead::Siv;
    const IV_LENGTHS: Option<Lengths> = None;
    const HAS_STRINGS: bool = true;
    const FINAL_CHECKS: bool = false;
    const SECOND_UPDATE: Reason = Reason::SivSecondUpdate;

    fn new(key: &[u8]) -> Result<Self, Error> {
        AeadKey::new(Aead::Siv, key)
    }

    fn size(&self) -> KeySize {
        AeadKey::size(self)
    }

    fn run(
        &self,
        executor: &dyn Executor,
        _nonce: &[u8],
        aad: &[&[u8]],
        data: Data<'_>,
        tag: Tag<'_>,
    ) -> Result<(), Error> {
        let direction = direction_of(&tag);
        let message = Message { key: self, nonce: &[], aad, data, tag, status: Status::Pending };
        Aead::Siv.run(executor, direction, &mut [message])
    }
}

/// The key of GCM-SIV.
impl SyntheticIvKey for Key {
    const MODE: Mode = Mode::GcmSiv;
    const AEAD: Aead = Aead::GcmSiv;
    const IV_LENGTHS: Option<Lengths> = Some(Aead::GcmSiv.row().nonces);
    const HAS_STRINGS: bool = false;
    const FINAL_CHECKS: bool = true;
    const SECOND_UPDATE: Reason = Reason::Finished;

    fn new(key: &[u8]) -> Result<Self, Error> {
        Key::new(key)
    }

    fn size(&self) -> KeySize {
        Key::size(self)
    }

    fn run(
        &self,
        executor: &dyn Executor,
        nonce: &[u8],
        aad: &[&[u8]],
        data: Data<'_>,
        tag: Tag<'_>,
    ) -> Result<(), Error> {
        let (direction, aad) = (direction_of(&tag), aad.first().copied().unwrap_or_default());
        let message = AeadMessage { key: self, nonce, aad, data, tag, status: Status::Pending };
        Aead::GcmSiv.run_messages(executor, direction, &mut [message])
    }
}

fn direction_of(tag: &Tag<'_>) -> Direction {
    if matches!(tag, Tag::Write(_)) { Direction::Encrypt } else { Direction::Decrypt }
}

/// The state of SIV or GCM-SIV. Each init begins a message, also without a key or an IV: if a nonce is repeated, these modes
/// reveal only whether two messages are equal.
pub(crate) struct SyntheticIvState<K> {
    key: Option<K>,
    /// The strings of additional data.
    aad: Vec<Vec<u8>>,
    /// True if the message has been processed.
    has_ended: bool,
    /// The result of the message: an error if the tag was wrong.
    result: Option<Outcome<()>>,
    /// True if further updates process further messages with the same additional data, for measurements of speed.
    repeats: bool,
}

impl<K: SyntheticIvKey> AeadMode for SyntheticIvState<K> {
    const MODE: Mode = K::MODE;
    const RULES: Rules = Rules {
        gettable: list!(KEYLEN TAGLEN TAG),
        settable: list!(KEYLEN SPEED TAG),
        iv_lengths: K::IV_LENGTHS,
        iv_len: 12,
        has_iv_params: false,
        iv_len_comes_first: false,
        tag_len: 16,
        tag_may_be_cut: false,
        checks_key_len: true,
    };

    fn new() -> Self {
        SyntheticIvState { key: None, aad: Vec::new(), has_ended: false, result: None, repeats: false }
    }

    fn duplicate(&self) -> Outcome<Self> {
        let mut aad = Vec::new();
        self.aad.iter().try_for_each(|string| push(&mut aad, string))?;
        Ok(SyntheticIvState { key: self.key.clone(), aad, ..*self })
    }

    fn has_key(&self) -> bool {
        self.key.is_some()
    }

    fn set_key(&mut self, instance: &Instance, key: &[u8]) -> Outcome<()> {
        self.key = None;
        instance.resources.kernel()?;
        self.key = Some(K::new(key).map_err(|_| Reason::KeyLength)?);
        Ok(())
    }

    /// A tag to compare with is kept, because programs may set it before the key.
    fn after_init(context: &mut AeadContext<Self>, _key_is_new: bool, _iv_is_new: bool) {
        context.mode.aad.clear();
        (context.mode.has_ended, context.mode.result, context.tag_is_made) = (false, None, false);
    }

    /// Processes the whole message. If the tag is wrong, the output is zeroed.
    fn update(context: &mut AeadContext<Self>, data: Buffers<'_>) -> Outcome<usize> {
        if data.has_no_input() {
            return Self::finish(context, data);
        }
        let len = data.len();
        match context.process(data) {
            // Programs expect the error in the final call.
            Err(Reason::TagMismatch) if K::FINAL_CHECKS => Ok(len),
            outcome => outcome.map(|()| len),
        }
    }

    fn aad(context: &mut AeadContext<Self>, aad: &[u8]) -> Outcome<()> {
        let SyntheticIvState { key, aad: strings, has_ended, .. } = &mut context.mode;
        if key.is_none() {
            return Err(Reason::NoKey);
        }
        if *has_ended {
            return Err(Reason::AadAfterData);
        }
        if !K::HAS_STRINGS
            && let Some(string) = strings.first_mut()
        {
            return append(string, aad);
        }
        if strings.len() == MAX_STRINGS {
            return Err(Reason::SivStrings);
        }
        push(strings, aad)
    }

    fn finish(context: &mut AeadContext<Self>, _output: Buffers<'_>) -> Outcome<usize> {
        if K::FINAL_CHECKS && !context.mode.has_ended {
            // Without an update, the message is empty. A wrong tag is returned below.
            match context.process(Buffers::in_place_of(&mut [])) {
                Ok(()) | Err(Reason::TagMismatch) => {}
                Err(reason) => return Err(reason),
            }
        }
        match context.mode.result {
            Some(Err(reason)) if K::FINAL_CHECKS => Err(reason),
            Some(Ok(())) => Ok(0),
            // As in the default provider, an empty message of SIV needs an update too.
            _ => Err(Reason::SivNoUpdate),
        }
    }

    fn set_tag(context: &mut AeadContext<Self>, param: &SetParam<'_>) -> Outcome<()> {
        // As in the default provider, the tag is ignored for encryption; GCM-SIV checks its length.
        if context.encrypts && K::HAS_STRINGS {
            return Ok(());
        }
        let tag: Block = param.octets()?.try_into().map_err(|_| Reason::TagLength)?;
        if !context.encrypts {
            context.expect_tag(&tag);
        }
        Ok(())
    }

    fn set(context: &mut AeadContext<Self>, param: &SetParam<'_>) -> Outcome<()> {
        if param.name() == b"speed" {
            let speed = param.uint()?;
            context.mode.repeats = if K::HAS_STRINGS { speed == 1 } else { speed != 0 };
            context.mode.has_ended &= !K::HAS_STRINGS;
        }
        Ok(())
    }
}

impl<K: SyntheticIvKey> AeadContext<SyntheticIvState<K>> {
    /// Processes the message, and stores the result.
    fn process(&mut self, mut data: Buffers<'_>) -> Outcome<()> {
        if !K::FINAL_CHECKS {
            self.mode.result = None;
        }
        let key = self.mode.key.as_ref().ok_or(Reason::NoKey)?;
        if self.mode.has_ended && !self.mode.repeats {
            return Err(K::SECOND_UPDATE);
        }
        if K::IV_LENGTHS.is_some() && self.iv_state == IvState::Missing {
            return Err(Reason::NoIv);
        }
        if !self.encrypts && !self.tag_is_set {
            return Err(Reason::TagNotSet);
        }
        let data = data.whole()?.into_host();
        let mut aad: [&[u8]; MAX_STRINGS] = [&[]; MAX_STRINGS];
        aad.iter_mut().zip(&self.mode.aad).for_each(|(place, string)| *place = string);
        let (nonce, aad) = (&self.iv[..self.iv_len], &aad[..self.mode.aad.len()]);
        let (encrypts, direction, tag) = (self.encrypts, self.direction(), &mut self.tag);
        let supports = |planner: &Planner| {
            K::AEAD.is_supported(direction, key.size(), |operation, size| planner.supports(operation, size))
        };
        let result = run_message(&self.instance.resources, data, supports, |executor, data| {
            let tag = if encrypts { Tag::Write(&mut tag[..]) } else { Tag::Expect(&tag[..]) };
            key.run(executor, nonce, aad, data, tag)
        });
        (self.mode.has_ended, self.mode.result) = (true, Some(result));
        // The tag can be read after a success. After a failure of SIV, it is that of the message before.
        self.tag_is_made = result.is_ok() || self.tag_is_made && !K::FINAL_CHECKS;
        result
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
