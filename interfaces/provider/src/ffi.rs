//! The C interface to OpenSSL. It contains all `unsafe` code of this crate.
//!
//! | module | contents |
//! |---|---|
//! | `types` | the structures and numbers of `openssl/core.h` and `core_dispatch.h` |
//! | `param` | `OSSL_PARAM`: reading and setting parameters |
//! | `buffers` | input and output of one call, which may be the same memory |
//! | `core` | functions of libcrypto: error stack, configuration |
//! | `descriptor` | writing the trace and messages without side effects on the program |
//! | `provider` | `OSSL_provider_init` and the functions of the provider itself |
//! | `process`, `thread` | forks, the provider's threads |
//! | `standard` | the files of standard output and standard error; messages |
//! | `skey` | symmetric key objects |
//! | `cipher` | the functions of a cipher, one set for each algorithm |
//!
//! Entry points catch panics and return them as errors. Exception: a panic in an update of a few blocks aborts the
//! process. No panic unwinds into C.

pub(crate) mod buffers;
pub(crate) mod cipher;
pub(crate) mod core;
pub(crate) mod descriptor;
mod guard;
pub(crate) mod heap;
pub(crate) mod param;
pub(crate) mod process;
pub(crate) mod provider;
mod skey;
pub(crate) mod standard;
pub(crate) mod thread;
mod types;
