//! The modes piece by piece: init, update with any split, final; and seek where the mode allows it.
//!
//! What an incremental decryption gives out is unauthenticated until `finish`: for [`GcmStream`] and [`CcmStream`]
//! it must not be acted on before the tag was found right.

mod aead;
mod cipher;
mod mac;

pub use aead::{CcmStream, GcmStream};
pub use cipher::{CipherStream, Padding};
pub use mac::CmacStream;
