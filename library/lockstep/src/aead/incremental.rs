//! Messages in pieces.

use lockstep_core::Result;
use lockstep_modes::Direction;
use lockstep_modes::aead::AeadKey;
use lockstep_modes::stream::{AeadStream, MessageLengths};

use crate::Engine;

/// Encrypts a message in pieces: first the associated data, then the data, each in pieces of any lengths. The tag is computed last.
/// CCM needs the lengths in advance, and GCM does not. All other modes process a message in one call.
///
/// ```
/// use lockstep::Engine;
/// use lockstep::aead::{Aead, Key, Sealer};
/// use lockstep::hazmat::Opener;
///
/// # fn main() -> lockstep::aead::Result<()> {
/// # let engine = Engine::new().unwrap();
/// let (mut secret, mut random) = ([0; 32], [0; 12]);
/// getrandom::fill(&mut secret).unwrap();
/// getrandom::fill(&mut random).unwrap();
/// let key = Key::new(Aead::Gcm, &secret)?;
/// let (mut sealed, mut plain, mut tag) = ([0; 5], [0; 5], [0; 16]);
/// let mut sealer = Sealer::new(&engine, &key, &random, None)?;
/// sealer.aad(b"header")?;
/// sealer.update(b"he", &mut sealed[..2])?;
/// sealer.update(b"llo", &mut sealed[2..])?;
/// sealer.finish(&mut tag)?;
/// let mut opener = Opener::new(&engine, &key, &random, None)?;
/// opener.aad(b"header")?;
/// opener.update(&sealed, &mut plain)?;
/// opener.finish(&tag)?;
/// assert_eq!(&plain, b"hello");
/// # Ok(())
/// # }
/// ```
pub type Sealer = Pieces<true>;

/// Decrypts a message in pieces.
///
/// **The output of [`update`](Pieces::update) is not authenticated.** Use no part of it before `finish` has succeeded, and discard it
/// if `finish` fails: an attacker may have chosen it.
pub type Opener = Pieces<false>;

/// A message in pieces: [`Sealer`] or [`Opener`].
pub struct Pieces<const SEALS: bool>(AeadStream);

impl<const SEALS: bool> Pieces<SEALS> {
    /// Starts a message. CCM needs the lengths of the message.
    ///
    /// # Errors
    /// [`Error::IvLength`](super::Error::IvLength), [`Error::TagLength`](super::Error::TagLength),
    /// [`Error::TooLong`](super::Error::TooLong); [`Error::Order`](super::Error::Order) for CCM without lengths and for modes
    /// that process a message in one call; errors of devices.
    pub fn new(
        engine: &Engine,
        key: &AeadKey,
        nonce: &[u8],
        lengths: Option<MessageLengths>,
    ) -> Result<Self> {
        let direction = if SEALS { Direction::Encrypt } else { Direction::Decrypt };
        AeadStream::new(engine.planner().clone(), direction, key, nonce, lengths).map(Pieces)
    }

    /// Adds associated data.
    ///
    /// # Errors
    /// The errors of [`AeadStream::aad`].
    pub fn aad(&mut self, aad: &[u8]) -> Result<()> {
        self.0.aad(aad)
    }

    /// Processes the next bytes; the output has the same length.
    ///
    /// # Errors
    /// The errors of [`AeadStream::update`].
    pub fn update(&mut self, input: &[u8], output: &mut [u8]) -> Result<()> {
        self.0.update(input, output)
    }

    /// Processes the next bytes in place.
    ///
    /// # Errors
    /// The errors of [`AeadStream::update`].
    pub fn update_in_place(&mut self, data: &mut [u8]) -> Result<()> {
        self.0.update_in_place(data)
    }
}

impl Sealer {
    /// Ends the message, and writes its tag.
    ///
    /// # Errors
    /// The errors of [`AeadStream::finish`].
    pub fn finish(self, tag: &mut [u8]) -> Result<()> {
        self.0.finish(tag)
    }
}

impl Opener {
    /// Ends the message, and compares its tag in constant time.
    ///
    /// # Errors
    /// The errors of [`AeadStream::verify`].
    pub fn finish(self, tag: &[u8]) -> Result<()> {
        self.0.verify(tag)
    }
}
