//! SIV (RFC 5297). One update is the whole message, because the tag of the whole plaintext is the start of the counter.

use std::sync::Arc;

use lockstep::hazmat::Error;
use lockstep::hazmat::data::Data;
use lockstep::hazmat::inline::Block;
use lockstep::hazmat::mode::Executor;
use lockstep::hazmat::mode::siv::{self, MAX_STRINGS, SivKey, SivMessage};
use lockstep::hazmat::planner::Planner;
use lockstep::hazmat::work::{Operation, Pass, Status, Tag};

use super::Cipher;
use super::gcm_siv::append;
use crate::algorithm::Algorithm;
use crate::executor::{MessageMode, run_message};
use crate::instance::Instance;
use crate::libcrypto::buffers::Buffers;
use crate::libcrypto::param::{GetParam, Kind, Parameters, SIZE, SetParam, UINT, entry, list};
use crate::reason::{Outcome, Reason};

/// A context of SIV. Each init begins a message, also without a key.
pub(crate) struct Siv {
    instance: Arc<Instance>,
    algorithm: &'static Algorithm,
    encrypts: bool,
    key: Option<SivKey>,
    /// The strings of additional data, one for each update. A nonce is the last string.
    aad: Vec<Vec<u8>>,
    /// The synthetic IV: the result of encryption, or the tag to compare with.
    tag: Block,
    /// True if `tag` is the tag to compare with.
    tag_is_set: bool,
    /// True if `tag` is the tag of the last encrypted message.
    tag_is_made: bool,
    /// True if the message has been processed.
    has_ended: bool,
    /// True if the last update has succeeded and no init has followed.
    is_done: bool,
    /// True if further updates process further messages with the same additional data, for measurements of speed.
    repeats: bool,
}

/// One message, and the memory of its tag.
struct Message<'m> {
    key: &'m SivKey,
    aad: &'m [&'m [u8]],
    encrypts: bool,
    tag: &'m mut Block,
}

impl MessageMode for Message<'_> {
    fn is_supported(&self, planner: &Planner) -> bool {
        [Pass::CbcMac, Pass::Ctr, Pass::EcbEncrypt]
            .into_iter()
            .all(|pass| planner.supports(Operation::Pass(pass), self.key.size()))
    }

    fn run(&mut self, executor: &dyn Executor, data: Data<'_>) -> Result<(), Error> {
        let Message { key, aad, encrypts, ref mut tag } = *self;
        let tag = if encrypts { Tag::Write(&mut tag[..]) } else { Tag::Expect(&tag[..]) };
        let message = SivMessage { key, aad, data, tag, status: Status::Pending };
        if encrypts { siv::seal(executor, &mut [message]) } else { siv::open(executor, &mut [message]) }
    }
}

impl Cipher for Siv {
    const GETTABLE: Parameters = list!(
        entry(c"keylen", Kind::Unsigned, SIZE),
        entry(c"taglen", Kind::Unsigned, SIZE),
        entry(c"tag", Kind::Octets, 0),
    );
    const SETTABLE: Parameters = list!(
        entry(c"keylen", Kind::Unsigned, SIZE),
        entry(c"speed", Kind::Unsigned, UINT),
        entry(c"tag", Kind::Octets, 0),
    );

    fn new(instance: &Arc<Instance>, algorithm: &'static Algorithm) -> Self {
        Siv {
            instance: Arc::clone(instance),
            algorithm,
            encrypts: true,
            key: None,
            aad: Vec::new(),
            tag: [0; 16],
            tag_is_set: false,
            tag_is_made: false,
            has_ended: false,
            is_done: false,
            repeats: false,
        }
    }

    fn duplicate(&self) -> Outcome<Self> {
        let mut aad = Vec::new();
        self.aad.iter().try_for_each(|string| push(&mut aad, string))?;
        let (instance, key) = (Arc::clone(&self.instance), self.key.clone());
        Ok(Siv { instance, key, aad, ..*self })
    }

