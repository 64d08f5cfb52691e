//! Keys, and the functions that process one message.

use std::ops::Deref;

use lockstep_core::data::{Data, HostData};
use lockstep_core::work::{Status, Tag};
use lockstep_core::{Error, Result};
use lockstep_modes::aead::{Aead, AeadKey, Message};
use lockstep_modes::{Direction, Executor};
use zeroize::Zeroize;

use super::caller::{Caller, CallingThread};
use super::small::{self, Context};

/// The length of tags in bytes, unless [`Key::with_tag_len`] has set another length.
const TAG: usize = 16;

/// A key of an authenticated mode. It is wiped on drop. Threads may use a key at the same time.
///
/// The parameters of the functions below: `nonce` must have a length that the mode allows, and is optional in SIV. `aad` is a list
/// of at most [`Row::max_strings`](super::Row::max_strings) strings of associated data.
///
/// The errors of all calls are:
/// [`Error::IvLength`], [`Error::TooLong`] and [`Error::Order`] for arguments that the mode does not allow;
/// [`Error::OutputLength`] for an output of a wrong length; [`Error::TagLength`]; [`Error::NotSealed`] and errors of devices.
/// Opening also returns [`Error::AuthenticationFailed`] if the message is not authentic. The output of a failed `open` is zeroed, unless
/// the error is `IvLength`, `TagLength`, `OutputLength` or `Order`: then the arguments are wrong, and the output is unchanged.
pub struct Key {
    key: AeadKey,
    /// Number of bytes of the tag in a string that has both ciphertext and tag.
    tag: usize,
    /// Context for small messages of GCM.
    small: Context,
}

impl Key {
    /// A key for a mode, from its bytes.
    ///
    /// # Errors
    /// [`Error::ModeKey`] if the mode does not have keys of this length: see [`Aead::key_lengths`].
    pub fn new(mode: Aead, bytes: &[u8]) -> Result<Key> {
        Ok(AeadKey::new(mode, bytes)?.into())
    }

    /// Sets the number of bytes of the tag in strings that have both ciphertext and tag. Default: 16.
    ///
    /// # Errors
    /// [`Error::TagLength`] if the mode has no tags of this length.
    #[inline]
    pub fn with_tag_len(mut self, tag: usize) -> Result<Key> {
        let row = self.mode().row();
        row.tags.check_tag(row.name, tag)?;
        self.tag = tag;
        Ok(self)
    }

    /// The number of bytes of the tag in strings that have both ciphertext and tag.
    #[inline]
    pub fn tag_len(&self) -> usize {
        self.tag
    }

    /// Encrypts and authenticates a message; returns ciphertext and tag as one string, in the order of the mode.
    ///
    /// # Errors
    /// See [`Key`].
    pub fn seal(&self, caller: &impl Caller, nonce: &[u8], aad: &[&[u8]], plain: &[u8]) -> Result<Vec<u8>> {
        let mut sealed = vec![0; plain.len() + self.tag];
        self.seal_into(caller, nonce, aad, plain, &mut sealed)?;
        Ok(sealed)
    }

    /// Checks and decrypts a string of ciphertext and tag; returns the plaintext.
    ///
    /// # Errors
    /// See [`Key`].
    pub fn open(&self, caller: &impl Caller, nonce: &[u8], aad: &[&[u8]], sealed: &[u8]) -> Result<Vec<u8>> {
        let len = sealed.len().checked_sub(self.tag).ok_or(Error::AuthenticationFailed)?;
        let mut plain = vec![0; len];
        self.open_into(caller, nonce, aad, sealed, &mut plain)?;
        Ok(plain)
    }

    /// Does the same as [`Key::seal`], but writes to `sealed`, which has the length of plaintext and tag.
    ///
    /// # Errors
    /// See [`Key`].
    #[inline]
    pub fn seal_into(
        &self,
        caller: &impl Caller,
        nonce: &[u8],
        aad: &[&[u8]],
        plain: &[u8],
        sealed: &mut [u8],
    ) -> Result<()> {
        let (needed, got) = (plain.len() + self.tag, sealed.len());
        let parts = if needed == got { self.mode().split_mut(sealed, self.tag) } else { None };
        let (body, tag) = parts.ok_or(Error::OutputLength { needed, got })?;
        self.run(caller, nonce, aad, HostData::copy(plain, body)?, Tag::Write(tag))
    }

    /// Does the same as [`Key::open`], but writes to `plain`, which has the length of the plaintext.
    ///
    /// # Errors
    /// See [`Key`].
    #[inline]
    pub fn open_into(
        &self,
        caller: &impl Caller,
        nonce: &[u8],
        aad: &[&[u8]],
        sealed: &[u8],
        plain: &mut [u8],
    ) -> Result<()> {
        let (body, tag) = self.mode().split(sealed, self.tag).ok_or(Error::AuthenticationFailed)?;
        self.run(caller, nonce, aad, HostData::copy(body, plain)?, Tag::Expect(tag))
    }

