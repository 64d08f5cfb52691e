//! Authenticated encryption of messages: the modes of [`Aead`], for one message or for a batch.
//!
//! Programs, and the interfaces in other languages, use the authenticated modes only through this module. [`Aead::row`] has the
//! properties of a mode: lengths of keys, nonces and tags, and the place of the tag. Nonces are the caller's responsibility: with
//! most modes a nonce must never be used twice with one key (see [`crate::hazmat`]). For files and streams, use [`crate::encrypt`]
//! and related functions, which generate their nonces.
//!
//! ```
//! use lockstep::Engine;
//! use lockstep::aead::{Aead, Key};
//!
//! # fn main() -> lockstep::aead::Result<()> {
//! # let engine = Engine::new().unwrap();
//! let (mut secret, mut random) = ([0; 32], [0; 12]);
//! getrandom::fill(&mut secret).unwrap();
//! let key = Key::new(Aead::GcmSiv, &secret)?;
//! getrandom::fill(&mut random).unwrap();
//! let sealed = key.seal(&engine, &random, &[b"header"], b"hello")?;
//! assert_eq!(sealed.len(), 5 + 16);
//! assert_eq!(key.open(&engine, &random, &[b"header"], &sealed)?, b"hello");
//!
//! // In place, with the tag in separate memory.
//! let (mut data, mut tag) = (*b"hello", [0; 16]);
//! getrandom::fill(&mut random).unwrap();
//! key.seal_in_place(&engine, &random, &[], &mut data, &mut tag)?;
//! key.open_in_place(&engine, &random, &[], &mut data, &tag)?;
//! assert_eq!(&data, b"hello");
//! # Ok(())
//! # }
//! ```
//!
//! A batch has a key, a nonce and a status for each message:
//!
//! ```
//! use lockstep::Engine;
//! use lockstep::aead::{self, Aead, Data, Key, Message, Status, Tag};
//!
//! # fn main() -> lockstep::aead::Result<()> {
//! # let engine = Engine::new().unwrap();
//! let mut secrets = [[0; 16]; 2];
//! getrandom::fill(secrets.as_flattened_mut()).unwrap();
//! let keys = [Key::new(Aead::Gcm, &secrets[0])?, Key::new(Aead::Gcm, &secrets[1])?];
//! // The first message of each key.
//! let counter = [0; 12];
//! let mut data = [[0; 100]; 2];
//! let mut tags = [[0; 16]; 2];
//! let messages = keys.iter().zip(&mut data).zip(&mut tags).map(|((key, data), tag)| Message {
//!     key,
//!     nonce: &counter,
//!     aad: &[],
//!     data: Data::in_place(data),
//!     tag: Tag::Write(tag),
//!     status: Status::Pending,
//! });
//! aead::seal(&engine, &mut messages.collect::<Vec<_>>())?;
//! # Ok(())
//! # }
//! ```
//!
//! **Where the work runs.** A [`Caller`] supplies the engine, and decides between the calling thread and the planner: a message up to
//! [`Caller::inline_limit`] is computed on the calling thread. For GCM, this computation allocates no memory after the key's first
//! message, unless several threads use the key at the same time. The planner gets all longer messages, through [`Caller::run_long`].
//! It gets all messages if the user has chosen a device or a kernel. An [`Engine`] is a caller with the default rules.
//!
//! **Errors.** If the tag of a message is wrong, its output is zeroed, so that it contains no plaintext. If a device has left a
//! message unprocessed, sealing returns [`Error::NotSealed`], and zeroes the output.
//!
//! [`Engine`]: crate::Engine

mod batch;
mod caller;
mod key;
mod small;

pub use batch::{HostMessage, open, run, run_on_host, seal};
pub use caller::{Caller, CallingThread, INLINE_LIMIT};
pub use key::Key;
pub use lockstep_core::data::{Data, HostData};
pub use lockstep_core::work::{Status, Tag};
pub use lockstep_core::{Error, Result};
pub use lockstep_modes::Direction;
pub use lockstep_modes::aead::{Aead, AeadKey, Lengths, Message, Row};
pub use lockstep_modes::stream::MessageLengths;
/// Encrypts a message in pieces: associated data first, then data, in any split, then the tag. GCM does not need to know the
/// lengths in advance; CCM does. The other modes process a message in one call.
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
pub use lockstep_modes::stream::Sealer;
