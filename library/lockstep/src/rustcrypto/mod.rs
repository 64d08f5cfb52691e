//! The traits of RustCrypto: [`aead`] 0.6 and [`cipher`] 0.5. Feature `rustcrypto`.
//!
//! The types have the names and parameters of those in the crates `aes-gcm`, `aes-gcm-siv`, `ocb3`, `aes-siv`, `eax`, `ccm`, `aes`,
//! `ctr` and `cbc`, and can be used in their place. Code that is generic over the traits works with both the types of this module
//! and the types of those crates.
//!
//! ```
//! use lockstep::rustcrypto::aead::{Aead, KeyInit, Payload};
//! use lockstep::rustcrypto::Aes256Gcm;
//!
//! # fn main() -> lockstep::rustcrypto::aead::Result<()> {
//! let (mut key, mut nonce) = ([0; 32], [0; 12]);
//! getrandom::fill(&mut key).unwrap();
//! getrandom::fill(&mut nonce).unwrap();
//! let cipher = Aes256Gcm::new(&key.into());
//! let sealed = cipher.encrypt(&nonce.into(), Payload { msg: b"hello", aad: b"header" })?;
//! assert_eq!(cipher.decrypt(&nonce.into(), Payload { msg: &sealed, aad: b"header" })?, b"hello");
//! # Ok(())
//! # }
//! ```
//!
//! **Authenticated modes** are those of [`crate::aead`]. All messages of the process share one [`Engine`](crate::Engine), which is
//! made for the first message. It uses the CPU: messages of up to 16 KiB are computed on the calling thread, and longer messages may
//! be divided among threads. If the environment names another device or a kernel, this device or kernel runs all messages.
//!
//! Every failure is the same [`aead::Error`]. If the environment names a device or a kernel that does not exist, every message fails, and
//! its buffer is unchanged; [`Engine::new`](crate::Engine::new) returns the reason. If a device fails while it decrypts a message, the
//! buffer is zeroed, as after a wrong tag: keep a copy of a ciphertext that must be decrypted again.
//!
//! **Block ciphers, [`ctr`] and [`cbc`]** run on the calling thread, and do not read the environment. They do not authenticate:
//! see [`crate::hazmat`].
//!
//! All types wipe their keys on drop. Where input and output are different buffers, the input is copied first.

mod authenticated;
mod block;
pub mod cbc;
pub mod ctr;

pub use ::aead::{self, Key};
pub use ::cipher;
pub use ::cipher::{KeyInit, KeyIvInit};
pub use authenticated::{
    Aes128Gcm, Aes128GcmSiv, Aes128SivAead, Aes256Gcm, Aes256GcmSiv, Aes256SivAead, AesGcm, AesGcmSiv,
    AuthenticatedCipher, Ccm, Eax, Nonce, Ocb3, Tag,
};
pub use block::{Aes, Aes128, Aes192, Aes256};
