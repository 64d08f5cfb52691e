//! C2SP chunked encryption, "Cobblestone" (<https://c2sp.org/chunked-encryption>).
//!
//! A message consists of a header and chunks. The header is a random salt and a commitment to the key. The key of the
//! chunks and the commitment are derived from the [`FileKey`], the salt and a *context*. The context is data about the
//! message that both sides know, and may be empty. A chunk is 16384 bytes of plaintext sealed by AES-GCM. The last
//! chunk is always shorter, and may be empty, so that truncation at a chunk boundary is detected.
//!
//! | for | functions |
//! |---|---|
//! | a reader and a writer | [`encrypt()`], [`decrypt()`]: parallel, in bounded memory |
//! | a buffer | [`seal`], [`open`], [`seal_into`], [`open_into`] |
//! | the trait `Write` | [`EncryptWriter`] |
//! | a part of a file | [`Reader`] |
//!
//! The functions in [`crate::file`] encrypt and decrypt files.

mod chunks;
mod format;
mod header;
mod io;
mod key;
mod message;
#[cfg(feature = "files")]
pub(crate) mod open_file;
mod options;
mod pipeline;
mod random_access;
mod writer;

pub use format::{
    CHUNK, ENCRYPTED_CHUNK, HEADER, MAX_CHUNKS, MAX_PLAINTEXT, Suite, TAG, ciphertext_len, plaintext_len,
};
pub use header::MessageKey;
pub use key::FileKey;
#[doc(hidden)]
pub use key::random;
pub use message::{decrypt, encrypt, open, open_into, seal, seal_into};
pub use options::{Options, Summary};
pub use random_access::{ReadAt, Reader};
pub use writer::EncryptWriter;
