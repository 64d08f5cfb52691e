//! One type for all authenticated modes, for callers that choose the mode at run time, and a table with the properties of the
//! modes.

use std::ops::Range;

use lockstep_core::data::Data;
pub use lockstep_core::lengths::Lengths;
use lockstep_core::lengths::{ALL_TAGS, FULL_TAGS, NONCES_OF_12};
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Pass, Status, Tag};
use lockstep_core::{Error, Key, KeySize, Result};

use crate::executor::Executor;
use crate::{Direction, ccm, eax, gcm, gcm_siv, ocb, run_mode, siv, xaes};

/// An authenticated mode. [`Aead::row`] has its properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Aead {
    /// GCM (SP 800-38D): [`gcm`].
    Gcm,
    /// GCM-SIV (RFC 8452): [`gcm_siv`].
    GcmSiv,
    /// OCB3 (RFC 7253): [`ocb`].
    Ocb,
    /// SIV (RFC 5297): [`siv`].
    Siv,
    /// CCM (SP 800-38C): [`ccm`].
    Ccm,
    /// XAES-256-GCM (C2SP): [`xaes`].
    Xaes,
    /// EAX (Bellare, Rogaway and Wagner, 2004): [`eax`].
    Eax,
}

/// The properties of an authenticated mode.
#[derive(Debug)]
pub struct Row {
    /// The name, as standards write it.
    pub name: &'static str,
    /// The lengths of keys in bytes, in ascending order.
    pub key_lengths: &'static [usize],
    /// The lengths of keys in words, for error messages.
    key_words: &'static str,
    /// The lengths of nonces.
    pub nonces: Lengths,
    /// True if a message may have no nonce. An empty nonce means that the message has no nonce.
    pub nonce_is_optional: bool,
    /// The lengths of tags.
    pub tags: Lengths,
    /// True if the tag precedes the ciphertext in a string that contains both. Otherwise the tag follows the ciphertext.
    pub has_tag_first: bool,
    /// True if [`Pieces`](crate::stream::Pieces) processes a message. CCM needs the lengths at its start.
    pub streams: bool,
    /// The maximum number of strings of associated data of a message. In SIV, a nonce counts as one of these strings.
    pub max_strings: usize,
    /// The maximum length of a message in bytes. In CCM, a nonce of more than 7 bytes reduces this maximum.
    pub max_data: u64,
    /// The fused AEADs of this mode, for sealing and for opening. A device may support them. `None` if there is no fused AEAD
    /// for the mode.
    pub fused: Option<[FusedAead; 2]>,
    /// The passes of which the mode is composed, for sealing and for opening.
    passes: [&'static [Pass]; 2],
    run: Run,
}

/// Checks the lengths of a message.
type Check = fn(&AeadMessage<'_>) -> Result<()>;

/// Seals or opens messages. All keys have the same size, and the lengths have been checked. After an error, outputs that may
/// have been written are zeroed.
type Process = fn(&dyn Executor, Direction, &mut [AeadMessage<'_>]) -> Result<()>;

/// The functions of a mode.
#[derive(Debug)]
enum Run {
    /// The functions of a mode with one AES key.
    OneKey(Check, Process),
    /// SIV, which has two AES keys.
    Siv,
}

/// The properties that most modes share.
const USUAL: Row = Row {
    name: "",
    key_lengths: &[16, 24, 32],
    key_words: "a key of 16, 24 or 32 bytes",
    nonces: gcm::NONCES,
    nonce_is_optional: false,
    tags: FULL_TAGS,
    has_tag_first: false,
    streams: false,
    max_strings: 1,
    max_data: u64::MAX,
    fused: None,
    passes: [&[]; 2],
    run: Run::Siv,
};

/// The authenticated modes, in the order of [`Aead`].
static TABLE: [Row; Aead::ALL.len()] = [
    Row {
        name: "GCM",
        tags: gcm::TAGS,
        streams: true,
        max_data: gcm::MAX_DATA,
        fused: Some(gcm::FUSED),
        passes: [&[Pass::Ctr32, Pass::Ghash]; 2],
        run: Run::OneKey(gcm::check_message, gcm::run),
        ..USUAL
    },
    Row {
        name: "GCM-SIV",
        key_lengths: &[16, 32],
        key_words: "a key of 16 or 32 bytes",
        nonces: NONCES_OF_12,
        max_data: gcm_siv::MAX_DATA,
        fused: Some(gcm_siv::FUSED),
        passes: [&[Pass::EcbEncrypt, Pass::CtrLittle32, Pass::Polyval]; 2],
        run: Run::OneKey(|message| FusedAead::GcmSivSeal.check_lengths(message), gcm_siv::run),
        ..USUAL
    },
    Row {
        name: "OCB3",
        nonces: ocb::NONCES,
        tags: ALL_TAGS,
        max_data: ocb::MAX_DATA,
        fused: Some(ocb::FUSED),
        passes: [&[Pass::EcbEncrypt], &[Pass::EcbEncrypt, Pass::EcbDecrypt]],
        run: Run::OneKey(|message| FusedAead::OcbSeal.check_lengths(message), ocb::run),
        ..USUAL
    },
    Row {
        name: "SIV",
        key_lengths: &[32, 48, 64],
        key_words: "a key of 32, 48 or 64 bytes",
        nonces: ANY_NONCES,
        nonce_is_optional: true,
        // RFC 5297, section 2.6.
        has_tag_first: true,
        max_strings: siv::MAX_STRINGS,
        passes: [&[Pass::CbcMac, Pass::Ctr]; 2],
        run: Run::Siv,
        ..USUAL
    },
    Row {
        name: "CCM",
        nonces: ccm::NONCES,
        tags: ccm::TAGS,
        streams: true,
        passes: [&[Pass::Ctr, Pass::CbcMac]; 2],
        run: Run::OneKey(ccm::check_message, ccm::run),
        ..USUAL
    },
    Row {
        name: "XAES-256-GCM",
        key_lengths: &[32],
        key_words: "a key of 32 bytes",
        nonces: xaes::NONCES,
        max_data: gcm::MAX_DATA,
        passes: [&[Pass::EcbEncrypt, Pass::Ctr32, Pass::Ghash]; 2],
        run: Run::OneKey(xaes::check_message, xaes::run),
        ..USUAL
    },
    Row {
        name: "EAX",
        nonces: ANY_NONCES,
        tags: ALL_TAGS,
        passes: [&[Pass::Ctr, Pass::CbcMac]; 2],
        run: Run::OneKey(eax::check_message, eax::run),
        ..USUAL
    },
];

impl Row {
    /// True if the mode allows keys of this length in bytes.
    #[inline]
    pub const fn has_keys_of(&self, len: usize) -> bool {
        // Iterators are not available in constant functions.
        let mut lengths = self.key_lengths;
        while let [first, rest @ ..] = lengths {
            if *first == len {
                return true;
            }
            lengths = rest;
        }
        false
    }
}

impl Aead {
    /// All authenticated modes.
    pub const ALL: [Aead; 7] =
        [Aead::Gcm, Aead::GcmSiv, Aead::Ocb, Aead::Siv, Aead::Ccm, Aead::Xaes, Aead::Eax];

    /// The properties of the mode.
    #[inline]
    pub const fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The name of the mode, as standards write it.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The lengths of keys in bytes.
    pub const fn key_lengths(self) -> &'static [usize] {
        self.row().key_lengths
    }

    /// Returns the ranges of the body and of the tag in a string that contains both. `body` and `tag` are their lengths.
    /// [`Aead::split`] and [`Aead::split_mut`] use this function, so the layout is defined only here.
    ///
    /// # Panics
    /// Panics if the sum of the lengths overflows.
    #[inline]
    pub fn layout(self, body: usize, tag: usize) -> (Range<usize>, Range<usize>) {
        let len = body.checked_add(tag).expect("a string in memory has less than 2^64 bytes");
        if self.row().has_tag_first { (tag..len, 0..tag) } else { (0..body, body..len) }
    }

    /// Splits a sealed message into body and tag. Returns `None` if the message is shorter than a tag of `tag` bytes.
    #[inline]
    pub fn split(self, sealed: &[u8], tag: usize) -> Option<(&[u8], &[u8])> {
        let (body, tag) = self.layout(sealed.len().checked_sub(tag)?, tag);
        Some((&sealed[body], &sealed[tag]))
    }

    /// As [`Aead::split`], but returns mutable slices.
    #[inline]
    pub fn split_mut(self, sealed: &mut [u8], tag: usize) -> Option<(&mut [u8], &mut [u8])> {
        let (body, tag) = self.layout(sealed.len().checked_sub(tag)?, tag);
        let (first, second) = sealed.split_at_mut(body.start.max(tag.start));
        Some(if self.row().has_tag_first { (second, first) } else { (first, second) })
    }

    /// Returns body and tag in the order that they have in a string that contains both.
    pub fn in_order<'a>(self, body: &'a [u8], tag: &'a [u8]) -> [&'a [u8]; 2] {
        if self.row().has_tag_first { [tag, body] } else { [body, tag] }
    }

    /// True if the mode can run, by its fused AEAD or by its passes, on an executor that supports the operations for which
    /// `supports` returns true. `size` is the size of the AES key. For GCM, the result is valid for nonces of 12 bytes.
    pub fn is_supported(
        self,
        direction: Direction,
        size: KeySize,
        supports: impl Fn(Operation, KeySize) -> bool,
    ) -> bool {
        let which = direction as usize;
        let row = self.row();
        let composed = || {
            let of_pass = |pass: &Pass| if pass.takes_key(size) { size } else { KeySize::Aes128 };
            row.passes[which].iter().all(|pass| supports(Operation::Pass(*pass), of_pass(pass)))
        };
        row.fused.is_some_and(|fused| supports(Operation::Fused(fused[which]), size)) || composed()
    }

    /// Encrypts and authenticates each message. The keys of all messages must be keys of this mode.
    ///
    /// # Errors
    /// [`Error::Order`] for a key of another mode, or for several strings of associated data in a mode other than SIV;
    /// [`Error::IvLength`], [`Error::TagLength`] or [`Error::TooLong`]. These errors are returned before any message is
    /// processed. Later errors: [`Error::NotSealed`] and errors of devices.
    ///
    #[doc = include_str!("after_error.md")]
    pub fn seal(self, executor: &dyn Executor, messages: &mut [Message<'_>]) -> Result<()> {
        self.run(executor, Direction::Encrypt, messages)
    }

    /// Checks and decrypts each message. If the tag of a message is wrong, its output is zeroed. The outputs of messages with
    /// right tags are valid. The field `status` of each message contains its result.
    ///
    /// # Errors
    /// [`Error::AuthenticationFailed`] if any tag was wrong; otherwise the errors of [`Aead::seal`].
    ///
    #[doc = include_str!("after_error.md")]
    pub fn open(self, executor: &dyn Executor, messages: &mut [Message<'_>]) -> Result<()> {
        self.run(executor, Direction::Decrypt, messages)
    }

    /// Calls [`Aead::seal`] or [`Aead::open`], according to `direction`.
    ///
    /// # Errors
    /// The errors of these functions.
    pub fn run(
        self,
        executor: &dyn Executor,
        direction: Direction,
        messages: &mut [Message<'_>],
    ) -> Result<()> {
        messages.iter_mut().for_each(|message| message.status = Status::Pending);
        if messages.iter().any(|message| message.key.mode != self) {
            return Err(OTHER_KEY);
        }
        if let Run::Siv = self.row().run {
            let sources: Vec<_> = messages.iter().map(Message::siv_source).collect();
            return run_converted(messages, |messages| siv::run(executor, direction, messages, &sources));
        }
        if messages.iter().any(|message| message.aad.len() > 1) {
            return Err(Error::Order {
                what: "several strings of associated data: only SIV takes more than one",
            });
        }
        run_converted(messages, |messages| self.run_messages(executor, direction, messages))
    }

    /// As [`Aead::run`], but for modes with one AES key, and for messages that contain this AES key instead of an [`AeadKey`].
    /// Also allows `AES-192-GCM-SIV`, which no other implementation than OpenSSL has.
    ///
    /// # Errors
    /// The errors of [`Aead::run`], and [`Error::Order`] for SIV.
    ///
    #[doc = include_str!("after_error.md")]
    pub fn run_messages(
        self,
        executor: &dyn Executor,
        direction: Direction,
        messages: &mut [AeadMessage<'_>],
    ) -> Result<()> {
        let Run::OneKey(check, process) = self.row().run else { return Err(OTHER_KEY) };
        run_mode(executor, direction, messages, check, |messages| process(executor, direction, messages))
    }
}

const OTHER_KEY: Error =
    Error::Order { what: "a key of another mode: make the key for the mode that uses it" };

/// Runs messages with one AES key and at most one string of associated data.
fn run_converted(
    messages: &mut [Message<'_>],
    run: impl FnOnce(&mut [AeadMessage<'_>]) -> Result<()>,
) -> Result<()> {
    // A call with a single message is the common case, so it avoids the allocation.
    if let [message] = messages {
        let mut single = [message.as_aead_message()];
        let outcome = run(&mut single);
        let [AeadMessage { status, .. }] = single;
        message.status = status;
        return outcome;
    }
    let mut converted: Vec<_> = messages.iter_mut().map(Message::as_aead_message).collect();
    let outcome = run(&mut converted);
    let statuses = crate::statuses(converted);
    messages.iter_mut().zip(statuses).for_each(|(message, status)| message.status = status);
    outcome
}

impl std::fmt::Display for Aead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

const ANY_NONCES: Lengths = Lengths { ranges: &[0..=usize::MAX], words: "any number of" };

/// A key of an authenticated mode. It is wiped on drop.
#[derive(Debug, Clone)]
pub struct AeadKey {
    mode: Aead,
    /// The AES key. In SIV, the key of S2V.
    key: Key,
    /// The key of CTR in SIV. It is in a box, because an empty `Option<Key>` would contain unused bytes, and moving the value
    /// could copy secrets from the stack into them.
    ctr: Option<Box<Key>>,
}

impl AeadKey {
    /// Creates a key for a mode.
    ///
    /// # Errors
    /// [`Error::ModeKey`] if the mode does not allow keys of this length (see [`Aead::key_lengths`]).
    pub fn new(mode: Aead, bytes: &[u8]) -> Result<AeadKey> {
        let row = mode.row();
        if !row.has_keys_of(bytes.len()) {
            return Err(Error::ModeKey { mode: row.name, expected: row.key_words, got: bytes.len() });
        }
        let (key, ctr) = match mode.row().run {
            Run::Siv => bytes.split_at(bytes.len() / 2),
            Run::OneKey(..) => (bytes, &[][..]),
        };
        let ctr = if ctr.is_empty() { None } else { Some(Box::new(Key::new(ctr)?)) };
        Ok(AeadKey { mode, key: Key::new(key)?, ctr })
    }

    /// Creates a key of GCM-SIV from an AES key of any size. [`AeadKey::new`] rejects keys of 24 bytes, because RFC 8452 does
    /// not define them. With such a key, the mode is OpenSSL's `AES-192-GCM-SIV`, and other programs cannot open its messages.
    pub fn gcm_siv(key: Key) -> AeadKey {
        AeadKey { mode: Aead::GcmSiv, key, ctr: None }
    }

    /// The mode.
    #[inline]
    pub fn mode(&self) -> Aead {
        self.mode
    }

    /// The size of the AES key, or of each of the two AES keys.
    pub fn size(&self) -> KeySize {
        self.key.size()
    }

    /// The AES key; `None` for SIV, which has two keys.
    #[inline]
    pub fn key(&self) -> Option<&Key> {
        if self.ctr.is_none() { Some(&self.key) } else { None }
    }
}

/// One message of a batch.
pub struct Message<'d> {
    /// The key.
    pub key: &'d AeadKey,
    /// The nonce. In SIV, the nonce is optional. If it is not empty, it is processed as the last string of associated data (RFC
    /// 5297, section 3).
    pub nonce: &'d [u8],
    /// The strings of associated data. Modes other than SIV allow at most one string.
    pub aad: &'d [&'d [u8]],
    /// The data. Sealing reads plaintext and writes ciphertext. Opening reads ciphertext and writes plaintext.
    pub data: Data<'d>,
    /// The tag. In SIV, the synthetic IV.
    pub tag: Tag<'d>,
    /// The outcome.
    pub status: Status,
}

impl std::fmt::Debug for Message<'_> {
    /// Prints no contents of buffers.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Message").field("key", &self.key).field("data", &self.data).finish_non_exhaustive()
    }
}

impl<'d> Message<'d> {
    /// Returns the message as an [`AeadMessage`], with only the first string of associated data.
    fn as_aead_message(&mut self) -> AeadMessage<'_> {
        let aad = self.aad.first().copied().unwrap_or_default();
        let (data, tag) = (self.data.reborrow(), self.tag.reborrow());
        AeadMessage { key: &self.key.key, nonce: self.nonce, aad, data, tag, status: self.status }
    }

    /// Returns the parts of a message of SIV that [`AeadMessage`] does not contain: the key of CTR, and all strings of
    /// associated data.
    fn siv_source(&self) -> siv::Source<'d> {
        let ctr = self.key.ctr.as_deref().expect("the mode of the key was checked");
        let nonce = (!self.nonce.is_empty()).then_some(self.nonce);
        siv::Source { ctr, strings: self.aad.iter().copied().chain(nonce).collect() }
    }
}
