//! The OpenSSL 3 provider `lockstep`. With this provider, programs that use OpenSSL 3.0 or later run AES on Lockstep.
//! Only their configuration has to be changed. See `docs/provider.md` for how to enable it and the manual page
//! `lockstep-provider(7)` for its settings.
//!
//! The provider does not link to an OpenSSL library: all calls use the function tables that a provider and libcrypto
//! exchange (provider(7)). A module for OpenSSL exports [`init`] as its entry point. The function tables and all `unsafe`
//! code are in `ffi`. The other modules are safe Rust:
//!
//! | module | contents |
//! |---|---|
//! | `algorithm` | the table of ciphers, with their names |
//! | `cipher` | the contexts: one for each kind of mode, and TLS records |
//! | `key` | a key that works inline or, for large calls, through the planner |
//! | `executor` | modes that need the whole message, inline or through the planner |
//! | `ahead` | keystream computed ahead |
//! | `instance` | an instance of the provider: settings, devices, counters |
//! | `settings`, `trace`, `reason`, `message` | configuration, counters, errors, escaping |

// Only `ffi` may contain unsafe code. Its declaration below has an `allow` attribute.
#![deny(unsafe_code)]

mod ahead;
mod algorithm;
mod cipher;
mod executor;
#[allow(unsafe_code)]
mod ffi;
mod instance;
mod key;
mod message;
mod reason;
mod report;
mod settings;
mod trace;

pub use ffi::provider::init;
