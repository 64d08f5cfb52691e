//! GCM-SIV (RFC 8452). One update is the whole message, because the tag of the whole plaintext is the start of the counter.

use std::sync::Arc;

use lockstep::hazmat::data::Data;
use lockstep::hazmat::inline::Block;
use lockstep::hazmat::mode::{Executor, gcm_siv};
use lockstep::hazmat::planner::Planner;
use lockstep::hazmat::work::{AeadMessage, FusedAead, Operation, Pass, Status, Tag};
use lockstep::hazmat::{Error, Key, KeySize};

use super::Cipher;
use crate::algorithm::Algorithm;
use crate::executor::{MessageMode, run_message};
use crate::instance::Instance;
use crate::libcrypto::buffers::Buffers;
use crate::libcrypto::param::{GetParam, Kind, Parameters, SIZE, SetParam, UINT, entry, list};
use crate::reason::{Outcome, Reason};

/// The length of the nonce (RFC 8452, section 4).
const NONCE: usize = 12;

/// A context of GCM-SIV.
pub(crate) struct GcmSiv {
    instance: Arc<Instance>,
    algorithm: &'static Algorithm,
    encrypts: bool,
    key: Option<Key>,
    nonce: Option<[u8; NONCE]>,
    aad: Vec<u8>,
    /// The tag: the result of encryption, or the tag to compare with.
    tag: Block,
    /// True if `tag` is the tag to compare with.
    tag_is_set: bool,
    /// The result of the message, if it has been processed: an error if the tag was wrong.
    result: Option<Outcome<()>>,
    /// True if further updates process the same message again, for measurements of speed.
    repeats: bool,
}

/// One message, and the memory of its tag.
struct Message<'m> {
    key: &'m Key,
    nonce: &'m [u8; NONCE],
    aad: &'m [u8],
    encrypts: bool,
    tag: &'m mut Block,
}

impl MessageMode for Message<'_> {
    fn is_supported(&self, planner: &Planner) -> bool {
        let size = self.key.size();
        let has = |pass, size| planner.supports(Operation::Pass(pass), size);
        let fused = if self.encrypts { FusedAead::GcmSivSeal } else { FusedAead::GcmSivOpen };
        planner.supports(Operation::Fused(fused), size)
            // The key of POLYVAL has 16 bytes.
            || has(Pass::EcbEncrypt, size) && has(Pass::CtrLittle32, size) && has(Pass::Polyval, KeySize::Aes128)
    }

    fn run(&mut self, executor: &dyn Executor, data: Data<'_>) -> Result<(), Error> {
        let Message { key, nonce, aad, encrypts, ref mut tag } = *self;
        let tag = if encrypts { Tag::Write(&mut tag[..]) } else { Tag::Expect(&tag[..]) };
        let message = AeadMessage { key, nonce, aad, data, tag, status: Status::Pending };
        if encrypts {
            gcm_siv::seal(executor, &mut [message])
        } else {
            gcm_siv::open(executor, &mut [message])
        }
    }
}

