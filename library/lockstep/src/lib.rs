//! Lockstep: AES on parallel hardware, for files, streams and buffers.
//!
//! [`encrypt`] and [`decrypt`] process streams. [`encrypt_file`] and [`decrypt_file`] process files. [`seal`] and
//! [`open`] process buffers. [`Reader`] reads any part of an encrypted file. All of them use one published format, C2SP
//! chunked encryption ("Cobblestone", <https://c2sp.org/chunked-encryption>). The format is authenticated and
//! key-committing, and is divided into chunks that are sealed and opened in parallel on the devices of an [`Engine`].
//!
//! ```
//! use lockstep::{Engine, FileKey};
//!
//! # fn main() -> lockstep::Result<()> {
//! let engine = Engine::new()?;
//! let key = FileKey::generate()?;
//! let mut secret = Vec::new();
//! lockstep::encrypt(&engine, &key, b"backups/monday", &b"hello"[..], &mut secret, Default::default())?;
//! let mut plain = Vec::new();
//! lockstep::decrypt(&engine, &key, b"backups/monday", &secret[..], &mut plain, Default::default())?;
//! assert_eq!(plain, b"hello");
//! # Ok(())
//! # }
//! ```
//!
//! Files and folders need the feature `files`, which is a default feature and requires Unix.
//!
//! No plaintext is released before its chunk has been verified, keys are wiped on drop and never printed, and errors
//! state what to do. [`aead`] has authenticated encryption of messages with the caller's nonces. [`hazmat`] has the raw AES
//! modes, which do not give these guarantees: the caller is responsible for safe use.
#![forbid(unsafe_code)]

/// Implements `Debug` for a type that has secrets, callbacks or large data. The arguments are the generic parameters, the type, its name,
/// and the fields that the output shows.
#[doc(hidden)]
#[macro_export]
macro_rules! impl_debug {
    ([$($generics:tt)*] $type:ty, $name:literal $(, $field:ident)*) => {
        impl<$($generics)*> std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct($name)$(.field(stringify!($field), &self.$field))*.finish_non_exhaustive()
            }
        }
    };
}

pub mod aead;
pub mod cobblestone;
mod creator;
pub mod engine;
pub mod envelope;
mod error;
#[cfg(feature = "files")]
pub mod file;
#[cfg(feature = "files")]
mod folder;
pub mod foreign;
pub mod hazmat;
pub mod keyfile;
#[cfg(feature = "files")]
pub mod output;
mod quoted;
#[doc(hidden)]
pub mod read;
#[cfg(feature = "rustcrypto")]
pub mod rustcrypto;
#[doc(hidden)]
pub mod text;
#[cfg(feature = "files")]
#[doc(hidden)]
pub mod tree;

pub use cobblestone::{
    EncryptWriter, FileKey, Options, ReadAt, Reader, Suite, Summary, ciphertext_len, decrypt, encrypt, open,
    open_into, plaintext_len, seal, seal_into,
};
pub use engine::Engine;
pub use envelope::Envelope;
pub use error::{Error, Result};
#[cfg(feature = "files")]
pub use file::{FileOptions, decrypt_file, encrypt_file};
#[cfg(feature = "files")]
pub use output::{FileMode, OutputFile, OutputOptions, Sparse};
pub use quoted::quoted;
