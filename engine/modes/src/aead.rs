//! The authenticated modes behind one type, for callers that choose the mode at run time.

use lockstep_core::data::Data;
use lockstep_core::error::{Error, Result};
use lockstep_core::key::Key;
use lockstep_core::work::{AeadMessage, Status, Tag};

use crate::executor::Executor;
use crate::siv::{SivKey, SivMessage};
use crate::{Direction, ccm, gcm, gcm_siv, ocb, siv, xaes};

/// An authenticated mode.
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
}

impl Aead {
    /// All authenticated modes.
    pub const ALL: [Aead; 6] = [Aead::Gcm, Aead::GcmSiv, Aead::Ocb, Aead::Siv, Aead::Ccm, Aead::Xaes];

    /// The name of the mode, as standards write it.
    pub const fn name(self) -> &'static str {
        match self {
            Aead::Gcm => "GCM",
            Aead::GcmSiv => "GCM-SIV",
            Aead::Ocb => "OCB3",
            Aead::Siv => "SIV",
            Aead::Ccm => "CCM",
            Aead::Xaes => "XAES-256-GCM",
        }
    }

    /// The lengths of keys in bytes.
    pub const fn key_lengths(self) -> &'static [usize] {
        match self {
            Aead::Gcm | Aead::Ocb | Aead::Ccm => &[16, 24, 32],
            Aead::GcmSiv => &[16, 32],
            Aead::Siv => &[32, 48, 64],
            Aead::Xaes => &[32],
        }
    }

    /// Encrypts and authenticates each message. All messages have keys of this mode.
    ///
    /// # Errors
    /// [`Error::Order`] for a key of another mode, or for several strings of associated data in a mode other than SIV; the errors
    /// of the mode's `seal`.
    ///
    #[doc = include_str!("after_error.md")]
    pub fn seal(self, executor: &dyn Executor, messages: &mut [Message<'_>]) -> Result<()> {
        self.run(executor, Direction::Encrypt, messages)
    }

    /// Checks and decrypts each message. The output of a message whose tag is wrong is zeroed; the other outputs are valid. The
    /// field `status` of each message has its result.
    ///
    /// # Errors
    /// [`Error::AuthenticationFailed`] if any tag was wrong; otherwise the errors of [`Aead::seal`] and of the mode's `open`.
    ///
    #[doc = include_str!("after_error.md")]
    pub fn open(self, executor: &dyn Executor, messages: &mut [Message<'_>]) -> Result<()> {
        self.run(executor, Direction::Decrypt, messages)
    }

    fn run(self, executor: &dyn Executor, direction: Direction, messages: &mut [Message<'_>]) -> Result<()> {
        messages.iter_mut().for_each(|message| message.status = Status::Pending);
        if messages.iter().any(|message| message.key.mode != self) {
            return Err(Error::Order {
                what: "a key of another mode: make the key for the mode that uses it",
            });
        }
        match self {
            Aead::Siv => run_siv(executor, direction, messages),
            _ => self.run_with_one_key(executor, direction, messages),
        }
    }

    fn run_with_one_key(
        self,
        executor: &dyn Executor,
        direction: Direction,
        messages: &mut [Message<'_>],
    ) -> Result<()> {
        type Run = fn(&dyn Executor, &mut [AeadMessage<'_>]) -> Result<()>;
        let (seal, open): (Run, Run) = match self {
            Aead::Gcm => (gcm::seal, gcm::open),
            Aead::GcmSiv => (gcm_siv::seal, gcm_siv::open),
            Aead::Ocb => (ocb::seal, ocb::open),
            Aead::Ccm => (ccm::seal, ccm::open),
            Aead::Xaes => (xaes::seal, xaes::open),
            Aead::Siv => unreachable!("SIV has keys of its own"),
        };
        let run = if direction == Direction::Encrypt { seal } else { open };
        // A single message is the common case. It needs no allocation.
        if let [message] = messages {
            let mut single = [message.as_aead_message()?];
            let outcome = run(executor, &mut single);
            let status = single[0].status;
            message.status = status;
            return outcome;
        }
        let mut converted = messages.iter_mut().map(Message::as_aead_message).collect::<Result<Vec<_>>>()?;
        let outcome = run(executor, &mut converted);
        let statuses: Vec<_> = converted.iter().map(|message| message.status).collect();
        set_statuses(messages, &statuses);
        outcome
    }
}

impl std::fmt::Display for Aead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A key of an authenticated mode. It is wiped on drop.
#[derive(Debug, Clone)]
pub struct AeadKey {
    mode: Aead,
    keys: Keys,
}

#[derive(Debug, Clone)]
enum Keys {
    One(Key),
    Siv(SivKey),
}

impl AeadKey {
    /// A key for a mode.
    ///
    /// # Errors
    /// [`Error::ModeKey`] if the mode does not have keys of this length: see [`Aead::key_lengths`].
    pub fn new(mode: Aead, bytes: &[u8]) -> Result<AeadKey> {
        if !mode.key_lengths().contains(&bytes.len()) {
            let expected = match mode {
                Aead::Gcm | Aead::Ocb | Aead::Ccm => "a key of 16, 24 or 32 bytes",
                Aead::GcmSiv => "a key of 16 or 32 bytes",
                Aead::Siv => "a key of 32, 48 or 64 bytes",
                Aead::Xaes => "a key of 32 bytes",
            };
            return Err(Error::ModeKey { mode: mode.name(), expected, got: bytes.len() });
        }
        let keys = match mode {
            Aead::Siv => Keys::Siv(SivKey::new(bytes)?),
            _ => Keys::One(Key::new(bytes)?),
        };
        Ok(AeadKey { mode, keys })
    }

    /// The mode.
    pub fn mode(&self) -> Aead {
        self.mode
    }

    /// The AES key; `None` for SIV, which has two keys.
    pub fn key(&self) -> Option<&Key> {
        match &self.keys {
            Keys::One(key) => Some(key),
            Keys::Siv(_) => None,
        }
    }
}

/// One message of a batch.
pub struct Message<'d> {
    /// The key.
    pub key: &'d AeadKey,
    /// The nonce. In SIV it is optional: if it is not empty, it is the last string of associated data (RFC 5297, section 3).
    pub nonce: &'d [u8],
    /// Strings of associated data: at most one, except in SIV.
    pub aad: &'d [&'d [u8]],
    /// Sealing reads plaintext and writes ciphertext. Opening does the reverse.
    pub data: Data<'d>,
    /// The tag; in SIV the synthetic IV.
    pub tag: Tag<'d>,
    /// The outcome.
    pub status: Status,
}

impl std::fmt::Debug for Message<'_> {
    /// Prints no content of buffers.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Message")
            .field("key", &self.key)
            .field("data", &self.data)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl Message<'_> {
    fn as_aead_message(&mut self) -> Result<AeadMessage<'_>> {
        let Keys::One(key) = &self.key.keys else { unreachable!("the mode of the key was checked") };
        let aad = match self.aad {
            [] => &[][..],
            [aad] => *aad,
            _ => {
                return Err(Error::Order {
                    what: "several strings of associated data: only SIV takes more than one",
                });
            }
        };
        let tag = match &mut self.tag {
            Tag::Write(tag) => Tag::Write(tag),
            Tag::Expect(tag) => Tag::Expect(tag),
        };
        Ok(AeadMessage { key, nonce: self.nonce, aad, data: self.data.reborrow(), tag, status: self.status })
    }
}

fn run_siv(executor: &dyn Executor, direction: Direction, messages: &mut [Message<'_>]) -> Result<()> {
    // The strings of all messages, which must live as long as the messages.
    let strings: Vec<Vec<&[u8]>> = messages
        .iter()
        .map(|message| {
            let nonce = (!message.nonce.is_empty()).then_some(message.nonce);
            message.aad.iter().copied().chain(nonce).collect()
        })
        .collect();
    let converted = messages.iter_mut().zip(&strings).map(|(message, aad)| {
        let Keys::Siv(key) = &message.key.keys else { unreachable!("the mode of the key was checked") };
        let tag = match &mut message.tag {
            Tag::Write(tag) => Tag::Write(tag),
            Tag::Expect(tag) => Tag::Expect(tag),
        };
        SivMessage { key, aad, data: message.data.reborrow(), tag, status: Status::Pending }
    });
    let mut converted: Vec<_> = converted.collect();
    let outcome = match direction {
        Direction::Encrypt => siv::seal(executor, &mut converted),
        Direction::Decrypt => siv::open(executor, &mut converted),
    };
    let statuses: Vec<_> = converted.iter().map(|message| message.status).collect();
    set_statuses(messages, &statuses);
    outcome
}

fn set_statuses(messages: &mut [Message<'_>], statuses: &[Status]) {
    for (message, status) in messages.iter_mut().zip(statuses) {
        message.status = *status;
    }
}