    /// The IV is ignored: a nonce is the last string of additional data. A tag to compare with is kept, because programs may
    /// set it before the key.
    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, _iv: Option<&[u8]>) -> Outcome<()> {
        self.encrypts = encrypts;
        self.aad.clear();
        (self.has_ended, self.is_done, self.tag_is_made) = (false, false, false);
        if let Some(key) = key {
            self.key = None;
            self.instance.resources.kernel()?;
            self.key = Some(SivKey::new(key).map_err(|_| Reason::KeyLength)?);
        }
        Ok(())
    }

    fn has_key(&self) -> bool {
        self.key.is_some()
    }

    fn encrypts(&self) -> bool {
        self.encrypts
    }

    /// Processes the whole message. If the tag is wrong, the output is zeroed.
    fn update(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        if data.has_no_input() {
            return self.finish(data);
        }
        self.is_done = false;
        let key = self.key.as_ref().ok_or(Reason::NoKey)?;
        if self.has_ended && !self.repeats {
            return Err(Reason::SivSecondUpdate);
        }
        if !self.encrypts && !self.tag_is_set {
            return Err(Reason::TagNotSet);
        }
        let len = data.len();
        let data = data.whole()?.into_host();
        let mut aad: [&[u8]; MAX_STRINGS] = [&[]; MAX_STRINGS];
        aad.iter_mut().zip(&self.aad).for_each(|(place, string)| *place = string);
        let (aad, encrypts, tag) = (&aad[..self.aad.len()], self.encrypts, &mut self.tag);
        self.has_ended = true;
        run_message(&self.instance.resources, &mut Message { key, aad, encrypts, tag }, data)?;
        self.is_done = true;
        self.tag_is_made = self.encrypts;
        Ok(len)
    }

    fn aad(&mut self, aad: &[u8]) -> Outcome<()> {
        if !self.has_key() {
            return Err(Reason::NoKey);
        }
        if self.has_ended {
            return Err(Reason::AadAfterData);
        }
        if self.aad.len() == MAX_STRINGS {
            return Err(Reason::SivStrings);
        }
        push(&mut self.aad, aad)
    }

    fn set_message_len(&mut self, _len: usize) -> Outcome<()> {
        // The length of the message is the length of its update, so this value is not needed.
        if self.has_key() { Ok(()) } else { Err(Reason::NoKey) }
    }

    /// As in the default provider, an empty message needs an update too.
    fn finish(&mut self, _output: Buffers<'_>) -> Outcome<usize> {
        if self.is_done { Ok(0) } else { Err(Reason::SivNoUpdate) }
    }

    fn get(&mut self, param: &mut GetParam<'_>) -> Outcome<()> {
        match param.name() {
            b"keylen" => param.number(self.algorithm.key_len as u64),
            b"taglen" => param.number(16),
            b"tag" if !self.encrypts || !self.tag_is_made => Err(Reason::NoTag),
            b"tag" if param.is_size_query() || param.room() != 16 => Err(Reason::TagLength),
            b"tag" => param.octets(&self.tag),
            _ => Ok(()),
        }
    }

    fn set(&mut self, param: &SetParam<'_>) -> Outcome<()> {
        match param.name() {
            b"keylen" if param.size()? != self.algorithm.key_len => return Err(Reason::KeyLength),
            b"speed" => {
                self.repeats = param.uint()? == 1;
                self.has_ended = false;
            }
            // As in the default provider, the tag is ignored for encryption.
            b"tag" if !self.encrypts => {
                self.tag = param.octets()?.try_into().map_err(|_| Reason::TagLength)?;
                (self.tag_is_set, self.tag_is_made) = (true, false);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Appends a copy of a string without aborting the process if memory cannot be allocated.
fn push(to: &mut Vec<Vec<u8>>, string: &[u8]) -> Outcome<()> {
    let mut copy = Vec::new();
    append(&mut copy, string)?;
    to.try_reserve(1).map_err(|_| Reason::OutOfMemory)?;
    to.push(copy);
    Ok(())
}
