//! The types and functions that a provider and libcrypto share.
//!
//! | module | contents |
//! |---|---|
//! | `types` | the structures and numbers of `openssl/core.h` and `core_dispatch.h` |
//! | `param` | `OSSL_PARAM`: reading and setting parameters |
//! | `buffers` | the input and the output of one call, which may overlap |
//! | `core` | functions of libcrypto: error stack, configuration |

pub(crate) mod buffers;
pub(crate) mod core;
pub(crate) mod param;
pub(crate) mod types;

pub(crate) use buffers::Buffers;
pub(crate) use param::{GetParam, Param, Parameters, SetParam, list};
