//! The functions that OpenSSL calls.
//!
//! | module | contents |
//! |---|---|
//! | `provider` | the entry point and the functions of the provider itself |
//! | `cipher` | the functions of a cipher, one set for each algorithm |
//! | `skey` | symmetric key objects |
//! | `object` | memory of contexts and key objects |
//! | `guard` | panics become errors |
//! | `table` | the tables that OpenSSL reads |
//!
//! Entry points catch panics and return them as errors. Exception: a panic in an update of a few blocks aborts the
//! process. No panic unwinds into C.

mod cipher;
mod guard;
mod object;
pub(crate) mod provider;
mod skey;
mod table;
