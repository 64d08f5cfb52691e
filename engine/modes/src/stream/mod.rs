//! The incremental modes. A message is started, processed in updates with pieces of any length, and finished. Some modes also
//! support seeking to a position.
//!
//! The output of an incremental decryption is not authenticated before the end of the message. The output of [`Opener`]
//! must not be used before the tag has been verified.

mod aead;
mod cipher;
mod mac;

pub use aead::{MessageLengths, Opener, Pieces, Sealer};
pub use cipher::{CipherStream, Padding};
pub use mac::CmacStream;
