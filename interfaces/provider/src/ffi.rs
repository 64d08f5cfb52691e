//! The functions that OpenSSL calls.
//!
//! | module | contents |
//! |---|---|
//! | `provider` | the entry point and the functions of the provider itself |
//! | `cipher` | the functions of a cipher, one set for each algorithm |
//! | `skey` | symmetric key objects |
//! | `guard` | conversion of panics to errors |
//! | `table` | the tables that OpenSSL reads |
//!
//! Entry points catch panics and return errors instead. Exception: a panic in a short call (`Guard::ShortCallsUnguarded` in `cipher`)
//! aborts the process. In no case does a panic unwind into C.

mod cipher;
mod guard;
pub(crate) mod provider;
mod skey;
mod table;
