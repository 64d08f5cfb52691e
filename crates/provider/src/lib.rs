//! The OpenSSL 3 provider `lockstep`: any program that uses OpenSSL 3.0 or later runs its AES on Lockstep, by configuration
//! alone. See `docs/provider.md` for how to switch it on and the manual page `lockstep-provider(7)` for its settings.
//!
//! It links to no OpenSSL library: everything passes through the function tables that a provider and the library exchange
//! (provider(7)). All of that, and all `unsafe` code, is in `ffi`; the rest is safe Rust:
//!
//! | module | what |
//! |---|---|
//! | `algorithm` | which ciphers there are, with their names |
//! | `cipher` | what a context of each kind does: blocks, streams, XTS, GCM, CCM, and their forms in TLS |
//! | `key` | a key that works inline or, for large pieces, through the planner |
//! | `ahead` | keystream made before it is asked for |
//! | `instance` | one loading of the provider: settings, devices, counters |
//! | `settings`, `trace`, `reason`, `message` | what is configured, what is counted, what can go wrong, how it is written |

// Only `ffi` may cross the border; it allows it for itself.
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