    /// Encrypts data in place, and writes the tag, which may have any length that the mode allows.
    ///
    /// # Errors
    /// See [`Key`].
    pub fn seal_in_place(
        &self,
        caller: &impl Caller,
        nonce: &[u8],
        aad: &[&[u8]],
        data: &mut [u8],
        tag: &mut [u8],
    ) -> Result<()> {
        self.run(caller, nonce, aad, HostData::InPlace(data), Tag::Write(tag))
    }

    /// Checks the tag and decrypts data in place.
    ///
    /// # Errors
    /// See [`Key`].
    pub fn open_in_place(
        &self,
        caller: &impl Caller,
        nonce: &[u8],
        aad: &[&[u8]],
        data: &mut [u8],
        tag: &[u8],
    ) -> Result<()> {
        self.run(caller, nonce, aad, HostData::InPlace(data), Tag::Expect(tag))
    }

    /// Processes one message, in place or from input to output. With [`Tag::Write`], encrypts the data and writes the tag to
    /// separate memory. With [`Tag::Expect`], checks the tag and decrypts the data. All other functions that process a message call
    /// this function.
    ///
    /// # Errors
    /// See [`Key`].
    #[inline]
    pub fn run(
        &self,
        caller: &impl Caller,
        nonce: &[u8],
        aad: &[&[u8]],
        mut data: HostData<'_>,
        mut tag: Tag<'_>,
    ) -> Result<()> {
        let bytes = data.len() + aad.iter().map(|aad| aad.len()).sum::<usize>();
        if let (Aead::Gcm, Some(key), [] | [_]) = (self.mode(), self.key.key(), aad)
            && bytes <= caller.inline_limit()
            && let Some(kernel) = caller.inline_kernel()
        {
            let aad = aad.first().copied().unwrap_or_default();
            let message = |gcm: &mut _| small::run(gcm, nonce, aad, data.reborrow(), &mut tag);
            match self.small.run(kernel, key.bytes(), message) {
                Some(Status::Done) => return Ok(()),
                Some(_) => return Err(Error::AuthenticationFailed),
                // The general path below processes the message, or returns an error that states why the message is invalid.
                None => {}
            }
        }
        self.run_by_executor(caller, bytes, nonce, aad, data, tag)
    }

    /// A separate function, so that the code for small messages of GCM stays short.
    #[inline(never)]
    fn run_by_executor(
        &self,
        caller: &impl Caller,
        bytes: usize,
        nonce: &[u8],
        aad: &[&[u8]],
        mut data: HostData<'_>,
        tag: Tag<'_>,
    ) -> Result<()> {
        let direction = if matches!(tag, Tag::Write(_)) { Direction::Encrypt } else { Direction::Decrypt };
        let body = data.reborrow();
        let run = move |executor: &dyn Executor| {
            let (key, data) = (&self.key, Data::Host(body));
            let mut messages = [Message { key, nonce, aad, data, tag, status: Status::Pending }];
            self.mode().run(executor, direction, &mut messages)
        };
        let is_small = bytes <= caller.inline_limit();
        let kernel = if is_small { caller.inline_kernel() } else { None };
        let outcome = match kernel {
            Some(kernel) => run(&CallingThread(kernel)),
            None => caller.engine().and_then(|engine| {
                let run = || run(engine.planner());
                if is_small { run() } else { caller.run_long(run) }
            }),
        };
        use Error::{IvLength, Order, OutputLength, TagLength};
        match (direction, &outcome) {
            // These errors are returned before any data are processed.
            (_, Err(IvLength { .. } | TagLength { .. } | OutputLength { .. } | Order { .. })) => {}
            (Direction::Decrypt, Err(_)) => data.output().zeroize(),
            _ => {}
        }
        outcome
    }
}

impl From<AeadKey> for Key {
    #[inline]
    fn from(key: AeadKey) -> Key {
        Key { key, tag: TAG, small: Context::new() }
    }
}

impl Clone for Key {
    /// Returns a copy that shares no memory with this key.
    fn clone(&self) -> Key {
        Key { tag: self.tag, ..self.key.clone().into() }
    }
}

impl Deref for Key {
    type Target = AeadKey;

    /// Returns the key in the type that the messages of a batch refer to.
    #[inline]
    fn deref(&self) -> &AeadKey {
        &self.key
    }
}

impl std::fmt::Debug for Key {
    /// Prints no byte of the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("mode", &self.mode()).field("tag", &self.tag).finish_non_exhaustive()
    }
}