impl Cipher for GcmSiv {
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
        GcmSiv {
            instance: Arc::clone(instance),
            algorithm,
            encrypts: true,
            key: None,
            nonce: None,
            aad: Vec::new(),
            tag: [0; 16],
            tag_is_set: false,
            result: None,
            repeats: false,
        }
    }

    fn duplicate(&self) -> Outcome<Self> {
        let mut aad = Vec::new();
        append(&mut aad, &self.aad)?;
        let (instance, key) = (Arc::clone(&self.instance), self.key.clone());
        Ok(GcmSiv { instance, key, aad, ..*self })
    }

    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        self.encrypts = encrypts;
        if let Some(iv) = iv {
            self.nonce = Some(iv.try_into().map_err(|_| Reason::IvLength)?);
        }
        if let Some(key) = key {
            self.key = None;
            self.instance.resources.kernel()?;
            self.key = Some(Key::new(key).map_err(|_| Reason::KeyLength)?);
        }
        // Each init starts a message, even if it sets no new nonce: if a nonce is repeated, GCM-SIV reveals only whether two
        // messages are equal.
        self.aad.clear();
        self.result = None;
        Ok(())
    }

    fn has_key(&self) -> bool {
        self.key.is_some()
    }

    fn encrypts(&self) -> bool {
        self.encrypts
    }

    /// Processes the whole message. If the tag is wrong, the output is zeroed, and [`Cipher::finish`] returns the error,
    /// because programs expect it there.
    fn update(&mut self, data: Buffers<'_>) -> Outcome<usize> {
        if data.has_no_input() {
            return self.finish(data);
        }
        if self.result.is_some() && !self.repeats {
            return Err(Reason::Finished);
        }
        let len = data.len();
        self.process(data)?;
        Ok(len)
    }

    fn aad(&mut self, aad: &[u8]) -> Outcome<()> {
        if !self.has_key() {
            return Err(Reason::NoKey);
        }
        if self.result.is_some() {
            return Err(Reason::AadAfterData);
        }
        append(&mut self.aad, aad)
    }

    fn set_message_len(&mut self, _len: usize) -> Outcome<()> {
        // The length of the message is the length of its update, so this value is not needed.
        if self.has_key() { Ok(()) } else { Err(Reason::NoKey) }
    }

    /// Without an update, the message is empty.
    fn finish(&mut self, _output: Buffers<'_>) -> Outcome<usize> {
        if self.result.is_none() {
            self.process(Buffers::in_place_of(&mut []))?;
        }
        self.result.unwrap_or(Err(Reason::Internal)).map(|()| 0)
    }

    fn get(&mut self, param: &mut GetParam<'_>) -> Outcome<()> {
        match param.name() {
            b"keylen" => param.number(self.algorithm.key_len as u64),
            b"taglen" => param.number(16),
            b"tag" if !self.encrypts || self.result != Some(Ok(())) => Err(Reason::NoTag),
            b"tag" if param.is_size_query() || param.room() != 16 => Err(Reason::TagLength),
            b"tag" => param.octets(&self.tag),
            _ => Ok(()),
        }
    }

    fn set(&mut self, param: &SetParam<'_>) -> Outcome<()> {
        match param.name() {
            b"keylen" if param.size()? != self.algorithm.key_len => return Err(Reason::KeyLength),
            b"speed" => self.repeats = param.uint()? != 0,
            b"tag" => {
                let tag = param.octets()?.try_into().map_err(|_| Reason::TagLength)?;
                // As in the default provider, the tag is ignored for encryption.
                if !self.encrypts {
                    (self.tag, self.tag_is_set) = (tag, true);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl GcmSiv {
    /// Processes the message. A wrong tag is a result, not an error.
    fn process(&mut self, mut data: Buffers<'_>) -> Outcome<()> {
        let key = self.key.as_ref().ok_or(Reason::NoKey)?;
        let nonce = self.nonce.as_ref().ok_or(Reason::NoIv)?;
        if !self.encrypts && !self.tag_is_set {
            return Err(Reason::TagNotSet);
        }
        let data = data.whole()?.into_host();
        let (aad, encrypts, tag) = (&self.aad[..], self.encrypts, &mut self.tag);
        let mut message = Message { key, nonce, aad, encrypts, tag };
        let result = run_message(&self.instance.resources, &mut message, data);
        self.result = Some(result);
        if result == Err(Reason::TagMismatch) { Ok(()) } else { result }
    }
}

/// Appends bytes without aborting the process if memory cannot be allocated.
pub(super) fn append(to: &mut Vec<u8>, bytes: &[u8]) -> Outcome<()> {
    to.try_reserve(bytes.len()).map_err(|_| Reason::OutOfMemory)?;
    to.extend_from_slice(bytes);
    Ok(())
}
