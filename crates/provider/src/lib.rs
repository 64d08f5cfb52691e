//! The OpenSSL 3 provider `lockstep`: programs that use OpenSSL 3.0 or later run AES on Lockstep, by configuration
//! alone. See `docs/provider.md` for how to enable it and the manual page `lockstep-provider(7)` for its settings.
//!
//! It does not link to an OpenSSL library: all calls use the function tables that a provider and libcrypto exchange
//! (provider(7)). These, and all `unsafe` code, are in `ffi`; the rest is safe Rust:
//!
//! | module | contents |
//! |---|---|
//! | `algorithm` | the table of ciphers, with their names |
//! | `cipher` | the contexts: blocks, streams, XTS, GCM, CCM, and TLS records |
//! | `key` | a key that works inline or, for large calls, through the planner |
//! | `ahead` | keystream computed ahead |
//! | `instance` | an instance of the provider: settings, devices, counters |
//! | `settings`, `trace`, `reason`, `message` | configuration, counters, errors, escaping |

// Only `ffi` contains unsafe code; it allows it for itself.
#![deny(unsafe_code)]

mod ahead;
mod algorithm;
mod cipher;
#[allow(unsafe_code)]
mod ffi;
mod instance;
mod key;
mod message;
mod reason;
mod settings;
mod trace;
