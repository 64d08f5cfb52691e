//! The border to OpenSSL: all that is C, and all `unsafe` of this crate, is in here.
//!
//! | module | what |
//! |---|---|
//! | `types` | the structures and numbers of `openssl/core.h` and `core_dispatch.h` |
//! | `param` | `OSSL_PARAM`: reading and answering parameters |
//! | `buffers` | input and output of one call, which may be the same memory |
//! | `core` | what the library offers to us: errors, configuration |
//! | `descriptor` | writing the trace and messages without an effect on the program |
//! | `provider` | `OSSL_provider_init` and the functions of the provider itself |
//! | `process`, `thread`, `stack` | forks, threads of our own, what calls leave on the stack |
//! | `standard` | whose files standard output and error are; messages |
//! | `skey` | keys as objects |
//! | `cipher` | the functions of a cipher, one set for each algorithm |
//!
//! Entry points catch panics and turn them into errors: none may cross into C.

pub(crate) mod buffers;
pub(crate) mod cipher;
pub(crate) mod core;
pub(crate) mod descriptor;
mod guard;
pub(crate) mod param;
pub(crate) mod process;
pub(crate) mod provider;
mod skey;
pub(crate) mod stack;
pub(crate) mod standard;
pub(crate) mod thread;
mod types;
