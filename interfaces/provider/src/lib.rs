//! The OpenSSL 3 provider `lockstep`. With this provider, programs that use OpenSSL 3.0 or later run AES on Lockstep. Only the
//! configuration of OpenSSL has to be changed. `docs/provider.md` describes how to enable the provider, and the manual page
//! `lockstep-provider(7)` describes its settings.
//!
//! The provider does not link to an OpenSSL library: all calls use the function tables that a provider and libcrypto exchange
//! (provider(7)). A module for OpenSSL exports [`init`] as its entry point. A Rust module imports only modules that are below
//! it in this table. All `unsafe` code is in `ffi`, `libcrypto` and `system`; the other modules are safe Rust:
//!
//! | module | contents |
//! |---|---|
//! | `ffi` | the functions that OpenSSL calls |
//! | `cipher` | the contexts of ciphers, one type for each kind of mode; TLS records |
//! | `instance` | an instance of the provider |
//! | `ahead` | keystream computed ahead |
//! | `key` | keys: small calls run inline, large calls through the planner |
//! | `executor` | work through the planner, and modes that need the whole message |
//! | `resources` | the settings, devices and trace that all contexts of an instance share |
//! | `trace` | the trace: counters of calls and bytes, and the file for them |
//! | `libcrypto` | the interface between a provider and libcrypto: parameters, buffers, error stack |
//! | `system` | files, forks, threads and memory in the program's process |
//! | `settings` | the configuration |
//! | `report` | the entries of the error stack after a failure |
//! | `reason` | errors |
//! | `algorithm` | the table of ciphers |
//! | `message` | escaping of messages |

#![deny(unsafe_code)]

mod ahead;
mod algorithm;
mod cipher;
mod executor;
#[allow(unsafe_code)]
mod ffi;
mod instance;
mod key;
#[allow(unsafe_code)]
mod libcrypto;
mod message;
mod reason;
mod report;
mod resources;
mod settings;
#[allow(unsafe_code)]
mod system;
mod trace;

pub use ffi::provider::init;
