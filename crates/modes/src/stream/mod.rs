//! The incremental modes: init, update with any split, final; and seek if the mode supports it.
//!
//! The output of an incremental decryption is unauthenticated until its end: for [`GcmStream`] and [`CcmStream`] it
//! must not be used before the tag has been verified.

mod aead;
mod cipher;
mod mac;

pub use aead::{CcmStream, GcmStream};
pub use cipher::{CipherStream, Padding};
pub use mac::CmacStream;
