//! Parquet Modular Encryption (Apache Parquet, `Encryption.md`): `AES_GCM_V1` and `AES_GCM_CTR_V1`, keys of 128, 192 and 256 bits,
//! encrypted footers and signed plaintext footers, footer and column keys, AAD prefixes.
//!
//! [`PlainView`] shows an encrypted file as a plain Parquet file, which any Parquet reader can read. It decrypts the modules
//! that are read, in batches on all cores. [`encrypt`] encrypts a plain Parquet file by a [`Policy`]. [`decrypt_modules`]
//! decrypts modules that the caller has found, also in memory of a device.
//!
//! | module | content |
//! |---|---|
//! | `thrift` | Thrift's compact protocol, one structure at a time; unknown fields are kept |
//! | `format` | the structures and field numbers of Parquet |
//! | `columns` | the columns of a file, and the names of columns and groups |
//! | `aad` | the associated data of modules |
//! | `keys` | keys, and the sources that find them |
//! | `modules` | encrypted modules: their form, their encryption, and their decryption in batches |
//! | `page` | page headers |
//! | `read` | the plain view |
//! | `write` | encryption |
//! | `file` | encryption and decryption of files |
//!
//! No plaintext of a GCM module is released before its tag is checked. The pages of `AES_GCM_CTR_V1` have no tag, so changes
//! of these pages are not detected. They are read only with [`ReadOptions::allows_unauthenticated_pages`].
//!
//! **Memory.** The memory for a footer is at most twice its length plus 4 MiB before it is authenticated, and at most 32 times its length
//! plus 4 MiB afterwards and in [`encrypt`]. A footer has at most 256 MiB. Other structures are decoded one after the other, and take
//! memory in proportion to their length. All parsers take time in proportion to the length of their input, and limit the depth of nested
//! values.
#![forbid(unsafe_code)]

mod aad;
mod columns;
mod error;
mod file;
mod format;
mod keys;
mod modules;
mod page;
mod read;
#[cfg(test)]
mod tests;
mod thrift;
mod write;

pub use aad::{FILE_UNIQUE, Module, module_aad};
pub use error::{Error, Result};
pub use file::{decrypt_file, encrypt_file};
pub use format::Algorithm;
pub use keys::{KeySource, Keys};
pub use modules::{
    DeviceModule, EncryptedModule, HEAD, Kind, Protection, ciphertext, decrypt_modules, device_modules,
};
pub use read::{PlainView, ReadOptions};
pub use write::{ColumnKey, Policy, encrypt};
